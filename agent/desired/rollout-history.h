/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rollout of a pod of a manifest with mainstay.dev/progress-deadline-seconds: the revision that
 * the manifest has, the last one that was good, and the one that was rolled back. Plain data with a
 * text form. Pure: 'now' is an argument. The decisions are in model/rollout-deadline.h. */

#include "agent/model/pod.h"

enum {
        ROLLOUT_HASH_SIZE = 33 /* of a revision: the pod's annotation kubernetes.io/config.hash */
};

typedef struct RolloutHistory {
        char *namespace;
        char *name;                     /* of the pod, with the node's */
        ObjectSource source;            /* NONE: of a version that did not write it */
        int64_t number;                 /* of the revision in the manifest; the first is 1 */
        char tried[ROLLOUT_HASH_SIZE];  /* that revision; "": none yet */
        uint64_t since;                 /* since when it is that: realtime, microseconds */
        char good[ROLLOUT_HASH_SIZE];   /* the last that was good; or "" */
        char *good_pod;                 /* its pod: JSON of one line; or NULL */
        char failed[ROLLOUT_HASH_SIZE]; /* the one that was rolled back; or "" */
        char *reason;                   /* why: a message of one line; or NULL */
        char *good_images; /* the images of good_pod in the order of its containers and volumes:
                              digests, or "-", with a blank between them; or NULL */
} RolloutHistory;

void rollout_history_done(RolloutHistory *history);

/* The hash of the revision that a pod is; "": it has none. */
const char *rollout_hash_of(const Pod *pod);

/* The manifest has this revision. A revision that differs from the previous one is tried, even if
 * it was rolled back earlier. True: the history has changed. */
bool rollout_history_set_tried(RolloutHistory *history, const char *hash, uint64_t now);

/* A revision is good: its pod in JSON and its images, which are copied. 0 or -ENOMEM. */
int rollout_history_set_good(RolloutHistory *history, const char *hash, const char *pod,
                             const char *images);

/* The revision in the manifest is rolled back. 0 or -ENOMEM. */
int rollout_history_set_failed(RolloutHistory *history, const char *reason);

/* The revision in the manifest was rolled back, or is good: there is no decision to make. */
bool rollout_history_is_failed(const RolloutHistory *history);
bool rollout_history_is_settled(const RolloutHistory *history);

/* The text form, which the caller frees; NULL: out of memory. Parsing it gives 0, -EBADMSG or
 * -ENOMEM. */
char *rollout_history_format(const RolloutHistory *history);
int rollout_history_parse(const char *text, RolloutHistory *ret);
