// plot.js - pictures that are no flame graph: samples in order, their distribution, the heap over iterations.

// What was alive at the end of each iteration: a leak climbs, a cache climbs once.
function drawCurve() {
	const row = report.row(),
		box = ui.curve;
	box.replaceChildren();
	if (
		shown.kind !== 'memory' ||
		!row ||
		!row.ok ||
		!row.has('live_by_iteration') ||
		!row.of.live_by_iteration.length
	)
		return;
	const points = row.of.live_by_iteration,
		canvas = make('canvas', {
			role: 'img',
			'aria-label':
				'Live heap after each iteration, ' +
				plain(points[points.length - 1][1], 'By') +
				' at the end'
		});
	box.append(
		make(
			'figure',
			canvas,
			make(
				'figcaption.soft',
				'Heap alive after each iteration (' +
					whole(points[points.length - 1][0]) +
					'); the peak was ' +
					plain(row.of.peak_bytes, 'By') +
					'.'
			)
		)
	);
	requestAnimationFrame(() => paintCurve(canvas, points));
}

function paintCurve(canvas, points) {
	const ratio = devicePixelRatio || 1,
		width = canvas.clientWidth,
		height = canvas.clientHeight,
		pen = canvas.getContext('2d'),
		room = 76,
		last = points[points.length - 1][0] || 1,
		most = Math.max(1, ...points.map((point) => point[1])),
		xOf = (i) => room + (i / last) * (width - room - 10),
		yOf = (v) => height - 12 - (v / most) * (height - 24);
	canvas.width = width * ratio;
	canvas.height = height * ratio;
	pen.scale(ratio, ratio);
	pen.font = FONT;
	pen.fillStyle = ink.soft;
	pen.textAlign = 'right';
	pen.fillText(plain(most, 'By'), room - 8, yOf(most) + 4);
	pen.fillText('0', room - 8, yOf(0) + 4);
	pen.strokeStyle = ink.accent;
	pen.lineWidth = 1.5;
	pen.beginPath();
	pen.moveTo(xOf(0), yOf(0));
	let before = 0;
	for (const [at, live] of points) {
		pen.lineTo(xOf(at), yOf(before));
		pen.lineTo(xOf(at), yOf(live));
		before = live;
	}
	pen.stroke();
}

// Every measured sample in the order it was taken, with the median and its interval: drift and outliers show here.
async function drawPlot() {
	const box = ui.plot,
		row = report.row();
	box.replaceChildren();
	if (!row || !row.ok) return;
	const { at } = shown,
		spans = await loadSpans(at);
	if (shown.at !== at || shown.kind !== 'time') return;
	const values = spans.flatMap((span) => span.values);
	if (values.length > 1) box.append(scatter(values, spans, row));
	box.append(allFigures('time', row));
}

function scatter(values, spans, row) {
	const top = highest(Float64Array.from(values).sort(), 1),
		slower = values.filter((v) => v > top).length;
	const canvas = make('canvas', {
		role: 'img',
		'aria-label':
			values.length +
			' samples, from ' +
			plain(Math.min(...values.slice(0, 1e5)), 'ns') +
			' to ' +
			plain(Math.max(...values.slice(0, 1e5)), 'ns') +
			' per iteration'
	});
	requestAnimationFrame(() => paintScatter(canvas, values, spans, row));
	return make(
		'figure',
		canvas,
		make(
			'figcaption.soft',
			whole(values.length) +
				' samples in the order taken, each the mean of its batch; line and band: ' +
				'the median and its 95 % interval' +
				(spans.length > 1 ? '; vertical lines part the runs' : '') +
				(slower ? '; ' + whole(slower) + ' slower ones lie at the upper edge' : '') +
				'.'
		)
	);
}

function paintScatter(canvas, values, spans, row) {
	const ratio = devicePixelRatio || 1,
		width = canvas.clientWidth,
		height = canvas.clientHeight,
		pen = canvas.getContext('2d');
	const sorted = Float64Array.from(values).sort(),
		low = sorted[0],
		top = highest(sorted, 1);
	const room = 76,
		span = top - low || 1,
		xOf = (i) => room + ((i + 0.5) * (width - room - 8)) / values.length;
	const yOf = (v) => height - 12 - (Math.min(v - low, span * 1.04) / span) * (height - 24);
	canvas.width = width * ratio;
	canvas.height = height * ratio;
	pen.scale(ratio, ratio);
	pen.font = FONT;
	pen.textAlign = 'right';
	pen.fillStyle = ink.line;
	for (let i = 0, at = 0; i < spans.length; at += spans[i++].values.length)
		if (at) pen.fillRect(xOf(at - 0.5), 0, 1, height);
	if (row.has('median_low_ns')) {
		pen.fillStyle = ink.band;
		pen.fillRect(
			room,
			yOf(row.of.median_high_ns),
			width - room,
			Math.max(1, yOf(row.of.median_low_ns) - yOf(row.of.median_high_ns))
		);
	}
	pen.fillStyle = ink.accent;
	if (row.has('median_ns')) pen.fillRect(room, yOf(row.of.median_ns), width - room, 1);
	values.forEach((v, i) => pen.fillRect(xOf(i) - 1.5, yOf(v) - 1.5, 3, 3));
	pen.fillStyle = ink.soft;
	for (const v of [low, top]) pen.fillText(plain(v, 'ns'), room - 8, yOf(v) + 4);
	const middle = row.has('median_ns') ? yOf(row.of.median_ns) : 0;
	if (middle > 28 && middle < height - 28) pen.fillText(plain(row.of.median_ns, 'ns'), room - 8, middle + 4);
}

// The largest of the samples, or less where a few slow ones would press all others into a line: two modes stay apart.
function highest(sorted, most) {
	const at = (share) => sorted[Math.ceil(sorted.length * share) - 1],
		middle = at(0.75) - at(0.25),
		fence = at(0.75) + 3 * middle;
	return middle > 0 ? Math.min(at(most), sorted.findLast((v) => v <= fence)) : at(most);
}

// How often which time was measured, at most to the 99th percentile; what is slower is in the last bar.
const BARS = 24;

function binsOf(values) {
	const sorted = Float64Array.from(values).sort(),
		low = sorted[0],
		high = highest(sorted, 0.99),
		barOf = (v) => Math.max(0, Math.min(BARS - 1, Math.floor(((v - low) / (high - low || 1)) * BARS))),
		bins = new Array(BARS).fill(0);
	for (const v of sorted) bins[barOf(v)]++;
	return { low, high, bins, barOf, within: sorted.filter((v) => v <= high).length / sorted.length };
}

async function fillDistribution(box, at) {
	const values = (await loadSpans(at)).flatMap((span) => span.values);
	if (!values.length) return;
	const { low, high, bins, barOf, within } = binsOf(values),
		most = Math.max(...bins),
		middle = barOf(report.cases[at].rows.time.of.median_ns);
	const text = whole(values.length) + ' samples, ' + percent(within) + ' within ' + range(low, high, 'ns');
	box.setAttribute('aria-label', text);
	box.title = text + '; the dark bar holds the median';
	box.replaceChildren(
		...bins.map((n, i) => {
			const bar = make('i', { className: i === middle ? 'mid' : '' });
			bar.style.height = n ? Math.max(6, (n / most) * 100) + '%' : 0;
			return bar;
		})
	);
}

// Samples are unpacked for the rows that come into sight.
const inSight = new IntersectionObserver((entries) => {
	for (const { isIntersecting, target } of entries) {
		if (!isIntersecting) continue;
		inSight.unobserve(target);
		fillDistribution(target, target.at);
	}
});

function distributionCell(row) {
	const box = make('span.dist', { role: 'img', 'aria-label': 'Distribution of the samples' });
	box.at = row.at;
	inSight.observe(box);
	return box;
}
