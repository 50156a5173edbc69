/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The preflight of a successor checks whether a pod could start, as far as that is possible without
 * starting it. Computes everything that would be written, but writes nothing. */

#include "agent/bundle/bundle-settings.h"

/* Whether the node has everything that the pod needs, before anything is created for the pod:
 * allowed sysctls, huge pages, the memory controller for its limits. 0, or an error with a
 * message. */
int bundle_check_node(const BundleConfig *config, const PodSpec *spec, Error *reterr);

/* 'images' are those of the containers, in the order of pod_nth_container(). 0, or the error that
 * starting the pod would report. */
int bundle_preflight_pod(const BundleConfig *config, const Pod *pod, Image *const *images,
                         Error *reterr);
