/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Landlock: which parts of the file system a process may still open, make and remove. What it holds
 * open is not touched. A kernel that has none, or an old one, is told apart and is no error: this
 * is one wall of several. */

#include "common/error.h"

/* What stays allowed; descriptors of directories, negative for none. */
typedef struct LandlockRules {
        int read_beneath;
        int write_beneath;   /* with reading */
        bool reads_anything; /* only writing is held back */
} LandlockRules;

int landlock_restrict(const LandlockRules *rules, Error *reterr);
