/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether the hostPaths of a running pod's successor have the required types. A separate process
 * checks them: a file system that does not respond (NFS, FUSE) blocks that process and not the
 * loop. */

#include "agent/model/pod.h"
#include "common/error.h"
#include "common/forked-task.h"

typedef struct PreflightPaths PreflightPaths;

/* Starts the checks. The pod is borrowed. 'on_change' is called from the loop when the result is
 * available. */
int preflight_paths_new(sd_event *event, const Pod *pod, void (*on_change)(void *userdata),
                        void *userdata, PreflightPaths **ret);

/* 1: every path has its type; 0: not known yet. With a message: -ENOENT: a path does not have its
 * type; -ETIMEDOUT: the file system of a path has not responded for ten seconds. */
int preflight_paths_result(const PreflightPaths *paths, Error *reterr);

PreflightPaths *preflight_paths_free(PreflightPaths *paths);
DEFINE_CLEANUP(PreflightPaths *, preflight_paths_free)
