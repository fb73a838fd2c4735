// views.mjs - sandwich, orders, threads, filters, colours, exports, the curve of the heap, and links to all of them.

import { readFileSync } from 'node:fs';

import { INFLATE, equal, ok, open, state, test, text } from './browser.mjs';

const until = (page, name, value) => page.waitForFunction(([k, v]) => window.mew.state()[k] === v, [name, value]);

// Names of the frames of a row of pixels, from left to right.
const row = (page, y) =>
	page.evaluate((at) => {
		const names = [];
		for (let x = 1; x < document.getElementById('canvas').clientWidth; x += 2) {
			const node = window.mew.pick(x, at),
				name = node < 0 ? '' : window.mew.nameOf(node);
			if (name !== names[names.length - 1]) names.push(name);
		}
		return names.filter(Boolean);
	}, y);

async function totalOf(page, name) {
	await page.fill('#query', `/^${name}$/`);
	const { share, total } = await state(page);
	await page.fill('#query', '');
	return share * total;
}

test('a sandwich has the callers above and the calls below, as wide as the function', async (page) => {
	await open(page, 'codec', INFLATE);
	const total = await totalOf(page, 'copy_match');
	await page.evaluate(() => window.mew.change({ view: 'sandwich', middle: 'copy_match' }));
	await until(page, 'view', 'sandwich');
	const now = await state(page);
	ok(Math.abs(now.total / total - 1) < 1e-6, `${now.total} of ${total}`);
	const levels = await page.evaluate(() => {
		const height = document.getElementById('canvas').clientHeight;
		let at = -1;
		for (let y = 9; y < height; y += 20) if (window.mew.pick(3, y) === 0) at = y;
		return at;
	});
	ok(levels > 20, 'rows above the function: ' + levels);
	equal(await row(page, levels), ['copy_match']);
	const callers = await row(page, levels - 20),
		calls = await row(page, levels + 20);
	ok(callers.includes('string_append'), callers.join());
	ok(calls.includes('reader_next') && !callers.includes('reader_next'), calls.join());
	await page.focus('#graph');
	await page.keyboard.press('ArrowUp');
	ok(callers.includes(await text(page, '#details h2')), 'up is a caller');
	await page.keyboard.press('ArrowDown');
	equal(await text(page, '#details h2'), 'copy_match', 'down again');
	await page.keyboard.press('ArrowDown');
	ok(calls.includes(await text(page, '#details h2')), 'and down is a call');
	await page.keyboard.press('Enter');
	equal((await row(page, levels - 20)).length, callers.length, 'a zoom below leaves the callers as they are');
});

test('a sandwich is of all functions of the name', async (page) => {
	await open(page, 'twins', '#case=twin%2Fsame_name&kind=memory');
	equal(await row(page, 2 * 20 + 9), ['work'], 'two of one name side by side');
	await page.evaluate(() => window.mew.zoom(window.mew.pick(3, 2 * 20 + 9)));
	await page.focus('#graph');
	await page.keyboard.press('s');
	await until(page, 'view', 'sandwich');
	equal((await state(page)).total, 1010, 'the bytes of both');
	equal(await row(page, 9), ['from_a', 'from_b'], 'the callers of both');
	await page.evaluate(() => window.mew.change({ middle: '__proto__' }));
	ok((await text(page, '#empty')).includes('no such function'), 'and not what every object has');
});

test('frames stand by value, by name, or in the order they were taken', async (page) => {
	await open(page, 'codec', '#case=codec%2Finflate%2Fcase%3A0');
	const { total } = await state(page);
	await page.selectOption('#order', 'name');
	await until(page, 'order', 'name');
	const named = await row(page, 6 * 20 + 9);
	equal(named, [...named].sort(), 'by name');
	equal((await state(page)).total, total);
	await page.selectOption('#order', 'time');
	await until(page, 'order', 'time');
	const now = await state(page);
	ok(now.frames > 2000, 'samples that are alike stand apart: ' + now.frames);
	equal(now.total, total, 'the same time');
	const holes = await page.evaluate(() => {
		window.mew.draw();
		const canvas = document.getElementById('canvas'),
			data = canvas.getContext('2d').getImageData(0, 30, canvas.width, 1).data,
			paper = getComputedStyle(document.body).backgroundColor;
		let blank = 0;
		for (let i = 0; i < data.length; i += 4) blank += `rgb(${data[i]}, ${data[i + 1]}, ${data[i + 2]})` === paper;
		return blank / canvas.width;
	});
	ok(holes < 0.05, 'a narrow frame hides no wide one behind it: ' + holes);
	await page.keyboard.press('b');
	await until(page, 'order', 'value');
});

test('threads: each its own frame in time order, and one by choice', async (page) => {
	await open(page, 'codec', INFLATE + '&order=time');
	equal(await row(page, 29), ['thread 0', 'thread 1', 'thread 2']);
	const { total } = await state(page);
	await page.selectOption('#thread', '1');
	await page.waitForFunction((was) => window.mew.state().total < was / 2, total);
	ok((await text(page, '#thread option:checked')).includes('4,000 samples'), 'counted');
	await page.selectOption('#order', 'value');
	await until(page, 'order', 'value');
	ok((await state(page)).total < total / 2, 'the merged tree is of the thread too');
	await page.selectOption('#thread', '-1');
	await page.waitForFunction((was) => window.mew.state().total === was, total);
});

test('focus, hide and fold are chips; folding keeps the total', async (page) => {
	await open(page, 'codec', INFLATE);
	const { total } = await state(page),
		part = await totalOf(page, 'crc_update');
	const pick = async (name) => {
		await page.fill('#query', `/^${name}$/`);
		await page.focus('#graph');
		await page.keyboard.press('n');
	};
	await pick('crc_update');
	await page.keyboard.press('f');
	await until(page, 'filters', 1);
	ok(Math.abs((await state(page)).total / part - 1) < 1e-6, 'only stacks through it');
	equal(await text(page, '#chips'), 'only through crc_update ✕');
	await page.click('#chips button');
	await until(page, 'filters', 0);
	equal((await state(page)).total, total, 'the chip takes it back');
	await pick('crc_update');
	await page.keyboard.press('h');
	await until(page, 'filters', 1);
	ok(Math.abs((await state(page)).total / (total - part) - 1) < 1e-6, 'all others');
	await page.keyboard.press('u');
	await until(page, 'filters', 0);
	await pick('load_le32');
	await page.keyboard.press('x');
	await until(page, 'filters', 1);
	equal((await state(page)).total, total, 'folding keeps the cost');
	equal((await state(page)).hits, 0, 'but no frame');
	await page.keyboard.press('u');
	await page.evaluate(() => window.mew.change({ filters: [['module', 'bench_codec']] }));
	await page.fill('#query', 'mew_body');
	equal((await state(page)).hits, 0, 'a module as a whole');
});

test('filters that leave nothing say so', async (page) => {
	await open(page, 'codec', INFLATE + '&filter=hide:mew_body_codec/hide:%5Bno%20stack%5D');
	ok((await text(page, '#empty')).includes('take one away'), 'a sentence');
	await page.click('#chips button >> nth=0');
	await page.waitForFunction(() => window.mew.state().total > 0);
});

test('colours tell inlined frames', async (page) => {
	await open(page, 'codec', INFLATE);
	const pixel = () =>
		page.evaluate(() => {
			window.mew.draw();
			const canvas = document.getElementById('canvas'),
				at = (y) => [...canvas.getContext('2d').getImageData(canvas.width - 60, y, 1, 1).data].slice(0, 3);
			return [at(3 * 20 + 2), at(4 * 20 + 2)];
		});
	await page.selectOption('#paint', 'inline');
	await page.waitForFunction(() => location.hash.includes('paint=inline'));
	const [plain, inlined] = await pixel();
	ok(Math.max(...plain) - Math.min(...plain) < 12, 'grey ' + plain);
	ok(Math.max(...inlined) - Math.min(...inlined) > 12, 'coloured ' + inlined);
});

test('the live heap after each iteration is a curve', async (page) => {
	await open(page, 'codec', INFLATE + '&kind=memory');
	ok((await text(page, '#curve figcaption')).includes('(100)'), 'as many iterations as ran');
	const inked = await page.evaluate(async () => {
		await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		const canvas = document.querySelector('#curve canvas');
		return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v > 0);
	});
	ok(inked, 'something is drawn');
	await page.keyboard.press('k');
	await until(page, 'kind', 'time');
	equal(await page.locator('#curve canvas').count(), 0, 'of the memory alone');
});

async function exported(page, name) {
	const [download] = await Promise.all([page.waitForEvent('download'), page.selectOption('#export', name)]);
	return [download.suggestedFilename(), readFileSync(await download.path())];
}

test('the view is saved as folded stacks, SVG, PNG and columns', async (page) => {
	await open(page, 'codec', INFLATE);
	const { total } = await state(page);
	const [name, folded] = await exported(page, 'Folded stacks');
	equal(name, 'codec-inflate-64k--cpu.folded');
	const lines = String(folded).trim().split('\n');
	ok(lines.every((line) => /^[^;]+(;[^;]+)* \d+$/.test(line)), 'one stack a line');
	equal(
		lines.reduce((sum, line) => sum + +line.slice(line.lastIndexOf(' ')), 0),
		total
	);
	const svg = String((await exported(page, 'SVG picture'))[1]);
	const shapes = await page.evaluate((source) => {
		const svg = new DOMParser().parseFromString(source, 'image/svg+xml');
		return [svg.querySelectorAll('parsererror').length, svg.querySelectorAll('rect').length, svg.documentElement.textContent];
	}, svg);
	equal(shapes[0], 0, 'well formed');
	ok(shapes[1] > 50 && shapes[2].includes('mew_body_codec'), 'frames and names');
	const [, png] = await exported(page, 'PNG picture');
	equal(png.subarray(1, 4).toString(), 'PNG');
	const columns = JSON.parse(String((await exported(page, 'Columns (JSON)'))[1]));
	equal(columns.case, 'codec/inflate/case:1');
	equal(
		columns.frames.self[0].reduce((a, b) => a + b, 0),
		total
	);
	equal(columns.functions.name[columns.frames.function[columns.frames.parent.indexOf(0, 1)]] !== undefined, true);
});

test('hostile names are text in a picture too', async (page) => {
	await open(page, 'hostile');
	await page.click('#cases tbody tr:nth-child(1) a');
	await page.waitForFunction(() => window.mew.state().total > 0);
	const bad = await page.evaluate(() => {
		const svg = new DOMParser().parseFromString(window.mew.svg(), 'image/svg+xml');
		return svg.querySelectorAll('parsererror, img, script, b').length;
	});
	equal(bad, 0);
});

test('a link restores view, order, colours, thread and filters', async (page) => {
	await open(page, 'codec', INFLATE + '&order=name&paint=inline&thread=2');
	await page.evaluate(() => window.mew.change({ filters: [['hide', 'crc_update'], ['recursion', '']] }));
	await page.waitForFunction(() => location.hash.includes('filter='));
	const before = await state(page),
		hash = await page.evaluate(() => location.hash);
	await open(page, 'codec', hash);
	const after = await state(page);
	for (const key of ['view', 'order', 'filters', 'total', 'frames']) equal(after[key], before[key], key);
	equal(await page.inputValue('#thread'), '2');
	equal(await page.inputValue('#paint'), 'inline');
	await open(page, 'codec', INFLATE + '&filter=constructor:x/focus&order=toString&width=9');
	equal([(await state(page)).order, (await state(page)).width], ['value', 0], 'what it does not know it leaves');
	await open(page, 'codec', INFLATE + '&view=sandwich&of=no_such_function');
	ok((await text(page, '#empty')).includes('no such function'), 'a name that is not there');
});

test('without DecompressionStream the page unpacks itself', async (page) => {
	await page.addInitScript(() => {
		delete window.DecompressionStream;
		delete Uint8Array.fromBase64;
	});
	for (const shape of ['codec', 'large', 'compared']) await open(page, shape);
	await open(page, 'codec', INFLATE);
	ok((await state(page)).total > 1e9, 'and its data');
	equal(await page.evaluate(() => typeof DecompressionStream), 'undefined');
});
