/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Platforms of images. Pure, except for uname(2) and the platform that platform_choose() has set.
 */

#include "common/error.h"

/* Selects images for this platform ("linux/arm64/v8") instead of this machine's from now on.
 * -EINVAL with a message. */
int platform_choose(const char *name, Error *reterr);

/* The platform for which images are selected. Static. */
const char *platform_name(void);
const char *platform_architecture(void);

/* How suitable an image for that platform is; 0: not at all; a larger number is better. 'variant'
 * may be NULL. */
unsigned platform_match_score(const char *os, const char *architecture, const char *variant);

/* Sets the error for an unsuitable image. -ENOEXEC. */
int platform_set_mismatch_error(const char *os, const char *architecture, const char *variant,
                                Error *reterr);
