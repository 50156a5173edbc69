/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A node without containers for tests of the DaemonSet controller: its pods are a list, tests set
 * its time, and a desired pod is created when the test applies the desired set. */

#include "agent/daemonset/controller.h"
#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

#include <errno.h>
#include <systemd/sd-event.h>

enum {
        FAKE_PODS_MAX = 8
};

typedef struct FakePod {
        Pod *pod;
        Pod *desired;         /* the desired pod of 'pod' after the last pass, or NULL */
        PodSourceKind source; /* likewise */
        PodStatus status;
} FakePod;

typedef struct FakeNode {
        sd_event *event;
        SteadyClock clock;
        NodeLabelsTaints labels;
        FakePod pods[FAKE_PODS_MAX];
        size_t n;
        bool makes_ready; /* new pods become ready at once */
        bool has_no_memory;
        bool is_shutting_down;
        bool refuses_pods; /* every pod that should be created */
        char **events;     /* "SuccessfulCreate d" */
        char **restored;
        DaemonSetController *controller;
} FakeNode;

static inline int fake_for_each(void *pods,
                                int (*each)(const Pod *pod, const PodStatus *status, void *context),
                                void *context) {
        FakeNode *node = pods;

        if (node->has_no_memory)
                return -ENOMEM;
        for (size_t i = 0; i < node->n; i++)
                if (node->pods[i].status.phase != N_POD_PHASES)
                        REQUIRE(each(node->pods[i].pod, &node->pods[i].status, context) == 0);
        return 0;
}

static inline FakePod *fake_find_pod(FakeNode *node, const char *name) {
        for (size_t i = 0; i < node->n; i++)
                if (streq(node->pods[i].pod->metadata.name, name))
                        return &node->pods[i];
        return NULL;
}

/* The phase of a pod that does not exist yet is N_POD_PHASES until fake_node_apply(). */
static inline void fake_set_desired(FakeNode *node, const DesiredPod *desired) {
        FakePod *known = fake_find_pod(node, desired->pod->metadata.name);

        if (!known) {
                REQUIRE(node->n < FAKE_PODS_MAX);
                known = &node->pods[node->n++];
                *known = (FakePod){ .status.phase = N_POD_PHASES };
                REQUIRE(pod_copy(desired->pod, &known->pod) == 0);
        }
        REQUIRE(pod_copy(desired->pod, &known->desired) == 0);
        known->source = desired->source.kind;
}

static inline const PodStatus *fake_get_status(void *pods, const char *uid) {
        FakeNode *node = pods;

        for (size_t i = 0; i < node->n; i++)
                if (streq(node->pods[i].pod->metadata.uid, uid))
                        return &node->pods[i].status;
        return NULL;
}

static inline int fake_new_preflight(void *pods, Pod *pod, void (*on_change)(void *userdata),
                                     void *userdata, Preflight **ret) {
        return -EOPNOTSUPP;
}

static inline bool fake_is_shutting_down(void *pods) {
        const FakeNode *node = pods;

        return node->is_shutting_down;
}

static const PodAccess fake_pod_access = {
        .for_each = fake_for_each,
        .get_status = fake_get_status,
        .new_preflight = fake_new_preflight,
        .is_shutting_down = fake_is_shutting_down,
};

static inline int fake_on_restored_set(const PodSource *source, const DaemonSet *set,
                                       void *userdata) {
        FakeNode *node = userdata;

        return strv_appendf(&node->restored, "%s %s", pod_source_format(source),
                            set->metadata.name);
}

static inline void fake_on_changed(void *userdata) {
}

static inline void fake_on_event(const PodEvent *event, void *userdata) {
        FakeNode *node = userdata;

        REQUIRE(strv_appendf(&node->events, "%s %s", event->reason,
                             event->daemonset->metadata.name) == 0);
}

static inline int fake_admit(const PodSource *source, const DaemonSet *set, const Pod *pod,
                             DaemonSetRefusal *ret, void *userdata) {
        const FakeNode *node = userdata;

        if (!node->refuses_pods)
                return 1;
        *ret = (DaemonSetRefusal){ "PodSecurity", strdup("it is refused") };
        return 0;
}

/* Starts or restarts the agent: pods and checkpoints stay. */
static inline void fake_node_start_agent(FakeNode *node) {
        cleanup_error Error error = ERROR_NULL;

        daemonset_controller_free(node->controller);
        REQUIRE(daemonset_controller_new(
                        &(DaemonSetControllerConfig){ .event = node->event,
                                                      .state_dir = test_directory(),
                                                      .node_labels = &node->labels,
                                                      .pod_access = &fake_pod_access,
                                                      .pods = node,
                                                      .clock = &node->clock,
                                                      .on_recompute_due = fake_on_changed,
                                                      .on_changed = fake_on_changed,
                                                      .on_event = fake_on_event,
                                                      .admit = fake_admit,
                                                      .userdata = node },
                        &node->controller) == 0);
        REQUIRE(daemonset_controller_load(node->controller, fake_on_restored_set, node, &error) ==
                0);
}

static inline void fake_node_init(FakeNode *node) {
        *node = (FakeNode){ .clock = steady_clock_start(), .makes_ready = true };
        node->labels.name = strdup("node1");
        REQUIRE(sd_event_new(&node->event) >= 0);
        fake_node_start_agent(node);
}

static inline void fake_pod_done(FakePod *pod) {
        pod_free(pod->pod);
        pod_free(pod->desired);
}

static inline void fake_node_done(FakeNode *node) {
        daemonset_controller_free(node->controller);
        for (size_t i = 0; i < node->n; i++)
                fake_pod_done(&node->pods[i]);
        strv_free(node->events);
        strv_free(node->restored);
        node_labels_taints_done(&node->labels);
        sd_event_unref(node->event);
}

static inline void fake_node_advance(FakeNode *node, unsigned seconds) {
        node->clock.offset += seconds * USEC_PER_SEC;
}

/* Runs one pass of the controller. All sets are from the file "a.yaml". Returns 0 or -ENOMEM. */
static inline int fake_node_sync(FakeNode *node, const DaemonSet *const *sets) {
        cleanup_with(desired_daemonsets_done) DesiredDaemonSets list = { 0 };
        cleanup_with(desired_pods_done) DesiredPods desired = { 0 };
        const PodSource source = pod_source_of_file("a.yaml");
        int r;

        for (size_t i = 0; i < node->n; i++)
                node->pods[i].desired = pod_free(node->pods[i].desired);
        for (; sets && *sets; sets++)
                REQUIRE(desired_daemonsets_add(&list, &source, *sets) == 0);
        r = daemonset_controller_add_pods(&list, &desired, node->controller);
        for (size_t i = 0; i < desired.pods.n; i++)
                fake_set_desired(node, &desired.pods.items[i]);
        return r;
}

/* Pods that are not desired are removed; desired pods that do not exist are started. */
static inline void fake_node_apply(FakeNode *node) {
        for (size_t i = node->n; i-- > 0;) {
                FakePod *pod = &node->pods[i];
                uint64_t now = steady_now_usec(&node->clock);

                if (!pod->desired) {
                        daemonset_controller_on_pod(node->controller, pod->pod, false, true);
                        fake_pod_done(pod);
                        *pod = node->pods[--node->n];
                        continue;
                }
                pod_free(pod->pod);
                pod->pod = TAKE_PTR(pod->desired);
                if (pod->status.phase != N_POD_PHASES)
                        continue;
                pod->status = (PodStatus){ .phase = POD_RUNNING, .start_time = now };
                if (node->makes_ready)
                        pod->status.conditions[CONDITION_READY] =
                                (PodCondition){ .is_true = true, .last_transition = now };
                daemonset_controller_on_pod(node->controller, pod->pod, true, false);
        }
}

/* A pass and its effects. */
static inline void fake_node_run(FakeNode *node, const DaemonSet *const *sets) {
        REQUIRE(fake_node_sync(node, sets) == 0);
        fake_node_apply(node);
}

static inline DaemonSet *fake_set_parse(const char *yaml, const char *uid) {
        cleanup_error Error error = ERROR_NULL;
        ManifestObjects objects = { 0 };
        DaemonSet *set = NULL;

        if (manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error) < 0)
                test_fail(__FILE__, __LINE__, yaml, "is refused: %s", error_message(&error, 0));
        REQUIRE(objects.daemonsets.n == 1);
        REQUIRE(daemonset_copy(objects.daemonsets.items[0], &set) == 0);
        manifest_objects_done(&objects);
        free(set->metadata.uid);
        set->metadata.uid = strdup(uid);
        return set;
}

/* A DaemonSet with this UID whose pods have the label app=<app>. 'spec' is additional YAML for its
 * spec. */
static inline DaemonSet *fake_set_new(const char *name, const char *uid, const char *app,
                                      const char *annotations, const char *spec,
                                      const char *image) {
        char yaml[1024];

        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: apps/v1\nkind: DaemonSet\n"
                        "metadata: {name: %s, annotations: {%s}}\nspec:\n%s"
                        "  selector: {matchLabels: {app: %s}}\n  template:\n"
                        "    metadata: {labels: {app: %s}}\n"
                        "    spec:\n      containers: [{name: c, image: %s}]\n",
                        name, annotations, spec, app, app, image);
        return fake_set_parse(yaml, uid);
}
