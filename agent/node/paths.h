/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The directories of the agent, which are made where they do not exist, and the paths of the
 * programs that it starts. */

#include "common/error.h"

#include <sys/types.h>

/* Makes the directory with its parents, sets its mode, and gives its real path. -EINVAL for a path
 * that a mount option cannot hold. */
int paths_make_directory(const char *path, mode_t mode, char **ret, Error *reterr);

/* Makes "<parent>/<name>" with its parents; an existing directory stays as it is. */
int paths_make_subdirectory(const char *parent, const char *name, Error *reterr);

/* The path of another program of Mainstay: beside this one in a build directory, else where it is
 * installed. */
int paths_find_program(const char *name, char **ret);
