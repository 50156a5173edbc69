/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The end of a container's log, for a report. */

#include "agent/image-helper/pull/document.h"

/* The last 'n_max' lines of a pod's container ("namespace", "name", "uid", "container"), from its
 * latest attempt and the one before it, below the log directory: an object of the kind
 * ContainerLog, without values that redact_text() recognises as secret. '*left' is the number of
 * bytes that may still be used. 1; 0: there is no log, or it cannot be read; -ENOMEM. */
int report_log_read(int log_fd, const json_t *container, unsigned n_max, size_t *left,
                    json_t **ret);
