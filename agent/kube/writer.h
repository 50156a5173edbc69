/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes behind. What is to be written is a key, marked dirty; the request is made when its turn
 * comes, so that what happened in between is in it, and a hundred changes of one object are one
 * request. A few keys are under way at a time, one request a key. What fails is tried again after a
 * back-off of its own with jitter, or when the server says so; never more than once a second for
 * all keys together in a steady state. */

#include "agent/kube/client.h"

typedef struct KubeWriter KubeWriter;

typedef enum KubeVerdict {
        KUBE_WRITTEN, /* the key is clean, unless it was marked meanwhile */
        KUBE_AGAIN,   /* make and send it once more, at once (a conflict was looked at) */
        KUBE_LATER,   /* likewise, after the back-off */
} KubeVerdict;

typedef struct KubeWriterSpec {
        KubeClient *client;
        unsigned parallel; /* requests at a time */

        /* The request that is due for the key: 1 with it, whose callbacks are ignored and whose
         * strings are freed by 'unmake'; 0: nothing is to be written; -errno: later. */
        int (*make)(const char *key, KubeCall *ret, void *userdata);
        void (*unmake)(KubeCall *call, void *userdata);
        /* What came of it; an answer without 'error' and with a status of 5xx, 429 or 401 is
         * retried without asking. */
        KubeVerdict (*on_answer)(const char *key, const KubeAnswer *answer, void *userdata);
        void *userdata;
} KubeWriterSpec;

int kube_writer_new(sd_event *event, const KubeWriterSpec *spec, KubeWriter **ret);
KubeWriter *kube_writer_free(KubeWriter *writer);
DEFINE_CLEANUP(KubeWriter *, kube_writer_free)

/* 0 or -ENOMEM. */
int kube_writer_mark(KubeWriter *writer, const char *key);

/* The key is of no interest any more: a request that is under way is cancelled. */
void kube_writer_forget(KubeWriter *writer, const char *key);

/* Keys that are dirty or under way. */
size_t kube_writer_pending(const KubeWriter *writer);
