/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A signed index of manifests, see mainstay-source(5): either everything that it names is offered
 * to the agent, or nothing. */

#include "agent/image-helper/source/source-store.h"
#include "agent/image-helper/source/source-transfer.h"

/* Like update_source(). */
int update_index_source(SourceTransfer *transfer, const SourceSettings *settings,
                        SourceStore *store, Error *reterr);

/* Prints the result on standard output: "new" or "unchanged". */
void print_source_result(const SourceTransfer *transfer, const char *result);
