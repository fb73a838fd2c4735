/*
 * plan_capture.c - see plan_private.h: the blocks of the memory and the CPU pass.
 * Layer L4. The plan's thread.
 */
#include "config.h"

#include "plan_private.h"

#define CPU_CHUNK_NS 1000000u
#define CPU_MIN_ITERATIONS 1000u
#define CPU_MIN_SAMPLES 1000u
#define CPU_MAX_NS 2000000000u

/* A block of so many iterations, in chunks of `loops`. */
static struct mew_request fixed(const struct mew_plan_pass *r, const struct mew_plan_case *c, int phase,
				uint64_t iterations, uint64_t loops)
{
	struct mew_request rq = mew_plan_request(r, c, phase, 0);

	rq.plan.loops = loops;
	rq.plan.exact = iterations;
	if (iterations / loops < rq.plan.max_samples)
		rq.plan.max_samples = iterations / loops + 1;
	return rq;
}

static bool warm_up_fixed(struct mew_plan_pass *r, struct mew_plan_case *c, int phase, uint64_t iterations)
{
	uint64_t few = iterations < 10 ? 1 : iterations / 10;
	struct mew_request rq = fixed(r, c, phase, few, few);

	return mew_plan_block(r, c, &rq) != NULL;
}

/*
 * Growth of resident memory, seen in a second warm-up call of full length: the table of blocks would be part of it. The
 * figure waits here until the value block has made the row.
 */
struct resident {
	bool present;
	uint64_t bytes;
	const char *why; /* the model's */
};

static bool find_resident(struct mew_plan_pass *r, struct mew_plan_case *c, uint64_t iterations, struct resident *out)
{
	struct mew_request rq = fixed(r, c, MEW_PHASE_MEMORY_WARMUP, iterations, iterations);
	const struct mew_case *row;

	rq.captured = rq.resident = rq.plan.free_running = true;
	row = mew_plan_block(r, c, &rq);
	if (row == NULL)
		return false;
	out->why = mew_memory_why(&row->memory, MEW_FIG_RSS_PEAK_DELTA_BYTES);
	out->present = out->why == NULL;
	out->bytes = row->memory.rss_peak_delta_bytes;
	return true;
}

static void memory_blocks(struct mew_plan_pass *r, struct mew_plan_case *c, uint64_t iterations)
{
	struct mew_request rq = fixed(r, c, MEW_PHASE_MEMORY_VALUE, iterations, 1); /* single turns are figures too */
	struct resident resident;
	struct mew_case *row;

	rq.captured = rq.plan.free_running = true;
	if ((!r->o->cold_resident && !warm_up_fixed(r, c, MEW_PHASE_MEMORY_WARMUP, iterations)) ||
	    !find_resident(r, c, iterations, &resident))
		return;
	row = mew_plan_block(r, c, &rq);
	if (row != NULL && resident.present)
		mew_model_u64(row, r->kind, MEW_FIG_RSS_PEAK_DELTA_BYTES, resident.bytes);
	else if (row != NULL)
		mew_model_absent(r->model, row, r->kind, MEW_FIG_RSS_PEAK_DELTA_BYTES, resident.why);
}

void mew_plan_memory_case(struct mew_plan_pass *r, struct mew_plan_case *c)
{
	mew_plan_open_case(r, c);
	if (mew_plan_go_on(r, c))
		memory_blocks(r, c, c->iterations != 0 ? c->iterations : r->o->memory_iterations);
	r->done++;
	mew_plan_close_case(r, c);
}

static void cpu_exactly(struct mew_plan_pass *r, struct mew_plan_case *c, uint64_t iterations)
{
	struct mew_request rq = fixed(r, c, MEW_PHASE_CPU_VALUE, iterations, iterations);

	rq.captured = rq.plan.free_running = true;
	if (warm_up_fixed(r, c, MEW_PHASE_CPU_WARMUP, iterations))
		(void)mew_plan_block(r, c, &rq);
}

/* Until there are enough iterations and samples, in chunks found by the warm-up. */
static void cpu_until_known(struct mew_plan_pass *r, struct mew_plan_case *c)
{
	struct mew_request rq = mew_plan_request(r, c, MEW_PHASE_CPU_WARMUP, 0);
	struct mew_case *row;

	rq.plan.target_ns = CPU_CHUNK_NS;
	row = mew_plan_block(r, c, &rq);
	if (row == NULL)
		return;
	rq = mew_plan_request(r, c, MEW_PHASE_CPU_VALUE, 0);
	rq.captured = true;
	rq.plan.loops = mew_plan_loops(row, CPU_CHUNK_NS);
	rq.plan.min_samples = 1;
	rq.plan.min_iterations = CPU_MIN_ITERATIONS;
	rq.plan.min_ns = rq.interval_ns * (CPU_MIN_SAMPLES + CPU_MIN_SAMPLES / 20);
	rq.plan.max_ns = CPU_MAX_NS;
	rq.plan.free_running = true;
	(void)mew_plan_block(r, c, &rq);
}

void mew_plan_cpu_case(struct mew_plan_pass *r, struct mew_plan_case *c)
{
	uint64_t exact = c->iterations != 0 ? c->iterations : r->o->inner_iterations;

	mew_plan_open_case(r, c);
	if (mew_plan_go_on(r, c)) {
		if (exact == 0)
			cpu_until_known(r, c);
		else
			cpu_exactly(r, c, exact);
	}
	r->done++;
	mew_plan_close_case(r, c);
}
