// diff.js - two results: cases that belong together, the union of their trees, which changes are beyond their error.
// Values are per iteration, so that runs of different length compare; what is alive at a moment is not divided.

// A name in another build: program files differ in name and place, libraries in their version.
function identity(of, f) {
	const module = base(of.modules[of.functions.module[f]] || ''),
		own = of.programs.has(module) ? '' : module.replace(/(\.so|-\d)[-.\d]*$/, '');
	return [of.functions.name[f], base(of.files[of.functions.file[f]] || ''), own].join('\n');
}

// Give every function of the base its place in the table of functions, behind the others where it is new.
function joinFunctions() {
	const old = report.base,
		to = (old.to = []),
		known = new Map(report.functions.name.map((_, f) => [identity(report, f), f]));
	old.functions.name = old.functions.name.map(visible);
	old.modules = old.modules.map(visible);
	old.files = old.files.map(visible);
	old.functions.name.forEach((name, f) => {
		const id = identity(old, f);
		let at = known.get(id);
		if (at === undefined) {
			at = addFunction(name, old.functions.why[f], old.functions.line[f]);
			report.functions.file[at] = report.files.push(old.files[old.functions.file[f]]) - 1;
			report.functions.module[at] =
				report.modules.push(old.modules[old.functions.module[f]] || '') - 1;
			known.set(id, at);
		}
		to.push(at);
	});
}

// Each case of the base belongs to one of the head, as where the command compares: of those with its key that have none
// yet to that of a program of the same name, else to the first.
function pairCases() {
	const name = (c) => base(c.program || '');
	for (const was of report.base.cases) {
		const free = (report.byKey.get(was.key) || []).filter((c) => !c.was && c.allocator === was.allocator),
			c = free.find((one) => name(one) === name(was)) || free[0];
		if (!c) continue;
		c.was = was;
		was.met = true;
		for (const kind of KINDS) if (c.rows[kind] && was.rows[kind]) c.rows[kind].was = was.rows[kind];
	}
}

function iterationsOf(row, kind, metric) {
	return kind === 'memory' && (metric === 0 || metric === 3) ? 1 : row.of.iterations || 1;
}

// Both trees in one: metrics of the head, of the base, and the larger of the two.
function unite(head, old, kind, rows) {
	const map = childMap(),
		metrics = head.self.length,
		to = [head, old].map((tree, side) => {
			const at = new Int32Array(tree.n);
			for (let i = 1; i < tree.n; i++) {
				const f = tree.key[i] >> 1;
				at[i] = map.child(
					at[tree.parent[i]],
					(side ? report.base.to[f] : f) * 2 + (tree.key[i] & 1),
					0
				);
			}
			return at;
		});
	const out = treeOf(map, 3 * metrics);
	[head, old].forEach((tree, side) =>
		tree.self.forEach((self, m) => {
			const per = iterationsOf(rows[side], kind, m),
				sum = out.self[m + side * metrics];
			for (let i = 1; i < tree.n; i++) sum[to[side][i]] += self[i] / per;
		})
	);
	out.pair = { metrics, kind, iterations: rows.map((row) => row.of.iterations || 1) };
	return settle(out, out);
}

// Value now, value before, and whether they differ by more than three standard errors of the counts of samples (a count
// of n has the error sqrt(n)). Memory is exact.
function compareValues(pair, now, was, samples) {
	let sure = now !== was;
	if (pair.kind === 'cpu') {
		const error = (value, n, side) => {
			const count = n * pair.iterations[side];
			return count > 0.5 ? value / Math.sqrt(count) : samples.one[side];
		};
		sure = Math.abs(now - was) > 3 * Math.hypot(error(now, samples.now, 0), error(was, samples.was, 1));
	} else if (Math.abs(now - was) < 1e-9 * Math.max(now, was)) sure = false;
	return { now, was, sure, isNew: !was && now > 0, gone: !now && was > 0 };
}

// What one sample stands for, per iteration, on both sides.
function weightOfOne(tree) {
	const { metrics, iterations } = tree.pair;
	return [0, 1].map((side) => {
		const m = shown.metric + side * metrics,
			n = totalsOf(tree, 1 + side * metrics)[0] * iterations[side];
		return n ? totalsOf(tree, m)[0] / n : 0;
	});
}

function changeOf(node) {
	const { tree } = graph,
		{ pair } = tree,
		m = shown.metric,
		at = (metric) => totalsOf(tree.halves ? halfOf(node) : tree, metric)[tree.halves ? inHalf(node) : node];
	if (!tree.one) tree.one = [];
	if (!tree.one[m]) tree.one[m] = weightOfOne(tree.halves ? tree.halves.down : tree);
	return compareValues(pair, at(m), at(m + pair.metrics), {
		now: pair.kind === 'cpu' ? at(1) : 0,
		was: pair.kind === 'cpu' ? at(1 + pair.metrics) : 0,
		one: tree.one[m]
	});
}

const halfOf = (node) => (node > graph.tree.shift ? graph.tree.halves.over : graph.tree.halves.down);
const inHalf = (node) => (node > graph.tree.shift ? node - graph.tree.shift : node);

function ratioText(now, was) {
	if (!was) return now ? 'new' : '=';
	if (!now) return 'gone';
	if (now === was) return '=';
	const p = (now / was - 1) * 100;
	if (p >= 1000) return '×' + significant(now / was);
	return (p < 0 ? '−' : '+') + decimals(Math.abs(p), Math.abs(p) < 10 ? 1 : 0) + '\u00a0%';
}

// Orange is more, blue is less, grey is within the error; the sign stands in the text as well.
function changeColour(change, fade) {
	if (!change.sure) return colour(isDark() ? 0.38 : 0.9, 0.004, 250);
	const size = change.was && change.now ? Math.min(1, Math.abs(Math.log2(change.now / change.was)) * 1.5) : 1,
		up = change.now > change.was;
	return colour(
		(isDark() ? 0.42 : 0.88) - (isDark() ? -0.02 : 0.06) * size,
		(fade ? 0.3 : 1) * (0.04 + 0.07 * size),
		up ? 60 : 250
	);
}

// Functions that one side has and the other has not, the largest first.
function comings(tree) {
	const { metrics } = tree.pair,
		n = report.functions.name.length,
		m = shown.metric,
		sums = [m, m + metrics].map((k) => sumFunctions(tree, k, n)),
		counts = tree.pair.kind === 'cpu' ? [1, 1 + metrics].map((k) => sumFunctions(tree, k, n)) : [],
		one = weightOfOne(tree),
		out = { vanished: [], added: [] };
	for (let f = 0; f < n; f++) {
		const change = compareValues(tree.pair, sums[0].total[f], sums[1].total[f], {
			now: counts.length && counts[0].total[f],
			was: counts.length && counts[1].total[f],
			one
		});
		if (change.sure && change.gone) out.vanished.push([f, change.was]);
		if (change.sure && change.isNew) out.added.push([f, change.now]);
	}
	for (const list of Object.values(out)) list.sort((a, b) => b[1] - a[1]);
	return out;
}

function comingsList(list, what) {
	return (
		list.length > 0 &&
		make(
			'details',
			make('summary', counted(list.length, 'function') + ' ' + what),
			make(
				'div.wide',
				make(
					'table.functions',
					make(
						'tbody',
						...list
							.slice(0, 500)
							.map(([f, value]) =>
								make(
									'tr',
									make(
										'td.text.main',
										make(
											'span.mono.clip',
											report.functions.name[f]
										)
									),
									make('td', number(value, report.metric()[1]))
								)
							)
					)
				)
			)
		)
	);
}

// The three columns of the overview for a figure: before, now, ratio.
function ratioColumns(title, kind, of, unit, edges) {
	const both = (c) =>
		c.was && c.was.rows[kind] && c.was.rows[kind].has(of) && c.rows[kind] && c.rows[kind].has(of);
	const value = {
		base: (c) => (c.was && c.was.rows[kind] && c.was.rows[kind].has(of) ? c.was.rows[kind].of[of] : null),
		head: (c) => (c.rows[kind] && c.rows[kind].has(of) ? c.rows[kind].of[of] : null),
		ratio: (c) => {
			if (!both(c)) return null;
			const now = value.head(c),
				was = value.base(c);
			return was ? now / was : now ? Infinity : 1;
		}
	};
	const sure = (c) => {
		const now = c.rows[kind].of,
			was = c.was.rows[kind].of;
		return edges ? now[edges[0]] > was[edges[1]] || now[edges[1]] < was[edges[0]] : now[of] !== was[of];
	};
	const ratioCell = (c) => {
		const ratio = value.ratio(c),
			text = ratio === Infinity ? 'new' : ratio ? '×' + decimals(ratio, 3) : 'gone';
		return make(
			'span',
			{
				className: !sure(c) ? 'soft' : ratio > 1 ? 'up' : 'down',
				title: sure(c)
					? edges
						? 'The 95 % intervals of both medians do not meet'
						: 'Exact figures differ'
					: edges
						? 'The 95 % intervals of both medians overlap'
						: 'Equal'
			},
			sure(c) ? (ratio > 1 ? '▲ ' : '▼ ') : '',
			text
		);
	};
	return [
		{
			kind,
			title: 'Base',
			of,
			group: title,
			value: value.base,
			help: title + ' before',
			draw: (c) => number(value.base(c), unit)
		},
		{
			kind,
			title: 'Head',
			of,
			group: title,
			value: value.head,
			help: title + ' now',
			draw: (c) => number(value.head(c), unit)
		},
		{
			kind,
			title: 'Ratio',
			of,
			group: title,
			value: value.ratio,
			help: 'Head divided by base',
			draw: ratioCell
		}
	];
}

const PAIR_COLUMNS = [
	...ratioColumns('Median time', 'time', 'median_ns', 'ns', ['median_low_ns', 'median_high_ns']),
	...ratioColumns('Peak', 'memory', 'peak_bytes', 'By'),
	...ratioColumns('Allocs/iter', 'memory', 'allocations_per_iteration', '1'),
	...ratioColumns('Bytes/iter', 'memory', 'bytes_per_iteration', 'By')
];
