/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The logs that are added to a report: those of containers that are not ready, in pods that are not
 * Ready. A pod that has succeeded is not one of them. */

#include "agent/pods/manager/pod-manager.h"

/* JSON for the helper: an array of "namespace", "name", "uid", "container". Memory that the caller
 * frees; NULL: out of memory. */
char *unready_logs_list(const PodManager *pods);
