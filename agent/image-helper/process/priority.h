/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Gives the handling of images a lower CPU and disk priority than containers. Affects this process
 * and its children, in a separate session unless this process leads a process group. */
void lower_process_priority(void);
