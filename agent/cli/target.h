/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pod and the container to which a command applies. */

#include "agent/cli/cli.h"

/* The pod with that name, with or without the node suffix, or the pod of "daemonset/NAME"; a new
 * reference. 0 or -errno with a message. */
int find_pod(const Options *options, const char *name, json_t **ret, Error *reterr);

/* The name of the i-th container, or "". */
const char *container_name(const json_t *containers, size_t i);

/* 'named' if it is not NULL; otherwise the pod's default container, or the first one, and the other
 * containers are mentioned. */
const char *choose_container(const json_t *pod, const char *named);
