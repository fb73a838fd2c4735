// export.js - what the view shows, as a file: folded stacks, a picture, the columns.

const EXPORTS = {
	'Folded stacks': () => save(foldedText(), 'folded', 'text/plain'),
	'SVG picture': () => save(svgText(), 'svg', 'image/svg+xml'),
	'PNG picture': () => {
		draw();
		graph.canvas.toBlob((blob) => saveBlob(blob, 'png'));
	},
	'Columns (JSON)': () => save(columnsText(), 'json', 'application/json')
};

function save(text, suffix, type) {
	saveBlob(new Blob([text], { type }), suffix);
}

function saveBlob(blob, suffix) {
	const url = URL.createObjectURL(blob),
		name = titleOf(report.current()).replace(/[^\w.]+/g, '-').slice(0, 100) + '-' + shown.kind;
	make('a', { href: url, download: name + '.' + suffix }).click();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
	speak('Saved as ' + name + '.' + suffix);
}

// One line a stack below the frame that is zoomed to; values are rounded, as readers of the format want whole numbers.
function foldedText() {
	const { tree, zoom } = graph,
		self = tree.self[weightNow()],
		out = [],
		inside = new Uint8Array(tree.n),
		plainName = (node) => nameOf(node).replace(/[;\n]/g, ':');
	inside[zoom] = 1;
	for (let i = zoom; i < tree.n; i++) {
		if (i > zoom) inside[i] = inside[tree.parent[i]];
		const value = Math.round(self[i]);
		if (inside[i] && i && value > 0)
			out.push(pathOf(tree, i).map(plainName).join(';') + ' ' + value + '\n');
	}
	return out.join('');
}

// The view is drawn once more, into elements instead of pixels, with all its rows.
function svgText() {
	const out = [],
		safe = (text) => String(text).replace(/[&<>"]/g, (c) => '&#' + c.charCodeAt(0) + ';'),
		box = (x, y, w, h, more) =>
			out.push(`<rect x="${x.toFixed(2)}" y="${y}" width="${w.toFixed(2)}" height="${h}" ${more}/>`),
		{ pen, height, scroll } = graph,
		bits = [],
		none = () => {};
	graph.height = Math.max(ROW, graph.rows * ROW);
	graph.scroll = 0;
	graph.pen = {
		fillRect(x, y, w, h) {
			box(x, y, w, h, `fill="${this.fillStyle}" opacity="${this.globalAlpha}"`);
		},
		strokeRect(x, y, w, h) {
			box(x, y, w, h, `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"`);
		},
		fillText(text, x, y) {
			out.push(`<text x="${x.toFixed(2)}" y="${y}" fill="${this.fillStyle}">${safe(text)}</text>`);
		},
		rect: none,
		save: none,
		clip: none,
		restore: none,
		beginPath: () => (bits.length = 0),
		moveTo: (x, y) => bits.push('M' + x.toFixed(1) + ' ' + y),
		lineTo: (x, y) => bits.push('L' + x.toFixed(1) + ' ' + y),
		stroke() {
			out.push(`<path d="${bits.join('')}" stroke="${this.strokeStyle}"/>`);
		}
	};
	paint();
	const size = `width="${graph.width}" height="${graph.height}"`;
	Object.assign(graph, { pen, height, scroll });
	const space = ['http:', '', 'www.w3.org', '2000', 'svg'].join('/');
	const font = `font-size="12" font-family="${safe(FONT.slice(5))}"`;
	const title = safe(titleOf(report.current()));
	return `<svg xmlns="${space}" ${size} ${font}><title>${title}</title>${out.join('')}</svg>\n`;
}

// The tree as it is shown, a list for each column; frame 0 is the whole.
function columnsText() {
	const { tree } = graph,
		used = [...new Set(tree.key)].filter((key) => key >= 0).map((key) => key >> 1),
		place = new Map([...new Set(used)].map((f, i) => [f, i])),
		fn = report.functions,
		functions = [...place.keys()];
	return JSON.stringify({
		mew: report.mew,
		case: report.current().key,
		kind: shown.kind,
		metrics: METRICS[shown.kind].map(([name, unit]) => [name, unit]),
		results: tree.pair ? ['head', 'base', 'larger'] : ['head'],
		functions: {
			name: functions.map((f) => fn.name[f]),
			file: functions.map((f) => report.files[fn.file[f]] || ''),
			line: functions.map((f) => fn.line[f]),
			module: functions.map((f) => report.modules[fn.module[f]] || '')
		},
		frames: {
			parent: [...tree.parent],
			function: Array.from(tree.key, (key) => (key < 0 ? -1 : place.get(key >> 1))),
			inlined: Array.from(tree.key, (key) => (key < 0 ? 0 : key & 1)),
			line: [...tree.line],
			self: tree.self.map((self) => [...self])
		}
	});
}
