/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The terminated-pod cache, <state>/cluster/ended/<uid>: the final v1.Pod of each API pod that has
 * succeeded or failed. After a reboot it is all that is left of the pod, which must not start again
 * and whose status the API server may not have yet. */

#include "agent/apiserver/cache.h"

#include <stdbool.h>

/* Queues writing the final v1.Pod of a pod, or removing it, by apiserver_cache_write(). */
void terminated_pods_add(ApiServerCache *cache, const char *uid, const char *json);
void terminated_pods_remove(ApiServerCache *cache, const char *uid);

/* Whether the pod terminated before this boot; 'ret_json' is its final v1.Pod, which the caller
 * frees. The shim has the state of a pod of this boot, whose directory is below 'run_dir'. */
bool terminated_pods_find(const ApiServerCache *cache, const char *run_dir, const char *uid,
                          char **ret_json);
