/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sends writes asynchronously (client-go: rate-limited work queue). The key identifies what has to
 * be written; the request is built when it is sent, so that a hundred changes of an object cause
 * one request. A few keys are in flight at a time, with one request per key. Failed requests are
 * retried after a back-off with jitter, or after Retry-After; at most one retry per second for all
 * keys together. */

#include "agent/kubeclient/kube-client.h"

typedef struct KubeWorkQueue KubeWorkQueue;

typedef enum KubeWorkResult {
        KUBE_WORK_DONE,        /* the key is clean, unless it was marked again in the meantime */
        KUBE_WORK_RETRY_NOW,   /* build and send it again at once */
        KUBE_WORK_RETRY_SOON,  /* retry after half a second, regardless of other keys, because the
                                * server's response will change without a request */
        KUBE_WORK_RETRY_LATER, /* build and send it again after the back-off */
} KubeWorkResult;

typedef struct KubeWorkQueueSpec {
        KubeClient *client;
        unsigned max_parallel; /* maximum number of requests in flight */

        /* Builds the request that is needed for the key: 1 with the request, whose callbacks are
         * ignored and whose strings are freed by 'free_request'; 0: none is needed; -errno: retry
         * later. */
        int (*build_request)(const char *key, KubeRequestSpec *ret, void *userdata);
        void (*free_request)(KubeRequestSpec *call, void *userdata);
        /* Handles the response. Missing responses, and statuses 5xx, 429 and 401, are retried
         * without calling it. */
        KubeWorkResult (*on_response)(const char *key, const KubeResponse *response,
                                      void *userdata);
        void *userdata;
} KubeWorkQueueSpec;

/* A 'free_request' function for an allocated path and body. */
void kube_request_spec_free(KubeRequestSpec *request, void *userdata);

int kube_work_queue_new(sd_event *event, const KubeWorkQueueSpec *spec, KubeWorkQueue **ret);
KubeWorkQueue *kube_work_queue_free(KubeWorkQueue *queue);
DEFINE_CLEANUP(KubeWorkQueue *, kube_work_queue_free)

/* 0 or -ENOMEM. */
int kube_work_queue_add(KubeWorkQueue *queue, const char *key);

/* Removes the key: a request in flight is cancelled. */
void kube_work_queue_forget(KubeWorkQueue *queue, const char *key);

/* The number of keys that are marked or in flight. */
size_t kube_work_queue_length(const KubeWorkQueue *queue);

/* Prints its items and when they are due for `mainstay debug dump`, with a name. */
void kube_work_queue_dump(const KubeWorkQueue *queue, const char *name, FILE *out);
