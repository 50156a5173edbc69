/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* `mainstay debug bundle FILE`: one archive with everything that a bug report needs, without
 * secrets. */

#include "agent/cli/cli.h"

/* Returns an exit status, and prints errors. */
int debug_bundle(const Options *options, const char *file);
