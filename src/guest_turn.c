/*
 * guest_turn.c - what happens at the edges of a loop's first thread in every pass: turns with another build's loop, and
 * slices of the timeline.
 * Layer L4. The framework's first thread, before and behind its barriers: nothing here is inside its clocks.
 */
#include "config.h"

#include "guest.h"

#include "os.h"
#include "pace.h"
#include "trace_log.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static struct mew_pace *page;
static bool arrived;      /* at the first loop */
static bool has_turn;
static uint64_t switches; /* of this thread, when the turn came */
static uint64_t loop_ns, case_ns; /* the timeline: start of the loop, of the first one since the last report; 0: none */

void mew_guest_find_page(const struct mew_guest_channel *channel)
{
	struct stat st;

	if (channel->pace_fd < 0 || fstat(channel->pace_fd, &st) != 0 || st.st_size != (off_t)sizeof *page)
		return;
	page = mew_pace_map(channel->pace_fd);
}

/* --- turns -------------------------------------------------------------------------------------------------------- */

static void begin_turn(void)
{
	struct mew_os_events events;

	has_turn = mew_pace_wait(page, mew_guest_channel()->side == 0 ? MEW_BASE : MEW_HEAD, !arrived, NULL);
	arrived = true;
	mew_os_events(&events);
	switches = events.context_switches;
}

/* Waits for other threads of the case are switches too, and disturb nothing. */
static void end_turn(unsigned threads)
{
	struct mew_guest_channel *channel = mew_guest_channel();
	struct mew_os_events events;
	bool disturbed;

	mew_os_events(&events);
	disturbed = threads == 1 && events.context_switches != switches;
	channel->disturbed[channel->loops % MEW_GUEST_LOOPS] = disturbed;
	channel->loops++;
	if (has_turn)
		mew_pace_pass(page, disturbed);
	has_turn = false;
}

/* --- the timeline ------------------------------------------------------------------------------------------------- */

void mew_guest_trace_process(enum mew_guest_pass pass)
{
	static const char *const names[] = { "", "", " (time pass)", " (memory pass)", " (CPU pass)" };
	char name[120];

	if (!mew_trace_is_on())
		return;
	(void)snprintf(name, sizeof name, "%s%s", program_invocation_short_name, names[pass]);
	mew_trace_process(name, pass >= MEW_GUEST_TIME ? 1 + (int)(pass - MEW_GUEST_TIME) : 1);
}

static void trace_loop(unsigned threads, uint64_t iterations)
{
	struct mew_trace_args args = { 0 };

	mew_trace_arg_number(&args, "iterations", iterations);
	mew_trace_arg_number(&args, "threads", threads);
	mew_trace_slice(&(struct mew_trace_slice){
		.category = "phase", .name = "loop", .start_ns = loop_ns, .end_ns = mew_os_now_ns(), .args = &args });
	loop_ns = 0;
}

/* Its name is known only here. Of several runs that are reported together the first one has had the loops. */
void mew_guest_trace_case(const struct mew_guest_run *run)
{
	struct mew_trace_args args = { 0 };

	if (case_ns == 0 || !mew_trace_is_on())
		return;
	mew_trace_arg_text(&args, "label", run->label);
	mew_trace_arg_number(&args, "threads", run->threads);
	mew_trace_arg_number(&args, "iterations", run->iterations);
	mew_trace_arg_text(&args, "failed", run->outcome == MEW_GUEST_FAILED ? run->why : NULL);
	mew_trace_slice(&(struct mew_trace_slice){
		.category = "case", .name = run->key, .start_ns = case_ns, .end_ns = mew_os_now_ns(), .args = &args });
	mew_trace_resident();
	mew_trace_drain();
	case_ns = 0;
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

void mew_guest_first_enters(void)
{
	if (page != NULL && mew_guest_channel() != NULL)
		begin_turn();
	if (!mew_trace_is_on())
		return;
	loop_ns = mew_os_now_ns();
	if (case_ns == 0)
		case_ns = loop_ns;
}

void mew_guest_first_leaves(unsigned threads, uint64_t iterations)
{
	if (page != NULL && mew_guest_channel() != NULL)
		end_turn(threads);
	if (loop_ns != 0)
		trace_loop(threads, iterations);
}

void mew_guest_end_turns(void)
{
	if (page != NULL && mew_guest_channel() != NULL)
		mew_pace_leave(page);
}
