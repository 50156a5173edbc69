/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What `mainstay debug dump` prints of this process as the kernel sees it: its memory, and the
 * descriptors that its event loop waits for. */

#include <stdio.h>

struct sd_event;

void process_dump(struct sd_event *event, FILE *out);
