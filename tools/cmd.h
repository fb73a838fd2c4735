/*
 * cmd.h - the subcommands; each takes its own name as argv[0] and returns the exit code.
 * Layer L6.
 */
#ifndef MEW_CMD_H
#define MEW_CMD_H

int mew_cmd_run(int argc, char **argv);
int mew_cmd_list(int argc, char **argv);
int mew_cmd_compare(int argc, char **argv);
int mew_cmd_record(int argc, char **argv);
int mew_cmd_report(int argc, char **argv);
int mew_cmd_trace_check(int argc, char **argv);
int mew_cmd_gate(int argc, char **argv);
int mew_cmd_calibrate(int argc, char **argv);

#endif
