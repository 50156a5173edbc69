/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One run of a handler of a probe or a lifecycle hook: exec, httpGet, tcpSocket, grpc or sleep.
 * Asynchronous. The caller decides what the result means for the container. */

#include "agent/model/pod.h"
#include "agent/sandbox/sandbox.h"
#include "common/http-client.h"

typedef struct HandlerRun HandlerRun;

typedef enum HandlerResult {
        HANDLER_SUCCEEDED,
        HANDLER_FAILED,
        HANDLER_ERROR,   /* the handler could not be run; not a result of the container */
        HANDLER_WARNING, /* for a probe: success, with details for the user */
        N_HANDLER_RESULTS,
} HandlerResult;

/* Called once, from the loop, never from within handler_run_start(). The caller frees the run,
 * there or later. 'message' is the output or the error. */
typedef void (*handler_done_t)(HandlerResult result, const char *message, void *userdata);

/* The container in which a handler runs. The container and the strings are borrowed during the call
 * of handler_run_start(), the other members as long as the run exists. */
typedef struct HandlerTarget {
        sd_event *event;
        HttpClient **http; /* created at first use; shared by all */
        Sandbox *sandbox;
        const Container *container;
        const char *id;      /* of its current attempt */
        const char *address; /* of its pod */
} HandlerTarget;

typedef struct HandlerRunSpec {
        const Handler *handler; /* copied: the pod may be edited during the run */
        uint64_t timeout_usec;  /* the run fails after this time; 0: never */
        bool is_hook;           /* any HTTP response is a success, and $(…) in a command is not
                                 * expanded */
} HandlerRunSpec;

/* 0 or -ENOMEM; a handler that cannot be started is reported as HANDLER_ERROR. */
int handler_run_start(const HandlerTarget *target, const HandlerRunSpec *spec, handler_done_t done,
                      void *userdata, HandlerRun **ret);

/* Cancels it without a report. NULL is allowed. */
HandlerRun *handler_run_free(HandlerRun *run);
