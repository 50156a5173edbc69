/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Processes that read logs of containers for clients which get a descriptor, mainstay-api: the
 * bytes of a log never pass the agent's loop. Each is a fork of the agent that reads one log and
 * ends with it, with its client, or soon after the agent. */

#include "agent/http/log-reader.h"
#include "common/forked-task.h"

enum {
        LOG_PROCESSES_MAX = 64,
};

typedef struct LogProcess LogProcess;

typedef struct LogProcesses {
        sd_event *event; /* borrowed */
        LogProcess *first;
        unsigned n;
} LogProcesses;

/* Starts one. A descriptor to read the log from, O_CLOEXEC and O_NONBLOCK, which the caller closes;
 * or what log_reader_new() returns; -EBUSY: LOG_PROCESSES_MAX run. */
int log_process_start(LogProcesses *processes, const LogSpec *spec, Error *reterr);

/* The attempt has ended: clients that follow its log get the rest, and then the end. */
void log_processes_notify_end(const LogProcesses *processes, const char *directory,
                              unsigned attempt);

/* Forgets the processes, which end by themselves. */
void log_processes_done(LogProcesses *processes);
