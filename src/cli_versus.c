/*
 * cli_versus.c - see cli_versus.h.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "cli_versus.h"

#include "versus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static int check(const struct mew_cli *c)
{
	const char *wrong = NULL;

	if (c->nprograms != 1)
		wrong = "takes one program: `mew run --versus KEY_A KEY_B ./bench`";
	else if (c->passes[MEW_PASS_MEMORY] || c->passes[MEW_PASS_CPU] || c->noutputs > 0 || c->trace.file != NULL)
		wrong = "compares time alone and writes no reports: leave out passes, reports and --trace";
	else if (c->host.nhooks > 0)
		wrong = "runs both cases at once, where hooks cannot tell them apart: leave out --hook";
	if (wrong == NULL)
		return MEW_EXIT_FINE;
	mew_cli_complain("--versus %s", wrong);
	return MEW_EXIT_USAGE;
}

static void print(const struct mew_cli *c, const struct mew_versus *v)
{
	const struct mew_verdict *t = &v->verdict;
	double percent = (t->ratio - 1) * 100;

	if (t->outcome == MEW_OUTCOME_REGRESSED || t->outcome == MEW_OUTCOME_IMPROVED)
		(void)printf("%s is %s than %s by %.2f %%", c->versus[MEW_HEAD], percent > 0 ? "slower" : "faster",
			     c->versus[MEW_BASE], fabs(percent));
	else
		(void)printf("no difference resolved between %s and %s: %+.2f %%", c->versus[MEW_HEAD], c->versus[MEW_BASE], percent);
	if (t->has_interval)
		(void)printf(" (%+.2f to %+.2f)", (t->interval.low - 1) * 100, (t->interval.high - 1) * 100);
	(void)printf("\n  %s %.4g ns, %s %.4g ns an iteration; %zu observations, %u disturbed ones left out, %.3f s\n",
		     c->versus[MEW_BASE], v->ns[MEW_BASE], c->versus[MEW_HEAD], v->ns[MEW_HEAD], t->n, v->disturbed, v->seconds);
	(void)printf("  this is said of this build alone: linked anew, the two may lie otherwise in memory\n");
}

int mew_cli_versus(const struct mew_cli *c)
{
	struct mew_versus_options o = {
		.keys = { c->versus[MEW_BASE], c->versus[MEW_HEAD] },
		.host = &c->host,
		.max_time = c->plan.max_time > 0 ? c->plan.max_time : 0.5,
	};
	struct mew_versus v;
	struct mew_error err;
	int status;

	if (check(c) != MEW_EXIT_FINE)
		return MEW_EXIT_USAGE;
	o.program = c->programs[0];
	if (getrandom(&o.seed, sizeof o.seed, 0) != sizeof o.seed)
		o.seed = (uint64_t)time(NULL);
	status = mew_versus(&o, &v, &err);
	if (status != MEW_OK) {
		mew_cli_complain("--versus: %s", err.text);
		return status == MEW_E_INVALID ? MEW_EXIT_USAGE : status == MEW_E_BUSY ? MEW_EXIT_INVALID : MEW_EXIT_FAILED;
	}
	if (v.verdict.n == 0) {
		mew_cli_complain("--versus: every sample lost the processor: quieten the machine, or give more --max-time");
		return MEW_EXIT_INVALID;
	}
	print(c, &v);
	return v.verdict.outcome == MEW_OUTCOME_INCONCLUSIVE ? MEW_EXIT_INCONCLUSIVE : MEW_EXIT_FINE;
}
