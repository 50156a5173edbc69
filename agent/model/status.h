/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* PodStatus as core/v1 has it. supervise/ fills it in, model/json writes it, publish/ and serve/
 * tell it on. Times are realtime microseconds, 0 where unset. Strings belong to the status. */

#include "agent/model/pod.h"

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
        STATE_NONE, /* lastState of a container that never ended */
        STATE_WAITING,
        STATE_RUNNING,
        STATE_TERMINATED,
} ContainerStateKind;

typedef struct ContainerState {
        ContainerStateKind kind;
        char *reason;
        char *message;
        int exit_code;       /* terminated */
        int signal;          /* terminated; 0 where it exited by itself */
        char *container_id;  /* terminated: "mainstay://<64 hex>" */
        uint64_t started_at; /* running, terminated */
        uint64_t finished_at;
} ContainerState;

/* What its first process was given; it may be another since. */
typedef struct ContainerUser {
        bool is_known;
        int64_t uid; /* as the container has them */
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
        char *image_id;     /* "" until it is known */
        char *container_id; /* "mainstay://…", NULL before the first start; then also: */
        ResourceRequirements resources; /* that its control group has */
        ContainerUser user;
        int stop_signal; /* 0: not known */
} ContainerStatus;

/* In the order in which they are reported. */
typedef enum PodConditionType {
        CONDITION_READY_TO_START_CONTAINERS,
        CONDITION_INITIALIZED,
        CONDITION_READY,
        CONDITION_CONTAINERS_READY,
        CONDITION_SCHEDULED,
        CONDITION_ALL_CONTAINERS_RESTARTING, /* told where a restart rule may come to that */
        /* Told only while they are true, and why: */
        CONDITION_RESIZE_IN_PROGRESS, /* resources of an edit that are not applied yet */
        CONDITION_EDIT_PENDING,       /* an edit whose successor cannot begin */
        CONDITION_DISRUPTION_TARGET,  /* it was evicted */
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
        PodPhase phase;
        bool is_syncing;  /* what an earlier agent's pod is has not been learned yet */
        bool is_rejected; /* the node did not admit it: phase, reason and message are all */
        PodCondition conditions[N_POD_CONDITIONS];
        bool may_restart_all; /* CONDITION_ALL_CONTAINERS_RESTARTING is one of them */
        char *reason;
        char *message;
        char *host_ip;
        char *pod_ip;
        char *other_pod_ip; /* of the other family, where the pod has both */
        uint64_t start_time;
        uint64_t deletion_time; /* metadata.deletionTimestamp: set while the pod is being stopped */
        ContainerStatusList init_containers; /* in the order of the spec */
        ContainerStatusList containers;      /* sorted by name, as the kubelet has them */
        QosClass qos_class;
} PodStatus;

void container_user_done(ContainerUser *user);
int container_user_copy(const ContainerUser *user, ContainerUser *ret); /* 0 or -ENOMEM */
void container_state_done(ContainerState *state);
/* The node is short of something, and the pod was evicted or kept out for that: it begins by itself
 * when the node has recovered. */
bool pod_status_waits_for_node(const PodStatus *status);

void pod_status_done(PodStatus *status);
