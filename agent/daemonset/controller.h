/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The DaemonSets of this node: what daemonset/ decides of them, done with what supervise/ has. It
 * wishes for their pods whenever the agent wishes for those of its files, and says when it wants to
 * be asked again: a pod came or went or became ready, or a time has come. */

#include "agent/daemonset/rules/rules.h"
#include "agent/model/desired-pods.h"
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

        void (*on_recompute_due)(void *userdata); /* of the desired pods */
        void (*on_changed)(void *userdata); /* daemonset_controller_each() may tell other things */
        void (*on_event)(const PodEvent *event, void *userdata);
        void *userdata;
} DaemonSetControllerConfig;

int daemonset_controller_new(const DaemonSetControllerConfig *config, DaemonSetController **ret);
DaemonSetController *daemonset_controller_free(DaemonSetController *controller);
DEFINE_CLEANUP(DaemonSetController *, daemonset_controller_free)

/* Reads what an earlier agent knew of sets, and of their revisions. What is damaged is set aside
 * and named. 'each' gets every set as its source had it last; it gives 0 or -ENOMEM. */
typedef int (*restored_daemonset_t)(const PodSource *source, const DaemonSet *set, void *userdata);
int daemonset_controller_load(DaemonSetController *controller, restored_daemonset_t each,
                              void *userdata, Error *reterr);

/* A pod by its record. 1 where it belongs to a set that is known, or is an orphan, which is desired
 * from then on; 0; -ENOMEM. 'userdata' is the controller. */
int daemonset_controller_claim_record(const PodSource *source, const Pod *pod, void *userdata);

/* A pod that its set has left is wanted from then on for its own sake, as nobody's. 0 or -ENOMEM.
 */
int daemonset_controller_add_orphan(DaemonSetController *controller, const Pod *pod);

/* Evaluates the sets, which are all that there are, and adds their pods and all orphans to the
 * desired ones. A set is known by its UID: two of one name are two. 0, or -ENOMEM: then pods may be
 * missing. 'userdata' is the controller. */
int daemonset_controller_add_pods(const DesiredDaemonSets *sets, DesiredPods *desired,
                                  void *userdata);

/* After that: why a pod that its set does not want is stopped, which the caller frees; NULL: it is
 * not of a set that is known. 'userdata' is the controller. */
char *daemonset_controller_explain_stop(const PodSource *source, const Pod *pod, void *userdata);

/* What overlaps: sentences for people, of which each is there as long as it holds. 'userdata' is
 * the controller. */
char *const *daemonset_controller_warnings(void *userdata);

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
const PodSource *daemonset_controller_find_source(DaemonSetController *controller,
                                                  const char *namespace, const char *name,
                                                  Error *reterr);
