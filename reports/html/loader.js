// loader.js - the one script that lies in the page as it is: it unpacks the viewer's script, which the page holds
// deflated, and starts it; the viewer unpacks its data with the same function. The policy names the hashes of both
// scripts.

(function () {
	'use strict';

	const LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115];
	LENGTHS.push(131, 163, 195, 227, 258);
	const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

	// A canonical code: how many symbols have each length, and the symbols in the order of their codes.
	function codeOf(lengths) {
		const count = new Uint16Array(16),
			next = new Uint16Array(17),
			symbols = [];
		for (const l of lengths) if (l) count[l]++;
		for (let l = 1; l < 16; l++) next[l + 1] = next[l] + count[l];
		lengths.forEach((l, symbol) => {
			if (l) symbols[next[l]++] = symbol;
		});
		return { count, symbols };
	}

	// RFC 1951, for browsers without DecompressionStream. `at`: where the stream begins, behind a container's head.
	function inflate(bytes, at) {
		let out = new Uint8Array(bytes.length * 6),
			used = 0,
			hold = 0,
			held = 0,
			last = 0;
		const bits = (n) => {
			for (; held < n; held += 8) {
				if (at >= bytes.length) throw new Error('The data end too early.');
				hold |= bytes[at++] << held;
			}
			const value = hold & ((1 << n) - 1);
			hold >>>= n;
			held -= n;
			return value;
		};
		const symbolOf = ({ count, symbols }) => {
			for (let l = 1, code = 0, first = 0, index = 0; l < 16; l++) {
				code |= bits(1);
				if (code - first < count[l]) return symbols[index + code - first];
				index += count[l];
				first = (first + count[l]) << 1;
				code <<= 1;
			}
			throw new Error('The data are damaged.');
		};
		const put = (byte) => {
			if (used === out.length) {
				const larger = new Uint8Array(used * 2 + 64);
				larger.set(out);
				out = larger;
			}
			out[used++] = byte;
		};
		const stored = () => {
			hold = held = 0;
			const n = bytes[at] | (bytes[at + 1] << 8);
			for (const end = (at += 4) + n; at < end;) put(bytes[at++]);
		};
		const lengthsOf = () => {
			const literals = bits(5) + 257,
				all = literals + bits(5) + 1,
				few = new Array(19).fill(0),
				lengths = [];
			for (let i = 0, n = bits(4) + 4; i < n; i++) few[ORDER[i]] = bits(3);
			const code = codeOf(few);
			while (lengths.length < all) {
				const s = symbolOf(code),
					n = s < 16 ? 1 : s === 16 ? 3 + bits(2) : s === 17 ? 3 + bits(3) : 11 + bits(7),
					value = s < 16 ? s : s === 16 ? lengths[lengths.length - 1] : 0;
				for (let i = 0; i < n; i++) lengths.push(value);
			}
			return [codeOf(lengths.slice(0, literals)), codeOf(lengths.slice(literals))];
		};
		const fixed = () => {
			const lengths = Array.from({ length: 288 }, (_, i) =>
				i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8
			);
			return [codeOf(lengths), codeOf(new Array(30).fill(5))];
		};
		const block = ([literal, distance]) => {
			for (let s; (s = symbolOf(literal)) !== 256;) {
				if (s < 256) {
					put(s);
					continue;
				}
				let n = LENGTHS[s - 257] + (s < 265 || s === 285 ? 0 : bits((s - 261) >> 2));
				const d = symbolOf(distance),
					base =
						d < 4
							? d + 1
							: ((2 + (d & 1)) << ((d >> 1) - 1)) + 1 + bits((d >> 1) - 1);
				if (base > used) throw new Error('The data are damaged.');
				while (n--) put(out[used - base]);
			}
		};
		while (!last) {
			last = bits(1);
			const kind = bits(2);
			if (kind === 0) stored();
			else block(kind === 1 ? fixed() : lengthsOf());
		}
		return out.subarray(0, used);
	}

	// A callback for each character would take as long as all else together.
	function bytesOf(base64) {
		if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
		const text = atob(base64),
			bytes = new Uint8Array(text.length);
		for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
		return bytes;
	}

	// Base64 of a gzip file or of a zlib stream, whose heads have 10 and 2 bytes.
	async function unpack(base64, format) {
		const bytes = bytesOf(base64);
		if (typeof DecompressionStream === 'undefined') return inflate(bytes, format === 'gzip' ? 10 : 2);
		// Written at once: by way of a Blob it takes more than twice as long.
		const { readable, writable } = new DecompressionStream(format),
			writer = writable.getWriter(),
			wrote = writer.write(bytes).then(() => writer.close()),
			[out] = await Promise.all([new Response(readable).arrayBuffer(), wrote]);
		return new Uint8Array(out);
	}

	window.mew = { ready: false, unpack };
	unpack(document.getElementById('mew-code').textContent.trim(), 'gzip').then(
		(bytes) => {
			const script = document.createElement('script');
			script.textContent = new TextDecoder().decode(bytes);
			document.head.append(script);
		},
		(error) => {
			document.getElementById('loading').textContent = 'The report cannot be shown. ' + error.message;
		}
	);
})();
