/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* mainstay debug POD --image=IMAGE: adds an ephemeral container to a pod. */

#include "agent/cli/cli.h"

/* Returns an exit status, and prints errors. */
int debug_pod(const Options *options);
