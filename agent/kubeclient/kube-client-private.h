/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by kube-client.c, connections.c and request.c. A connection generation is a multi handle
 * with one identity and its connections. Changed credentials start a new generation, and so does a
 * connection that has stopped responding. Requests in flight finish in the old generation, which is
 * freed after the last one; a watch in it that receives nothing for half a minute is ended, so that
 * it continues in the current generation. */

#include "agent/kubeclient/kube-client.h"
#include "agent/kubeclient/request-back-off.h"
#include "agent/kubeclient/server-address.h"
#include "agent/kubeclient/tls-config.h"
#include "common/buffer.h"
#include "common/clock-watch.h"
#include "common/curl-loop.h"
#include "common/curl-transfer.h"
#include "common/file-stamp.h"

typedef struct KubeConnections KubeConnections;
struct KubeConnections {
        KubeConnections *next; /* next older generation */
        KubeClient *client;    /* NULL: it is being freed */
        CurlLoop *loop;
        KubeTlsConfig tls_config;
        struct curl_slist *connect_to;
        KubeRequest *requests;
        unsigned n_requests;
        bool is_multiplexed;          /* HTTP/2 was used, so requests share a connection */
        bool has_goaway;              /* the server sent GOAWAY on one of its connections */
        bool is_draining;             /* no new request starts in it */
        bool is_failing;              /* its requests are being ended */
        bool is_held;                 /* its list is being iterated: nothing may be freed */
        uint64_t received_at;         /* boot time of the last byte */
        sd_event_source *quiet_timer; /* while it is draining */
};

/* See KubeGate. */
typedef struct KubeGateState {
        KubeGate gate; /* no gate if its path is NULL */
        bool is_open;
        KubeRequest *request;      /* in flight */
        sd_event_source *decided;  /* enabled when waiting requests must be sent or must fail */
        bool has_failed;           /* waiting requests fail: */
        bool opens;                /* and later ones are sent */
        char *error;               /* for this reason, or NULL: */
        unsigned status;           /* with this status */
        uint64_t retry_after_usec; /* of that response */
} KubeGateState;

struct KubeClient {
        sd_event *event;
        KubeServerAddress address;
        char *server; /* for messages */
        char *proxy;  /* "": none */
        bool is_insecure;
        bool is_plain; /* http: */
        KubeConnections *connections;
        KubeConnections *draining; /* older generations with requests in flight */

        char *token;
        char *token_file;
        FileStamp token_stamp; /* of the token file as last read, valid or not */
        char *token_error;

        ClockWatch *clock_watch;
        bool is_reached;
        bool was_unreachable; /* since the client was created */
        bool was_down;        /* no server was listening since it was last reached */
        uint64_t since;
        char *last_error;         /* the last error; the server may be reachable again */
        KubeBackOff back_off;     /* for use while it is unreachable */
        uint64_t next_attempt_at; /* boot time of the next attempt to connect */
        uint64_t n_requests;
        void (*on_state_changed)(void *userdata);
        void *state_userdata;
        bool is_state_changed; /* to be reported at the end of the turn */
        bool is_reconnected;   /* all listeners are notified then */
        KubeReconnectListener *listeners;
        KubeReconnectListener *next_listener; /* notified next */
        KubeGateState gate;
};

struct KubeRequest {
        KubeConnections *connections;
        KubeRequest *next;
        KubeRequestSpec spec; /* its strings are no longer valid, but its callbacks are */
        CURL *easy;
        CurlTransfer transfer;
        bool is_started;
        bool is_finishing; /* kube_request_finish() frees it */
        bool is_cancelled; /* cancelled or done: no callback is called */
        bool is_complete;  /* libcurl has ended it */
        bool is_gate;      /* it is the gate's request, for which others wait */
        bool is_refused;   /* the gate refused it */
        bool is_premature; /* it would have opened a connection while the gate was closed */
        bool has_response;
        const char *abort_reason; /* why the client ended it; static */
        Buffer body;
        uint64_t started_at, received_at; /* 'received_at': of the last byte; boot time */
        sd_event_source *idle_timer;
};

int kube_connections_new(KubeClient *client, KubeTlsConfig *tls_config_take, KubeConnections **ret,
                         Error *reterr);
KubeConnections *kube_connections_free(KubeConnections *connections);
DEFINE_CLEANUP(KubeConnections *, kube_connections_free)

/* Starts and frees the requests for which this was impossible while libcurl was running. May free
 * the generation. */
void kube_connections_process_queue(KubeConnections *connections);

/* Passes the request to libcurl. 0 or -EIO. */
int kube_connections_start_request(KubeRequest *request);

/* Limits the number of idle connections. To be called when the number of requests has changed. */
void kube_connections_limit_idle(const KubeConnections *connections);

/* A response arrived. */
void kube_connections_note_response(KubeConnections *connections, CURL *easy);

/* Ends the requests in flight of a generation whose connection has stopped responding; they are
 * repeated on a new one. Only to be called while the generation is held. */
void kube_connections_fail_requests(KubeConnections *connections);

/* Whether requests must not be started or freed now. */
bool kube_connections_are_held(const KubeConnections *connections);

/* No new request starts on these connections; if the client is being freed, requests in flight also
 * end. */
void kube_connections_drain(KubeConnections *connections, bool is_client_gone);

/* Frees an old generation that has no requests. */
void kube_connections_free_if_drained(KubeConnections *connections);

/* Moves a request that has not started to the current generation. */
void kube_request_move_to(KubeRequest *request, KubeConnections *connections);

/* Reports the end of the request and frees it. 'code' is libcurl's. */
void kube_request_finish(KubeRequest *request, CURLcode code);

/* The same for a request that has not started, with this response. */
void kube_request_refuse(KubeRequest *request, const KubeResponse *response);

/* Like kube_client_start_request(), without waiting for the gate. */
int kube_request_start(KubeClient *client, const KubeRequestSpec *spec, bool is_gate,
                       KubeRequest **ret, Error *reterr);

/* Sends the gate's request if the gate is closed and no such request is in flight. 0, or -errno
 * with a message. */
int kube_gate_ask(KubeClient *client, Error *reterr);

/* Repeats the gate's request, because the one in flight went to another server. */
void kube_gate_ask_again(KubeClient *client);
bool kube_gate_holds(const KubeRequest *request);
void kube_gate_close(KubeClient *client);
void kube_gate_done(KubeGateState *state);
void kube_request_free(KubeRequest *request);

/* A description of the request, for the log and for dumps. Borrowed from libcurl, which has the
 * only copy. */
typedef struct KubeRequestName {
        const char *method;
        const char *path; /* with its query */
} KubeRequestName;

KubeRequestName kube_request_name(const KubeRequest *request);

/* The server has responded or, with 'error', which is copied, has not. */
void kube_client_mark_reachable(KubeClient *client);
void kube_client_mark_unreachable(KubeClient *client, const char *error);

/* Nothing is listening at the server's address except possibly a proxy in front of it. */
void kube_client_mark_down(KubeClient *client);
void kube_client_notify_state(KubeClient *client);

/* Makes new requests use new connections. */
void kube_client_renew_connections(KubeClient *client);

/* Reads the token file if it may have changed; always if 'must'. */
void kube_client_refresh_token(KubeClient *client, bool must);

/* An old generation has finished all its requests. */
void kube_client_remove_connections(KubeClient *client, const KubeConnections *connections);
