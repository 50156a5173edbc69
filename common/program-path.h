/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The paths that a program without a '/' in its name can have, as in execvp(3). */

/* The directories of PATH, or the default ones. */
const char *program_directories(void);

/* Sets the path of the program in the first of these directories, and removes that directory from
 * the list. 1, and the caller frees *ret; 0: no directory is left; -ENOMEM. */
int program_path_next(const char **directories, const char *program, char **ret);
