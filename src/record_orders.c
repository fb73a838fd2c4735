/*
 * record_orders.c - what `mew record` tells the programs that it records, as one variable of their environment.
 * Layer L4. Both ends.
 */
#include "config.h"

#include "record.h"

#include <stdio.h>
#include <string.h>

void mew_record_put_orders(const struct mew_record_orders *o, char *text, size_t size)
{
	(void)snprintf(text, size, "%s:%u:%llu:%d:%d:%llu:%u:%u\n%s\n%s", o->socket, o->kinds,
		       (unsigned long long)o->interval_ns, (int)o->clock, o->follow, (unsigned long long)o->from_ns,
		       o->preloaded, o->place, o->start_on, o->stop_on);
}

/* A line, which may be empty. Returns what follows it; NULL for none. */
static const char *get_line(const char *text, char out[MEW_NAME_BYTES])
{
	const char *end = text != NULL ? strchrnul(text, '\n') : NULL;

	if (end == NULL || (size_t)(end - text) >= MEW_NAME_BYTES)
		return NULL;
	memcpy(out, text, (size_t)(end - text));
	out[end - text] = '\0';
	return *end == '\n' ? end + 1 : end;
}

bool mew_record_get_orders(struct mew_record_orders *o, const char *text)
{
	unsigned long long interval, from;
	int clock, follow;

	if (sscanf(text, "%63[^:]:%u:%llu:%d:%d:%llu:%u:%u", o->socket, &o->kinds, &interval, &clock, &follow, &from,
		   &o->preloaded, &o->place) != 8)
		return false;
	o->interval_ns = interval;
	o->clock = clock == (int)MEW_CLOCK_CPU ? MEW_CLOCK_CPU : MEW_CLOCK_WALL;
	o->follow = follow != 0;
	o->from_ns = from;
	text = strchr(text, '\n');
	text = get_line(text != NULL ? text + 1 : NULL, o->start_on);
	return get_line(text, o->stop_on) != NULL;
}
