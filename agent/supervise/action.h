/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One thing that is done to a container from outside: a program run in it, a request, a connection,
 * or time that is let pass. Probes ask by it how a container is, hooks tell it something; what
 * comes of it is theirs to judge. It takes as long as it takes, and nobody waits. */

#include "agent/model/pod.h"
#include "agent/sandbox/sandbox.h"
#include "common/http.h"

typedef struct Action Action;

typedef enum ActionResult {
        ACTION_SUCCEEDED,
        ACTION_FAILED,
        ACTION_BROKEN, /* could not be tried, which says nothing of the container */
        N_ACTION_RESULTS,
} ActionResult;

/* Called once, from the loop, never from within action_start(). The action is freed by who started
 * it, there or later. 'message' is for a person: what was answered, or what is wrong. */
typedef void (*action_done_t)(ActionResult result, const char *message, void *userdata);

/* Whom, and by what means. The container and the strings are borrowed for the time of the call, the
 * rest for that of the action. */
typedef struct ActionTarget {
        sd_event *event;
        Http **http; /* made when it is first needed; shared by all */
        Sandbox *sandbox;
        const Container *container;
        const char *id;      /* of its present attempt */
        const char *address; /* of its pod */
} ActionTarget;

typedef struct ActionSpec {
        const Handler *handler; /* copied: the pod may be edited meanwhile */
        uint64_t timeout_usec;  /* then it has failed; 0: never */
        bool is_hook;           /* any answer will do, and nothing in a command is replaced */
} ActionSpec;

/* 0 or -ENOMEM; what cannot be begun is told as ACTION_BROKEN. */
int action_start(const ActionTarget *target, const ActionSpec *spec, action_done_t done,
                 void *userdata, Action **ret);

/* The end of a program that was run in a container. True where it is this action's. */
bool action_handle(Action *action, const SandboxEvent *event);

/* Ends it without calling back. NULL is fine. */
Action *action_free(Action *action);
