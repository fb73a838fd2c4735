/*
 * ehframe.c - lists the functions of an .eh_frame, runs their frame programs and seals the rows into a table.
 * Layer L1. Outside windows; runs inside dlopen wrappers, so memory comes from the kernel, never from malloc.
 */
#include "config.h"

#include "ehframe.h"

#include <string.h>

#include "ehframe_entry.h"
#include "os.h"

#include "hotpath.h"

#define MAX_RULES 16383u  /* libLLVM has 1,700 */
#define SLOT_BITS 10u     /* to begin with: most files have 200 to 500 rules */
#define MAX_SLOT_BITS 15u /* at least two slots for each of MAX_RULES */
#define PAGE_BYTES 4096u
#define PAIR_BYTES 8u /* of the search table: two signed words, relative to its header */
#define ROWS_EACH 16u /* functions have ten; more cost another turn */

struct function {
	uint32_t offset; /* of its code from in->lo */
	uint32_t entry;  /* offset of its FDE in the frames */
};

struct rows {
	uint32_t *offset;
	uint16_t *rule;
	size_t n, size;
	bool overrun; /* there was no room for one more */
};

struct builder {
	struct mew_frames frames;
	const struct mew_ehframe *in;
	struct mew_arena *arena;
	struct mew_unwind_table *table; /* being made; NULL before there is memory for it */
	uint32_t *page;
	struct rows rows;
	uint64_t *rules;
	uint16_t *slots; /* hash to index + 1 */
	unsigned slot_bits;
	struct function *functions;
	size_t nfunctions, room;
	uint32_t first_entry, last_entry; /* of the functions */
	uint32_t npages, nrules, compiled;
};

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void give_back(struct builder *b)
{
	if (b->table != NULL)
		mew_arena_trim(b->arena, b->table, 0);
	b->table = NULL;
}

/*
 * One piece for the table and for what it is made with: pages that were used for one file serve the next. In this
 * order, each of them aligned to 8 bytes:
 *
 *	the struct, pages, offsets of rows   where they stay
 *	numbers of their rules, rules        move up behind the last row when all is done
 *	slots, functions                     are given back then
 *
 * There is room for n functions and so many rows of each. Memory is used as it fills up, so there may be plenty.
 */
static bool reserve(struct builder *b, size_t n, size_t rows_each)
{
	size_t pages = ((size_t)b->npages + 2) & ~(size_t)1, nrows, bytes, functions;

	give_back(b);
	if (!mew_mul_size(n, rows_each, &nrows) || !mew_add_size(nrows, 64, &nrows))
		return false;
	nrows &= ~(size_t)3;
	if (!mew_mul_size(nrows, sizeof *b->rows.offset + sizeof *b->rows.rule, &bytes) ||
	    !mew_mul_size(n, sizeof *b->functions, &functions) || !mew_add_size(bytes, functions, &bytes) ||
	    !mew_add_size(bytes, sizeof *b->table + pages * sizeof *b->page + MAX_RULES * sizeof *b->rules +
				 (sizeof *b->slots << MAX_SLOT_BITS), &bytes))
		return false;
	b->table = mew_arena_alloc(b->arena, bytes);
	if (b->table == NULL)
		return false;
	b->page = (uint32_t *)(b->table + 1);
	b->rows = (struct rows){ .offset = b->page + pages, .size = nrows };
	b->rows.rule = (uint16_t *)(b->rows.offset + nrows);
	b->rules = (uint64_t *)(void *)(b->rows.rule + nrows);
	b->slots = (uint16_t *)(b->rules + MAX_RULES);
	b->functions = (struct function *)(void *)(b->slots + ((size_t)1 << MAX_SLOT_BITS));
	b->room = n;
	b->nfunctions = 0;
	b->first_entry = UINT32_MAX;
	b->last_entry = 0;
	return true;
}

/* --- listing functions -------------------------------------------------------------------------------------------- */

static void add_function(struct builder *b, uintptr_t pc, size_t entry)
{
	if (pc < b->in->lo || pc >= b->in->hi || entry > UINT32_MAX || b->nfunctions == b->room)
		return;
	b->functions[b->nfunctions++] = (struct function){ (uint32_t)(pc - b->in->lo), (uint32_t)entry };
	if (entry < b->first_entry)
		b->first_entry = (uint32_t)entry;
	if (entry > b->last_entry)
		b->last_entry = (uint32_t)entry;
}

struct header {
	uintptr_t frames; /* address of .eh_frame */
	size_t count;     /* pairs in the search table; 0 when it has another form */
	const uint8_t *pairs;
};

/* Version 1, three encodings, the address of .eh_frame, a count, and (function, FDE) pairs relative to the header. */
static bool read_header(const struct mew_span *span, struct header *out)
{
	struct mew_reader r = mew_reader_of(span, 0);
	uint64_t version = mew_read_bytes(&r, 1);
	uint8_t frames_form = (uint8_t)mew_read_bytes(&r, 1);
	uint8_t count_form = (uint8_t)mew_read_bytes(&r, 1);
	uint8_t pair_form = (uint8_t)mew_read_bytes(&r, 1);

	out->frames = mew_read_pointer(&r, frames_form, span->address);
	if (r.bad || version != 1 || out->frames == 0)
		return false;
	out->count = mew_read_pointer(&r, count_form, span->address);
	out->pairs = r.at;
	if (r.bad || pair_form != 0x3b || out->count > (size_t)(r.end - r.at) / PAIR_BYTES)
		out->count = 0;
	return true;
}

uintptr_t mew_ehframe_address(const struct mew_span *header)
{
	struct header h;

	return read_header(header, &h) ? h.frames : 0;
}

/* List what the search table names. Returns the number of its functions when add is false. */
static size_t read_search_table(struct builder *b, bool add)
{
	const struct mew_span *span = &b->in->header;
	struct header h;

	if (span->size == 0 || !read_header(span, &h))
		return 0;
	for (size_t i = 0; add && i < h.count; i++) {
		int32_t pair[2];
		uintptr_t entry;

		memcpy(pair, h.pairs + i * PAIR_BYTES, sizeof pair);
		entry = span->address + (uintptr_t)(intptr_t)pair[1];
		add_function(b, span->address + (uintptr_t)(intptr_t)pair[0],
			     entry - b->in->frames.address); /* an entry outside fails when it is read */
	}
	return h.count;
}

/* The same for the entries themselves, one after the other. */
static size_t walk_entries(struct builder *b, bool add)
{
	const struct mew_span *frames = &b->in->frames;
	struct mew_reader entry;
	size_t at = 0, n = 0;
	uint32_t id;

	for (; mew_frames_entry(&b->frames, at, &entry, &id); at = (size_t)(entry.end - frames->bytes)) {
		struct mew_fde fde;

		if (id == 0)
			continue;
		n++;
		if (add && mew_frames_fde(&b->frames, at, &fde) != NULL)
			add_function(b, fde.lo, at);
	}
	return n;
}

static void sift_down(struct function *f, size_t root, size_t n)
{
	for (size_t child; (child = 2 * root + 1) < n; root = child) {
		struct function swap = f[root];

		if (child + 1 < n && f[child].offset < f[child + 1].offset)
			child++;
		if (f[child].offset <= swap.offset)
			return;
		f[root] = f[child];
		f[child] = swap;
	}
}

/* Heap sort in place; linkers sort the search table, so this is for the walk. */
static void sort_functions(struct function *f, size_t n)
{
	size_t sorted = 1;

	while (sorted < n && f[sorted - 1].offset <= f[sorted].offset)
		sorted++;
	if (sorted >= n)
		return;
	for (size_t root = n / 2; root-- > 0;)
		sift_down(f, root, n);
	for (size_t last = n - 1; last > 0; last--) {
		struct function swap = f[0];

		f[0] = f[last];
		f[last] = swap;
		sift_down(f, 0, last);
	}
}

/* --- rows and rules ----------------------------------------------------------------------------------------------- */

static size_t first_slot(const struct builder *b, uint64_t rule)
{
	return (size_t)(rule * 0x9e3779b97f4a7c15u >> (64 - b->slot_bits));
}

static size_t next_slot(const struct builder *b, size_t slot)
{
	return (slot + 1) & (((size_t)1 << b->slot_bits) - 1);
}

static void make_slots(struct builder *b, unsigned bits)
{
	b->slot_bits = bits;
	memset(b->slots, 0, sizeof *b->slots << bits);
	for (uint32_t i = 0; i < b->nrules; i++) {
		size_t slot = first_slot(b, b->rules[i]);

		while (b->slots[slot] != 0)
			slot = next_slot(b, slot);
		b->slots[slot] = (uint16_t)(i + 1);
	}
}

static uint16_t intern_rule(struct builder *b, uint64_t rule)
{
	size_t slot = first_slot(b, rule);

	for (; b->slots[slot] != 0; slot = next_slot(b, slot)) {
		if (MEW_LIKELY(b->rules[b->slots[slot] - 1] == rule))
			return (uint16_t)(b->slots[slot] - 1);
	}
	if (b->nrules == MAX_RULES)
		return MEW_RULE_UNSUPPORTED; /* its own index, see compile_all() */
	b->rules[b->nrules++] = rule;
	b->slots[slot] = (uint16_t)b->nrules;
	if (b->nrules > (uint32_t)1 << (b->slot_bits - 1)) /* never more than half of them */
		make_slots(b, b->slot_bits + 1);
	return (uint16_t)(b->nrules - 1);
}

/* Rows stay in ascending order whatever comes: the last word for an address counts, a step back is left out. */
static void add_row(void *to, uintptr_t pc, uint64_t packed)
{
	struct builder *b = to;
	struct rows *rows = &b->rows;
	uint32_t offset = (uint32_t)(pc - b->in->lo);
	uint16_t rule = intern_rule(b, packed);

	if (rows->n > 0 && rows->offset[rows->n - 1] >= offset) {
		if (rows->offset[rows->n - 1] == offset)
			rows->rule[rows->n - 1] = rule;
		return;
	}
	if (rows->n > 0 && rows->rule[rows->n - 1] == rule)
		return;
	if (rows->n == rows->size) {
		rows->overrun = true;
		return;
	}
	rows->offset[rows->n] = offset;
	rows->rule[rows->n++] = rule;
}

static void compile_function(struct builder *b, size_t i)
{
	const struct mew_cie *cie;
	struct mew_cfi run;
	struct mew_fde fde;

	cie = mew_frames_fde(&b->frames, b->functions[i].entry, &fde);
	if (cie == NULL || fde.lo != b->in->lo + b->functions[i].offset)
		return;
	if (fde.hi > b->in->hi)
		fde.hi = b->in->hi;
	if (i + 1 < b->nfunctions && fde.hi > b->in->lo + b->functions[i + 1].offset)
		fde.hi = b->in->lo + b->functions[i + 1].offset;
	if (fde.lo >= fde.hi)
		return;
	b->compiled++;
	if (cie->signal) {
		add_row(b, fde.lo, MEW_RULE_SIGNAL);
	} else {
		mew_cfi_init(&run, b->frames.machine, fde.program, cie->code_align, cie->data_align);
		run.row = cie->initial;
		run.initial = &cie->initial;
		run.encoding = cie->encoding;
		run.pc = fde.lo;
		run.end = fde.hi;
		run.emit = add_row;
		run.to = b;
		(void)mew_cfi_run(&run); /* what it does not know became a row that says so */
	}
	add_row(b, fde.hi, MEW_RULE_NONE);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* The entries are about to be read one and all. */
static void expect_frames(const struct builder *b)
{
	if (b->first_entry < b->last_entry && b->last_entry < b->in->frames.size)
		mew_os_will_read(b->in->frames.bytes + b->first_entry, b->last_entry - b->first_entry);
}

/* The functions in ascending order, by the search table or, where that names none of them, by the entries. */
static bool list_functions(struct builder *b, size_t rows_each)
{
	size_t n = read_search_table(b, false);

	if (!reserve(b, n, rows_each))
		return false;
	(void)read_search_table(b, true);
	if (b->nfunctions == 0) {
		n = walk_entries(b, false);
		if (!reserve(b, n, rows_each))
			return false;
		(void)walk_entries(b, true);
	}
	sort_functions(b->functions, b->nfunctions);
	expect_frames(b);
	return true;
}

/* Compile every function, into so many rows each. Returns false without the memory. */
static bool compile_all(struct builder *b, size_t rows_each)
{
	b->nrules = b->compiled = 0;
	if (!list_functions(b, rows_each))
		return false;
	make_slots(b, SLOT_BITS);
	(void)intern_rule(b, MEW_RULE_NONE);
	(void)intern_rule(b, MEW_RULE_UNSUPPORTED); /* index 1 */
	for (size_t i = 0; i < b->nfunctions && !b->rows.overrun; i++)
		compile_function(b, i);
	return true;
}

static void index_pages(const struct builder *b)
{
	uint32_t row = 0, nrows = (uint32_t)b->rows.n;

	for (uint32_t p = 0; p < b->npages; p++) {
		while (row + 1 < nrows && b->rows.offset[row + 1] <= (uint64_t)p * PAGE_BYTES)
			row++;
		b->page[p] = row;
	}
	b->page[b->npages] = nrows - 1;
}

/* Close the gaps between what stays, and give the rest of the memory back. */
static const struct mew_unwind_table *seal(struct builder *b)
{
	struct mew_unwind_table *t = b->table;
	size_t nrows = b->rows.n, words = (nrows * (sizeof *b->rows.offset + sizeof *b->rows.rule) + 7) / 8;
	uint16_t *rule = (uint16_t *)(b->rows.offset + nrows);
	uint64_t *rules = (uint64_t *)(void *)b->rows.offset + words;

	memmove(rule, b->rows.rule, nrows * sizeof *rule);
	memmove(rules, b->rules, b->nrules * sizeof *rules);
	index_pages(b);
	*t = (struct mew_unwind_table){ .base = b->in->lo, .nrows = (uint32_t)nrows, .npages = b->npages,
					.nrules = b->nrules, .offset = b->rows.offset, .rule = rule, .page = b->page,
					.rules = rules, .fdes = b->compiled,
					.bytes = (size_t)((char *)(rules + b->nrules) - (char *)t) };
	for (size_t i = 0; i < nrows; i++)
		t->unsupported_rows += rule[i] == MEW_RULE_UNSUPPORTED;
	mew_arena_trim(b->arena, t, t->bytes);
	return t;
}

int mew_ehframe_compile(const struct mew_ehframe *in, struct mew_arena *arena, const struct mew_unwind_table **out)
{
	struct builder b = { .in = in, .arena = arena };
	size_t rows_each = ROWS_EACH;

	*out = NULL;
	if (in->lo >= in->hi || in->hi - in->lo > UINT32_MAX)
		return 0;
	b.npages = (uint32_t)((in->hi - in->lo - 1) / PAGE_BYTES) + 1;
	mew_frames_init(&b.frames, in, in->machine != NULL ? in->machine : &mew_machine);
	mew_os_will_read(in->header.bytes, in->header.size);
	do {
		if (!compile_all(&b, rows_each))
			return -1;
		rows_each *= 8; /* ends: a program has less rows than bytes */
	} while (b.rows.overrun);
	if (b.rows.n > 0)
		*out = seal(&b);
	else
		give_back(&b);
	return 0;
}
