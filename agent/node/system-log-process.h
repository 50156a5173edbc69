/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The logs of the node for mainstay-api: files below /var/log, and those of services (kubelet:
 * /logs/, NodeLogQuery). Paths are walked by descriptor, and no symbolic link is followed. */

#include "agent/model/system-log-query.h"
#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct SystemLogs SystemLogs;

/* Borrowed. */
typedef struct SystemLogsConfig {
        sd_event *event;
        const char *directory; /* /var/log */
        bool is_enabled;       /* enableSystemLogHandler */
        bool has_query;        /* enableSystemLogQuery */
} SystemLogsConfig;

/* 0 or -ENOMEM. */
int system_logs_new(const SystemLogsConfig *config, SystemLogs **ret);
SystemLogs *system_logs_free(SystemLogs *logs);

/* Opens a file; for a query, and for the listing of a directory as HTML, returns a non-blocking
 * pipe with the output of a child process. '*ret_type' is the content type. A descriptor; -EPERM:
 * not enabled; -EISDIR: a directory whose path does not end with a slash; -ENOENT; -EAGAIN: too
 * many queries; another -errno. */
int system_logs_open(SystemLogs *logs, const char *path, const SystemLogQuery *query,
                     const char **ret_type, Error *reterr);
