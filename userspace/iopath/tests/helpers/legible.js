// What a person cannot read of what a page shows, as sentences. The value is a function of the
// smallest size of text, in pixels.
((least) => {
	const HIDDEN = "script, style, noscript, title, desc, option, textarea, template";
	const SCROLLS = "pre"; // may be wider than the window
	const TOUCH = 0.3; // of a text's height that is free of ink at either end, or nearly
	const found = [];

	const short = (text) => {
		const plain = text.trim().replace(/\s+/g, " ");
		return `"${plain.length > 60 ? `${plain.slice(0, 57)}...` : plain}"`;
	};
	const styles = new Map();
	const style = (part) => {
		if (!styles.has(part))
			styles.set(part, getComputedStyle(part));
		return styles.get(part);
	};
	const boxes = new Map();
	const box = (part) => {
		if (!boxes.has(part))
			boxes.set(part, part.getBoundingClientRect());
		return boxes.get(part);
	};
	const up = function* (part) {
		for (let at = part; at && at !== document.documentElement; at = at.parentElement)
			yield at;
	};
	// Text for screen readers alone.
	const unseen = (part) => [...up(part)].some((one) => style(one).clipPath === "inset(50%)");

	// The corners of a text of an SVG, which may be turned.
	const turned = (text) => {
		const { x, y, width, height } = text.getBBox(), matrix = text.getScreenCTM();
		const own = [[x, y], [x + width, y], [x + width, y + height], [x, y + height]];
		return own.map(([u, v]) => new DOMPoint(u, v).matrixTransform(matrix)).map((point) => [point.x, point.y]);
	};
	const corners = ({ left, right, top, bottom }) => [[left, top], [right, top], [right, bottom], [left, bottom]];

	// The lines of each text, without what scrolls out of view.
	const lines = [];
	const walk = document.createTreeWalker(document.body ?? document.documentElement, NodeFilter.SHOW_TEXT);
	for (let node = walk.nextNode(); node; node = walk.nextNode()) {
		const parent = node.parentElement;
		if (!node.data.trim() || parent.closest(HIDDEN) || !parent.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || unseen(parent))
			continue;
		const range = document.createRange();
		range.setStart(node, node.data.search(/\S/));
		range.setEnd(node, node.data.trimEnd().length);
		const text = node.data;
		const isShape = parent instanceof SVGElement;
		const size = parseFloat(style(parent).fontSize) * (isShape ? Math.hypot(parent.getScreenCTM().a, parent.getScreenCTM().b) : 1);
		if (size < least - 0.01)
			found.push(`small: ${short(text)} has ${size.toFixed(1)} pixels`);
		for (const { left, right, top, bottom } of range.getClientRects()) {
			if (right - left < 0.5 || bottom - top < 0.5)
				continue;
			const line = { parent, text, left, right, top, bottom };
			if (isShape)
				line.corners = turned(parent.closest("text"));
			if (place(line))
				lines.push(line);
		}
	}
	for (const part of document.querySelectorAll("input:not([type=radio], [type=checkbox]), select")) {
		if (part.checkVisibility()) {
			const { left, right, top, bottom } = box(part);
			const line = { parent: part, text: part.value || part.placeholder || part.name, left, right, top, bottom };
			if (place(line))
				lines.push(line);
		}
	}

	// Whether any of a line is in view. It is to lie within the boxes that it is in.
	function place(line) {
		const wide = document.documentElement.clientWidth;
		let skips = false, scrolls = false;
		for (const part of up(line.parent)) {
			const { display, position, overflowX, overflowY, textOverflow } = style(part);
			const isShape = part instanceof SVGElement && part.localName !== "svg";
			if (isShape || display === "inline" || display === "contents" || part === document.body || (skips && position === "static"))
				continue;
			skips = position === "absolute";
			scrolls ||= part.matches(SCROLLS) || (part.localName === "table" && overflowX === "auto");
			const own = box(part);
			const beside = line.left < own.left - 1.5 || line.right > own.right + 1.5;
			const below = line.top < own.top - 4 || line.bottom > own.bottom + 4;
			const isShortened = textOverflow === "ellipsis" && part.closest("[title], [aria-label]");
			const [clipsX, clipsY] = [overflowX, overflowY].map((one) => one !== "visible");
			if ((beside && !scrolls && !isShortened) || (below && !/auto|scroll/.test(overflowY))) {
				const isCut = beside ? clipsX : clipsY;
				found.push(`${isCut ? "cut off" : "outside"}: ${short(line.text)} of ${name(part)}`);
				return !isCut;
			}
			if (clipsX) {
				line.left = Math.max(line.left, own.left);
				line.right = Math.min(line.right, own.right);
			}
			if (clipsY) {
				line.top = Math.max(line.top, own.top);
				line.bottom = Math.min(line.bottom, own.bottom);
			}
			if (line.right - line.left < 1 || line.bottom - line.top < 1)
				return false;
			if (position === "fixed")
				break;
		}
		if (!scrolls && (line.left < -1 || line.right > wide + 1)) {
			found.push(`outside: ${short(line.text)} of the window`);
			return false;
		}
		return true;
	}

	function name(part) {
		return [part.localName, part.id && `#${part.id}`, ...[...part.classList].map((one) => `.${one}`)].filter(Boolean).join("");
	}

	// Whether two turned boxes have a part in common, by the axes of both.
	function meet(one, two) {
		for (const [a, b, c] of [one, two].flatMap((part) => [[part[0], part[1], part], [part[1], part[2], part]])) {
			const axis = [b[0] - a[0], b[1] - a[1]];
			const long = Math.hypot(...axis) || 1;
			const ends = [one, two].map((part) => {
				const at = part.map(([x, y]) => (x * axis[0] + y * axis[1]) / long);
				return [Math.min(...at), Math.max(...at)];
			});
			const common = Math.min(ends[0][1], ends[1][1]) - Math.max(ends[0][0], ends[1][0]);
			if (common < 1)
				return false;
		}
		return true;
	}

	// A line of text is free above and below its letters.
	for (const line of lines) {
		const free = TOUCH * (line.bottom - line.top);
		line.inner = { left: line.left + 0.5, right: line.right - 0.5, top: line.top + free * 0.7, bottom: line.bottom - free * 0.7 };
		line.corners ??= corners(line.inner);
	}
	lines.sort((a, b) => a.inner.top - b.inner.top);
	lines.forEach((one, at) => {
		for (let next = at + 1; next < lines.length && lines[next].inner.top < one.inner.bottom; next++) {
			const two = lines[next];
			if (two.parent === one.parent && two.text === one.text)
				continue;
			if (one.inner.left < two.inner.right && two.inner.left < one.inner.right && one.parent !== two.parent
				&& !(one.parent.matches("input, select") && one.parent.contains(two.parent)) && meet(one.corners, two.corners))
				found.push(`overlap: ${short(one.text)} and ${short(two.text)}`);
		}
	});

	// Text of an SVG against what is below it; axe looks at the other texts.
	const light = (text) => {
		const [r, g, b] = text.match(/[\d.]+/g).map((word) => {
			const part = word / 255;
			return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
		});
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const solid = (colour) => /^rgb\(/.test(colour);
	for (const text of document.querySelectorAll("svg text")) {
		if (!text.textContent.trim() || !text.checkVisibility())
			continue;
		const { left, right, top, bottom } = box(text);
		const [x, y] = [(left + right) / 2, (top + bottom) / 2];
		let ground = "";
		if (y >= 0 && y < innerHeight && x >= 0 && x < innerWidth) {
			const below = document.elementsFromPoint(x, y).find((part) => !(part instanceof SVGTextElement || part instanceof SVGTSpanElement)
				&& (part instanceof SVGGeometryElement ? solid(style(part).fill) : solid(style(part).backgroundColor)));
			ground = below && (below instanceof SVGGeometryElement ? style(below).fill : style(below).backgroundColor);
		}
		ground ||= [...up(text)].map((part) => style(part).backgroundColor).find(solid) ?? "rgb(255, 255, 255)";
		const [one, two] = [light(style(text).fill), light(ground)].sort((a, b) => b - a);
		const ratio = (one + 0.05) / (two + 0.05);
		if (ratio < 4.5)
			found.push(`contrast: ${short(text.textContent)} has ${ratio.toFixed(1)}: ${style(text).fill} on ${ground}`);
	}
	return [...new Set(found)];
})
