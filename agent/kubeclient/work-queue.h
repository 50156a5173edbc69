/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes behind. What is to be written is a key, marked dirty; the request is made when its turn
 * comes, so that what happened in between is in it, and a hundred changes of one object are one
 * request. A few keys are under way at a time, one request a key. What fails is tried again after a
 * back-off of its own with jitter, or when the server says so; never more than once a second for
 * all keys together in a steady state. */

#include "agent/kubeclient/client.h"

typedef struct KubeWorkQueue KubeWorkQueue;

typedef enum KubeWorkResult {
        KUBE_WORK_DONE,        /* the key is clean, unless it was marked meanwhile */
        KUBE_WORK_RETRY_NOW,   /* make and send it once more, at once (a conflict was looked at) */
        KUBE_WORK_RETRY_LATER, /* likewise, after the back-off */
} KubeWorkResult;

typedef struct KubeWorkQueueSpec {
        KubeClient *client;
        unsigned max_parallel; /* requests at a time */

        /* The request that is due for the key: 1 with it, whose callbacks are ignored and whose
         * strings are freed by 'unmake'; 0: nothing is to be written; -errno: later. */
        int (*build_request)(const char *key, KubeRequestSpec *ret, void *userdata);
        void (*free_request)(KubeRequestSpec *call, void *userdata);
        /* What came of it; an answer without 'error' and with a status of 5xx, 429 or 401 is
         * retried without asking. */
        KubeWorkResult (*on_response)(const char *key, const KubeResponse *response,
                                      void *userdata);
        void *userdata;
} KubeWorkQueueSpec;

int kube_work_queue_new(sd_event *event, const KubeWorkQueueSpec *spec, KubeWorkQueue **ret);
KubeWorkQueue *kube_work_queue_free(KubeWorkQueue *queue);
DEFINE_CLEANUP(KubeWorkQueue *, kube_work_queue_free)

/* 0 or -ENOMEM. */
int kube_work_queue_add(KubeWorkQueue *queue, const char *key);

/* The key is of no interest any more: a request that is under way is cancelled. */
void kube_work_queue_forget(KubeWorkQueue *queue, const char *key);

/* Keys that are dirty or under way. */
size_t kube_work_queue_length(const KubeWorkQueue *queue);

/* Prints its items and when they are due for `mainstay debug dump`, under a name. */
void kube_work_queue_dump(const KubeWorkQueue *queue, const char *name, FILE *out);
