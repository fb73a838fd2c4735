/*
 * fx_trace_rig.c - see fx_trace_rig.h.
 * Test fixture.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fx_trace_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char rig_folder[32], rig_said[2000];
int rig_directory;

void rig_say(const char *text)
{
	size_t n = strlen(rig_said);

	(void)snprintf(rig_said + n, sizeof rig_said - n, "%s\n", text);
}

int rig_make_folder(void **data)
{
	(void)data;
	(void)strcpy(rig_folder, "/tmp/mew-t_trace.XXXXXX");
	assert_non_null(mkdtemp(rig_folder));
	rig_directory = open(rig_folder, O_RDONLY | O_DIRECTORY);
	assert_true(rig_directory >= 0);
	rig_said[0] = '\0';
	return 0;
}

int rig_remove_folder(void **data)
{
	char command[200];

	(void)data;
	(void)close(rig_directory);
	(void)snprintf(command, sizeof command, "rm -rf %s %s.own %s.out", rig_folder, rig_folder, rig_folder);
	return system(command);
}

void rig_put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

char *rig_get_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 100000);

	assert_non_null(f);
	assert_non_null(text);
	assert_true(fread(text, 1, 99999, f) > 0);
	assert_int_equal(fclose(f), 0);
	return text;
}

void rig_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("no %s in\n%s", part, text);
}
