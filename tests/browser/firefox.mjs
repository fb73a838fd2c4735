// firefox.mjs - the report in Firefox, by real keys and pointer: what depends on the browser and not on the data.

import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { INFLATE, equal, focused, ok, pageFile, point, report, state, test, zoomed } from './browser.mjs';
import { walkControls } from './keyboard.mjs';
import { openWindow } from './page.mjs';
import { takeAll } from './shots.mjs';


const text = (page, selector) => page.evaluate((wanted) => document.querySelector(wanted).textContent, selector);
const isReady = () => window.mew && window.mew.ready && !document.getElementById('loading').checkVisibility();

async function open(page, shape, hash = '') {
	await page.goto('about:blank'); // an address that differs in its fragment alone would not be read anew
	await page.goto(pageFile(shape) + hash);
	await page.waitFor(isReady);
}

const change = (page, what) => page.evaluate((wanted) => window.mew.change(wanted), what);
const until = (page, what) =>
	page.waitFor((wanted) => {
		const now = window.mew.state();
		return Object.entries(wanted).every(([name, value]) => now[name] === value);
	}, what, JSON.stringify(what));

// How many colours the canvas has: one is blank.
const colours = (page) =>
	page.evaluate(() => {
		window.mew.draw();
		const canvas = document.getElementById('canvas'),
			{ data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
		return new Set(new Uint32Array(data.buffer)).size;
	});

test('every page opens from a file, unpacked by the browser, in silence and without a request', async (page) => {
	for (const shape of ['codec', 'hostile', 'empty', 'large', 'compared', 'source']) await open(page, shape);
	equal(await page.evaluate(() => [location.protocol, typeof DecompressionStream]), ['file:', 'function']);
	equal(await page.evaluate(() => performance.getEntriesByType('resource').length), 0, 'resources');
});

test('what a page says and asks for is heard', async (page) => {
	await open(page, 'codec');
	await page.evaluate(() => {
		console.warn('said');
		setTimeout(() => {
			throw new Error('thrown');
		});
		return new Promise((done) => setTimeout(done, 300));
	});
	const heard = (await page.noise()).join('\n');
	ok(heard.includes('said') && heard.includes('thrown'), 'heard: ' + heard);
});

test('the policy refuses other scripts and every request', async (page) => {
	await open(page, 'codec');
	const got = await page.evaluate(async () => {
		const script = document.createElement('script');
		script.textContent = 'window.broken = 5';
		document.body.append(script);
		const image = new Image();
		image.src = 'http://127.0.0.1:9/picture.png';
		document.body.append(image);
		return [
			window.broken === undefined,
			await window.fetch('http://127.0.0.1:9/').then(
				() => 'fetched',
				() => 'refused'
			)
		];
	});
	equal(got, [true, 'refused']);
	const heard = await page.noise();
	equal(
		heard.filter((line) => line.startsWith('request: ')),
		[],
		'no request'
	);
	ok(heard.length >= 3 && heard.every((line) => /Content.Security.Policy/.test(line)), heard.join('; '));
});

test('the overview has a row and a plot of the samples for each case', async (page) => {
	await open(page, 'codec');
	equal(await page.evaluate(() => document.querySelectorAll('#cases tbody tr').length), 8, 'rows');
	await page.waitFor(() => document.querySelectorAll('#cases .dist .mid').length >= 6, null, 'plots');
	ok((await text(page, '#cases tbody tr:nth-child(2)')).includes('150.6 – 152.3'), 'the interval');
	await page.click('#cases tbody tr:nth-child(2) td:nth-child(3)');
	await until(page, { case: 'codec/inflate/case:1' });
	// The address has its step after the first picture: going back before would leave the page.
	await page.waitFor(() => location.hash.includes('codec%2Finflate%2Fcase%3A1'), null, 'the address');
	await page.back();
	await until(page, { case: null });
});

test('every kind and every view draws', async (page) => {
	await open(page, 'codec', INFLATE);
	for (const kind of ['cpu', 'memory']) {
		for (const view of ['graph', 'callers', 'sandwich']) {
			await change(page, { kind, view, metric: 0 });
			const seen = await colours(page),
				{ drawn } = await state(page);
			ok(seen > 30 && drawn.frames > 10 && drawn.texts > 3, `${kind} ${view}: ${seen} colours, ${JSON.stringify(drawn)}`);
		}
		await change(page, { view: 'table' });
		ok((await page.evaluate(() => document.querySelectorAll('#table tbody tr').length)) > 10, kind + ' has rows');
	}
	await change(page, { kind: 'time', view: 'graph', metric: 0 });
	await page.waitFor(() => {
		const canvas = document.querySelector('#plot canvas');
		return canvas && canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v > 0);
	}, null, 'the samples');
	await change(page, { kind: 'cpu', order: 'time' });
	ok((await colours(page)) > 30, 'in time order');
	await change(page, { order: 'value', paint: 'inline' });
	ok((await colours(page)) > 3, 'by inlining');
});

test('zoom by click, Enter, Escape and 0', async (page) => {
	await open(page, 'codec', INFLATE);
	await page.clickAt(...(await point(page, 3, 0.3)));
	equal(await zoomed(page), 'stream_process', 'click');
	await page.press('ArrowDown');
	await page.press('Enter');
	equal(await zoomed(page), 'min_size', 'Enter');
	await page.press('Escape');
	equal(await zoomed(page), 'stream_process', 'Escape');
	await page.press('0');
	equal((await state(page)).zoom, 0, '0');
});

test('Ctrl and the wheel zoom at the pointer, a drag pans', async (page) => {
	await open(page, 'codec', INFLATE);
	const at = await point(page, 3, 0.25);
	await page.wheel(...at, -400, 'Control');
	await page.waitFor(() => window.mew.state().window[1] < 0.5, null, 'zoomed');
	const [from, part] = (await state(page)).window;
	ok(Math.abs(from + part * 0.25 - 0.25) < 0.01, 'what is below the pointer stays: ' + [from, part]);
	await page.drag(at, [at[0] + 60, at[1]]);
	const now = await state(page);
	ok(now.window[0] < from && now.zoom === 0, 'panned, and no click: ' + now.window);
});

test('a search has a share, hits, a place in the address; n steps through them', async (page) => {
	await open(page, 'codec', INFLATE);
	await page.press('/');
	await page.type('copy_match');
	const now = await state(page);
	ok(now.hits > 5 && now.share > 0.05 && now.share < 0.3, JSON.stringify(now));
	await page.press('Enter');
	equal(await focused(page), 'copy_match');
	ok((await text(page, '#found')).endsWith('1/' + now.hits), await text(page, '#found'));
	await page.waitFor(() => location.hash.includes('search=copy_match'), null, 'the address');
	await page.press('Escape');
	equal((await state(page)).hits, 0, 'Escape takes it away');
});

test('hits narrower than a pixel are marked', async (page) => {
	await open(page, 'large', '#case=large');
	const marked = () =>
		page.evaluate(() => {
			window.mew.draw();
			const canvas = document.getElementById('canvas'),
				{ data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
			let count = 0;
			for (let i = 0; i < data.length; i += 4) if (data[i] > 200 && data[i + 1] < 160 && data[i + 2] > 150) count++;
			return count;
		});
	equal(await marked(), 0);
	await page.evaluate(() => window.mew.search('/do_work_\\d*777\\b/'));
	ok((await marked()) > 19, 'a column of pixels');
});

test('m takes the next weight and keeps the zoom; k the next kind', async (page) => {
	await open(page, 'codec', INFLATE + '&kind=memory');
	await page.clickAt(...(await point(page, 2, 0.1)));
	const { zoom, total } = await state(page);
	ok(zoom > 0, 'zoomed');
	await page.press('m');
	await until(page, { weight: 'bytes' });
	equal((await state(page)).zoom, zoom);
	ok((await state(page)).total > total, 'more bytes in all than at the peak');
	await page.press('k');
	await until(page, { kind: 'time' });
});

test('focus, hide and fold by keys are chips, u undoes them', async (page) => {
	await open(page, 'codec', INFLATE);
	const { total } = await state(page);
	await page.evaluate(() => {
		window.mew.search('/^crc_update$/');
		window.mew.step(1);
	});
	for (const [key, chip] of [
		['f', 'only through crc_update'],
		['h', 'without crc_update'],
		['x', 'folded crc_update']
	]) {
		await page.evaluate(() => document.getElementById('graph').focus());
		if (!(await state(page)).focus) await page.press('n');
		await page.press(key);
		await until(page, { filters: 1 });
		ok((await text(page, '#chips')).startsWith(chip), await text(page, '#chips'));
		await page.press('u');
		await until(page, { filters: 0 });
	}
	equal((await state(page)).total, total);
});

test('two results: change, new, gone, and each alone', async (page) => {
	await open(page, 'compared', INFLATE);
	const now = await state(page);
	ok(now.compared && (await colours(page)) > 30, 'drawn');
	ok((await state(page)).drawn.hatched > 0, 'new frames are hatched');
	ok((await text(page, '#notes')).includes('1 function vanished'), 'what is gone');
	await page.press('v');
	await until(page, { compared: false });
	await open(page, 'compared');
	equal(await text(page, '#cases tbody tr:nth-child(2) td:nth-child(4)'), '▼ ×0.833');
});

test('dark follows the system, d changes it and it stays', async (page) => {
	const light = () =>
		page.evaluate(() => {
			window.mew.draw();
			const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number),
				canvas = document.getElementById('canvas'),
				{ data } = canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height - 3, 1, 1);
			return [r + g + b > 382, data[0] + data[1] + data[2] > 382];
		});
	await open(page, 'codec', INFLATE);
	equal(await light(), [true, true], 'light');
	await page.scheme('dark');
	await page.waitFor(() => window.mew.state().dark, null, 'dark');
	equal(await light(), [false, false], 'dark page and canvas');
	await page.press('d');
	await page.press('d');
	equal(await light(), [true, true], 'light by choice');
	await open(page, 'codec', INFLATE);
	equal(await light(), [true, true], 'the choice is kept');
	await page.press('d');
	await page.scheme('light');
	await page.waitFor(() => !window.mew.state().dark, null, 'light again');
});

test('Tab reaches every control, each has a name', async (page) => {
	for (const hash of ['', INFLATE + '&filter=recursion:', INFLATE + '&view=table', INFLATE + '&kind=memory']) {
		await open(page, 'codec', hash);
		const { count, missed, nameless } = await walkControls(page.press, page.evaluate);
		equal([missed, nameless], [[], []], hash);
		ok(count > 5, hash + ' has controls: ' + count);
	}
});

test('arrow keys walk the tree and the frame is spoken', async (page) => {
	await open(page, 'codec', INFLATE);
	await page.evaluate(() => document.getElementById('graph').focus());
	for (let i = 0; i < 5; i++) await page.press('ArrowDown');
	equal(await focused(page), 'inflate_block');
	ok((await text(page, '#live')).startsWith('inflate_block, 1.042'), await text(page, '#live'));
	await page.press('i');
	await until(page, { flame: true });
	await page.press('ArrowDown');
	equal(await focused(page), 'min_size', 'turned over, down is the parent');
});

test('hostile names are text and nothing else, in every view', async (page) => {
	await open(page, 'hostile');
	const clean = () =>
		page.evaluate(() => [
			window.broken === undefined,
			document.images.length,
			document.scripts.length,
			document.querySelectorAll('#cases b, #details b').length
		]);
	const want = await clean();
	equal(want.slice(0, 3), [true, 0, 4]);
	await page.click('#cases tbody tr:nth-child(1) a');
	await page.waitFor(() => window.mew.state().total > 0);
	await page.evaluate(() => document.getElementById('graph').focus());
	const shown = new Set();
	for (let i = 0; i < 14; i++) {
		await page.press('ArrowDown');
		shown.add(await text(page, '#details h2'));
	}
	ok(shown.size >= 11, 'all names were visited: ' + shown.size);
	for (const name of shown) ok(!/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name), JSON.stringify(name));
	ok([...shown].some((name) => name.length === 1000000), 'a name of a megabyte is whole in the details');
	ok((await text(page, '#live')).length < 2000, 'and short where it is spoken');
	for (const view of ['callers', 'sandwich', 'table', 'graph']) await change(page, { view });
	equal((await clean()).slice(0, 3), [true, 0, 4]);
	const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
	ok(over <= 0, over + ' pixels too wide');
});

test('the view is saved, and what is hostile is text in the picture too', async (page) => {
	await open(page, 'hostile');
	await page.click('#cases tbody tr:nth-child(1) a');
	await page.waitFor(() => window.mew.state().total > 0);
	const folder = join(page.firefox.home, 'downloads');
	const files = [];
	for (const [what, suffix] of [
		['SVG picture', 'svg'],
		['PNG picture', 'png'],
		['Folded stacks', 'folded']
	]) {
		const name = await page.evaluate((wanted) => {
			const box = document.getElementById('export');
			box.value = wanted;
			box.dispatchEvent(new Event('change'));
			return new Promise((done) => setTimeout(() => done(document.getElementById('live').textContent), 500));
		}, what);
		const file = join(folder, name.replace('Saved as ', ''));
		ok(file.endsWith('.' + suffix), name);
		// the name is taken at once, by an empty file; what arrives stands beside it until it is whole
		const arrived = () => existsSync(file) && statSync(file).size > 0 && !readdirSync(folder).some((one) => one.endsWith('.part'));
		for (let i = 0; i < 600 && !arrived(); i++) await new Promise((done) => setTimeout(done, 100));
		files.push(readFileSync(file));
	}
	const bad = await page.evaluate((source) => {
		const svg = new DOMParser().parseFromString(source, 'image/svg+xml');
		return [svg.querySelectorAll('parsererror, img, script, b').length, svg.querySelectorAll('rect').length > 5];
	}, String(files[0]));
	equal(bad, [0, true], 'the SVG');
	equal(files[1].subarray(1, 4).toString(), 'PNG');
	ok(String(files[2]).split('\n').length > 5, 'stacks');
});

test('a narrow window has no sideways scroll', async (page) => {
	await page.resize(500, 800); // the narrowest that its window gets
	try {
		for (const hash of ['', INFLATE, INFLATE + '&view=table', INFLATE + '&kind=time']) {
			await open(page, 'codec', hash);
			const [over, width] = await page.evaluate(() => [document.documentElement.scrollWidth - innerWidth, innerWidth]);
			ok(over <= 0 && width < 700, `${hash}: ${over} pixels too wide at ${width}`);
		}
	} finally {
		await page.resize(1280, 800);
	}
});

test('pictures are taken of each view, wide and narrow, light and dark', async (page) => {
	let seen = '';
	await takeAll(
		'firefox',
		async (shape, hash, width, theme) => {
			if (seen !== width + theme) {
				await page.resize(width, 900);
				await page.scheme(theme);
				seen = width + theme;
			}
			await open(page, shape, hash);
			await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
		},
		page.screenshot
	);
});

let page;
try {
	page = await openWindow();
	await page.resize(1280, 800);
	await report(async ({ body }) => {
		try {
			await body(page);
			const noise = await page.noise();
			if (noise.length) throw new Error('the page said ' + noise.join('; '));
		} finally {
			await page.noise();
		}
	});
} catch (error) {
	console.log('Bail out! ' + error.message.replace(/\s+/g, ' '));
	process.exitCode = 1;
} finally {
	if (page) await page.stop();
}
