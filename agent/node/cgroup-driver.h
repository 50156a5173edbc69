/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Chooses the cgroup driver: systemd, which creates slices and scopes, or cgroupfs. */

#include "common/error.h"

#include <stdbool.h>

/* 'configured' is cgroupDriver; NULL: systemd if it is PID 1 and cgroup v2 is used, else cgroupfs.
 * Sets '*ret_has_slices' if systemd is chosen. Pure. 0, -EOPNOTSUPP with a message. */
int choose_cgroup_driver(const char *configured, bool has_systemd, int cgroup_version,
                         bool *ret_has_slices, Error *reterr);

/* Logs that cgroup v1 is deprecated, if it is in use, and each missing controller, with the pods
 * that cannot start without it. */
void warn_of_cgroups(void);
