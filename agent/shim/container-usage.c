/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/container-usage.h"

#include "common/cleanup.h"
#include "common/process-usage.h"
#include "common/text.h"

/* <container>/memory.events -> <container>/cgroup.procs */
static char *procs_file_of_attempt(const Attempt *attempt) {
        const char *name = strrchr(attempt->events_file, '/');

        return name ? text_format("%.*s/cgroup.procs", (int) (name - attempt->events_file),
                                  attempt->events_file)
                    : NULL;
}

static void report_descriptors(Shim *shim, const Attempt *attempt) {
        cleanup_free char *procs_file = procs_file_of_attempt(attempt);
        ProcessUsage usage;

        if (!procs_file || process_usage_of_cgroup(procs_file, attempt->pid, &usage) < 0)
                return;
        agent_connection_send(&shim->connection,
                              &(ShimEvent){ .type = SHIM_EVENT_USAGE,
                                            .id = attempt->id,
                                            .n_descriptors = usage.n_descriptors,
                                            .n_sockets = usage.n_sockets,
                                            .open_files_max = usage.open_files_max });
}

void containers_report_usage(Shim *shim) {
        for (const Attempt *attempt = shim->attempts.first; attempt; attempt = attempt->next)
                if (attempt->state == ATTEMPT_RUNNING)
                        report_descriptors(shim, attempt);
        agent_connection_send(&shim->connection, &(ShimEvent){ .type = SHIM_EVENT_USAGE });
}
