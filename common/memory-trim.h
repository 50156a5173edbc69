/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Returns memory after a burst of work: free pages of the heap, the stack below the caller, and
 * pages of the program and its libraries that were only used at startup. If these pages are used
 * again, the kernel has them in its cache. Only for the main thread. Takes about a millisecond. */
void memory_trim(void);
