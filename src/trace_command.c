/*
 * trace_command.c - see trace_command.h.
 * Layer L2. Outside windows; the thread that starts and reaps commands.
 */
#include "config.h"

#include "trace_command.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "trace_log.h"

static struct {
	regex_t what;
	bool is_set;
} redaction;

bool mew_trace_redact(const char *expression)
{
	if (redaction.is_set)
		regfree(&redaction.what);
	redaction.is_set = expression != NULL && regcomp(&redaction.what, expression, REG_EXTENDED) == 0;
	return redaction.is_set || expression == NULL;
}

char *mew_trace_shown_line(const char *line)
{
	size_t n = strlen(line), used = 0;
	char *out = redaction.is_set ? malloc(n * 4 + 4) : NULL; /* at worst "***" stands for each character */
	regmatch_t match;
	int flags = 0;

	if (out == NULL)
		return NULL;
	while (*line != '\0' && regexec(&redaction.what, line, 1, &match, flags) == 0) {
		size_t before = (size_t)match.rm_so, length = (size_t)(match.rm_eo - match.rm_so);

		if (length == 0) { /* an empty match hides nothing; look behind the next character */
			if (line[before] == '\0')
				break;
			before++;
		}
		memcpy(out + used, line, before);
		used += before;
		for (int i = 0; length > 0 && i < 3; i++)
			out[used++] = '*';
		line += before + length;
		flags = REG_NOTBOL;
	}
	memcpy(out + used, line, strlen(line) + 1);
	return out;
}

char *mew_trace_shown_name(const char *name)
{
	return redaction.is_set ? mew_trace_shown_line(name) : strdup(name);
}

void mew_trace_command(const char *program, const char *line, uint64_t start_ns, uint64_t end_ns, int wait_status)
{
	struct mew_trace_args args = { 0 };
	const char *name = strrchr(program, '/');
	char *shown;

	if (!mew_trace_is_on() || start_ns == 0)
		return;
	shown = mew_trace_shown_line(line);
	mew_trace_arg_text(&args, "command", shown);
	free(shown);
	if (WIFSIGNALED(wait_status)) {
		mew_trace_arg_text(&args, "state", "killed");
		mew_trace_arg_number(&args, "signal", (uint64_t)WTERMSIG(wait_status));
	} else {
		mew_trace_arg_text(&args, "state", WEXITSTATUS(wait_status) == 0 ? "done" : "failed");
		mew_trace_arg_number(&args, "exit_code", (uint64_t)WEXITSTATUS(wait_status));
	}
	shown = mew_trace_shown_name(name != NULL ? name + 1 : program);
	mew_trace_span("command", shown, start_ns, end_ns, &args);
	free(shown);
}
