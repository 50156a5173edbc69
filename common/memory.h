/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Gives back what a burst of work has left behind: pages of the heap that hold nothing, and pages
 * of the program and its libraries, of which starting reads many and waiting few. Those come again
 * from the kernel's cache as they are used. Takes about a millisecond. */
void memory_trim(void);
