/*
 * direct.c - the library called from a program of one's own: no MEW_MAIN, an array of entries, figures read by name.
 * Prints the three tables and one line made from a row; returns 1 with the library's sentence when a call fails.
 */
#include <mew.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const word_labels[] = { "20", "200", NULL };
static const size_t word_counts[] = { 20, 200 };

/* A word of three to ten letters that depends on `seed` alone; the caller frees it. */
static char *make_word(unsigned seed)
{
	size_t length = 3 + seed % 8;
	char *word = malloc(length + 1);

	if (word == NULL)
		return NULL;
	for (size_t i = 0; i < length; i++) {
		seed = seed * 1103515245u + 12345u;
		word[i] = (char)('a' + (seed >> 16) % 26);
	}
	word[length] = '\0';
	return word;
}

static int compare_words(const void *a, const void *b)
{
	const char *const *left = a;
	const char *const *right = b;

	return strcmp(*left, *right);
}

static void sort_words(struct mew_state *st, void *arg)
{
	size_t count = word_counts[mew_case_index(st)];
	char *words[200];
	int complete = 1;

	(void)arg;
	MEW_LOOP(st) {
		for (size_t i = 0; i < count; i++) {
			words[i] = make_word((unsigned)i * 2654435761u);
			complete &= words[i] != NULL;
		}
		if (complete)
			qsort(words, count, sizeof words[0], compare_words);
		for (size_t i = 0; i < count; i++)
			free(words[i]);
	}
	if (!complete)
		mew_fail(st, "out of memory for the words");
	mew_set_items(st, (double)count);
}

static void make_one_word(struct mew_state *st, void *arg)
{
	const unsigned *seed = arg;

	MEW_LOOP_BATCH(st, 100) {
		for (unsigned i = 0; i < 100; i++) {
			char *word = make_word(*seed + i);

			mew_keep(word);
			free(word);
		}
	}
}

static unsigned first_seed = 42;

static const struct mew_entry entries[] = {
	{ .name = "words/sort", .run = sort_words, .cases = word_labels },
	{ .name = "words/make", .run = make_one_word, .arg = &first_seed },
	{ 0 }
};

static int failed(const char *what)
{
	const struct mew_error *error = mew_last_error();

	fprintf(stderr, "direct: %s: %s (%s)\n", what, error->text, mew_status_name(error->status));
	return 1;
}

/* A figure is read only when it is there; otherwise the library says why it is not. */
static void print_peak(const struct mew_memory_profiles *profiles, const char *key)
{
	const struct mew_memory_case *row = mew_memory_find(profiles, key);

	if (row == NULL)
		printf("no row for %s\n", key);
	else if (row->present >> MEW_FIG_PEAK_BYTES & 1)
		printf("%s holds at most %" PRIu64 " bytes at once\n", key, row->peak_bytes);
	else
		printf("%s: no peak: %s\n", key, mew_memory_why(row, MEW_FIG_PEAK_BYTES));
}

static int time_all(void)
{
	struct mew_results *results = mew_run(entries, .min_time = 0.05, .repetitions = 3);
	int status;

	if (results == NULL)
		return failed("mew_run");
	status = mew_results_print(results, stdout);
	mew_results_free(results);
	return status == MEW_OK ? 0 : failed("mew_results_print");
}

static int profile_memory(void)
{
	struct mew_memory_profiles *profiles = mew_memory_profile(entries, 100);
	int status;

	if (profiles == NULL)
		return failed("mew_memory_profile");
	status = mew_memory_print(profiles, stdout);
	print_peak(profiles, "words/sort/case:1");
	mew_memory_free(profiles);
	return status == MEW_OK ? 0 : failed("mew_memory_print");
}

static int profile_cpu(void)
{
	struct mew_cpu_profiles *profiles = mew_cpu_profile(entries, .interval = 0.0005);
	int status;

	if (profiles == NULL)
		return failed("mew_cpu_profile");
	status = mew_cpu_print(profiles, stdout);
	mew_cpu_free(profiles);
	return status == MEW_OK ? 0 : failed("mew_cpu_print");
}

int main(void)
{
	int status = time_all();

	status |= profile_memory();
	status |= profile_cpu();
	return status;
}
