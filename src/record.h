/*
 * record.h - what passes between `mew record` and the programs that it records: how they are told, and the file in
 * memory that each leaves behind.
 * Layer L4. Both ends are of one build; the file's head says of which.
 *
 * The command preloads libmew_record, whose constructor connects to the command's socket, hands over a memory file and
 * starts the captures with all that they keep in that file. Nothing is done at the end: whatever ends the process, the
 * file has what was seen until then, and the command reads it when the process is gone.
 *
 * File    [0, MEW_RECORD_BYTES)  mapped at root.base: the root, then kept memory (kept.h)
 *         behind it              libmew_record's variables, from root.data_lo on
 */
#ifndef MEW_RECORD_H
#define MEW_RECORD_H

#include "base.h"
#include "elf_names.h"
#include "mew.h"

/* "SOCKET:KINDS:INTERVAL_NS:CLOCK:FOLLOW:FROM_NS:PRELOADED:PLACE", a line for each function; see mew_record_orders */
#define MEW_RECORD_ENV "MEW_RECORD"
#define MEW_RECORD_MAGIC 0x3172776d65776d01u
#define MEW_RECORD_BYTES ((uint64_t)1 << 34) /* address space and a sparse file; only what is touched is there */
#define MEW_RECORD_ROOT_BYTES ((uint64_t)65536)
/*
 * Where kept memory may lie: far from where kernels put programs, libraries and stacks, also with 39 bits of address.
 */
#define MEW_RECORD_PLACE ((uint64_t)0x2000000000)
#define MEW_RECORD_PLACES 4u /* one behind the other */
#define MEW_RECORD_STATICS 8
#define MEW_RECORD_WHY_BYTES 512 /* a path and a sentence */

enum mew_record_kinds { MEW_RECORD_MEMORY = 1, MEW_RECORD_CPU = 2 };

struct mew_record_orders { /* what the environment says */
	char socket[64];     /* abstract name, without its leading zero */
	unsigned kinds;      /* enum mew_record_kinds */
	uint64_t interval_ns;
	enum mew_clock clock;
	bool follow;         /* children too */
	uint64_t from_ns;    /* CLOCK_MONOTONIC: when the window opens; 0: with the program */
	unsigned preloaded;  /* entries of LD_PRELOAD that are ours, at its beginning */
	unsigned place;      /* the first that is free in the command, which must map the file at the same address */
	char start_on[MEW_NAME_BYTES], stop_on[MEW_NAME_BYTES]; /* functions at whose entry the window opens, closes; "" none */
};

/* Write them as a value of the environment, and read that. Reading returns whether it is one. */
void mew_record_put_orders(const struct mew_record_orders *o, char *text, size_t size);
bool mew_record_get_orders(struct mew_record_orders *o, const char *text);

struct mew_record_hello { /* one message, with the file where there is one */
	uint64_t magic;
	int pid, is_left_out; /* a program that the process starts cannot be recorded; else it is about the process itself */
	char why[MEW_RECORD_WHY_BYTES]; /* there is none: the reason */
};

struct mew_record_part { /* one capture */
	int status;
	char why[248];
};

struct mew_record_edge { /* the function at one end of the window */
	uint64_t at_ns;     /* CLOCK_MONOTONIC; 0: it was not entered, or there is none */
	uint64_t at_cpu_ns; /* of the process */
	unsigned watched;   /* functions of that name */
	char why[160];      /* one of them cannot be watched: the reason */
};

struct mew_record_root {
	uint64_t magic;
	char version[32];
	uint64_t root_bytes, model_bytes; /* sizes of structs that both ends must agree on */
	uint64_t base;
	uint64_t data_lo, data_bytes;
	struct {
		uint64_t at, bytes;
	} statics[MEW_RECORD_STATICS];
	uint64_t thread_lo, thread_hi;
	int pid;
	unsigned kinds;
	struct mew_record_part memory, cpu;
	uint64_t cpu_capture;  /* address of the capture */
	uint64_t opened_ns;    /* CLOCK_MONOTONIC */
	uint64_t opened_cpu_ns;
	struct mew_record_edge start, stop;
	uint64_t unannounced;  /* libraries that were opened unseen, at the end */
	uint64_t ended_ns, ended_cpu_ns; /* 0: exit handlers were not run */
	char became[256];      /* what it is by exec; "" it was not */
	uint64_t became_ns, became_cpu_ns; /* when; 0: it was not */
	bool is_left_out;      /* that cannot be recorded, which the command was told */
	char unwinder[160];    /* what rows must say of their stacks; "" nothing */
	uint64_t deepbind;     /* dlopen() calls that RTLD_DEEPBIND was taken off, at the end */
	char operators[128];   /* file of an operator new that is not seen; "" none */
	char program[1024], command[1024];
};

#endif
