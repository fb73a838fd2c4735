/*
 * worker.h - the benchmark program's side of the pipe: do what the command asks, one message at a time.
 * Layer L4.
 */
#ifndef MEW_WORKER_H
#define MEW_WORKER_H

#include <stdbool.h>

/* The argument that makes a program with mew_main() a worker: "--mew-worker=FD". */
#define MEW_WORKER_FLAG "--mew-worker="

/* Behind the number: the command knows the program's facts, the greeting needs none. */
#define MEW_WORKER_KNOWN ",known"

/* Its exit code when its end of the pipe was gone before the command's was. */
#define MEW_WORKER_CUT 113

/* Serve until the other end is gone. `known`: without facts. Returns the process's exit code; MEW_WORKER_CUT. */
int mew_worker_main(int fd, bool known);

/* Is this process a worker? Context: any thread. */
bool mew_worker_is_running(void);

#endif
