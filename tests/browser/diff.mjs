// diff.mjs - two results in one page: figures side by side, the union of two trees, what is beyond the error.

import { INFLATE, equal, ok, open, state, test, text } from './browser.mjs';

// Change of the widest frame of a function.
const change = (page, name) =>
	page.evaluate((wanted) => {
		window.mew.search('/^' + wanted + '$/');
		window.mew.step(1);
		return window.mew.changeOf(window.mew.state().focus);
	}, name);

test('the overview has base, head and ratio, and says which cases are alone', async (page) => {
	await open(page, 'compared');
	const cells = (n) => page.$$eval(`#cases tbody tr:nth-child(${n}) td`, (all) => all.map((x) => x.textContent));
	const row = await cells(2);
	equal(row.length, 12, 'three columns for each of four figures');
	equal(row.slice(0, 3), ['181.5µs', '151.2µs', '▼ ×0.833'], 'time');
	equal((await cells(4))[2], '×1.000', 'what is equal is not marked');
	equal((await cells(6)).slice(0, 3), ['–', '61.80ns', '–'], 'a case without a base');
	ok((await text(page, '#legend')).includes('codec/retired'), 'a case of the base alone');
	await page.click('#cases thead button >> nth=5');
	equal(await page.getAttribute('#cases th:has-text("Ratio") >> nth=1', 'aria-sort'), 'descending', 'sortable');
});

test('trees are one, per iteration, with change, new and gone', async (page) => {
	await open(page, 'compared', INFLATE);
	let now = await state(page);
	ok(now.compared, 'compared without asking');
	ok(Math.abs(now.total - 151220.7) < 200, 'the width is time per iteration: ' + now.total);
	await page.evaluate(() => window.mew.draw());
	now = await state(page);
	ok(now.drawn.hatched > 0, 'new frames are hatched');
	const all = await page.evaluate(() => window.mew.changeOf(0));
	ok(all.sure && Math.abs(all.now / all.was - 1 / 1.2) < 0.001, JSON.stringify(all));
	ok((await change(page, 'arena_grow')).isNew, 'new');
	equal((await page.$$eval('#notes summary', (x) => x.map((y) => y.textContent))).slice(0, 2), [
		'1 function vanished',
		'1 function new'
	]);
	await page.click('#notes summary >> nth=0');
	ok((await text(page, '#notes details >> nth=0')).includes('arena_grow_by_page'), 'it is named');
	await page.selectOption('#width', '1');
	await page.waitForFunction((was) => window.mew.state().total > was * 1.1, now.total);
	ok((await change(page, 'arena_grow_by_page')).gone, 'by the width of the base what is gone has a place');
	const base = (await state(page)).total;
	await page.selectOption('#width', '2');
	await page.waitForFunction((was) => window.mew.state().total > was, base);
});

test('a small difference of counts is within the error, memory is exact', async (page) => {
	await open(page, 'compared', '#case=codec%2Fhuffman_build');
	const marks = await page.evaluate(() => {
		let sure = 0;
		for (let i = 0; i < window.mew.state().frames; i++) {
			const one = window.mew.changeOf(i);
			if (one.sure && !one.isNew && !one.gone) sure++;
		}
		return sure;
	});
	equal(marks, 0, 'equal runs have no mark');
	await page.keyboard.press('k');
	await page.waitForFunction(() => window.mew.state().kind === 'memory' && window.mew.state().compared);
	await page.waitForFunction(() => {
		const peak = window.mew.state().kind === 'memory' && window.mew.state().frames && window.mew.changeOf(0);
		return peak && peak.sure && peak.now < peak.was;
	});
});

test('orange is more and blue is less, with a sign, in both themes', async (page) => {
	await open(page, 'compared', INFLATE + '&kind=memory&width=2');
	const hues = () =>
		page.evaluate(() => {
			window.mew.draw();
			const canvas = document.getElementById('canvas'),
				data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data,
				seen = { orange: 0, blue: 0 };
			for (let i = 0; i < data.length; i += 4) {
				if (data[i] - data[i + 2] > 50) seen.orange++;
				if (data[i + 2] - data[i] > 50) seen.blue++;
			}
			return seen;
		});
	for (const theme of ['dark', 'light']) {
		await page.keyboard.press('d');
		const seen = await hues();
		ok(seen.orange > 200 && seen.blue > 200, theme + ' ' + JSON.stringify(seen));
	}
	ok((await text(page, '#details')).includes('−11'), 'the sign is text');
});

test('views, filters and the table work on two results; v shows the head alone', async (page) => {
	await open(page, 'compared', INFLATE);
	const { total } = await state(page);
	for (const key of ['b', 's', 'g']) {
		await page.keyboard.press(key);
		await page.waitForFunction(() => window.mew.state().total > 0);
		await page.evaluate(() => window.mew.draw());
		ok((await state(page)).drawn.frames > 3, key);
	}
	equal((await state(page)).total, total);
	await page.keyboard.press('t');
	await page.waitForSelector('#table th:has-text("Self before")');
	await page.fill('#query', 'arena_grow_by_page');
	const row = await text(page, '#table tbody tr:not(.gap)');
	ok(row.includes('gone'), row);
	await page.fill('#query', '');
	await page.click('#views >> text=Flame graph');
	await page.click('#compare');
	await page.waitForFunction(() => !window.mew.state().compared);
	ok((await state(page)).total > 1e9, 'all the sampled time');
	await page.waitForFunction(() => location.hash.includes('compare=0'));
});

test('a case of the base belongs to one of the head: of a program of its name, else the first', async (page) => {
	await open(page, 'paired');
	const compared = [];
	for (let at = 0; at < 4; at++) {
		await page.evaluate((i) => window.mew.open(i, {}), at);
		const { total } = await state(page);
		equal(total, 1010, 'the tree of case ' + at);
		compared.push((await state(page)).compared);
	}
	equal(compared, [false, true, true, false]);
});

test('a case without a base is shown alone', async (page) => {
	await open(page, 'compared', '#case=codec%2Freader%2Fnext');
	ok(!(await state(page)).compared, 'not compared');
	ok(!(await page.isVisible('#compare')), 'and nothing to choose');
});
