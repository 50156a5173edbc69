/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Open descriptors of the containers, which the shim counts because the agent may not have the
 * privilege to look at other processes. */

#include "agent/shim/sandbox-state.h"

/* An event for each running container, and one without an ID that ends them. Not in a task: the
 * number of examined descriptors has a limit (common/process-usage.h). */
void containers_report_usage(Shim *shim);
