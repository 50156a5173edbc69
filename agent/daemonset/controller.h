/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The DaemonSet controller of one node. It turns the desired DaemonSets (of files and of an API
 * server) into desired pods of this node, with rolling updates, rollbacks and back-off of failed
 * pods. It asks for a pass when a pod appears, changes or terminates, or at a time.
 *
 * It does not decide which DaemonSets are desired (desired/ and apiserver/ do), and it starts and
 * stops no pods (pods/ does). What it decides for one set is computed by rules/. */

#include "agent/daemonset/pod-access.h"
#include "agent/daemonset/rules/rules.h"
#include "common/clock.h"

typedef struct DaemonSetController DaemonSetController;

/* All pointers are borrowed and outlive the controller. */
typedef struct DaemonSetControllerConfig {
        sd_event *event;
        const char *state_dir;
        const NodeLabelsTaints *node_labels;
        const PodAccess *pod_access; /* usually &pod_manager_access */
        void *pods;                  /* for 'pod_access' */
        const SteadyClock *clock;

        /* A set from its checkpoint, as it was desired last, and where it came from: its source
         * uses it while it cannot be read. Called by daemonset_controller_load(). 0 or -ENOMEM. */
        int (*on_restored_set)(const char *origin, const DaemonSet *set, void *userdata);
        void (*on_recompute_due)(void *userdata); /* a pass is due; once a turn of the loop */
        void (*on_changed)(void *userdata); /* daemonset_controller_each() may give other results */
        void (*on_event)(const PodEvent *event, void *userdata);
        void *userdata;
} DaemonSetControllerConfig;

int daemonset_controller_new(const DaemonSetControllerConfig *config, DaemonSetController **ret);
DaemonSetController *daemonset_controller_free(DaemonSetController *controller);
DEFINE_CLEANUP(DaemonSetController *, daemonset_controller_free)

/* Reads the checkpoints of sets and their revisions. Damaged files are set aside and logged. */
int daemonset_controller_load(DaemonSetController *controller, Error *reterr);

/* A restored pod and the file that its record names. True if the pod belongs to a known set or is
 * an orphan, so not to the file: the controller keeps it desired from then on. */
bool daemonset_controller_claim_record(DaemonSetController *controller, const char *file,
                                       const Pod *pod);

/* The pod is an orphan from then on. 0 or -ENOMEM. */
int daemonset_controller_add_orphan(DaemonSetController *controller, const Pod *pod);
extern const char orphan_pod_source[]; /* in place of a file's name, in records */

/* One pass, between pod_manager_begin_desired() and pod_manager_stop_undesired(), after the pods of
 * files: begin_sync, sync_set for each set, end_sync. 'origin' is where the set comes from: the
 * name of its file, or a name in brackets, which no file has. It appears in messages and in the
 * records of the pods. Sets are identified by UID: two sets of one name are two. 0, or -ENOMEM:
 * then the desired pods are incomplete. */
void daemonset_controller_begin_sync(DaemonSetController *controller);
int daemonset_controller_sync_set(DaemonSetController *controller, const char *origin,
                                  const DaemonSet *set);
int daemonset_controller_end_sync(DaemonSetController *controller);

/* Overlap warnings that hold at present, as messages. */
char *const *daemonset_controller_warnings(const DaemonSetController *controller);

/* A pod's status may have changed, or the pod is new or gone. */
void daemonset_controller_on_pod(DaemonSetController *controller, const Pod *pod, bool is_new,
                                 bool is_gone);

/* Images that were missing may be there now. */
void daemonset_controller_images_changed(DaemonSetController *controller);

/* Calls 'each' for every desired set, sorted by namespace and name, with its v1.DaemonSet. 0, a
 * negative value that 'each' returned, or -ENOMEM. */
typedef int (*daemonset_controller_each_t)(const DaemonSet *set, const char *json, void *context);
int daemonset_controller_each(DaemonSetController *controller, daemonset_controller_each_t each,
                              void *context);

/* All ControllerRevisions, as JSON that the caller frees; NULL: out of memory. */
char *daemonset_controller_list_revisions(DaemonSetController *controller);

/* 'kubectl rollout undo' to a revision (0: the one before the present one), and 'kubectl rollout
 * restart'. They hold until the set changes. 0; 1: there is nothing to do; -ENOENT with a message.
 */
int daemonset_controller_undo_rollout(DaemonSetController *controller, const char *namespace,
                                      const char *name, int64_t revision, Error *reterr);
int daemonset_controller_restart_rollout(DaemonSetController *controller, const char *namespace,
                                         const char *name, Error *reterr);

/* 'kubectl delete --cascade=orphan': the pods of the set are orphans from the next pass on. The
 * caller removes the file of the set; until then the set stays without pods. 0; -ENOENT with a
 * message. */
int daemonset_controller_orphan_pods(DaemonSetController *controller, const char *namespace,
                                     const char *name, Error *reterr);

/* The file could not be removed: the set adopts its pods again. */
void daemonset_controller_readopt_pods(DaemonSetController *controller, const char *namespace,
                                       const char *name);

/* The user deleted an orphan pod: it is no longer desired. */
void daemonset_controller_orphan_deleted(DaemonSetController *controller, const char *namespace,
                                         const char *name);

/* Where a set comes from, or NULL with a message. */
const char *daemonset_controller_find_source(DaemonSetController *controller, const char *namespace,
                                             const char *name, Error *reterr);
