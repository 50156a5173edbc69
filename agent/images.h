/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What agent.c plugs between the image store, the pods and the socket. */

#include "agent/image/image.h"
#include "agent/supervise/supervisor.h"

/* Whether a pod that is there names the image, by its normalised reference. */
bool images_are_wanted(Supervisor *supervisor, const char *reference);

/* {"preload":…,"images":[…],"pulls":[…]}; memory that the caller frees, or NULL. */
char *images_to_json(ImageStore *store);
