/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One pod as the parts of its worker see it: its spec, its sandbox, the node's context. The parts
 * (probes, hooks, images, volumes, deadline, …) read it; only the pod worker writes it. */

#include "agent/pods/pod/network-attachment.h"
#include "agent/pods/pod/pod-context.h"
#include "common/log.h"

typedef struct PodInstance {
        PodContext *context;
        void *owner; /* argument of on_dirty() */
        Pod *pod;
        unsigned n_edits;              /* number of edits of the spec while the pod runs */
        char *description;             /* "default/web-node1" */
        uint64_t start_time;           /* realtime */
        bool is_desired;               /* false: it is being terminated */
        Sandbox *sandbox;              /* NULL: no shim is connected */
        NetworkAttachment *attachment; /* NULL: the pod is in the host network */
        StringMap external_conditions; /* from an API server: the status of each condition by
                                        * type */
} PodInstance;

/* Takes ownership of the pod, except on failure. 0 or -ENOMEM. */
int pod_instance_init_take(PodInstance *instance, PodContext *context, Pod *pod, void *owner);
void pod_instance_done(PodInstance *instance);

/* To be called when a step of the pod is due, or its status may have changed. */
void pod_instance_mark_dirty(const PodInstance *instance);

/* The fields of log lines about the pod; 'container' may be NULL. */
LogSubject pod_instance_log_subject(const PodInstance *instance, const char *container);

/* The pod's state directory, for its checksummed files. A descriptor or -errno. */
int pod_instance_open_state_dir(const PodInstance *instance);

/* Loads a checksummed file from that directory, see checksummed_try_load_at(); logs "Pod '<name>':
 * <what> is damaged, …". If the directory does not exist, there is no file. */
int pod_instance_load_file(const PodInstance *instance, const char *name, size_t max_bytes,
                           const char *what, const char *consequence, char **ret_text);

/* The address that probes and hooks connect to: the pod's, or the node's in the host network. */
const char *pod_instance_address(const PodInstance *instance);

/* Sets the start time (kubernetes.io/config.seen) of a pod to now. 0 or -ENOMEM. */
int pod_reset_config_seen(Pod *pod);
