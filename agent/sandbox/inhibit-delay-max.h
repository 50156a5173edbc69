/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Raises logind's InhibitDelayMaxSec, for graceful node shutdown. By default logind delays a
 * shutdown for at most five seconds. Like the kubelet, we raise that limit only if our
 * configuration needs more. The drop-in is in /run, so that the administrator's setting is in force
 * again after a reboot. */

#include "agent/sandbox/systemd-client.h"
#include "common/error.h"

#include <stdint.h>

/* Writes the drop-in and makes logind read it, which takes effect some milliseconds later. 0 or
 * -errno. */
int inhibit_delay_max_raise(SystemdClient *systemd, const char *conf_dir, uint64_t usec,
                            Error *reterr);
