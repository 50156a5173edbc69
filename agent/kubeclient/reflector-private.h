/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by reflector.c, reflector-list.c and reflector-watch.c. */

#include "agent/kubeclient/json-framer.h"
#include "agent/kubeclient/json-view.h"
#include "agent/kubeclient/reflector.h"
#include "agent/kubeclient/request-back-off.h"

typedef enum ReflectorPhase {
        REFLECTOR_WAITING,
        REFLECTOR_LISTING,
        REFLECTOR_WATCHING,
} ReflectorPhase;

typedef enum WatchEnd {
        WATCH_END_NONE,
        WATCH_END_EXPIRED, /* the version has expired */
        WATCH_END_REFUSED, /* the server refused it, retry later */
        WATCH_END_BROKEN,  /* the stream is not valid JSON */
} WatchEnd;

struct KubeReflector {
        sd_event *event;
        KubeReflectorSpec spec;
        char *path, *query;
        KubeReconnectListener listener;
        ReflectorPhase phase;
        KubeRequest *request;
        JsonFramer *framer;
        sd_event_source *timer, *relist_timer;
        KubeBackOff back_off;
        uint64_t started_at; /* boot time when the watch started */
        bool waits_for_server;

        char *resource_version;  /* NULL: a list is due */
        char *continue_token;    /* of the next page; NULL: a new list */
        bool allows_cached_list; /* the first list may come from the server's cache */
        bool is_unpaged;         /* in one piece, because a continue token has expired */
        bool is_list_reported;   /* on_list_begin has been called */
        bool is_synced;
        bool has_progressed; /* this watch has reported a version */
        bool is_open;        /* the server has started this watch */
        WatchEnd watch_end;  /* how this watch ended, according to its events */
        unsigned n_broken;
        char *last_error; /* as last reported */
        unsigned last_error_status;

        unsigned held; /* number of users: it is freed when there are none */
        bool is_doomed;
};

/* For use around callbacks: a reflector is not freed while it is held. */
void reflector_hold(KubeReflector *r);
void reflector_release(KubeReflector *r);

/* Both start a request. 0, or -errno with a message. */
int reflector_start_list(KubeReflector *r, Error *reterr);
int reflector_start_watch(KubeReflector *r, Error *reterr);

/* Starts a list or a watch, whichever is due. */
void reflector_start_request(KubeReflector *r);

/* The next request starts after this time. */
void reflector_schedule(KubeReflector *r, uint64_t usec);

/* The next request starts after the back-off for this response. */
void reflector_schedule_retry(KubeReflector *r, const KubeResponse *response);

/* The request has failed: reports it and retries later. */
void reflector_fail(KubeReflector *r, const KubeResponse *response);
void reflector_fail_with(KubeReflector *r, const char *why);

void reflector_cancel_request(KubeReflector *r);

/* The next request is a list. */
void reflector_require_relist(KubeReflector *r);

/* Reports an error (NULL: none), and the end of a list that was started. */
void reflector_report_error(KubeReflector *r, const char *error, unsigned status);
void reflector_report_list_end(KubeReflector *r, bool is_complete);
