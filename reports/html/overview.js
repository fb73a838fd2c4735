// overview.js - the first page: what ran where, and one row per case.

const sorting = { column: -1, down: true };

// A table of all of a million cases would stop the browser.
let mostRows = 1000;

const GRADES = {
	A: 'Quiet machine',
	B: 'Mostly quiet machine',
	C: 'Noisy machine',
	D: 'Do not trust small differences'
};
const COLUMNS = [
	{ kind: 'time', title: 'Median', of: 'median_ns', unit: 'ns', help: 'Median time of one iteration' },
	{
		kind: 'time',
		title: '95 % interval',
		of: 'median_low_ns',
		cell: intervalCell,
		help: 'Exact order-statistic interval of the median'
	},
	{
		kind: 'time',
		title: 'Distribution',
		of: 'median_ns',
		cell: (row) => distributionCell(row),
		by: (row) => row.of.stddev_ns / row.of.median_ns,
		help: 'How often which time was measured; sorts by the spread (standard deviation by median)'
	},
	{
		kind: 'memory',
		title: 'Peak',
		of: 'peak_bytes',
		unit: 'By',
		help: 'Most bytes alive at once'
	},
	{
		kind: 'memory',
		title: 'Allocs/iter',
		of: 'allocations_per_iteration',
		unit: '1',
		help: 'Allocation calls per iteration'
	},
	{
		kind: 'memory',
		title: 'Bytes/iter',
		of: 'bytes_per_iteration',
		unit: 'By',
		help: 'Bytes requested per iteration'
	},
	{ kind: 'memory', title: 'Net', of: 'net_bytes', unit: 'By', help: 'Bytes still alive at the end' },
	{
		kind: 'cpu',
		title: 'Top function',
		of: 'top_function',
		cell: functionCell,
		text: true,
		help: 'The function with the largest self time'
	},
	{
		kind: 'cpu',
		title: 'Self share',
		of: 'top_function_share',
		cell: shareCell,
		help: 'Its share of the sampled time, with its 95 % interval'
	},
	{ kind: 'cpu', title: 'Samples', of: 'sample_count', unit: '1', help: 'Samples kept' }
];

function intervalCell(row) {
	return make('span.soft', range(row.of.median_low_ns, row.of.median_high_ns, 'ns'));
}

function functionCell(row) {
	const name = visible(row.of.top_function);
	return make('span.mono.clip', { title: name }, name);
}

function meter(share) {
	const fill = make('i');
	fill.style.width = (share * 100).toFixed(1) + '%';
	return make('span.meter', fill);
}

function shareCell(row) {
	return make(
		'span.share',
		{
			title: row.has('top_function_share_low')
				? percent(row.of.top_function_share_low) +
					' to ' +
					percent(row.of.top_function_share_high)
				: ''
		},
		meter(row.of.top_function_share),
		percent(row.of.top_function_share),
		row.has('top_function_share_low') &&
			make(
				'small',
				'±' + decimals((row.of.top_function_share_high - row.of.top_function_share_low) * 50, 1)
			)
	);
}

function cellOf(column, row) {
	const side = column.text ? 'text' : '';
	if (!row || !row.has(column.of)) {
		const why = row ? row.why[column.of] : 'not measured in this run';
		return make('td.none', { className: 'none ' + side, title: visible(why || 'not measured') }, '–');
	}
	return make('td', { className: side }, column.cell ? column.cell(row) : number(row.of[column.of], column.unit));
}

// A case that does not apply here is no failure.
const isSkip = (row) => row.status === 'MEW_E_UNSUPPORTED' && /^skipped: /.test(row.reason);

function failure(row, span) {
	return make(
		'td',
		{ className: isSkip(row) ? 'text none' : 'bad', colSpan: span, title: row.status },
		!isSkip(row) && make('b', row.status.slice(6).toLowerCase()),
		' ',
		visible(row.reason || 'no figures')
	);
}

// A column of two results reads both rows of the case.
function pairCell(column, c) {
	return column.value(c) === null
		? make('td.none', { title: c.was ? 'not measured on both sides' : 'not in the base' }, '–')
		: make('td', column.draw(c));
}

function valueOf(column, c) {
	if (column.value) return column.value(c);
	const row = c.rows[column.kind];
	if (!row || !row.has(column.of)) return null;
	const value = column.by ? column.by(row) : row.of[column.of];
	return Number.isNaN(value) ? null : value;
}

function groupOf(column) {
	return worded(column.group || '') || { time: 'Time per iteration', memory: 'Memory', cpu: 'CPU' }[column.kind];
}

function caseRow(c, at, columns) {
	const link = make(
		'a',
		{
			href:
				'#case=' +
				encodeURIComponent(c.key) +
				(c.program ? '&program=' + encodeURIComponent(c.program) : '') +
				(c.allocator ? '&allocator=' + encodeURIComponent(c.allocator) : '')
		},
		fit(titleOf(c), 400)
	);
	const tr = make(
		'tr',
		{
			onclick: (event) => {
				if (event.ctrlKey || event.metaKey) return;
				event.preventDefault();
				openCase(at, {});
			}
		},
		make(
			'th',
			{
				scope: 'row',
				title: visible(c.key + (c.label ? ' [' + c.label + ']' : '') + (c.program ? ' in ' + c.program : ''))
			},
			link,
			isAmbiguous(c) && make('small', visible(base(c.program || '')))
		)
	);
	for (let i = 0, next; i < columns.length; i = next) {
		const row = c.rows[columns[i].kind],
			failed = row && !row.ok;
		for (next = i + 1; failed && next < columns.length; next++) {
			const other = c.rows[columns[next].kind];
			if (!other || other.ok || other.reason !== row.reason) break;
		}
		const cell = failed
			? failure(row, next - i)
			: columns[i].value
				? pairCell(columns[i], c)
				: cellOf(columns[i], row);
		if (i && groupOf(columns[i - 1]) !== groupOf(columns[i])) cell.classList.add('group');
		tr.append(cell);
	}
	return tr;
}

function sortCases(columns) {
	const all = report.cases.map((c, at) => at),
		column = columns[sorting.column];
	if (sorting.column === -1) return all;
	const value = (at) => valueOf(column, report.cases[at]);
	return all.sort((a, b) => {
		const x = value(a),
			y = value(b);
		if (x === null || y === null) return (x === null) - (y === null) || a - b;
		const order = typeof x === 'string' ? (x < y ? -1 : x > y ? 1 : 0) : x - y;
		return (sorting.down ? -order : order) || a - b;
	});
}

// A click sorts, the next one the other way, the third restores the order of the run.
function headCell(column, i) {
	const active = sorting.column === i,
		first = !!column.text;
	return sortHead(worded(column.title), column.text ? 'text' : '', active, sorting.down, worded(column.help), () => {
		if (active && sorting.down === first) sorting.column = -1;
		else Object.assign(sorting, { column: i, down: active ? !sorting.down : !first });
		drawCases();
		ui.cases.querySelectorAll('thead button')[i].focus();
	});
}

function drawCases() {
	const columns = (report.base ? PAIR_COLUMNS : COLUMNS).filter((column) =>
		report.cases.some((c) => c.rows[column.kind])
	);
	const groups = make('tr', make('th', { scope: 'col', rowSpan: 2 }, report.recorded ? 'Program' : 'Case')),
		heads = make('tr');
	columns.forEach((column, i) => {
		const first = i === 0 || groupOf(columns[i - 1]) !== groupOf(column),
			head = headCell(column, i);
		if (first) {
			groups.append(
				make(
					'th',
					{
						className: 'title' + (i ? ' group' : ''),
						scope: 'colgroup',
						colSpan: columns.filter((x) => groupOf(x) === groupOf(column)).length
					},
					groupOf(column)
				)
			);
		}
		if (first && i) head.classList.add('group');
		heads.append(head);
	});
	const all = sortCases(columns),
		body = make('tbody', ...all.slice(0, mostRows).map((at) => caseRow(report.cases[at], at, columns)));
	ui.cases.replaceChildren(
		all.length ? make('table.cases', make('thead', groups, heads), body) : make('p.more', 'No case was measured.')
	);
	if (all.length > mostRows) {
		const more = () => {
			mostRows *= 2;
			drawCases();
		};
		ui.cases.append(
			make(
				'button.more',
				{ onclick: more },
				'The first ' + whole(mostRows) + ' of ' + whole(all.length) + ' are shown: show more'
			)
		);
	}
	ui.legend.textContent = all.length ? legendText(new Set(columns.map((column) => column.kind))) : '';
}

function legendText(kinds) {
	if (report.base) {
		const lost = report.base.cases.filter((c) => !c.met).map(titleOf);
		return (
			'Ratio: head divided by base. ▲ and ▼: exact figures that differ, ' +
			'and medians whose 95 % intervals do not meet. ' +
			(lost.length
				? 'In the base alone: ' +
					lost.slice(0, 50).join(', ') +
					(lost.length > 50 ? ' and ' + whole(lost.length - 50) + ' more.' : '.')
				: '')
		);
	}
	return (
		(kinds.has('memory')
			? 'Peak: most bytes alive at once. Net: bytes still alive at the end. '
			: '') +
		(kinds.has('cpu')
			? 'Self share: the function’s own time, with half the width of its 95 % interval. '
			: '') +
		(report.recorded
			? 'Every figure is of ' + visible(report.recorded) + '.'
			: 'Every figure is of the timing loop alone.') +
		' – means not measured: point at it for the reason.'
	);
}

function drawMachine() {
	const fact = Object.fromEntries(report.facts),
		box = ui.machine;
	const gist = [
		fact.cpu_model,
		fact.cpu_count && fact.cpu_count + ' CPUs',
		fact.kernel,
		fact.compiler,
		fact.date
	].filter(Boolean);
	box.replaceChildren();
	if (report.grade) {
		const [letter, reason] = report.grade;
		box.append(
			make(
				'p.grade',
				make('b', { className: 'g' + letter }, letter),
				make('span', make('strong', GRADES[letter] || 'Machine'), ' ', visible(reason || ''))
			)
		);
	}
	if (!report.facts.length) return;
	box.append(
		make(
			'details',
			make('summary', visible(gist.join(' · ')) || 'Machine and build'),
			make(
				'dl.facts',
				...report.facts.map(([name, value]) =>
					make(
						'div',
						make('dt', visible(name).replace(/_/g, ' ')),
						make('dd', visible(value))
					)
				)
			)
		)
	);
}

function showOverview() {
	shown.at = -1;
	dropGraph();
	document.body.className = 'home';
	const failed = report.cases.filter((c) => KINDS.some((kind) => c.rows[kind] && !c.rows[kind].ok && !isSkip(c.rows[kind]))).length;
	const programs = [...report.programs];
	ui.title.textContent = programs.length ? programs.map(visible).join(', ') : 'Benchmark report';
	ui.program.textContent = '';
	ui.summary.textContent =
		counted(report.cases.length, report.recorded ? 'recorded program' : 'case') +
		(failed ? ', ' + failed + ' with a failure' : '') +
		(report.base ? ' · compared with a base of ' + report.base.cases.length : '') +
		' · mew ' +
		report.mew +
		(report.hooks ? ' · hooks: ' + visible(report.hooks) : '');
	document.title = ui.title.textContent + ' – mew';
	for (const id of ['case', 'picker', 'loading']) ui[id].hidden = true;
	ui.overview.hidden = false;
	drawMachine();
	drawCases();
}
