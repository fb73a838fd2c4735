/*
 * fx_code.c - compares the lengths of instructions with those of a disassembler, whose listing comes on standard input.
 * A line is "ADDRESS:<tab>BYTES<tab>TEXT", as `objdump -d -w` prints it. Prints how many were read, refused and wrong.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code_x86_64.h"

/* Where a direct jump or call leads, as the text says: the first number behind its name. */
static bool shown_target(const char *text, unsigned long long *out)
{
	const char *number = text + strcspn(text, " ");
	char *end;

	number += strspn(number, " ");
	if (*number == '*' || *number == '%')
		return false;
	*out = strtoull(number, &end, 16);
	return end > number;
}

static bool is_right(const struct mew_code *c, const unsigned char *bytes, unsigned n, unsigned long long address,
		     const char *text)
{
	unsigned long long target;

	if (c->bytes != n)
		return false;
	if (c->kind < MEW_CODE_CALL || c->kind == MEW_CODE_END)
		return text[0] != 'j' || text[strcspn(text, "*")] == '*'; /* no jump may look like something else */
	return !shown_target(text, &target) || target == mew_code_target(c, bytes, address);
}

int main(void)
{
	unsigned long long read = 0, refused = 0, wrong = 0;
	char line[4096];

	while (fgets(line, sizeof line, stdin) != NULL) {
		char *at, *tab = strchr(line, '\t'), *text = tab != NULL ? strchr(tab + 1, '\t') : NULL;
		unsigned long long address = strtoull(line, NULL, 16);
		unsigned char bytes[MEW_CODE_BYTES + 16] = { 0 };
		unsigned n = 0;
		struct mew_code c;

		if (text == NULL || strstr(text, "(bad)") != NULL)
			continue;
		for (at = tab + 1; at < text && n < MEW_CODE_BYTES; n++) {
			char *end;
			unsigned long byte = strtoul(at, &end, 16);

			if (end == at || end > text)
				break;
			bytes[n] = (unsigned char)byte;
			at = end;
		}
		read++;
		if (!mew_code_read(bytes, sizeof bytes, &c)) {
			refused++;
			(void)fprintf(stderr, "refused: %s", line);
		} else if (!is_right(&c, bytes, n, address, text + 1)) {
			wrong++;
			(void)fprintf(stderr, "wrong (%u bytes, kind %d): %s", c.bytes, (int)c.kind, line);
		}
	}
	printf("read %llu refused %llu wrong %llu\n", read, refused, wrong);
	return wrong == 0 && read > 0 ? 0 : 1;
}
