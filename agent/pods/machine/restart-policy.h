/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The restart policy of containers (restartPolicy, restartPolicyRules) and CrashLoopBackOff:
 * whether and when a container that has exited is restarted, according to Kubernetes' rules. The
 * longest delay is the kubelet's MaxContainerBackOff, or crashLoopBackOff.maxContainerRestartPeriod
 * of the configuration. Pure; time is an argument. */

#include "agent/model/pod.h"
#include "agent/model/status.h"
#include "common/back-off.h"

/* The policy for restarts of a container: its own, or its pod's. */
typedef struct ContainerRestartPolicy {
        RestartPolicy policy; /* if no rule applies */
        const RestartRule *rules;
        size_t n_rules;
        bool is_init; /* exit code 0 completes it */
} ContainerRestartPolicy;

/* A sidecar always restarts, an init container after a failure, unless its policy or its pod's is
 * Never; an ephemeral container never does. The container must belong to the spec, and outlive the
 * result. */
ContainerRestartPolicy container_restart_policy(const PodSpec *spec, const Container *container);

/* Whether a rule of any container can restart all containers. */
bool pod_may_restart_all_containers(const PodSpec *spec);

typedef enum RestartVerdict {
        RESTART_NOW,
        RESTART_LATER,
        RESTART_NOT,
        RESTART_ALL, /* all containers of the pod, after the delay */
} RestartVerdict;

typedef struct RestartDecision {
        RestartVerdict verdict;
        uint64_t delay_usec;      /* from the exit on; for RESTART_LATER and RESTART_ALL */
        uint64_t next_delay_usec; /* for the next exit */
} RestartDecision;

/* An attempt that ran for ten minutes resets the back-off. */
#define BACK_OFF_RESET_USEC (UINT64_C(600) * 1000 * 1000)

/* The kubelet's CrashLoopBackOff: the first restart is immediate, then 10 s, doubling to 300 s; a
 * run of more than ten minutes resets it. 'next_delay_usec' comes from the last decision, 0 at
 * first. An exit code that was not observed counts as a failure: the caller passes 137. */
RestartDecision decide_restart(const ContainerRestartPolicy *terms, int exit_code,
                               uint64_t ran_usec, uint64_t next_delay_usec,
                               const BackOffLimits *back_off);
