/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The status of the agent's inputs, for the local socket: the files of the manifest directory and
 * the objects in them, preloaded image archives. */

#include "agent/http/http-server.h"
#include "agent/image/image-store.h"
#include "agent/manifest/manifest.h"
#include "agent/pods/manager/pod-manager.h"

/* Reports all files and broken archives. Pods of DaemonSets are listed with the file of their
 * DaemonSet. */
void report_manifest_status(const ManifestDirectory *sources, const char *directory,
                            PodManager *pod_manager, ImageStore *images,
                            HttpManifestReport *report);

/* Finds the first object after "<namespace>/<name>"; implements HttpServerHandlers.next_object. */
int find_next_manifest_object(const ManifestDirectory *sources, const char *directory,
                              ObjectKind kind, const char *after, char **ret_key, char **ret_json);
