/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pod, and which of its containers, a command is about. */

#include "agent/cli/cli.h"

/* The pod of that name, with or without the node's suffix; a new reference. 0 or -errno with a
 * sentence. */
int find_pod(const Options *options, const char *name, json_t **ret, Error *reterr);

/* The name of the i-th of containers, or "". */
const char *container_name(const json_t *containers, size_t i);

/* 'named' where that is not NULL, or the one that the pod says is the one, or the first; then it is
 * said which others there are. */
const char *choose_container(const json_t *pod, const char *named);
