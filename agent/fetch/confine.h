/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a program that reads strangers' bytes need not be able to do, it gives up first. */

#include "common/error.h"

/* Ends with its parent, never dumps core, holds its memory and files to a limit. First of all. */
void confine_process(void);

/* Drops all capabilities but those that 'unpacking' takes (owners, modes, whiteouts, file
 * capabilities, trusted attributes), and the ways to get others back. After what needs them is
 * open. 0 or -errno. */
int confine_privileges(bool unpacking, Error *reterr);
