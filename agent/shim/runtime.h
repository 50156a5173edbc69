/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls of the OCI runtime (runc, crun). They block or replace the process, so they are for tasks
 * only. */

#include "common/error.h"

#include <errno.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Runtime {
        const char *program; /* a path, or a name to look up in PATH */
        const char *root;    /* its state directory */
        int copy_fd;         /* a sealed copy of the program, for starts of containers; < 0: none */
        uint64_t timeout_usec;
        bool has_systemd_cgroup; /* systemd creates the cgroups of new containers */
} Runtime;

/* The exit status of runtime_exec_run() if the program does not exist, and only then. */
enum {
        RUNTIME_MISSING = -ENOEXEC,
};

/* Becomes the runtime. Unlike execvp(3), it never runs a shell on a program that is damaged or
 * built for another architecture. Returns only on failure: -errno. */
int runtime_execute(char **argv);

/* Makes standard input a pipe at end of file. /dev/null belongs to the node, and root in a
 * container could change its mode through a descriptor. 0 or -errno. */
int runtime_set_closed_input(void);

/* Descriptors 0, 1 and 2 of the runtime; without a terminal they also become the container's. */
typedef struct RuntimeStreams {
        int input_fd; /* < 0: at end of file; never a device of the node */
        int output_fd;
        int error_fd;
        const char *terminal; /* socket through which a terminal is handed over; NULL: no
                               * terminal */
} RuntimeStreams;

/* Becomes "run --detach", after which the container's process is a child of the shim, and its PID
 * is in <bundle>/pid. Returns only on failure. */
int runtime_exec_run(const Runtime *runtime, const char *bundle, const char *id,
                     const RuntimeStreams *streams, Error *reterr);

/* Becomes "exec --detach", after which the program's process is a child of the shim, and its PID is
 * in 'pid_file'. User and environment are those of the container's bundle. Errors of the runtime
 * are in 'log'. Returns only on failure. */
typedef struct RuntimeExec {
        const char *id;
        const char *pid_file;
        const char *log;
        char *const *argv;
} RuntimeExec;
int runtime_exec_in(const Runtime *runtime, const RuntimeExec *exec, Error *reterr);

/* The PID in a pid file of the runtime. 0 or -errno. */
int runtime_read_pid(const char *file, pid_t *ret);

/* Also removes the file that a killed runc has left: runc writes ".<name>" and renames it. */
void runtime_remove_pid_file(const char *file);

/* "delete --force", if the container exists in the runtime. 0, or -errno and the reason. */
int runtime_delete(const Runtime *runtime, const char *bundle, const char *id, Error *reterr);

/* The last error in <bundle>/runtime.log, or in a similar log; the caller frees it, or NULL. */
char *runtime_log_last_error(const char *bundle);
char *runtime_log_last_error_at(const char *path);

/* Describes the end of a runtime call that failed without a message. The caller frees the text;
 * NULL: out of memory. */
char *runtime_describe_end(const char *program, const char *verb, int status);

/* Records in <bundle>/runtime.log that the program cannot be run, in the format of the runtime's
 * errors. */
void runtime_log_missing(const Runtime *runtime, const char *bundle, int error);
