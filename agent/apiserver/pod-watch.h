/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Watches the pods that the API server has bound to this node, and the mirror pods of this node.
 * Only a complete list shows that a pod is gone; a list in which many of the bound pods are missing
 * is requested once more before it is accepted. */

#include "agent/apiserver/connection-status.h"
#include "agent/apiserver/pod-table.h"

#include <stdio.h>

typedef struct RemotePodWatch RemotePodWatch;

/* Borrowed. */
typedef struct RemotePodWatchSpec {
        sd_event *event;
        const char *node_name;
        PodManager *pod_manager;
        PodTable *pods;
        ConnectionStatus *connection;
        /* One entry changed. */
        void (*on_changed)(const ApiServerPod *pod, void *userdata);
        /* The server deletes the pod, or it is no longer bound to this node, so it is about to be
         * forgotten. */
        void (*on_unbound)(const Pod *pod, void *userdata);
        /* A list has ended, or an object was deleted: entries may be unreferenced. */
        void (*on_removed)(void *userdata);
        void (*on_list_end)(void *userdata);
        /* The server has listed the pods, or has refused to list them. Called for each response. */
        void (*on_answered)(void *userdata);
        void (*on_recompute_due)(void *userdata);
        void *userdata;
} RemotePodWatchSpec;

int pod_watch_new(const RemotePodWatchSpec *spec, RemotePodWatch **ret);
RemotePodWatch *pod_watch_free(RemotePodWatch *watch);
int pod_watch_start(RemotePodWatch *watch, KubeClient *client); /* 0 or -errno */

/* A complete list was read and was not doubtful. */
bool pod_watch_is_synced(const RemotePodWatch *watch);

/* Prints the list and its reflector for `mainstay debug dump`. */
void pod_watch_dump(const RemotePodWatch *watch, FILE *out);
