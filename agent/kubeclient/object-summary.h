/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What every object of the API says of itself, read from its JSON: enough to know it again, to see
 * that it is to go, and to say what it was last told. All else is for manifest/. */

#include "common/error.h"

#include <stdint.h>

typedef struct KubeObjectSummary {
        char *name;
        char *namespace; /* "" where it has none */
        char *uid;
        char *resource_version;
        bool is_deleting;      /* it has a deletionTimestamp */
        int64_t grace_seconds; /* of its deletion; -1: its own */
        char *mirror_hash;     /* of a mirror pod: which pod it shows; NULL for any other object */
        char *phase;           /* of its status, or NULL */
        char *status;          /* the status as JSON, or NULL */
} KubeObjectSummary;

/* 0; -EBADMSG with a sentence for what is no object; -ENOMEM. The caller ends it with
 * kube_object_summary_done(). */
int kube_object_summary_parse(const char *json, size_t length, KubeObjectSummary *ret,
                              Error *reterr);
void kube_object_summary_done(KubeObjectSummary *metadata);
