/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which images a pod uses, so that image garbage collection keeps them. */

#include "agent/model/pod.h"

/* Whether the pod names the image, in a container or a volume. 'reference' is normal. */
bool pod_uses_image(const Pod *pod, const char *reference);
