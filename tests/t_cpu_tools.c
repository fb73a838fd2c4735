/*
 * t_cpu_tools.c - the CPU pass of the command on a program with a known profile: inlining, and beside perf.
 * Test program. Runs the mew of $builddir (".") on tests/fx_cpu_tools.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"
#include "tools/read_json.h"

#define TRIES 5

static char work[] = "/tmp/mew-cpu-tools-XXXXXX";
static const char *build, *source;

static bool run(const char *format, ...) MEW_PRINTF(1, 2);

/* Run a shell command; its output is of no interest unless it fails. */
static bool run(const char *format, ...)
{
	char command[1024];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(command, sizeof command, format, ap);
	va_end(ap);
	assert_true(n > 0 && (size_t)n < sizeof command);
	return system(command) == 0;
}

static char *path_in(char *path, size_t bytes, const char *name)
{
	int n = snprintf(path, bytes, "%s/%s", work, name);

	assert_true(n > 0 && (size_t)n < bytes);
	return path;
}

/* The results of a CPU pass of one case; freed by mew_model_free(). */
static struct mew_model *profile(const char *key, unsigned iterations)
{
	char json[64];
	struct mew_error err;
	struct mew_model *m;

	path_in(json, sizeof json, "r.json");
	if (!run("MEW_FX_TRUTH=%s/truth %s/mew run --cpu --inner-iterations %u --min-time 1x -k '^%s$' --json %s "
		 "%s/tests/fx_cpu_tools >%s/out 2>&1", work, build, iterations, key, json, build, work)) {
		(void)run("sed 's/^/# /' %s/out", work);
		fail_msg("the command failed (above)");
	}
	m = mew_read_json(json, &err);
	if (m == NULL)
		fail_msg("%s", err.text);
	assert_int_equal(m->ncases, 1);
	assert_int_equal(m->cases[0].cpu.status, MEW_OK);
	return m;
}

static const struct mew_location *leaf_of(const struct mew_model *m, const struct mew_cpu_sample *s)
{
	if (s->stack == MEW_NO_STACK)
		return NULL;
	return &m->locations[m->frames[m->stacks[s->stack].first]];
}

/* Is the i-th function at this place, innermost first, of that name? */
static bool is_named(const struct mew_model *m, const struct mew_location *l, uint32_t i, const char *name)
{
	return l != NULL && i < l->nlines && strcmp(m->functions[m->lines[l->first_line + i].function].name, name) == 0;
}

/* The number of the line of the fixture that has this mark. */
static unsigned line_of(const char *mark)
{
	char path[512], text[256];
	unsigned number = 0, found = 0;
	FILE *from;

	(void)snprintf(path, sizeof path, "%s/tests/fx_cpu_tools.c", source);
	from = fopen(path, "r");
	assert_non_null(from);
	while (found == 0 && fgets(text, sizeof text, from) != NULL) {
		number++;
		if (strstr(text, mark) != NULL)
			found = number;
	}
	(void)fclose(from);
	assert_true(found > 0);
	return found;
}

/* --- inlining ---------------------------------------------------------------------------------------------------- */

struct split {
	double kernel, on_line, first, second, all; /* seconds of weight */
};

static struct split add_up(const struct mew_model *m, unsigned line)
{
	const struct mew_case *c = &m->cases[0];
	struct split sum = { .all = 0 };

	for (size_t i = 0; i < c->nsamples; i++) {
		const struct mew_location *l = leaf_of(m, &c->samples[i]);
		double weight = (double)c->samples[i].weight_ns * 1e-9;

		sum.all += weight;
		if (!is_named(m, l, 0, "kernel"))
			continue;
		sum.kernel += weight;
		sum.on_line += m->lines[l->first_line].line == line ? weight : 0;
		sum.first += is_named(m, l, 1, "first_caller") ? weight : 0;
		sum.second += is_named(m, l, 1, "second_caller") ? weight : 0;
	}
	return sum;
}

/* Part of the time that the body saw pass in the first caller. */
static double true_share(void)
{
	char path[64];
	unsigned long long first, second;
	FILE *from = fopen(path_in(path, sizeof path, "truth"), "r");

	assert_non_null(from);
	assert_int_equal(fscanf(from, "%llu %llu", &first, &second), 2);
	(void)fclose(from);
	return (double)first / (double)(first + second);
}

static bool try_inlined(void)
{
	struct mew_model *m = profile("inlined", 5000);
	struct split got = add_up(m, line_of("line: KERNEL_LOOP"));
	double share = got.first / (got.first + got.second), truth = true_share();
	char top[64];

	(void)snprintf(top, sizeof top, "kernel (fx_cpu_tools.c:%u)", line_of("line: KERNEL *"));
	assert_non_null(m->cases[0].cpu.top_function);
	assert_string_equal(m->cases[0].cpu.top_function, top);
	assert_true(fabs(got.first + got.second - got.kernel) < 1e-9); /* each sample has its caller */
	mew_model_free(m);
	printf("# %.1f %% in the kernel, %.1f %% of that on its line; first caller %.3f of it, truth %.3f\n",
	       100 * got.kernel / got.all, 100 * got.on_line / got.kernel, share, truth);
	assert_true(got.on_line >= 0.99 * got.kernel);
	return got.kernel >= 0.97 * got.all && fabs(share - truth) <= 0.03;
}

static void t_inlined(void **state)
{
	(void)state;
	for (int i = 0; i < TRIES; i++)
		if (try_inlined())
			return;
	fail_msg("five tries, each outside of its tolerance (above)");
}

/* --- beside perf ------------------------------------------------------------------------------------------------- */

static const char *const workers[] = { "work_a", "work_b", "work_c", "work_d", "work_e" };
#define WORKERS MEW_COUNTOF(workers)

/* Self shares of the five among themselves. Returns how many samples they are. */
static double shares_by_mew(double *share)
{
	struct mew_model *m = profile("five", 8000);
	const struct mew_case *c = &m->cases[0];
	double all = 0;
	size_t n = 0;

	for (size_t w = 0; w < WORKERS; w++)
		share[w] = 0;
	for (size_t i = 0; i < c->nsamples; i++)
		for (size_t w = 0; w < WORKERS; w++)
			if (is_named(m, leaf_of(m, &c->samples[i]), 0, workers[w])) {
				share[w] += (double)c->samples[i].weight_ns;
				all += (double)c->samples[i].weight_ns;
				n++;
			}
	for (size_t w = 0; w < WORKERS && all > 0; w++)
		share[w] /= all;
	mew_model_free(m);
	return (double)n;
}

static double shares_by_perf(double *share)
{
	char command[256], text[512], name[128];
	double all = 0;
	FILE *from;

	if (!run("perf record -q -e cpu-clock -F 4000 -o %s/perf.data -- %s/tests/fx_cpu_tools --min-time 8000x -k '^five$' "
		 ">%s/out 2>&1", work, build, work))
		return 0;
	(void)snprintf(command, sizeof command, "perf script -i %s/perf.data -F ip,sym 2>/dev/null", work);
	from = popen(command, "r");
	assert_non_null(from);
	for (size_t w = 0; w < WORKERS; w++)
		share[w] = 0;
	while (fgets(text, sizeof text, from) != NULL)
		for (size_t w = 0; w < WORKERS; w++)
			if (sscanf(text, "%*s %127s", name) == 1 && strcmp(name, workers[w]) == 0) {
				share[w]++;
				all++;
			}
	(void)pclose(from);
	for (size_t w = 0; w < WORKERS && all > 0; w++)
		share[w] /= all;
	return all;
}

/* The same binary; what takes no part of the profile differs (start, symbols), so the five are compared alone. */
static bool agrees_with_perf(void)
{
	double by_mew[WORKERS], by_perf[WORKERS], n = shares_by_mew(by_mew), m = shares_by_perf(by_perf);
	bool ok = true;

	if (m == 0) {
		printf("# perf is not installed, or may not record here\n");
		skip();
	}
	for (size_t w = 0; w < WORKERS; w++) {
		double p = by_mew[w], sigma = sqrt(p * (1 - p) * (1 / n + 1 / m));

		printf("# %s: mew %.3f, perf %.3f\n", workers[w], p, by_perf[w]);
		ok = fabs(p - by_perf[w]) <= fmax(0.03, 4 * sigma) && ok;
	}
	return ok && n > 1000 && m > 1000;
}

static void t_beside_perf(void **state)
{
	(void)state;
	for (int i = 0; i < TRIES; i++)
		if (agrees_with_perf())
			return;
	fail_msg("five tries, each outside of its tolerance (above)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_inlined),
		cmocka_unit_test(t_beside_perf),
	};
	int failed;

	if (getenv("MEW_TEST_QUICK") != NULL) {
		puts("1..0 # SKIP accuracy is judged in the reference build, where nothing else runs");
		return 0;
	}
	build = getenv("builddir") != NULL ? getenv("builddir") : ".";
	source = getenv("srcdir") != NULL ? getenv("srcdir") : ".";
	if (mkdtemp(work) == NULL) {
		perror(work);
		return 1;
	}
	failed = cmocka_run_group_tests_name("cpu_tools", tests, NULL, NULL);
	(void)run("rm -rf %s", work);
	return failed;
}
