/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Processes that read container logs for clients that receive a descriptor, such as mainstay-api:
 * the bytes of a log never pass through the agent's loop. Each of them is a fork of the agent that
 * reads one log, and ends with the log, with its client, or soon after the agent. */

#include "agent/http/log-reader.h"
#include "common/forked-task.h"

/* Clients that follow the logs of one pod or of one namespace cannot exhaust the limit for others.
 */
enum {
        LOG_PROCESSES_MAX = 128,
        LOG_PROCESSES_OF_NAMESPACE_MAX = 96,
        LOG_PROCESSES_OF_POD_MAX = 16,
};

typedef struct LogProcess LogProcess;

typedef struct LogProcesses {
        sd_event *event; /* borrowed */
        LogProcess *first;
        unsigned n;
} LogProcesses;

/* Starts a process. Returns a descriptor from which the log can be read, O_CLOEXEC and O_NONBLOCK,
 * which the caller closes; or the error of log_reader_new(); -EBUSY: the maximum number is running.
 */
int log_process_start(LogProcesses *processes, const LogSpec *spec, Error *reterr);

/* The attempt has ended: clients that follow its log receive the rest, and then the end. */
void log_processes_notify_end(const LogProcesses *processes, const char *directory,
                              unsigned attempt);

/* Forgets the processes, which end on their own. */
void log_processes_done(LogProcesses *processes);
