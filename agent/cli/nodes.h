/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Requests to the agent about its node. */

#include "agent/cli/cli.h"

int describe_nodes(const Options *options, char *const *names, size_t n_names);
