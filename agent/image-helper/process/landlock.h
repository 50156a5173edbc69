/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Landlock: restricts the parts of the file system that a process may still open, create and
 * remove. Open descriptors are not affected. A kernel without Landlock, or with an old version, is
 * not an error: it is one of several restrictions. */

#include "common/error.h"

/* Directories that stay accessible; negative for none. */
typedef struct LandlockRules {
        int read_beneath;
        int write_beneath;   /* with reading */
        bool reads_anything; /* only writing is restricted */
} LandlockRules;

/* Restricts this process and its children, permanently. 0, also on a kernel whose Landlock is older
 * than LANDLOCK_VERSION_MIN, where nothing is restricted; or -errno with a message. */
int landlock_restrict(const LandlockRules *rules, Error *reterr);
