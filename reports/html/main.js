// main.js - the start of the page.

// For tests and for the curious: what the page shows, and the same actions that pointer and keys have.
Object.assign(window.mew, {
	pick,
	search: (query) => {
		ui.query.value = query;
		search(query);
		return { share: graph.share || 0, hits: graph.hits.length };
	},
	zoom: zoomTo,
	change,
	open: openCase,
	step: stepHit,
	draw: () => {
		draw();
		return graph.pen.getImageData(0, 0, 1, 1).data[3];
	},
	nameOf,
	changeOf,
	folded: foldedText,
	svg: svgText,
	columns: columnsText,
	state: () => ({
		case: shown.at < 0 ? null : report.current().key,
		kind: shown.kind,
		view: shown.view,
		order: shown.order,
		filters: shown.filters.length,
		compared: comparing(),
		width: shown.width,
		middle: shown.middle,
		weight: METRICS[shown.kind] ? report.metric()[2] : null,
		flame: graph.flame,
		zoom: graph.zoom,
		focus: graph.focus,
		window: graph.window,
		least: shown.least,
		query: shown.query,
		hits: graph.hits.length,
		share: graph.share || 0,
		frames: graph.tree ? graph.tree.n : 0,
		total: graph.lay ? graph.lay.total[0] : 0,
		rows: graph.rows,
		drawn: graph.drawn,
		dark: isDark()
	})
});

async function start() {
	await readHeader();
	measureFont();
	listen();
	await follow();
	draw();
	window.mew.ready = true;
}

setTheme(savedTheme());
start().catch((error) => {
	ui.loading.hidden = false;
	ui.loading.textContent = 'The report cannot be shown. ' + error.message;
});
