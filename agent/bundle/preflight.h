/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The preflight of a successor: whether a pod could start, as far as that can be checked without
 * starting it. Computes everything that would be written, and writes nothing. */

#include "agent/bundle/config.h"

/* 'images' are those of the containers, in the order of pod_nth_container(). 0, or the error that
 * the start of the pod would report. */
int bundle_preflight_pod(const BundleConfig *config, const Pod *pod, Image *const *images,
                         Error *reterr);
