// tree.js - unpacking the data, call trees in columns, their layout, inversion and sums by function.

const lines = document.getElementById('mew-data').textContent.trim().split('\n');

async function unpack(line) {
	const text = atob(lines[line]);
	const packed = new Uint8Array(text.length);
	for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
	lines[line] = '';
	return new Uint8Array(await new Response(stream).arrayBuffer());
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

function readTree(bytes) {
	const next = reader(bytes),
		n = next() + 1,
		tree = newTree(n, next());
	const at = [0],
		last = new Int32Array(n);
	for (let i = 1, level = 0; i < n; i++) {
		level = level + 1 - next();
		const parent = at[level - 1];
		at[level] = i;
		tree.level[i] = level;
		tree.parent[i] = parent;
		if (last[parent]) tree.next[last[parent]] = i;
		else tree.first[parent] = i;
		last[parent] = i;
		if (level > tree.deepest) tree.deepest = level;
	}
	for (let i = 1; i < n; i++) tree.key[i] = next();
	for (let i = 1; i < n; i++) {
		const code = next(),
			distance = code & 1 ? code >> 1 : -(code >> 1);
		if (code) tree.line[i] = report.functions.line[tree.key[i] >> 1] + distance;
	}
	for (const self of tree.self) for (let i = 1; i < n; i++) self[i] = next();
	tree.key[0] = -2;
	return tree;
}

function totalsOf(tree, metric) {
	if (!tree.totals[metric]) {
		const total = (tree.totals[metric] = tree.self[metric].slice());
		for (let i = tree.n - 1; i > 0; i--) total[tree.parent[i]] += total[i];
	}
	return tree.totals[metric];
}

function sortedChildren(tree, total, node) {
	const kids = [];
	for (let c = tree.first[node]; c; c = tree.next[c]) if (total[c] > 0) kids.push(c);
	if (kids.length > 1) kids.sort((a, b) => total[b] - total[a] || a - b);
	return kids;
}

/*
 * Where each frame lies: `order` holds the nodes row by row from left to right, `start[l]` says where row l begins,
 * `x` is the left edge in units of the metric. In a row the edges ascend, so that drawing can search instead of scan.
 */
function layOut(tree, metric) {
	const total = totalsOf(tree, metric),
		order = new Int32Array(tree.n),
		rank = new Int32Array(tree.n).fill(-1);
	const x = new Float64Array(tree.n),
		start = [0];
	let used = 1;
	rank[0] = 0;
	for (let from = 0; from < used;) {
		const to = used;
		for (; from < to; from++) {
			const node = order[from];
			let left = x[node];
			for (const kid of sortedChildren(tree, total, node)) {
				x[kid] = left;
				left += total[kid];
				rank[kid] = used;
				order[used++] = kid;
			}
		}
		start.push(to);
	}
	return { total, order, rank, x, start, used, rows: start.length - 1 };
}

// Open-addressed map from (parent, key) to a child, for building a tree whose size is not known.
function childMap() {
	let slots = new Int32Array(1 << 12),
		used = 0;
	const parents = [0],
		keys = [-2];
	const slotOf = (parent, key) => {
		let s = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(key, 0x85ebca6b)) >>> 0;
		for (s = (s ^ (s >>> 15)) & (slots.length - 1); slots[s]; s = (s + 1) & (slots.length - 1)) {
			const node = slots[s];
			if (parents[node] === parent && keys[node] === key) break;
		}
		return s;
	};
	const grow = () => {
		slots = new Int32Array(slots.length * 4);
		for (let node = 1; node < keys.length; node++) slots[slotOf(parents[node], keys[node])] = node;
	};
	const child = (parent, key) => {
		const s = slotOf(parent, key);
		if (slots[s]) return slots[s];
		const node = keys.push(key) - 1;
		parents.push(parent);
		slots[s] = node;
		if (++used * 2 > slots.length) grow();
		return node;
	};
	return { child, parents, keys };
}

// The tree read from the leaves: below each function its callers. Every metric moves to the far end of its path.
function invert(tree) {
	if (tree.inverted) return tree.inverted;
	const map = childMap(),
		ends = new Int32Array(tree.n);
	for (let i = 1; i < tree.n; i++) {
		if (!tree.self.some((self) => self[i] > 0)) continue;
		let node = 0;
		for (let up = i; up; up = tree.parent[up]) node = map.child(node, tree.key[up]);
		ends[i] = node;
	}
	const out = newTree(map.keys.length, tree.self.length);
	out.key.set(map.keys);
	out.parent.set(map.parents);
	for (let i = out.n - 1; i > 0; i--) {
		out.next[i] = out.first[out.parent[i]];
		out.first[out.parent[i]] = i;
	}
	for (let i = 1; i < out.n; i++) {
		out.level[i] = out.level[out.parent[i]] + 1;
		if (out.level[i] > out.deepest) out.deepest = out.level[i];
	}
	tree.self.forEach((self, m) => {
		for (let i = 1; i < tree.n; i++) if (ends[i]) out.self[m][ends[i]] += self[i];
	});
	tree.inverted = out;
	return out;
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
