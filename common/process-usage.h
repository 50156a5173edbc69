/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Open descriptors and limits of the processes in a cgroup, through /proc. Reading the descriptors
 * of another process requires CAP_SYS_PTRACE or the same user. */

#include <stdint.h>
#include <sys/types.h>

enum {
        /* Maximum number of processes of a cgroup that are counted; the results cover only
         * these. */
        PROCESS_USAGE_PROCESSES_MAX = 64,
        PROCESS_USAGE_DESCRIPTORS_MAX = 4096,
};

#define OPEN_FILES_UNLIMITED ((uint64_t) INT64_MAX)

typedef struct ProcessUsage {
        uint64_t n_descriptors, n_sockets;
        uint64_t open_files_max; /* RLIMIT_NOFILE, or OPEN_FILES_UNLIMITED; 0: unknown */
} ProcessUsage;

/* The sum over the processes in a "cgroup.procs" file; the (soft) limit is that of 'first'.
 * Processes that have ended are ignored. 0 or -errno. */
int process_usage_of_cgroup(const char *procs_file, pid_t first, ProcessUsage *ret);

/* The soft limit of open files in the text of /proc/PID/limits; 0: not found. Pure. */
uint64_t open_files_max_parse(const char *text);
