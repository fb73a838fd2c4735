// main.js - the start of the page.

// For tests and for the curious: what the page shows, and the same actions that pointer and keys have.
window.mew = {
	ready: false,
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
	state: () => ({
		case: shown.at < 0 ? null : report.current().key,
		kind: shown.kind,
		view: shown.view,
		weight: METRICS[shown.kind] ? report.metric()[2] : null,
		flame: graph.flame,
		zoom: graph.zoom,
		focus: graph.focus,
		query: shown.query,
		hits: graph.hits.length,
		share: graph.share || 0,
		frames: graph.tree ? graph.tree.n : 0,
		total: graph.lay ? graph.lay.total[0] : 0,
		rows: graph.rows,
		drawn: graph.drawn,
		dark: isDark()
	})
};

async function start() {
	if (typeof DecompressionStream === 'undefined') {
		throw new Error(
			'This browser cannot unpack the data: it needs Chrome 80, Firefox 113, Safari 16.4 or later.'
		);
	}
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
