// case.js - what surrounds the graph of a case: its figures, the honest notes, details of a frame, and all samples.

const CARDS = {
	time: [
		['Median time', 'median_ns', 'ns', (o) => range(o.median_low_ns, o.median_high_ns, 'ns')],
		['Throughput', 'bytes_per_second', 'By/s'],
		['Throughput', 'items_per_second', '1/s']
	],
	memory: [
		['Peak', 'peak_bytes', 'By', (o) => counted(o.total_allocations, 'allocation')],
		['Allocs/iter', 'allocations_per_iteration', '1'],
		['Bytes/iter', 'bytes_per_iteration', 'By'],
		['Net', 'net_bytes', 'By', (o) => counted(o.net_blocks, 'block')],
		[
			'Growth/iter',
			'leak_bytes_per_iteration',
			'By',
			(o) => range(o.leak_bytes_per_iteration_low, o.leak_bytes_per_iteration_high, 'By')
		]
	],
	cpu: [
		[
			'Top function',
			'top_function',
			'',
			(o) =>
				percent(o.top_function_share) +
				' self (' +
				percent(o.top_function_share_low) +
				' to ' +
				percent(o.top_function_share_high) +
				')'
		]
	]
};

function figure(value, unit, name) {
	if (typeof value === 'string') return visible(value);
	if (/share|fragm/.test(name)) return percent(value);
	return plain(value, unit);
}

function card(row, title, name, unit, note) {
	const value = row.of[name],
		text = typeof value === 'string',
		was = row.was && row.was.has(name) && !text && row.was.of[name],
		small =
			typeof was === 'number'
				? 'was ' + plain(was, unit) + ' (' + ratioText(value, was) + ')'
				: note
					? note(row.of)
					: '';
	return make(
		'div',
		{ className: text ? 'card long' : 'card' },
		make('span.soft', worded(title)),
		text ? make('b.mono.clip', { title: visible(value) }, visible(value)) : make('b', number(value, unit)),
		make('small', /NaN/.test(small) ? '' : small)
	);
}

function tidy(name) {
	return name.replace(/_(ns|bytes)$/, '').replace(/_/g, ' ');
}

function allFigures(kind, row) {
	return make(
		'dl.facts',
		...report.figures[kind].map(
			([name, unit, help], i) =>
				!Array.isArray(row.values[i]) &&
				make(
					'div',
					{ title: help },
					make('dt', tidy(name)),
					row.values[i] === null
						? make(
								'dd.none',
								'– ',
								make('small', visible(row.why[name] || 'not measured'))
							)
						: make('dd', figure(row.values[i], unit, name))
				)
		)
	);
}

// A figure that is a list, as a table. Classes of sizes get a bar, and their two ends are one cell.
function listTable(lines, columns) {
	const classes = columns[0][0] === 'low',
		most = Math.max(...lines.map((line) => line[2]));
	if (classes) {
		columns = [['size', 'text'], columns[2]];
		lines = lines.map(([low, high, n]) => [whole(low) + (high > low ? '–' + whole(high) : '') + ' B', n]);
	}
	const cell = (value, [name, unit]) =>
		unit === 'text'
			? make('td.text.main', make('span.mono.clip', { title: visible(value) }, visible(value)))
			: make(
					'td',
					classes
						? make('span.share', whole(value), meter(value / most))
						: figure(value, unit, name)
				);
	return make(
		'table.functions',
		make(
			'thead',
			make(
				'tr',
				...columns.map(([name, unit]) => make(unit === 'text' ? 'th.text' : 'th', tidy(name)))
			)
		),
		make('tbody', ...lines.map((line) => make('tr', ...line.map((value, i) => cell(value, columns[i])))))
	);
}

function lists(kind, row) {
	return report.figures[kind]
		.filter(
			([name, , , columns]) =>
				columns && name !== 'live_by_iteration' && row.has(name) && row.of[name][0]
		)
		.map(([name, , help, columns]) =>
			make(
				'details',
				make('summary', { title: help }, tidy(name).replace(/^./, (c) => c.toUpperCase())),
				make('div.wide', listTable(row.of[name], columns))
			)
		);
}

function drawCards(c) {
	const box = ui.cards,
		group = (kind, cards) =>
			cards.length && box.append(make('div', { className: 'cards ' + kind }, ...cards));
	box.replaceChildren();
	for (const kind of ['time', 'memory', 'cpu']) {
		const row = c.rows[kind];
		if (row && row.ok)
			group(
				kind,
				CARDS[kind].filter(([, name]) => row.has(name)).map((what) => card(row, ...what))
			);
	}
	group(
		'',
		c.counters.map(([name, value]) => card({ of: { [name]: value } }, visible(name), name, '1'))
	);
}

function cpuNotes(row, notes) {
	const o = row.of,
		some = (n) => whole(n) + (o.sample_count ? ' (' + percent(n / o.sample_count) + ')' : '');
	if (!row.reason && o.sample_count < 100) {
		notes.push(
			'Only ' +
				o.sample_count +
				' samples: shares are rough. ' +
				(report.recorded ? 'Record for longer' : 'Raise --inner-iterations') +
				' or shorten --cpu=INTERVAL.'
		);
	}
	if (o.lost) notes.push(some(o.lost) + ' samples were lost; the shares are of those that were kept.');
	if (o.truncated) notes.push(some(o.truncated) + ' stacks were cut: their outermost frames are missing.');
	if (o.unresolved && !/no function name/.test(row.reason))
		notes.push(some(o.unresolved) + ' samples hit code without a name; its frames say why.');
	if (o.effective_interval > o.interval * 1.1) {
		notes.push(
			'A sample was asked for every ' +
				plain(o.interval, 's') +
				', one came every ' +
				plain(o.effective_interval, 's') +
				'.'
		);
	}
}

// How much of a tree's first metric is the own value of frames without a name.
function unnamedShare(tree) {
	const { why } = report.functions,
		sum = tree.self[0].reduce((all, v, i) => (why[tree.key[i] >> 1] ? all + v : all), 0);
	return sum && sum / totalsOf(tree, 0)[0];
}

function warningsOf(row, kind) {
	const notes = [];
	if (row.reason) notes.push(visible(row.reason));
	if (!row.ok) return notes;
	if (kind === 'cpu') cpuNotes(row, notes);
	if (kind === 'memory' && graph.source) {
		const share = unnamedShare(graph.source);
		if (share > 0)
			notes.push(
				percent(share) +
					' of the bytes at the peak come from code without a name; its frames say why.'
			);
	}
	if (kind === 'memory' && row.of.lost)
		notes.push(whole(row.of.lost) + ' records were lost: these figures are too low, do not compare them.');
	if (kind === 'time' && row.of.median_ns < 20 * row.of.loop_overhead_ns) {
		notes.push(
			'Less than 20 times an empty loop (' +
				plain(row.of.loop_overhead_ns, 'ns') +
				'): do more work in an iteration.'
		);
	}
	return notes;
}

// Absent figures by their reason.
function absences(row) {
	const absent = {};
	for (const name of Object.keys(row.why)) (absent[row.why[name]] = absent[row.why[name]] || []).push(tidy(name));
	return Object.keys(absent).map((why) => 'Not measured: ' + absent[why].join(', ') + ' (' + visible(why) + ').');
}

function absenceList(row) {
	const n = Object.keys(row.why).length;
	return n ? make('details', make('summary', counted(n, 'figure') + ' not measured'), noteList('plain', absences(row))) : '';
}

function noteList(kind, notes) {
	return notes.length ? make('ul', { className: 'notes ' + kind }, ...notes.map((text) => make('li', text))) : '';
}

function comparisonNotes() {
	if (!comparing() || !graph.chosen) return [];
	const { vanished, added } = comings(graph.chosen);
	return [comingsList(vanished, 'vanished'), comingsList(added, 'new')].filter(Boolean);
}

function drawNotes(c) {
	const row = c.rows[shown.kind],
		box = ui.notes;
	box.replaceChildren();
	if (!row) return;
	const notes = warningsOf(row, shown.kind);
	if (!row.ok) notes[0] = row.status + ': ' + (notes[0] || 'no figures');
	box.append(noteList(row.ok ? '' : 'failed', notes));
	if (!row.ok && c.output) {
		box.append(
			make(
				'details',
				{ open: true },
				make('summary', 'What it printed'),
				make('pre', c.output.replace(/[^\P{C}\n\t]/gu, '\ufffd'))
			)
		);
	}
	if (row.ok && shown.kind !== 'time') {
		box.append(
			...comparisonNotes(),
			...lists(shown.kind, row),
			make(
				'details',
				make('summary', 'All ' + KIND_TITLES[shown.kind].replace('M', 'm') + ' figures'),
				allFigures(shown.kind, row)
			),
			absenceList(row)
		);
	}
}

function pair(name, ...value) {
	return make('div', make('dt', name), make('dd', ...value));
}

// Half the width of the 95 % interval of a share seen in n samples.
function binomial(share, n) {
	return n > 0 ? 1.96 * Math.sqrt((share * (1 - share)) / n) : 0;
}

function valueLine(value, all, unit) {
	return [plain(value, unit), make('small', percent(all ? value / all : 0))];
}

function detailFigures(node) {
	const { lay, tree } = graph,
		[, unit] = report.metric(),
		all = lay.total[0],
		total = lay.total[node],
		row = report.row();
	const out = [
		pair(shown.view === 'callers' ? 'Self time through here' : 'Total', ...valueLine(total, all, unit))
	];
	if (shown.view === 'callers' && shown.kind === 'memory') out[0].firstChild.textContent = 'Own, through here';
	if (shown.view === 'graph')
		out.push(
			pair(
				leastNow() ? 'Self and left out' : 'Self',
				...valueLine(tree.self[weightNow()][node], all, unit)
			)
		);
	if (tree.pair) return [...out, ...changeFigures(changeOf(node), unit)];
	if (node) out.push(pair('Of its parent', percent(total / lay.total[tree.parent[node]])));
	if (shown.kind === 'cpu') {
		const samples = totalAt(node, 1),
			n = totalAt(0, 1),
			share = all ? total / all : 0;
		out.push(
			pair(
				'Samples',
				whole(samples),
				share > 0 && share < 1 && make('small', '±' + percent(binomial(share, n)) + ' at 95 %')
			)
		);
	}
	if (
		row.of.iterations &&
		!report.recorded &&
		!(shown.kind === 'memory' && (shown.metric === 0 || shown.metric === 3))
	) {
		out.push(pair('Per iteration', plain(total / row.of.iterations, unit)));
	}
	return out;
}

function totalAt(node, metric) {
	const { tree } = graph;
	return tree.halves ? totalsOf(halfOf(node), metric)[inHalf(node)] : totalsOf(tree, metric)[node];
}

function sayChange(change) {
	return (
		(change.isNew ? 'new' : change.gone ? 'gone' : ratioText(change.now, change.was)) +
		(change.sure || change.now === change.was ? '' : ', within the error')
	);
}

function changeFigures(change, unit) {
	return [
		pair('Head', plain(change.now, unit)),
		pair('Base', plain(change.was, unit)),
		pair(
			'Change',
			make(
				'span',
				{ className: change.sure ? (change.now > change.was ? 'up' : 'down') : 'soft' },
				sayChange(change)
			)
		)
	];
}

function placeOf(node) {
	const f = graph.tree.key[node] >> 1,
		fn = report.functions,
		file = report.files[fn.file[f]],
		out = [];
	out.push(pair('Module', make('span', { title: report.modules[fn.module[f]] || '' }, moduleOf(f) || 'none')));
	if (file) out.push(pair('Defined', file + (fn.line[f] ? ':' + fn.line[f] : '')));
	if (graph.tree.line[node])
		out.push(pair(graph.tree.first[node] ? 'Calls from' : 'At', 'line ' + graph.tree.line[node]));
	return out;
}

function buildOf(f) {
	const id = report.builds[report.functions.module[f]];
	return id ? ' (build id ' + id + ')' : '';
}

function copy(text) {
	const say = (done) => speak(done ? 'Copied.' : 'The browser did not allow copying.');
	if (navigator.clipboard)
		navigator.clipboard.writeText(text).then(
			() => say(true),
			() => say(false)
		);
	else say(false);
}

function stackText(node) {
	return pathOf(graph.tree, node)
		.map((i) => nameOf(i))
		.join('\n');
}

function detailButtons(node) {
	const f = graph.tree.key[node] >> 1,
		button = (title, help, act) => make('button', { title: help, onclick: act }, title);
	return make(
		'p.buttons',
		button('Zoom', 'Enter', () => zoomTo(node)),
		shown.view === 'graph' && button('Callers', 'Who calls it, from everywhere', () => showCallers(f)),
		button('Sandwich', 'Its callers above, what it calls below (s)', () => showSandwich(f)),
		button('Focus', 'Only stacks through it (f)', () => addFilter('focus', nameOf(node))),
		button('Hide', 'Without the stacks through it (h)', () => addFilter('hide', nameOf(node))),
		button('Fold', 'Give its cost to its caller (x)', () => addFilter('fold', nameOf(node))),
		moduleOf(f) &&
			button('Fold module', 'Fold all of ' + moduleOf(f), () => addFilter('module', moduleOf(f))),
		button('Fold recursion', 'A function that calls itself is one frame', () => addFilter('recursion', '')),
		button('Copy name', 'c', () => copy(report.functions.name[f])),
		button('Copy stack', 'Shift+C', () => copy(stackText(node)))
	);
}

let detailed = -1;

function drawDetails() {
	const node = graph.hover >= 0 ? graph.hover : graph.focus,
		box = ui.details;
	if (!graph.lay || graph.lay.rank[node] < 0) return;
	const f = graph.tree.key[node] >> 1,
		fn = report.functions,
		why = node && fn.why[f];
	box.replaceChildren(
		...[
			make('h2.mono', nameOf(node)),
			node && graph.tree.key[node] & 1 && make('p.badge', 'inlined into its caller'),
			why && make('p.badge.warn', 'no name: ' + visible(why) + buildOf(f)),
			make('dl', ...detailFigures(node), ...(node ? placeOf(node) : [])),
			node
				? detailButtons(node)
				: make(
						'p.soft',
						shown.view === 'callers'
							? 'Each function by its own cost, then its callers.'
							: 'A frame is as wide as its share of: ' +
								report.metric()[0].toLowerCase() +
								'.'
					)
		].filter(Boolean)
	);
	detailed = node;
	if (report.sources !== undefined && node) drawSource(node);
}

// The lines around the one that counts, where the report carries the source.
async function drawSource(node) {
	const f = graph.tree.key[node] >> 1,
		line = graph.tree.line[node] || report.functions.line[f],
		spans = f < 0 ? [] : await loadSource(f),
		span = spans.find(([first, texts]) => line >= first && line < first + texts.length);
	if (!span || detailed !== node) return;
	const from = Math.max(0, line - span[0] - 8),
		rows = span[1].slice(from, line - span[0] + 9).map((text, i) => {
			const at = span[0] + from + i;
			return make(
				'b',
				{ className: at === line ? 'hot' : '' },
				String(at).padStart(5) + '  ' + visible(text.replace(/\t/g, '    '))
			);
		});
	ui.details
		.querySelector('.buttons')
		.before(make('pre.source.mono', { tabIndex: 0, 'aria-label': 'Source' }, ...rows));
}
