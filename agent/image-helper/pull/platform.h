/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Platforms of images. Pure but for uname(2). */

#include "common/error.h"

/* Whether an image for that platform runs here, and how well it fits: 0: not at all; more is
 * better. 'variant' may be NULL. */
unsigned platform_match_score(const char *os, const char *architecture, const char *variant);

/* The error for one that does not. -ENOEXEC. */
int platform_set_mismatch_error(const char *os, const char *architecture, const char *variant,
                                Error *reterr);
