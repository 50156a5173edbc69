/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The probes of one container: when each is due, what its results mean for the container, and what
 * of that outlives the agent. Level-triggered as a pod is: container_probes_step() begins what
 * should go on and ends what should not. No probe, no timer. */

#include "agent/pods/probe/handler-run.h"
#include "agent/pods/probe/probe.h"

typedef struct PodContainer PodContainer;

typedef struct ProbeWorker {
        PodContainer *container;
        ProbeResultRun run;
        bool is_running;
        bool is_due;      /* its time came while the last one was under way */
        uint64_t next_at; /* boottime; the grid that it keeps to */
        uint64_t period_usec;
        uint64_t n_errors;                     /* that could not be tried, in a row */
        uint64_t n_results[N_HANDLER_RESULTS]; /* of all attempts */
        sd_event_source *timer;
        HandlerRun *handler_run;
} ProbeWorker;

/* Of the present attempt. */
typedef struct ContainerProbes {
        ProbeWorker kinds[N_PROBE_KINDS];
        unsigned attempt;
        bool has_attempt;
        bool is_adopted;  /* the attempt is older than this agent */
        bool has_started; /* its startup probe has passed, or there is none */
        bool is_ready;    /* its readiness probe has passed, or there is none */
        bool has_failed;  /* liveness or startup: it is being killed */
} ContainerProbes;

/* To be called when anything about the container may be another. */
void container_probes_step(PodContainer *c);

/* The attempt was found by a new agent, with what the last one had learned. */
void container_probes_adopt(PodContainer *c, bool has_started, bool is_ready);

/* The container has another spec than 'former': a probe that is another begins anew, one that is
 * not goes on. */
void container_probes_on_spec_changed(PodContainer *c, const Container *former);

/* Ends all, and forgets what was learned. */
void container_probes_stop(PodContainer *c);

/* The end of a program in a container. True where it was a probe's. */
bool container_probes_on_exec_done(PodContainer *c, const SandboxEvent *event);

/* Its startup probe has passed, or there is none; the same of its readiness probe. Of an attempt
 * that is yet to begin: as it will begin. */
bool container_probes_have_started(const PodContainer *c);
bool container_probes_readiness_passed(const PodContainer *c);

/* Both: what the API calls ready, of a container that runs. */
bool container_probes_are_ready(const PodContainer *c);
