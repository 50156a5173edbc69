/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of core/v1's Probe and Lifecycle, in the order of its types. */

#include "agent/model/names.h"
#include "agent/model/pod.h"
#include "agent/model/schema.h"
#include "agent/model/signals.h"

const char *const uri_scheme_names[N_URI_SCHEMES] = {
        [URI_SCHEME_HTTP] = "HTTP",
        [URI_SCHEME_HTTPS] = "HTTPS",
        [URI_SCHEME_OTHER] = "OTHER",
};

#define REQUIRED  .is_required = true
#define CHECK(fn) .check = (fn)
/* An int32 that is not negative; 0 means the default. */
#define NUMBER .min = 0, .max = INT32_MAX

/* clang-format off */
static const Field exec_action_fields[] = {
        FIELD("command",                STRINGS,    ExecAction, command, REQUIRED),
};
static const Schema exec_action_schema = SCHEMA(ExecAction, exec_action_fields);

static const Field http_header_fields[] = {
        FIELD("name",                   STRING,     HttpHeader, name, REQUIRED, CHECK(check_header_name)),
        FIELD("value",                  STRING,     HttpHeader, value, CHECK(check_header_value), .is_manifest_check = true),
};
static const Schema http_header_schema = {
        .name = "HTTPHeader", .size = sizeof(HttpHeader),
        .fields = http_header_fields, .n_fields = N_ELEMENTS(http_header_fields),
};

static const Field http_get_action_fields[] = {
        FIELD("path",                   STRING,     HttpGetAction, path, CHECK(check_url_path), .is_manifest_check = true),
        FIELD("port",                   PORT,       HttpGetAction, port, REQUIRED),
        FIELD("host",                   STRING,     HttpGetAction, host, CHECK(check_host), .is_manifest_check = true),
        FIELD("scheme",                 ENUM,       HttpGetAction, scheme, ENUM_NAMES(uri_scheme_names),
              .other = URI_SCHEME_OTHER),
        FIELD("httpHeaders",            LIST,       HttpGetAction, http_headers,
              .schema = &http_header_schema),
};
static const Schema http_get_action_schema = {
        .name = "HTTPGetAction", .size = sizeof(HttpGetAction),
        .fields = http_get_action_fields, .n_fields = N_ELEMENTS(http_get_action_fields),
};

static const Field tcp_socket_action_fields[] = {
        FIELD("port",                   PORT,       TcpSocketAction, port, REQUIRED),
        FIELD("host",                   STRING,     TcpSocketAction, host, CHECK(check_host), .is_manifest_check = true),
};
static const Schema tcp_socket_action_schema = {
        .name = "TCPSocketAction", .size = sizeof(TcpSocketAction),
        .fields = tcp_socket_action_fields, .n_fields = N_ELEMENTS(tcp_socket_action_fields),
};

static const Field grpc_action_fields[] = {
        FIELD("port",                   INT,        GrpcAction, port, REQUIRED, .min = 1, .max = 65535),
        FIELD("service",                STRING,     GrpcAction, service),
};
static const Schema grpc_action_schema = {
        .name = "GRPCAction", .size = sizeof(GrpcAction),
        .fields = grpc_action_fields, .n_fields = N_ELEMENTS(grpc_action_fields),
};

static const Field sleep_action_fields[] = {
        FIELD("seconds",                INT,        SleepAction, seconds),
};
static const Schema sleep_action_schema = SCHEMA(SleepAction, sleep_action_fields);

static const Field probe_fields[] = {
        FIELD("exec",                   OPTIONAL,   Probe, handler.exec, .schema = &exec_action_schema),
        FIELD("httpGet",                OPTIONAL,   Probe, handler.http_get,
              .schema = &http_get_action_schema),
        FIELD("tcpSocket",              OPTIONAL,   Probe, handler.tcp_socket,
              .schema = &tcp_socket_action_schema),
        FIELD("grpc",                   OPTIONAL,   Probe, handler.grpc, .schema = &grpc_action_schema),
        FIELD("initialDelaySeconds",    INT,        Probe, initial_delay_seconds, NUMBER),
        FIELD("timeoutSeconds",         INT,        Probe, timeout_seconds, NUMBER),
        FIELD("periodSeconds",          INT,        Probe, period_seconds, NUMBER),
        FIELD("successThreshold",       INT,        Probe, success_threshold, NUMBER),
        FIELD("failureThreshold",       INT,        Probe, failure_threshold, NUMBER),
        FIELD("terminationGracePeriodSeconds", INT, Probe, termination_grace_period_seconds,
              .min = INT32_MIN, .max = INT32_MAX),
};
const Schema probe_schema = SCHEMA(Probe, probe_fields);

static const Field handler_fields[] = {
        FIELD("exec",                   OPTIONAL,   Handler, exec, .schema = &exec_action_schema),
        FIELD("httpGet",                OPTIONAL,   Handler, http_get, .schema = &http_get_action_schema),
        FIELD("tcpSocket",              OPTIONAL,   Handler, tcp_socket,
              .schema = &tcp_socket_action_schema),
        FIELD("sleep",                  OPTIONAL,   Handler, sleep, .schema = &sleep_action_schema),
};
static const Schema handler_schema = {
        .name = "LifecycleHandler", .size = sizeof(Handler),
        .fields = handler_fields, .n_fields = N_ELEMENTS(handler_fields),
};

/* The rows of both handler types, for copying. */
static const Field any_handler_fields[] = {
        FIELD("exec",                   OPTIONAL,   Handler, exec, .schema = &exec_action_schema),
        FIELD("httpGet",                OPTIONAL,   Handler, http_get, .schema = &http_get_action_schema),
        FIELD("tcpSocket",              OPTIONAL,   Handler, tcp_socket,
              .schema = &tcp_socket_action_schema),
        FIELD("grpc",                   OPTIONAL,   Handler, grpc, .schema = &grpc_action_schema),
        FIELD("sleep",                  OPTIONAL,   Handler, sleep, .schema = &sleep_action_schema),
};
const Schema any_handler_schema = SCHEMA(Handler, any_handler_fields);

static const Field lifecycle_fields[] = {
        FIELD("postStart",              OPTIONAL,   Lifecycle, post_start, .schema = &handler_schema),
        FIELD("preStop",                OPTIONAL,   Lifecycle, pre_stop, .schema = &handler_schema),
        FIELD("stopSignal",             STRING,     Lifecycle, stop_signal, CHECK(check_stop_signal)),
};
const Schema lifecycle_schema = SCHEMA(Lifecycle, lifecycle_fields);
/* clang-format on */
