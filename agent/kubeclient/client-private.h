/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What client.c, lane.c and request.c share. A lane is one multi handle with one identity and the
 * connections that were made with it. Another identity is another lane, and so is what follows a
 * connection that nobody answers on: who is under way goes on in the old one, which ends with the
 * last of them. */

#include "agent/kubeclient/backoff.h"
#include "agent/kubeclient/client.h"
#include "agent/kubeclient/server-address.h"
#include "agent/kubeclient/tls-config.h"
#include "common/curl-loop.h"

typedef struct KubeConnections KubeConnections;
struct KubeConnections {
        KubeConnections *next; /* that was left before */
        KubeClient *client;    /* NULL: it is no more */
        CurlLoop *loop;
        KubeTlsConfig tls_config;
        struct curl_slist *connect_to;
        KubeRequest *requests;
        unsigned n_requests;
        bool is_multiplexed;  /* many requests share a connection, as far as we have heard */
        bool has_goaway;      /* a server has said goodbye on one of its connections */
        bool is_draining;     /* nothing new begins here */
        bool is_held;         /* somebody walks through it: nothing may be freed */
        uint64_t received_at; /* when anything came last, boot time */
};

struct KubeClient {
        sd_event *event;
        KubeServerAddress address;
        char *server; /* for sentences */
        char *proxy;  /* "": none */
        bool is_insecure;
        bool is_plain; /* http: */
        KubeConnections *connections;
        KubeConnections *draining; /* that still end what was begun */

        char *token;
        char *token_file;
        struct timespec token_time; /* of the file that was read last, good or not */
        uint64_t token_inode;
        char *token_error;

        bool is_reached;
        bool was_unreachable; /* ever */
        uint64_t since;
        char *last_error;         /* the last one; it may be over */
        KubeBackoff backoff;      /* while it is not reached */
        uint64_t next_attempt_at; /* when the next one may try it, boot time */
        uint64_t n_requests;
        void (*on_state_changed)(void *userdata);
        void *state_userdata;
        bool is_state_changed; /* told at the end of the turn */
        bool is_reconnected;   /* told to all listeners then */
        KubeReconnectListener *listeners;
        KubeReconnectListener *next_listener; /* that is told next */
};

struct KubeRequest {
        KubeConnections *connections;
        KubeRequest *next;
        KubeRequestSpec spec; /* what it points to is gone, but for the callbacks */
        CURL *easy;
        struct curl_slist *headers;
        bool is_started;
        bool is_cancelled; /* or done: it calls nobody any more */
        bool has_response;
        int data_result;          /* of on_data */
        const char *abort_reason; /* why we have ended it; static */
        size_t headers_length;
        char *body;
        size_t length, room;
        uint64_t started_at, received_at; /* when anything came last; boot time */
        sd_event_source *idle_timer;
        char error[CURL_ERROR_SIZE];
};

int kube_connections_new(KubeClient *client, KubeTlsConfig *tls_config_take, KubeConnections **ret,
                         Error *reterr);
KubeConnections *kube_connections_free(KubeConnections *connections);
DEFINE_CLEANUP(KubeConnections *, kube_connections_free)

/* Begins and frees what could not be while libcurl was at work. The lane may be gone after it. */
void kube_connections_process_queue(KubeConnections *connections);

/* The request is libcurl's from now on. 0 or -EIO. */
int kube_connections_start_request(KubeRequest *request);

/* An answer came. */
void kube_connections_note_response(KubeConnections *connections, CURL *easy);

/* Ends the streams in it, because nobody answers there. While the lane is held. */
void kube_connections_fail_streams(KubeConnections *connections);

/* Neither may be done just now. */
bool kube_connections_are_held(const KubeConnections *connections);

/* Nothing begins in it from now on; with the client gone, nothing goes on either. */
void kube_connections_drain(KubeConnections *connections, bool is_client_gone);

/* Frees a lane that was left and has nothing to do any more. */
void kube_connections_free_if_drained(KubeConnections *connections);

/* To where what begins from now on has its place; it has not begun. */
void kube_request_move_to(KubeRequest *request, KubeConnections *connections);

/* The request's end: told, then freed. 'code' is libcurl's. */
void kube_request_finish(KubeRequest *request, CURLcode code);
void kube_request_free(KubeRequest *request);

/* What was requested, for the log and for dumps. Borrowed from libcurl: there is one copy only. */
typedef struct KubeRequestName {
        const char *method;
        const char *path; /* with its query */
} KubeRequestName;

KubeRequestName kube_request_name(const KubeRequest *request);

/* The server has answered something, or has not: 'trouble' is copied. */
void kube_client_mark_reachable(KubeClient *client);
void kube_client_mark_unreachable(KubeClient *client, const char *trouble);
void kube_client_notify_state(KubeClient *client);

/* What begins from now on uses other connections. */
void kube_client_renew_connections(KubeClient *client);

/* Reads the token's file when it may be another, or when it must be. */
void kube_client_refresh_token(KubeClient *client, bool must);

/* The lane that was left has ended all that it had. */
void kube_client_remove_connections(KubeClient *client, const KubeConnections *connections);
