/*
 * cpu_log.c - see cpu_log.h.
 * Layer L3. A list of chunks; the ones that were read are given back.
 */
#include "config.h"

#include "cpu_log.h"

#include "kept.h"

#define CHUNK_BYTES ((size_t)65536)

struct mew_cpu_log_chunk {
	struct mew_cpu_log_chunk *next;
	size_t n;
	struct mew_cpu_crew_record records[];
};
#define CHUNK_RECORDS ((CHUNK_BYTES - sizeof(struct mew_cpu_log_chunk)) / sizeof(struct mew_cpu_crew_record))

static struct mew_cpu_log_chunk *add_chunk(struct mew_cpu_log *log)
{
	struct mew_cpu_log_chunk *chunk = mew_kept_map(CHUNK_BYTES);

	if (chunk == NULL)
		return NULL;
	if (log->last != NULL)
		log->last->next = chunk;
	else
		log->first = chunk;
	return log->last = chunk;
}

bool mew_cpu_log_push(struct mew_cpu_log *log, const struct mew_cpu_crew_record *record)
{
	struct mew_cpu_log_chunk *chunk = log->last;

	if (chunk == NULL || chunk->n == CHUNK_RECORDS)
		chunk = add_chunk(log);
	if (chunk == NULL)
		return false;
	chunk->records[chunk->n++] = *record;
	return true;
}

bool mew_cpu_log_pop(struct mew_cpu_log *log, struct mew_cpu_crew_record *record)
{
	struct mew_cpu_log_chunk *chunk = log->first;

	if (chunk == NULL || log->popped == chunk->n)
		return false;
	*record = chunk->records[log->popped++];
	if (log->popped == chunk->n && chunk->next != NULL) {
		log->first = chunk->next;
		log->popped = 0;
		mew_kept_unmap(chunk, CHUNK_BYTES);
	}
	return true;
}

void mew_cpu_log_fini(struct mew_cpu_log *log)
{
	struct mew_cpu_log_chunk *next;

	for (struct mew_cpu_log_chunk *at = log->first; at != NULL; at = next) {
		next = at->next;
		mew_kept_unmap(at, CHUNK_BYTES);
	}
	*log = (struct mew_cpu_log){ .popped = 0 };
}
