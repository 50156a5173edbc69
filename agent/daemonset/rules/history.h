/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The revision history of a DaemonSet: its ControllerRevisions (all of its templates, by number),
 * and which of them is desired, for rollout history, undo and restart. Plain data with a text form,
 * which checkpoint.c writes to disk. */

#include "agent/daemonset/rules/rules.h"
#include "common/error.h"

typedef struct ControllerRevision {
        int64_t number; /* the revision with the highest number was desired last */
        char hash[REVISION_HASH_SIZE];
        uint64_t created; /* realtime, microseconds */
        char *template;   /* JSON */
        char *cause;      /* the annotation kubernetes.io/change-cause of the set; or NULL */
} ControllerRevision;

typedef struct DaemonSetHistory {
        char *namespace;
        char *name;
        char *source;      /* the source of the set when it was last desired; or NULL */
        char *set;         /* the set at that time: JSON; or NULL */
        bool is_orphaning; /* the set is being deleted with --cascade=orphan, so its pods stay */
        char *selector;    /* JSON; immutable while there are pods */
        LIST_OF(ControllerRevision) revisions;  /* sorted by number */
        char template_hash[REVISION_HASH_SIZE]; /* hash of the manifest's template */
        char pinned[REVISION_HASH_SIZE]; /* the revision that is desired instead until the manifest
                                          * changes; or "" */
        char last_available[REVISION_HASH_SIZE]; /* the last revision that was available: the good
                                                  * one; or ""
                                                  */
        char *pin_reason;                        /* a message of one line */
        uint64_t created;                        /* realtime at which the set was first desired */
        uint64_t rollout_since; /* time at which the desired revision became the desired one; 0: it
                                 * is available */
} DaemonSetHistory;

void daemonset_history_done(DaemonSetHistory *history);

/* The revision with a hash or number, or NULL. Valid until the history changes. */
const ControllerRevision *daemonset_history_find(const DaemonSetHistory *history, const char *hash);
const ControllerRevision *daemonset_history_find_number(const DaemonSetHistory *history,
                                                        int64_t number);

/* The hash of the desired revision: the pinned one, or else the manifest's. */
const char *daemonset_history_desired(const DaemonSetHistory *history);

/* Sets the template of the manifest. If it has changed, it becomes the desired revision, and the
 * pin is removed. 1: the history has changed; 0; -ENOMEM. */
int daemonset_history_set_template(DaemonSetHistory *history, const char *hash,
                                   const char *template, const char *cause, uint64_t now_realtime);

/* Makes a revision the desired one until the manifest changes. It gets the next number, as in
 * Kubernetes. 'template' is NULL for a revision in the history. 0, -ENOENT, -ENOMEM. */
int daemonset_history_pin(DaemonSetHistory *history, const char *hash, const char *template,
                          const char *reason, uint64_t now_realtime);

/* The desired revision is available. True if the history has changed. */
bool daemonset_history_mark_available(DaemonSetHistory *history);

/* Whether the rollout of the desired revision is in progress, and there is a good revision to roll
 * back to. */
bool daemonset_history_can_go_back(const DaemonSetHistory *history);

/* Removes the oldest revisions beyond the limit (revisionHistoryLimit), but neither the desired nor
 * the good one. True if any was removed. */
bool daemonset_history_truncate(DaemonSetHistory *history, int64_t limit);

/* The text form, which the caller frees; NULL: out of memory. The parser returns 0, -EBADMSG or
 * -ENOMEM. */
char *daemonset_history_format(const DaemonSetHistory *history);
int daemonset_history_parse(char *text, DaemonSetHistory *ret);
