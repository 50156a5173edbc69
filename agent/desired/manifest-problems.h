/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Errors and warnings of the manifest directory, in the log and as events. Each of them is reported
 * once while it persists. */

#include "agent/manifest/manifest.h"
#include "agent/model/event.h"

typedef struct ManifestProblems ManifestProblems;

/* 'on_event' gets a FailedValidation event for each pod and DaemonSet of a file that has become
 * invalid, or one for the node if the file was never valid. NULL: out of memory. */
ManifestProblems *manifest_problems_new(void (*on_event)(const PodEvent *event, void *userdata),
                                        void *userdata);
ManifestProblems *manifest_problems_free(ManifestProblems *problems);
DEFINE_CLEANUP(ManifestProblems *, manifest_problems_free)

/* 'warnings' are additional ones, or NULL. */
void manifest_problems_report(ManifestProblems *problems, const ManifestDirectory *manifests,
                              char *const *warnings);
