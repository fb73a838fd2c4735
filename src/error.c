/*
 * error.c - errors are values: a status, an errno and one sentence, never a print or an exit.
 * Layer L0. Any thread.
 */
#include "config.h"

#include "error.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct mew_error last;

MEW_PRINTF(3, 0) static void fill(struct mew_error *err, int status, const char *format, va_list ap)
{
	err->status = status;
	err->sys_errno = 0;
	if (vsnprintf(err->text, sizeof err->text, format, ap) < 0)
		err->text[0] = '\0';
}

int mew_error_set(struct mew_error *err, int status, const char *format, ...)
{
	int saved = errno;
	va_list ap;

	if (err != NULL) {
		va_start(ap, format);
		fill(err, status, format, ap);
		va_end(ap);
	}
	errno = saved;
	return status;
}

int mew_error_errno(struct mew_error *err, int status, const char *format, ...)
{
	int saved = errno;
	va_list ap;

	if (err != NULL) {
		size_t used;

		va_start(ap, format);
		fill(err, status, format, ap);
		va_end(ap);
		err->sys_errno = saved;
		used = strlen(err->text);
		(void)snprintf(err->text + used, sizeof err->text - used, ": %s", strerror(saved));
	}
	errno = saved;
	return status;
}

const char *mew_error_descriptors(void)
{
	if (errno == EMFILE)
		return ", raise the number of open files (`ulimit -n`)";
	return errno == ENFILE ? ", raise the number of open files of the machine (`sysctl fs.file-max`)" : "";
}

static size_t trim(const char *text, size_t n)
{
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		n--;
	return n;
}

void mew_error_add_printed(struct mew_error *err, const char *printed)
{
	size_t end = printed != NULL ? trim(printed, strlen(printed)) : 0, start = end, used = strlen(err->text);

	while (start > 0 && printed[start - 1] != '\n' && printed[start - 1] != '\r')
		start--;
	if (end > 0)
		(void)snprintf(err->text + used, sizeof err->text - used, "; it printed: %.*s", (int)(end - start),
			       printed + start);
}

void mew_error_clear(struct mew_error *err)
{
	if (err != NULL)
		*err = (struct mew_error){ .status = MEW_OK };
}

struct mew_error *mew_error_thread(void)
{
	return &last;
}

const struct mew_error *mew_last_error(void)
{
	return &last;
}

const char *mew_status_name(int status)
{
	static const char *const names[] = {
		"MEW_OK",       "MEW_E_INVALID", "MEW_E_NOMEM", "MEW_E_UNSUPPORTED", "MEW_E_DENIED",
		"MEW_E_BUSY",   "MEW_E_IO",      "MEW_E_LOOP",  "MEW_E_LOST",        "MEW_E_BODY",
	};

	if (status > 0 || -status >= (int)MEW_COUNTOF(names))
		return "unknown status";
	return names[-status];
}
