// pages.mjs - the page around the graphs: overview, failures, names, policy, themes, sizes of window.

import { INFLATE, equal, hear, ok, open, pageFile, state, test, text } from './browser.mjs';

test('every page opens from a file, in silence and without a request', async (page) => {
	for (const shape of ['codec', 'hostile', 'empty', 'large']) await open(page, shape);
});

test('the overview lists every case with its figures', async (page) => {
	await open(page, 'codec');
	equal(await page.locator('#cases tbody tr').count(), 8, 'rows');
	const row = await text(page, '#cases tbody tr:nth-child(2)');
	for (const part of [
		'codec/inflate [64k]',
		'151.2',
		'µs',
		'150.6 – 152.3',
		'copy_match',
		'21.4',
		'±1.3',
		'12,000'
	]) {
		ok(row.includes(part), `the row lacks ${part}: ${row}`);
	}
	ok((await text(page, '#machine')).includes('AMD EPYC 7B13'), 'the machine is named');
	ok((await text(page, '.grade')).includes('B'), 'the grade is shown');
});

test('failed cases show their reason, absent figures a dash with theirs', async (page) => {
	await open(page, 'codec');
	const failed = page.locator('#cases tbody tr:nth-child(7) .bad');
	equal(await failed.count(), 1, 'one reason for three kinds that failed alike');
	ok((await failed.textContent()).includes('the decoder returned -3'), 'the reason is there');
	const dash = page.locator('#cases tbody tr:nth-child(8) td.none').first();
	equal(await dash.textContent(), '–');
	equal(await dash.getAttribute('title'), 'not measured in this run');
	await page.click('text=codec/truncated');
	ok(
		(await text(page, '#notes')).includes('MEW_E_BODY: the decoder returned -3'),
		'the page of the case says it too'
	);
	ok((await text(page, '#notes pre')).includes('invalid distance'), 'what it printed is there');
});

test('the overview sorts both ways, rows without the figure last', async (page) => {
	await open(page, 'codec');
	const medians = () => page.$$eval('#cases tbody tr', (rows) => rows.map((row) => row.cells[0].textContent));
	await page.click('#cases thead button:has-text("Median")');
	equal((await medians()).slice(0, 2), ['codec/inflate [1M]', 'codec/inflate [64k]'], 'descending');
	equal((await medians()).slice(6), ['codec/truncated', 'codec/early_break'], 'failed ones last');
	await page.click('#cases thead button:has-text("Median")');
	equal((await medians())[0], 'codec/crc32', 'ascending');
	equal((await medians()).slice(6), ['codec/truncated', 'codec/early_break'], 'failed ones last again');
	equal(await page.getAttribute('#cases th:has-text("Median")', 'aria-sort'), 'ascending');
});

test('a click opens a case, "back" returns', async (page) => {
	await open(page, 'codec');
	await page.click('#cases tbody tr:nth-child(2) td:nth-child(3)');
	await page.waitForFunction(() => window.mew.state().total > 0);
	equal((await state(page)).case, 'codec/inflate/case:1');
	await page.waitForFunction(() => location.hash.includes('case=codec%2Finflate%2Fcase%3A1')); // after the first picture
	await page.goBack();
	await page.waitForFunction(() => window.mew.state().case === null);
	ok(await page.isVisible('#cases'), 'the overview is back');
});

test('doubts are told: few samples, cut stacks, what was not measured', async (page) => {
	await open(page, 'codec', '#case=codec%2Fcrc32&kind=cpu');
	const notes = await text(page, '#notes');
	for (const part of [
		'Only 60 samples',
		'3 (5.00',
		'stacks were cut',
		'Not measured: cpu time (the case pauses'
	]) {
		ok(notes.includes(part), `the notes lack ${part}: ${notes}`);
	}
	equal(await page.locator('#notes details:not([open]) summary:has-text("15 figures not measured")').count(), 1, 'folded');
	await open(page, 'codec', '#case=codec%2Fcrc32&kind=time');
	ok((await text(page, '#notes')).includes('Less than 20 times an empty loop'), 'a loop too short to trust');
});

test('a recorded program has no loop and no iterations', async (page) => {
	await open(page, 'recorded');
	const said = await page.$eval('#overview', (box) =>
		[box.textContent, ...[...box.querySelectorAll('[title]')].map((node) => node.title)].join(' ')
	);
	equal(said.match(/\bloop\b|\/iter|iteration|\bcases?\b/i), null, 'the overview');
	equal(await text(page, '#title'), 'bench_codec');
	ok((await text(page, '#legend')).includes('Every figure is of whole programs.'), 'what the figures are of');
	ok((await text(page, '#cases thead')).includes('Allocations'), 'a count of the whole');
	for (const kind of ['cpu', 'memory']) {
		await open(page, 'recorded', '#case=bench_codec%2F2&kind=' + kind);
		equal((await text(page, '#case')).match(/\bloop\b|\/iter/), null, kind);
		equal((await text(page, '#details')).includes('Per iteration'), false, kind);
	}
	await open(page, 'recorded', '#case=bench_codec%2F2&kind=cpu');
	ok((await text(page, '#notes')).includes('Record for longer or shorten --cpu=INTERVAL'), 'the remedy');
});

test('of very many cases the first are shown, and more when asked; sorting and links are about all', async (page) => {
	await open(page, 'many');
	const rows = () => page.locator('#cases tbody tr').count();
	equal(await rows(), 1000, 'rows');
	equal(await text(page, '.more'), 'The first 1,000 of 5,000 are shown: show more');
	await page.click('#cases thead button:has-text("Median")');
	ok((await text(page, '#cases tbody tr:nth-child(1)')).includes('many/0004999'), 'the slowest of all');
	for (const want of [2000, 4000, 5000]) {
		await page.click('.more');
		equal(await rows(), want, 'rows after a click');
	}
	equal(await page.locator('.more').count(), 0, 'nothing left to show');
	await open(page, 'many', '#case=many%2F0003000');
	equal((await state(page)).case, 'many/0003000');
	equal(await page.$eval('#which', (box) => [box.length, box.selectedOptions[0].textContent]), [1000, 'many/0003000']);
	await page.keyboard.press(']');
	await page.waitForFunction(() => window.mew.state().case === 'many/0003001');
});

test('hostile names are text and nothing else', async (page) => {
	await open(page, 'hostile');
	const clean = () =>
		page.evaluate(() => ({
			broken: window.broken,
			images: document.images.length,
			scripts: document.scripts.length,
			bold: [...document.querySelectorAll('b')].filter((b) => b.textContent === 'lib').length
		}));
	const want = { images: 0, scripts: 4, bold: 0 };
	equal(await clean(), want);
	ok((await text(page, '#cases')).includes('</script><script>window.broken=2</script>'), 'the name is shown');
	ok((await text(page, '#cases')).includes('<img src=x onerror='), 'the label and the reason too');
	await page.click('#cases tbody tr:nth-child(1) a');
	await page.waitForFunction(() => window.mew.state().total > 0);
	const shown = new Set();
	await page.focus('#graph');
	for (let i = 0; i < 14; i++) {
		await page.keyboard.press('ArrowDown');
		shown.add(await text(page, '#details h2'));
	}
	equal(shown.size >= 11, true, 'all names were visited: ' + shown.size);
	for (const name of shown)
		ok(
			!/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name),
			'no control character is shown: ' + JSON.stringify(name)
		);
	ok(
		[...shown].some((name) => name.includes('\ufffd')),
		'broken UTF-8 is a sign'
	);
	ok(
		[...shown].some((name) => name.includes('測試 🐈 été')),
		'other scripts are themselves'
	);
	for (const view of ['callers', 'table']) await page.evaluate((v) => window.mew.change({ view: v }), view);
	await page.fill('#query', '<img');
	await page.fill('#query', '__proto__');
	ok((await text(page, '#table tbody')).includes('__proto__'), 'found in the table');
	equal(await clean(), want, 'after all views');
});

test('a name of a megabyte neither breaks the page nor the graph', async (page) => {
	await open(page, 'hostile');
	await page.click('#cases tbody tr:nth-child(1) a');
	await page.fill('#query', 'nnnnnnnn');
	await page.focus('#graph');
	await page.keyboard.press('n');
	equal((await text(page, '#details h2')).length, 1000000);
	const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
	ok(over <= 0, 'the page is ' + over + ' pixels too wide');
	ok((await text(page, '#live')).length < 2000, 'short where it is spoken');
	await page.keyboard.press('t');
	await page.waitForSelector('#table tbody tr:not(.gap)');
	ok((await text(page, '#table tbody')).length < 10000, 'and in the table');
});

test('the policy refuses other scripts and every request', async (page, noise) => {
	await open(page, 'codec');
	const got = await page.evaluate(async () => {
		const script = document.createElement('script');
		script.textContent = 'window.broken = 5';
		document.body.append(script);
		return [
			window.broken === undefined,
			await fetch('data:text/plain,x').then(
				() => 'fetched',
				() => 'refused'
			)
		];
	});
	equal(got, [true, 'refused']);
	await hear(page);
	ok(noise.length >= 2 && noise.every((line) => line.includes('Content Security Policy')), noise.join());
	noise.length = 0;
});

const luminance = (page) =>
	page.evaluate(() => {
		window.mew.draw();
		const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number),
			canvas = document.getElementById('canvas');
		const pixel = canvas
			.getContext('2d')
			.getImageData(Math.round(canvas.width / 2), canvas.height - 3, 1, 1).data;
		return [r + g + b > 382, pixel[0] + pixel[1] + pixel[2] > 382];
	});

test('light is light', async (page) => {
	await open(page, 'codec', INFLATE);
	equal(await luminance(page), [true, true]);
});

test(
	'dark follows the system, the button changes it and it stays',
	async (page) => {
		await open(page, 'codec', INFLATE);
		equal(await luminance(page), [false, false], 'dark page and canvas');
		await page.keyboard.press('d');
		await page.keyboard.press('d');
		equal(await luminance(page), [true, true], 'light by choice');
		await open(page, 'codec', INFLATE);
		equal(await luminance(page), [true, true], 'the choice is kept');
	},
	{ colorScheme: 'dark' }
);

test('text on frames and page has contrast in both themes', async (page) => {
	await open(page, 'codec', INFLATE);
	for (const theme of ['dark', 'light']) {
		await page.keyboard.press('d');
		const worst = await page.evaluate(() => {
			const level = (rgb) =>
				rgb
					.map((v) => v / 255)
					.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
					.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
			const ratio = (a, b) =>
				(Math.max(level(a), level(b)) + 0.05) / (Math.min(level(a), level(b)) + 0.05);
			const css = (node, name) =>
				getComputedStyle(node)[name].match(/\d+/g).slice(0, 3).map(Number);
			const paper = css(document.body, 'backgroundColor'),
				ink = css(document.body, 'color');
			let least = Math.min(
				ratio(ink, paper),
				ratio(css(document.querySelector('#details dt'), 'color'), paper),
				ratio(
					css(document.querySelector('.notes'), 'color'),
					css(document.querySelector('.notes'), 'backgroundColor')
				)
			);
			window.mew.draw();
			const canvas = document.getElementById('canvas'),
				pen = canvas.getContext('2d');
			for (let row = 0; row < 8; row++) {
				const data = pen.getImageData(2, row * 20 + 2, canvas.width / 2, 1).data;
				for (let i = 0; i < data.length; i += 40)
					least = Math.min(least, ratio(ink, [data[i], data[i + 1], data[i + 2]]));
			}
			return least;
		});
		ok(worst >= 4.5, `${theme}: ${worst.toFixed(2)}`);
	}
});

test(
	'a narrow window has no sideways scroll',
	async (page) => {
		for (const hash of ['', INFLATE, INFLATE + '&view=table', INFLATE + '&kind=time']) {
			await open(page, 'codec', hash);
			const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
			ok(over <= 0, `${hash}: ${over} pixels too wide`);
		}
	},
	{ viewport: { width: 400, height: 800 } }
);

test('a long name of a case pushes no figure out of the window', async (page) => {
	await page.addInitScript(() => {
		const parse = JSON.parse;
		JSON.parse = (source) => {
			const head = parse(source);
			for (const c of head.cases) c.key = 'a_name_without_an_end_'.repeat(5) + c.key;
			return head;
		};
	});
	for (const shape of ['codec', 'compared']) {
		await open(page, shape);
		const over = await page.$eval('#cases', (box) => box.scrollWidth - box.clientWidth);
		ok(over <= 0, `${shape}: the table is ${over} pixels too wide`);
	}
	const [name, title, height] = await page.$eval('#cases tbody th', (cell) => [cell.textContent, cell.title, cell.offsetHeight]);
	ok(/^a_name.*….*\[1k\]$/.test(name), 'both ends of the name: ' + name);
	ok(title.includes('a_name_without_an_end_'.repeat(5) + 'codec/inflate/case:0 [1k] in'), 'the whole of it: ' + title);
	ok(height < 130, 'a few lines: ' + height);
});

test('the keys are listed, the list closes by Escape', async (page) => {
	await open(page, 'codec', INFLATE);
	await page.keyboard.press('?');
	ok(await page.isVisible('#keys'), 'shown');
	await page.keyboard.press('Escape');
	ok(!(await page.isVisible('#keys')), 'closed');
	equal((await state(page)).case, 'codec/inflate/case:1');
});

test('a page of another schema refuses politely', async (page) => {
	await page.addInitScript(() => {
		const parse = JSON.parse;
		JSON.parse = (source) => Object.assign(parse(source), { schema: 99 });
	});
	await page.goto(pageFile('codec'));
	await page.waitForFunction(() => document.getElementById('loading').textContent.includes('schema 99'));
	ok(await page.isVisible('#loading'), 'the sentence is shown');
});
