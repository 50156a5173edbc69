/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The metadata of an API object that a watch needs: identity, deletion, and the reported status.
 * manifest/ parses the rest. */

#include "agent/model/values.h"
#include "common/error.h"

typedef struct KubeObjectSummary {
        char *name;
        char *namespace; /* "" if it is not namespaced */
        char *uid;
        char *resource_version;
        bool is_deleting;      /* it has a deletionTimestamp */
        int64_t grace_seconds; /* for its deletion; -1: that of the pod's spec */
        char *mirror_hash;     /* in a mirror pod: hash of its static pod; NULL for other objects */
        char *config_hash;     /* likewise, hash of the manifest */
        char *phase;           /* phase in its status, or NULL */
        char *status;          /* the status as JSON, or NULL */
        int64_t generation;    /* of the spec; 0: the kind does not have one */
} KubeObjectSummary;

/* 0; -EBADMSG with a message; -ENOMEM. The caller releases it with kube_object_summary_done(). */
int kube_object_summary_parse(const char *json, size_t length, KubeObjectSummary *ret,
                              Error *reterr);

/* The conditions in the object's status: a map from the type of each condition to its status. 0 or
 * -ENOMEM; the caller frees it. */
int kube_object_summary_conditions(const KubeObjectSummary *metadata, StringMap *ret);
void kube_object_summary_done(KubeObjectSummary *metadata);
