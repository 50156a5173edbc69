/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which images a pod uses, so that image garbage collection keeps them. */

#include "agent/image/image-set.h"
#include "agent/model/pod.h"

/* Adds the images that the pod names, in containers and volumes. */
void pod_list_images(const Pod *pod, ImageSet *ret);
