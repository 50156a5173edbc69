/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The logs of the node for mainstay-api: files below /var/log, and those of services (kubelet:
 * /logs/, NodeLogQuery). Paths are walked by descriptor, and no symbolic link is followed. */

#include "agent/model/system-log-query.h"
#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct SystemLogs SystemLogs;

/* 'directory' and 'event' are borrowed. 0 or -ENOMEM. */
int system_logs_new(sd_event *event, const char *directory, SystemLogs **ret);
SystemLogs *system_logs_free(SystemLogs *logs);

/* Opens a file, or the list of a directory as HTML; '*ret_type' is the type of its content. A
 * descriptor; -EISDIR: it is a directory, and the path does not end with a slash; -ENOENT; another
 * -errno. */
int system_logs_open(const SystemLogs *logs, const char *path, const char **ret_type);

/* Starts a query in a child process. A pipe that does not block, with what it finds; -EAGAIN with a
 * message: there are too many; another -errno. */
int system_logs_query(SystemLogs *logs, const SystemLogQuery *query, Error *reterr);
