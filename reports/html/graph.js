// graph.js - the flame graph: a canvas as large as the window, whatever the size of the tree.
// Work is bounded by rows times pixels: the first frame of a row is found by bisection, and frames narrower than a
// pixel are drawn as one column up to the next pixel, found by another bisection.

const ROW = 20,
	INSET = 5,
	FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

// The part of the zoomed frame that is in sight: where it begins, how wide it is.
const WHOLE = [0, 1];

const graph = {
	box: ui.graph,
	canvas: ui.canvas,
	spacer: ui.spacer,
	pen: ui.canvas.getContext('2d', { alpha: false }),
	tree: null,
	lay: null,
	zoom: 0,
	window: WHOLE,
	focus: 0,
	hover: -1,
	flame: false,
	rows: 0,
	scroll: 0,
	width: 0,
	height: 0,
	match: null,
	marks: null,
	hits: [],
	drawn: { frames: 0, runs: 0, texts: 0 }
};

const ink = {};
const advance = new Float32Array(128);
let palettes = [],
	pending = 0;

function isDark() {
	return root.dataset.theme === 'dark';
}

function readInk() {
	const style = getComputedStyle(root);
	for (const name of ['paper', 'ink', 'soft', 'line', 'accent', 'hit', 'band', 'hatch']) {
		ink[name] = style.getPropertyValue('--' + name).trim();
	}
	palettes = [[], [], [], []];
}

// OKLCH (Ottosson 2020) gives hues of equal lightness; as "rgb()" a canvas takes it many times faster.
function colour(light, chroma, degrees) {
	const a = chroma * Math.cos((degrees * Math.PI) / 180),
		b = chroma * Math.sin((degrees * Math.PI) / 180);
	const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3,
		m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3,
		s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
	const linear = [
		4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
		-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
		-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s
	];
	return (
		'rgb(' +
		linear.map((v) =>
			Math.round(
				255 *
					Math.min(
						1,
						v > 0.0031308 ? 1.055 * v ** (1 / 2.4) - 0.055 : v > 0 ? 12.92 * v : 0
					)
			)
		) +
		')'
	);
}

// Hue by module, shade by function: the same frame has the same colour in every report. `plain` leaves the shade out.
function colourOf(f, fade, plain) {
	const cache = palettes[fade * 2 + plain];
	if (f < 0) return ink.band;
	if (!cache[f]) {
		const fn = report.functions,
			file = moduleOf(f),
			h = plain ? 17 : hashOf(fn.name[f]);
		const own = report.programs.has(file),
			unknown = fn.why[f] || !file;
		const hue = own ? 68 : /^(libc|ld-linux)\b/.test(file) ? 250 : 100 + (hashOf(file) % 12) * 20;
		const chroma = unknown ? 0.008 : fade ? 0.016 : isDark() ? 0.062 : 0.075;
		cache[f] = colour(
			(isDark() ? 0.41 : 0.865) + ((h % 7) - 3) * 0.009,
			chroma,
			hue + ((h >>> 8) % 45) - (plain ? 0 : 22)
		);
	}
	return cache[f];
}

function measureFont() {
	graph.pen.font = FONT;
	for (let c = 32; c < 128; c++) advance[c] = graph.pen.measureText(String.fromCharCode(c)).width;
}

function textWidth(text) {
	let width = 0;
	for (let i = 0; i < text.length; i++) {
		const c = text.charCodeAt(i);
		width += c < 128 ? advance[c] : 13;
	}
	return width;
}

// The middle goes first and the tail goes last: the end of a name tells more than its namespaces.
function fit(text, room) {
	if (text.length < 400 && textWidth(text) <= room) return text;
	const left = room - 12;
	let head = 0,
		tail = text.length,
		used = 0;
	const width = (c) => (c < 128 ? advance[c] : 13);
	while (tail > head) {
		const fromTail = text.length - tail < 2 * (head + 1);
		used += width(text.charCodeAt(fromTail ? tail - 1 : head));
		if (used > left) break;
		if (fromTail) tail--;
		else head++;
	}
	return head + text.length - tail < 5 ? '' : text.slice(0, head) + '…' + text.slice(tail);
}

function nameOf(node) {
	return node > 0 || (graph.tree.halves && !node) ? report.functions.name[graph.tree.key[node] >> 1] : 'all';
}

function labelOf(node) {
	if (node === 0) return report.rootLabel();
	const f = graph.tree.key[node] >> 1,
		line = graph.tree.line[node];
	return labelFor(f) + (line && report.linesMatter() ? ':' + line : '');
}

// First index of a row whose right edge lies behind v.
function firstBehind(level, v) {
	const { order, x, total, start } = graph.lay;
	let low = start[level],
		high = start[level + 1];
	while (low < high) {
		const middle = (low + high) >>> 1,
			node = order[middle];
		if (x[node] + total[node] <= v) low = middle + 1;
		else high = middle;
	}
	return low;
}

function firstAt(from, end, v) {
	const { order, x } = graph.lay;
	let low = from,
		high = end;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (x[order[middle]] < v) low = middle + 1;
		else high = middle;
	}
	return low;
}

function countRows() {
	if (graph.lay.split < graph.lay.rows) return graph.lay.rows;
	const { order, x, total, start, rows } = graph.lay,
		v0 = x[graph.zoom],
		v1 = v0 + total[graph.zoom];
	let level = graph.tree.level[graph.zoom] + 1;
	for (; level < rows; level++) {
		const q = firstBehind(level, v0);
		if (q >= start[level + 1] || x[order[q]] >= v1) break;
	}
	return level;
}

function rowTop(level) {
	const { split } = graph.lay,
		up = Math.max(0, graph.rows - split),
		row = level < split ? level + up : up - 1 - (level - split);
	const offset = graph.flame ? Math.max(graph.rows * ROW, graph.height) - (row + 1) * ROW : row * ROW;
	return offset - graph.scroll;
}

// What a row shows from edge to edge: in a sandwich a zoom is of its own half alone.
function view(level) {
	const { lay, tree } = graph,
		other = level !== undefined && level >= lay.split !== tree.level[graph.zoom] >= lay.split,
		of = other ? 0 : graph.zoom,
		[from, part] = other && graph.zoom ? WHOLE : graph.window,
		size = lay.total[of] * part,
		v0 = lay.x[of] + lay.total[of] * from;
	return { v0, v1: v0 + size, k: graph.width / size, zoom: of };
}

function drawFrame(node, y, v) {
	const { lay, tree, pen, match } = graph,
		f = tree.key[node] >> 1;
	const left = Math.max(0, (lay.x[node] - v.v0) * v.k);
	const right = Math.min(graph.width, (lay.x[node] + lay.total[node] - v.v0) * v.k);
	const above = tree.level[node] < tree.level[v.zoom],
		change = tree.pair && shown.paint !== 'inline' && changeOf(node),
		hit = match && f >= 0 && match[f];
	pen.globalAlpha = above ? 0.55 : 1;
	pen.fillStyle = hit ? ink.hit : fillOf(node, change, match ? 1 : 0);
	const wide = Math.max(right - left - (right - left > 3 ? 1 : 0.3), 0.7);
	pen.fillRect(left, y, wide, ROW - 1);
	pen.globalAlpha = 1; // text keeps its contrast
	if (change && change.sure && (change.isNew || change.gone)) hatch(left, y, wide, change.isNew ? 1 : -1);
	graph.drawn.frames++;
	if (right - left > 34) {
		const note = change && change.sure ? ' ' + ratioText(change.now, change.was) : '',
			room = right - left - 2 * INSET,
			noted = note && room > textWidth(note) + 30,
			text = fit(labelOf(node), noted ? room - textWidth(note) : room) + (noted ? note : '');
		if (text) {
			pen.font = tree.key[node] & 1 ? 'italic ' + FONT : FONT;
			pen.fillStyle = hit ? '#000' : ink.ink;
			pen.fillText(text, left + INSET, y + 14);
			graph.drawn.texts++;
		}
	}
}

// Frames too narrow for a pixel of their own, up to the next pixel; a hit anywhere in the run shows. Neighbouring
// pixels of one colour become one rectangle, which `run` holds until it ends.
function drawRun(q, end, y, v, run) {
	const pixel = Math.floor((graph.lay.x[graph.lay.order[q]] - v.v0) * v.k);
	let next = firstAt(q + 1, end, v.v0 + (pixel + 1) / v.k);
	// A wide frame that begins within this pixel is the last one in it, and is no part of the run.
	if (next > q + 1 && graph.lay.total[graph.lay.order[next - 1]] * v.k >= 1) next--;
	const hit = graph.marks && graph.marks[next] > graph.marks[q];
	const fill = hit
		? ink.hit
		: graph.tree.pair || shown.paint === 'inline'
			? ink.band
			: colourOf(graph.tree.key[graph.lay.order[q]] >> 1, graph.match ? 1 : 0, 1);
	if (pixel !== run.to || fill !== run.fill) {
		endRun(run, y);
		run.from = pixel;
		run.fill = fill;
	}
	run.to = pixel + 1;
	return next;
}

function endRun(run, y) {
	if (run.to > run.from) {
		graph.pen.fillStyle = run.fill;
		graph.pen.fillRect(run.from, y, run.to - run.from, ROW - 1);
		graph.drawn.runs++;
	}
	run.from = run.to = -1;
}

// Slanting lines mark what is new (rising) or gone (falling), for those who see no colours.
function hatch(left, y, wide, slope) {
	const { pen } = graph,
		h = ROW - 1;
	if (wide < 4) return;
	pen.save();
	pen.beginPath();
	pen.rect(left, y, wide, h);
	pen.clip();
	pen.beginPath();
	for (let x = left - h; x < left + wide; x += 7) {
		pen.moveTo(x, slope > 0 ? y + h : y);
		pen.lineTo(x + h, slope > 0 ? y : y + h);
	}
	pen.strokeStyle = ink.hatch;
	pen.lineWidth = 1;
	pen.stroke();
	pen.restore();
	graph.drawn.hatched++;
}

function fillOf(node, change, fade) {
	const key = graph.tree.key[node];
	if (change) return changeColour(change, fade);
	if (shown.paint === 'inline') {
		return key < 0
			? ink.band
			: colour(isDark() ? 0.41 : 0.87, key & 1 ? (fade ? 0.03 : 0.075) : 0.008, key & 1 ? 155 : 250);
	}
	return colourOf(key >> 1, fade, 0);
}

function drawRow(level, y, v) {
	const { order, x, total, start } = graph.lay,
		end = start[level + 1],
		run = { from: -1, to: -1, fill: '' };
	for (let q = firstBehind(level, v.v0); q < end;) {
		const node = order[q];
		if (x[node] >= v.v1) break;
		if (total[node] * v.k < 1) {
			q = drawRun(q, end, y, v, run);
		} else {
			endRun(run, y);
			drawFrame(node, y, v);
			q++;
		}
	}
	endRun(run, y);
}

function outline(node, colour, thickness) {
	const { lay, tree, pen } = graph;
	if (node < 0 || lay.rank[node] < 0) return;
	const v = view(tree.level[node]);
	if (lay.x[node] >= v.v1 || lay.x[node] + lay.total[node] <= v.v0) return;
	const left = Math.max(0, (lay.x[node] - v.v0) * v.k),
		y = rowTop(tree.level[node]);
	const right = Math.min(graph.width, (lay.x[node] + lay.total[node] - v.v0) * v.k);
	pen.strokeStyle = colour;
	pen.lineWidth = thickness;
	pen.strokeRect(
		left + thickness / 2,
		y + thickness / 2,
		Math.max(right - left - thickness - 0.5, 1),
		ROW - 1 - thickness
	);
}

function draw() {
	cancelAnimationFrame(pending);
	pending = 0;
	const { pen, canvas } = graph,
		ratio = devicePixelRatio || 1;
	if (!graph.lay || graph.width === 0) return;
	if (canvas.width !== Math.round(graph.width * ratio) || canvas.height !== Math.round(graph.height * ratio)) {
		canvas.width = Math.round(graph.width * ratio);
		canvas.height = Math.round(graph.height * ratio);
	}
	pen.setTransform(ratio, 0, 0, ratio, 0, 0);
	paint();
	outline(graph.hover, ink.soft, 1);
	if (graph.focus !== graph.zoom || document.activeElement === graph.box) outline(graph.focus, ink.accent, 2);
	if (!mapping) mapping = setTimeout(drawMap);
}

// All rows in sight, by whatever pen there is.
function paint() {
	const { pen } = graph;
	pen.globalAlpha = 1;
	pen.fillStyle = ink.paper;
	pen.fillRect(0, 0, graph.width, graph.height);
	graph.drawn = { frames: 0, runs: 0, texts: 0, hatched: 0 };
	for (let level = 0; level < graph.rows; level++) {
		const y = rowTop(level);
		if (y > -ROW && y < graph.height) drawRow(level, y, view(level));
	}
}

function redraw() {
	if (!pending) pending = requestAnimationFrame(draw);
}

// Fit the canvas to its box.
function resize() {
	graph.width = graph.box.clientWidth;
	graph.height = graph.box.clientHeight;
	graph.canvas.style.width = graph.width + 'px';
	graph.canvas.style.height = graph.height + 'px';
	if (graph.lay) fitRows();
	redraw();
}

// The spacer gives the scroll bar the height of all rows; the root comes into sight.
function fitRows() {
	graph.rows = countRows();
	graph.spacer.style.height = Math.max(0, graph.rows * ROW - graph.height) + 'px';
	scrollGraph(graph.flame ? Infinity : 0);
}

// The position is kept beside the element: reading it back would make the browser lay the page out each time.
function scrollGraph(to) {
	const y = Math.max(0, Math.min(to, graph.rows * ROW - graph.height));
	if (y !== graph.scroll) {
		graph.scroll = y;
		graph.box.scrollTop = y;
	}
}

// The frame under a point of the canvas, or -1.
function pick(px, py) {
	if (!graph.lay || px < 0 || px >= graph.width) return -1;
	const offset = py + graph.scroll,
		{ split } = graph.lay,
		up = Math.max(0, graph.rows - split);
	const row = Math.floor((graph.flame ? Math.max(graph.rows * ROW, graph.height) - offset : offset) / ROW),
		level = row < up ? up - 1 - row + split : row - up;
	if (row < 0 || row >= graph.rows) return -1;
	const v = view(level),
		at = v.v0 + px / v.k,
		q = firstBehind(level, at);
	if (q >= graph.lay.start[level + 1]) return -1;
	const node = graph.lay.order[q];
	return graph.lay.x[node] <= at && graph.lay.x[node] < v.v1 ? node : -1;
}

function dropGraph() {
	Object.assign(graph, { tree: null, lay: null, zoom: 0, focus: 0, hover: -1, window: WHOLE });
	ui.tip.hidden = true;
}

// Scroll so that a row is in sight.
function reveal(level) {
	const y = rowTop(level);
	if (y < 0) scrollGraph(graph.scroll + y);
	else if (y + ROW > graph.height) scrollGraph(graph.scroll + y + ROW - graph.height);
}

function neighbour(node, direction) {
	const lifted = direction === 'parent';
	const { lay, tree } = graph,
		v = view(tree.level[node]),
		upper = tree.level[node] >= lay.split;
	if (lay.split < lay.rows && (upper || (!node && direction === 'parent')))
		direction = { parent: 'child', child: 'parent' }[direction] || direction;
	if (direction === 'parent') return node ? tree.parent[node] : -1;
	if (direction === 'child') {
		const level = node || !lifted ? tree.level[node] + 1 : lay.split;
		if (level >= lay.rows) return -1;
		const child = lay.order[firstAt(lay.start[level], lay.start[level + 1] - 1, lay.x[node])];
		return tree.parent[child] === node ? child : -1;
	}
	const q = lay.rank[node] + (direction === 'right' ? 1 : -1),
		other = lay.order[q];
	if (q < 0 || q >= lay.used || tree.level[other] !== tree.level[node]) return -1;
	return lay.x[other] < v.v1 && lay.x[other] + lay.total[other] > v.v0 ? other : -1;
}

// Which functions a query means: a part of the name (capitals matter once one is typed), or /expression/flags.
function compile(query) {
	const slashed = /^\/(.+)\/([imsu]*)$/.exec(query);
	if (slashed) {
		const expression = new RegExp(slashed[1], slashed[2]);
		return (name) => expression.test(name);
	}
	if (query === query.toLowerCase()) return (name, lower) => lower.includes(query);
	return (name) => name.includes(query);
}

function matchFunctions(query) {
	const test = compile(query),
		{ name, lower } = report.functions;
	return Uint8Array.from(name, (text, f) => (test(text, lower[f]) ? 1 : 0));
}

// Mark the hits of a search in the layout; only outermost frames count into the share and into the list of hits.
function markHits() {
	const { lay, tree, match } = graph;
	graph.marks = null;
	graph.hits = [];
	if (!match || !lay) return 0;
	const inside = new Uint8Array(tree.n),
		marks = new Uint32Array(lay.used + 1);
	let sum = 0;
	for (let q = 1; q < lay.used; q++) {
		const node = lay.order[q],
			hit = match[tree.key[node] >> 1],
			within = inside[tree.parent[node]];
		inside[node] = hit | within;
		marks[q + 1] = marks[q] + hit;
		if (hit && !within) {
			sum += lay.total[node];
			graph.hits.push(node);
		}
	}
	graph.marks = marks;
	graph.hits.sort((a, b) => lay.total[b] - lay.total[a] || lay.rank[a] - lay.rank[b]);
	return lay.total[0] ? sum / lay.total[0] : 0;
}
