/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The terminated-pod cache, <state>/cluster/ended/<uid>: the final v1.Pod of each API pod that has
 * succeeded or failed. After a reboot nothing else is left of such a pod, although it must not
 * start again, and its status may not have reached the API server yet. */

#include "agent/apiserver/cache.h"

#include <stdbool.h>

/* Queues a write of a pod's final v1.Pod, or its removal, with apiserver_cache_write(). */
void terminated_pods_add(ApiServerCache *cache, const char *uid, const char *json);
void terminated_pods_remove(ApiServerCache *cache, const char *uid);

/* Whether the pod terminated before this boot; 'ret_json' is its final v1.Pod, which the caller
 * frees. The state of a pod of this boot, whose directory is below 'run_dir', is in its shim. */
bool terminated_pods_find(const ApiServerCache *cache, const char *run_dir, const char *uid,
                          char **ret_json);
