/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where pods and DaemonSets come from, in the words that people are told: from a file of the
 * manifest directory, from an API server, or evaluated here, which is a DaemonSet's pod that this
 * node has made. */

#include "agent/pods/pod-manager.h"

/* Of a set with such an origin (daemons.h): "file web.yaml" or "api". The caller frees it; NULL
 * where memory ends. */
char *format_daemonset_source(const char *origin);

/* The pod as v1.Pod with where it comes from: "file web.yaml", "api", "api (as logd-x2x4z)" of one
 * that stands for another, "evaluated (file logd.yaml)", "evaluated (api)". The caller frees it;
 * NULL where memory ends. */
char *print_pod_with_source(const PodManager *pod_manager, const Pod *pod, const PodStatus *status);
