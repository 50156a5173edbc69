/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Evicts one pod at a time for node pressure: measures the usage of the candidates, ranks them
 * (pod-ranking.h), fails the first one, and waits until it has stopped. Unlike the kubelet, it also
 * evicts static pods, because a node without a cluster has only those. */

#include "agent/eviction/eviction-message.h"
#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct PodEvictor PodEvictor;

typedef struct PodEvictorCallbacks {
        /* Lists the pods that may be evicted, in an array that the evictor frees together with its
         * elements. 0 or -errno. */
        int (*list_candidates)(EvictionCandidate **ret, size_t *ret_n, void *userdata);
        /* Fails the pod with the kubelet's message and at most this grace period (seconds; < 0: the
         * pod's own), and returns the resulting grace period. False: the pod is gone, or has
         * already failed. */
        bool (*fail_pod)(const char *uid, NodeCondition condition, const char *message,
                         int64_t max_grace_seconds, uint64_t *ret_grace_usec, void *userdata);
        /* Whether anything of the failed pod is still running or mounted. */
        bool (*is_stopping)(const char *uid, void *userdata);
} PodEvictorCallbacks;

typedef struct PodEvictorConfig {
        sd_event *event;
        const char *shim_path; /* the program whose "usage" measures directories */
        const PodEvictorCallbacks *callbacks;
        void *userdata;
} PodEvictorConfig;

/* Everything that the configuration points to is borrowed. 0 or -ENOMEM. */
int pod_evictor_new(const PodEvictorConfig *config, PodEvictor **ret);
PodEvictor *pod_evictor_free(PodEvictor *evictor);
DEFINE_CLEANUP(PodEvictor *, pod_evictor_free)

/* Evicts the first candidate whose eviction helps. If the disk must be measured to find that pod,
 * the next call evicts it if the disk is still short of space. False: there is no such pod. */
bool pod_evictor_evict(PodEvictor *evictor, const ResourceShortage *shortage);

/* True until nothing of the evicted pod is running or mounted, at most half a minute longer than
 * its grace period; for a shortage of disk space, also true during the measurement. */
bool pod_evictor_is_busy(const PodEvictor *evictor, bool of_disk);

/* The number of evicted pods by signal. */
const uint64_t *pod_evictor_counts(const PodEvictor *evictor);
