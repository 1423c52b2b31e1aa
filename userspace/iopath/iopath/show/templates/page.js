"use strict";

// What is shown depends only on the address: #rung=...&kernel=...&against=...&view=...&find=...&zoom=...
// and, for the summary, &rungs=...&same=...&order=... Every control changes only the address, so that
// any view can be linked to.

const data = JSON.parse(document.getElementById("data").textContent);

const ROW = 20; // pixels
const SMALLEST = 0.0005; // share of the width below which a frame is not drawn
const FEW = 12; // functions that are listed at first
const NONE = "(nothing)";
const VIEWS = ["functions", "flame", "before", "after"];

const UNIT = data.counts[0]; // of everything that is shown: instructions, or ns

function element(tag, attributes = {}, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes))
		made.setAttribute(name, value);
	made.append(...children);
	return made;
}

// A part of a program may take millions each time, of which decimals do not matter.
const LARGE = data.per === "per I/O" ? Infinity : 10000;

function count(value) {
	const digits = Math.abs(value) < LARGE ? 2 : 0;
	return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// The name of a count, as a text.
function spaced(name) {
	return name.replaceAll("_", " ");
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

function asked() {
	return new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
}

function state() {
	const words = asked();
	const kernel = data.kernels.indexOf(words.get("kernel"));
	const at = {
		kernel: kernel < 0 ? data.kernel : kernel,
		view: VIEWS.includes(words.get("view")) ? words.get("view") : "functions",
		find: words.get("find") ?? "",
		zoom: Number(words.get("zoom") ?? 0),
		all: words.has("all"),
		rungs: words.get("rungs") ?? "",
		same: words.has("same"),
		order: Number(words.get("order") ?? 0), // the number of a column, negative for the largest first
	};
	const rung = data.rungs.findIndex((candidate) => candidate.key === words.get("rung"));
	at.rung = rung < 0 ? data.starts[at.kernel] : rung;
	at.against = words.has("against") ? data.kernels.indexOf(words.get("against")) : at.kernel - 1;
	if (at.against === at.kernel)
		at.against = -1;
	return at;
}

// Go to the present state with these words of the address changed; an empty one is removed.
// *quietly*: without a step in the browser's history.
function go(changes, quietly = false) {
	const words = asked();
	for (const [name, value] of Object.entries(changes)) {
		if (value === "" && name !== "against")
			words.delete(name);
		else
			words.set(name, value);
	}
	const text = String(words).replaceAll("%2F", "/").replaceAll("%3A", ":");
	if (location.hash.slice(1) === text)
		return;
	if (quietly) {
		history.replaceState(null, "", `#${text}`);
		draw();
	} else {
		location.hash = text;
	}
}

// The heat map: rungs by kernels.

const summary = document.getElementById("summary");
const narrow = document.getElementById("narrow");
const heat = summary?.querySelector("table");
const given = heat && [...heat.tBodies[0].rows]; // in the order of the page

function drawSummary(at) {
	const wanted = data.kernels[at.kernel];
	const kernels = [...document.querySelectorAll("[data-kernel]")].map((part) => part.dataset.kernel);
	const shown = kernels.includes(wanted) ? wanted : kernels[0];
	for (const part of document.querySelectorAll("[data-kernel]"))
		part.hidden = part.dataset.kernel !== shown;
	if (!summary)
		return;
	if (narrow.rungs !== document.activeElement)
		narrow.rungs.value = at.rungs;
	narrow.same.checked = at.same;
	const heads = [...heat.tHead.rows[0].cells];
	const rows = [...given];
	const column = Math.abs(at.order) - 1;
	if (column >= 0 && column < heads.length) {
		const worth = (row) => row.cells[column].dataset.sort;
		rows.sort((a, b) => Math.sign(at.order) * (worth(a) === undefined
			? a.cells[column].textContent.localeCompare(b.cells[column].textContent, "en", { numeric: true })
			: worth(a) - worth(b)));
	}
	if (rows.some((row, number) => heat.tBodies[0].rows[number] !== row))
		heat.tBodies[0].append(...rows);
	heads.forEach((cell, number) => {
		if (number === column)
			cell.setAttribute("aria-sort", at.order > 0 ? "ascending" : "descending");
		else
			cell.removeAttribute("aria-sort");
	});
	let same = 0, visible = 0;
	const text = at.rungs.toLowerCase();
	for (const row of rows) {
		const isSame = row.classList.contains("same");
		same += isSame;
		const words = [row.cells[0].textContent, ...[...row.cells].map((cell) => cell.dataset.mover ?? "")];
		row.hidden = (isSame && !at.same && !text) || !words.some((word) => word.toLowerCase().includes(text));
		visible += !row.hidden;
	}
	summary.querySelector(".none").hidden = visible > 0;
	// The cell whose functions are shown; or else the first one can be reached by Tab.
	const links = cellLinks().flat().filter(Boolean);
	const current = links.find((link) => {
		const words = new URLSearchParams(link.hash.slice(1));
		return words.get("rung") === data.rungs[at.rung].key && words.get("kernel") === wanted
			&& data.kernels.indexOf(words.get("against")) === at.against;
	});
	for (const link of heat.querySelectorAll("a")) {
		link.tabIndex = link === (current ?? links[0]) ? 0 : -1;
		link.removeAttribute("aria-current");
		link.closest("tr").removeAttribute("aria-current");
	}
	current?.setAttribute("aria-current", "true");
	current?.closest("tr").setAttribute("aria-current", "true");
	narrow.same.parentNode.hidden = !same;
	narrow.same.nextElementSibling.textContent = `show ${same} that ${same === 1 ? "is" : "are"} the same`;
}

// The links of the visible rows, by row and column.
function cellLinks() {
	return [...heat.tBodies[0].rows].filter((row) => !row.hidden)
		.map((row) => [...row.cells].slice(1).map((cell) => cell.querySelector("a")));
}

// One of the cells can be reached by Tab; arrow keys lead to the others.
function moveCell(event) {
	const links = cellLinks();
	const down = links.findIndex((row) => row.includes(event.target));
	const by = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
	if (!by || down < 0)
		return;
	event.preventDefault();
	let right = links[down].indexOf(event.target) + by[1];
	while (by[1] && right in links[down] && !links[down][right]) // figures beside a change have no link
		right += by[1];
	const next = links[down + by[0]]?.[right];
	if (next) {
		event.target.tabIndex = -1;
		next.tabIndex = 0;
		next.focus();
	}
}

if (summary) {
	narrow.hidden = false;
	narrow.addEventListener("submit", (event) => event.preventDefault());
	narrow.rungs.addEventListener("input", () => go({ rungs: narrow.rungs.value }, true));
	narrow.same.addEventListener("change", () => go({ same: narrow.same.checked ? "1" : "" }, true));
	heat.addEventListener("keydown", moveCell);
	for (const cell of heat.querySelectorAll("thead th")) {
		const button = element("button", { type: "button" }, ...cell.childNodes);
		const number = cell.cellIndex + 1;
		const first = cell.classList.contains("number") ? -number : number;
		button.addEventListener("click", () => go({ order: state().order === first ? -first : first }, true));
		cell.replaceChildren(button);
	}
}

// Tables. A column has a title, a class, the value that it sorts by, and what fills its cells.

let sorting = { titles: "", column: -1, down: true };

function table(caption, columns, rows, foot = []) {
	const titles = columns.map(({ title }) => title).join();
	if (sorting.titles !== titles)
		sorting = { titles, column: -1, down: true };
	const shown = [...rows];
	const by = columns[sorting.column];
	if (by) {
		shown.sort((a, b) => (sorting.down ? -1 : 1) * (by.isText
			? by.value(a).localeCompare(by.value(b)) : by.value(a) - by.value(b)));
	}
	const head = element("tr");
	columns.forEach(({ title, look, isText, value }, at) => {
		if (!value) {
			head.append(element("td", { class: look }));
			return;
		}
		const button = element("button", { type: "button" }, title);
		const cell = element("th", { scope: "col", class: look }, button);
		if (at === sorting.column)
			cell.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
		button.addEventListener("click", () => {
			sorting = { titles, column: at, down: sorting.column === at ? !sorting.down : !isText };
			draw();
			[...view.querySelectorAll("th button")].find((other) => other.textContent === title).focus();
		});
		head.append(cell);
	});
	const line = (row, kind) => {
		const made = element("tr");
		for (const { look, fill } of columns) {
			const cell = element("td", { class: look });
			fill(cell, row, kind);
			made.append(cell);
		}
		return made;
	};
	return element("table", { class: "parts" },
		element("caption", {}, caption),
		element("thead", {}, head),
		element("tbody", {}, ...shown.map((row) => line(row, "row"))),
		element("tfoot", {}, ...foot.map((row) => line(row, "foot"))));
}

function swatch(layer) {
	return element("i", { class: `swatch g${data.layers[layer][1]}` });
}

function number(title, value, text = count) {
	return {
		title, value, look: "number",
		fill: (cell, row) => {
			const found = value(row);
			cell.textContent = found === undefined ? "" : text(found);
		},
	};
}

// A name that is broken between its words.
function breakable(name) {
	return name.split(/(?<=_)(?=[^_])/).flatMap((part) => [part, element("wbr")]);
}

// The name of a function or of a layer; below a function's name are its layer and a note.
const NAME = (title) => ({
	title, look: "name", isText: true, value: (row) => row.name,
	fill: (cell, row, kind) => {
		if (kind === "row" && !row.note && row.layer !== undefined && row.isLayer)
			cell.append(swatch(row.layer));
		cell.append(...breakable(row.name));
		if (kind === "row" && !row.isLayer) {
			cell.append(element("span", {}, swatch(row.layer),
				[data.layers[row.layer][0], row.note].filter(Boolean).join("; ")));
		}
	},
});

// Bars to the left and right of the middle, or from the left if nothing is negative.
function bars(value, most, diverging) {
	return {
		title: "", look: "graph",
		fill: (cell, row, kind) => {
			const found = value(row);
			if (kind !== "row" || !most)
				return;
			const width = (diverging ? 50 : 100) * Math.abs(found) / most;
			const part = element("i", { class: diverging ? found > 0 ? "grew" : "shrank" : `g${data.layers[row.layer][1]}` });
			part.style.width = `${width}%`;
			part.style.left = diverging ? `${50 - (found < 0 ? width : 0)}%` : "0";
			const bar = element("span", { class: "bar", "aria-hidden": "true" }, part);
			if (!diverging)
				bar.style.background = "none";
			cell.append(bar);
		},
	};
}

function filtered(rows, find) {
	const wanted = find.toLowerCase();
	return rows.filter((row) => `${row.name} ${data.layers[row.layer][0]}`.toLowerCase().includes(wanted));
}

// The first rows, and a button that shows the others.
function some(rows, at, makeTable) {
	const few = at.all || at.find ? rows : rows.slice(0, FEW);
	const made = [makeTable(few)];
	if (few.length < rows.length || (at.all && rows.length > FEW)) {
		const button = element("button", { type: "button", class: "all" },
			at.all ? "Show fewer" : `Show all ${rows.length} functions`);
		button.addEventListener("click", () => {
			go({ all: at.all ? "" : "1" }, true);
			view.querySelector("button.all").focus();
		});
		made.push(button);
	}
	return made;
}

function layerSums(profile) {
	const sums = new Map();
	for (const [name, instructions] of profile.functions) {
		const layer = data.layerOf[name];
		sums.set(layer, (sums.get(layer) ?? 0) + instructions);
	}
	return sums;
}

// One kernel: where the instructions go.
function profileTables(profile, at) {
	const { figure, total } = profile;
	const own = (row) => row.counts[0];
	const percent = (row) => 100 * own(row) / total;
	const percentText = (value) => `${value.toFixed(2)} %`;
	const layers = [...layerSums(profile)].sort((a, b) => b[1] - a[1])
		.map(([layer, sum]) => ({ name: data.layers[layer][0], layer, counts: [sum], isLayer: true }));
	const functions = profile.functions
		.map(([name, ...counts]) => ({ name: data.names[name], layer: data.layerOf[name], counts }));
	functions.sort((a, b) => own(b) - own(a));
	const sums = data.counts.map((_, place) => functions.reduce((sum, row) => sum + row.counts[place], 0));
	const columns = (title, most) => [
		NAME(title), number(UNIT, own), number("share", percent, percentText), bars(own, most, false),
	];
	const foot = [{ name: "all", counts: [figure, ...sums.slice(1)] }];
	if (Math.abs(figure - total) >= 0.005)
		foot.unshift({ name: "clock against profile", counts: [figure - total] });
	const beside = data.counts.slice(1).map((title, place) => ({ ...number(spaced(title), (row) => row.counts[place + 1]), look: "number extra" }));
	return [
		table("By layer", columns("layer", layers.length ? own(layers[0]) : 0), filtered(layers, at.find), foot),
		...some(filtered(functions, at.find), at, (rows) => table("By function",
			[...columns("function", functions.length ? own(functions[0]) : 0), ...(at.all ? beside : [])], rows, foot)),
	];
}

// How two kernels differ on a rung: iopath joined their functions. Each is listed with its numbers in
// both, -1 where it is missing, and only if it differs.
function joined(rung, before, after) {
	const turned = before > after;
	const given = rung.joined[turned ? `${after},${before}` : `${before},${after}`];
	if (!given)
		return null;
	const sides = (first, second) => turned ? [second, first] : [first, second];
	return {
		functions: given.functions.map(([one, two, layer, first, second, guessed, costly, inlined]) => ({
			names: sides(one, two), counts: sides(first, second), layer, guessed, inlined,
			costly: Object.entries(costly).map(([name, by]) => `${spaced(name)} ${signed(turned ? -by : by)}`),
		})),
		layers: given.layers.map(([layer, first, second]) => ({ counts: sides(first, second), layer })),
		unattributed: turned ? -given.unattributed : given.unattributed,
	};
}

function noteOf([old, now], guessed, inlined) {
	if (inlined)
		return inlined;
	if (old < 0)
		return "new";
	if (now < 0)
		return "gone";
	const name = data.names[old].split(" ")[0];
	if (guessed)
		return `${name} before?`;
	return data.canonical[old] === data.canonical[now] ? "" : `was ${name}`;
}

// Only functions that differ have rows. The sums are those of the whole profiles.
function differenceTables(found, before, after, at) {
	const change = (row) => row.unattributed ?? row.counts[1] - row.counts[0];
	const bySize = (a, b) => Math.abs(change(b)) - Math.abs(change(a));
	const layers = found.layers
		.map(({ counts, layer }) => ({ name: data.layers[layer][0], layer, counts, isLayer: true }))
		.filter((row) => signed(change(row)) !== "0.00").sort(bySize);
	const functions = found.functions.map(({ names, counts, layer, guessed, inlined, costly }) => ({
		name: data.names[names[1] < 0 ? names[0] : names[1]], layer, counts,
		note: [noteOf(names, guessed, inlined), ...costly].filter(Boolean).join(", "),
	})).sort(bySize);
	const most = (rows) => Math.max(0, ...rows.map((row) => Math.abs(change(row))));
	const difference = {
		...number("change", change, signed),
		fill: (cell, row) => {
			const value = change(row);
			cell.textContent = signed(value);
			if (signed(value) !== "0.00")
				cell.classList.add(value > 0 ? "grew" : "shrank");
		},
	};
	const columns = (title, rows) => [
		NAME(title),
		number("before", (row) => row.counts?.[0]),
		number("after", (row) => row.counts?.[1]),
		difference, bars(change, most(rows), true),
	];
	const foot = [{ name: "all", counts: [before.figure, after.figure] }];
	if (Math.abs(found.unattributed) >= 0.005)
		foot.push({ name: "not attributed", unattributed: found.unattributed });
	return [
		table("By layer", columns("layer", layers), filtered(layers, at.find), foot),
		...some(filtered(functions, at.find), at, (rows) =>
			table("By function", columns("function", functions), rows, [])),
	];
}

// Flame graphs. A node has its function, its own instructions before and after, and its children. If
// there is only one kernel, its instructions are those after.

// The tree of one profile. *keyOf* gives the number that functions are compared by.
function tree(profile, keyOf) {
	const root = { name: -1, key: -1, own: 0, children: new Map() };
	const path = [root];
	const flat = profile.stacks;
	for (let i = 0; i < flat.length; i += 3) {
		const [depth, name, own] = flat.slice(i, i + 3);
		const key = keyOf(name);
		const children = path[depth].children;
		if (!children.has(key))
			children.set(key, { name, key, own: 0, children: new Map() });
		const node = children.get(key);
		node.own += own;
		path[depth + 1] = node;
	}
	return root;
}

// A node of one tree with all that it calls. *partners* are the nodes of the other tree that nodes
// below it are paired with; null leaves a node out.
function oneSided(node, side, partners) {
	const own = side ? [0, node.own] : [node.own, 0];
	return {
		name: node.name, key: node.key, own,
		below: [...node.children.values()]
			.filter((child) => partners.get(child) !== null)
			.map((child) => partners.has(child) ? pair(partners.get(child), child) : oneSided(child, side, partners)),
	};
}

// The node of function *key* at or below a node, if neither it nor a part of it has a partner.
function within(node, key, partners) {
	if (partners.has(node))
		return null;
	if (node.key === key)
		return hasPartner(node, partners) ? null : node;
	for (const child of node.children.values()) {
		const found = within(child, key, partners);
		if (found)
			return found;
	}
	return null;
}

function hasPartner(node, partners) {
	return partners.has(node) || [...node.children.values()].some((child) => hasPartner(child, partners));
}

// Two nodes of the same function. What they call is paired by function. If one kernel has callers in
// between that the other lacks, what these call is paired all the same.
function pair(old, now) {
	const below = [];
	const gone = [], added = [...now.children.values()].filter((child) => !old.children.has(child.key));
	for (const child of old.children.values()) {
		const other = now.children.get(child.key);
		if (other)
			below.push(pair(child, other));
		else
			gone.push(child);
	}
	const partners = new Map(); // of nodes now, those of before
	const taken = new Map(); // nodes of before that have a partner
	const match = (node) => {
		for (const caller of added) {
			const found = within(caller, node.key, partners);
			if (found) {
				partners.set(found, node);
				taken.set(node, null);
				return;
			}
		}
		node.children.forEach(match);
	};
	gone.forEach(match);
	for (const child of added)
		below.push(partners.has(child) ? pair(partners.get(child), child) : oneSided(child, 1, partners));
	for (const child of gone) {
		if (!taken.has(child))
			below.push(oneSided(child, 0, taken));
	}
	return { name: now.name, key: now.key, own: [old.own, now.own], below };
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

// The number that a function is compared by in two kernels: that of its name without suffixes that
// compilers add, and of its newer name if it was renamed.
function comparedBy(found) {
	const renamed = new Map();
	for (const { names: [old, now] } of found.functions) {
		if (old >= 0 && now >= 0)
			renamed.set(data.canonical[old], data.canonical[now]);
	}
	return (name) => renamed.get(data.canonical[name]) ?? data.canonical[name];
}

// By how much each function differs in all, by the number that it is compared by.
function changes(found, keyOf) {
	return new Map(found.functions.map(({ names: [old, now], counts }) =>
		[keyOf(now < 0 ? old : now), counts[1] - counts[0]]));
}

function label(node) {
	return node.name < 0 ? "all" : data.names[node.name];
}

function describe(node, root, totals) {
	if (!totals) {
		return [
			label(node),
			node.name < 0 ? "" : `layer: ${data.layers[data.layerOf[node.name]][0]}`,
			`inclusive: ${count(node.sum[1])} ${UNIT} ${data.per}, ${share(node.sum[1], root.sum[1])}`,
			`exclusive: ${count(node.own[1])}, ${share(node.own[1], root.sum[1])}`,
		].filter(Boolean).join("\n");
	}
	// What one kernel does not execute has no figure there.
	const figure = (side, value) => node.sum[side] ? count(value) : "none";
	const line = (word, [before, after]) =>
		`${word}: before: ${figure(0, before)}, after: ${figure(1, after)}, ${signed(after - before)}${before ? ` (${signed(100 * (after / before - 1))} %)` : ""}`;
	return [
		label(node),
		node.name < 0 ? "" : `layer: ${data.layers[data.layerOf[node.name]][0]}`,
		line("inclusive", node.sum),
		line("exclusive", node.own),
		node.name < 0 ? "" : `the function in all: ${signed(totals.get(node.key) ?? 0)}`,
	].filter(Boolean).join("\n");
}

// What a frame adds to the difference. A function that is called from elsewhere, and executes the
// same in all, adds nothing.
function ownChange(node, totals) {
	return Math.abs(totals.get(node.key) ?? 0) < 0.005 ? 0 : node.own[1] - node.own[0];
}

const GREW = "#c62828", SHRANK = "#1565c0", SAME = "#d9dce0";

// Red where a function's own part grew, blue where it shrank, the more the stronger.
function differenceLook(change, most) {
	if (Math.abs(change) < 0.005)
		return [SAME, "#000000"];
	const strength = Math.round(12 + 63 * Math.sqrt(Math.abs(change) / most));
	return [`color-mix(in srgb, ${change > 0 ? GREW : SHRANK} ${strength}%, #f1f1f1)`, "#000000"];
}

function flame(root, totals, at) {
	const nodes = finish(root);
	const zoomed = nodes[at.zoom] ?? root;
	const most = totals ? Math.max(...nodes.map((node) => Math.abs(ownChange(node, totals)))) : 0;
	const chart = element("div", { id: "flame", role: "tree", "aria-label": "call tree" });
	const boxes = new Map();
	let depth = 0;

	const place = (node, left, width, above) => {
		const [colour, ink] = totals ? differenceLook(ownChange(node, totals), most)
			: node.name < 0 ? [SAME, "#000000"] : data.groups[data.layers[data.layerOf[node.name]][1]].slice(1);
		const change = node.own[1] - node.own[0];
		const text = totals && signed(change) !== "0.00" ? `${label(node)} ${signed(change)}` : label(node);
		const frame = element("div", {
			class: above ? "frame above" : "frame",
			role: "treeitem",
			tabindex: node === zoomed ? 0 : -1,
			"aria-level": node.depth + 1,
			"aria-label": describe(node, root, totals).replaceAll("\n", "; "),
		}, width > 0.012 ? text : "");
		Object.assign(frame.style, {
			left: `${100 * left}%`,
			width: `${100 * width}%`,
			top: `${ROW * node.depth}px`,
			background: colour,
			color: ink,
		});
		if (width < 0.03)
			frame.style.padding = "0";
		if (at.find && node.name >= 0 && matches(node, at.find))
			frame.classList.add("found");
		boxes.set(node, frame);
		frame.addEventListener("click", () => go({ zoom: node === zoomed ? "" : node.number || "" }));
		frame.addEventListener("keydown", (event) => key(event, node));
		frame.addEventListener("mousemove", (event) =>
			showTip(describe(node, root, totals), event.clientX, event.clientY));
		frame.addEventListener("mouseleave", hideTip);
		frame.addEventListener("focus", () => {
			const box = frame.getBoundingClientRect();
			if (frame.matches(":focus-visible"))
				showTip(describe(node, root, totals), Math.max(box.left, 0), box.bottom);
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
			go({ zoom: node === zoomed ? "" : node.number || "" });
		} else {
			return;
		}
		event.preventDefault();
	};
	for (let node = zoomed.parent; node; node = node.parent)
		place(node, 0, 1, true);
	placeBelow(zoomed, 0, zoomed.width ? 1 / zoomed.width : 0);
	chart.style.height = `${ROW * (depth + 1)}px`;
	return { chart, zoomed: boxes.get(zoomed), found: at.find ? foundIn(root, at.find) : null };
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
	const used = new Set([...layerSums(profile).keys()].map((layer) => data.layers[layer][1]));
	const parts = differs
		? [[GREW, "grew by itself"], [SHRANK, "shrank by itself or went"], [SAME, "the same"]]
		: data.groups.filter((_, place) => used.has(place)).map(([name, colour]) => [colour, name]);
	return element("ul", { class: "legend" }, ...parts.map(([colour, text]) => {
		const mark = element("i", { class: "swatch" });
		mark.style.background = colour;
		return element("li", {}, mark, text);
	}));
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

// A file in speedscope's format: a profile for each kernel that is shown.
function speedscope(rung, shown) {
	const frames = new Map();
	const frame = (name) => {
		if (!frames.has(name))
			frames.set(name, frames.size);
		return frames.get(name);
	};
	const profiles = shown.map((kernel) => {
		const { stacks, total } = rung.profiles[kernel];
		const path = [];
		const samples = [], weights = [];
		for (let i = 0; i < stacks.length; i += 3) {
			path.length = stacks[i];
			path.push(frame(stacks[i + 1]));
			if (stacks[i + 2]) {
				samples.push([...path]);
				weights.push(stacks[i + 2]);
			}
		}
		return {
			type: "sampled", name: `${rung.title} on ${data.kernels[kernel]}`, unit: "none",
			startValue: 0, endValue: total, samples, weights,
		};
	});
	return {
		$schema: "https://www.speedscope.app/file-format-schema.json",
		exporter: "iopath",
		name: rung.title,
		shared: { frames: [...frames.keys()].map((name) => ({ name: data.names[name] })) },
		profiles,
	};
}

// Cache lines that CPUs share.

const several = document.getElementById("several");
const BYTES = 64;

// Which bytes of a line each CPU touches and writes, as an array by CPU.
function bytesBy(cpus, accesses) {
	const touched = Array.from({ length: cpus }, () => Array(BYTES).fill(false));
	for (const [, cpu, , , , runs] of accesses)
		for (const [first, last] of runs)
			touched[cpu].fill(true, first, last + 1);
	return touched;
}

function lane(parts, attributes) {
	const made = element("div", attributes);
	for (const [look, bytes] of parts) {
		for (let at = 0; at < BYTES; at++) {
			if (!bytes[at] || bytes[at - 1])
				continue;
			const end = bytes.indexOf(false, at);
			const part = element("i", { class: look });
			part.style.left = `${100 * at / BYTES}%`;
			part.style.width = `${100 * ((end < 0 ? BYTES : end) - at) / BYTES}%`;
			made.append(part);
		}
	}
	return made;
}

// Bytes as a text: "0 to 7, 56 to 63".
function runsOf(bytes) {
	const runs = [];
	bytes.forEach((is, at) => is && (bytes[at - 1] ? runs.at(-1)[1] = at : runs.push([at, at])));
	return runs.map(([first, last]) => first === last ? first : `${first} to ${last}`).join(", ") || "none";
}

function lanes(cpus, line) {
	const [reads, writes] = [bytesBy(cpus, line.reads), bytesBy(cpus, line.writes)];
	const both = Array.from({ length: BYTES }, (_, at) => writes.some((wrote, cpu) => wrote[at]
		&& writes.some((other, another) => another !== cpu && (other[at] || reads[another][at]))));
	const made = element("div", { class: "lanes" });
	for (let cpu = 0; cpu < cpus; cpu++) {
		const text = `CPU ${cpu} writes bytes: ${runsOf(writes[cpu])}; reads bytes: ${runsOf(reads[cpu])}`;
		made.append(element("span", {}, `CPU ${cpu}`),
			lane([["wrote", writes[cpu]], ["read", reads[cpu]]], { class: "lane", role: "img", "aria-label": text, title: text }));
	}
	const text = `written by one CPU, touched by another: ${runsOf(both)}`;
	made.append(element("span"), lane([["both", both]], { class: "lane marks", role: "img", "aria-label": text, title: text }));
	made.append(element("span"), element("div", { class: "offsets", "aria-hidden": "true" },
		...Array.from({ length: 8 }, (_, at) => element("span", {}, String(8 * at)))));
	return made;
}

// What each function does to a line; CPUs that do the same are named together.
function accessList(line) {
	const rows = new Map();
	for (const [verb, accesses] of [["writes", line.writes], ["reads", line.reads]]) {
		for (const [name, cpu, at, locked, perIo, runs] of accesses) {
			const bytes = runs.length ? `bytes ${runs.map((run) => run.join(" to ")).join(", ")}, ` : "";
			const text = `${data.names[name]} ${verb} ${bytes}${at}${locked ? ", locked" : ""}, ${count(perIo)} per I/O`;
			rows.set(text, [...(rows.get(text) ?? []), cpu]);
		}
	}
	return element("ul", {}, ...[...rows].map(([text, cpus]) =>
		element("li", {}, `${text} on ${cpus.length > 1 ? "CPUs" : "CPU"} ${cpus.join(", ")}`)));
}

function sharedLine(cpus, line, what) {
	const [reads, writes, locked] = line.perIo.map(count);
	const caption = element("figcaption", {}, element("strong", {}, line.where),
		element("div", {}, ...(what ? [element("b", { class: what }, what), "; "] : []), `${line.kind} sharing; ${writes} writes, ${locked} of them locked, and ${reads} reads per I/O and CPU`
			+ (line.lines > 1 ? `; ${line.lines} lines` : "")));
	const known = [...line.reads, ...line.writes].some(([, , , , , runs]) => runs.length);
	const details = element("details", {}, element("summary", {}, "Functions"), accessList(line));
	return element("figure", { class: "shared" }, caption, ...(known ? [lanes(cpus, line)] : []), details);
}

function drawShared(at) {
	const shown = data.rungs[at.rung].shared ? at.rung : data.rungs.findIndex((rung) => rung.shared);
	const rung = data.rungs[shown];
	const after = rung.shared[at.kernel];
	const before = at.against < 0 ? null : rung.shared[at.against];
	several.rung.value = shown;
	several.kernel.value = at.kernel;
	const box = document.getElementById("shared");
	const said = document.getElementById("shared-about");
	if (!after) {
		said.textContent = `${rung.title} did not run on several CPUs on ${data.kernels[at.kernel]}.`;
		box.replaceChildren();
		return;
	}
	const turned = at.against > at.kernel;
	const pairs = !before ? [] : rung.differing[turned ? `${at.kernel},${at.against}` : `${at.against},${at.kernel}`]
		.map((pair) => turned ? pair.toReversed() : pair);
	const whats = new Map(pairs.filter(([, now]) => now >= 0).map(([old, now]) => [after.lines[now], old < 0 ? "new" : "changed"]));
	const gone = pairs.filter(([, now]) => now < 0).map(([old]) => before.lines[old]);
	for (const line of gone)
		whats.set(line, "gone");
	said.textContent = `${rung.title} on ${data.kernels[at.kernel]}`
		+ (before ? `, against ${data.kernels[at.against]}: ${pairs.length} ${pairs.length === 1 ? "line differs" : "lines differ"}.` : ".");
	box.replaceChildren(...after.arrangements.flatMap(([name, figures, rounds, leftOut]) => {
		const lines = [...after.lines, ...gone].filter((line) => line.arrangement === name);
		lines.sort((a, b) => whats.has(b) - whats.has(a));
		return [
			element("h3", {}, name),
			element("p", {}, `Instructions per I/O: ${figures.map((figure, cpu) => `CPU ${cpu} ${count(figure)}`).join(", ")}; one CPU alone ${count(after.alone)}. `
				+ `${leftOut} of ${rounds + leftOut} rounds are left out. ${lines.length ? "" : "No line is shared."}`),
			...lines.map((line) => sharedLine(figures.length, line, whats.get(line))),
		];
	}));
}

if (data.shared) {
	data.rungs.forEach((rung, index) => rung.shared && several.rung.add(new Option(rung.title, index)));
	data.kernels.forEach((name, index) => several.kernel.add(new Option(name, index)));
	several.addEventListener("submit", (event) => event.preventDefault());
	several.rung.addEventListener("change", () => go({ rung: data.rungs[several.rung.value].key, zoom: "" }));
	several.kernel.addEventListener("change", () => go({ kernel: data.kernels[several.kernel.value], zoom: "" }));
}

// Draw everything.

const attribution = document.getElementById("attribution");
const form = document.getElementById("choice");
const view = document.getElementById("view");
const about = document.getElementById("about");
const more = document.getElementById("more");
const tip = document.getElementById("tip");

function draw() {
	const at = state();
	drawSummary(at);
	if (data.shared)
		drawShared(at);
	if (data.profiled)
		drawAttribution(at);
}

function drawAttribution(at) {
	const rung = data.rungs[at.rung];
	const after = rung.profiles[at.kernel];
	const before = at.against < 0 ? null : rung.profiles[at.against];
	const name = data.kernels[at.kernel];
	const found = before && after ? joined(rung, at.against, at.kernel) : null;
	if (!found && ["before", "after"].includes(at.view))
		at.view = "flame";
	form.rung.value = at.rung;
	form.kernel.value = at.kernel;
	form.against.value = at.against;
	form.view.value = at.view === "functions" ? "functions" : "flame";
	form.side.value = at.view;
	document.getElementById("sides").hidden = !found || at.view === "functions";
	if (form.find !== document.activeElement)
		form.find.value = at.find;
	document.getElementById("overview").classList.toggle("beside",
		Boolean(summary) && (at.view !== "functions" || Boolean(found || !at.all)));
	document.getElementById("attribution-title").textContent =
		found ? `Where the change comes from, ${data.kernels[at.against]} to ${name}` : `Where the ${UNIT} go`;
	hideTip();
	if (!after || (at.against >= 0 && !found)) {
		about.textContent = before && after
			? "Profiles of time are not compared."
			: `There is no profile of ${rung.title} on ${after ? data.kernels[at.against] : name}.`;
		more.textContent = "";
		view.replaceChildren();
		return;
	}
	let text = found
		? `${rung.title}: ${count(before.figure)} to ${count(after.figure)}, ${signed(after.figure - before.figure)} ${UNIT} ${data.per}`
		: `${rung.title} on ${name}: ${count(after.figure)} ${UNIT} ${data.per}, ${count(after.kernel)} in the kernel`;
	if (at.view === "functions") {
		view.replaceChildren(...(found ? differenceTables(found, before, after, at) : profileTables(after, at)));
	} else {
		const differs = found && at.view === "flame";
		const profile = at.view === "before" ? before : after;
		const keyOf = found ? comparedBy(found) : (key) => data.canonical[key];
		const root = differs ? pair(tree(before, keyOf), tree(after, keyOf))
			: oneSided(tree(profile, (key) => key), 1, new Map());
		const made = flame(root, differs ? changes(found, keyOf) : null, at);
		if (made.found) {
			text += differs
				? `. Found: ${count(made.found[0])} to ${count(made.found[1])}, ${signed(made.found[1] - made.found[0])}`
				: `. Found: ${count(made.found[1])}, ${share(made.found[1], root.sum[1])}`;
		}
		view.replaceChildren(legend(differs, profile), made.chart);
		if (refocus)
			made.zoomed.focus();
		refocus = false;
	}
	about.textContent = `${text}.`;
	more.textContent = beyond(before, after, at.view !== "functions");
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
	for (const name of data.counts)
		say(spaced(name), (profile) => profile.costly[name] ?? 0);
	const said = texts.length ? [`${data.per[0].toUpperCase()}${data.per.slice(1)}: ${texts.join(", ")}.`] : [];
	const unmatched = after.unmatched + (before ? before.unmatched : 0);
	if (stacks && unmatched)
		said.push(`${unmatched} returns in the round match no call: stacks may be wrong.`);
	return said.join(" ");
}

if (data.profiled) {
	data.rungs.forEach((rung, index) => form.rung.add(new Option(rung.title, index)));
	data.kernels.forEach((name, index) => {
		form.kernel.add(new Option(name, index));
		form.against.add(new Option(name, index));
	});
	form.against.add(new Option(NONE, -1), 0);

	form.addEventListener("submit", (event) => event.preventDefault());
	form.addEventListener("change", (event) => {
		const { name, value } = event.target;
		if (name === "view" || name === "side")
			go({ view: value, zoom: "" });
		else if (name === "rung")
			go({ rung: data.rungs[value].key, zoom: "" });
		else if (name !== "find")
			go({ [name]: data.kernels[value] ?? "", zoom: "" });
	});
	form.find.addEventListener("input", () => go({ find: form.find.value }, true));
	document.getElementById("reset").addEventListener("click", () => go({ zoom: "", find: "", all: "" }));
	document.getElementById("speedscope").addEventListener("click", () => {
		const at = state();
		const rung = data.rungs[at.rung];
		const shown = [at.against, at.kernel].filter((kernel) => kernel >= 0 && rung.profiles[kernel]);
		const file = new Blob([JSON.stringify(speedscope(rung, shown))], { type: "application/json" });
		const link = element("a", {
			href: URL.createObjectURL(file),
			download: `${rung.key.replaceAll("/", "-")}.speedscope.json`,
		});
		link.click();
		URL.revokeObjectURL(link.href);
	});
	addEventListener("keydown", (event) => {
		if (event.key !== "Escape")
			return;
		const at = state();
		refocus = at.zoom > 0 && view.contains(document.activeElement);
		if (at.zoom)
			go({ zoom: "" });
		else if (at.find)
			go({ find: "" });
	});
}

// Links into the page change only the words that they name.
document.addEventListener("click", (event) => {
	const link = event.target.closest("a[href^='#']");
	if (!link || event.ctrlKey || event.metaKey || event.shiftKey)
		return;
	event.preventDefault();
	const words = Object.fromEntries(new URLSearchParams(link.hash.slice(1)));
	go({ ...words, zoom: "" });
	if (words.rung && attribution.getBoundingClientRect().top > innerHeight / 2)
		attribution.scrollIntoView();
});

addEventListener("hashchange", draw);
draw();
if (asked().has("rung") && attribution)
	attribution.scrollIntoView();
