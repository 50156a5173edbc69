/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the agent was given, told to those who ask on the socket: the files of the manifest
 * directory, the objects in them, the archives. */

#include "agent/http/http-server.h"
#include "agent/image/image-store.h"
#include "agent/manifest/manifest.h"
#include "agent/pods/pod-manager.h"

/* Tells all files and archives. Pods of DaemonSets are told with the file of their set. */
void report_manifest_status(const ManifestDirectory *sources, const char *directory,
                            PodManager *pod_manager, ImageStore *images,
                            HttpManifestReport *report);

/* The first object after a "<namespace>/<name>"; as HttpServerHandlers.next_object. */
int find_next_manifest_object(const ManifestDirectory *sources, const char *directory,
                              ObjectKind kind, const char *after, char **ret_key, char **ret_json);
