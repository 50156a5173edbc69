/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One DaemonSet as the controller sees it: its spec, its revision history, the decision whether it
 * runs on this node, and the state of its rollout. Opaque except to daemonset-state.c (data,
 * status, requests) and daemonset-sync.c (reconciliation). */

#include "agent/daemonset/sync-pass.h"

#include <stdio.h>

typedef struct DaemonSetState DaemonSetState;
typedef struct DaemonSetHistory DaemonSetHistory;

int daemonset_state_new(const char *uid, DaemonSetState **ret);
DaemonSetState *daemonset_state_free(DaemonSetState *state);
DEFINE_CLEANUP(DaemonSetState *, daemonset_state_free)

/* Takes the content of a checkpoint; 'set' may be NULL. */
void daemonset_state_restore_take(DaemonSetState *state, DaemonSetHistory *history, DaemonSet *set,
                                  uint64_t now);

const char *daemonset_state_uid(const DaemonSetState *state);
const DaemonSet *daemonset_state_set(const DaemonSetState *state); /* NULL: only its pods remain */
const PodSource *daemonset_state_source(const DaemonSetState *state);
const DaemonSetHistory *daemonset_state_history(const DaemonSetState *state);

/* ---- desired or not ---- */

/* The set is desired in the current pass. Its spec and source are copied. 0 or -ENOMEM. */
int daemonset_state_set_desired(DaemonSetState *state, const PodSource *source,
                                const DaemonSet *set, unsigned generation);

/* Whether it was desired in the pass of this generation; otherwise only its pods remain. */
bool daemonset_state_is_desired(const DaemonSetState *state, unsigned generation);

/* The set was removed from its source, but owns pods that are still terminating. If it appears
 * again, it is a new set. */
void daemonset_state_drop_set(DaemonSetState *state);

/* ---- a pass: daemonset-sync.c ---- */

/* Decides whether the set runs on this node, and reconciles its pods by one step. 0; or -errno,
 * after which daemonset_state_keep_pods() keeps the existing pods. */
int daemonset_state_sync(DaemonSetSyncPass *pass, DaemonSetState *state);
int daemonset_state_keep_pods(DaemonSetSyncPass *pass, const DaemonSetState *state);

/* Counts the pods for the status. 0 or -ENOMEM. */
int daemonset_state_update_counts(DaemonSetSyncPass *pass, DaemonSetState *state);

/* A pod of the set has changed. True if a pass is needed because of it. */
bool daemonset_state_on_pod(DaemonSetSyncPass *pass, DaemonSetState *state, const Pod *pod,
                            bool is_new, bool is_gone);

/* Why a pod of the set is stopped, after a pass that did not add it. The caller frees it; NULL:
 * unknown. */
char *daemonset_state_explain_stop(const DaemonSetSyncPass *pass, const DaemonSetState *state,
                                   const Pod *pod);

/* To be called when an image has become available. True if a preflight is waiting for an image. */
bool daemonset_state_retry_preflight(DaemonSetState *state);

/* ---- orphaning ---- */

bool daemonset_state_is_orphaning(const DaemonSetState *state);

/* Stores the flag. 0; or -errno with a message, in which case it has not changed. */
int daemonset_state_store_orphaning(DaemonSetState *state, const char *state_dir, Error *reterr);
void daemonset_state_clear_orphaning(DaemonSetState *state, const char *state_dir);

/* ---- status and rollouts ---- */

/* Whether the pod of the revision in the manifest is available, or the set should not run here. */
bool daemonset_state_is_rolled_out(const DaemonSetState *state);

/* The v1.DaemonSet with its status; the caller frees it, NULL: out of memory. */
char *daemonset_state_to_json(const DaemonSetState *state);

/* Prints decision, revision and plan for `mainstay debug dump`. 'now' is from the steady clock. */
void daemonset_state_dump(const DaemonSetState *state, uint64_t now, FILE *out);

/* Calls 'each' for the ControllerRevisions, with "<namespace>/<name>". 0, a negative value that
 * 'each' returned, or -ENOMEM. */
int daemonset_state_each_revision(const DaemonSetState *state,
                                  int (*each)(const char *key, const char *json, void *context),
                                  void *context);

/* Like 'kubectl rollout undo' and 'restart', but only in memory; the caller stores the history. See
 * controller.h. */
int daemonset_state_undo_rollout(DaemonSetState *state, int64_t revision, uint64_t now,
                                 Error *reterr);
int daemonset_state_restart_rollout(DaemonSetState *state, uint64_t now);
