/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls of the OCI runtime (runc, crun). Both block or replace the process: for tasks. */

#include "common/error.h"

#include <errno.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Runtime {
        const char *program; /* a path, or a name to look for in PATH */
        const char *root;    /* the directory of its state */
        uint64_t timeout_usec;
        bool has_systemd_cgroup; /* new containers' groups are systemd's to make */
} Runtime;

/* What runtime_exec_run() gives when there is no such program; no other failure looks so. */
enum {
        RUNTIME_MISSING = -ENOEXEC,
};

/* Descriptors 0, 1 and 2 of the runtime, which without a terminal are also the container's. */
typedef struct RuntimeStreams {
        int input_fd; /* < 0: as it is */
        int output_fd;
        int error_fd;
        const char
                *terminal; /* the socket that a terminal is handed over at; NULL: there is none */
} RuntimeStreams;

/* Becomes "run --detach", which leaves the container's process to the shim and its number in
 * <bundle>/pid. Returns on failure only. */
int runtime_exec_run(const Runtime *runtime, const char *bundle, const char *id,
                     const RuntimeStreams *streams, Error *reterr);

/* Becomes "exec --detach", which leaves the program's process to the shim and its number in
 * 'pid_file'. The container's bundle says as whom and with which environment. What the runtime says
 * of a failure is in 'log'. Returns on failure only. */
typedef struct RuntimeExec {
        const char *id;
        const char *pid_file;
        const char *log;
        char *const *argv;
} RuntimeExec;
int runtime_exec_in(const Runtime *runtime, const RuntimeExec *exec, Error *reterr);

/* What the runtime wrote into a pid file. 0 or -errno. */
int runtime_read_pid(const char *file, pid_t *ret);

/* "delete --force", if the runtime knows the container. 0, or -errno and why. */
int runtime_delete(const Runtime *runtime, const char *bundle, const char *id, Error *reterr);

/* The last error in <bundle>/runtime.log, or in another such log, in memory that the caller frees,
 * or NULL. */
char *runtime_log_last_error(const char *bundle);
char *runtime_log_last_error_at(const char *path);
