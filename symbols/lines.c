/*
 * lines.c - runs line programs (DWARF 2 to 5, section 6.2). libdw keeps and sorts every row of a unit for a few asked.
 * Layer L3, inside libmew_symbols. Any thread. All bytes come from a file: each read is checked.
 */
#include "config.h"

#include "lines.h"

#include <dwarf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranges.h"
#include "reader.h"
#include "sections.h"

#define SHORT "a line table ends too early"

void mew_line_sections_init(struct mew_line_sections *s, Elf *elf)
{
	struct mew_sections at = { .elf = elf };

	*s = (struct mew_line_sections){ { NULL, NULL }, { NULL, NULL }, { NULL, NULL } };
	while (mew_sections_next(&at)) {
		const char *name = at.name;
		struct mew_bytes *to;
		Elf_Data *data;

		if (at.header.sh_type == SHT_NOBITS)
			continue;
		to = strcmp(name, ".debug_line") == 0 || strcmp(name, ".zdebug_line") == 0 ? &s->line :
		     strcmp(name, ".debug_line_str") == 0				       ? &s->line_str :
		     strcmp(name, ".debug_str") == 0 || strcmp(name, ".zdebug_str") == 0    ? &s->str :
											      NULL;
		data = to == NULL ? NULL : elf_getdata(at.section, NULL);
		if (data != NULL && data->d_buf != NULL)
			*to = (struct mew_bytes){ data->d_buf, (unsigned char *)data->d_buf + data->d_size };
	}
}

/* --- the head ---------------------------------------------------------------------------------------------------- */

static const char *text_at(struct mew_bytes section, uint64_t offset)
{
	struct mew_bytes b = section;

	mew_skip(&b, offset);
	return mew_read_text(&b);
}

/* Read one attribute of an entry: a text or a number. False when the form is none that a line table may use. */
static bool read_form(const struct mew_line_program *p, struct mew_bytes *b, unsigned form, const char **text,
		      uint64_t *number)
{
	switch (form) {
	case DW_FORM_string:
		*text = mew_read_text(b);
		return *text != NULL;
	case DW_FORM_line_strp:
		*text = text_at(p->sections->line_str, mew_read_number(b, p->offset_bytes));
		return true;
	case DW_FORM_strp:
		*text = text_at(p->sections->str, mew_read_number(b, p->offset_bytes));
		return true;
	case DW_FORM_udata:
		*number = mew_read_uleb(b);
		return true;
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
		*number = mew_read_number(b, form == DW_FORM_data1 ? 1 : form == DW_FORM_data2 ? 2 :
				     form == DW_FORM_data4 ? 4 : 8);
		return true;
	case DW_FORM_data16: /* a checksum of the file's contents */
		mew_skip(b, 16);
		return true;
	case DW_FORM_block:
		mew_skip(b, mew_read_uleb(b));
		return true;
	default:
		return false;
	}
}

/* One entry of a version 5 table; false where it cannot be read. */
static bool read_entry(const struct mew_line_program *p, const struct mew_line_table *t, struct mew_bytes *b,
		       const char **path, uint64_t *directory)
{
	*path = NULL;
	*directory = 0;
	for (unsigned i = 0; i < t->nformats; i++) {
		const char *text = NULL;
		uint64_t number = 0;

		if (b->at == NULL || !read_form(p, b, t->formats[i].form, &text, &number))
			return false;
		if (t->formats[i].content == DW_LNCT_path)
			*path = text;
		else if (t->formats[i].content == DW_LNCT_directory_index)
			*directory = number;
	}
	return b->at != NULL;
}

static bool read_table(const struct mew_line_program *p, struct mew_bytes *b, struct mew_line_table *t)
{
	const char *path;
	uint64_t directory;

	t->nformats = (unsigned)mew_read_number(b, 1);
	if (b->at == NULL || t->nformats > MEW_LINE_FORMATS_MAX)
		return false;
	for (unsigned i = 0; i < t->nformats; i++) {
		t->formats[i].content = (uint16_t)mew_read_uleb(b);
		t->formats[i].form = (uint16_t)mew_read_uleb(b);
	}
	t->n = mew_read_uleb(b);
	t->entries = *b;
	if (t->nformats == 0)
		return t->n == 0;
	for (uint64_t i = 0; i < t->n; i++)
		if (!read_entry(p, t, b, &path, &directory))
			return false;
	return true;
}

/* Versions 2 to 4: texts up to an empty one; behind each file stand three numbers. */
static bool read_old_table(struct mew_bytes *b, struct mew_line_table *t, bool is_files)
{
	const char *text;

	t->entries = *b;
	for (t->n = 0; (text = mew_read_text(b)) != NULL && text[0] != '\0'; t->n++)
		for (int i = 0; is_files && i < 3; i++)
			(void)mew_read_uleb(b);
	return text != NULL && b->at != NULL;
}

static bool read_tables(struct mew_line_program *p, struct mew_bytes *b)
{
	if (p->version >= 5)
		return read_table(p, b, &p->directories) && read_table(p, b, &p->files);
	return read_old_table(b, &p->directories, false) && read_old_table(b, &p->files, true);
}

static const char *read_head(struct mew_line_program *p, struct mew_bytes b)
{
	struct mew_bytes head;
	uint64_t bytes;

	p->version = (unsigned)mew_read_number(&b, 2);
	if (b.at != NULL && (p->version < 2 || p->version > 5))
		return "a line table has an unknown version";
	if (p->version >= 5) {
		mew_skip(&b, 2); /* sizes of an address and of a segment selector */
	}
	bytes = mew_read_number(&b, p->offset_bytes);
	head = p->code = b;
	mew_skip(&p->code, bytes);
	if (p->code.at == NULL)
		return SHORT;
	head.end = p->code.at;
	p->step_bytes = (unsigned)mew_read_number(&head, 1);
	if (p->version >= 4)
		mew_skip(&head, 1); /* operations per instruction: 1 but for VLIW machines */
	mew_skip(&head, 1);         /* default_is_stmt */
	p->line_base = (int)mew_read_number(&head, 1); /* a signed byte */
	p->line_base -= p->line_base >= 128 ? 256 : 0;
	p->line_range = (unsigned)mew_read_number(&head, 1);
	p->opcode_base = (unsigned)mew_read_number(&head, 1);
	p->lengths = head.at;
	mew_skip(&head, p->opcode_base > 0 ? p->opcode_base - 1 : 0);
	if (head.at == NULL || p->line_range == 0 || p->opcode_base == 0)
		return SHORT;
	return read_tables(p, &head) ? NULL : "the file names of a line table cannot be read";
}

const char *mew_line_program_open(struct mew_line_program *p, const struct mew_line_sections *s, uint64_t offset,
				  const char *directory)
{
	struct mew_bytes b = s->line, unit;
	uint64_t bytes;
	const char *why;

	*p = (struct mew_line_program){ .sections = s, .directory = directory, .offset_bytes = 4 };
	mew_skip(&b, offset);
	bytes = mew_read_number(&b, 4);
	if (bytes == UINT32_MAX) {
		p->offset_bytes = 8;
		bytes = mew_read_number(&b, 8);
	}
	unit = b;
	mew_skip(&b, bytes);
	if (b.at == NULL)
		return SHORT;
	unit.end = b.at;
	why = read_head(p, unit);
	if (why != NULL)
		p->code = (struct mew_bytes){ NULL, NULL };
	return why;
}

void mew_line_program_close(struct mew_line_program *p)
{
	for (size_t i = 0; i < p->npaths; i++)
		free(p->paths[i]);
	free(p->paths);
	p->paths = NULL;
	p->npaths = 0;
}

/* --- files ------------------------------------------------------------------------------------------------------- */

static bool find_entry(const struct mew_line_program *p, const struct mew_line_table *t, uint64_t index,
		       const char **path, uint64_t *directory)
{
	struct mew_bytes b = t->entries;

	if (p->version < 5 && index-- == 0)
		return false;
	if (index >= t->n || (p->version >= 5 && t->nformats == 0))
		return false;
	for (uint64_t i = 0; i <= index; i++) {
		if (p->version >= 5) {
			if (!read_entry(p, t, &b, path, directory))
				return false;
			continue;
		}
		*path = mew_read_text(&b);
		if (t == &p->directories)
			continue;
		*directory = mew_read_uleb(&b);
		(void)mew_read_uleb(&b);
		(void)mew_read_uleb(&b);
	}
	return *path != NULL;
}

/* The directory of the compilation, the one of the file and its name, as far as those behind are not complete. */
static char *make_path(const struct mew_line_program *p, uint64_t file)
{
	const char *name, *directory = "", *root = p->directory;
	uint64_t number, unused;
	char *path = NULL;

	if (!find_entry(p, &p->files, file, &name, &number))
		return NULL;
	if (name[0] == '/')
		return strdup(name);
	if (!find_entry(p, &p->directories, number, &directory, &unused))
		directory = "";
	if (directory[0] == '/' || root[0] == '\0')
		root = "";
	if (asprintf(&path, "%s%s%s%s%s", root, root[0] != '\0' ? "/" : "", directory, directory[0] != '\0' ? "/" : "",
		     name) < 0)
		return NULL;
	return path;
}

const char *mew_line_program_file(struct mew_line_program *p, uint64_t file)
{
	/* numbers begin with 1 before version 5 */
	if (file > p->files.n || p->files.n >= UINT32_MAX)
		return NULL;
	if (p->paths == NULL) {
		p->paths = calloc((size_t)p->files.n + 1, sizeof *p->paths);
		p->npaths = p->paths == NULL ? 0 : (size_t)p->files.n + 1;
	}
	if (p->paths == NULL)
		return NULL;
	if (p->paths[file] == NULL)
		p->paths[file] = make_path(p, file);
	return p->paths[file];
}

/* --- running ----------------------------------------------------------------------------------------------------- */

struct state { /* the registers that matter here, and the row before */
	uint64_t address, row_address;
	uint32_t file, line;
	struct mew_line_row row;
	bool has_row, is_code;
	const uint64_t *wanted; /* n of them; `next` is the first that may still get a row in this sequence */
	size_t n, next;
	struct mew_line_row *rows;
	const struct mew_elf_module *module;
};

static void begin_sequence(struct state *s)
{
	s->address = 0;
	s->file = s->line = 1;
	s->has_row = false;
}

/* The row before reaches up to here. Of rows with one address the last one counts. */
static void add_row(struct state *s)
{
	if (!s->has_row || s->address < s->row_address) {
		s->is_code = mew_elf_is_code(s->module, s->address);
		s->next = s->is_code ? mew_first_from(s->wanted, s->n, s->address) : s->n;
	}
	for (; s->next < s->n && s->wanted[s->next] < s->address; s->next++)
		if (s->rows[s->next].owner == s->row.owner)
			s->rows[s->next] = s->row;
	s->has_row = true;
	s->row_address = s->address;
	s->row.file = s->file;
	s->row.line = s->line;
	s->row.is_found = true;
}

static const char *run_extended(struct mew_bytes *b, struct state *s)
{
	uint64_t bytes = mew_read_uleb(b);
	struct mew_bytes operation = *b;

	mew_skip(b, bytes);
	if (b->at == NULL || bytes == 0)
		return SHORT;
	operation.end = b->at;
	switch (mew_read_number(&operation, 1)) {
	case DW_LNE_end_sequence:
		add_row(s);
		begin_sequence(s);
		break;
	case DW_LNE_set_address:
		s->address = mew_read_number(&operation, bytes > 9 ? 0 : (unsigned)bytes - 1);
		break;
	default:
		break;
	}
	return NULL;
}

static void run_standard(const struct mew_line_program *p, struct mew_bytes *b, struct state *s, unsigned opcode)
{
	switch (opcode) {
	case DW_LNS_copy:
		add_row(s);
		break;
	case DW_LNS_advance_pc:
		s->address += p->step_bytes * mew_read_uleb(b);
		break;
	case DW_LNS_advance_line:
		s->line += (uint32_t)mew_read_sleb(b);
		break;
	case DW_LNS_set_file:
		s->file = (uint32_t)mew_read_uleb(b);
		break;
	case DW_LNS_const_add_pc:
		s->address += p->step_bytes * ((255 - p->opcode_base) / p->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		s->address += mew_read_number(b, 2);
		break;
	default: /* columns, blocks, and what is not known */
		for (unsigned i = p->lengths[opcode - 1]; i > 0; i--)
			(void)mew_read_uleb(b);
		break;
	}
}

const char *mew_line_program_run(const struct mew_line_program *p, const struct mew_elf_module *m, uint32_t owner,
				 const uint64_t *addresses, size_t n, struct mew_line_row *rows)
{
	struct state s = { .row = { .owner = owner }, .wanted = addresses, .n = n, .rows = rows, .module = m };
	struct mew_bytes b = p->code;
	const char *why = NULL;

	begin_sequence(&s);
	while (why == NULL && b.at != NULL && b.at < b.end) {
		unsigned opcode = *b.at++;

		if (opcode >= p->opcode_base) {
			opcode -= p->opcode_base;
			s.line += (uint32_t)(p->line_base + (int)(opcode % p->line_range));
			s.address += p->step_bytes * (opcode / p->line_range);
			add_row(&s);
		} else if (opcode == 0) {
			why = run_extended(&b, &s);
		} else {
			run_standard(p, &b, &s, opcode);
		}
	}
	return why != NULL || b.at != NULL ? why : SHORT;
}
