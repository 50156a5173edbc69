/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a pod could begin, as far as that can be said without beginning it: computes all that
 * would be written, and writes nothing. */

#include "agent/bundle/bundle.h"

/* 'images' are those of the containers, as pod_nth_container() has them. 0, or what is wrong, as it
 * would be told of a pod that has begun. */
int bundle_preflight_pod(const BundleConfig *config, const Pod *pod, Image *const *images,
                         Error *reterr);
