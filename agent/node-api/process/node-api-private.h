/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Declarations that the files of the server share: node-api.c (settings, accepting), api-http.c
 * (HTTP), api-connection.c, api-request.c (steps and replies), api-access.c (permissions),
 * api-reviews.c (the number of requests to the API server), api-routes.c (paths), kubernetes-api.c,
 * api-watch.c, api-write.c and api-refusals.c (a node without an API server), api-upgrade.c
 * (sessions). */

#include "agent/model/api-user.h"
#include "agent/model/review-cache.h"
#include "agent/node-api/access/review-turns.h"
#include "agent/node-api/kubernetes/object-list.h"
#include "agent/node-api/kubernetes/object-versions.h"
#include "agent/node-api/kubernetes/resource-path.h"
#include "agent/node-api/process/agent-request.h"
#include "agent/node-api/process/api-settings.h"
#include "agent/node-api/process/node-api.h"
#include "agent/node-api/session/watch-socket.h"
#include "agent/node-api/tls/signer-client.h"
#include "agent/node-api/tls/tls-stream.h"
#include "common/mhd-loop.h"

#include <netinet/in.h>

enum {
        API_CONNECTIONS_MAX = 256,
        API_CONNECTIONS_OF_ADDRESS_MAX = 192,  /* an API server uses one per session */
        API_LIST_BYTES_MAX = 64 * 1024 * 1024, /* for the agent's objects of one kind */
};

typedef struct ApiConnection ApiConnection;
typedef struct ApiRequest ApiRequest;
typedef struct ApiRun ApiRun;
typedef struct ApiUpgrade ApiUpgrade;

struct NodeApi {
        sd_event *event;
        char *agent_socket;

        ApiSettings settings;
        SignerClient signer;
        sd_event_source *signer_source; /* fires when the signer is gone */
        TlsCredentials *credentials;    /* NULL: there are no settings yet */
        char *material;                 /* the material from which the credentials were created */
        AgentRequest *settings_request, *signer_request;
        uint64_t settings_at; /* when they were last requested */
        sd_event_source *settings_retry_timer;

        int listen_fd; /* -EBADF: no more clients are accepted */
        bool is_by_systemd;
        sd_event_source *listen_source; /* a client connects; disabled while there are too many */
        sd_event_source *accept_retry_timer;
        uint64_t idle_usec;
        sd_event_source *idle_timer;
        ApiConnection *connections;
        unsigned n_connections;
        unsigned n_forwarded; /* connections to ports of pods, for all clients */

        MhdLoop http;

        ReviewCache *granted; /* ApiUser: requests that the agent has granted, which need no further
                               * review before an action that the agent authorizes again */
        ReviewCache *known_tokens; /* "": tokens of known users, who have separate turns */
        ReviewTurns reviews;       /* of ApiRequests */

        ObjectVersions *versions[SERVED_RESOURCES_MAX]; /* by resource; NULL: not requested yet */
};

/* ---- node-api.c ---- */

/* A connection has ended. */
void node_api_connection_ended(NodeApi *server);

/* ---- api-http.c ---- */

int api_http_start(NodeApi *server);
void api_http_stop(NodeApi *server);

/* Schedules a run of libmicrohttpd in the next turn of the loop. */
void api_http_schedule_run(NodeApi *server);

/* ---- api-connection.c: TLS and, after its handshake, HTTP ---- */

struct ApiConnection {
        NodeApi *server;
        ApiConnection *previous, *next;
        struct in6_addr address;          /* address of the client; for IPv6, its network */
        TlsStream *tls;                   /* NULL: it has ended */
        int http_fd;                      /* number of libmicrohttpd's descriptor; -EBADF: none */
        sd_event_source *deadline;        /* limits the time for sending a request */
        ApiUpgrade *upgrade;              /* NULL: it speaks HTTP */
        struct MHD_Connection *suspended; /* NULL: it is not */
        bool is_gone;                     /* the client disconnected while the connection was
                                           * suspended */
        sd_event_source *hangup;          /* while it is suspended, libmicrohttpd does not watch its
                                           * socket */
};

void api_connection_new(NodeApi *server, int fd_consume, const struct in6_addr *address);
void api_connection_free(ApiConnection *connection);

/* Called when libmicrohttpd has opened or closed its descriptor. */
ApiConnection *api_connection_find(const NodeApi *server, int http_fd);
void api_connection_http_ended(ApiConnection *connection);
void api_connection_set_deadline(ApiConnection *connection, uint64_t usec);

/* Suspends the connection until it is resumed, or the client is gone. */
void api_connection_suspend(ApiConnection *connection, struct MHD_Connection *http);
void api_connection_resume(ApiConnection *connection);

/* For the reader of a streamed body at its end: the result for libmicrohttpd. The chunk that
 * terminates the body gets a separate TLS record, because the API server's WebSockets drop bytes
 * that they receive together with the end (Go's io.Reader returns both at once). */
ssize_t api_connection_end_body(ApiConnection *connection);

void api_connection_clear_deadline(ApiConnection *connection);
ApiConnection *api_connection_of(struct MHD_Connection *http);

/* ---- api-request.c ---- */

typedef enum ApiStepResult {
        API_STEP_NEXT,  /* done, but without a reply so far */
        API_STEP_WAIT,  /* waits for the agent; the step runs again */
        API_STEP_REPLY, /* a reply was queued */
        API_STEP_ABORT, /* not even a reply is possible */
} ApiStepResult;

struct ApiRequest {
        NodeApi *server;
        ApiConnection *connection;
        struct MHD_Connection *http;
        char *method, *path; /* decoded */
        bool is_upgrade;
        bool is_http_1_0;
        unsigned step;
        char *body;    /* for the Kubernetes API; NULL: none, or ignored */
        size_t n_body; /* size of the body */
        bool is_body_too_large;
        bool is_kubernetes; /* for the Kubernetes API: errors are v1.Status */
        char *container;    /* of a session or log, once the API has chosen it; NULL: not yet */

        bool has_looked;      /* the object of the request has been looked up */
        json_t *object;       /* that object; NULL: not yet, or there is none */
        json_t *manifest_pod; /* if there is none: the pod whose manifest has the name; or NULL */
        json_t *labels;       /* of metrics objects, by namespace and name; NULL: not yet */
        bool is_acting;       /* a request that changes something has been sent to the agent */
        bool is_written;      /* the agent has changed it */

        char *credential; /* the client's credential, as headers for the agent */
        char *token;      /* token in it; NULL: none */
        ApiUser user;
        enum {
                API_REVIEW_NONE,
                API_REVIEW_WAITING, /* waits for its turn */
                API_REVIEW_TURN,    /* the client may send requests, or has sent one */
        } review;
        ReviewKind review_kind;

        /* The request to the agent, and its result. */
        AgentRequest *agent_request;
        bool has_reply;
        int reply_error;
        unsigned reply_status;
        char *reply_type, *reply_body; /* the body is NUL-terminated, and may contain NULs
                                        */
        size_t reply_length;
        int reply_fd;
        ApiRun *run; /* for /run/; NULL: none */
};

enum MHD_Result api_request_handle(void *userdata, struct MHD_Connection *http, const char *url,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **context);
void api_request_free(ApiRequest *request);

/* Sends a request to the agent; the step returns API_STEP_WAIT, and finds the reply when it runs
 * again. */
ApiStepResult api_request_ask_agent(ApiRequest *request, const AgentRequestSpec *spec);

/* Discards the reply, so that a step can send another request. */
void api_request_clear_reply(ApiRequest *request);

/* Queue a reply: a text with a status; or the agent's own reply, with its status. */
ApiStepResult api_reply_text(ApiRequest *request, unsigned status, const char *text);
ApiStepResult api_replyf(ApiRequest *request, unsigned status, const char *format, ...)
        printf_like(3, 4);
ApiStepResult api_reply_agent_error(ApiRequest *request);
ApiStepResult api_reply_typed(ApiRequest *request, unsigned status, const char *type,
                              const char *text);
ApiStepResult api_queue_reply(ApiRequest *request, unsigned status,
                              struct MHD_Response *response_consume);

/* All values of a header, separated by commas; NULL: none, or out of memory. */
char *api_header_list(struct MHD_Connection *http, const char *name);
const char *api_header(struct MHD_Connection *http, const char *name);

/* A parameter of the query; NULL: none. */
const char *api_parameter(struct MHD_Connection *http, const char *name);

/* Also true for a parameter without a value. */
bool api_has_parameter(struct MHD_Connection *http, const char *name);

/* ---- the steps of a request ---- */

ApiStepResult api_authorize(ApiRequest *request);

/* ---- api-reviews.c ---- */

/* Requests a decision from the agent at 'path', or waits until fewer requests are in progress: then
 * the step runs again without a reply. Replies 429 if too many are waiting. */
ApiStepResult api_request_review(ApiRequest *request, ReviewKind kind, const char *path);

/* The request no longer needs a review, so the next request gets its turn. */
void api_review_end(ApiRequest *request);

/* ---- api-routes.c ---- */

ApiStepResult api_route(ApiRequest *request);

/* ---- kubernetes-api.c ---- */

bool api_is_kubernetes_path(const char *path);

/* The kubelet's path behind /api/v1/nodes/<node>/proxy, which the caller frees. NULL: not such a
 * path, or out of memory. */
char *api_node_proxy_path(const char *path, const char *node);
ApiStepResult api_route_kubernetes(ApiRequest *request);

/* "true" and "1" are true. */
bool api_is_flag_true(const ApiRequest *request, const char *name);

/* Reads the selectors from the query. 0; -EINVAL with a message, -ENOMEM. */
int api_read_selectors(const ApiRequest *request, const ServedResource *resource, ListQuery *query,
                       Error *reterr);

/* The object that the path names, owned by the request. NULL, with the result of the step, until
 * the agent has replied, or if there is no such object: then API_STEP_NEXT or, for the second
 * function, a reply with 404. */
json_t *api_find_object(ApiRequest *request, const ServedResource *resource,
                        const ResourcePath *path, ApiStepResult *ret);
json_t *api_require_object(ApiRequest *request, const ServedResource *resource,
                           const ResourcePath *path, ApiStepResult *ret);
ApiStepResult api_reply_no_object(ApiRequest *request, const ServedResource *resource,
                                  const char *name);
ApiStepResult api_handle_get(ApiRequest *request, const ServedResource *resource,
                             const ResourcePath *path);

/* ---- api-write.c ---- */

ApiStepResult api_handle_write(ApiRequest *request, const ServedResource *resource,
                               const ResourcePath *path);
ApiStepResult api_handle_pod_write(ApiRequest *request, const ServedResource *pods,
                                   const ResourcePath *path);

/* Parses the body as an object, which is empty if there is no body. NULL: not an object in JSON or
 * protobuf, or too large. The caller frees it. */
json_t *api_parse_body(const ApiRequest *request);

/* API_STEP_NEXT: the path does not belong to such a review. */
ApiStepResult api_handle_self_review(ApiRequest *request, const ResourcePath *path);

/* ---- api-refusals.c ---- */

/* Replies 405 with the file or other source of the object that api_find_object() has found, or else
 * with the place to save it. 'resource' may be NULL: unknown. */
ApiStepResult api_refuse_write(ApiRequest *request, const ServedResource *resource,
                               const ResourcePath *path);
ApiStepResult api_refuse_eviction(ApiRequest *request);

/* Finds the object of the path or of the body first. */
ApiStepResult api_refuse_any_write(ApiRequest *request, const ServedResource *resource,
                                   const ResourcePath *path);

/* ---- api-watch.c ---- */

/* NULL: out of memory. */
ObjectVersions *api_object_versions(NodeApi *server, const ServedResource *resource);
ApiStepResult api_handle_watch(ApiRequest *request, const ServedResource *resource,
                               const ResourcePath *path, const ObjectForm *form);

/* ---- api-upgrade.c ---- */

ApiStepResult api_handle_exec(ApiRequest *request, const char *rest);
ApiStepResult api_handle_attach(ApiRequest *request, const char *rest);
ApiStepResult api_handle_port_forward(ApiRequest *request, const char *rest);

/* Sends events over a WebSocket; the connection owns them from now on. */
ApiStepResult api_upgrade_watch(ApiRequest *request, const WatchEvents *events_take);
void api_upgrade_free(ApiUpgrade *upgrade);

/* ---- api-stream.c ---- */

/* Replies with status 200 and the data that the agent sends on the request's descriptor. */
ApiStepResult api_reply_agent_stream(ApiRequest *request);

/* The same with a descriptor that the agent has passed. */
ApiStepResult api_reply_descriptor(ApiRequest *request);

/* ---- api-run.c ---- */

ApiStepResult api_handle_run(ApiRequest *request, const char *rest);
void api_run_free(ApiRun *run);

/* ---- api-system-logs.c ---- */

ApiStepResult api_handle_system_logs(ApiRequest *request, const char *rest);

/* ---- api-logs.c ---- */

ApiStepResult api_handle_container_logs(ApiRequest *request, const char *rest);
