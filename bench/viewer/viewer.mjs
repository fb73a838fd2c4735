// viewer.mjs - open, zoom, reset and search of the HTML report and of d3-flame-graph, in turn, with one tree.
// Every action is timed alike: from the call to the second animation frame after it, when what was drawn is on screen.

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { loadavg } from 'node:os';
import { join } from 'node:path';

const { chromium } = createRequire(process.env.PLAYWRIGHT_DIR + '/')('playwright-core'),
	{ PAGES, D3_DIR, CHROMIUM } = process.env,
	ROUNDS = +process.argv[2],
	LIMIT = 1000 * (process.env.LIMIT || 240), // of one action; one that takes longer counts as this long, and is marked
	SEARCH = 'Module7';

const module = (path) => readFileSync(join(D3_DIR, 'node_modules', path), 'utf8').replaceAll('</script', '<\\/script');

// The columns that the report exports, as nested objects with inclusive values.
function nested({ functions, frames }) {
	const nodes = frames.parent.map((_, i) => ({
		name: i ? functions.name[frames.function[i]] : 'all',
		value: frames.self[0][i],
		children: []
	}));
	for (let i = nodes.length - 1; i > 0; i--) {
		nodes[frames.parent[i]].value += nodes[i].value;
		nodes[frames.parent[i]].children.push(nodes[i]);
	}
	return nodes[0];
}

function writePeer(tree, name, setting) {
	writeFileSync(
		join(PAGES, name + '.html'),
		`<!doctype html><meta charset="utf-8"><style>${module('d3-flame-graph/dist/d3-flamegraph.css')}</style>
<div id="chart"></div><script>${module('d3/dist/d3.min.js')}</script>
<script>${module('d3-flame-graph/dist/d3-flamegraph.umd.min.js')}</script>
<script>
const make = flamegraph.default || flamegraph;
const chart = make().width(1240).transitionDuration(0)${setting};
d3.select('#chart').datum(${JSON.stringify(tree).replaceAll('<', '\\u003c')}).call(chart);
let heavy = d3.select('#chart').datum();
window.actions = {
	zoom: () => {
		let node = heavy;
		for (let i = 0; i < 4 && node.children; i++) node = node.children.reduce((a, b) => (b.value > a.value ? b : a));
		chart.zoomTo(node);
	},
	reset: () => chart.resetZoom(),
	search: (text) => chart.search(text)
};
window.ready = true;
</script>
`
	);
}

// The same four steps down along the heaviest frames: in the report they stand at the left edge.
const MEW = () => {
	window.actions = {
		zoom: () => window.mew.zoom(window.mew.pick(1, 4 * 20 + 9)),
		reset: () => window.mew.zoom(0),
		search: (text) => window.mew.search(text)
	};
};

const isReady = async () => {
	while (!(window.mew ? window.mew.ready : window.ready)) await new Promise((done) => setTimeout(done, 2));
	await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
	return performance.now();
};

const timed = async ([name, text]) => {
	const start = performance.now();
	window.actions[name](text);
	await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
	return performance.now() - start;
};

const ACTIONS = ['open', 'zoom', 'reset', 'search'],
	cut = new Set(); // names of what did not end in time

function limited(promise) {
	let timer;
	const end = new Promise((done) => (timer = setTimeout(done, LIMIT, null)));
	promise.catch(() => {}); // one that was given up ends with its page
	return Promise.race([promise, end]).finally(() => clearTimeout(timer));
}

// Milliseconds of each action; after one that does not end the page is given up, and the others count as long.
async function measure(browser, name) {
	const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage(),
		isMew = name === 'mew' || name === 'million',
		out = {};
	page.setDefaultTimeout(LIMIT);
	await page.goto('file://' + join(PAGES, name + '.html') + (isMew ? '#case=large' : ''), { waitUntil: 'commit' });
	for (const action of ACTIONS) {
		if (action === 'zoom' && isMew) await page.evaluate(MEW);
		const took = await limited(action === 'open' ? page.evaluate(isReady) : page.evaluate(timed, [action, SEARCH]));
		out[action] = took === null ? LIMIT : took;
		if (took !== null) continue;
		for (const left of ACTIONS.slice(ACTIONS.indexOf(action))) {
			out[left] = LIMIT;
			cut.add(name + ' ' + left);
		}
		break;
	}
	await limited(page.context().close());
	return out;
}

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage();
await page.goto('file://' + join(PAGES, 'mew.html') + '#case=large');
await page.evaluate(isReady);
const tree = nested(JSON.parse(await page.evaluate(() => window.mew.columns())));
await page.close();
writePeer(tree, 'd3', '');
writePeer(tree, 'd3-min2', '.minFrameSize(2)');

const NAMES = ['mew', 'million', 'd3-min2', 'd3'],
	all = Object.fromEntries(NAMES.map((name) => [name, []]));
console.log('load before: ' + loadavg()[0].toFixed(1));
for (let round = 0; round < ROUNDS; round++)
	for (const name of NAMES) all[name].push(await measure(browser, name));
console.log('load after: ' + loadavg()[0].toFixed(1));
await browser.close();

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1],
	best = (name, what) => median(all[name].map((one) => one[what])),
	bytes = (name) => statSync(join(PAGES, name + '.html')).size;
console.log('median of ' + ROUNDS + ' rounds      file KB   open ms   zoom ms  reset ms search ms');
for (const name of NAMES)
	console.log(
		name.padEnd(24) +
			[bytes(name) / 1000, ...ACTIONS.map((what) => best(name, what))]
				.map((v, i) => ((i && cut.has(name + ' ' + ACTIONS[i - 1]) ? '>' : '') + v.toFixed(0)).padStart(10))
				.join('')
	);

// [the peer, what, the goal: at least so many times what mew takes]
const GOALS = [
	['d3', 'open', 20],
	['d3', 'zoom', 40],
	['d3', 'reset', 40],
	['d3-min2', 'open', 2.5],
	['d3-min2', 'reset', 2]
];
const verdict = (ratio, goal, more) => (more ? 'more than ' : '') + ratio.toFixed(1) + ` times mew's (goal ${goal}${ratio < goal ? ', missed' : ''})`;
// Of the rounds, each beside its own: what the machine did meanwhile happened to both.
for (const [peer, what, goal] of GOALS) {
	const ratio = median(all[peer].map((one, i) => one[what] / all.mew[i][what]));
	console.log(`${peer}, ${what}: ` + verdict(ratio, goal, cut.has(peer + ' ' + what)));
}
console.log('d3, file: ' + verdict(bytes('d3') / bytes('mew'), 20));
const growth = median(all.million.map((one, i) => one.open / all.mew[i].open));
console.log(`a million frames open in ${growth.toFixed(2)} times the time of 100,000 (goal 2.5${growth > 2.5 ? ', missed' : ''})`);
