/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Landlock: restricts the parts of the file system in which a process can still open, create and
 * remove files. Open descriptors are not affected. A kernel without Landlock, or with an old
 * version, is not an error, because Landlock is only one of several restrictions. */

#include "common/error.h"

/* Descriptors of directories that stay accessible; negative for none. */
typedef struct LandlockRules {
        int read_beneath;
        int write_beneath;   /* includes reading */
        bool reads_anything; /* only restrict writing */
} LandlockRules;

/* Restricts this process and its children permanently. 0, also on a kernel whose Landlock is older
 * than LANDLOCK_VERSION_MIN, where nothing is restricted; or -errno with a message. */
int landlock_restrict(const LandlockRules *rules, Error *reterr);
