// page.mjs - the one window of a Firefox: pages from files, real keys and pointer, what the page says, pictures.
// Its calls have the names and the meaning of playwright's, so that a reader of one suite can read the other.

import { startFirefox } from './marionette.mjs';

// Code points that WebDriver gives to keys without a character.
const KEYS = {
	Backspace: 0xe003,
	Tab: 0xe004,
	Enter: 0xe007,
	Shift: 0xe008,
	Control: 0xe009,
	Escape: 0xe00c,
	Home: 0xe011,
	ArrowLeft: 0xe012,
	ArrowUp: 0xe013,
	ArrowRight: 0xe014,
	ArrowDown: 0xe015
};
const keyOf = (name) => (KEYS[name] ? String.fromCharCode(KEYS[name]) : name);

// A module of the browser says its name first; what a page says is in quotes or brackets.
const OWN = /^console\.\w+: [A-Z][\w.]*: *$/;

/*
 * In the browser's own context: every request that a page makes is kept, as is each error and warning of the console
 * that comes from a page. What the browser does for itself is not a page's.
 */
const LISTEN = `
	window.mewHeard = [];
	const keep = (subject) => {
		const channel = subject.QueryInterface(Ci.nsIHttpChannel),
			by = channel.loadInfo && channel.loadInfo.loadingPrincipal;
		if (by && !by.isSystemPrincipal) window.mewHeard.push('request: ' + channel.URI.spec);
	};
	Services.obs.addObserver(keep, 'http-on-opening-request');
	Services.console.registerListener((message) => {
		if (
			message instanceof Ci.nsIScriptError &&
			!message.isFromChromeContext &&
			!/^(chrome|resource|jar|moz-extension):/.test(message.sourceName)
		)
			window.mewHeard.push(message.category + ': ' + message.errorMessage);
	});
`;

export async function openWindow() {
	const firefox = await startFirefox(),
		{ send } = firefox;

	// A function with its argument, as text; a promise is waited for.
	const run = async (what, args, context) => {
		if (context) await send('Marionette:SetContext', { value: context });
		try {
			const { value } = await send('WebDriver:ExecuteScript', { script: what, args, newSandbox: false });
			return value;
		} finally {
			if (context) await send('Marionette:SetContext', { value: 'content' });
		}
	};
	const evaluate = (body, arg = null) => run(`return (${body})(arguments[0]);`, [arg]);
	const chrome = (script, arg = null) => run(script, [arg], 'chrome');
	const act = async (...sources) => {
		await send('WebDriver:PerformActions', { actions: sources });
	};
	const keys = (list) => act({ type: 'key', id: 'keys', actions: list });
	const pointer = (list) =>
		act({ type: 'pointer', id: 'mouse', parameters: { pointerType: 'mouse' }, actions: list });
	const move = (x, y) => ({ type: 'pointerMove', x: Math.round(x), y: Math.round(y), origin: 'viewport', duration: 0 });
	const down = { type: 'pointerDown', button: 0 },
		up = { type: 'pointerUp', button: 0 };

	const waitFor = async (body, arg = null, what = '') => {
		for (const end = Date.now() + 60000; Date.now() < end; ) {
			if (await evaluate(body, arg)) return;
			await new Promise((done) => setTimeout(done, 50));
		}
		throw new Error('not within a minute: ' + (what || body));
	};
	const middleOf = (selector) =>
		evaluate((wanted) => {
			const node = document.querySelector(wanted);
			node.scrollIntoView({ block: 'nearest' });
			const box = node.getBoundingClientRect();
			return [box.left + box.width / 2, box.top + box.height / 2];
		}, selector);

	let marks = 0;
	const page = {
		firefox,
		evaluate,
		waitFor,
		async goto(url) {
			await send('WebDriver:Navigate', { url });
		},
		back: () => send('WebDriver:Back'),
		// One key, or several with "+" between them that are held in turn: "Shift+Tab".
		press: (names) => {
			const list = names.length > 1 ? names.split('+') : [names];
			return keys([
				...list.map((name) => ({ type: 'keyDown', value: keyOf(name) })),
				...list.reverse().map((name) => ({ type: 'keyUp', value: keyOf(name) }))
			]);
		},
		type: (text) =>
			keys([...text].flatMap((value) => [{ type: 'keyDown', value }, { type: 'keyUp', value }])),
		clickAt: (x, y) => pointer([move(x, y), down, up]),
		click: async (selector) => pointer([move(...(await middleOf(selector))), down, up]),
		drag: (from, to) => pointer([move(...from), down, move((from[0] + to[0]) / 2, to[1]), move(...to), up]),
		wheel: (x, y, deltaY, held) =>
			act(
				{
					type: 'key',
					id: 'keys',
					actions: [{ type: 'keyDown', value: keyOf(held) }, { type: 'pause' }, { type: 'keyUp', value: keyOf(held) }]
				},
				{
					type: 'wheel',
					id: 'wheel',
					actions: [
						{ type: 'pause' },
						{ type: 'scroll', x: Math.round(x), y: Math.round(y), deltaX: 0, deltaY, origin: 'viewport' },
						{ type: 'pause' }
					]
				}
			),
		// The window gets what its own bars take besides.
		async resize(width, height) {
			for (let i = 0; i < 3; i++) {
				const [w, h] = await evaluate(() => [innerWidth, innerHeight]);
				if (w === width && h === height) return;
				const rect = await send('WebDriver:GetWindowRect');
				await send('WebDriver:SetWindowRect', {
					width: rect.width + width - w,
					height: rect.height + height - h
				});
			}
		},
		// What the system is said to prefer: 'dark' or 'light'.
		scheme: (name) =>
			chrome(`Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', arguments[0]);`, +(name !== 'dark')),
		async screenshot() {
			return Buffer.from((await send('WebDriver:TakeScreenshot', { full: false })).value, 'base64');
		},
		// What pages said and asked for since the last call. Both ways out of the page's process are slower than an
		// answer of the driver: a mark sent after all else tells that nothing is under way any more.
		async noise() {
			const mark = `mark ${++marks} of the harness`,
				has = (lines) => lines.some((line) => line.includes(mark)),
				said = [],
				heard = [];
			await evaluate((text) => {
				console.warn(text);
				setTimeout(() => {
					throw new Error(text);
				});
			}, mark);
			for (const end = Date.now() + 60000; !has(said) || !has(heard); ) {
				if (Date.now() > end) throw new Error('what the page says is not heard within a minute');
				await new Promise((done) => setTimeout(done, 10));
				said.push(...firefox.said.splice(0));
				heard.push(...(await chrome('return window.mewHeard.splice(0);')));
			}
			const lines = said.filter((line) => /^console\./.test(line) && !OWN.test(line));
			return [...lines, ...heard].filter((line) => !line.includes(mark));
		},
		stop: firefox.stop
	};
	try {
		await chrome(LISTEN);
	} catch (error) {
		await firefox.stop();
		throw error;
	}
	return page;
}
