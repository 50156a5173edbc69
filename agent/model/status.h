/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* PodStatus of core/v1. pods/ computes it once after each step of a pod, and never changes it
 * afterwards; model/json writes it, http/ and apiserver/ publish it. Times are realtime
 * microseconds, 0 if unset. Strings belong to the status. */

#include "agent/model/device.h"
#include "agent/model/qos.h"

typedef enum PodPhase {
        POD_PENDING,
        POD_RUNNING,
        POD_SUCCEEDED,
        POD_FAILED,
        POD_UNKNOWN,
        N_POD_PHASES,
} PodPhase;

extern const char *const pod_phase_names[N_POD_PHASES];

typedef enum ContainerStateKind {
        STATE_NONE, /* lastState of a container that has not terminated yet */
        STATE_WAITING,
        STATE_RUNNING,
        STATE_TERMINATED,
} ContainerStateKind;

typedef struct ContainerState {
        ContainerStateKind kind;
        char *reason;
        char *message;
        int exit_code;       /* terminated */
        int signal;          /* terminated: the signal that ended it; 0 if it exited */
        char *container_id;  /* terminated: "mainstay://<64 hex>" */
        uint64_t started_at; /* running, terminated */
        uint64_t finished_at;
} ContainerState;

/* The user of the first process, which may have changed it since. */
typedef struct ContainerUser {
        bool is_known;
        int64_t uid; /* IDs in the container's user namespace */
        int64_t gid;
        IntList groups; /* supplementary */
} ContainerUser;

typedef struct ContainerStatus {
        char *name;
        ContainerState state;
        ContainerState last_state;
        bool ready;
        bool started;
        unsigned restart_count;
        char *image;
        char *image_id;     /* "" until known */
        char *container_id; /* "mainstay://…"; NULL before the first start. Set only afterwards: */
        ResourceRequirements *resources; /* values of its cgroup; NULL: none are set */
        ContainerUser user;
        int stop_signal;                               /* 0: unknown */
        ResourceStatusList allocated_resources_status; /* its devices; not for init containers */
} ContainerStatus;

/* In the order of the report. */
typedef enum PodConditionType {
        CONDITION_READY_TO_START_CONTAINERS,
        CONDITION_INITIALIZED,
        CONDITION_READY,
        CONDITION_CONTAINERS_READY,
        CONDITION_SCHEDULED,
        CONDITION_ALL_CONTAINERS_RESTARTING, /* present only if a restart rule can cause it */
        /* Present only while true, with the reason: */
        CONDITION_RESIZE_IN_PROGRESS, /* resources of an edit that are not applied yet */
        CONDITION_EDIT_PENDING,       /* a successor that cannot start */
        CONDITION_DISRUPTION_TARGET,  /* DisruptionTarget: the pod was evicted or preempted */
        N_POD_CONDITIONS,
} PodConditionType;

extern const char *const pod_condition_names[N_POD_CONDITIONS];

bool pod_condition_is_passing(PodConditionType type);

typedef struct PodCondition {
        bool is_true;
        char *reason;
        char *message;
        uint64_t last_transition;
} PodCondition;

typedef LIST_OF(ContainerStatus) ContainerStatusList;

typedef struct PodStatus {
        unsigned n_refs;
        uint64_t version; /* version for this instance of the pod; with a greater version, the
                           * following members have changed */
        unsigned n_edits; /* of the spec that the status describes; see PodInstance */
        PodPhase phase;
        bool is_syncing;     /* the shim is not reconnected yet: the state under an earlier agent is
                              * unknown */
        bool is_rejected;    /* the node did not admit it: there are only phase, reason and
                              * message */
        bool is_provisional; /* the remains of an earlier agent are still unknown; conditions may be
                              * wrong
                              */
        PodCondition conditions[N_POD_CONDITIONS];
        bool may_restart_all; /* includes CONDITION_ALL_CONTAINERS_RESTARTING */
        char *reason;
        char *message;
        char *host_ip;
        char *other_host_ip; /* of the other address family, if the node has both */
        char *pod_ip;
        char *other_pod_ip; /* of the other address family, in dual-stack */
        uint64_t start_time;
        uint64_t deletion_time; /* metadata.deletionTimestamp: set while the pod is being stopped */
        ContainerStatusList init_containers;      /* in the order of the spec */
        ContainerStatusList containers;           /* sorted by name, as in the kubelet */
        ContainerStatusList ephemeral_containers; /* likewise */
        QosClass qos_class;
} PodStatus;

void container_user_done(ContainerUser *user);
int container_user_copy(const ContainerUser *user, ContainerUser *ret); /* 0 or -ENOMEM */
void container_state_done(ContainerState *state);
/* Compares everything except versions and owners. */
bool pod_status_equal(const PodStatus *a, const PodStatus *b);

/* Adds or removes an owner. NULL is allowed; the second function returns NULL. As long as it has an
 * owner, its address identifies this status, its content and the spec. */
const PodStatus *pod_status_ref(const PodStatus *status);
const PodStatus *pod_status_unref(const PodStatus *status);

/* Whether the pod was evicted or not admitted because of node pressure: such a pod starts again by
 * itself when the node has recovered. */
bool pod_status_waits_for_node(const PodStatus *status);

/* Whether it is Ready, or has succeeded and will never be Ready again. */
bool pod_status_is_ready_or_done(const PodStatus *status);

/* The status of an init or main container; NULL: there is none. */
const ContainerStatus *pod_status_find_container(const PodStatus *status, const char *name);

void pod_status_done(PodStatus *status);
