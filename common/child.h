/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A helper process that the loop does not wait for: started with posix_spawn(), watched by its
 * pidfd, its output kept up to a limit, killed at its time limit. Only for programs with an
 * sd-event loop. */

#include "common/error.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct Child Child;

typedef struct ChildResult {
        int code;           /* si_code of waitid(2): CLD_EXITED, CLD_KILLED, CLD_DUMPED */
        int status;         /* exit status, or the signal */
        bool timed_out;     /* it was killed by us */
        const char *output; /* standard output, NUL-terminated, cut at the limit */
        size_t output_length;
        const char *error; /* last non-empty line of standard error, for a message */
} ChildResult;

/* A line of standard output, when it arrives, without its newline. */
typedef void (*child_line_t)(const char *line, void *userdata);

typedef struct ChildSpec {
        char *const *argv;     /* argv[0] is a path, or a name that is looked up in PATH */
        size_t output_max;     /* bytes of standard output to keep; the rest is dropped */
        uint64_t timeout_usec; /* 0: no limit */
        int input_fd;          /* becomes standard input; 0: /dev/null. Borrowed. */
        child_line_t
                on_line; /* gets standard output line by line, and none of it is kept; or NULL */
} ChildSpec;

/* Called once, from the loop, when the process has exited and its pipes are read. The Child is
 * freed afterwards. */
typedef void (*child_done_t)(const ChildResult *result, void *userdata);

/* Starts it, with /dev/null as standard input and no other descriptor of ours. 0 or -errno. */
int child_spawn(sd_event *event, const ChildSpec *spec, child_done_t done, void *userdata,
                Child **ret, Error *reterr);

/* Starts a process that outlives us, in a separate session, so that a signal to our process group
 * does not end it, with no signal blocked or ignored. 'input_fd' becomes its standard input,
 * 'output_fd' its standard output; -EBADF: ours. Both are borrowed. 0 or -errno. */
int child_spawn_detached(char *const *argv, int input_fd, int output_fd, pid_t *ret_pid);

/* Kills the process if it runs, and frees the Child without calling back. NULL is fine. */
Child *child_free(Child *child);

/* For an sd-event child source of the caller's own: its exit is noticed even if the process is
 * traced. The callback must free the source. 0 or -errno. */
int child_source_rearm(sd_event_source *source);

/* Succeeded means exited with 0. */
bool child_succeeded(const ChildResult *result);

/* A message about how it ended: its own last line, or the exit status. Nothing on success.
 * -errno. */
int child_explain(const ChildResult *result, const char *what, Error *reterr);
