/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The data that all pods of one agent share: the event loop, the node, the image store, limits and
 * counters.
 */

#include "agent/bundle/bundle.h"
#include "agent/cni/cni.h"
#include "agent/csi/csi-manager.h"
#include "agent/devices/device-manager.h"
#include "agent/image/image-store.h"
#include "agent/model/event.h"
#include "agent/model/eviction.h"
#include "agent/model/node-status.h"
#include "agent/model/node-usage.h"
#include "agent/model/node.h"
#include "agent/pods/machine/restart-policy.h"
#include "agent/pods/machine/start-limiter.h"
#include "agent/pods/pod/pod-classes.h"
#include "agent/sandbox/sandbox.h"

/* The pod that has a host port. */
typedef struct HostPortHolder {
        const Pod *pod;            /* borrowed */
        bool is_terminating;       /* it is terminating: the port becomes free */
        bool is_outranked;         /* the requesting pod has higher trust */
        const ContainerPort *port; /* of the requesting pod, borrowed */
        char *path;                /* path of the field with that port, which the caller frees */
} HostPortHolder;

/* Whether the pods after which a pod starts are ready. */
typedef enum PodOrderState {
        POD_ORDER_MET,
        POD_ORDER_AWAITED, /* all of them exist, but not all are ready */
        POD_ORDER_BROKEN,  /* one does not exist, or the pods wait for one another */
} PodOrderState;

/* Everything is borrowed and outlives the pods. */
typedef struct PodContext {
        sd_event *event;
        const BundleConfig *bundle;
        const SandboxConfig *sandbox;
        const CniSettings *network;
        OciRuntimes runtimes;
        ImageStore *images;
        StartLimiter start_limiter;
        BackOffLimits back_off;
        uint64_t log_max_size;
        unsigned log_max_files;
        const char *host_ips[2];
        const NodeLabelsTaints *node;     /* for node selectors and node affinity; or NULL */
        const NodeConditions *conditions; /* node pressure, for admission; or NULL */
        const NodeResources *allocatable; /* likewise */
        DeviceManager *devices;           /* for extended resources; NULL: there are none */
        CsiManager *csi; /* for volumes of CSI drivers; NULL while pods are drained */
        /* Sums up the requests of all admitted pods that have not terminated, except one. */
        void (*sum_usage)(const Pod *except, NodeUsage *ret, void *userdata);
        /* Stops pods so that a critical one fits. 0; -ENOSPC with the resources that would still be
         * missing; or -ENOMEM. */
        int (*preempt)(const Pod *pod, const NodeUsage *missing, NodeUsage *ret_unmet,
                       void *userdata);
        /* Whether pods that were stopped for others still exist. */
        bool (*is_preempting)(void *userdata);
        /* Finds a pod that holds a host port that 'pod' requests, preferring pods that do not have
         * lower trust; false: none. */
        bool (*find_port_holder)(const Pod *pod, HostPortHolder *ret, void *userdata);
        /* Fails all pods of lower trust that hold host ports that the pod requests. */
        void (*displace_port_holders)(const Pod *pod, void *userdata);
        /* Fails pods of lower trust that have devices which the pod requests, as few as necessary.
         * False: all of them would not suffice, and none was failed. */
        bool (*displace_device_holders)(const Pod *pod, void *userdata);
        /* Whether the order of pods allows the pod to start. If not, the message, which the caller
         * frees, names the pods that it waits for; NULL: out of memory. */
        PodOrderState (*find_awaited_pods)(const Pod *pod, char **ret_message, void *userdata);
        /* The pod needs pod_worker_step() soon; its status may have changed. */
        void (*on_dirty)(void *owner, void *userdata);
        /* The log of a container's attempt is complete; notifies clients that follow it. */
        void (*on_log_ended)(const char *directory, unsigned attempt, void *userdata);
        /* See record_pod_event(). May be NULL. */
        void (*on_event)(const PodEvent *event, void *userdata);
        void *userdata;
        struct FsyncQueue *state_sync; /* syncs the pods' state files to disk; or NULL */
        struct HttpClient *http;       /* for probes and hooks; created at the first use */
        int64_t burstable_milli_cpu;   /* sum of the CPU requests of all Burstable pods */
        unsigned n_awaiting;           /* pods that wait for other pods */
        bool is_draining;              /* no pod starts any more */
        uint64_t n_containers_started;
        unsigned n_network_checks;
        uint64_t n_containers_restarted;
        uint64_t n_start_errors;
} PodContext;
