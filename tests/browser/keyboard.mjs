// keyboard.mjs - what those who have no pointer or no screen rely on, for both browsers: Tab reaches every control in
// sight, and each has a name.

/*
 * `press(key)` and `evaluate(function)` are the browser's. Returns descriptions of the controls that Tab did not reach,
 * of those without a name, and how many there are.
 */
export async function walkControls(press, evaluate) {
	await evaluate(() => {
		window.reached = new Set();
		if (document.activeElement) document.activeElement.blur();
		document.getElementById('home').focus();
	});
	for (let i = 0; i < 300; i++) {
		const again = await evaluate(() => {
			const node = document.activeElement,
				known = !node || node === document.body || window.reached.has(node);
			if (!known) window.reached.add(node);
			return known;
		});
		if (again) break;
		await press('Tab');
	}
	return evaluate(() => {
		const all = [...document.querySelectorAll('button, select, input, summary, a[href], [tabindex="0"]')].filter(
				(node) => node.checkVisibility() && !node.disabled
			),
			say = (node) => `${node.tagName.toLowerCase()}#${node.id} ${node.textContent.slice(0, 30)}`,
			name = (node) => node.getAttribute('aria-label') || (node.tagName !== 'SELECT' && node.textContent.trim());
		return {
			count: all.length,
			missed: all.filter((node) => !window.reached.has(node)).map(say),
			nameless: all.filter((node) => !name(node)).map(say)
		};
	});
}
