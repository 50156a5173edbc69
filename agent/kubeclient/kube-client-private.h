/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by kube-client.c, connections.c and request.c. A connection generation is one multi handle
 * with one identity and its connections. Changed credentials start a new generation, and so does a
 * connection that has stopped responding. Requests in flight finish in the old generation, which is
 * freed after the last one; a watch in it that receives nothing for half a minute is ended, so that
 * it continues in the current one. */

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
        KubeConnections *next; /* an older generation */
        KubeClient *client;    /* NULL: it is being freed */
        CurlLoop *loop;
        KubeTlsConfig tls_config;
        struct curl_slist *connect_to;
        KubeRequest *requests;
        unsigned n_requests;
        bool is_multiplexed;          /* HTTP/2 was seen, so requests share a connection */
        bool has_goaway;              /* the server sent GOAWAY on one of its connections */
        bool is_draining;             /* no new request starts here */
        bool is_failing;              /* its requests are being ended */
        bool is_held;                 /* its list is being walked: nothing may be freed */
        uint64_t received_at;         /* of the last byte, boot time */
        sd_event_source *quiet_timer; /* while it is draining */
};

/* See KubeGate. */
typedef struct KubeGateState {
        KubeGate gate; /* no path: there is none */
        bool is_open;
        KubeRequest *request;      /* in flight */
        sd_event_source *decided;  /* enabled when waiting requests must be sent, or fail */
        bool has_failed;           /* then they fail: */
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
        FileStamp token_stamp; /* of the file that was read last, valid or not */
        char *token_error;

        ClockWatch *clock_watch;
        bool is_reached;
        bool was_unreachable; /* since the client was created */
        bool was_down;        /* since it was reached last, no server listened */
        uint64_t since;
        char *last_error;         /* the last one; the server may be reachable again */
        KubeBackOff back_off;     /* while it is unreachable */
        uint64_t next_attempt_at; /* of the next attempt to connect, boot time */
        uint64_t n_requests;
        void (*on_state_changed)(void *userdata);
        void *state_userdata;
        bool is_state_changed; /* reported at the end of the turn */
        bool is_reconnected;   /* then all listeners are notified */
        KubeReconnectListener *listeners;
        KubeReconnectListener *next_listener; /* notified next */
        KubeGateState gate;
};

struct KubeRequest {
        KubeConnections *connections;
        KubeRequest *next;
        KubeRequestSpec spec; /* its strings are invalid by now, its callbacks are not */
        CURL *easy;
        CurlTransfer transfer;
        bool is_started;
        bool is_finishing; /* kube_request_finish() frees it */
        bool is_cancelled; /* or done: no callback is called */
        bool is_complete;  /* libcurl has ended it */
        bool is_gate;      /* others wait for it */
        bool is_refused;   /* by the gate */
        bool is_premature; /* it would have opened a connection while the gate was closed */
        bool has_response;
        const char *abort_reason; /* why we ended it; static */
        Buffer body;
        uint64_t started_at, received_at; /* of the last byte; boot time */
        sd_event_source *idle_timer;
};

int kube_connections_new(KubeClient *client, KubeTlsConfig *tls_config_take, KubeConnections **ret,
                         Error *reterr);
KubeConnections *kube_connections_free(KubeConnections *connections);
DEFINE_CLEANUP(KubeConnections *, kube_connections_free)

/* Starts and frees the requests that could not be while libcurl was running. The generation may be
 * freed by it. */
void kube_connections_process_queue(KubeConnections *connections);

/* Gives the request to libcurl. 0 or -EIO. */
int kube_connections_start_request(KubeRequest *request);

/* Only a few connections that no request uses are left open. To be called when the number of
 * requests has changed. */
void kube_connections_limit_idle(const KubeConnections *connections);

/* A response arrived. */
void kube_connections_note_response(KubeConnections *connections, CURL *easy);

/* Ends its requests that were sent, because their connection has stopped responding: they are
 * repeated on a new one. Only while it is held. */
void kube_connections_fail_requests(KubeConnections *connections);

/* Whether starting and freeing have to wait. */
bool kube_connections_are_held(const KubeConnections *connections);

/* No new request starts in it; without a client, requests in flight end too. */
void kube_connections_drain(KubeConnections *connections, bool is_client_gone);

/* Frees an old generation without requests. */
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

/* Sends the question of the gate if it is closed and none is in flight. 0, or -errno with a
 * message. */
int kube_gate_ask(KubeClient *client, Error *reterr);

/* Asks again, because the question in flight went to another server. */
void kube_gate_ask_again(KubeClient *client);
bool kube_gate_holds(const KubeRequest *request);
void kube_gate_close(KubeClient *client);
void kube_gate_done(KubeGateState *state);
void kube_request_free(KubeRequest *request);

/* A description of the request, for the log and for dumps. Borrowed from libcurl: there is one copy
 * only. */
typedef struct KubeRequestName {
        const char *method;
        const char *path; /* with its query */
} KubeRequestName;

KubeRequestName kube_request_name(const KubeRequest *request);

/* The server has answered, or it has not: 'error' is copied. */
void kube_client_mark_reachable(KubeClient *client);
void kube_client_mark_unreachable(KubeClient *client, const char *error);

/* No server listens at its address, or only a proxy in front of it. */
void kube_client_mark_down(KubeClient *client);
void kube_client_notify_state(KubeClient *client);

/* New requests use new connections. */
void kube_client_renew_connections(KubeClient *client);

/* Reads the token file if it may have changed, or always with 'must'. */
void kube_client_refresh_token(KubeClient *client, bool must);

/* An old generation has finished all its requests. */
void kube_client_remove_connections(KubeClient *client, const KubeConnections *connections);
