/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Prints this process for `mainstay debug dump`, as the kernel sees it: its memory, and the
 * descriptors on which its event loop waits. */

#include <stdio.h>
#include <systemd/sd-event.h>

void process_dump(sd_event *event, FILE *out);
