/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The actions on a DaemonSet that users can request: rollout undo and restart, and the deletion of
 * its file, with or without its pods. */

#include "agent/daemonset/controller.h"
#include "agent/manifest/manifest.h"

/* The dependencies of the actions; borrowed. */
typedef struct DaemonSetAction {
        DaemonSetController *controller;
        const ManifestDirectory *manifests;
        const char *manifest_dir;
        void (*on_recompute_due)(void *userdata); /* pods have become orphans */
        void *userdata;
} DaemonSetAction;

/* "undo" (to a revision; 0: the previous one), "restart", "delete", "orphan" (delete it and keep
 * its pods). 0; 1: there is nothing to do; -ENOENT, or -EINVAL if the set's file contains other
 * objects; with a message. */
int daemonset_action_run(const DaemonSetAction *action, const char *namespace, const char *name,
                         const char *verb, int64_t revision, Error *reterr);
