// table.js - functions with their self and total figures: the equal of the graph for those who read or listen.
// Only the rows in sight exist; two spacers stand for the others.

const LINE = 27;
const listing = { rows: [], sums: null, column: 'self', down: true, first: -1 };

const TABLE_COLUMNS = [
	['self', 'Self', ''],
	['selfShare', 'Self %', ''],
	['total', 'Total', ''],
	['totalShare', 'Total %', ''],
	['name', 'Function', 'text'],
	['module', 'Module', 'text'],
	['place', 'Defined', 'text']
];

// Compared, the shares make room for what was before.
const columnsNow = () =>
	listing.was
		? TABLE_COLUMNS.map(([name, title, kind]) => [
				name,
				title.replace('Self %', 'Self before').replace('Total %', 'Total before'),
				kind
			])
		: TABLE_COLUMNS;

function placeText(f) {
	const fn = report.functions,
		file = report.files[fn.file[f]];
	return file ? base(file) + (fn.line[f] ? ':' + fn.line[f] : '') : '';
}

function sortKey(column) {
	const { sums } = listing,
		fn = report.functions;
	if (column.endsWith('Share') && listing.was) return (f) => listing.was[column.slice(0, -5)][f];
	if (column.startsWith('self')) return (f) => sums.self[f];
	if (column.startsWith('total')) return (f) => sums.total[f];
	if (column === 'module') return (f) => moduleOf(f);
	return column === 'place' ? placeText : (f) => fn.lower[f];
}

function fillTable(tree) {
	const match = graph.match,
		fn = report.functions;
	listing.sums = sumFunctions(tree, weightNow(), fn.name.length);
	listing.was = tree.pair ? sumFunctions(tree, shown.metric + tree.pair.metrics, fn.name.length) : null;
	listing.all = totalsOf(tree, weightNow())[0];
	listing.samples = shown.kind === 'cpu' && !tree.pair ? totalsOf(tree, 1)[0] : 0;
	listing.rows = [];
	const least = listing.all * leastNow();
	for (let f = 0; f < fn.name.length; f++)
		if (
			((listing.sums.total[f] > 0 && listing.sums.total[f] >= least) ||
				(listing.was && listing.was.total[f] > least)) &&
			(!match || match[f])
		)
			listing.rows.push(f);
	const key = sortKey(listing.column),
		order = listing.down ? -1 : 1;
	listing.rows.sort((a, b) => {
		const x = key(a),
			y = key(b);
		return (x < y ? -order : x > y ? order : 0) || a - b;
	});
	drawTable();
}

function tableHead() {
	return make(
		'thead',
		make(
			'tr',
			...columnsNow().map(([name, title, kind]) => {
				const active = listing.column === name;
				return sortHead(title, kind, active, listing.down, '', async () => {
					Object.assign(listing, {
						down: active ? !listing.down : kind !== 'text',
						column: name
					});
					await refresh();
					ui.table.querySelector('th[aria-sort$=ending] button').focus();
				});
			})
		)
	);
}

function beforeCell(now, was, unit) {
	return make('td', number(was, unit), make('small', ' ' + ratioText(now, was)));
}

function functionRow(f, index) {
	const { sums, was, all, samples } = listing,
		fn = report.functions,
		unit = report.metric()[1];
	const share = all ? sums.self[f] / all : 0,
		name = make(
			'button.mono.clip',
			{ title: brief(fn.name[f]) + '\nShow who calls it', onclick: () => showCallers(f) },
			brief(fn.name[f])
		);
	return make(
		'tr',
		{ 'aria-rowindex': index + 2 },
		make('td', number(sums.self[f], unit)),
		was
			? beforeCell(sums.self[f], was.self[f], unit)
			: make(
					'td',
					percent(share),
					samples > 0 && share > 0 && make('small', ' ±' + decimals(binomial(share, samples) * 100, 1))
				),
		make('td', number(sums.total[f], unit)),
		was
			? beforeCell(sums.total[f], was.total[f], unit)
			: make('td', percent(all ? sums.total[f] / all : 0)),
		make('td.text.main', name),
		make('td.text.soft', moduleOf(f)),
		make('td.text.soft', placeText(f))
	);
}

function drawTable() {
	const box = ui.table,
		body = make('tbody');
	listing.first = -1;
	listing.body = body;
	box.replaceChildren(
		make(
			'table.functions',
			{
				'aria-rowcount': listing.rows.length + 1,
				'aria-label': 'Functions of ' + titleOf(report.current())
			},
			tableHead(),
			body
		)
	);
	box.scrollTop = 0;
	fillRows();
}

function spacer(rows) {
	const td = make('td', { colSpan: TABLE_COLUMNS.length });
	td.style.height = rows * LINE + 'px';
	return make('tr.gap', { 'aria-hidden': 'true' }, td);
}

function fillRows() {
	const box = ui.table,
		n = listing.rows.length,
		visibleRows = Math.ceil(box.clientHeight / LINE);
	const first = Math.max(0, Math.min(n - 1, Math.floor(box.scrollTop / LINE)) - 20),
		last = Math.min(n, first + visibleRows + 40);
	if (!listing.body || (first === listing.first && last === listing.last)) return;
	listing.first = first;
	listing.last = last;
	listing.body.replaceChildren(
		spacer(first),
		...listing.rows.slice(first, last).map((f, i) => functionRow(f, first + i)),
		spacer(n - last)
	);
}
