/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A directory a part of which cannot be listed: readdir() fails with EIO. For code that the program
 * of the test is linked with. */

#include <stdbool.h>

/* Calls that succeed before all others fail; below 0: all succeed. */
extern int readdir_calls_left;
extern bool readdir_has_failed;
