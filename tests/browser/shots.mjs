// shots.mjs - the pictures that both browsers take of the same views, for people to look at.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { INFLATE } from './browser.mjs';

const VIEWS = [
	['overview', 'codec', ''],
	['cpu', 'codec', INFLATE],
	['memory', 'codec', INFLATE + '&kind=memory'],
	['time', 'codec', INFLATE + '&kind=time'],
	['callers', 'codec', INFLATE + '&view=callers'],
	['sandwich', 'codec', INFLATE + '&view=sandwich&of=copy_match'],
	['functions', 'codec', INFLATE + '&view=table'],
	['source', 'source', INFLATE + '&zoom=mew_body_codec%2Fcodec_run%2Fstream_process'],
	['recorded-overview', 'recorded', ''],
	['recorded', 'recorded', '#case=bench_codec&kind=memory'],
	['failed', 'codec', '#case=codec%2Ftruncated'],
	['diff-overview', 'compared', ''],
	['diff-cpu', 'compared', INFLATE],
	['diff-memory', 'compared', INFLATE + '&kind=memory&width=2'],
	['hostile', 'hostile', '#case=%3C%2Fscript%3E%3Cscript%3Ewindow.broken%3D2%3C%2Fscript%3E&search=nnnn'],
	['large', 'large', '#case=large&search=module7']
];

/*
 * Each view in both themes, wide and narrow. `browser` stands in the names of the files;
 * `show(shape, hash, width, theme)` brings the view to the screen and `take()` gives its PNG. Without a folder
 * SCREENSHOTS there are none.
 */
export async function takeAll(browser, show, take) {
	const folder = process.env.SCREENSHOTS;
	if (!folder) return 0;
	mkdirSync(folder, { recursive: true });
	let taken = 0;
	for (const width of [1600, 800])
		for (const theme of ['light', 'dark'])
			for (const [name, shape, hash] of VIEWS) {
				await show(shape, hash, width, theme);
				const png = await take();
				if (png.length < 5000) throw new Error(`the picture of ${name} is empty: ${png.length} bytes`);
				writeFileSync(join(folder, `${browser}-${name}-${width}-${theme}.png`), png);
				taken++;
			}
	return taken;
}
