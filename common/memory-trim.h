/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Returns memory after a burst of work: free pages of the heap, the stack below the caller, and
 * pages of the program and its libraries that were used only for start. The kernel's cache has
 * those when used again. Only for the main thread. Takes about a millisecond. */
void memory_trim(void);
