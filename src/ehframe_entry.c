/*
 * ehframe_entry.c - the entries of .eh_frame: lengths, CIEs with their augmentations, FDEs up to their programs.
 * Layer L1. Outside windows. The input is not trusted: every read is bounded.
 */
#include "config.h"

#include "ehframe_entry.h"

#include <string.h>

#include "hotpath.h"

void mew_frames_init(struct mew_frames *f, const struct mew_ehframe *in, const struct mew_machine *machine)
{
	f->in = in;
	f->machine = machine;
	for (size_t i = 0; i < MEW_CIES; i++)
		f->cie[i].entry = SIZE_MAX; /* none is there */
}

bool mew_frames_entry(const struct mew_frames *f, size_t at, struct mew_reader *entry, uint32_t *id)
{
	uint64_t length;

	*entry = mew_reader_of(&f->in->frames, at);
	length = mew_read_bytes(entry, 4);
	if (length < 4 || length == UINT32_MAX || length > (uint64_t)(entry->end - entry->at))
		return false;
	entry->end = entry->at + length;
	*id = (uint32_t)mew_read_bytes(entry, 4);
	return !entry->bad;
}

/* The letters behind 'z', each with its data; false for one that is not known. */
static bool read_augmentation(struct mew_cie *cie, const struct mew_machine *machine, const char *letters,
			      struct mew_reader *data)
{
	for (; *letters != '\0'; letters++) {
		switch (*letters) {
		case 'R': cie->encoding = (uint8_t)mew_read_bytes(data, 1); break;
		case 'L': mew_read_skip(data, 1); break;
		case 'S': cie->signal = true; break;
		case 'P': {
			uint8_t encoding = (uint8_t)mew_read_bytes(data, 1);

			(void)mew_read_pointer(data, encoding & 0x0f, 0); /* passed over, not followed */
			break;
		}
		default:
			if (machine->letters == NULL || strchr(machine->letters, *letters) == NULL)
				return false;
		}
	}
	return !data->bad;
}

static bool read_cie_head(struct mew_cie *cie, const struct mew_machine *machine, struct mew_reader *r)
{
	uint64_t version = mew_read_bytes(r, 1), size, ra;
	const char *letters = (const char *)r->at;
	const uint8_t *end = memchr(r->at, 0, (size_t)(r->end - r->at));
	struct mew_reader data;

	if (end == NULL || (version != 1 && version != 3 && version != 4))
		return false;
	mew_read_skip(r, (uint64_t)(end + 1 - r->at));
	if (version == 4 && mew_read_bytes(r, 2) != 8) /* address size 8, segment size 0 */
		return false;
	cie->code_align = mew_read_uleb(r);
	cie->data_align = mew_read_sleb(r);
	ra = version == 1 ? mew_read_bytes(r, 1) : mew_read_uleb(r);
	cie->augmented = letters[0] == 'z';
	if (ra != machine->ra || r->bad || (!cie->augmented && letters[0] != '\0'))
		return false;
	if (!cie->augmented)
		return true;
	size = mew_read_uleb(r);
	data = *r;
	mew_read_skip(r, size);
	data.end = r->at;
	return !r->bad && read_augmentation(cie, machine, letters + 1, &data);
}

/* Read it and run its program: its last row is what those of its functions begin with. */
static void read_cie(const struct mew_frames *f, struct mew_cie *cie, size_t at)
{
	struct mew_reader entry;
	struct mew_cfi run;
	uint32_t id;

	*cie = (struct mew_cie){ .entry = at };
	if (!mew_frames_entry(f, at, &entry, &id) || id != 0 || !read_cie_head(cie, f->machine, &entry))
		return;
	mew_cfi_init(&run, f->machine, entry, cie->code_align, cie->data_align);
	cie->usable = mew_cfi_run(&run);
	cie->initial = run.row;
}

static const struct mew_cie *find_cie(struct mew_frames *f, size_t at)
{
	struct mew_cie *cie = &f->cie[at / 8 % MEW_CIES];

	if (MEW_UNLIKELY(cie->entry != at))
		read_cie(f, cie, at);
	return cie->usable ? cie : NULL;
}

const struct mew_cie *mew_frames_fde(struct mew_frames *f, size_t at, struct mew_fde *out)
{
	const struct mew_cie *cie;
	uintptr_t length;
	uint32_t id;
	size_t place;

	if (!mew_frames_entry(f, at, &out->program, &id))
		return NULL;
	place = at + 4;
	if (id == 0 || id > place)
		return NULL;
	cie = find_cie(f, place - id);
	if (cie == NULL)
		return NULL;
	out->lo = mew_read_pointer(&out->program, cie->encoding, f->in->header.address);
	length = mew_read_pointer(&out->program, cie->encoding & 0x0f, 0);
	if (cie->augmented)
		mew_read_skip(&out->program, mew_read_uleb(&out->program));
	if (out->program.bad || out->lo == 0 || __builtin_add_overflow(out->lo, length, &out->hi))
		return NULL;
	return cie;
}
