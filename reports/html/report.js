// report.js - the unpacked header, and what the page shows now (kept in the address, so that a link can be shared).

const SCHEMA = 2;
const KINDS = ['cpu', 'memory', 'time'];
const KIND_TITLES = { cpu: 'CPU', memory: 'Memory', time: 'Time' };
const METRICS = {
	cpu: [
		['Sampled time', 'ns', 'time'],
		['Samples', '1', 'samples']
	],
	memory: [
		['At the peak', 'By', 'peak'],
		['All allocated bytes', 'By', 'bytes'],
		['Number of allocations', '1', 'count'],
		['Still alive at the end', 'By', 'alive']
	]
};

const report = { cases: [], functions: null, modules: [], programs: new Set(), trees: {}, spans: {} };
const shown = {
	at: -1,
	kind: 'cpu',
	view: 'graph',
	metric: 0,
	query: '',
	order: 'value',
	paint: 'module',
	thread: -1,
	compare: true,
	width: 0,
	least: 0,
	filters: [],
	middle: ''
};

// A recorded program runs once and has no loop: what a text says of iterations is left out.
function worded(text) {
	if (!report.recorded) return text;
	return { 'Allocs/iter': 'Allocations', 'Bytes/iter': 'Allocated' }[text] || text.replace(' per iteration', '');
}

async function readHeader() {
	const head = JSON.parse(new TextDecoder().decode(await unpack(0)));
	if (head.schema !== SCHEMA) {
		throw new Error('This page holds data of schema ' + head.schema + ', its viewer reads ' + SCHEMA + '.');
	}
	Object.assign(report, head);
	const f = report.functions;
	f.name = f.name.map(visible);
	f.label = [];
	f.lower = f.name.map((name) => name.toLowerCase());
	report.modules = head.modules.map(visible);
	report.files = head.files.map(visible);
	report.recorded = Object.fromEntries(head.facts).recorded;
	readCases(report);
	if (report.base) {
		readCases(report.base);
		joinFunctions();
		pairCases();
	}
}

// Where each function stands by name; made when it is first asked for.
function nameRanks() {
	const f = report.functions;
	if (!f.rank || f.rank.length < f.name.length) {
		f.rank = new Int32Array(f.name.length);
		f.name
			.map((_, i) => i)
			.sort((a, b) => (f.lower[a] < f.lower[b] ? -1 : f.lower[a] > f.lower[b] ? 1 : a - b))
			.forEach((i, place) => (f.rank[i] = place));
	}
	return f.rank;
}

function readCases(of) {
	of.programs = new Set();
	of.byKey = new Map();
	of.cases.forEach((c, at) => {
		if (!of.byKey.has(c.key)) of.byKey.set(c.key, []);
		of.byKey.get(c.key).push(c);
		if (c.program) of.programs.add(base(c.program));
		else if (report.recorded) of.programs.add(c.key.replace(/\/\d+$/, ''));
		for (const kind of KINDS) if (c.rows[kind]) fillRow(c.rows[kind], report.figures[kind], at);
	});
}

// What stands in a frame. Most functions never have one that is wide enough, and to shorten all names takes its time.
function labelFor(f) {
	const { label, name, why } = report.functions;
	return (label[f] ??= why[f] ? name[f] : shorten(name[f]));
}

// A function that is not in the table: of the base, or what stands for a thread.
function addFunction(name, why, line) {
	const f = report.functions,
		at = f.name.push(name) - 1;
	f.lower.push(name.toLowerCase());
	f.file.push(-1);
	f.line.push(line);
	f.module.push(-1);
	if (why) f.why[at] = why;
	return at;
}

const threadNames = {};

function threadFunction(number) {
	if (threadNames[number] === undefined) threadNames[number] = addFunction('thread ' + number, '', 0);
	return threadNames[number];
}

// Values and reasons by the names of the figures.
function fillRow(row, figures, at) {
	row.at = at;
	row.ok = row.status === 'MEW_OK';
	row.has = (name) => row.of[name] !== undefined;
	row.of = {};
	row.why = {};
	figures.forEach(([name], i) => {
		if (row.values[i] !== null) row.of[name] = row.values[i];
		if (row.absent[i] !== undefined) row.why[name] = row.absent[i];
	});
}

// Base name of a function's module; empty where it is not known.
function moduleOf(f) {
	return base(report.modules[report.functions.module[f]] || '');
}

report.current = () => report.cases[shown.at];
report.row = () => report.current().rows[shown.kind];
report.metric = () => METRICS[shown.kind][shown.metric];
report.linesMatter = () => shown.kind === 'memory' && shown.view === 'graph';
report.rootLabel = () =>
	(graph.tree.halves ? shown.middle : shown.view === 'callers' ? 'all functions by their own cost' : 'all') +
	' · ' +
	plain(graph.lay.total[0], report.metric()[1]) +
	(comparing() && (shown.kind === 'cpu' || shown.metric % 3) ? worded(' per iteration') : '');
// The row of the base for the case shown; its kind has a tree on both sides.
report.was = () => report.current().was && report.current().was.rows[shown.kind];

// Are two trees shown as one?
function comparing() {
	return !!(graph.source && graph.source.pair);
}

// The metric that gives frames their width.
function weightNow() {
	return shown.metric + (comparing() ? shown.width * graph.source.pair.metrics : 0);
}

// Does another program have a case of this key?
function isAmbiguous(c) {
	return report.byKey.get(c.key).some((other) => other.program !== c.program);
}

function titleOf(c) {
	const name = brief(visible(c.key));
	return (
		(c.label ? name.replace(/\/case:\d+$/, '') + ' [' + brief(visible(c.label)) + ']' : name) +
		(c.allocator ? ' on ' + visible(c.allocator) : '')
	);
}

// The tree of a case and kind, unpacked when it is first asked for; null where no stacks were recorded.
async function loadTree(at, kind) {
	const id = at + kind,
		line = report.cases[at].data[kind];
	if (line === undefined || kind === 'time') return null;
	if (!report.trees[id]) report.trees[id] = readTree(await unpack(line), kind);
	const { was } = report.cases[at];
	if (!shown.compare || !was || was.data[kind] === undefined) return report.trees[id];
	if (!report.trees['+' + id]) {
		const old = readTree(await unpack(was.data[kind]), kind);
		report.trees['+' + id] = unite(report.trees[id], old, kind, [
			report.cases[at].rows[kind],
			was.rows[kind]
		]);
	}
	return report.trees['+' + id];
}

// All measured samples of a case as [process, repetition, loops, [ns...]] blocks.
async function loadSpans(at) {
	const line = report.cases[at].data.time;
	if (line === undefined) return [];
	if (!report.spans[at]) {
		const next = reader(await unpack(line)),
			runs = next(),
			spans = [];
		for (let r = 0; r < runs; r++) {
			const span = { process: next(), repetition: next(), loops: next(), values: [] };
			for (let left = next(); left > 0; left--) span.values.push(next() / span.loops);
			spans.push(span);
		}
		report.spans[at] = spans;
	}
	return report.spans[at];
}

// The source lines of a function's file, [[first, [text...]]...]; unpacked when the first one is wanted.
async function loadSource(f) {
	if (report.sources === undefined || !report.files[report.functions.file[f]]) return [];
	if (!report.texts) report.texts = JSON.parse(new TextDecoder().decode(await unpack(report.sources)));
	const name = report.files[report.functions.file[f]];
	return Object.hasOwn(report.texts, name) ? report.texts[name] : [];
}

// One step of a zoom path: by name, so that a link survives another run; with the line where lines part frames.
function stepName(tree, node) {
	return (
		report.functions.name[tree.key[node] >> 1] +
		(shown.kind === 'memory' && tree.line[node] ? '@' + tree.line[node] : '')
	);
}

function pathOf(tree, node) {
	const path = [];
	for (let i = node; i > 0; i = tree.parent[i]) path.unshift(i);
	return path;
}

function findPath(tree, names) {
	let node = 0;
	for (const name of names) {
		let kid = tree.first[node];
		while (kid && stepName(tree, kid) !== name) kid = tree.next[kid];
		if (!kid) break;
		node = kid;
	}
	return node;
}

function address() {
	if (shown.at < 0) return '#';
	const c = report.current(),
		parts = { case: c.key, kind: shown.kind, view: shown.view };
	if (isAmbiguous(c)) parts.program = c.program || '';
	if (c.allocator) parts.allocator = c.allocator;
	if (METRICS[shown.kind]) parts.weight = report.metric()[2];
	if (graph.flame) parts.flame = '1';
	if (shown.order !== 'value') parts.order = shown.order;
	if (shown.paint !== 'module') parts.paint = shown.paint;
	if (shown.thread >= 0) parts.thread = shown.thread;
	if (report.base && !shown.compare) parts.compare = '0';
	if (comparing() && shown.width) parts.width = shown.width;
	if (shown.middle && shown.view === 'sandwich') parts.of = shown.middle;
	if (shown.filters.length)
		parts.filter = shown.filters.map((x) => x.map(encodeURIComponent).join(':')).join('/');
	if (shown.query) parts.search = shown.query;
	if (shown.least) parts.least = shown.least;
	if (graph.tree && graph.window !== WHOLE) parts.window = graph.window.map((v) => +v.toPrecision(6)).join();
	if (graph.tree && graph.zoom && shown.view !== 'table' && shown.kind !== 'time') {
		parts.zoom = pathOf(graph.tree, graph.zoom)
			.map((i) => encodeURIComponent(stepName(graph.tree, i)))
			.join('/');
	}
	return (
		'#' +
		Object.entries(parts)
			.map(([k, v]) => k + '=' + encodeURIComponent(v))
			.join('&')
	);
}

// An address may be cut in the middle of an escape: its other parts still count.
function decode(text) {
	try {
		return decodeURIComponent(text);
	} catch (e) {
		return '';
	}
}

function readAddress() {
	const parts = {};
	for (const piece of location.hash.slice(1).split('&')) {
		const at = piece.indexOf('=');
		if (at > 0) parts[piece.slice(0, at)] = decode(piece.slice(at + 1));
	}
	return parts;
}

let later = 0;

// Keep the address true: at once for a step that "back" should undo, else soon, since browsers count these calls.
function remember(step) {
	clearTimeout(later);
	if (!step) later = setTimeout(setAddress, 200, false);
	else setAddress(true);
}

function setAddress(step) {
	try {
		history[step ? 'pushState' : 'replaceState'](null, '', address());
	} catch (e) {
		// Some hosts of a page forbid it; the page works without.
	}
}
