// browser.mjs - a small TAP harness: one page of Chromium over file://, everything it says and asks for is kept.

import { createRequire } from 'node:module';
import { join } from 'node:path';

const FLAGS = [
	'--no-sandbox',
	'--disable-gpu',
	'--disable-quic',
	'--no-first-run',
	'--disable-background-networking',
	'--disable-component-update',
	'--disable-sync'
];

const MARK = 'mark of the harness';

const tests = [];

export function test(name, body, options = {}) {
	tests.push({ name, body, options });
}

export function equal(got, want, what) {
	const a = JSON.stringify(got),
		b = JSON.stringify(want);
	if (a !== b) throw new Error(`${what || 'value'}: got ${a}, expected ${b}`);
}

export function ok(value, what) {
	if (!value) throw new Error(what);
}

export function pageFile(shape) {
	return 'file://' + join(process.env.PAGES, shape + '.html');
}

// Open a page of the fixture and wait until it has drawn itself.
export async function open(page, shape, hash = '') {
	await page.goto('about:blank');
	await page.goto(pageFile(shape) + hash);
	await page.waitForFunction(() => window.mew && window.mew.ready, null, { timeout: 60000 });
}

// The case that most tests look at.
export const INFLATE = '#case=codec%2Finflate%2Fcase%3A1';

export const state = (page) => page.evaluate(() => window.mew.state());
export const focused = (page) => page.evaluate(() => window.mew.nameOf(window.mew.state().focus));
export const zoomed = (page) => page.evaluate(() => window.mew.nameOf(window.mew.state().zoom));

// The middle of a frame of a row, in coordinates of the window, at a share of the width.
export function point(page, level, share = 0.5) {
	return page.evaluate(
		([row, at]) => {
			const box = document.getElementById('canvas').getBoundingClientRect();
			return [box.left + box.width * at, box.top + row * 20 + 9];
		},
		[level, share]
	);
}

export const text = (page, selector) => page.textContent(selector);

// What a page says may be slower than an answer to the test: a mark said after all else tells that all is heard.
export async function hear(page) {
	const mark = page.waitForEvent('console', (message) => message.text() === MARK);
	await page.evaluate((text) => console.debug(text), MARK);
	await mark;
}

// Reading pixels back is what the tests do, not the page.
const isOurs = (message) => message.includes('willReadFrequently') || message === MARK;

async function runOne(browser, { body, options }) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options }),
		page = await context.newPage(),
		noise = [];
	page.on('console', (message) => isOurs(message.text()) || noise.push(message.type() + ': ' + message.text()));
	page.on('pageerror', (error) => noise.push('error: ' + error.message));
	page.on('request', (request) => {
		if (!/^(file:|data:|about:)/.test(request.url())) noise.push('request: ' + request.url());
	});
	try {
		await body(page, noise);
		await hear(page);
		if (noise.length) throw new Error('the page said ' + noise.join('; '));
	} finally {
		await context.close();
	}
}

// Run all tests by `one`, which throws where a test fails; prints TAP.
export async function report(one) {
	let failed = 0;
	console.log('1..' + tests.length);
	for (const [i, each] of tests.entries()) {
		try {
			await one(each);
			console.log(`ok ${i + 1} - ${each.name}`);
		} catch (error) {
			failed++;
			console.log(`not ok ${i + 1} - ${each.name}`);
			for (const line of String(error.stack).split('\n')) console.log('# ' + line);
		}
	}
	process.exitCode = failed ? 1 : 0;
}

export async function run() {
	const { chromium } = createRequire(process.env.PLAYWRIGHT_DIR + '/')('playwright-core'),
		browser = await chromium.launch({ executablePath: process.env.CHROMIUM, headless: true, args: FLAGS });
	await report((one) => runOne(browser, one));
	await browser.close();
}
