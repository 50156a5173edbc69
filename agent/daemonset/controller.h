/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The DaemonSet controller of one node. It turns the desired DaemonSets (from files and from an API
 * server) into desired pods of this node, with rolling updates, rollbacks and back-off of failed
 * pods. It requests a pass when a pod appears, changes or terminates, and at times that it
 * computes.
 *
 * It does not decide which DaemonSets are desired (desired/ and apiserver/ do), and it starts and
 * stops no pods (pods/ does). rules/ makes its decisions about one set. */

#include "agent/daemonset/pod-access.h"
#include "agent/daemonset/sync-pass.h"
#include "agent/model/desired-pods.h"
#include "common/clock.h"

#include <stdio.h>

typedef struct DaemonSetController DaemonSetController;

/* All pointers are borrowed and outlive the controller. */
typedef struct DaemonSetControllerConfig {
        sd_event *event;
        const char *state_dir;
        const NodeLabelsTaints *node_labels;
        const PodAccess *pod_access; /* usually &pod_manager_access */
        void *pods;                  /* for 'pod_access' */
        const SteadyClock *clock;

        void (*on_recompute_due)(void *userdata); /* the desired pods must be recomputed */
        void (*on_changed)(void *userdata); /* the results of daemonset_controller_each() may have
                                             * changed */
        void (*on_event)(const PodEvent *event, void *userdata);
        /* Whether a pod of the set may be created; NULL: always. */
        admit_daemonset_pod_t admit;
        void *userdata;
} DaemonSetControllerConfig;

int daemonset_controller_new(const DaemonSetControllerConfig *config, DaemonSetController **ret);
DaemonSetController *daemonset_controller_free(DaemonSetController *controller);
DEFINE_CLEANUP(DaemonSetController *, daemonset_controller_free)

/* Reads the checkpoints of sets and their revisions. Damaged files are set aside and logged. 'each'
 * is called with every set as it was last desired, and with its source; it returns 0 or -ENOMEM. */
typedef int (*restored_daemonset_t)(const PodSource *source, const DaemonSet *set, void *userdata);
int daemonset_controller_load(DaemonSetController *controller, restored_daemonset_t each,
                              void *userdata, Error *reterr);

/* A restored pod and its source. 1: the pod belongs to a known set or is an orphan, and the
 * controller keeps it desired from then on; 0: it does not; -ENOMEM. 'userdata' is the controller,
 * here and below. */
int daemonset_controller_claim_record(const PodSource *source, const Pod *pod, void *userdata);

/* Makes the pod an orphan. 0 or -ENOMEM. */
int daemonset_controller_add_orphan(DaemonSetController *controller, const Pod *pod);

/* One pass: evaluates the sets, which must be complete, and adds their pods and all orphans to the
 * desired pods. Sets are identified by UID: two sets with the same name are different sets. 0, or
 * -ENOMEM if pods may be missing. */
int daemonset_controller_add_pods(const DesiredDaemonSets *sets, DesiredPods *desired,
                                  void *userdata);

/* After a pass: the reason why a pod that its set does not desire is stopped. The caller frees it;
 * NULL: the pod belongs to no known set. */
char *daemonset_controller_explain_stop(const PodSource *source, const Pod *pod, void *userdata);

/* After a pass: a set from that kind of source that should run here, but whose revision in the
 * manifest is not available, or was rolled back; NULL: there is none. */
const DaemonSet *daemonset_controller_find_unready(PodSourceKind kind, void *userdata);

/* Prints the sets, their plans and the next pass for `mainstay debug dump`. */
void daemonset_controller_dump(const DaemonSetController *controller, FILE *out);

/* The messages of the current overlap warnings. */
char *const *daemonset_controller_warnings(void *userdata);

/* A pod's status may have changed, or the pod is new or gone. */
void daemonset_controller_on_pod(DaemonSetController *controller, const Pod *pod, bool is_new,
                                 bool is_gone);

/* Images that were missing may be available now. */
void daemonset_controller_images_changed(DaemonSetController *controller);

/* Calls 'each' for every desired set, sorted by namespace and name, with "<namespace>/<name>" and
 * its v1.DaemonSet; the second function does the same for their ControllerRevisions. 0, a negative
 * value that 'each' returned, or -ENOMEM. */
int daemonset_controller_each(DaemonSetController *controller,
                              int (*each)(const char *key, const char *json, void *context),
                              void *context);
int daemonset_controller_each_revision(DaemonSetController *controller,
                                       int (*each)(const char *key, const char *json,
                                                   void *context),
                                       void *context);

/* 'kubectl rollout undo' to a revision (0: the previous one), and 'kubectl rollout restart'. They
 * remain in effect until the set changes. 0; 1: there is nothing to do; -ENOENT with a message.
 */
int daemonset_controller_undo_rollout(DaemonSetController *controller, const char *namespace,
                                      const char *name, int64_t revision, Error *reterr);
int daemonset_controller_restart_rollout(DaemonSetController *controller, const char *namespace,
                                         const char *name, Error *reterr);

/* 'kubectl delete --cascade=orphan': the pods of the set become orphans in the next pass. The
 * caller removes the file of the set; until then the set has no pods. 0; -ENOENT with a message. */
int daemonset_controller_orphan_pods(DaemonSetController *controller, const char *namespace,
                                     const char *name, Error *reterr);

/* The file could not be removed: the set adopts its pods again. */
void daemonset_controller_readopt_pods(DaemonSetController *controller, const char *namespace,
                                       const char *name);

/* The user deleted an orphan pod: it is no longer desired. */
void daemonset_controller_orphan_deleted(DaemonSetController *controller, const char *namespace,
                                         const char *name);

/* The source of a set, or NULL with a message. */
const PodSource *daemonset_controller_find_source(DaemonSetController *controller,
                                                  const char *namespace, const char *name,
                                                  Error *reterr);
