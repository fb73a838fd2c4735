/*
 * unwind_rules.h - the rule of an address, by way of the thread's cache: what every unwind_<machine>.c begins with.
 * Layer L1. Included by those files alone, each of which defines find_rule(). Signal, malloc.
 */
#ifndef MEW_UNWIND_RULES_H
#define MEW_UNWIND_RULES_H

#include "ehframe.h"
#include "modules.h"
#include "unwind.h"

#define BEING_WRITTEN 1 /* key of a cache entry; no code lies at that address */

/* It reads other functions' frames, also the gaps that a sanitizer guards. */
#define READS_STACKS __attribute__((no_sanitize("address", "thread")))

/* The rule in force at pc, which is one less than the address where pc is a return address. */
static uint64_t find_rule(const struct mew_modules *modules, uintptr_t pc);

/*
 * A nested signal may walk between any two instructions of ours, with the same cache. An entry being written carries a
 * key that no code has, and whoever meets that key leaves the entry alone: were it filled in between, our key would end
 * up beside the other's rule. A reader looks at the key before and after. A rule from a snapshot that a nested walk has
 * meanwhile replaced is taken out again.
 */
static void remember(const struct mew_unwind_thread *t, struct mew_unwind_cache_entry *e, uint64_t generation,
		     uintptr_t pc, uint64_t rule)
{
	volatile struct mew_unwind_cache_entry *entry = e;

	if (entry->pc == BEING_WRITTEN)
		return;
	entry->pc = BEING_WRITTEN;
	entry->rule = rule;
	entry->pc = pc;
	if (*(const volatile uint64_t *)&t->generation != generation)
		entry->pc = 0;
}

static inline uint64_t rule_at(struct mew_unwind_thread *t, const struct mew_modules *modules, uintptr_t pc)
{
	struct mew_unwind_cache_entry *e = &t->cache[(pc ^ pc >> 10) & (MEW_UNWIND_CACHE - 1)];
	const volatile struct mew_unwind_cache_entry *entry = e;
	uint64_t rule;

	if (MEW_LIKELY(entry->pc == pc)) {
		rule = entry->rule;
		if (MEW_LIKELY(entry->pc == pc))
			return rule;
	}
	rule = find_rule(modules, pc);
	remember(t, e, modules->generation, pc, rule);
	return rule;
}

static void forget_old(struct mew_unwind_thread *t, uint64_t generation)
{
	volatile struct mew_unwind_cache_entry *entry = t->cache;

	if (MEW_LIKELY(t->generation == generation))
		return;
	for (size_t i = 0; i < MEW_UNWIND_CACHE; i++) {
		if (entry[i].pc != BEING_WRITTEN) {
			entry[i].pc = 0;
			entry[i].rule = MEW_RULE_NONE; /* that is the rule of address 0 */
		}
	}
	t->generation = generation;
}

#endif
