/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* mainstay debug POD --image=IMAGE: adds an ephemeral container to a pod. */

#include "agent/cli/cli.h"

/* The exit status, after errors were printed. */
int debug_pod(const Options *options);
