// window.js - what of the graph is in sight: zoom by the wheel, pan by dragging, the map of the whole above the graph,
// the smallest frames.

const MAP = 22;

let mapping = 0,
	drag = null;

// Show `size` units of the weight from v0 on; a zoomed frame that is narrower gives way to the nearest caller.
function showWindow(v0, size) {
	const { lay, tree } = graph,
		was = graph.zoom;
	let of = was;
	while (of && size > lay.total[of] * 1.001) of = tree.parent[of];
	const all = lay.total[of],
		part = Math.min(1, Math.max(size / all, 1e-7)),
		from = Math.max(0, Math.min((v0 - lay.x[of]) / all, 1 - part));
	graph.window = part > 0.999 ? WHOLE : [from, part];
	graph.zoom = of;
	graph.hover = -1;
	if (of !== was) fitRows();
	drawPath();
	remember(false);
	redraw();
}

// `px` is the place that stays where it is.
function scaleAt(px, factor) {
	const { v0, k } = view(),
		size = (graph.width / k) * factor;
	showWindow(v0 + px / k - (px / graph.width) * size, size);
}

function scaleAtFocus(factor) {
	if (!graph.lay || shown.view === 'table') return;
	const { v0, k } = view(),
		{ x, total } = graph.lay,
		middle = (x[graph.focus] + total[graph.focus] / 2 - v0) * k;
	scaleAt(middle > 0 && middle < graph.width ? middle : graph.width / 2, factor);
}

function panBy(pixels) {
	const { v0, v1, k } = view();
	showWindow(v0 + pixels / k, v1 - v0);
}

// The wheel alone scrolls the rows; with Ctrl it zooms (a pinch says Ctrl as well), sideways it pans.
function onWheel(event) {
	const pixels = event.deltaMode ? 16 : 1,
		aside = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
	if (!graph.lay) return;
	if (event.ctrlKey || event.metaKey) scaleAt(event.offsetX, 1.003 ** (event.deltaY * pixels));
	else if (aside && Math.abs(aside) >= Math.abs(event.shiftKey ? 0 : event.deltaY)) panBy(aside * pixels);
	else return;
	event.preventDefault();
}

// A press becomes a drag once it has moved; the click that ends a drag zooms nowhere.
function onPress(event) {
	if (!event.button && event.pointerType !== 'touch') drag = { x: event.clientX, y: event.clientY, moved: false };
}

function onDrag(event) {
	if (!drag || !(event.buttons & 1)) return false;
	const dx = event.clientX - drag.x,
		dy = event.clientY - drag.y;
	if (!drag.moved && Math.hypot(dx, dy) < 5) return true;
	if (!drag.moved) graph.canvas.setPointerCapture(event.pointerId);
	ui.tip.hidden = true;
	panBy(-dx);
	scrollGraph(graph.scroll - dy);
	drag = { x: event.clientX, y: event.clientY, moved: true };
	return true;
}

function onClick(event) {
	const moved = drag && drag.moved;
	drag = null;
	if (!moved) zoomTo(pick(event.offsetX, event.offsetY));
}

// How many rows have a frame at each pixel of the whole; kept with the layout.
function depthsOf(lay, width) {
	if (lay.depths && lay.depths.length === width) return lay.depths;
	const depths = (lay.depths = new Uint16Array(width)),
		k = width / lay.total[0];
	for (let level = 0; level < lay.rows; level++) {
		for (let q = lay.start[level], end = lay.start[level + 1]; q < end;) {
			const left = lay.x[lay.order[q]] * k,
				right = left + lay.total[lay.order[q]] * k;
			const to = Math.max(Math.floor(left) + 1, Math.floor(right));
			for (let at = Math.floor(left); at < to && at < width; at++) depths[at]++;
			q = right - left < 1 ? firstAt(q + 1, end, (Math.floor(left) + 1) / k) : q + 1;
		}
	}
	return depths;
}

// The whole in small: how deep, what is in sight, and a tick for each hit of the search.
function drawMap() {
	mapping = 0;
	const { lay, width } = graph,
		ratio = devicePixelRatio || 1,
		pen = ui.map.getContext('2d');
	if (!lay || !width) return;
	ui.map.width = width * ratio;
	ui.map.height = MAP * ratio;
	pen.scale(ratio, ratio);
	const k = width / lay.total[0],
		v = view();
	pen.fillStyle = ink.line;
	depthsOf(lay, width).forEach((depth, x) => {
		const high = (depth / lay.rows) * (MAP - 2);
		pen.fillRect(x, graph.flame ? MAP - high : 0, 1, high);
	});
	pen.fillStyle = ink.hit;
	const ticks = new Set(graph.hits.map((node) => Math.floor(lay.x[node] * k)));
	for (const x of ticks) pen.fillRect(x, MAP - 8, 2, 8);
	if (v.v1 - v.v0 > lay.total[0] * 0.999) return;
	const left = v.v0 * k,
		wide = Math.max(3, (v.v1 - v.v0) * k);
	pen.globalAlpha = 0.14;
	pen.fillStyle = ink.accent;
	pen.fillRect(left, 0, wide, MAP);
	pen.globalAlpha = 1;
	pen.strokeStyle = ink.accent;
	pen.lineWidth = 1.5;
	pen.strokeRect(left + 0.75, 0.75, wide - 1.5, MAP - 1.5);
}

// "0.25,0.5" of an address; what is no part of a whole counts as the whole.
function windowOf(text) {
	const [from, part] = (text || '').split(',').map(Number);
	return from >= 0 && part > 0 && from + part <= 1 ? [from, part] : null;
}

// A minimum says nothing where each frame is a sample, and would take the sandwich its middle.
function leastNow() {
	return shown.view === 'sandwich' || shown.order === 'time' ? 0 : shown.least / 100;
}

// On the map a drag chooses what is in sight, a click moves it.
function onMap(event) {
	if (event.type === 'pointerdown') {
		graph.from = event.offsetX;
		ui.map.setPointerCapture(event.pointerId);
		return;
	}
	const to = Math.max(0, Math.min(event.offsetX, graph.width)),
		k = graph.width / graph.lay.total[0],
		size = view().v1 - view().v0,
		wide = Math.abs(to - graph.from);
	graph.zoom = 0;
	graph.window = WHOLE;
	fitRows();
	if (wide > 4) showWindow(Math.min(to, graph.from) / k, wide / k);
	else showWindow(to / k - size / 2, size);
}
