/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the kinds of actions share. Nobody else includes this. */

#include "agent/supervise/action.h"

enum {
        ACTION_OUTPUT_MAX = 10 * 1024, /* as much as the kubelet keeps */
        ACTION_REDIRECTS_MAX = 10,
};

#define ACTION_USER_AGENT "kube-probe/1.36"

struct Action {
        ActionTarget target;
        ActionSpec spec;
        Handler handler; /* our own, which the spec's is */
        action_done_t done;
        void *userdata;
        char *address;
        uint64_t began_at; /* boottime */
        sd_event_source *timer;
        bool was_extended; /* because we were late ourselves */
        sd_event_source *deferred;
        ActionResult result; /* to be told from the loop */
        char *message;

        char *exec_id;

        HttpRequest *request;
        char *url;
        unsigned n_redirects;
        bool is_downgraded; /* what was to be asked by HTTPS is asked without */

        int fd;
        sd_event_source *connection;
};

/* Tells the result, now. The action may be gone after. */
void action_finish(Action *action, ActionResult result, const char *format, ...) printf_like(3, 4);

/* Tells it from the loop. */
void action_finish_soon(Action *action, ActionResult result, const char *format, ...)
        printf_like(3, 4);

/* The number of a port that may be named. 0 where the container has none of that name. */
int64_t action_port(const Action *action, const IntOrString *port);

/* The engine, made now where there is none yet. NULL: action_finish_soon() has been called. */
Http *action_http(Action *action);

/* "<scheme>://<host>:<port><path>", freed by the caller, or NULL. */
char *action_url(const char *scheme, const char *host, int64_t port, const char *path);

/* The kinds. Each begins, and ends by one of the first two, or by action_free(). */
void action_begin_exec(Action *action);
void action_begin_http(Action *action);
void action_begin_tcp(Action *action);
void action_begin_grpc(Action *action);

/* What to say of one whose time is over. */
const char *action_http_late(const Action *action);
