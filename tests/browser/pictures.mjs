// pictures.mjs - pictures of all views in Chromium, and what it shares with Firefox about the keyboard.

import { INFLATE, equal, ok, open, test, text } from './browser.mjs';
import { walkControls } from './keyboard.mjs';
import { takeAll } from './shots.mjs';

test('Tab reaches every control, each has a name', async (page) => {
	for (const [shape, hash] of [
		['codec', ''],
		['codec', INFLATE + '&filter=recursion:'],
		['codec', INFLATE + '&view=table'],
		['codec', INFLATE + '&kind=memory'],
		['compared', INFLATE]
	]) {
		await open(page, shape, hash);
		const { count, missed, nameless } = await walkControls(
			(key) => page.keyboard.press(key),
			(body) => page.evaluate(body)
		);
		equal([missed, nameless], [[], []], shape + hash);
		ok(count > 5, hash + ' has controls: ' + count);
	}
});

test('a wide window has the tools in one line and no scroll bar, with two results too', async (page) => {
	await page.setViewportSize({ width: 1600, height: 900 });
	for (const shape of ['codec', 'compared']) {
		await open(page, shape, INFLATE);
		const [tools, over] = await page.evaluate(() => [
			document.getElementById('tools').offsetHeight,
			document.documentElement.scrollHeight - innerHeight
		]);
		ok(tools < 50, `${shape}: the tools are ${tools} pixels high`);
		ok(over <= 0, `${shape}: ${over} pixels too high`);
	}
});

test('a window of 1280 pixels has room for the first table', async (page) => {
	await open(page, 'codec');
	const over = await page.evaluate(() => {
		const box = document.getElementById('cases');
		return box.scrollWidth - box.clientWidth;
	});
	ok(over <= 0, `${over} pixels are out of sight`);
});

test('a narrow window keeps the search and the names of functions in sight', async (page) => {
	await page.setViewportSize({ width: 400, height: 800 });
	await open(page, 'large', '#case=large&search=module7');
	const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
	ok(over <= 0, `the page is ${over} pixels too wide`);
	await open(page, 'codec', INFLATE + '&view=table');
	for (const left of [0, 1e6]) {
		const room = await page.evaluate((to) => {
			const box = document.getElementById('table');
			box.scrollLeft = to;
			const name = box.querySelector('td.main').getBoundingClientRect(),
				edge = box.getBoundingClientRect();
			return Math.min(name.left - edge.left, edge.right - name.right);
		}, left);
		ok(room >= 0, `at ${left} a name is ${-room} pixels out of sight`);
	}
});

test('a result without a case says so', async (page) => {
	await open(page, 'empty');
	ok((await text(page, '#cases')).includes('No case was measured'), 'a sentence instead of a table');
});

test('pictures are taken of each view, wide and narrow, light and dark', async (page) => {
	await takeAll(
		'chromium',
		async (shape, hash, width, theme) => {
			await page.setViewportSize({ width, height: 900 });
			await page.emulateMedia({ colorScheme: theme });
			await open(page, shape, hash);
			await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
		},
		() => page.screenshot()
	);
});
