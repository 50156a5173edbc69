/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The two verbs that run without a pod: before the first shim, and after one. Both may be repeated
 * at any time. */

#include "common/error.h"

/* Makes 'directory' (0700) a private mount of its own: what a shim mounts below it stays in the
 * shim's namespace. 0 or -errno. */
int prepare_run_directory(const char *directory, Error *reterr);

/* Ends all processes in the cgroups, in their order, and removes them, and the directories with all
 * that is in them. 0 or the first -errno, after having removed what could
 * be. */
int remove_pod_remains(char **cgroups, char *const *directories, Error *reterr);
