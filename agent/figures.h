/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the rooms know, counted for those who publish it. */

#include "agent/image/image.h"
#include "agent/manifest/manifest.h"
#include "agent/publish/publish.h"
#include "agent/supervise/supervisor.h"

/* A picture of the agent. Its strings are borrowed from the rooms, until the next scan. */
PublishCounts figures_count(const char *node_name, Supervisor *supervisor,
                            const ManifestSource *sources, ImageStore *images);

/* What the node, the pods and the containers that run have used, as Prometheus text
 * (usage_print()), in memory that the caller frees, or NULL. */
char *figures_usage(Supervisor *supervisor, const BundleConfig *config);

/* "<namespace>/<name>/<uid>", by which supervisor_next() goes; the caller frees it. NULL where
 * memory ends. */
char *figures_pod_key(const Pod *pod);
