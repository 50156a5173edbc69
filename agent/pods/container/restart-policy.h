/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Decisions of the supervisor that are Kubernetes' and not ours: pure functions, time is an
 * argument. */

#include "agent/model/pod.h"
#include "agent/model/status.h"
#include "common/back-off.h"

/* When a container is restarted, in its own words or in its pod's. */
typedef struct ContainerRestartPolicy {
        RestartPolicy policy; /* where no rule matches */
        const RestartRule *rules;
        size_t n_rules;
        bool is_init; /* what has succeeded is done */
} ContainerRestartPolicy;

/* A sidecar always, a container of init after a failure, unless its pod or itself says never. The
 * container is one of the spec's own, and outlives the terms. */
ContainerRestartPolicy container_restart_policy(const PodSpec *spec, const Container *container);

/* Whether a rule of any container may restart all of them. */
bool pod_may_restart_all_containers(const PodSpec *spec);

typedef enum RestartVerdict {
        RESTART_NOW,
        RESTART_LATER,
        RESTART_NOT,
        RESTART_ALL, /* all containers of the pod, after the delay */
} RestartVerdict;

typedef struct RestartDecision {
        RestartVerdict verdict;
        uint64_t delay_usec;      /* from the exit on; RESTART_LATER, RESTART_ALL */
        uint64_t next_delay_usec; /* what the exit after this one will cost */
} RestartDecision;

/* Ten minutes of running forgive all earlier exits. */
#define BACK_OFF_RESET_USEC (UINT64_C(600) * 1000 * 1000)

/* The kubelet's crash back-off: the first restart is immediate, then 10 s, doubling to 300 s;
 * whoever ran for more than ten minutes begins anew. 'next_delay_usec' is what the last decision
 * gave, 0 at first. An exit code that nobody saw counts as a failure: the caller passes 137. */
RestartDecision decide_restart(const ContainerRestartPolicy *terms, int exit_code,
                               uint64_t ran_usec, uint64_t next_delay_usec,
                               const BackOffLimits *back_off);

/* Kubernetes' reason for an end: Completed, Error, OOMKilled. */
const char *container_exit_reason(int exit_code, bool oom_killed);
