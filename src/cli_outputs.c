/*
 * cli_outputs.c - after the passes: names, tables, files, and the exit code that the rows deserve.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "cli_private.h"

#include "cli_trace.h"
#include "error.h"
#include "os.h"
#include "output.h"
#include "session.h"
#include "writer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int mew_cli_tables(const struct mew_cli *c, const struct mew_model *m, struct mew_error *err)
{
	int fd = c->record ? STDERR_FILENO : STDOUT_FILENO;
	struct mew_report_input in = {
		.model = m,
		.width = mew_terminal_width(fd),
		.color = mew_terminal_color(c->color, fd),
		.utf8 = mew_terminal_utf8(),
		.verbose = c->verbose,
	};
	struct mew_writer w;
	int status;

	mew_writer_fd(&w, fd);
	status = mew_report_find("table")->write(&in, &w, err);
	if (mew_writer_finish(&w) != 0 && status == MEW_OK)
		status = mew_error_set(err, MEW_E_IO, "standard %s: %s", c->record ? "error" : "output",
				       strerror(w.error));
	return status;
}

static int check_output(const struct mew_cli *c, const struct mew_cli_output *o, bool *made)
{
	struct mew_error err;

	if (o->report->shape == MEW_REPORT_DIRECTORY && !c->passes[MEW_PASS_MEMORY] && !c->passes[MEW_PASS_CPU]) {
		mew_cli_complain("--%s: there will be no stacks to write; add --memory or --cpu", o->report->name);
		return MEW_EXIT_USAGE;
	}
	if (mew_output_check(o->report, o->path, made, &err) == MEW_OK)
		return MEW_EXIT_FINE;
	mew_cli_complain("--%s: %s", o->report->name, err.text);
	return MEW_EXIT_USAGE;
}

int mew_cli_check_outputs(const struct mew_cli *c)
{
	bool made[MEW_CLI_LIST_MAX] = { false };
	int code = MEW_EXIT_FINE;

	for (size_t i = 0; i < c->noutputs && code == MEW_EXIT_FINE; i++)
		code = check_output(c, &c->outputs[i], &made[i]);
	for (size_t i = c->noutputs; i-- > 0;)
		if (made[i])
			(void)rmdir(c->outputs[i].path);
	return code;
}

int mew_cli_outputs(const struct mew_cli *c, const struct mew_model *m, const struct mew_model *base)
{
	const struct mew_report_input in = { .model = m, .base = base, .embed_source = c->embed_source };
	int code = MEW_EXIT_FINE;

	for (size_t i = 0; i < c->noutputs; i++) {
		const struct mew_cli_output *o = &c->outputs[i];
		uint64_t start = mew_os_now_ns();
		struct mew_error err;

		if (mew_output_report(o->report, &in, o->path, &err) != MEW_OK) {
			mew_cli_complain("%s", err.text);
			code = MEW_EXIT_USAGE;
		} else if (!c->quiet && strcmp(o->path, "-") != 0) {
			(void)fprintf(stderr, "wrote %s\n", o->path);
		}
		mew_cli_trace_since(start, "report", o->report->name, NULL);
	}
	return code;
}

static bool is_skip(const struct mew_row_head *row)
{
	return row->status == MEW_E_UNSUPPORTED && row->reason != NULL && strncmp(row->reason, "skipped: ", 9) == 0;
}

/* The exit code that the rows deserve. */
static int verdict(struct mew_model *m)
{
	size_t good = 0, failed = 0, unable = 0, lost = 0, skipped = 0;

	for (size_t i = 0; i < m->ncases; i++) {
		for (int kind = 0; kind < MEW_KINDS; kind++) {
			const struct mew_row_head *row = mew_case_row(&m->cases[i], (enum mew_kind)kind);

			if (!mew_case_has(&m->cases[i], kind))
				continue;
			if (row->status == MEW_OK)
				good++;
			else if (is_skip(row))
				skipped++;
			else if (row->status == MEW_E_LOST)
				lost++;
			else if (row->status == MEW_E_UNSUPPORTED || row->status == MEW_E_DENIED)
				unable++;
			else
				failed++;
		}
	}
	if (failed > 0)
		return MEW_EXIT_FAILED;
	if (lost > 0)
		return MEW_EXIT_INVALID;
	if (unable > 0)
		return MEW_EXIT_USAGE;
	return good > 0 || skipped > 0 ? MEW_EXIT_FINE : MEW_EXIT_INVALID;
}

bool mew_cli_wants_tables(const struct mew_cli *c)
{
	for (size_t i = 0; i < c->noutputs; i++)
		if (strcmp(c->outputs[i].path, "-") == 0)
			return false;
	return true;
}

int mew_cli_finish(struct mew_cli_run *r)
{
	struct mew_symbolise_servers servers;
	struct mew_error err;
	int status, code, files;
	uint64_t start;

	start = mew_os_now_ns();
	status = mew_session_finish(r->model, mew_cli_servers(r->cli, &servers), &err);
	mew_cli_trace_since(start, "report", "names and figures", NULL);
	mew_cli_trace_samples(r->model);
	if (status != MEW_OK) {
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	code = verdict(r->model);
	if (code == MEW_EXIT_FINE && r->cut_short)
		code = MEW_EXIT_FAILED;
	if (mew_cli_wants_tables(r->cli) && mew_cli_tables(r->cli, r->model, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	files = mew_cli_outputs(r->cli, r->model, NULL);
	if (mew_cli_interrupted()) {
		mew_cli_complain("interrupted: what was measured until then is shown");
		return MEW_EXIT_INVALID;
	}
	return code != MEW_EXIT_FINE ? code : files;
}
