/*
 * budget.c - budgets without benchmarks: a unit test that says how many allocations a piece of code may make.
 * A ring of messages allocates once, when it is made; what is done with it later must not. The last budget is meant to
 * be exceeded. Prints what it finds; returns 1 when a budget held that must not, or the other way round.
 */
#include <mew.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct ring {
	size_t capacity, first, n;
	char (*messages)[64];
};

static int ring_init(struct ring *r, size_t capacity)
{
	*r = (struct ring){ .capacity = capacity, .messages = calloc(capacity, sizeof *r->messages) };
	return r->messages != NULL ? 0 : -1;
}

static void ring_put(struct ring *r, const char *message)
{
	char *place = r->messages[(r->first + r->n) % r->capacity];

	(void)snprintf(place, sizeof *r->messages, "%s", message);
	if (r->n < r->capacity)
		r->n++;
	else
		r->first = (r->first + 1) % r->capacity;
}

static char *copy_of(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = malloc(bytes);

	return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

/* The mistake to be found: a copy nobody needs. */
static size_t ring_longest(const struct ring *r)
{
	size_t longest = 0;

	for (size_t i = 0; i < r->n; i++) {
		char *copy = copy_of(r->messages[(r->first + i) % r->capacity]);
		size_t length = copy != NULL ? strlen(copy) : 0;

		longest = length > longest ? length : longest;
		free(copy);
	}
	return longest;
}

static unsigned failures;

/* Instead of printing and ending the process; with cmocka it would be fail_msg("%s", failure->text). */
static void note_failure(const struct mew_span_failure *failure, void *data)
{
	(void)data;
	printf("%s", failure->text);
	failures++;
}

static int test_ring(struct ring *r)
{
	int failed = 1;

	mew_assert_allocs_le(1) {
		failed = ring_init(r, 4);
	}
	if (failed)
		return -1;
	mew_assert_no_alloc {
		for (int i = 0; i < 10; i++)
			ring_put(r, i % 2 == 0 ? "ping" : "and pong");
	}
	return 0;
}

int main(void)
{
	struct mew_span span;
	struct ring r;
	size_t longest = 0;

	if (mew_span_begin(&span, MEW_SPAN_THREAD) != MEW_OK) {
		printf("not measured here: %s\n", mew_last_error()->text);
		return 0;
	}
	mew_span_on_failure(note_failure, NULL);
	if (test_ring(&r) != 0 || failures != 0)
		return 1;
	mew_assert_no_alloc {
		longest = ring_longest(&r);
	}
	free(r.messages);
	if (mew_span_end(&span) != MEW_OK) {
		fprintf(stderr, "budget: %s\n", mew_last_error()->text);
		return 1;
	}
	printf("the longest message has %zu letters; all in all %" PRIu64 " allocations of %" PRIu64
	       " bytes, %" PRId64 " left\n", longest, span.allocations, span.cumulative_bytes, span.net_blocks);
	return failures == 1 ? 0 : 1;
}
