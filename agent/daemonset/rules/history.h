/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The revisions of a DaemonSet, what ControllerRevisions are in a cluster: every template that it
 * had, by number, and which of them is wanted. Plain data with a text form; who writes it to a disk
 * is the caller's business. */

#include "agent/daemonset/rules/rules.h"
#include "common/error.h"

typedef struct ControllerRevision {
        int64_t number; /* the highest is the one that was wanted last */
        char hash[REVISION_HASH_SIZE];
        uint64_t created; /* realtime, microseconds */
        char *template;   /* JSON */
        char *cause;      /* the annotation kubernetes.io/change-cause of its set; or NULL */
} ControllerRevision;

typedef struct DaemonSetHistory {
        char *namespace;
        char *name;
        char *origin; /* where the set was wished for last, and as what: JSON; or NULL */
        char *set;
        bool is_orphaning; /* it is on its way out, and its pods are to stay */
        char *selector; /* JSON: by which its pods are told; it cannot change while they are there
                         */
        LIST_OF(ControllerRevision) revisions;  /* by number */
        char template_hash[REVISION_HASH_SIZE]; /* of the template that the file has */
        char pinned[REVISION_HASH_SIZE]; /* wanted in its place until the file changes; or "" */
        char last_available[REVISION_HASH_SIZE]; /* the last that was available; or "" */
        char *pin_reason;                        /* a sentence, of one line */
        uint64_t created;                        /* realtime: when the set was seen first */
        uint64_t rollout_since; /* realtime: when the wanted one became so; 0: it is available */
} DaemonSetHistory;

void daemonset_history_done(DaemonSetHistory *history);

/* The revision of a hash or number, or NULL. Valid until the next note. */
const ControllerRevision *daemonset_history_find(const DaemonSetHistory *history, const char *hash);
const ControllerRevision *daemonset_history_find_number(const DaemonSetHistory *history,
                                                        int64_t number);

/* The hash of the revision that is wanted: pinned, or the file's. */
const char *daemonset_history_desired(const DaemonSetHistory *history);

/* The template of the file is such. Another than before makes the file's the wanted one again,
 * whatever was pinned. 1 where anything changed, 0, -ENOMEM. */
int daemonset_history_set_template(DaemonSetHistory *history, const char *hash,
                                   const char *template, const char *cause, uint64_t now_realtime);

/* Makes another revision the wanted one, until the file changes. It gets the next number, as
 * Kubernetes gives it one. 'template' is NULL for a hash that is known. 0, -ENOENT, -ENOMEM. */
int daemonset_history_pin(DaemonSetHistory *history, const char *hash, const char *template,
                          const char *reason, uint64_t now_realtime);

/* The wanted revision is available. True where that is news. */
bool daemonset_history_mark_available(DaemonSetHistory *history);

/* Forgets the oldest that are neither wanted nor good beyond a number of them. True where any. */
bool daemonset_history_truncate(DaemonSetHistory *history, int64_t limit);

/* The text form; the caller frees it, NULL where memory ends. Reading it gives 0, -EBADMSG or
 * -ENOMEM. */
char *daemonset_history_format(const DaemonSetHistory *history);
int daemonset_history_parse(char *text, DaemonSetHistory *ret);
