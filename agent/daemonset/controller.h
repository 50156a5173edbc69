/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The DaemonSets of this node: what daemonset/ decides of them, done with what supervise/ has. It
 * wishes for their pods whenever the agent wishes for those of its files, and says when it wants to
 * be asked again: a pod came or went or became ready, or a time has come. */

#include "agent/daemonset/rules/rules.h"
#include "agent/pods/pod-manager.h"
#include "common/clock.h"

typedef struct DaemonSetController DaemonSetController;

/* Everything is borrowed and outlives the Daemons. */
typedef struct DaemonSetControllerConfig {
        sd_event *event;
        const char *state_dir;
        const NodeLabelsTaints *node_labels;
        PodManager *pod_manager;
        const SteadyClock *clock;

        /* A set as an earlier agent was asked for it, for whoever wished for it there ('origin') to
         * go on with while he cannot say. By daemonset_controller_load(). 0 or -ENOMEM. */
        int (*on_restored_set)(const char *origin, const DaemonSet *set, void *userdata);
        void (*on_recompute_due)(void *userdata); /* wishes are due, once a turn of the loop */
        void (*on_changed)(void *userdata); /* daemonset_controller_each() may tell other things */
        void (*on_event)(const PodEvent *event, void *userdata);
        void *userdata;
} DaemonSetControllerConfig;

int daemonset_controller_new(const DaemonSetControllerConfig *config, DaemonSetController **ret);
DaemonSetController *daemonset_controller_free(DaemonSetController *controller);
DEFINE_CLEANUP(DaemonSetController *, daemonset_controller_free)

/* Reads what an earlier agent knew of sets, and of their revisions. What is damaged is set aside
 * and named. */
int daemonset_controller_load(DaemonSetController *controller, Error *reterr);

/* A pod by its record, and the file that this names. True where it is no business of that file's
 * any more: it is of a set that is known, or was left by one, and is wanted from then on. */
bool daemonset_controller_claim_record(DaemonSetController *controller, const char *file,
                                       const Pod *pod);

/* A pod that its set has left is wanted from then on for its own sake, as nobody's. 0 or -ENOMEM.
 */
int daemonset_controller_add_orphan(DaemonSetController *controller, const Pod *pod);
extern const char orphan_pod_source[]; /* in place of a file's name, in records */

/* Between pod_manager_begin_desired() and pod_manager_stop_undesired(), after the pods of files:
 * begin, each set, end. 'origin' is where the set comes from: the name of its file; whoever else
 * wishes for sets calls himself something in brackets, as no file is called. It stands in sentences
 * and in the records of the pods. A set is known by its UID, which whoever wishes for it has given
 * it: two of one name are two. 0, or -ENOMEM: then a wish may not have been heard. */
void daemonset_controller_begin_sync(DaemonSetController *controller);
int daemonset_controller_sync_set(DaemonSetController *controller, const char *origin,
                                  const DaemonSet *set);
int daemonset_controller_end_sync(DaemonSetController *controller);

/* What overlaps: sentences for people, of which each is there as long as it holds. */
char *const *daemonset_controller_warnings(const DaemonSetController *controller);

/* A pod's status may be another; it is new or gone. */
void daemonset_controller_on_pod(DaemonSetController *controller, const Pod *pod, bool is_new,
                                 bool is_gone);

/* Images that were missing may be there now. */
void daemonset_controller_images_changed(DaemonSetController *controller);

/* Tells of every set that is wished for, sorted by namespace and name, with what there is to say of
 * it as a v1.DaemonSet. 0, what 'each' gave below that, or -ENOMEM. */
typedef int (*daemonset_controller_each_t)(const DaemonSet *set, const char *json, void *context);
int daemonset_controller_each(DaemonSetController *controller, daemonset_controller_each_t each,
                              void *context);

/* All revisions, as JSON that the caller frees; NULL where memory ends. */
char *daemonset_controller_list_revisions(DaemonSetController *controller);

/* Like a rollout of kubectl's: back to a revision (0: the one before the present one), or the
 * present one's pods anew. They hold until the set changes. 0; 1 where it is so already; -ENOENT
 * with a sentence.
 */
int daemonset_controller_undo_rollout(DaemonSetController *controller, const char *namespace,
                                      const char *name, int64_t revision, Error *reterr);
int daemonset_controller_restart_rollout(DaemonSetController *controller, const char *namespace,
                                         const char *name, Error *reterr);

/* The set's pods are nobody's from the next wishes on, and stay; the set is not wished for again
 * before its file has gone, which is for the caller to see to. 0; -ENOENT with a sentence. */
int daemonset_controller_orphan_pods(DaemonSetController *controller, const char *namespace,
                                     const char *name, Error *reterr);

/* The file could not go: the set takes its pods again. */
void daemonset_controller_readopt_pods(DaemonSetController *controller, const char *namespace,
                                       const char *name);

/* A person ended it: a pod that was left is not wanted again. */
void daemonset_controller_orphan_deleted(DaemonSetController *controller, const char *namespace,
                                         const char *name);

/* Where a set comes from, or NULL with a sentence. */
const char *daemonset_controller_find_source(DaemonSetController *controller, const char *namespace,
                                             const char *name, Error *reterr);
