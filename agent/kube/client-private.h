/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What client.c, lane.c and request.c share. A lane is one multi handle with one identity and the
 * connections that were made with it. Another identity is another lane, and so is what follows a
 * connection that nobody answers on: who is under way goes on in the old one, which ends with the
 * last of them. */

#include "agent/kube/address.h"
#include "agent/kube/backoff.h"
#include "agent/kube/client.h"
#include "agent/kube/identity.h"
#include "common/curl-loop.h"

typedef struct KubeLane KubeLane;
struct KubeLane {
        KubeLane *next;     /* that was left before */
        KubeClient *client; /* NULL: it is no more */
        CurlLoop *loop;
        KubeIdentity identity;
        struct curl_slist *connect_to;
        KubeRequest *requests;
        unsigned n_requests;
        bool is_multiplexed; /* many requests share a connection, as far as we have heard */
        bool is_ending;      /* a server has said goodbye on one of its connections */
        bool is_left;        /* nothing new begins here */
        bool is_held;        /* somebody walks through it: nothing may be freed */
        uint64_t heard_at;   /* when anything came last, boot time */
};

struct KubeClient {
        sd_event *event;
        KubeAddress address;
        char *server; /* for sentences */
        char *proxy;  /* "": none */
        bool is_insecure;
        bool is_plain; /* http: */
        KubeLane *lane;
        KubeLane *left; /* that still end what was begun */

        char *token;
        char *token_file;
        struct timespec token_time; /* of the file that was read last, good or not */
        uint64_t token_inode;
        char *token_trouble;

        bool is_reached;
        bool was_unheard; /* ever */
        uint64_t since;
        char *trouble;    /* the last one; it may be over */
        Backoff backoff;  /* while it is not reached */
        uint64_t turn_at; /* when the next one may try it, boot time */
        uint64_t n_requests;
        void (*on_state)(void *userdata);
        void *state_userdata;
        bool is_state_news;   /* told at the end of the turn */
        bool is_reached_news; /* told to all listeners then */
        KubeListener *listeners;
        KubeListener *next_listener; /* that is told next */
};

struct KubeRequest {
        KubeLane *lane;
        KubeRequest *next;
        KubeCall call; /* what it points to is gone, but for the callbacks */
        CURL *easy;
        struct curl_slist *headers;
        bool is_begun;
        bool is_cancelled; /* or done: it calls nobody any more */
        bool is_heard;
        int verdict;         /* of on_data */
        const char *refusal; /* why we have ended it; static */
        size_t headers_length;
        char *answer;
        size_t length, room;
        uint64_t begun_at, heard_at; /* when anything came last; boot time */
        sd_event_source *silence;
        char error[CURL_ERROR_SIZE];
};

int kube_lane_new(KubeClient *client, KubeIdentity *identity_take, KubeLane **ret, Error *reterr);
KubeLane *kube_lane_free(KubeLane *lane);
DEFINE_CLEANUP(KubeLane *, kube_lane_free)

/* Begins and frees what could not be while libcurl was at work. The lane may be gone after it. */
void kube_lane_settle(KubeLane *lane);

/* The request is libcurl's from now on. 0 or -EIO. */
int kube_lane_begin(KubeRequest *request);

/* An answer came. */
void kube_lane_heard(KubeLane *lane, CURL *easy);

/* Ends the streams in it, because nobody answers there. While the lane is held. */
void kube_lane_end_streams(KubeLane *lane);

/* Neither may be done just now. */
bool kube_lane_is_held(const KubeLane *lane);

/* Nothing begins in it from now on; with the client gone, nothing goes on either. */
void kube_lane_leave(KubeLane *lane, bool is_client_gone);

/* Frees a lane that was left and has nothing to do any more. */
void kube_lane_retire(KubeLane *lane);

/* To where what begins from now on has its place; it has not begun. */
void kube_request_move(KubeRequest *request, KubeLane *lane);

/* The request's end: told, then freed. 'code' is libcurl's. */
void kube_request_finish(KubeRequest *request, CURLcode code);
void kube_request_free(KubeRequest *request);

/* The server has answered something, or has not: 'trouble' is copied. */
void kube_client_heard(KubeClient *client);
void kube_client_unheard(KubeClient *client, const char *trouble);
void kube_client_tell_state(KubeClient *client);

/* What begins from now on uses other connections. */
void kube_client_change_lane(KubeClient *client);

/* Reads the token's file when it may be another, or when it must be. */
void kube_client_refresh_token(KubeClient *client, bool must);

/* The lane that was left has ended all that it had. */
void kube_client_forget_lane(KubeClient *client, const KubeLane *lane);
