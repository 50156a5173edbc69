/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where things are: the directories of an agent, made where they are not there, and the programs
 * that it starts. */

#include "common/error.h"

#include <sys/types.h>

/* Makes the directory with its parents, gives it the mode, and gives its path as the kernel knows
 * it. -EINVAL for one that no mount option could hold. */
int paths_make_directory(const char *path, mode_t mode, char **ret, Error *reterr);

/* Makes "<parent>/<name>" with its parents; what is there stays as it is. */
int paths_make_subdirectory(const char *parent, const char *name, Error *reterr);

/* The path of a program of ours: beside this one in a build folder, else where it is installed. */
int paths_find_program(const char *name, char **ret);
