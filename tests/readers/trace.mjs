// trace.mjs - viewers of Chrome's trace format open what `--trace` wrote: catapult, as Debian's Go has it, and speedscope.

import { createServer } from 'node:http';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const VIEWER = 'trace_viewer_full.html',
	PAGE = `<!DOCTYPE html><meta charset=utf-8><script src=webcomponents.min.js></script><link rel=import href=${VIEWER}>
		<style>html,body,tr-ui-timeline-view{height:100%;margin:0}</style><body>`;

// The directory of catapult in a Go tree, or ''.
export function findCatapult() {
	const roots = existsSync('/usr/share') ? readdirSync('/usr/share').filter((name) => /^go-\d/.test(name)).map((name) => join('/usr/share', name)) : [];
	for (const root of [process.env.GOROOT || '', ...roots])
		for (const inside of ['src/cmd/trace/static', 'misc/trace', 'lib/trace'])
			if (root && existsSync(join(root, inside, VIEWER))) return join(root, inside);
	return '';
}

async function serve(directory) {
	const server = createServer((request, response) => {
		const name = request.url.slice(1);
		response.setHeader('Content-Type', name.endsWith('.js') ? 'text/javascript' : 'text/html');
		if (name === '') response.end(PAGE);
		else if (/^[a-z_.]+$/.test(name) && existsSync(join(directory, name))) response.end(readFileSync(join(directory, name)));
		else response.writeHead(404).end();
	});
	await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
	return server;
}

// What catapult makes of the text; with a path also a picture of it.
export async function catapult(browser, directory, text, picture) {
	const server = await serve(directory),
		page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
	try {
		await page.goto(`http://127.0.0.1:${server.address().port}/`);
		await page.waitForFunction(() => window.tr && window.tr.importer && window.tr.importer.Import && window.tr.ui, null, { timeout: 60000 });
		const seen = await page.evaluate((json) => {
			const model = new tr.Model(),
				options = new tr.importer.ImportOptions();
			window.model = model;
			new tr.importer.Import(model, options).importTraces([json]);
			const out = { warnings: model.importWarnings.map((w) => w.message), slices: 0, deep: 0, async: 0, counters: 0, instants: 0,
				flows: model.flowEvents.length, samples: model.samples.length, processes: [], threads: [] };
			const depth = (slice) => { let d = 0; for (; slice; slice = slice.parentSlice) d++; return d; };
			for (const process of model.getAllProcesses()) {
				out.processes.push(process.name);
				out.instants += process.instantEvents.length;
				for (const counter of Object.values(process.counters)) for (const series of counter.series) out.counters += series.samples.length;
				for (const thread of Object.values(process.threads)) {
					out.threads.push(thread.name);
					out.async += thread.asyncSliceGroup.slices.length;
					for (const slice of thread.sliceGroup.slices) {
						if (slice.didNotFinish) out.warnings.push(`${slice.title} did not finish`);
						if (slice.duration > 0) out.slices++;
						else out.instants++;
						out.deep = Math.max(out.deep, depth(slice));
					}
				}
			}
			return out;
		}, text);
		if (picture) {
			await page.evaluate(() => {
				const container = document.createElement('track-view-container'),
					viewer = document.createElement('tr-ui-timeline-view');
				container.id = 'track_view_container';
				viewer.track_view_container = container;
				Polymer.dom(viewer).appendChild(container);
				Polymer.dom(document.body).appendChild(viewer);
				viewer.globalMode = true;
				viewer.model = window.model;
			});
			await page.waitForTimeout(3000);
			await page.screenshot({ path: picture });
		}
		return seen;
	} finally {
		await page.close();
		server.close();
	}
}

// What is in the file, counted as catapult counts.
export function counted(text) {
	const events = JSON.parse(text).traceEvents,
		of = (phases) => events.filter((e) => phases.includes(e.ph)),
		samples = of('P').flatMap((e) => e.args.data.cpuProfile?.samples || []),
		used = new Set(of('XibeP').map((e) => `${e.pid} ${e.tid}`)),
		named = (what) => of('M').filter((e) => e.name === what);
	return {
		warnings: [],
		slices: of('X').length,
		async: of('b').length,
		instants: of('i').length,
		samples: samples.length,
		counters: of('C').reduce((sum, e) => sum + Object.keys(e.args).length, 0),
		processes: named('process_name').map((e) => e.args.name).sort(),
		// threads on which nothing happened have no line
		threads: named('thread_name').filter((e) => used.has(`${e.pid} ${e.tid}`)).map((e) => e.args.name).sort(),
	};
}
