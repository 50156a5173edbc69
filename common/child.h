/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A helper process for which the loop does not wait: it is started with posix_spawn() and watched
 * through its pidfd, its output is captured up to a limit, and it is killed at its time limit. Only
 * for programs with an sd-event loop. */

#include "common/error.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct Child Child;

typedef struct ChildResult {
        int code;           /* si_code from waitid(2): CLD_EXITED, CLD_KILLED, CLD_DUMPED */
        int status;         /* exit status, or the signal */
        bool timed_out;     /* it was killed at its time limit */
        const char *output; /* standard output, NUL-terminated, truncated at the limit */
        size_t output_length;
        const char *error; /* last non-empty line of standard error, for a message */
} ChildResult;

/* Called with each line of standard output, without its newline, when it arrives. */
typedef void (*child_line_t)(const char *line, void *userdata);

typedef struct ChildSpec {
        char *const *argv;     /* argv[0] is a path, or a name that is looked up in PATH */
        size_t output_max;     /* bytes of standard output to keep; the rest is dropped */
        uint64_t timeout_usec; /* 0: no limit */
        int input_fd;          /* becomes standard input; 0: /dev/null. Borrowed. */
        child_line_t on_line;  /* receives standard output line by line, instead of 'output'; or
                                * NULL */
} ChildSpec;

/* Called once, from the loop, when the process has exited and its pipes have been read. The Child
 * is freed afterwards. */
typedef void (*child_done_t)(const ChildResult *result, void *userdata);

/* Starts the process, with /dev/null as standard input and no other inherited descriptors. 0 or
 * -errno. */
int child_spawn(sd_event *event, const ChildSpec *spec, child_done_t done, void *userdata,
                Child **ret, Error *reterr);

/* Starts a process that outlives this one, in a separate session, so that a signal to this process
 * group does not end it, with no signal blocked or ignored. 'input_fd' becomes its standard input,
 * 'output_fd' its standard output; -EBADF: inherited. Both are borrowed. 0 or -errno. */
int child_spawn_detached(char *const *argv, int input_fd, int output_fd, pid_t *ret_pid);

/* Kills the process if it is running, and frees the Child without a callback. NULL is allowed. */
Child *child_free(Child *child);

/* For the caller's own sd-event child source: the exit of the process is noticed even if the
 * process is traced. The callback must free the source. 0 or -errno. */
int child_source_rearm(sd_event_source *source);

/* Whether the process exited with 0. */
bool child_succeeded(const ChildResult *result);

/* Sets a message about the end of the process: its last line of standard error, or the exit status.
 * No message on success. Returns -errno. */
int child_explain(const ChildResult *result, const char *what, Error *reterr);
