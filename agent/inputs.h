/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the agent was given, told to those who ask on the socket: the files of the manifest
 * directory, the objects in them, the archives. */

#include "agent/image/image.h"
#include "agent/manifest/manifest.h"
#include "agent/model/event.h"
#include "agent/serve/serve.h"
#include "agent/supervise/supervisor.h"

/* Tells all files and archives. Pods of DaemonSets are told with the file of their set. */
void inputs_report(const ManifestSource *sources, const char *directory, Supervisor *supervisor,
                   ImageStore *images, ServeReport *report);

/* The first object after a "<namespace>/<name>"; as ServeHandlers.next_object. */
int inputs_next_object(const ManifestSource *sources, const char *directory, ObjectKind kind,
                       const char *after, char **ret_key, char **ret_json);

/* Tells the event of a broken manifest for each pod and DaemonSet of its last good bytes. */
void inputs_tell_broken(const Manifest *manifest,
                        void (*tell)(const PodEvent *event, void *userdata), void *userdata);
