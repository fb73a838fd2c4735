// tree.js - unpacking the data, call trees in columns, their layout and sums by function.

const lines = document.getElementById('mew-data').textContent.trim().split('\n');

async function unpack(line) {
	const bytes = await window.mew.unpack(lines[line], 'deflate');
	lines[line] = '';
	return bytes;
}

// Little-endian base-128 numbers; beyond 31 bits by multiplication, exact up to 2^53.
function reader(bytes) {
	let at = 0;
	return () => {
		let byte = bytes[at++],
			value = byte & 127,
			factor = 128;
		while (byte > 127) {
			byte = bytes[at++];
			value += (byte & 127) * factor;
			factor *= 128;
		}
		return value;
	};
}

// Node 0 is the root; a parent always has a smaller number than its children. `key` is function * 2 + inlined.
function newTree(n, metrics) {
	const ints = () => new Int32Array(n);
	return {
		n,
		first: ints(),
		next: ints(),
		parent: ints(),
		key: ints(),
		line: ints(),
		level: ints(),
		self: Array.from({ length: metrics }, () => new Float64Array(n)),
		totals: [],
		inverted: null,
		deepest: 0
	};
}

// The samples of a thread as they were taken: the frame where each ends, and its weight.
function readSamples(next) {
	const number = next(),
		n = next(),
		leaf = new Int32Array(n),
		weight = new Float64Array(n);
	for (let i = 0, at = 0; i < n; i++) {
		const code = next();
		leaf[i] = at += code & 1 ? -(code + 1) / 2 : code / 2;
	}
	for (let i = 0; i < n; i++) weight[i] = next();
	return { number, leaf, weight };
}

// Lists of children in the order of their numbers, made from their parents.
function linkChildren({ n, first, next, parent }) {
	for (let i = n - 1; i > 0; i--) {
		next[i] = first[parent[i]];
		first[parent[i]] = i;
	}
}

function readTree(bytes, kind) {
	const next = reader(bytes),
		n = next() + 1,
		tree = newTree(n, next());
	const at = [0];
	for (let i = 1, level = 0; i < n; i++) {
		level = level + 1 - next();
		const parent = at[level - 1];
		at[level] = i;
		tree.level[i] = level;
		tree.parent[i] = parent;
		if (level > tree.deepest) tree.deepest = level;
	}
	linkChildren(tree);
	for (let i = 1; i < n; i++) tree.key[i] = next();
	for (let i = 1; i < n; i++) {
		const code = next(),
			distance = code & 1 ? code >> 1 : -(code >> 1);
		if (code) tree.line[i] = report.functions.line[tree.key[i] >> 1] + distance;
	}
	for (const self of tree.self) for (let i = 1; i < n; i++) self[i] = next();
	tree.key[0] = -2;
	if (kind === 'cpu') tree.samples = Array.from({ length: next() }, () => readSamples(next));
	return tree;
}

function totalsOf(tree, metric) {
	if (!tree.totals[metric]) {
		const total = (tree.totals[metric] = tree.self[metric].slice());
		for (let i = tree.n - 1; i > 0; i--) total[tree.parent[i]] += total[i];
	}
	return tree.totals[metric];
}

// How siblings stand; null leaves them as they are.
function orderOf(tree, total) {
	if (shown.order === 'value') return (a, b) => total[b] - total[a] || a - b;
	if (shown.order !== 'name') return null;
	const rank = nameRanks(),
		{ key } = tree;
	return (a, b) => rank[key[a] >> 1] - rank[key[b] >> 1] || a - b;
}

// Most frames have few children: these are put in place without the cost of a call of sort.
function sortFew(list, compare) {
	if (list.length > 12) return list.sort(compare);
	for (let i = 1; i < list.length; i++) {
		const one = list[i];
		let at = i;
		for (; at && compare(list[at - 1], one) > 0; at--) list[at] = list[at - 1];
		list[at] = one;
	}
	return list;
}

/*
 * Where each frame lies: `order` holds the nodes row by row from left to right, `start[l]` says where row l begins,
 * `x` is the left edge in units of the metric. In a row the edges ascend, so that drawing can search instead of scan.
 * Frames are visited with all that is below them, as they lie in memory: row by row each step would miss the cache.
 */
function layOut(tree, metric) {
	const total = totalsOf(tree, metric),
		{ n, first, next, level } = tree,
		rank = new Int32Array(n).fill(-1),
		x = new Float64Array(n),
		start = new Array(tree.deepest + 2).fill(0),
		compare = orderOf(tree, total);
	for (let i = 0; i < n; i++) if (!i || total[i] > 0) start[level[i] + 1]++;
	while (!start[start.length - 1]) start.pop();
	start.forEach((_, l) => l && (start[l] += start[l - 1]));
	const rows = start.length - 1,
		used = start[rows],
		order = new Int32Array(used),
		free = start.slice(),
		kids = [],
		stack = [0];
	while (stack.length) {
		const node = stack.pop();
		let left = x[node];
		rank[node] = free[level[node]]++;
		order[rank[node]] = node;
		kids.length = 0;
		for (let c = first[node]; c; c = next[c]) if (total[c] > 0) kids.push(c);
		if (compare) sortFew(kids, compare);
		for (const kid of kids) {
			x[kid] = left;
			left += total[kid];
		}
		while (kids.length) stack.push(kids.pop());
	}
	return { total, order, rank, x, start, used, rows, split: rows };
}

// Open-addressed map from (parent, key, line) to a child, for building a tree whose size is not known.
function childMap() {
	let slots = new Int32Array(1 << 12),
		used = 0;
	const parents = [0],
		keys = [-2],
		lines = [0];
	const slotOf = (parent, key, line) => {
		let s =
			(Math.imul(parent, 0x9e3779b1) ^ Math.imul(key, 0x85ebca6b) ^ Math.imul(line, 0xc2b2ae35)) >>>
			0;
		for (s = (s ^ (s >>> 15)) & (slots.length - 1); slots[s]; s = (s + 1) & (slots.length - 1)) {
			const node = slots[s];
			if (parents[node] === parent && keys[node] === key && lines[node] === line) break;
		}
		return s;
	};
	const grow = () => {
		slots = new Int32Array(slots.length * 4);
		for (let node = 1; node < keys.length; node++)
			slots[slotOf(parents[node], keys[node], lines[node])] = node;
	};
	const child = (parent, key, line) => {
		const s = slotOf(parent, key, line);
		if (slots[s]) return slots[s];
		const node = keys.push(key) - 1;
		parents.push(parent);
		lines.push(line);
		slots[s] = node;
		if (++used * 2 > slots.length) grow();
		return node;
	};
	return { child, parents, keys, lines };
}

// Self and total of each function; a recursive function's total counts its outermost frames only.
function sumFunctions(tree, metric, functions) {
	const total = totalsOf(tree, metric),
		self = tree.self[metric];
	const sums = { self: new Float64Array(functions), total: new Float64Array(functions) };
	const active = new Int32Array(functions),
		stack = [];
	for (let i = 1; i < tree.n; i++) {
		const f = tree.key[i] >> 1;
		while (stack.length >= tree.level[i]) active[stack.pop()]--;
		stack.push(f);
		sums.self[f] += self[i];
		if (active[f]++ === 0) sums.total[f] += total[i];
	}
	return sums;
}
