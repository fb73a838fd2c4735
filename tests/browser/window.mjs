// window.mjs - the part in sight: wheel, drag, keys, map, the smallest frames; and the plots of the overview.

import { INFLATE, equal, ok, open, state, test } from './browser.mjs';

const near = (a, b, by, what) => ok(Math.abs(a - b) <= by, `${what}: ${a}, expected ${b}`);

// Where on the whole, from 0 to 1, a pixel of the graph lies.
const placeAt = (part, [from, size]) => from + part * size;

test('Ctrl and the wheel zoom at the pointer, and back out to the whole', async (page) => {
	await open(page, 'codec', INFLATE);
	const box = await page.locator('#canvas').boundingBox();
	await page.mouse.move(box.x + box.width * 0.25, box.y + 70);
	await page.keyboard.down('Control');
	await page.mouse.wheel(0, -400);
	await page.waitForFunction(() => window.mew.state().window[1] < 0.5);
	const { window: seen, zoom } = await state(page);
	equal(zoom, 0, 'no frame is zoomed to');
	near(placeAt(0.25, seen), 0.25, 0.002, 'what is below the pointer stays there');
	await page.mouse.wheel(0, 2000);
	await page.keyboard.up('Control');
	await page.waitForFunction(() => window.mew.state().window[1] === 1);
});

test('backing out of a zoomed frame by the wheel reaches its callers', async (page) => {
	await open(page, 'codec', INFLATE);
	const deep = await page.evaluate(() => {
		let node = -1;
		for (let x = 0; node < 1; x += 5) node = window.mew.pick(x, 130);
		window.mew.zoom(node);
		return window.mew.state().zoom;
	});
	ok(deep > 0, 'a frame is zoomed to');
	const box = await page.locator('#canvas').boundingBox();
	await page.mouse.move(box.x + 50, box.y + 30);
	await page.keyboard.down('Control');
	await page.mouse.wheel(0, 900);
	await page.keyboard.up('Control');
	await page.waitForFunction(() => window.mew.state().zoom === 0);
});

test('a drag pans and zooms to no frame; a click still does', async (page) => {
	await open(page, 'codec', INFLATE + '&window=0.2,0.4');
	near((await state(page)).window[0], 0.2, 1e-6, 'the link restores it');
	const box = await page.locator('#canvas').boundingBox(),
		y = box.y + 30;
	await page.mouse.move(box.x + 300, y);
	await page.mouse.down();
	await page.mouse.move(box.x + 200, y, { steps: 4 });
	await page.mouse.up();
	const { window: seen, zoom } = await state(page);
	near(seen[0], 0.2 + (0.4 * 100) / box.width, 0.002, 'by the way of the pointer');
	equal([seen[1].toFixed(6), zoom], ['0.400000', 0], 'as wide as before');
	await page.mouse.click(box.x + 300, y);
	ok((await state(page)).zoom > 0, 'a click zooms');
	equal((await state(page)).window, [0, 1], 'to the whole frame');
});

test('+ and - zoom at the frame in focus', async (page) => {
	await open(page, 'codec', INFLATE);
	await page.focus('#graph');
	await page.keyboard.press('+');
	await page.keyboard.press('+');
	near((await state(page)).window[1], 0.25, 1e-6, 'twice by two');
	for (let i = 0; i < 3; i++) await page.keyboard.press('-');
	equal((await state(page)).window, [0, 1], 'the whole');
});

// Columns of the map that have the colour of hits.
const ticks = (page) =>
	page.evaluate(async () => {
		await new Promise((done) => setTimeout(done, 150));
		const map = document.getElementById('map'),
			{ data } = map.getContext('2d').getImageData(0, map.height - 1, map.width, 1),
			found = [];
		for (let x = 0; x < map.width; x++)
			if (data[x * 4] > 200 && data[x * 4 + 1] < 150 && data[x * 4 + 2] > 120) found.push(x / map.width);
		return found;
	});

test('the map has a tick for each hit, wherever the graph is', async (page) => {
	await open(page, 'codec', INFLATE + '&window=0.9,0.05');
	equal((await ticks(page)).length, 0, 'no search, no tick');
	const { hits } = await page.evaluate(() => window.mew.search('arena_grow'));
	const all = await ticks(page);
	ok(hits > 3 && all.length >= 2, `${hits} hits, ticks at ${all}`);
	ok(Math.min(...all) < 0.9, 'hits out of sight have ticks too');
});

test('a drag on the map chooses what is in sight, a click moves it', async (page) => {
	await open(page, 'codec', INFLATE);
	const box = await page.locator('#map').boundingBox(),
		y = box.y + 10;
	await page.mouse.move(box.x + box.width * 0.5, y);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * 0.25, y);
	await page.mouse.up();
	const first = (await state(page)).window;
	near(first[0], 0.25, 0.005, 'begins');
	near(first[1], 0.25, 0.005, 'wide');
	await page.mouse.click(box.x + box.width * 0.75, y);
	const { window: moved } = await state(page);
	near(moved[0] + moved[1] / 2, 0.75, 0.005, 'middle');
	near(moved[1], first[1], 0.001, 'as wide as before');
});

test('small frames are left out, their cost is with their callers', async (page) => {
	await open(page, 'codec', INFLATE);
	const { total, frames } = await state(page);
	await page.selectOption('#least', '5');
	await page.waitForFunction((was) => window.mew.state().frames < was, frames);
	const now = await state(page);
	equal(now.total, total, 'the total stays');
	ok(now.frames > 5 && now.frames <= 60, 'frames: ' + now.frames);
	await page.keyboard.press('t');
	await page.waitForFunction(() => window.mew.state().view === 'table');
	const shares = await page.$$eval('#table tbody tr:not(.gap)', (rows) => rows.map((row) => parseFloat(row.cells[3].textContent)));
	ok(shares.length > 3 && Math.min(...shares) >= 5, 'functions: ' + shares);
	await page.waitForFunction(() => location.hash.includes('least=5')); // the address follows a little later
});

test('the overview plots how the samples lie', async (page) => {
	await open(page, 'codec');
	const plot = page.locator('#cases tbody tr:nth-child(2) .dist');
	await plot.locator('i').first().waitFor();
	equal(await plot.locator('i').count(), 24);
	equal(await plot.locator('.mid').count(), 1, 'one bar holds the median');
	const heights = await plot.locator('i').evaluateAll((bars) => bars.map((bar) => parseFloat(bar.style.height) || 0));
	equal(Math.max(...heights), 100, 'the most frequent one is full');
	ok(heights.filter((h) => h > 0).length > 12, 'a few slow samples do not press the others into one bar: ' + heights);
	ok(/^600 samples, 97.5.%.within.149.7.–.152.7.µs$/.test(await plot.getAttribute('aria-label')), await plot.getAttribute('aria-label'));
	equal(await page.locator('#cases tbody tr:nth-child(7) .dist').count(), 0, 'a failed case has none');
});

test('a median that is the largest time has its bar too', async (page) => {
	await open(page, 'twins');
	const bars = page.locator('#cases tbody tr:nth-child(1) .dist i');
	await page.waitForFunction(() => document.querySelector('#cases .dist i'));
	equal(await bars.evaluateAll((all) => all.map((i) => +(i.className === 'mid')).join('')), '0'.repeat(23) + '1');
});
