"use strict";

// What is shown depends only on the address: #watch=...&rung=...&from=...&to=...&hide=...&one=...
// Every control changes only the address, so that any view can be linked to.

const data = JSON.parse(document.getElementById("data").textContent);

const FEW = 8; // steps that are listed at first
const COLUMNS = 5; // kernels in the table at first
const STRONGEST = 25; // per cent of change, from which on the colour is the strongest
const LARGEST = 3; // changes of the newest kernel that are named
const LETTER = 6.8; // pixels of a character in the chart, at most
const DOTS = 150; // points in view up to which each is drawn
const LEAST = 4; // points that are in view at least
const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 58, right: 12, top: 12, bottom: 26 };

const plot = document.getElementById("plot");
const told = document.getElementById("told");
const narrow = document.getElementById("narrow");
const choice = document.getElementById("choice");
const pair = document.getElementById("pair");

function element(tag, attributes = {}, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes))
		made.setAttribute(name, value);
	made.append(...children);
	return made;
}

function shape(tag, attributes = {}, ...children) {
	const made = document.createElementNS(SVG, tag);
	for (const [name, value] of Object.entries(attributes))
		made.setAttribute(name, value);
	made.append(...children);
	return made;
}

function count(value, digits = 2) {
	return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function change(before, after) {
	if (before === null || after === null)
		return "-";
	const difference = after - before;
	if (Math.abs(difference) < 0.005)
		return "same";
	const percent = before ? ` (${signed(100 * difference / before)} %)` : "";
	return `${signed(difference)}${percent}`;
}

function signed(value) {
	return `${value > 0 ? "+" : ""}${count(value)}`;
}

function direction(difference) {
	return difference > 0.05 ? "grew" : difference < -0.05 ? "shrank" : "same";
}

function plural(number, what) {
	return `${number} ${what}${number === 1 ? "" : "s"}`;
}

function address(path) {
	return path.split("/").map(encodeURIComponent).join("/");
}

// The state.

function state() {
	const words = new URLSearchParams(location.hash.slice(1));
	const watch = data.watches.find((one) => one.name === words.get("watch")) ?? data.watches[0];
	const last = watch.points.length - 1;
	const place = (name, otherwise) => {
		const found = watch.points.findIndex((point) => point.title === words.get(name));
		return found < 0 ? otherwise : found;
	};
	const rung = watch.rungs.findIndex((one) => one.key === words.get("rung"));
	let [from, to] = [place("from", 0), place("to", last)];
	if (from > to)
		[from, to] = [0, last];
	return {
		watch, from, to, last,
		rung: rung < 0 ? preferred(watch) : rung,
		hidden: new Set(words.get("hide")?.split(",") ?? []),
		find: words.get("find") ?? "",
		only: words.has("only"),
		every: words.has("every"),
		table: words.has("table"),
		one: place("one", 0),
		two: place("two", last),
	};
}

// The rung that is shown at first: the I/O with the most steps.
function preferred(watch) {
	const steps = watch.rungs.map((rung) => rung.key.includes("/none/") ? -0.5 : 0);
	for (const step of watch.steps)
		for (const one of step.changes)
			steps[one.rung]++;
	return Math.max(0, steps.indexOf(Math.max(...steps)));
}

// Go to the present state with these words of the address changed; an empty one is removed.
// *quietly*: without a step in the browser's history.
function go(changes, quietly = false) {
	const words = new URLSearchParams(location.hash.slice(1));
	for (const [name, value] of Object.entries(changes)) {
		if (value === "")
			words.delete(name);
		else
			words.set(name, value);
	}
	const text = String(words).replaceAll("%2F", "/").replaceAll("%2C", ",");
	if (quietly) {
		history.replaceState(null, "", `#${text}`);
		draw();
	} else {
		location.hash = text;
	}
}

// How points follow each other.

// The link to the point that another one is compared with: the one before it on its line, or one of
// another line.
function linkTo(watch, number) {
	watch.byAfter ??= new Map(watch.links.map((one) => [one.after, one]));
	return watch.byAfter.get(number);
}

function stepTo(watch, number) {
	watch.stepByAfter ??= new Map(watch.steps.map((one) => [one.after, one]));
	return watch.stepByAfter.get(number);
}

// What a step says of a rung. Every figure of a step that is shown is from here.
function changeOf(step, rung) {
	return step?.changes.find((one) => one.rung === rung);
}

// Steps, as a path for each line. Where the compiler or the instrument is another one, the way there
// is in the last path: what changes there need not be the kernel.
function paths(watch, values, x, y, from, to, hidden) {
	const texts = watch.lines.map(() => "");
	const ends = watch.lines.map(() => -1);
	let broken = "";
	const shown = (at) => at >= from && at <= to && values[at] !== null
		&& !hidden.has(watch.lines[watch.points[at].line]);
	const place = (at) => `${x(at).toFixed(1)} ${y(values[at]).toFixed(1)}`;
	const way = (at) => `H${x(at).toFixed(1)}V${y(values[at]).toFixed(1)}`;
	for (let at = from; at <= to; at++) {
		if (!shown(at))
			continue;
		const line = watch.points[at].line;
		const one = linkTo(watch, at);
		if (one && shown(one.before) && !one.breaks.length)
			texts[line] += ends[line] === one.before && texts[line] ? way(at) : `M${place(one.before)}${way(at)}`;
		else if (one && shown(one.before))
			broken += `M${place(one.before)}${way(at)}`;
		if (!one || !shown(one.before) || one.breaks.length)
			texts[line] += `M${place(at)}`;
		ends[line] = at;
	}
	return { texts, broken };
}

function range(values) {
	const known = values.filter((value) => value !== null);
	const low = Math.min(...known), high = Math.max(...known);
	// Small differences look small.
	const half = Math.max((high - low) * 0.55, Math.abs(high + low) / 2 * 0.01, 0.5);
	return [(low + high) / 2 - half, (low + high) / 2 + half];
}

function link(changes) {
	const words = new URLSearchParams(location.hash.slice(1));
	for (const [name, value] of Object.entries(changes))
		words.set(name, value);
	return `#${String(words).replaceAll("%2F", "/").replaceAll("%2C", ",")}`;
}

// The table of rungs and kernels, the newest on the right.

// A change's colour, in per cent: as in the page of a comparison.
function strength(percent) {
	return Math.round(6 + 34 * Math.sqrt(Math.min(1, Math.abs(percent) / STRONGEST)));
}

// A difference in per cent, with a question mark if it may be noise.
function share(own) {
	const text = own.percent === null ? signed(own.difference) : `${own.percent > 0 ? "+" : ""}${count(own.percent, 1)}\u00a0%`;
	return text + (own.text.endsWith("?") ? "?" : "");
}

function cellOf(watch, number, rung) {
	const value = watch.rungs[rung].values[number];
	const own = changeOf(stepTo(watch, number), rung);
	if (value === null)
		return element("td", {}, element("span", {}, "-"));
	const figure = element("b", {}, count(value));
	if (!own)
		return element("td", {}, element("span", {}, figure));
	return element("td", {
		class: own.difference > 0 ? "more" : "less", style: `--heat:${strength(own.percent ?? 0)}%`,
		title: `${own.text}: ${own.functions || own.mover}`,
	}, linked(page(watch, stepTo(watch, number), rung), {}, figure, element("span", {}, share(own))));
}

// The geometric mean of the rungs with I/O that all of these kernels have, for each kernel.
function means(watch, numbers) {
	const rungs = watch.rungs.filter((rung) => !rung.key.includes("/none/")
		&& numbers.every((number) => rung.values[number] > 0));
	const mean = (number) => Math.exp(rungs.reduce((sum, rung) => sum + Math.log(rung.values[number]), 0) / rungs.length);
	return { rungs: rungs.length, values: rungs.length ? numbers.map(mean) : [] };
}

// By how much the mean of a kernel differs from that of the kernel before it.
function meanChange(watch, number) {
	const before = linkTo(watch, number);
	if (!before || watch.points[before.before].instrument !== watch.points[number].instrument)
		return null;
	const { values: [old, now] } = means(watch, [before.before, number]);
	return now === undefined ? null : 100 * (now / old - 1);
}

function percent(value) {
	const text = count(value, 1);
	return Number(text) === 0 ? "same" : `${value > 0 ? "+" : ""}${text}\u00a0%`;
}

function drawMatrix(at) {
	const { watch, last } = at;
	const table = document.getElementById("matrix");
	const head = table.tHead.rows[0];
	const numbers = [];
	for (let number = at.table ? 0 : Math.max(0, last + 1 - COLUMNS); number <= last; number++)
		numbers.push(number);
	table.style.setProperty("--kernels", numbers.length);
	table.classList.toggle("many", numbers.length > COLUMNS);
	head.replaceChildren(head.cells[0], ...numbers.map((number) => {
		const one = watch.points[number];
		const words = [one.title, one.date, one.detail].filter(Boolean).join(", ");
		return element("th", { scope: "col", class: "number", title: words },
			...brief(watch, one).split(/(?<=\.)/).flatMap((part) => [part, element("wbr")]));
	}));
	table.tBodies[0].replaceChildren(...watch.rungs.map((rung, at_) => {
		const row = element("tr", at_ === at.rung ? { "aria-current": "true" } : {},
			element("th", { scope: "row" }, element("a", { href: link({ rung: rung.key }) }, rung.title)));
		row.append(...numbers.map((number) => cellOf(watch, number, at_)));
		return row;
	}));
	const { rungs, values } = means(watch, numbers);
	table.tFoot.replaceChildren(...values.length ? [element("tr", {}, element("th", { scope: "row" }, `mean of ${plural(rungs, "rung")}`),
		...values.map((value, place) => {
			const by = meanChange(watch, numbers[place]);
			return element("td", {}, element("span", {}, element("b", {}, count(value)), ...by === null ? [] : [element("span", {}, percent(by))]));
		}))] : []);
	const notes = numbers.flatMap((number) => {
		const before = linkTo(watch, number), step = stepTo(watch, number);
		const words = [...before?.breaks ?? [], step?.differing.length ? "not judged" : ""];
		if (before && before.before !== number - 1)
			words.unshift(`against ${watch.points[before.before].title}`);
		return words.some(Boolean) ? [`${brief(watch, watch.points[number])}: ${words.filter(Boolean).join(", ")}`] : [];
	});
	document.getElementById("notes").textContent = notes.length ? `${notes.join("; ")}.` : "";
	document.getElementById("unknown").hidden = ![...table.tBodies[0].querySelectorAll("td")].some((cell) => cell.textContent.endsWith("?"));
	const rest = document.getElementById("more-rows");
	rest.replaceChildren();
	if (numbers.length <= last) {
		const all = element("button", { type: "button" }, `Show all ${last + 1} kernels`);
		all.onclick = () => go({ table: "all" }, true);
		rest.append(all);
	}
}

// The steps.

function matches(watch, step, text) {
	if (!text)
		return true;
	const before = watch.points[step.before], after = watch.points[step.after];
	const all = [before.title, after.title, after.detail, watch.lines[after.line], ...step.labels,
		...step.changes.flatMap((one) => [watch.rungs[one.rung].title, one.functions, one.mover])];
	return all.some((part) => part.toLowerCase().includes(text.toLowerCase()));
}

// The address of a step's functions; empty if they are not beside this page.
function page(watch, step, rung) {
	return step.page && `${address(step.page)}#rung=${watch.rungs[rung].key}`;
}

// A link, if there is an address.
function linked(href, attributes, ...children) {
	return element(href ? "a" : "span", href ? { href, ...attributes } : attributes, ...children);
}

function drawSteps(at) {
	const { watch } = at;
	if (narrow.find !== document.activeElement)
		narrow.find.value = at.find;
	narrow.only.checked = at.only;
	const found = watch.steps.filter((step) => matches(watch, step, at.find)
		&& (!at.only || step.changes.some((one) => one.rung === at.rung))).reverse();
	const shown = at.every ? found : found.slice(0, FEW);
	document.getElementById("steps").replaceChildren(...shown.map((step) => {
		const before = watch.points[step.before], after = watch.points[step.after];
		const item = element("li");
		if (step.differing.length) {
			item.append(`${before.title} to ${after.title}`,
				element("div", { class: "dim" }, `not judged: ${step.differing.join("; ")}`));
			return item;
		}
		const own = changeOf(step, at.rung) ?? step.changes[0];
		item.append(linked(page(watch, step, own.rung), {}, `${before.title} to ${after.title}`));
		if (watch.git)
			item.append(element("div", {}, after.detail));
		const kind = direction(own.difference);
		item.append(element("div", {}, `${watch.rungs[own.rung].title}: `,
			element("span", { class: `figure ${kind}` }, own.text), own.functions ? `: ${own.functions}` : ` ${own.mover}`));
		const more = step.changes.length - 1;
		const notes = [more ? plural(more, "more rung") : "", ...step.labels.map((label) => `also differs: ${label}`)];
		if (notes.some(Boolean))
			item.append(element("div", { class: "dim" }, notes.filter(Boolean).join("; ")));
		return item;
	}));
	const rest = document.getElementById("more-steps");
	rest.replaceChildren(found.length ? "" : "No step matches.");
	if (shown.length < found.length) {
		const all = element("button", { type: "button" }, `Show all ${found.length} steps`);
		all.onclick = () => go({ every: "1" }, true);
		rest.append(all);
	}
}

// The chart. *cursor* is the number of a point.

let cursor = -1;
let scale = null; // of the chart that is drawn

function ticks(low, high, wanted) {
	const raw = (high - low) / wanted;
	const power = 10 ** Math.floor(Math.log10(raw));
	const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
	const found = [];
	for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step)
		found.push(tick);
	return { found, digits: Math.max(0, -Math.floor(Math.log10(step))) };
}

function brief(watch, point) {
	return watch.git ? point.title.slice(0, 8) : point.title.split("-")[0];
}

function drawChart(at) {
	const { watch, from, to, hidden } = at;
	const rung = watch.rungs[at.rung];
	const seen = (number) => rung.values[number] !== null && !hidden.has(watch.lines[watch.points[number].line]);
	const inView = [];
	for (let number = from; number <= to; number++)
		if (seen(number))
			inView.push(number);
	const width = Math.max(280, plot.clientWidth), height = width < 600 ? 260 : 340;
	const drawn = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${rung.title}, instructions per I/O` });
	if (!inView.length) {
		plot.replaceChildren(element("p", {}, "No kernel in view has this rung."));
		scale = null;
		return;
	}
	const [low, high] = range(inView.map((number) => rung.values[number]));
	const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
	const x = (number) => MARGIN.left + inner.width * (number - from + 0.5) / (to - from + 1);
	const y = (value) => MARGIN.top + inner.height * (high - value) / (high - low);
	const at_ = (pixel) => Math.min(to, Math.max(from, Math.floor(from + (pixel - MARGIN.left) / inner.width * (to - from + 1))));
	scale = { at, x, y, number: at_, seen, width, height, rung };
	const marks = ticks(low, high, 5);
	for (const tick of marks.found) {
		drawn.append(shape("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick) }),
			shape("text", { x: MARGIN.left - 6, y: y(tick) + 4, "text-anchor": "end" }, count(tick, marks.digits)));
	}
	const every = Math.ceil((to - from + 1) / Math.max(2, Math.floor(inner.width / 95)));
	for (let number = from; number <= to; number += every) {
		const point = watch.points[number];
		drawn.append(shape("text", { x: x(number), y: height - 8, "text-anchor": "middle" }, brief(watch, point)));
	}
	const { texts, broken } = paths(watch, rung.values, x, y, from, to, hidden);
	if (broken)
		drawn.append(shape("path", { d: broken, class: "broken" }));
	texts.forEach((text, line) => {
		if (text)
			drawn.append(shape("g", { class: `l${line % 8}` }, shape("path", { d: text })));
	});
	if (inView.length <= DOTS) {
		for (const number of inView)
			drawn.append(shape("g", { class: `l${watch.points[number].line % 8}` },
				shape("circle", { cx: x(number), cy: y(rung.values[number]), r: 3 })));
	}
	const labels = [];
	for (const step of watch.steps) {
		const own = changeOf(step, at.rung);
		if (!own || step.after < from || step.after > to || !seen(step.after))
			continue;
		const kind = direction(own.difference);
		const sign = kind === "shrank" ? 1 : -1;
		const [px, py] = [x(step.after), y(rung.values[step.after])];
		const triangle = `M${px} ${py + 6 * sign}l-6 ${-11 * sign}h12z`;
		const href = page(watch, step, at.rung);
		drawn.append(shape(href ? "a" : "g", { ...href ? { href } : {}, tabindex: "-1", class: `step ${kind}`, "aria-label": `${watch.points[step.after].title}: ${own.text}` },
			shape("path", { d: triangle })));
		labels.push({ own, sign, x: px, y: py, name: brief(watch, watch.points[step.after]) });
	}
	drawn.append(...written(labels, width, height));
	drawn.append(shape("g", { id: "mark" }));
	plot.replaceChildren(drawn);
	point(cursor);
}

// The texts of the largest steps, with kernel and function, where there is room for them.
function written(labels, width, height) {
	const taken = labels.map((one) => [one.x - 7, one.x + 7, one.y + 3 * one.sign - 9, one.y + 3 * one.sign + 9]);
	const found = [];
	const free = ([left, right, up, down]) => left >= MARGIN.left && right <= width && up >= 0 && down <= height - MARGIN.bottom
		&& taken.every((box) => right < box[0] || left > box[1] || down < box[2] || up > box[3]);
	for (const one of labels.toSorted((a, b) => Math.abs(b.own.difference) - Math.abs(a.own.difference))) {
		const [first] = one.own.functions.split(" ");
		const text = `${one.name} ${signed(one.own.difference)}${first ? ` ${first}` : ""}`;
		const wide = LETTER * text.length;
		// On the right is the line that goes on, on the left the step.
		const places = [0, 14, 28, 42, 56].flatMap((by) => [
			[one.x - 10, one.y + one.sign * by, "end"], [one.x + 10, one.y + one.sign * (by + 12), "start"],
		]);
		const place = places.find(([x, y, end]) => free(end === "start" ? [x, x + wide, y - 6, y + 6] : [x - wide, x, y - 6, y + 6]));
		if (!place)
			continue;
		const [x, y, end] = place;
		taken.push(end === "start" ? [x, x + wide, y - 6, y + 6] : [x - wide, x, y - 6, y + 6]);
		found.push(shape("text", { x, y: y + 4, "text-anchor": end, class: "label" }, text));
	}
	return found;
}

// Show what is known of a point.
function point(number) {
	cursor = number;
	const mark = document.getElementById("mark");
	mark?.replaceChildren();
	if (!scale || !mark)
		return;
	const { watch, from, to } = scale.at;
	if (number < from || number > to || !scale.seen(number)) {
		const steps = watch.steps.filter((step) => changeOf(step, scale.at.rung));
		told.textContent = `${watch.points[from].title} to ${watch.points[to].title}: ${plural(to - from + 1, "kernel")}, `
			+ `${plural(steps.filter((step) => step.after >= from && step.after <= to).length, "step")} of ${scale.rung.title}.`;
		return;
	}
	const value = scale.rung.values[number];
	mark.append(shape("line", { class: "cursor", x1: scale.x(number), x2: scale.x(number), y1: MARGIN.top, y2: scale.height - MARGIN.bottom }),
		shape("circle", { class: "ring", cx: scale.x(number), cy: scale.y(value), r: 7 }));
	const one = watch.points[number];
	const step = stepAt(number);
	const own = changeOf(step, scale.at.rung);
	told.replaceChildren(element("strong", {}, `${one.title}: ${count(value)}`),
		` ${[watch.lines.length > 1 ? watch.lines[one.line] : "", one.date, one.detail].filter(Boolean).join(", ")}`);
	if (own) {
		told.append(element("br"), linked(page(watch, step, scale.at.rung), {}, `since ${watch.points[step.before].title}`),
			`: ${own.text}${own.functions ? `: ${own.functions}` : ` ${own.mover}`}`);
	}
}

function stepAt(number) {
	const step = stepTo(scale.at.watch, number);
	return changeOf(step, scale.at.rung) && step;
}

// The point that is seen from *number* on in a direction.
function neighbour(number, by, wanted = scale.seen) {
	const { from, to } = scale.at;
	for (let at = number + by; at >= from && at <= to; at += by)
		if (wanted(at))
			return at;
	return number;
}

function view(from, to) {
	const { watch, last } = state();
	const size = Math.min(last + 1, Math.max(LEAST, to - from + 1));
	from = Math.round(Math.min(Math.max(0, from), last + 1 - size));
	to = Math.min(last, from + Math.round(size) - 1);
	const whole = from === 0 && to === last;
	go({ from: whole ? "" : watch.points[from].title, to: whole ? "" : watch.points[to].title }, true);
}

function zoom(factor) {
	const { from, to } = state();
	const size = to - from + 1;
	const middle = cursor >= from && cursor <= to ? cursor : (from + to) / 2;
	const left = middle - (middle - from) * factor;
	view(Math.round(left), Math.round(left) + Math.round(size * factor) - 1);
}

function pan(part) {
	const { from, to, last } = state();
	const by = Math.round((to - from + 1) * part) || Math.sign(part);
	const least = Math.max(-from, Math.min(by, last - to));
	view(from + least, to + least);
}

const KEYS = {
	ArrowLeft: () => point(neighbour(cursor < 0 ? scale.at.to + 1 : cursor, -1)),
	ArrowRight: () => point(neighbour(cursor, 1)),
	n: () => point(neighbour(cursor, 1, (number) => scale.seen(number) && stepAt(number))),
	p: () => point(neighbour(cursor < 0 ? scale.at.to + 1 : cursor, -1, (number) => scale.seen(number) && stepAt(number))),
	"+": () => zoom(0.5),
	"-": () => zoom(2),
	0: () => view(0, scale.at.last),
	Enter: () => told.querySelector("a")?.click(),
	Escape: () => point(-1),
};

plot.addEventListener("keydown", (event) => {
	if (!scale || event.ctrlKey || event.altKey || event.metaKey || !(event.key in KEYS))
		return;
	event.preventDefault();
	KEYS[event.key]();
});

// A drag chooses what is in view.
let begun = null;

function pixel(event) {
	return event.clientX - plot.getBoundingClientRect().left;
}

plot.addEventListener("pointerdown", (event) => {
	if (event.button === 0 && scale && !event.target.closest("a"))
		begun = pixel(event);
});
plot.addEventListener("pointermove", (event) => {
	if (!scale)
		return;
	const now = pixel(event);
	if (begun !== null && Math.abs(now - begun) > 5) {
		plot.setPointerCapture(event.pointerId);
		const mark = document.getElementById("mark");
		mark.replaceChildren(shape("rect", { class: "chosen", x: Math.min(begun, now), width: Math.abs(now - begun), y: MARGIN.top, height: scale.height - MARGIN.top - MARGIN.bottom }));
		return;
	}
	const number = scale.number(now);
	const [left, right] = [neighbour(number + 1, -1), neighbour(number - 1, 1)];
	const near = scale.seen(left) && (!scale.seen(right) || number - left <= right - number) ? left : right;
	if (near !== cursor)
		point(near);
});
plot.addEventListener("pointerup", (event) => {
	const now = pixel(event);
	if (begun !== null && Math.abs(now - begun) > 5)
		view(scale.number(Math.min(begun, now)), scale.number(Math.max(begun, now)));
	begun = null;
});
plot.addEventListener("pointercancel", () => {
	begun = null;
	point(cursor);
});
plot.addEventListener("dblclick", () => scale && view(0, scale.at.last));

// The controls.

function drawControls(at) {
	const { watch } = at;
	fill(choice.rung, watch.rungs.map((rung) => [rung.key, rung.title]), watch.rungs[at.rung].key);
	const lines = document.getElementById("lines");
	lines.hidden = watch.lines.length < 2;
	lines.replaceChildren(lines.firstElementChild, ...watch.lines.map((name, number) => {
		const box = element("input", { type: "checkbox", name: "line", value: name });
		box.checked = !at.hidden.has(name);
		box.onchange = () => {
			const hidden = new Set(at.hidden);
			if (box.checked)
				hidden.delete(name);
			else
				hidden.add(name);
			go({ hide: [...hidden].join(",") }, true);
			document.querySelector(`#lines input[value="${CSS.escape(name)}"]`).focus();
		};
		return element("label", {}, box, " ", element("i", { class: `swatch l${number % 8}` }), element("span", {}, name));
	}));
}

// Give a select its options, and choose one.
function fill(select, options, chosen) {
	const texts = options.map(([, text]) => text).join("\n");
	if (select.dataset.texts !== texts) {
		select.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
		select.dataset.texts = texts;
	}
	select.value = chosen;
}

choice.rung.onchange = () => go({ rung: choice.rung.value });
narrow.find.oninput = () => go({ find: narrow.find.value, every: "" }, true);
narrow.only.onchange = () => go({ only: narrow.only.checked ? "1" : "" }, true);
choice.in.onclick = () => zoom(0.5);
choice.out.onclick = () => zoom(2);
choice.left.onclick = () => pan(-0.5);
choice.right.onclick = () => pan(0.5);
choice.whole.onclick = () => view(0, state().last);
for (const name of ["one", "two"])
	pair[name].onchange = () => go({ [name]: pair[name].value }, true);
for (const form of document.forms)
	form.onsubmit = (event) => event.preventDefault();

// Two kernels side by side.

function drawBeside(at) {
	const { watch } = at;
	const options = watch.points.map((one) => [one.title, one.date ? `${one.title} (${one.date})` : one.title]);
	const one = watch.points[at.one], two = watch.points[at.two];
	fill(pair.one, options, one.title);
	fill(pair.two, options, two.title);
	const table = document.getElementById("beside");
	table.caption.textContent = `Instructions per I/O, ${one.title} to ${two.title}`;
	const own = linkTo(watch, at.two)?.before === at.one ? stepTo(watch, at.two) : null;
	const apart = one.instrument !== two.instrument;
	table.tBodies[0].replaceChildren(...watch.rungs.map((rung, number) => {
		const [before, after] = [rung.values[at.one], rung.values[at.two]];
		const said = changeOf(own, number);
		const text = said ? said.text : apart ? "-" : change(before, after);
		const kind = said ? said.difference : apart ? 0 : after - before;
		const cell = element("td", { class: `number change ${direction(kind)}` }, text);
		return element("tr", {}, element("th", { scope: "row" }, rung.title),
			...[before, after].map((value) => element("td", { class: "number more" }, value === null ? "-" : count(value))), cell);
	}));
	const step = own?.changes.length ? own : null;
	const gap = watch.links.find((part) => part.before === at.one && part.after === at.two && part.file);
	const where = document.getElementById("command");
	if (apart && !gap)
		where.replaceChildren("Another version of QEMU or iopath counted the second one, so the two cannot be compared.");
	else if (step)
		where.replaceChildren(linked(address(step.page), {}, step.page ? "The functions that changed" : ""));
	else if (one.file)
		where.replaceChildren("The functions that changed: ", element("code", {}, `iopath compare ${gap ? gap.file : `${one.file} ${two.file}`} --html page.html`));
}

// The files.

function drawFiles({ watch }) {
	document.getElementById("measured-title").textContent = `${plural(watch.points.length, "kernel")}, as JSON`;
	document.getElementById("files").replaceChildren(...[...watch.points].reverse().map((one) =>
		element("li", {}, linked(address(one.file), {}, one.title), ` ${one.detail}`)));
	const failed = document.getElementById("failed");
	failed.hidden = !watch.failed.length;
	failed.querySelector("summary").textContent = `${plural(watch.failed.length, "kernel")} not measured`;
	failed.querySelector("ul").replaceChildren(...[...watch.failed].reverse().map((one) =>
		element("li", {}, `${one.title} (${one.detail}): ${one.error}`)));
}

// The largest change of an I/O in a direction, as a sentence with a link.
function extreme(watch, what, sign) {
	let found = null;
	for (const step of watch.steps) {
		for (const own of step.changes) {
			const share = sign * (own.percent ?? 0);
			if (!watch.rungs[own.rung].key.includes("/none/") && share > (found?.share ?? 0))
				found = { step, own, share };
		}
	}
	if (!found)
		return [];
	const { step, own } = found;
	const besides = linkTo(watch, step.after).breaks;
	return [element("p", {}, `${what}: `, ...told_(watch, step, own),
		` in ${watch.points[step.after].title}: ${own.functions || own.mover}`,
		besides.length ? ` (there also ${besides.join(", ")})` : "", ".")];
}

// A change of a step, as a link.
function told_(watch, step, own) {
	return [linked(page(watch, step, own.rung), {}, `${watch.rungs[own.rung].title} `, element("span", { class: "figure" }, own.text))];
}

// The newest kernel: by how much its mean differs from the kernel before it, and its largest steps.
function newest(watch, number) {
	const before = linkTo(watch, number), step = stepTo(watch, number), one = watch.points[number];
	const said = element("p", {}, element("strong", {}, one.title), one.date ? ` (${one.date})` : "");
	if (!before)
		return said;
	said.append(` against ${watch.points[before.before].title}: `);
	if (step?.differing.length) {
		const more = step.differing.length - 1;
		said.append(`not judged: ${step.differing[0]}${more ? `, and ${more} more` : ""}.`);
		return said;
	}
	const by = meanChange(watch, number);
	said.append(by === null ? "" : `mean ${percent(by)}; `);
	const found = (step?.changes ?? []).filter((own) => !watch.rungs[own.rung].key.includes("/none/"))
		.toSorted((a, b) => Math.abs(b.percent ?? 0) - Math.abs(a.percent ?? 0)).slice(0, LARGEST);
	said.append(found.length ? "the largest steps: " : "no step.");
	found.forEach((own, place) => said.append(...told_(watch, step, own),
		own.functions || own.mover ? `: ${own.functions.split(", ")[0] || own.mover}` : "", place < found.length - 1 ? "; " : "."));
	return said;
}

let shown = "";

function draw() {
	const about = document.getElementById("about");
	const usable = data.watches.filter((watch) => watch.points.length);
	if (!usable.length) {
		about.textContent = "No kernel was measured yet.";
		return;
	}
	data.watches = usable;
	const at = state();
	const { watch } = at;
	const end = watch.points[at.last];
	about.textContent = `${watch.name}: ${plural(watch.points.length, "kernel")} from ${watch.points[0].title} to ${end.title}, ${plural(watch.steps.filter((step) => step.changes.length).length, "step")}.`;
	document.getElementById("answer").replaceChildren(newest(watch, at.last));
	document.getElementById("extremes").replaceChildren(...extreme(watch, "Largest increase", 1), ...extreme(watch, "Largest decrease", -1));
	const watches = document.getElementById("watches");
	watches.hidden = data.watches.length < 2;
	watches.replaceChildren(...data.watches.flatMap((one) => [element("a", {
		href: `#watch=${encodeURIComponent(one.name)}`, ...(one === watch ? { "aria-current": "page" } : {}),
	}, one.name), " "]));
	document.getElementById("main").hidden = false;
	if (shown !== watch.name) {
		cursor = -1;
		drawFiles(at);
		shown = watch.name;
	}
	drawSteps(at);
	drawControls(at);
	drawChart(at);
	drawMatrix(at);
	drawBeside(at);
}

addEventListener("hashchange", draw);
new ResizeObserver(() => {
	if (scale && plot.clientWidth && Math.abs(plot.clientWidth - scale.width) > 1)
		drawChart(state());
}).observe(plot);
draw();
