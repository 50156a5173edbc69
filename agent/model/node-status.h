/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* v1.NodeStatus: the part of a Node object that reports on the machine. Plain data, collected by
 * node/, written by kubeclient/. Strings are owned. */

#include "agent/model/config.h"
#include "agent/model/device.h"
#include "agent/model/eviction.h"
#include "agent/model/values.h"

#include <stdint.h>

/* The kubelet version for version skew checks: kubeadm 1.35 refuses a newer one, and servers
 * of 1.36 to 1.38 accept it. The features of 1.36 that the agent has are declared in
 * 'declaredFeatures'. The text after the plus is informational. */
#define NODE_KUBELET_VERSION "v1.35.0+mainstay." MAINSTAY_VERSION
#define NODE_RUNTIME_VERSION "mainstay://" MAINSTAY_VERSION

enum {
        NODE_IMAGES_MAX = 50,     /* maximum reported in the status */
        NODE_IMAGE_NAMES_MAX = 5, /* maximum names of one image */
        NODE_RESOURCE_NONE = -1,  /* the machine does not have the resource */
};

typedef struct NodeResources {
        int64_t cpu_milli;
        int64_t memory; /* in bytes, like all following members except the last */
        int64_t ephemeral_storage;
        int64_t huge_pages_1gi; /* or NODE_RESOURCE_NONE */
        int64_t huge_pages_2mi; /* likewise */
        int64_t pods;
} NodeResources;

/* The resources that pods can use: capacity minus huge pages, reservations, and the hard eviction
 * thresholds. */
NodeResources node_allocatable(const NodeResources *capacity, const NodeReservation *system,
                               const NodeReservation *kube, const EvictionPolicy *eviction);

typedef struct NodeImage {
        char **names;
        int64_t size_bytes;
} NodeImage;

typedef struct NodeInfo {
        char *machine_id;
        char *system_uuid;
        char *boot_id;
        char *kernel_version;
        char *os_image;
        char *architecture; /* Go's name */
        int64_t swap;       /* bytes; 0: none */
} NodeInfo;

/* Condition types that Kubernetes does not define. */
#define NODE_CONDITION_PREFIX  "mainstay.io/"
#define NODE_REFUSED_CONDITION NODE_CONDITION_PREFIX "Refused"
#define NODE_REACHED_CONDITION NODE_CONDITION_PREFIX "APIServerReached"

/* The state of a source of fetched manifests, or of the report. Strings are borrowed, times are
 * realtime. */
typedef struct NodeSourceStatus {
        const char *name;    /* "staticPodURL", "source", "report"; NULL: not configured */
        const char *message; /* its problem, or the content in use; NULL: not known yet */
        bool has_failed;     /* its last response is not in use, or it did not respond */
        bool is_refused;     /* its last response cannot be used */
        uint64_t since;      /* time of the last transition; 0: it has not been queried yet */
        uint64_t succeeded;  /* time when it last returned the content that is in use; 0: never */
        int64_t number;      /* of the index in use; 0: none */
        size_t n_waiting;    /* lines of the report that are queued */
        uint64_t n_dropped;  /* lines of the report dropped so far */
} NodeSourceStatus;

enum {
        NODE_SOURCES_MAX = 3
};

#define NODE_REPORT_NAME "report"

typedef struct NodeSources {
        NodeSourceStatus items[NODE_SOURCES_MAX];
        size_t n;
} NodeSources;

/* The types of the sources' conditions, which are true if a source fails
 * ("mainstay.io/SourceFailed").
 */
typedef struct NodeSourceInfo {
        const char *name, *condition;
} NodeSourceInfo;

extern const NodeSourceInfo node_source_infos[NODE_SOURCES_MAX];

/* The status and the reason of this condition. */
const char *node_source_condition_status(const NodeSourceStatus *source);
const char *node_source_reason(const NodeSourceStatus *source);

/* NULL: no source with this name is configured. */
const NodeSourceStatus *node_sources_find(const NodeSources *sources, const char *name);

typedef struct NodeStatus {
        NodeResources capacity;
        NodeResources allocatable;
        NodeDevicesList devices; /* extended resources, with capacity and allocatable */
        NodeConditions pressure;
        char *not_ready_reason; /* message of the condition Ready=False; NULL: it is ready */
        char *refused;          /* permissions that the server's RBAC denies, as a message; NULL:
                                 * none */
        char **addresses;       /* InternalIP, the preferred one first */
        char *hostname;
        NodeInfo info;
        LIST_OF(NodeImage) images; /* the largest first */
        char **volumes_in_use;     /* attached ones that are mounted, or may be; NULL: none */
        char **runtime_handlers;   /* "" is the default runtime */
        bool has_user_namespaces;  /* pods can have user namespaces */
        unsigned port;             /* port of the kubelet API; 0: none */
        NodeSources sources;       /* their strings are borrowed */
} NodeStatus;

void node_status_done(NodeStatus *status);

/* The state of the connection to the API server, for the local interface. Strings are borrowed,
 * times are realtime. All members are zero if the node has not joined an API server. */
typedef struct NodeApiServerConnection {
        bool has_joined;
        const char *server; /* address; NULL until a kubeconfig names it */
        bool is_reached;
        uint64_t since;            /* start of this state; 0: no request has been made yet */
        const char *last_error;    /* the error of the last failure, or NULL */
        const char *daemonsets_by; /* which controller places the server's DaemonSets; NULL: not
                                      known yet */
        const char *refused;       /* as in a NodeStatus */
        uint64_t refused_since;    /* time of the last transition; 0: never */
} NodeApiServerConnection;
