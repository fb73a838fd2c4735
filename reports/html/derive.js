// derive.js - trees made from a tree: filtered, of one thread, in time order, around one function, of two results.
// A derived tree has the same metrics as its source; `from` says for each frame of the source where it went.

const MOST_FRAMES = 3e6;

// The tree that a child map has grown; siblings stand in the order in which they were made.
function treeOf(map, metrics) {
	const out = newTree(map.keys.length, metrics);
	out.key.set(map.keys);
	out.parent.set(map.parents);
	out.line.set(map.lines);
	linkChildren(out);
	for (let i = 1; i < out.n; i++) {
		out.level[i] = out.level[out.parent[i]] + 1;
		if (out.level[i] > out.deepest) out.deepest = out.level[i];
	}
	return out;
}

function moveSelf(tree, out, to) {
	tree.self.forEach((self, m) => {
		out.self[m][0] += self[0];
		for (let i = 1; i < tree.n; i++) if (to[i] >= 0) out.self[m][to[i]] += self[i];
	});
	return settle(out, tree);
}

// Of two results the larger value is a metric of its own; sums of larger ones would be too large.
function settle(out, tree) {
	out.pair = tree.pair;
	if (!out.pair) return out;
	const { metrics } = out.pair;
	for (let m = 0; m < metrics; m++) {
		const head = out.self[m],
			old = out.self[m + metrics];
		out.self[m + 2 * metrics] = head.map((v, i) => Math.max(v, old[i]));
	}
	return out;
}

// The tree read from the leaves: below each function its callers. Every metric moves to the far end of its path.
function invert(tree) {
	if (tree.inverted) return tree.inverted;
	const map = childMap(),
		ends = new Int32Array(tree.n);
	for (let i = 1; i < tree.n; i++) {
		if (!tree.self.some((self) => self[i] > 0)) continue;
		let node = 0;
		for (let up = i; up; up = tree.parent[up]) node = map.child(node, tree.key[up], 0);
		ends[i] = node;
	}
	return (tree.inverted = moveSelf(tree, treeOf(map, tree.self.length), ends));
}

/*
 * focus: stacks through the function alone. hide: those that do not pass it. fold: its frames go, their cost is their
 * caller's. module: the same for all functions of a module. recursion: a frame below one of its own function goes.
 */
const FILTERS = {
	focus: (name) => (f) => report.functions.name[f] === name,
	hide: (name) => (f) => report.functions.name[f] === name,
	fold: (name) => (f) => report.functions.name[f] === name,
	module: (name) => (f) => moduleOf(f) === name,
	recursion: () => () => false
};

function filterTree(tree, filters) {
	if (!filters.length) return tree;
	const id = filters.map((x) => x.join()).join('\n');
	if (tree.filtered && tree.filtered.id === id) return tree.filtered.tree;
	const map = childMap(),
		to = new Int32Array(tree.n),
		keep = new Uint8Array(tree.n),
		passed = new Uint32Array(tree.n);
	const sets = filters.map(([what, name]) => [
			what,
			Uint8Array.from(report.functions.name, (_, f) => FILTERS[what](name)(f))
		]),
		focus = sets.filter(([what]) => what === 'focus').map(([, set]) => set),
		all = (1 << focus.length) - 1,
		of = (...what) => sets.filter((x) => what.includes(x[0])).map(([, set]) => set),
		hide = of('hide'),
		fold = of('fold', 'module'),
		recursion = filters.some(([what]) => what === 'recursion');
	keep[0] = 1;
	for (let i = 1; i < tree.n; i++) {
		const f = tree.key[i] >> 1,
			up = tree.parent[i],
			at = to[up];
		passed[i] = passed[up];
		focus.forEach((set, bit) => (passed[i] |= set[f] << bit));
		keep[i] = keep[up] && !hide.some((set) => set[f]) ? 1 : 0;
		if (!keep[i]) continue;
		const gone = fold.some((set) => set[f]) || (recursion && map.keys[at] >> 1 === f);
		to[i] = gone ? at : map.child(at, tree.key[i], tree.line[i]);
	}
	const ends = to.map((at, i) => (keep[i] && passed[i] === all ? at : -1)),
		out = moveSelf(tree, treeOf(map, tree.self.length), ends);
	out.from = ends;
	out.samples = tree.samples;
	tree.filtered = { id, tree: out };
	return out;
}

// Frames with less than a share of the whole go into their callers; a larger tree becomes one of what matters.
function pruneTree(tree, share) {
	const m = weightNow(),
		id = m + ' ' + share;
	if (!share) return tree;
	if (tree.pruned && tree.pruned.id === id) return tree.pruned.tree;
	const total = totalsOf(tree, m),
		least = total[0] * share,
		map = childMap(),
		to = new Int32Array(tree.n);
	for (let i = 1; i < tree.n; i++) {
		const up = to[tree.parent[i]];
		to[i] = total[i] < least ? up : map.child(up, tree.key[i], tree.line[i]);
	}
	const out = moveSelf(tree, treeOf(map, tree.self.length), to);
	tree.pruned = { id, tree: out };
	return out;
}

// Only the samples of one thread.
function threadTree(tree, number) {
	if (number < 0 || !tree.samples) return tree;
	const out = Object.assign({}, tree, {
		totals: [],
		inverted: null,
		filtered: null,
		pruned: null,
		timed: null,
		sandwich: null
	});
	out.self = tree.self.map((self) => self.slice().fill(0));
	out.samples = tree.samples.filter((thread) => thread.number === number);
	for (const { leaf, weight } of out.samples) {
		leaf.forEach((node, i) => {
			out.self[0][node] += weight[i];
			out.self[1][node]++;
		});
	}
	return out;
}

// Samples side by side as they were taken, each thread below a frame of its own; equal neighbours are one frame.
function timeTree(tree) {
	if (tree.timed) return tree.timed;
	const parents = [0],
		keys = [-2],
		sums = tree.self.map(() => [0]),
		threads = tree.samples || [];
	const push = (parent, key) => {
		parents.push(parent);
		for (const sum of sums) sum.push(0);
		return keys.push(key) - 1;
	};
	let all = 0,
		seen = 0;
	for (const { number, leaf, weight } of threads) {
		const top = threads.length > 1 ? push(0, threadFunction(number) * 2) : 0;
		let path = [],
			made = [];
		all += leaf.length;
		for (let s = 0; s < leaf.length && keys.length < MOST_FRAMES; s++, seen++) {
			const end = tree.from ? tree.from[leaf[s]] : leaf[s],
				now = end > 0 ? pathOf(tree, end) : [];
			if (!now.length) {
				path = [];
				continue;
			}
			let same = 0;
			while (same < now.length && now[same] === path[same]) same++;
			made.length = same;
			for (let d = same; d < now.length; d++)
				made.push(push(d ? made[d - 1] : top, tree.key[now[d]]));
			path = now;
			sums[0][made[made.length - 1]] += weight[s];
			sums[1][made[made.length - 1]]++;
		}
	}
	const out = treeOf({ keys, parents, lines: new Int32Array(keys.length) }, sums.length);
	sums.forEach((sum, m) => out.self[m].set(sum));
	out.cut = all > seen ? seen / all : 0;
	return (tree.timed = out);
}

// What the functions of a name call, below them, and who calls them, as rows of their own: the level of a caller is
// behind those of the calls.
function sandwichOf(tree, middle) {
	const { name } = report.functions,
		below = childMap(),
		above = childMap(),
		to = new Int32Array(tree.n),
		inside = new Uint8Array(tree.n),
		ends = new Int32Array(tree.n);
	for (let i = 1; i < tree.n; i++) {
		const up = tree.parent[i],
			own = name[tree.key[i] >> 1] === middle;
		inside[i] = inside[up] | own;
		if (!inside[i]) continue;
		if (inside[up]) to[i] = below.child(to[up], tree.key[i], 0);
		else
			for (let node = up; node; node = tree.parent[node])
				ends[i] = above.child(ends[i], tree.key[node], 0);
	}
	const metrics = tree.self.length,
		down = treeOf(below, metrics),
		over = treeOf(above, metrics);
	tree.self.forEach((self, m) => {
		const total = totalsOf(tree, m);
		for (let i = 1; i < tree.n; i++) {
			if (!inside[i]) continue;
			down.self[m][to[i]] += self[i];
			if (!inside[tree.parent[i]]) over.self[m][ends[i]] += total[i];
		}
	});
	return joinTrees(settle(down, tree), settle(over, tree), name.indexOf(middle));
}

function joinTrees(down, over, f) {
	const shift = down.n - 1,
		out = newTree(shift + over.n, down.self.length),
		moved = (i) => (i ? i + shift : 0);
	for (const name of ['first', 'next', 'parent', 'key', 'line', 'level']) out[name].set(down[name]);
	for (let i = 1; i < over.n; i++) {
		out.first[moved(i)] = moved(over.first[i]);
		out.next[moved(i)] = moved(over.next[i]);
		out.parent[moved(i)] = moved(over.parent[i]);
		out.key[moved(i)] = over.key[i];
		out.level[moved(i)] = over.level[i] + down.deepest;
	}
	out.self.forEach((self, m) => {
		self.set(down.self[m]);
		for (let i = 1; i < over.n; i++) self[moved(i)] = over.self[m][i];
	});
	out.key[0] = f * 2;
	out.pair = down.pair;
	Object.assign(out, { deepest: down.deepest + over.deepest, halves: { down, over }, shift });
	return out;
}

// The layouts of both halves as one; both are as wide as the function's total.
function layOutHalves(tree, metric) {
	const { down, over } = tree.halves,
		a = layOut(down, metric),
		b = layOut(over, metric),
		n = tree.n,
		out = {
			total: new Float64Array(n),
			order: new Int32Array(n),
			rank: new Int32Array(n).fill(-1),
			x: new Float64Array(n),
			start: a.start.slice(),
			used: a.used + b.used - 1,
			split: a.rows
		};
	out.total.set(a.total);
	out.order.set(a.order);
	out.rank.set(a.rank);
	out.x.set(a.x);
	for (let i = 1; i < over.n; i++) {
		const to = i + tree.shift;
		out.total[to] = b.total[i];
		out.x[to] = b.x[i];
		out.rank[to] = b.rank[i] < 0 ? -1 : b.rank[i] + a.used - 1;
	}
	for (let q = 1; q < b.used; q++) out.order[q + a.used - 1] = b.order[q] + tree.shift;
	for (let row = 2; row <= b.rows; row++) out.start.push(b.start[row] + a.used - 1);
	out.rows = out.start.length - 1;
	// Rows without a value are left out of the lower half: the levels of the upper half follow what is left.
	for (let q = a.used; q < out.used; q++) {
		const node = out.order[q];
		tree.level[node] = over.level[node - tree.shift] + a.rows - 1;
	}
	return out;
}
