/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Probes and lifecycle hooks: Probe and Lifecycle of core/v1. Plain data, a part of pod.h. */

#include "agent/model/values.h"

typedef enum UriScheme {
        URI_SCHEME_UNSET,
        URI_SCHEME_HTTP,
        URI_SCHEME_HTTPS,
        URI_SCHEME_OTHER, /* from a newer API server: the request fails */
        N_URI_SCHEMES,
} UriScheme;

extern const char *const uri_scheme_names[N_URI_SCHEMES];

typedef struct HttpHeader {
        char *name;
        char *value;
} HttpHeader;

typedef struct ExecAction {
        char **command;
} ExecAction;

typedef struct HttpGetAction {
        char *path;       /* never NULL after defaulting; may include a query */
        IntOrString port; /* a text is the name of one of the container's ports */
        char *host;       /* NULL: the pod's address */
        UriScheme scheme;
        LIST_OF(HttpHeader) http_headers;
} HttpGetAction;

typedef struct TcpSocketAction {
        IntOrString port;
        char *host; /* NULL: the pod's address */
} TcpSocketAction;

typedef struct GrpcAction {
        OptionalInt port;
        char *service; /* NULL: the server as a whole */
} GrpcAction;

typedef struct SleepAction {
        OptionalInt seconds;
} SleepAction;

/* A ProbeHandler or a LifecycleHandler: exactly one is not NULL. */
typedef struct Handler {
        ExecAction *exec;
        HttpGetAction *http_get;
        TcpSocketAction *tcp_socket;
        GrpcAction *grpc;   /* probes only */
        SleepAction *sleep; /* hooks only */
} Handler;

/* The numbers are set by defaulting. */
typedef struct Probe {
        Handler handler;
        OptionalInt initial_delay_seconds;
        OptionalInt timeout_seconds;
        OptionalInt period_seconds;
        OptionalInt success_threshold;
        OptionalInt failure_threshold;
        OptionalInt termination_grace_period_seconds; /* unset: the pod's */
} Probe;

typedef struct Lifecycle {
        Handler *post_start;
        Handler *pre_stop;
        char *stop_signal; /* NULL: the image's, or SIGTERM */
} Lifecycle;
