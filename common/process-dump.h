/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Prints this process for `mainstay debug dump`, as the kernel sees it: its memory, and the
 * descriptors that its event loop waits for. */

#include <stdio.h>
#include <systemd/sd-event.h>

void process_dump(sd_event *event, FILE *out);
