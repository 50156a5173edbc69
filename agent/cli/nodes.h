/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node as the agent tells of it. There is one. */

#include "agent/cli/cli.h"

int describe_nodes(const Options *options, char *const *names, size_t n_names);
