// format.js - numbers and names for people. The same number is written the same way on every machine.

const SCALES = {
	ns: [
		[1, 'ns'],
		[1e3, 'µs'],
		[1e6, 'ms'],
		[1e9, 's']
	],
	By: [
		[1, 'B'],
		[1024, 'KiB'],
		[1048576, 'MiB'],
		[1073741824, 'GiB'],
		[1099511627776, 'TiB']
	],
	1: [
		[1, ''],
		[1e6, 'M'],
		[1e9, 'G'],
		[1e12, 'T']
	]
};

// A number with so many decimals and its thousands parted.
function decimals(value, digits) {
	const [whole, fraction] = value.toFixed(digits).split('.');
	const parted = whole.replace(/\B(?=(\d{3})+$)/g, ',');
	return fraction ? parted + '.' + fraction : parted;
}

function whole(value) {
	return decimals(value, 0);
}

// Four significant digits.
function significant(value) {
	const digits = value ? Math.min(9, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value))))) : 0;
	return decimals(value, digits);
}

function scaleOf(value, unit) {
	const steps = SCALES[unit] || SCALES[1];
	let best = steps[0];
	for (const step of steps) if (Math.abs(value) >= step[0]) best = step;
	return best;
}

// A value and its unit as two texts: [ "31.05", "µs" ].
function quantity(value, unit) {
	if (unit === 's') return quantity(value * 1e9, 'ns');
	if (unit === '1/s' || unit === 'By/s') {
		const [number, prefix] = quantity(value, unit === '1/s' ? '1' : 'By');
		return [number, prefix + '/s'];
	}
	const [factor, name] = scaleOf(value, unit);
	return [factor === 1 && Number.isInteger(value) ? whole(value) : significant(value / factor), name];
}

function plain(value, unit) {
	const [number, name] = quantity(value, unit);
	return name ? number + '\u00a0' + name : number;
}

function counted(n, what) {
	return plain(n, '1') + ' ' + what + (n === 1 ? '' : 's');
}

function percent(share) {
	const p = share * 100;
	if (p === 0 || p === 100) return p + '\u00a0%';
	if (p < 0.01) return '<0.01\u00a0%';
	return decimals(p, p < 10 ? 2 : 1) + '\u00a0%';
}

// Both ends in one unit, that of the larger one.
function range(low, high, unit) {
	const ns = unit === 's' ? 1e9 : 1;
	const [factor, name] = scaleOf(high * ns, unit === 's' ? 'ns' : unit);
	return significant((low * ns) / factor) + ' – ' + significant((high * ns) / factor) + '\u00a0' + name;
}

// Control characters, overrides of the direction and what has no shape would let a name disguise itself: they are signs.
function visible(text) {
	return text
		.replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
		.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, '\ufffd');
}

// A name of a megabyte costs seconds to lay out and nobody reads it: both ends tell what it is.
function brief(text) {
	return text.length > 600 ? text.slice(0, 400) + '…' + text.slice(-160) : text;
}

function base(path) {
	return path.slice(path.lastIndexOf('/') + 1);
}

// Skip a bracket and what it holds; returns the index behind it.
function skipBracket(text, at) {
	const open = text[at],
		close = open === '(' ? ')' : '>';
	let depth = 0;
	for (let i = at; i < text.length; i++) {
		if (text[i] === open) depth++;
		else if (text[i] === close && text[i - 1] !== '-' && --depth === 0) return i + 1;
	}
	return text.length;
}

// A C++ name without template arguments, parameters, and the type that an instance of a template returns.
function shorten(name) {
	if (!/[<(]/.test(name)) return name;
	let out = '';
	for (let i = 0; i < name.length;) {
		const c = name[i];
		if (
			(c === '(' || c === '<') &&
			out !== '' &&
			!/operator[<(]*$/.test(out) &&
			!name.startsWith('(anonymous', i)
		) {
			i = skipBracket(name, i);
			continue;
		}
		out += c;
		i++;
	}
	out = out.replace(/ (const|volatile|&|&&)*$/, '').trim() || name;
	return /<.*\(/.test(name) && !/^<|operator|\[/.test(name) ? out.replace(/^.* (?!namespace\))/, '') : out;
}

function hashOf(text) {
	let h = 2166136261;
	for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
	return h >>> 0;
}

// Make an element, "tag.class.class"; properties may be left out. Strings become text, never markup.
function make(what, props, ...kids) {
	const [tag, ...classes] = what.split('.'),
		node = document.createElement(tag);
	if (!props || typeof props !== 'object' || props instanceof Node) {
		kids.unshift(props);
		props = {};
	}
	node.className = classes.join(' ');
	for (const name of Object.keys(props)) {
		if (name in node) node[name] = props[name];
		else node.setAttribute(name, props[name]);
	}
	node.append(...kids.filter((kid) => kid || kid === 0));
	return node;
}

// The style comes packed with the script; before anything is drawn or measured.
document.head.append(make('style', STYLE));

// Every element of the page that has a name.
const ui = {},
	root = document.documentElement;
for (const node of document.querySelectorAll('[id]')) ui[node.id] = node;

function number(value, unit) {
	const [text, name] = quantity(value, unit);
	return name ? make('span.n', text, make('span.u', name)) : text;
}

// The head of a sortable column.
function sortHead(title, kind, active, down, help, act) {
	const button = make('button', { title: help, onclick: act }, title, active && make('span', down ? ' ↓' : ' ↑'));
	return make(
		'th',
		{ className: kind, scope: 'col', 'aria-sort': active ? (down ? 'descending' : 'ascending') : 'none' },
		button
	);
}
