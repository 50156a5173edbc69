/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the reflector share. */

#include "agent/kube/backoff.h"
#include "agent/kube/reflector.h"
#include "agent/kube/scan.h"
#include "agent/kube/splitter.h"

typedef enum Phase {
        PHASE_WAITING,
        PHASE_LISTING,
        PHASE_WATCHING,
} Phase;

typedef enum Ending {
        ENDING_NONE,
        ENDING_EXPIRED, /* the version is no good any more */
        ENDING_REFUSED, /* for now */
        ENDING_BROKEN,  /* what came is no JSON */
} Ending;

struct KubeReflector {
        sd_event *event;
        KubeReflectorSpec spec;
        char *path, *query;
        KubeListener listener;
        Phase phase;
        KubeRequest *request;
        Splitter *splitter;
        sd_event_source *timer, *relist_timer;
        Backoff backoff;
        uint64_t begun_at; /* of the watch */
        bool waits_for_server;

        char *version;     /* NULL: a list is due */
        char *next;        /* the list goes on with it; NULL: it begins */
        bool is_any_good;  /* the first list may be one that is not quite new */
        bool is_unchunked; /* as the pieces of the last were too old before it was whole */
        bool is_told;      /* on_list_begin was */
        bool is_synced;
        bool has_progress; /* of this watch: a version came */
        bool is_open;      /* it was begun by the server */
        Ending ending;     /* of this watch, as its events have it */
        unsigned n_broken;
        char *trouble; /* as it was told last */
        unsigned trouble_status;

        unsigned held; /* somebody works with it: it is freed later */
        bool is_doomed;
};

/* While it is held it is not freed: around whatever tells somebody something. */
void reflector_hold(KubeReflector *r);
void reflector_release(KubeReflector *r);

/* Each begins a request. 0 or -errno with a sentence. */
int reflector_list(KubeReflector *r, Error *reterr);
int reflector_watch(KubeReflector *r, Error *reterr);

/* Whichever is due, now. */
void reflector_begin(KubeReflector *r);

/* The next request begins after so long. */
void reflector_wait(KubeReflector *r, uint64_t usec);

/* It goes on after the back-off that its failure asks for. */
void reflector_wait_after(KubeReflector *r, const KubeAnswer *answer);

/* The request has failed: told, and tried again later. */
void reflector_fail(KubeReflector *r, const KubeAnswer *answer);
void reflector_fail_with(KubeReflector *r, const char *why);

void reflector_end_request(KubeReflector *r);

/* A list is due. */
void reflector_forget_version(KubeReflector *r);

/* Tells the trouble, NULL: that there is none; and the end of a list that was begun. */
void reflector_tell_trouble(KubeReflector *r, const char *error, unsigned status);
void reflector_tell_list_end(KubeReflector *r, bool is_complete);
