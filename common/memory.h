/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Returns memory after a burst of work: free pages of the heap, and pages of the program and its
 * libraries that were used only for start. The kernel's cache has those when they are used again.
 * Takes about a millisecond. */
void memory_trim(void);
