// marionette.mjs - Firefox, started and driven over Marionette, its own remote protocol: JSON behind its length, on
// TCP. No package is needed. See the documents under remote/doc/marionette of Firefox for the protocol.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const START_MS = 180000; // a busy machine with two processors needs a minute
const PREFERENCES = {
	'app.normandy.enabled': false,
	'app.shield.optoutstudies.enabled': false,
	'browser.dom.window.dump.enabled': true,
	'browser.download.folderList': 2,
	'browser.sessionstore.resume_from_crash': false,
	'browser.shell.checkDefaultBrowser': false,
	'datareporting.policy.dataSubmissionEnabled': false,
	'devtools.console.stdout.chrome': false,
	'devtools.console.stdout.content': true,
	'dom.ipc.processPrelaunch.enabled': false,
	'marionette.port': 0,
	'messaging-system.rsexperimentloader.enabled': false,
	'security.sandbox.content.level': 0
};

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// The profile is also the home: nothing of the user is read or written.
function launch(home) {
	const downloads = join(home, 'downloads'),
		preferences = { ...PREFERENCES, 'browser.download.dir': downloads },
		lines = Object.entries(preferences).map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`);
	mkdirSync(downloads);
	writeFileSync(join(home, 'user.js'), lines.join(''));
	return spawn(
		process.env.FIREFOX,
		['--headless', '--marionette', '--remote-allow-system-access', '--no-remote', '--profile', home],
		{
			env: {
				...process.env,
				HOME: home,
				XDG_CONFIG_HOME: join(home, 'config'),
				XDG_CACHE_HOME: join(home, 'cache'),
				XDG_RUNTIME_DIR: home,
				MOZ_CRASHREPORTER_DISABLE: '1',
				MOZ_DISABLE_CONTENT_SANDBOX: '1',
				TZ: 'UTC'
			},
			stdio: ['ignore', 'pipe', 'pipe']
		}
	);
}

// Firefox chooses a free port and writes it into its profile.
async function portOf(firefox, home) {
	const file = join(home, 'MarionetteActivePort');
	for (const end = Date.now() + START_MS; Date.now() < end; await pause(100)) {
		if (firefox.pid === undefined) throw new Error(process.env.FIREFOX + ' cannot be started');
		if (firefox.exitCode !== null) throw new Error('Firefox ended with ' + firefox.exitCode);
		const port = existsSync(file) && parseInt(readFileSync(file, 'utf8'), 10);
		if (port) return port;
	}
	throw new Error('Firefox did not listen within ' + START_MS / 1000 + ' s');
}

// Packets are "LENGTH:JSON" in both directions; the length counts bytes. The first one is a greeting.
function openConnection(port) {
	const socket = connect(port, '127.0.0.1'),
		waiting = new Map();
	let data = Buffer.alloc(0),
		last = 0;
	const take = () => {
		for (let colon; (colon = data.indexOf(':')) > 0; ) {
			const end = colon + 1 + +data.subarray(0, colon);
			if (data.length < end) return;
			const packet = JSON.parse(data.subarray(colon + 1, end));
			data = data.subarray(end);
			if (!Array.isArray(packet)) continue;
			const [, id, error, result] = packet,
				{ done, failed } = waiting.get(id);
			waiting.delete(id);
			if (error) failed(new Error(error.error + ': ' + error.message));
			else done(result);
		}
	};
	const fail = (error) => {
		for (const { failed } of waiting.values()) failed(error);
		waiting.clear();
	};
	socket.on('data', (more) => {
		data = Buffer.concat([data, more]);
		take();
	});
	socket.on('error', fail);
	socket.on('close', () => fail(new Error('Firefox closed the connection')));
	const send = (name, parameters = {}) =>
		new Promise((done, failed) => {
			waiting.set(++last, { done, failed });
			const packet = Buffer.from(JSON.stringify([0, last, name, parameters]));
			socket.write(Buffer.concat([Buffer.from(packet.length + ':'), packet]));
		});
	return { send, close: () => socket.destroy() };
}

/*
 * A running Firefox: send(command, parameters), `said` (what pages wrote to the console, in lines), `home` (with the
 * folder downloads), stop().
 */
export async function startFirefox() {
	const home = mkdtempSync(join(tmpdir(), 'mew-firefox-')),
		firefox = launch(home),
		said = [],
		gone = new Promise((done) => firefox.once('exit', done));
	let noise = '',
		connection;
	firefox.on('error', (error) => (noise = error.message));
	createInterface({ input: firefox.stdout }).on('line', (line) => said.push(line));
	firefox.stderr.setEncoding('utf8').on('data', (text) => (noise = (noise + text).slice(-600)));
	const stop = async () => {
		if (connection) connection.close();
		if (firefox.exitCode === null && firefox.kill()) {
			const hard = setTimeout(() => firefox.kill('SIGKILL'), 20000);
			await gone;
			clearTimeout(hard);
		}
		rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
	};
	try {
		connection = openConnection(await portOf(firefox, home));
		await connection.send('WebDriver:NewSession', {});
		return { send: connection.send, said, home, stop };
	} catch (error) {
		await stop();
		throw new Error(error.message + (noise && '; it said: ' + noise.trim().split('\n').slice(-3).join(' | ')));
	}
}
