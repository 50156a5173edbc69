/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the kinds of actions share. Nobody else includes this. */

#include "agent/pods/probe/handler-run.h"

enum {
        HANDLER_OUTPUT_MAX = 10 * 1024, /* as much as the kubelet keeps */
        HANDLER_REDIRECTS_MAX = 10,
};

#define HANDLER_USER_AGENT "kube-probe/1.36"

struct HandlerRun {
        HandlerTarget target;
        HandlerRunSpec spec;
        Handler handler; /* our own, which the spec's is */
        handler_done_t done;
        void *userdata;
        char *address;
        uint64_t began_at; /* boottime */
        sd_event_source *timer;
        bool was_extended; /* because we were late ourselves */
        sd_event_source *deferred;
        HandlerResult result; /* to be told from the loop */
        char *message;

        char *exec_id;

        HttpClientRequest *request;
        char *url;
        unsigned n_redirects;
        bool is_downgraded; /* what was to be asked by HTTPS is asked without */

        int fd;
        sd_event_source *connection;
};

/* Tells the result, now. The action may be gone after. */
void handler_run_finish(HandlerRun *run, HandlerResult result, const char *format, ...)
        printf_like(3, 4);

/* Tells it from the loop. */
void handler_run_finish_deferred(HandlerRun *run, HandlerResult result, const char *format, ...)
        printf_like(3, 4);

/* The number of a port that may be named. 0 where the container has none of that name. */
int64_t handler_run_port(const HandlerRun *run, const IntOrString *port);

/* The engine, made now where there is none yet. NULL: handler_run_finish_deferred() has been
 * called. */
HttpClient *handler_run_http_client(HandlerRun *run);

/* "<scheme>://<host>:<port><path>", freed by the caller, or NULL. */
char *format_handler_url(const char *scheme, const char *host, int64_t port, const char *path);

/* The kinds. Each begins, and ends by one of the first two, or by handler_run_free(). */
void handler_begin_exec(HandlerRun *run);
void handler_begin_http(HandlerRun *run);
void handler_begin_tcp(HandlerRun *run);
void handler_begin_grpc(HandlerRun *run);

/* What to say of one whose time is over. */
const char *http_timeout_message(const HandlerRun *run);
