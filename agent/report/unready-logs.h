/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Selects the logs that are added to a report: those of containers that are not ready, in pods that
 * are not Ready. Succeeded pods are not included. */

#include "agent/pods/manager/pod-manager.h"

/* JSON for the helper: an array of "namespace", "name", "uid", "container". The caller frees it;
 * NULL: out of memory. */
char *unready_logs_list(const PodManager *pods);
