/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a Node of the API says of a machine: v1.NodeStatus, as far as we have something to say.
 * Plain data, gathered by agent.c, written by kube/. Strings are owned. */

#include "agent/model/eviction.h"
#include "agent/model/values.h"

#include <stdint.h>

/* As version skew has it: a kubelet of this version is what we do as. What follows the plus is for
 * people. */
#define NODE_KUBELET_VERSION "v1.36.0+mainstay." MAINSTAY_VERSION
#define NODE_RUNTIME_VERSION "mainstay://" MAINSTAY_VERSION

enum {
        NODE_IMAGES_MAX = 50,     /* that are told */
        NODE_IMAGE_NAMES_MAX = 5, /* of one image */
        NODE_RESOURCE_NONE = -1,  /* the machine knows no such thing */
};

typedef struct NodeResources {
        int64_t cpu_milli;
        int64_t memory; /* bytes, as all that follow but the last */
        int64_t ephemeral_storage;
        int64_t huge_pages_1gi; /* or NODE_RESOURCE_NONE */
        int64_t huge_pages_2mi; /* likewise */
        int64_t pods;
} NodeResources;

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
        char *architecture; /* in Go's words */
} NodeInfo;

typedef struct NodeStatus {
        NodeResources capacity;
        NodeResources allocatable;
        NodeConditions pressure;
        char *last_error; /* why it is not ready; NULL: it is */
        char *refused;    /* what the server does not let it do, in sentences; NULL: it does */
        char **addresses; /* InternalIP, the first one preferred */
        char *hostname;
        NodeInfo info;
        LIST_OF(NodeImage) images; /* the largest first */
        char **runtime_handlers;   /* "" is the one that pods get unless they name another */
        bool has_user_namespaces;  /* for pods */
        unsigned port;             /* where we answer as a kubelet does; 0: nowhere */
} NodeStatus;

void node_status_done(NodeStatus *status);

/* Conditions of a node that Kubernetes does not have. */
#define NODE_REFUSED_CONDITION "mainstay.io/Refused"
#define NODE_REACHED_CONDITION "mainstay.io/APIServerReached"

/* How the node stands with its API server, for the person at the machine. Strings are borrowed,
 * times are realtime. All zero: it has joined none. */
typedef struct NodeApiServerConnection {
        bool has_joined;
        const char *server; /* its address; NULL while no kubeconfig says it */
        bool is_reached;
        uint64_t since;            /* when that became so; 0: nothing was asked yet */
        const char *last_error;    /* why it is not; or why it was not, the last time; or NULL */
        const char *daemonsets_by; /* who places those of the server; NULL: not known yet */
        const char *refused;       /* as in a NodeStatus */
        uint64_t refused_since;    /* when that became what it is; 0: nothing ever was */
} NodeApiServerConnection;
