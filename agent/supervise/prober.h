/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The probes of one container: when each is due, what its results mean for the container, and what
 * of that outlives the agent. Level-triggered as a pod is: probers_step() begins what should go on
 * and ends what should not. No probe, no timer. */

#include "agent/supervise/action.h"
#include "agent/supervise/probe.h"

typedef struct PodContainer PodContainer;

typedef struct Prober {
        PodContainer *container;
        ProbeRun run;
        bool is_on;
        bool is_due;      /* its time came while the last one was under way */
        uint64_t next_at; /* boottime; the grid that it keeps to */
        uint64_t period_usec;
        uint64_t n_broken;                    /* that could not be tried, in a row */
        uint64_t n_results[N_ACTION_RESULTS]; /* of all attempts */
        sd_event_source *timer;
        Action *action;
} Prober;

/* Of the present attempt. */
typedef struct Probers {
        Prober kinds[N_PROBE_KINDS];
        unsigned attempt;
        bool is_begun;
        bool is_adopted;  /* the attempt is older than this agent */
        bool has_started; /* its startup probe has passed, or there is none */
        bool is_ready;    /* its readiness probe has passed, or there is none */
        bool has_failed;  /* liveness or startup: it is being killed */
} Probers;

/* To be called when anything about the container may be another. */
void probers_step(PodContainer *c);

/* The attempt was found by a new agent, with what the last one had learned. */
void probers_adopt(PodContainer *c, bool has_started, bool is_ready);

/* The container has another spec than 'former': a probe that is another begins anew, one that is
 * not goes on. */
void probers_follow(PodContainer *c, const Container *former);

/* Ends all, and forgets what was learned. */
void probers_stop(PodContainer *c);

/* The end of a program in a container. True where it was a probe's. */
bool probers_handle(PodContainer *c, const SandboxEvent *event);

/* Its startup probe has passed, or there is none; the same of its readiness probe. Of an attempt
 * that is yet to begin: as it will begin. */
bool probers_have_started(const PodContainer *c);
bool probers_are_passed(const PodContainer *c);

/* Both: what the API calls ready, of a container that runs. */
bool probers_are_ready(const PodContainer *c);
