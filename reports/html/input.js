// input.js - keys, pointer, theme.

const THEMES = { '': '◐ Auto', dark: '● Dark', light: '○ Light' };
const HINTS = [
	['Arrows', 'move between frames'],
	['Enter, click', 'zoom to the frame'],
	['Esc, Backspace', 'back out by one frame'],
	['+ and -, Ctrl+wheel', 'zoom at the frame, at the pointer; dragging pans'],
	['0', 'back to the whole'],
	['/', 'search; n and Shift+N step through the hits'],
	['g, b, s, t', 'flame graph, bottom-up, sandwich, functions'],
	['f, h, x', 'focus on the function, hide its stacks, fold its frames'],
	['u', 'undo the last filter'],
	['y, v', 'next order; compared or head alone'],
	['i', 'root at the top or at the bottom'],
	['k', 'next kind: CPU, memory, time'],
	['m', 'next weight'],
	['[ and ]', 'previous and next case'],
	['o', 'all cases'],
	['c, Shift+C', 'copy the name, the stack'],
	['d', 'dark, light, or as the system says'],
	['?', 'this list']
];

let chosen = '';

// `chosen` is "dark", "light" or "" for what the system says.
function setTheme(name) {
	chosen = name;
	root.dataset.theme = name || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
	ui.theme.textContent = THEMES[name];
	ui.theme.title = 'Colours: ' + (name || 'as the system says') + ' (d)';
	readInk();
	redraw();
	if (shown.at >= 0 && shown.kind === 'time') drawPlot();
}

function nextTheme() {
	const order = Object.keys(THEMES);
	setTheme(order[(order.indexOf(chosen) + 1) % order.length]);
	try {
		localStorage.setItem('mew-theme', chosen);
	} catch (e) {
		// Without storage the choice lasts as long as the page.
	}
}

function showKeys() {
	ui.keys.replaceChildren(
		make('h2', 'Keys'),
		make('dl', ...HINTS.map(([key, what]) => pair(key, what))),
		make(
			'p.soft',
			'A search in small letters ignores case, /x/i is an expression; its share counts outermost ' +
				'hits. Italic frames were inlined by the compiler, grey ones have no name.'
		),
		make('button', { onclick: () => ui.keys.close() }, 'Close')
	);
	ui.keys.showModal();
}

function graphKey(key) {
	const down = graph.flame ? 'parent' : 'child',
		up = graph.flame ? 'child' : 'parent';
	const moves = { ArrowDown: down, ArrowUp: up, ArrowLeft: 'left', ArrowRight: 'right' };
	if (moves[key]) focusOn(neighbour(graph.focus, moves[key]));
	else if (key === 'Enter' || key === ' ') zoomTo(graph.focus);
	else if (key === 'Escape' || key === 'Backspace') zoomOut();
	else return false;
	return true;
}

const KEY_ACTIONS = {
	0: () => graph.lay && zoomTo(0),
	Home: () => graph.lay && zoomTo(0),
	'+': () => scaleAtFocus(0.5),
	'-': () => scaleAtFocus(2),
	n: () => stepHit(1),
	N: () => stepHit(-1),
	i: flip,
	g: () => change({ view: 'graph' }),
	b: () => change({ view: 'callers' }),
	t: () => change({ view: 'table' }),
	s: () => (graph.focus ? showSandwich(graph.tree.key[graph.focus] >> 1) : change({ view: 'sandwich' })),
	f: () => graph.focus && addFilter('focus', nameOf(graph.focus)),
	h: () => graph.focus && addFilter('hide', nameOf(graph.focus)),
	x: () => graph.focus && addFilter('fold', nameOf(graph.focus)),
	u: () => change({ filters: shown.filters.slice(0, -1) }),
	y: () => nextOption(ui.order),
	v: () => !ui.compare.hidden && change({ compare: !shown.compare }),
	k: nextKind,
	m: () => METRICS[shown.kind] && change({ metric: (shown.metric + 1) % METRICS[shown.kind].length }),
	'[': () => openNext(-1),
	']': () => openNext(1),
	o: home,
	c: () => graph.focus && copy(nameOf(graph.focus)),
	C: () => graph.focus && copy(stackText(graph.focus)),
	'/': () => ui.query.select()
};

function nextOption(box) {
	if (box.hidden) return;
	box.selectedIndex = (box.selectedIndex + 1) % box.length;
	box.onchange({ target: box });
}

function onKey(event) {
	const field = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
	if (event.ctrlKey || event.metaKey || event.altKey || ui.keys.open) return;
	if (field) {
		if (event.target.id === 'query' && event.key === 'Enter') stepHit(event.shiftKey ? -1 : 1);
		if (event.target.id === 'query' && event.key === 'Escape') clearSearch();
		return;
	}
	let done = true;
	const onGraph = event.target === graph.box || event.target === document.body;
	if (event.key === '?') showKeys();
	else if (event.key === 'd') nextTheme();
	else if (shown.at < 0) done = false;
	else if (graph.lay && (onGraph || event.key === 'Escape') && shown.view !== 'table' && graphKey(event.key))
		done = true;
	else if (KEY_ACTIONS[event.key]) KEY_ACTIONS[event.key]();
	else done = false;
	if (done) event.preventDefault();
}

function clearSearch() {
	ui.query.value = '';
	search('');
	graph.box.focus();
}

function hoverAt(event) {
	if (onDrag(event)) return;
	const node = pick(event.offsetX, event.offsetY),
		tip = ui.tip;
	graph.box.style.cursor = node > 0 ? 'pointer' : '';
	if (node >= 0) {
		const value = graph.lay.total[node];
		tip.replaceChildren(
			make(
				'b.mono',
				node || graph.tree.halves ? brief(labelFor(graph.tree.key[node] >> 1)) : 'all'
			),
			plain(value, report.metric()[1]) + ' · ' + percent(value / graph.lay.total[0]),
			graph.tree.pair ? make('div', sayChange(changeOf(node))) : ''
		);
		tip.hidden = false;
		tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
		tip.style.top =
			(event.clientY + 18 + tip.offsetHeight > innerHeight
				? event.clientY - tip.offsetHeight - 10
				: event.clientY + 18) + 'px';
	}
	if (node < 0) tip.hidden = true;
	if (node === graph.hover) return;
	graph.hover = node;
	drawDetails();
	redraw();
}

function leave() {
	ui.tip.hidden = true;
	graph.hover = -1;
	if (graph.lay) drawDetails();
	redraw();
}

function listen() {
	graph.canvas.onpointermove = hoverAt;
	graph.canvas.onpointerleave = leave;
	graph.canvas.onclick = onClick;
	graph.canvas.onpointerdown = onPress;
	graph.canvas.addEventListener('wheel', onWheel, { passive: false });
	ui.map.onpointerdown = ui.map.onpointerup = onMap;
	ui.least.onchange = (event) => change({ least: +event.target.value });
	graph.box.onscroll = () => {
		graph.scroll = graph.box.scrollTop;
		redraw();
	};
	graph.box.onfocus = () => graph.lay && speak(describe(graph.focus));
	ui.table.onscroll = fillRows;
	ui.query.oninput = (event) => search(event.target.value);
	ui.before.onclick = () => stepHit(-1);
	ui.after.onclick = () => stepHit(1);
	ui.metric.onchange = (event) => change({ metric: +event.target.value });
	ui.which.onchange = (event) => openNext(event.target.value - shown.at);
	ui.prev.onclick = () => openNext(-1);
	ui.next.onclick = () => openNext(1);
	ui.flip.onclick = flip;
	ui.order.onchange = (event) => change({ order: event.target.value });
	ui.paint.onchange = (event) => change({ paint: event.target.value });
	ui.width.onchange = (event) => change({ width: +event.target.value });
	ui.thread.onchange = (event) => change({ thread: +event.target.value });
	ui.compare.onclick = () => change({ compare: !shown.compare });
	ui.export.onchange = (event) => {
		if (event.target.value) EXPORTS[event.target.value]();
		event.target.value = '';
	};
	ui.theme.onclick = nextTheme;
	ui.help.onclick = showKeys;
	ui.home.onclick = (event) => {
		event.preventDefault();
		home();
	};
	document.addEventListener('keydown', onKey);
	addEventListener('popstate', follow);
	matchMedia('(prefers-color-scheme: dark)').onchange = () => setTheme(chosen);
	new ResizeObserver(() => {
		if (graph.box.clientWidth !== graph.width || graph.box.clientHeight !== graph.height) resize();
		if (!ui.table.hidden) fillRows();
	}).observe(ui.stage);
}

function savedTheme() {
	try {
		const name = localStorage.getItem('mew-theme');
		return name in THEMES ? name : '';
	} catch (e) {
		return '';
	}
}
