/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which cgroup driver serves: systemd, which makes slices and scopes, or cgroupfs. */

#include "common/error.h"

#include <stdbool.h>

/* 'configured' is cgroupDriver; NULL: systemd if possible, with systemd as PID 1 and cgroup v2.
 * Sets whether it is systemd. Pure. 0, -EOPNOTSUPP with a message. */
int choose_cgroup_driver(const char *configured, bool has_systemd, int cgroup_version,
                         bool *ret_has_slices, Error *reterr);

/* Logs that v1 is deprecated where it is used, and each controller that is missing, with the pods
 * that do not start without it. */
void warn_of_cgroups(void);
