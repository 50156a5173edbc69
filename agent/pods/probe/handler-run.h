/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One thing that is done to a container from outside: a program run in it, a request, a connection,
 * or time that is let pass. Probes ask by it how a container is, hooks tell it something; what
 * comes of it is theirs to judge. It takes as long as it takes, and nobody waits. */

#include "agent/model/pod.h"
#include "agent/sandbox/sandbox.h"
#include "common/http-client.h"

typedef struct HandlerRun HandlerRun;

typedef enum HandlerResult {
        HANDLER_SUCCEEDED,
        HANDLER_FAILED,
        HANDLER_ERROR, /* could not be tried, which says nothing of the container */
        N_HANDLER_RESULTS,
} HandlerResult;

/* Called once, from the loop, never from within handler_run_start(). The action is freed by who
 * started it, there or later. 'message' is for a person: what was answered, or what is wrong. */
typedef void (*handler_done_t)(HandlerResult result, const char *message, void *userdata);

/* Whom, and by what means. The container and the strings are borrowed for the time of the call, the
 * rest for that of the action. */
typedef struct HandlerTarget {
        sd_event *event;
        HttpClient **http; /* made when it is first needed; shared by all */
        Sandbox *sandbox;
        const Container *container;
        const char *id;      /* of its present attempt */
        const char *address; /* of its pod */
} HandlerTarget;

typedef struct HandlerRunSpec {
        const Handler *handler; /* copied: the pod may be edited meanwhile */
        uint64_t timeout_usec;  /* then it has failed; 0: never */
        bool is_hook;           /* any answer will do, and nothing in a command is replaced */
} HandlerRunSpec;

/* 0 or -ENOMEM; what cannot be begun is told as HANDLER_ERROR. */
int handler_run_start(const HandlerTarget *target, const HandlerRunSpec *spec, handler_done_t done,
                      void *userdata, HandlerRun **ret);

/* The end of a program that was run in a container. True where it is this action's. */
bool handler_run_on_exec_done(HandlerRun *run, const SandboxEvent *event);

/* Ends it without calling back. NULL is fine. */
HandlerRun *handler_run_free(HandlerRun *run);
