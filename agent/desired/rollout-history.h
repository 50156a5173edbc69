/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rollout of a pod of a manifest with mainstay.dev/progress-deadline-seconds: the manifest's
 * revision, the last good one, and the one that was rolled back. Plain data with a text form. Pure:
 * 'now' is an argument. The decisions are in model/rollout-deadline.h. */

#include "agent/model/pod.h"

enum {
        ROLLOUT_HASH_SIZE = 33 /* hash of a revision: the value of the pod's annotation
                                * kubernetes.io/config.hash */
};

typedef struct RolloutHistory {
        char *namespace;
        char *name;                     /* name of the pod, with the node's name appended */
        ObjectSource source;            /* NONE: written by a version without this member */
        int64_t number;                 /* number of the manifest's revision; the first is 1 */
        char tried[ROLLOUT_HASH_SIZE];  /* the manifest's revision; "": none yet */
        uint64_t since;                 /* time at which that revision appeared: realtime,
                                         * microseconds */
        char good[ROLLOUT_HASH_SIZE];   /* the last good revision; or "" */
        char *good_pod;                 /* the pod of that revision: JSON in one line; or NULL */
        char failed[ROLLOUT_HASH_SIZE]; /* the revision that was rolled back; or "" */
        char *reason;                   /* why it was rolled back: a message of one line; or NULL */
        char *good_images; /* the images of good_pod in the order of its containers and volumes:
                              digests, or "-", separated by blanks; or NULL */
} RolloutHistory;

void rollout_history_done(RolloutHistory *history);

/* The hash of a pod's revision; "": the pod has none. */
const char *rollout_hash_of(const Pod *pod);

/* Sets the manifest's revision. A revision that differs from the previous one is tried, even if it
 * was rolled back earlier. True: the history has changed. */
bool rollout_history_set_tried(RolloutHistory *history, const char *hash, uint64_t now);

/* Marks a revision as good, with its pod in JSON and its images, which are copied. 0 or -ENOMEM. */
int rollout_history_set_good(RolloutHistory *history, const char *hash, const char *pod,
                             const char *images);

/* Marks the manifest's revision as rolled back. 0 or -ENOMEM. */
int rollout_history_set_failed(RolloutHistory *history, const char *reason);

/* Whether the manifest's revision was rolled back or is good; in both cases no decision is pending.
 */
bool rollout_history_is_failed(const RolloutHistory *history);
bool rollout_history_is_settled(const RolloutHistory *history);

/* The text form, which the caller frees; NULL: out of memory. The parser returns 0, -EBADMSG or
 * -ENOMEM. */
char *rollout_history_format(const RolloutHistory *history);
int rollout_history_parse(const char *text, RolloutHistory *ret);
