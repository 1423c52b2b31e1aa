"use strict";

// The view depends only on the address: #rung=...&kernel=...&against=...&view=...&zoom=...
// Every control changes only the address, so any view can be linked to.

const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("choice");
const view = document.getElementById("view");
const about = document.getElementById("about");
const more = document.getElementById("more");
const tip = document.getElementById("tip");

const ROW = 20; // pixels
const SMALLEST = 0.0005; // share of the width below which a frame is not drawn
const NONE = "(nothing)";

const UNIT = data.counts[0]; // of everything that is shown: instructions, or ns
const OTHER = data.layers.findIndex(([name]) => name === "other");

function element(tag, attributes = {}, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes))
		made.setAttribute(name, value);
	made.append(...children);
	return made;
}

function count(value) {
	return value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

function signed(value) {
	const text = count(value);
	if (text === "0.00" || text === "-0.00")
		return "0.00";
	return value > 0 ? `+${text}` : text;
}

function share(part, whole) {
	return whole ? `${(100 * part / whole).toFixed(2)} %` : "-";
}

// The state.

function state() {
	const asked = new URLSearchParams(location.hash.slice(1));
	const rung = data.rungs.findIndex((candidate) => candidate.key === asked.get("rung"));
	const kernel = data.kernels.indexOf(asked.get("kernel"));
	const at = {
		rung: rung < 0 ? data.start : rung,
		kernel: kernel < 0 ? data.kernels.length - 1 : kernel,
		view: ["functions", "layers", "flame"].includes(asked.get("view")) ? asked.get("view") : "functions",
		find: asked.get("find") ?? "",
		zoom: Number(asked.get("zoom") ?? 0),
	};
	at.against = asked.has("against") ? data.kernels.indexOf(asked.get("against")) : data.base;
	if (at.against === at.kernel)
		at.against = -1;
	return at;
}

let led = true; // whether a link, not a control, changed the address

// Go to the present state with these changes; *quietly*, without a step in the history.
function go(changes, quietly = false) {
	const to = { ...state(), ...changes };
	const address = new URLSearchParams({
		rung: data.rungs[to.rung].key,
		kernel: data.kernels[to.kernel],
		against: to.against < 0 ? "" : data.kernels[to.against],
		view: to.view,
	});
	if (to.find)
		address.set("find", to.find);
	if (to.zoom)
		address.set("zoom", to.zoom);
	const text = String(address).replaceAll("%2F", "/").replaceAll("%3A", ":");
	if (location.hash === `#${text}`)
		return;
	led = false;
	if (quietly)
		location.replace(`#${text}`);
	else
		location.hash = text;
}

// Tables.

let sorting = { titles: "", column: -1, down: true };

// A table of *rows*, arrays of cells; a cell is a number or a text. *show* has a function for each
// column that makes a number a text, or null for a column of texts. The last row of *sums* stays.
function table(titles, show, rows, sums, find, paint) {
	if (sorting.titles !== titles.join())
		sorting = { titles: titles.join(), column: -1, down: true };
	const wanted = find.toLowerCase();
	let shown = rows.filter((row) =>
		row.some((cell) => typeof cell === "string" && cell.toLowerCase().includes(wanted)));
	if (sorting.column >= 0) {
		const sign = sorting.down ? -1 : 1;
		const at = sorting.column;
		shown.sort((a, b) => sign * (show[at] ? a[at] - b[at] : a[at].localeCompare(b[at])));
	}
	const head = element("tr");
	titles.forEach((title, at) => {
		const button = element("button", { type: "button" }, title);
		const cell = element("th", { scope: "col" }, button);
		if (show[at])
			cell.className = "number";
		if (at === sorting.column)
			cell.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
		button.addEventListener("click", () => {
			const again = sorting.column === at;
			sorting = { titles: sorting.titles, column: at, down: again ? !sorting.down : show[at] !== null };
			draw();
			view.querySelectorAll("th button")[at].focus();
		});
		head.append(cell);
	});
	const line = (row, plain) => {
		const made = element("tr");
		row.forEach((cell, at) => {
			const box = element("td");
			if (typeof cell === "number") {
				box.className = "number";
				box.textContent = show[at](cell);
			} else {
				box.textContent = cell;
			}
			if (!plain)
				paint(box, cell, at, row);
			made.append(box);
		});
		return made;
	};
	const body = element("tbody", {}, ...shown.map((row) => line(row, false)));
	const foot = element("tfoot", {}, ...sums.map((row) => line(row, true)));
	return element("table", {}, element("thead", {}, head), body, foot);
}

function swatch(box, layer) {
	const known = data.layers.find(([name]) => name === layer);
	const mark = element("span", { class: "swatch" });
	mark.style.background = (known ?? data.layers[OTHER])[1];
	box.prepend(mark);
}

function colourSign(box, value) {
	if (signed(value) !== "0.00")
		box.classList.add(value > 0 ? "grew" : "shrank");
}

function functionTable(profile, find) {
	const total = profile.total;
	const rows = profile.functions.map(([name, instructions, ...counts]) =>
		[data.names[name], data.layers[data.layerOf[name]][0], instructions, 100 * instructions / total, ...counts]);
	const sums = rows.reduce((sum, row) => sum.map((value, at) => value + row[at + 2]), Array(data.counts.length + 1).fill(0));
	const percent = (value) => `${value.toFixed(2)} %`;
	const [first, ...counts] = data.counts;
	return table(
		["function", "layer", first, "share", ...counts],
		[null, null, count, percent, ...counts.map(() => count)],
		rows, [["all", "", ...sums]], find,
		(box, cell, at) => at === 1 && swatch(box, cell));
}

function byLayer(profile) {
	const sums = new Map();
	for (const [name, instructions] of profile.functions) {
		const layer = data.layers[data.layerOf[name]][0];
		sums.set(layer, (sums.get(layer) ?? 0) + instructions);
	}
	return new Map(data.layers.filter(([name]) => sums.has(name)).map(([name]) => [name, sums.get(name)]));
}

function layerTable(profile, find) {
	const rows = [...byLayer(profile)].map(([name, sum]) => [name, sum, 100 * sum / profile.total]);
	return table(
		["layer", UNIT, "share"],
		[null, count, (value) => `${value.toFixed(2)} %`],
		rows, [["all", profile.total, 100]], find,
		(box, cell, at) => at === 0 && swatch(box, cell));
}

// How two kernels differ on a rung: iopath joined their functions. Each is listed with its numbers in
// both, -1 where it is missing, and only if it differs.
function joined(rung, before, after) {
	const turned = before > after;
	const given = rung.joined[turned ? `${after},${before}` : `${before},${after}`];
	const sides = (first, second) => turned ? [second, first] : [first, second];
	return {
		functions: given.functions.map(([one, two, layer, first, second, guessed]) =>
			({ names: sides(one, two), counts: sides(first, second), layer, guessed })),
		layers: given.layers.map(([layer, first, second]) => ({ counts: sides(first, second), layer })),
		unattributed: turned ? -given.unattributed : given.unattributed,
	};
}

// The number that a function is compared by in two kernels: that of its name without suffixes that
// compilers add, and of its newer name if it was renamed.
function comparedBy(rung, before, after) {
	const renamed = new Map();
	for (const { names: [old, now] } of before < 0 ? [] : joined(rung, before, after).functions) {
		if (old >= 0 && now >= 0)
			renamed.set(data.canonical[old], data.canonical[now]);
	}
	return (name) => renamed.get(data.canonical[name]) ?? data.canonical[name];
}

function noteOf([old, now], guessed) {
	if (old < 0)
		return "new";
	if (now < 0)
		return "gone";
	const name = data.names[old].split(" ")[0];
	if (guessed)
		return `${name} before?`;
	return data.canonical[old] === data.canonical[now] ? "" : `was ${name}`;
}

function difference(rung, before, after) {
	const found = joined(rung, before, after);
	const row = (heads, [b, a]) => [...heads, b, a, a - b];
	return {
		functions: found.functions.map(({ names, counts, layer, guessed }) =>
			[...row([data.names[names[1] < 0 ? names[0] : names[1]], data.layers[layer][0]], counts), noteOf(names, guessed)]),
		layers: found.layers.map(({ counts, layer }) => row([data.layers[layer][0]], counts)),
		unattributed: found.unattributed,
	};
}

// Only functions that differ have rows. The sums are those of the whole profiles.
function differenceTable(rows, titles, before, after, unattributed, find) {
	const from = titles.length;
	const texts = titles.slice(1).map(() => "");
	const foot = [["all", ...texts, before.total, after.total, after.total - before.total]];
	if (Math.abs(unattributed) >= 0.005)
		foot.push(["not attributed", ...texts, "", "", unattributed]);
	const note = rows.length && rows[0].length > from + 3;
	return table(
		[...titles, "before", "after", "difference", ...(note ? ["note"] : [])],
		[...titles.map(() => null), count, count, signed, ...(note ? [null] : [])],
		rows, foot, find,
		(box, cell, at) => {
			if (at === from - 1)
				swatch(box, cell);
			if (at === from + 2)
				colourSign(box, cell);
		});
}

// Flame graphs. A node has its function, its own instructions before and after, and its children. If
// there is only one kernel, its instructions are those after.

function merge(root, profile, at, keyOf) {
	const path = [root];
	const flat = profile.stacks;
	for (let i = 0; i < flat.length; i += 3) {
		const [depth, name, own] = flat.slice(i, i + 3);
		const parent = path[depth];
		const key = keyOf(name);
		let node = parent.children.get(key);
		if (!node) {
			node = { name, own: [0, 0], children: new Map() };
			parent.children.set(key, node);
		}
		if (at === 1)
			node.name = name;
		node.own[at] += own;
		path[depth + 1] = node;
	}
}

// Computes sums and widths from the leaves up, numbers and depths from the root down. A node that
// shrank or is gone keeps its old width, so that it can be seen.
function finish(root) {
	const nodes = [];
	const visit = (node, parent, depth) => {
		Object.assign(node, { parent, depth, number: nodes.length });
		nodes.push(node);
		node.sum = [...node.own];
		node.width = Math.max(...node.own);
		node.below = [...node.children.values()];
		node.below.sort((a, b) => label(a).localeCompare(label(b)));
		for (const child of node.below) {
			visit(child, node, depth + 1);
			node.sum[0] += child.sum[0];
			node.sum[1] += child.sum[1];
			node.width += child.width;
		}
	};
	visit(root, null, 0);
	return nodes;
}

function label(node) {
	return node.name < 0 ? "all" : data.names[node.name];
}

function describe(node, root, differs) {
	if (!differs) {
		return [
			label(node),
			node.name < 0 ? "" : `layer: ${data.layers[data.layerOf[node.name]][0]}`,
			`inclusive: ${count(node.sum[1])} ${UNIT} per I/O, ${share(node.sum[1], root.sum[1])}`,
			`exclusive: ${count(node.own[1])}, ${share(node.own[1], root.sum[1])}`,
		].filter(Boolean).join("\n");
	}
	const line = (word, [before, after]) =>
		`${word}: ${count(before)} to ${count(after)}, ${signed(after - before)} (${before ? `${(100 * (after / before - 1)).toFixed(2)} %` : "new"})`;
	return [
		label(node),
		line("inclusive", node.sum),
		line("exclusive", node.own),
	].join("\n");
}

// Red where a function's own part grew, blue where it shrank, the more the stronger.
function differenceLook(node, most) {
	const change = node.own[1] - node.own[0];
	if (Math.abs(change) < 0.005)
		return ["#d9dce0", "#000000"];
	const strength = Math.round(12 + 88 * Math.sqrt(Math.abs(change) / most));
	const colour = change > 0 ? "#c62828" : "#1565c0";
	return [`color-mix(in srgb, ${colour} ${strength}%, #f1f1f1)`, strength > 55 ? "#ffffff" : "#000000"];
}

function flame(before, after, at) {
	const differs = before !== null;
	const keyOf = comparedBy(data.rungs[at.rung], at.against, at.kernel);
	const root = { name: -1, own: [0, 0], children: new Map() };
	if (differs)
		merge(root, before, 0, keyOf);
	merge(root, after, 1, keyOf);
	const nodes = finish(root);
	const zoomed = nodes[at.zoom] ?? root;
	const most = Math.max(...nodes.map((node) => Math.abs(node.own[1] - node.own[0])));
	const chart = element("div", { id: "flame", role: "tree", "aria-label": "call tree" });
	const boxes = new Map();
	let depth = 0;

	const place = (node, left, width, above) => {
		const [colour, ink] = differs ? differenceLook(node, most)
			: node.name < 0 ? ["#d9dce0", "#000000"] : data.layers[data.layerOf[node.name]].slice(1);
		const change = node.own[1] - node.own[0];
		const text = differs && signed(change) !== "0.00" ? `${label(node)} ${signed(change)}` : label(node);
		const frame = element("div", {
			class: above ? "frame above" : "frame",
			role: "treeitem",
			tabindex: node === zoomed ? 0 : -1,
			"aria-level": node.depth + 1,
			"aria-label": describe(node, root, differs).replaceAll("\n", "; "),
		}, width > 0.012 ? text : "");
		Object.assign(frame.style, {
			left: `${100 * left}%`,
			width: `${100 * width}%`,
			top: `${ROW * node.depth}px`,
			background: colour,
			color: ink,
		});
		if (at.find && node.name >= 0 && matches(node, at.find))
			frame.classList.add("found");
		boxes.set(node, frame);
		frame.addEventListener("click", () => go({ zoom: node === zoomed ? 0 : node.number }));
		frame.addEventListener("keydown", (event) => key(event, node));
		frame.addEventListener("mousemove", (event) =>
			showTip(describe(node, root, differs), event.clientX, event.clientY));
		frame.addEventListener("mouseleave", hideTip);
		frame.addEventListener("focus", () => {
			const box = frame.getBoundingClientRect();
			if (frame.matches(":focus-visible"))
				showTip(describe(node, root, differs), Math.max(box.left, 0), box.bottom);
		});
		frame.addEventListener("blur", hideTip);
		depth = Math.max(depth, node.depth);
		chart.append(frame);
	};
	const placeBelow = (node, left, scale) => {
		place(node, left, node.width * scale, false);
		// A function's own part is to the right of what it calls.
		for (const child of node.below) {
			if (child.width * scale >= SMALLEST)
				placeBelow(child, left, scale);
			left += child.width * scale;
		}
	};
	const key = (event, node) => {
		const beside = node.parent ? node.parent.below.filter((other) => boxes.has(other)) : [node];
		const index = beside.indexOf(node);
		const to = {
			ArrowDown: () => node.below.find((child) => boxes.has(child)),
			ArrowUp: () => node.parent,
			ArrowRight: () => beside[index + 1],
			ArrowLeft: () => beside[index - 1],
		}[event.key];
		if (to) {
			const next = to();
			if (next) {
				boxes.get(node).tabIndex = -1;
				boxes.get(next).tabIndex = 0;
				boxes.get(next).focus();
			}
		} else if (event.key === "Enter" || event.key === " ") {
			refocus = true;
			go({ zoom: node === zoomed ? 0 : node.number });
		} else if (event.key === "Escape") {
			refocus = true;
			go({ zoom: 0 });
		} else {
			return;
		}
		event.preventDefault();
	};
	for (let node = zoomed.parent; node; node = node.parent)
		place(node, 0, 1, true);
	placeBelow(zoomed, 0, zoomed.width ? 1 / zoomed.width : 0);
	chart.style.height = `${ROW * (depth + 1)}px`;
	chart.classList.toggle("finding", Boolean(at.find));
	return { chart, zoomed: boxes.get(zoomed), root, found: at.find ? foundIn(root, at.find) : null };
}

let refocus = false; // whether the zoomed frame is to have the focus once it is drawn

function matches(node, find) {
	const wanted = find.toLowerCase();
	return data.names[node.name].toLowerCase().includes(wanted)
		|| data.layers[data.layerOf[node.name]][0].toLowerCase().includes(wanted);
}

// The inclusive sums of the nodes that match; a node within another one is not counted again.
function foundIn(node, find) {
	if (node.name >= 0 && matches(node, find))
		return node.sum;
	return node.below.map((child) => foundIn(child, find))
		.reduce((sum, part) => [sum[0] + part[0], sum[1] + part[1]], [0, 0]);
}

function legend(differs, profile) {
	const list = element("ul", { id: "legend" });
	const parts = differs
		? [["#c62828", "grew by itself"], ["#1565c0", "shrank by itself or went"], ["#d9dce0", "the same"]]
		: [...byLayer(profile).keys()].map((name) => [data.layers.find(([other]) => other === name)[1], name]);
	for (const [colour, text] of parts) {
		const mark = element("span", { class: "swatch" });
		mark.style.background = colour;
		list.append(element("li", {}, mark, text));
	}
	return list;
}

function showTip(text, x, y) {
	tip.textContent = text;
	tip.hidden = false;
	const box = tip.getBoundingClientRect();
	tip.style.left = `${Math.max(0, Math.min(x + 12, innerWidth - box.width - 8))}px`;
	tip.style.top = `${y + 16 + box.height > innerHeight ? y - box.height - 24 : y + 16}px`;
}

function hideTip() {
	tip.hidden = true;
}

// Draw everything.

function draw() {
	const at = state();
	const rung = data.rungs[at.rung];
	const after = rung.profiles[at.kernel];
	const before = at.against < 0 ? null : rung.profiles[at.against];
	const name = data.kernels[at.kernel];
	form.rung.value = at.rung;
	form.kernel.value = at.kernel;
	form.against.value = at.against;
	form.view.value = at.view;
	if (form.find !== document.activeElement)
		form.find.value = at.find;
	hideTip();
	if (!after || (at.against >= 0 && !before)) {
		about.textContent = `There is no profile of ${rung.title} on ${after ? data.kernels[at.against] : name}.`;
		more.textContent = "";
		view.replaceChildren();
		return;
	}
	const differs = before !== null;
	let text = differs
		? `${rung.title}: ${data.kernels[at.against]} ${count(before.total)} to ${name} ${count(after.total)}, ${signed(after.total - before.total)} ${UNIT} per I/O`
		: `${rung.title} on ${name}: ${count(after.total)} ${UNIT} per I/O, ${count(after.kernel)} in the kernel`;
	if (at.view === "flame") {
		const made = flame(before, after, at);
		if (made.found) {
			text += differs
				? `. Found: ${count(made.found[0])} to ${count(made.found[1])}, ${signed(made.found[1] - made.found[0])}`
				: `. Found: ${count(made.found[1])}, ${share(made.found[1], made.root.sum[1])}`;
		}
		view.replaceChildren(legend(differs, after), made.chart);
		if (refocus)
			made.zoomed.focus();
		refocus = false;
	} else if (differs) {
		const found = difference(rung, at.against, at.kernel);
		const [rows, titles] = at.view === "layers"
			? [found.layers, ["layer"]] : [found.functions, ["function", "layer"]];
		view.replaceChildren(differenceTable(rows, titles, before, after, found.unattributed, at.find));
	} else {
		view.replaceChildren(at.view === "layers"
			? layerTable(after, at.find) : functionTable(after, at.find));
	}
	about.textContent = `${text}.`;
	more.textContent = beyond(before, after, at.view === "flame");
}

// The figures of a profile besides instructions. A sampled profile has none.
function beyond(before, after, stacks) {
	if (!after.lines)
		return "";
	const texts = [];
	const say = (title, value) => {
		const [b, a] = [before ? value(before) : 0, value(after)];
		if (count(b) !== count(a) && before)
			texts.push(`${title} ${count(b)} to ${count(a)}`);
		else if (a)
			texts.push(`${title} ${count(a)}`);
	};
	const lines = { code: "cache lines of code", data: "cache lines of data" };
	for (const [kind, title] of Object.entries(lines)) {
		say(`${title} touched by the kernel`, (profile) => profile.lines[`${kind}_kernel`]);
		say("by the program", (profile) => profile.lines[`${kind}_user`]);
	}
	say("exceptions", (profile) => profile.faults);
	say("switches of task", (profile) => profile.switches);
	let text = `Per I/O: ${texts.join(", ")}.`;
	const unmatched = after.unmatched + (before ? before.unmatched : 0);
	if (stacks && unmatched)
		text += ` ${unmatched} returns in the round match no call: stacks may be wrong.`;
	return text;
}

data.rungs.forEach((rung, index) => form.rung.add(new Option(rung.title, index)));
data.kernels.forEach((name, index) => {
	form.kernel.add(new Option(name, index));
	form.against.add(new Option(name, index));
});
form.against.add(new Option(NONE, -1), 0);

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("change", (event) => {
	const { name, value } = event.target;
	if (name === "view")
		go({ view: value });
	else if (name !== "find")
		go({ [name]: Number(value), zoom: 0 });
});
form.find.addEventListener("input", () => go({ find: form.find.value }, true));

addEventListener("hashchange", () => {
	const named = location.hash.startsWith("#rung=");
	if (named || !location.hash)
		draw();
	if (named && led)
		document.getElementById("attribution").scrollIntoView();
	led = true;
});
draw();
if (location.hash.startsWith("#rung="))
	document.getElementById("attribution").scrollIntoView();
