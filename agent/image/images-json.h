/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The images and pulls of the store as JSON, for `mainstay get images` and `mainstay images`. */

#include "agent/image/manual-pulls.h"

/* The caller frees it; NULL: out of memory. */
char *images_to_json(ImageStore *store, const ManualPulls *manual_pulls);
