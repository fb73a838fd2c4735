// page.js - from what is chosen (case, kind, view, weight, zoom, query) to what is shown.

const VIEWS = [
	['graph', 'Flame graph', 'g'],
	['callers', 'Bottom-up', 'b'],
	['sandwich', 'Sandwich', 's'],
	['table', 'Functions', 't']
];
const ORDERS = { value: 'By value', name: 'By name', time: 'In time order' };
const PAINTS = { module: 'Colour: module', inline: 'Colour: inlined' };
const LEAST = [0, 0.1, 0.5, 1, 5];
const WIDTHS = ['Width: head', 'Width: base', 'Width: larger'];

function speak(text) {
	ui.live.textContent = text;
}

function describe(node) {
	const { lay, tree } = graph,
		unit = report.metric()[1],
		all = lay.total[0];
	return (
		brief(nameOf(node)) +
		', ' +
		plain(lay.total[node], unit) +
		', ' +
		percent(all ? lay.total[node] / all : 0) +
		(shown.view === 'graph' ? ', self ' + plain(tree.self[weightNow()][node], unit) : '') +
		(tree.pair ? ', ' + sayChange(changeOf(node)) : '') +
		', level ' +
		tree.level[node] +
		(node && tree.key[node] & 1 ? ', inlined' : '') +
		(tree.first[node] ? '' : ', leaf')
	);
}

function focusOn(node) {
	if (node < 0) return;
	graph.focus = node;
	graph.hover = -1;
	reveal(graph.tree.level[node]);
	speak(describe(node));
	drawDetails();
	redraw();
}

function drawPath() {
	const { tree, lay } = graph,
		path = [0, ...pathOf(tree, graph.zoom)],
		box = ui.path;
	const crumb = (node) =>
		make(
			'button.mono',
			{ title: node ? brief(nameOf(node)) : 'Back to the whole (0)', onclick: () => zoomTo(node) },
			node || tree.halves ? fit(node ? labelOf(node) : shown.middle, 220) : 'all'
		);
	const cut = path.length > 6 ? [path[0], -1, ...path.slice(-4)] : path;
	box.replaceChildren(
		...cut.flatMap((node, i) => [i ? make('span.soft', '›') : '', node < 0 ? '…' : crumb(node)]),
		make(
			'span.soft',
			graph.zoom || graph.window !== WHOLE
				? percent((lay.total[graph.zoom] * graph.window[1]) / lay.total[0]) + ' of all'
				: tree.cut
					? 'the first ' + percent(tree.cut) + ' of the samples'
					: 'click a frame to zoom, ? lists the keys'
		)
	);
}

function zoomTo(node) {
	if (node < 0 || !graph.lay || graph.lay.rank[node] < 0) return;
	graph.zoom = node;
	graph.focus = node;
	graph.window = WHOLE;
	fitRows();
	reveal(graph.tree.level[node]);
	speak('Zoomed to ' + describe(node));
	drawPath();
	drawDetails();
	redraw();
	remember(false);
}

function zoomOut() {
	if (graph.zoom) {
		const from = graph.zoom;
		zoomTo(graph.tree.parent[from]);
		focusOn(from);
	}
}

function sayFound(share) {
	const box = ui.found;
	ui.before.hidden = ui.after.hidden = !graph.match || shown.view === 'table';
	if (!graph.match) box.textContent = '';
	else if (shown.view === 'table') box.textContent = counted(listing.rows.length, 'function');
	else if (!graph.hits.length) box.textContent = 'no hit';
	else box.textContent = percent(share) + ' · ' + (graph.at >= 0 ? graph.at + 1 + '/' : '') + graph.hits.length;
}

// Apply a query; a bad expression keeps the former result and says so.
function search(query) {
	shown.query = query;
	try {
		graph.match = query && query !== '/' ? matchFunctions(query) : null;
		ui.find.classList.remove('wrong');
	} catch (e) {
		ui.find.classList.add('wrong');
		ui.found.textContent = 'not an expression';
		return;
	}
	graph.at = -1;
	graph.share = markHits();
	if (shown.view === 'table' && graph.chosen) fillTable(graph.chosen);
	sayFound(graph.share);
	remember(false);
	redraw();
}

function stepHit(by) {
	const n = graph.hits.length;
	if (!n || shown.view === 'table') return;
	graph.at = graph.at < 0 ? (by > 0 ? 0 : n - 1) : (graph.at + by + n) % n;
	const node = graph.hits[graph.at],
		v = view(),
		{ x, total } = graph.lay;
	if (x[node] < v.v0 || x[node] >= v.v1 || total[node] * v.k < 12) {
		let to = node;
		while (to && total[to] < total[node] * 20) to = graph.tree.parent[to];
		zoomTo(to);
	}
	focusOn(node);
	sayFound(graph.share);
}

// Which text, if any, stands in for the graph.
function emptiness(row) {
	if (shown.kind === 'time') return row && row.ok ? '' : 'There is no time to show.';
	if (!row || !row.ok) return 'There are no figures to show.';
	if (!graph.source) return 'No stacks were recorded in this pass.';
	if (shown.view === 'sandwich' && !report.functions.name.includes(shown.middle))
		return 'There is no such function here.';
	if (totalsOf(graph.chosen, weightNow())[0] > 0) return '';
	if (graph.chosen !== graph.source) return 'The filters leave nothing: take one away.';
	return shown.kind === 'memory'
		? shown.metric === 3
			? 'Nothing is still alive at the end.'
			: 'Nothing was allocated.'
		: 'No sample was taken.';
}

function drawTools(c) {
	const kinds = KINDS.filter((kind) => c.rows[kind]),
		stacks = shown.kind !== 'time';
	ui.kinds.replaceChildren(
		...kinds.map((kind) =>
			make(
				'button',
				{
					'aria-pressed': kind === shown.kind,
					onclick: () => change({ kind, metric: 0 })
				},
				KIND_TITLES[kind]
			)
		)
	);
	ui.views.replaceChildren(
		...VIEWS.map(([view, title, key]) =>
			make(
				'button',
				{
					title: title + ' (' + key + ')',
					'aria-pressed': view === shown.view,
					onclick: () => change({ view })
				},
				title
			)
		)
	);
	ui.metric.replaceChildren(
		...(METRICS[shown.kind] || []).map(([title], m) =>
			make('option', { value: m, selected: m === shown.metric }, title)
		)
	);
	ui.flip.textContent = graph.flame ? '⇅ Flame' : '⇅ Icicle';
	ui.flip.title = 'Root at the top or at the bottom (i)';
	for (const id of ['views', 'metric', 'flip', 'find', 'path', 'order', 'paint', 'export', 'chips'])
		ui[id].hidden = !stacks || !graph.source;
	if (shown.view === 'table') for (const id of ['flip', 'path', 'order', 'paint', 'export']) ui[id].hidden = true;
	drawChoices();
	drawChips();
}

function options(box, list, now) {
	box.replaceChildren(...list.map(([value, title]) => make('option', { value, selected: value === now }, title)));
}

// The lists of choices; one that has nothing to choose from is not there.
function drawChoices() {
	const { source } = graph,
		threads = (source && !source.pair && source.samples) || [],
		pair = comparing();
	options(
		ui.order,
		Object.entries(ORDERS).filter(
			([order]) => order !== 'time' || (threads.length && shown.view === 'graph')
		),
		shown.order
	);
	options(
		ui.paint,
		Object.entries(pair ? { module: 'Colour: change', inline: PAINTS.inline } : PAINTS),
		shown.paint
	);
	options(ui.width, [...WIDTHS.entries()], shown.width);
	options(
		ui.least,
		LEAST.map((p) => [p, p ? 'At least ' + p + ' %' : 'All frames']),
		shown.least
	);
	options(
		ui.thread,
		[
			[-1, 'All threads'],
			...threads.map(({ number, leaf }) => [
				number,
				'Thread ' + number + ' · ' + whole(leaf.length) + ' samples'
			])
		],
		shown.thread
	);
	options(ui.export, [['', 'Export…'], ...Object.keys(EXPORTS).map((name) => [name, name])], '');
	ui.width.hidden = !pair;
	ui.least.hidden = !source || shown.kind === 'time' || shown.view === 'sandwich' || shown.order === 'time';
	ui.thread.hidden = threads.length < 2;
	ui.compare.hidden = !report.base || !report.was() || shown.kind === 'time';
	ui.compare.textContent = shown.compare ? 'Compared' : 'Head alone';
	ui.compare.setAttribute('aria-pressed', shown.compare);
}

const FILTER_TITLES = {
	focus: 'only through ',
	hide: 'without ',
	fold: 'folded ',
	module: 'folded module ',
	recursion: 'recursion folded'
};

function drawChips() {
	const chip = ([what, name], at) =>
		make(
			'button',
			{
				title: 'Take this filter away',
				onclick: () => change({ filters: shown.filters.filter((_, i) => i !== at) })
			},
			FILTER_TITLES[what] + brief(name || ''),
			' ✕'
		);
	ui.chips.replaceChildren(...shown.filters.map(chip));
}

function addFilter(what, name) {
	if (!shown.filters.some((x) => x[0] === what && x[1] === name))
		change({ filters: [...shown.filters, [what, name]] });
}

// The tree of the view, out of the one that thread and filters leave.
function treeOfView() {
	const tree = graph.chosen;
	if (shown.view === 'callers') return pruneTree(invert(tree), leastNow());
	if (shown.view === 'sandwich') return sandwichTree(tree);
	return shown.order === 'time' && tree.samples ? timeTree(tree) : pruneTree(tree, leastNow());
}

function sandwichTree(tree) {
	const { middle } = shown;
	if (!tree.sandwich || tree.sandwich.middle !== middle) tree.sandwich = { middle, tree: sandwichOf(tree, middle) };
	return tree.sandwich.tree;
}

// Without a choice it is the function with the largest own value.
function chooseMiddle(tree) {
	if (shown.view !== 'sandwich' || shown.middle || !tree) return;
	const { self } = sumFunctions(tree, weightNow(), report.functions.name.length);
	shown.middle = report.functions.name[self.reduce((best, v, f) => (v > self[best] ? f : best), 0)];
}

// Lay the chosen tree out for the chosen weight; zoom and focus move up to the nearest frame that still has a value.
function arrange() {
	const tree = treeOfView();
	if (graph.tree !== tree) {
		const path = graph.tree && !graph.tree.halves && !tree.halves ? pathOf(graph.tree, graph.zoom) : [],
			names = path.map((node) => stepName(graph.tree, node));
		graph.tree = tree;
		graph.window = WHOLE;
		graph.zoom = graph.focus = shown.kept ? findPath(tree, names) : 0;
	}
	graph.lay = tree.halves ? layOutHalves(tree, weightNow()) : layOut(tree, weightNow());
	while (graph.lay.rank[graph.zoom] < 0) graph.zoom = tree.parent[graph.zoom];
	if (graph.lay.rank[graph.focus] < 0) graph.focus = graph.zoom;
	graph.hover = -1;
	graph.at = -1;
	graph.share = markHits();
}

async function refresh() {
	const { at, kind } = shown;
	if (at < 0) return;
	const c = report.current(),
		row = c.rows[kind],
		source = await loadTree(at, kind);
	if (at !== shown.at || kind !== shown.kind) return;
	graph.source = source;
	if (shown.width && !comparing()) shown.width = 0;
	graph.chosen = source && filterTree(threadTree(source, source.pair ? -1 : shown.thread), shown.filters);
	chooseMiddle(graph.chosen);
	drawTools(c);
	drawNotes(c);
	drawCurve();
	ui.tip.hidden = true;
	ui.case.className = kind;
	const empty = emptiness(row),
		isGraph = !empty && kind !== 'time' && shown.view !== 'table';
	ui.empty.textContent = empty;
	ui.empty.hidden = !empty;
	ui.frame.hidden = ui.graph.hidden = ui.details.hidden = !isGraph;
	ui.table.hidden = !!empty || kind === 'time' || shown.view !== 'table';
	ui.plot.hidden = !!empty || kind !== 'time';
	ui.path.hidden = !isGraph;
	ui.graph.setAttribute('aria-label', KIND_TITLES[kind] + ' of ' + titleOf(c));
	if (!source || empty) dropGraph();
	if (kind === 'time') drawPlot();
	else if (isGraph) arrange();
	else if (!empty) fillTable(graph.chosen);
	if (isGraph) showGraph();
	sayFound(graph.share);
}

function showGraph() {
	const wanted = shown.wanted;
	shown.wanted = null;
	if (wanted) graph.zoom = graph.focus = findPath(graph.tree, wanted);
	if (shown.seen) graph.window = shown.seen;
	shown.seen = null;
	while (graph.lay.rank[graph.zoom] < 0) graph.zoom = graph.focus = graph.tree.parent[graph.zoom];
	drawPath();
	resize();
	drawDetails();
}

async function change(what) {
	shown.kept = !('kind' in what || 'view' in what || 'middle' in what);
	if (shown.order === 'time' && (('view' in what && what.view !== 'graph') || 'kind' in what))
		shown.order = 'value';
	Object.assign(shown, what);
	await refresh();
	remember(false);
}

function showSandwich(f) {
	return change({ view: 'sandwich', middle: report.functions.name[f] });
}

// Bottom-up, zoomed to one function.
async function showCallers(f) {
	await change({ view: 'callers' });
	if (!graph.tree) return;
	let node = graph.tree.first[0];
	while (node && graph.tree.key[node] >> 1 !== f) node = graph.tree.next[node];
	zoomTo(node);
	graph.box.focus();
	if (!node) speak(brief(report.functions.name[f]) + ' has no cost of its own.');
}

function drawHead(c) {
	ui.name.textContent = titleOf(c);
	ui.about.textContent = [
		c.label && c.key !== titleOf(c) ? visible(c.key) : '',
		c.threads > 1 ? c.threads + ' threads' : '',
		c.tags ? visible(c.tags) : ''
	]
		.filter(Boolean)
		.join(' · ');
	ui.program.textContent = visible(base(c.program || ''));
	const from = Math.max(0, shown.at - 500); // a list of a million would stop the browser
	options(
		ui.which,
		report.cases.slice(from, from + 1000).map((other, i) => [from + i, titleOf(other)]),
		shown.at
	);
	document.title = titleOf(c) + ' – mew';
}

// Open a case; `parts` are those of an address.
async function openCase(at, parts, quiet) {
	const c = report.cases[at],
		kinds = KINDS.filter((kind) => c.rows[kind]);
	const usable = kinds.find((kind) => c.rows[kind].ok && c.data[kind] !== undefined) || kinds[0] || 'time';
	const kind = kinds.includes(parts.kind) ? parts.kind : usable;
	const metric = METRICS[kind]
		? Math.max(
				0,
				METRICS[kind].findIndex((m) => m[2] === parts.weight)
			)
		: 0;
	const view = VIEWS.some((v) => v[0] === parts.view) ? parts.view : 'graph';
	dropGraph();
	graph.flame = parts.flame === '1';
	Object.assign(shown, {
		at,
		kind,
		metric,
		view,
		order: Object.hasOwn(ORDERS, parts.order) ? parts.order : 'value',
		paint: Object.hasOwn(PAINTS, parts.paint) ? parts.paint : 'module',
		thread: /^\d+$/.test(parts.thread) ? +parts.thread : -1,
		compare: parts.compare !== '0',
		width: [1, 2].includes(+parts.width) ? +parts.width : 0,
		middle: parts.of || '',
		filters: (parts.filter || '')
			.split('/')
			.map((text) => text.split(':').map(decode))
			.filter(([what]) => Object.hasOwn(FILTERS, what)),
		wanted: parts.zoom ? parts.zoom.split('/').map(decode) : null,
		seen: windowOf(parts.window),
		least: LEAST.includes(+parts.least) ? +parts.least : 0
	});
	document.body.className = 'one';
	ui.overview.hidden = ui.loading.hidden = true;
	ui.case.hidden = ui.picker.hidden = false;
	drawHead(c);
	drawCards(c);
	ui.query.value = parts.search || '';
	await refresh();
	if (shown.at !== at) return;
	search(ui.query.value);
	if (!quiet) {
		remember(true);
		scrollTo(0, 0);
	}
}

async function follow() {
	const parts = readAddress();
	const at =
		parts.case === undefined
			? -1
			: report.cases.findIndex(
					(c) =>
						c.key === parts.case &&
						(parts.program === undefined || parts.program === (c.program || '')) &&
						(parts.allocator === undefined || parts.allocator === c.allocator)
				);
	if (at < 0) showOverview();
	else await openCase(at, parts, true);
}

function home() {
	showOverview();
	remember(true);
}

function openNext(by) {
	const at = shown.at + by;
	if (at < 0 || at >= report.cases.length) return;
	openCase(at, {
		kind: shown.kind,
		view: shown.view,
		weight: (METRICS[shown.kind] || [[0, 0, '']])[shown.metric][2],
		flame: graph.flame ? '1' : '',
		order: shown.order,
		paint: shown.paint,
		compare: shown.compare ? '' : '0',
		width: shown.width,
		of: shown.middle,
		search: shown.query
	});
}

function nextKind() {
	const kinds = KINDS.filter((kind) => report.current().rows[kind]);
	change({ kind: kinds[(kinds.indexOf(shown.kind) + 1) % kinds.length], metric: 0 });
}

function flip() {
	graph.flame = !graph.flame;
	change({});
}
