/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The probes of one container (startupProbe, livenessProbe, readinessProbe; initialDelaySeconds,
 * periodSeconds; kubelet: prober): when each one runs, what its results mean for the container, and
 * which results survive a restart of the agent. Level-triggered: container_probes_step() starts the
 * probes that should run and stops the others. Without probes there is no timer. */

#include "agent/model/probe-sample.h"
#include "agent/pods/container/attempt-checkpoint.h"
#include "agent/pods/container/container-instance.h"
#include "agent/pods/probe/probe-threshold.h"

typedef struct ContainerProbes ContainerProbes;

typedef struct ContainerProbesCallbacks {
        /* The results have changed: the attempt's checkpoint must be updated. */
        void (*on_changed)(void *userdata);
        /* A liveness or startup probe has failed: kills the attempt with this grace period. */
        void (*kill)(const OptionalInt *grace, const char *why, void *userdata);
} ContainerProbesCallbacks;

typedef struct ProbeWorker {
        ContainerProbes *probes;
        ProbeKind kind;
        ProbeResultRun run;
        bool is_running;
        bool is_due;      /* it became due while the previous run was in progress */
        uint64_t next_at; /* boot time */
        uint64_t period_usec;
        uint64_t n_errors;                     /* consecutive runs in which the probe could not be
                                                * performed */
        uint64_t n_results[N_HANDLER_RESULTS]; /* of all attempts */
        sd_event_source *timer;
        HandlerRun *handler_run;
} ProbeWorker;

struct ContainerProbes {
        const ContainerInstance *container;
        const ContainerProbesCallbacks *callbacks;
        void *userdata;
        ProbeWorker *kinds[N_PROBE_KINDS]; /* NULL until it is due for the first time */
        /* State of the current attempt: */
        unsigned attempt;
        bool has_attempt;
        bool is_adopted;  /* the attempt is older than this agent */
        bool has_started; /* its startup probe has passed, or it has none */
        bool is_ready;    /* its readiness probe has passed, or it has none */
        bool has_failed;  /* a liveness or startup probe: the attempt is being killed */
};

/* To be called when anything about the container may have changed. */
void container_probes_step(ContainerProbes *probes);

/* A restarted agent found the attempt, with the results in its checkpoint. If the attempt is being
 * killed, the shim ends it when its grace period is over, and the failure is neither detected nor
 * reported again. */
void container_probes_adopt(ContainerProbes *probes, const AttemptCheckpoint *checkpoint);

/* The spec has changed from 'former': a changed probe starts over, an unchanged one continues. */
void container_probes_on_spec_changed(ContainerProbes *probes, const Container *former);

/* Stops all probes, and discards their results and counts. */
void container_probes_done(ContainerProbes *probes);

/* Whether the startup probe (the readiness probe) has passed, or does not exist. For an attempt
 * that is not running yet, these are the initial values. */
bool container_probes_have_started(const ContainerProbes *probes);
bool container_probes_readiness_passed(const ContainerProbes *probes);

/* Whether both have passed, which is "ready" in the API for a running container. */
bool container_probes_are_ready(const ContainerProbes *probes);

/* Reports the counts of the results (metric prober_probe_total). */
void container_probes_for_each_sample(const ContainerProbes *probes, probe_sample_t each,
                                      void *userdata);

/* Prints the last results and when each probe runs next, for `mainstay debug dump`. */
void container_probes_dump(const ContainerProbes *probes, FILE *out);
