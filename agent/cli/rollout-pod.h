/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* `mainstay rollout status pod/NAME`: whether the manifest's revision of a pod is ready, or was
 * rolled back. */

#include "agent/cli/cli.h"
#include "common/error.h"

/* Waits until the pod is ready. 0; -ETIME if it was rolled back, -ENOENT, or another -errno, with a
 * message. */
int show_pod_rollout_status(const Options *options, const char *namespace, const char *name,
                            Error *reterr);
