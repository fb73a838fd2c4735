// source.mjs - the pane of source lines: what --embed-source carries is shown beside the frame it belongs to.

import { INFLATE, equal, ok, open, test, text } from './browser.mjs';

async function choose(page, name) {
	await page.fill('#query', `/^${name}$/`);
	await page.focus('#graph');
	await page.keyboard.press('n');
	await page.waitForFunction((wanted) => document.querySelector('#details h2').textContent === wanted, name);
}

test('the line of a frame stands among those around it, as text', async (page) => {
	await open(page, 'source', INFLATE + '&kind=memory');
	await choose(page, 'copy_match');
	await page.locator('.source').waitFor();
	const hot = await text(page, '.source .hot'),
		line = /line (\d+)/.exec(await text(page, '#details dl'))[1];
	equal(hot, `${line.padStart(5)}      text ${line}; </script><b>&amp;`, 'number, tab as spaces, nothing as markup');
	const rows = await page.locator('.source b').count();
	ok(rows >= 9 && rows <= 17, 'up to eight lines on both sides: ' + rows);
	equal(await page.locator('.source b b').count(), 0);
});

test('merged by function, it is the line where the function begins', async (page) => {
	await open(page, 'source', INFLATE);
	await choose(page, 'window_refill');
	await page.locator('.source').waitFor();
	const [, line] = /inflate\.c:(\d+)/.exec(await text(page, '#details dl'));
	equal((await text(page, '.source .hot')).trim().split(/\s+/)[0], line);
});

test('a file that was not there has no pane', async (page) => {
	await open(page, 'source', INFLATE);
	await choose(page, '_int_malloc');
	await page.waitForTimeout(300);
	equal(await page.locator('.source').count(), 0);
});
