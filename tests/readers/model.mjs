// model.mjs - what a saved result says about its stacks, worked out from the file alone: the other side of each check.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const METRICS = ['peak_bytes', 'cumulative_bytes', 'allocations', 'net_bytes'];

export function load(path) {
	return JSON.parse(readFileSync(path, 'utf8'));
}

// The innermost function of a stack; null where it has no name.
function leaf(model, stack) {
	const frames = stack === null ? [] : model.stacks[stack];
	if (!frames.length) return null;
	const lines = model.locations[frames[0]].lines;
	return lines.length ? model.functions[lines[0][0]].name : null;
}

function addTo(sums, name, value) {
	if (value) sums.set(name, (sums.get(name) || 0) + value);
}

// Sums by innermost function of [stack, value] pairs: { total, self: Map }, null standing for places without a name.
function sum(model, pairs) {
	const self = new Map();
	let total = 0;
	for (const [stack, value] of pairs) {
		addTo(self, leaf(model, stack), value);
		total += value;
	}
	return { total, self };
}

// Per case: cpu sums of all threads and of each, memory sums of each metric. Cases without stacks are left out.
export function expected(model) {
	return model.cases
		.map((one) => {
			const s = one.samples || { stack: [], thread: [], weight_ns: [] },
				rows = s.stack.map((stack, i) => ({ stack, thread: s.thread[i], weight: s.weight_ns[i] })),
				threads = [...new Set(s.thread)].sort((a, b) => a - b),
				pairs = (list) => sum(model, list.map((row) => [row.stack, row.weight]));
			return {
				key: one.key,
				cpu: pairs(rows),
				threads: threads.map((t) => pairs(rows.filter((row) => row.thread === t))),
				memory: METRICS.map((metric, k) => sum(model, one.heap_stacks.map((row) => [row[0], row[k + 1]])))
			};
		})
		.filter((one) => one.threads.length || one.memory[1].total);
}

// The same result with names that readers could trip over, given to its functions, modules and cases in turn.
export function hostile(path) {
	const names = [
			'</script><script>alert(1)</script>',
			'line\nend\r\t;\u0001\u007f',
			'"quote\\back\u2028',
			' ',
			'\u65e5\u672c\u8a9e \ud83d\udc26',
			'__proto__',
			'x'.repeat(100000)
		],
		model = load(path),
		to = join(process.env.WORK, 'hostile.mew.json');
	let n = 0;
	for (const one of [...model.functions, ...model.modules.map((m) => ({ set name(v) { m.path = '/' + v; } }))])
		one.name = names[n++ % names.length];
	for (const one of model.cases) one.label = names[n++ % names.length];
	writeFileSync(to, JSON.stringify(model));
	return to;
}
