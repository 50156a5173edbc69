/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who brings images stands back behind what runs and what is being started, on the processors and
 * at the disk. For this process and those that it starts, in a session of their own unless this
 * process leads a process group. */
void lower_process_priority(void);
