/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A directory that can be listed only partially: readdir() fails with EIO. It affects all code that
 * is linked into the test program. */

#include <stdbool.h>

/* Number of calls that succeed before all further calls fail; if negative, all calls succeed. */
extern int readdir_calls_left;
extern bool readdir_has_failed;
