/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Attaches the local streams to a running container. */

#include "agent/cli/cli.h"

/* The status of the container with that name in a pod, regardless of its kind. NULL: none. */
const json_t *find_container_status_of(const json_t *pod, const char *name);

/* Attaches the streams that the options request to a container of the pod, until the container ends
 * or the user detaches. 0, or -errno with a message. */
int attach_container_streams(const Options *options, const json_t *pod, const char *container,
                             Error *reterr);
