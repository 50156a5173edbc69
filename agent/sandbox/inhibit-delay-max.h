/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* logind lets a shutdown wait for five seconds unless it is told otherwise. As the kubelet does, we
 * tell it, and only where our configuration asks for more; but in /run, so that the next boot
 * begins with what the administrator has written, and a package need not ship it for everybody. */

#include "agent/sandbox/systemd-client.h"
#include "common/error.h"

#include <stdint.h>

/* Writes the drop-in and has logind read it. It has an effect some milliseconds later. 0 or -errno.
 */
int inhibit_delay_max_raise(SystemdClient *systemd, const char *conf_dir, uint64_t usec,
                            Error *reterr);
