/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The handler run's own struct, shared by the files of the handler kinds. No other file includes
 * this. */

#include "agent/pods/probe/handler-run.h"

enum {
        HANDLER_OUTPUT_MAX = 10 * 1024, /* the same limit as in the kubelet */
        HANDLER_REDIRECTS_MAX = 10,
};

#define HANDLER_USER_AGENT "kube-probe/1.36"
#define HOOK_USER_AGENT    "kube-lifecycle/1.36"

struct HandlerRun {
        HandlerTarget target;
        HandlerRunSpec spec;
        Handler handler; /* a copy, to which the spec points */
        handler_done_t done;
        void *userdata;
        char *address;
        uint64_t began_at; /* awake time */
        sd_event_source *timer;
        bool was_extended; /* the timeout was extended because the agent itself was late */
        sd_event_source *deferred;
        HandlerResult result; /* to be reported from the loop */
        char *message;

        SandboxExec *exec;

        HttpClientRequest *request;
        char *url;
        unsigned n_redirects;
        bool is_downgraded; /* redirected from HTTPS to HTTP */

        int fd;
        sd_event_source *connection;
};

/* Reports the result now, which may free the run. */
void handler_run_finish(HandlerRun *run, HandlerResult result, const char *format, ...)
        printf_like(3, 4);

/* Reports it from the loop. */
void handler_run_finish_deferred(HandlerRun *run, HandlerResult result, const char *format, ...)
        printf_like(3, 4);

/* The number of a port, which may be named. 0 if the container has no port with that name: then the
 * handler has ended with an error, which does not count as a result of a probe (the kubelet's
 * ResolveContainerPort()). */
int64_t handler_run_find_port(HandlerRun *run, const IntOrString *port);

/* The HTTP client, created at first use. NULL: handler_run_finish_deferred() has been called.
 */
HttpClient *handler_run_http_client(HandlerRun *run);

/* "<scheme>://<host>:<port><path>", freed by the caller, or NULL. */
char *format_handler_url(const char *scheme, const char *host, int64_t port, const char *path);

/* The kinds of handlers. Each run ends with a call of one of the first two functions, or of
 * handler_run_free(). */
void handler_begin_exec(HandlerRun *run);
void handler_begin_http(HandlerRun *run);
void handler_begin_tcp(HandlerRun *run);
void handler_begin_grpc(HandlerRun *run);

/* The message of a request that timed out. */
const char *http_timeout_message(const HandlerRun *run);
