/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the reflector share. */

#include "agent/kubeclient/backoff.h"
#include "agent/kubeclient/json-framer.h"
#include "agent/kubeclient/json-view.h"
#include "agent/kubeclient/reflector.h"

typedef enum ReflectorPhase {
        REFLECTOR_WAITING,
        REFLECTOR_LISTING,
        REFLECTOR_WATCHING,
} ReflectorPhase;

typedef enum WatchEnd {
        WATCH_END_NONE,
        WATCH_END_EXPIRED, /* the version is no good any more */
        WATCH_END_REFUSED, /* for now */
        WATCH_END_BROKEN,  /* what came is no JSON */
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
        KubeBackoff backoff;
        uint64_t started_at; /* of the watch */
        bool waits_for_server;

        char *resource_version;  /* NULL: a list is due */
        char *continue_token;    /* the list goes on with it; NULL: it begins */
        bool allows_cached_list; /* the first list may be one that is not quite new */
        bool is_unpaged;         /* as the pieces of the last were too old before it was whole */
        bool is_list_reported;   /* on_list_begin was */
        bool is_synced;
        bool has_progressed; /* of this watch: a version came */
        bool is_open;        /* it was begun by the server */
        WatchEnd watch_end;  /* of this watch, as its events have it */
        unsigned n_broken;
        char *last_error; /* as it was told last */
        unsigned last_error_status;

        unsigned held; /* somebody works with it: it is freed later */
        bool is_doomed;
};

/* While it is held it is not freed: around whatever tells somebody something. */
void reflector_hold(KubeReflector *r);
void reflector_release(KubeReflector *r);

/* Each begins a request. 0 or -errno with a sentence. */
int reflector_start_list(KubeReflector *r, Error *reterr);
int reflector_start_watch(KubeReflector *r, Error *reterr);

/* Whichever is due, now. */
void reflector_start_request(KubeReflector *r);

/* The next request begins after so long. */
void reflector_schedule(KubeReflector *r, uint64_t usec);

/* It goes on after the back-off that its failure asks for. */
void reflector_schedule_retry(KubeReflector *r, const KubeResponse *response);

/* The request has failed: told, and tried again later. */
void reflector_fail(KubeReflector *r, const KubeResponse *response);
void reflector_fail_with(KubeReflector *r, const char *why);

void reflector_cancel_request(KubeReflector *r);

/* A list is due. */
void reflector_reset_version(KubeReflector *r);

/* Tells the trouble, NULL: that there is none; and the end of a list that was begun. */
void reflector_report_error(KubeReflector *r, const char *error, unsigned status);
void reflector_report_list_end(KubeReflector *r, bool is_complete);
