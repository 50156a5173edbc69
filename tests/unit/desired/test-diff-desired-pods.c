/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/diff-desired-pods.h"

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

/* ---- a world of pods that are written as "name image" ---- */

static ManifestObjects manifests[16];
static size_t n_manifests;

static const Pod *pod(const char *name, const char *image) {
        char yaml[256];
        ManifestObjects *objects = &manifests[n_manifests++];

        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"
                        "spec:\n  containers: [{name: c, image: %s}]\n",
                        name, image);
        REQUIRE(n_manifests < N_ELEMENTS(manifests));
        REQUIRE(manifest_parse("f", yaml, strlen(yaml), "n", objects, NULL) >= 0);
        return objects->pods.items[0];
}

static void forget_pods(void) {
        while (n_manifests > 0)
                manifest_objects_done(&manifests[--n_manifests]);
}

static const PodSource web_yaml = { POD_SOURCE_FILE, (char[]){ "web.yaml" } };
static const PodSource other_yaml = { POD_SOURCE_FILE, (char[]){ "other.yaml" } };
static const PodSource api = { .kind = POD_SOURCE_APISERVER };
static const PodSource api_daemonset = { .kind = POD_SOURCE_APISERVER_DAEMONSET };
static const PodSource orphan = { .kind = POD_SOURCE_ORPHAN };

/* Returns "edit default/web-n web.yaml; stop default/db-n: why", or "". */
static char *diff(const DesiredPods *desired, ActualPod *pods, size_t n) {
        const ActualPods actual = { pods, n };
        cleanup_with(pod_worker_actions_done) PodWorkerActions actions = { 0 };
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out && diff_desired_pods(desired, &actual, &actions) == 0);
        for (size_t i = 0; i < actions.n; i++) {
                const PodWorkerAction *action = &actions.items[i];

                fprintf(out, "%s%s %s", i > 0 ? "; " : "", pod_worker_action_names[action->kind],
                        action->metadata->name);
                if (action->source)
                        fprintf(out, " %s", pod_source_format(action->source));
                if (action->reason)
                        fprintf(out, ": %s", action->reason);
        }
        REQUIRE(fclose(out) == 0);
        return text;
}

#define EXPECT_DIFF(desired, pods, n, expected)                    \
        do {                                                       \
                cleanup_free char *text_ = diff(desired, pods, n); \
                EXPECT_STREQ(text_, expected);                     \
        } while (0)

/* Returns the diff between one desired pod (NULL: none) and one existing pod. */
static void expect_one(const PodSource *source, const Pod *desired_pod, ActualPod actual,
                       const char *expected) {
        cleanup_with(desired_pods_done) DesiredPods desired = { 0 };

        if (desired_pod)
                REQUIRE(desired_pods_add(&desired, source, desired_pod) == 1);
        EXPECT_DIFF(&desired, &actual, 1, expected);
}

TEST(a_desired_pod_that_does_not_exist_is_started)
{
        cleanup_with(desired_pods_done) DesiredPods desired = { 0 };

        REQUIRE(desired_pods_add(&desired, &web_yaml, pod("web", "a")) == 1);
        REQUIRE(desired_pods_add(&desired, &api, pod("api", "a")) == 1);
        EXPECT_DIFF(&desired, NULL, 0, "start api-n the API server; start web-n web.yaml");
        forget_pods();
}

TEST(a_pod_that_is_as_desired_is_not_changed)
{
        expect_one(&web_yaml, pod("web", "a"),
                   (ActualPod){ .pod = pod("web", "a"), .source = &web_yaml }, "");
        forget_pods();
}

TEST(a_pod_that_differs_is_edited)
{
        expect_one(&web_yaml, pod("web", "b"),
                   (ActualPod){ .pod = pod("web", "a"), .source = &web_yaml },
                   "edit web-n web.yaml");
        forget_pods();
}

TEST(values_of_classes_are_compared_as_part_of_the_pod)
{
        cleanup_with(desired_pods_done) DesiredPods desired = { 0 };
        const Pod *web = pod("web", "a");
        ActualPod actual = { .pod = web, .source = &web_yaml };

        REQUIRE(desired_pods_add(&desired, &web_yaml, pod("web", "a")) == 1);
        desired.pods.items[0].resolved = malloc(sizeof(Pod));
        REQUIRE(desired.pods.items[0].resolved);
        *desired.pods.items[0].resolved = *desired.pods.items[0].pod;
        EXPECT_DIFF(&desired, &actual, 1, "");
        desired.pods.items[0].resolved->spec.priority = (OptionalInt){ true, 7 };
        EXPECT_DIFF(&desired, &actual, 1, "edit web-n web.yaml");
        forget_pods();
}

TEST(a_pod_whose_source_changed_is_kept_and_recorded)
{
        const Pod *web = pod("web", "a");

        expect_one(&other_yaml, web, (ActualPod){ .pod = web, .source = &web_yaml },
                   "keep web-n other.yaml");
        /* A DaemonSet adopts an orphan; the API server adopts the pod of a DaemonSet. */
        expect_one(&web_yaml, web, (ActualPod){ .pod = web, .source = &orphan },
                   "keep web-n web.yaml");
        expect_one(&api, web, (ActualPod){ .pod = web, .source = &api_daemonset },
                   "keep web-n the API server");
        forget_pods();
}

TEST(a_pod_is_stopped_for_the_reason_that_its_source_gives)
{
        static const char *const reasons[] = { "web.yaml was removed",
                                               "DaemonSet default/logd was removed",
                                               "the API server deleted it" };

        for (size_t i = 0; i < N_ELEMENTS(reasons); i++) {
                cleanup_free char *reason = strdup(reasons[i]), *expected = NULL;

                REQUIRE(reason && asprintf(&expected, "stop web-n: %s", reasons[i]) > 0);
                expect_one(NULL, NULL,
                           (ActualPod){ .pod = pod("web", "a"),
                                        .source = &web_yaml,
                                        .stop_reason = reason },
                           expected);
        }
        forget_pods();
}

TEST(a_pod_without_a_reason_keeps_running)
{
        expect_one(NULL, NULL, (ActualPod){ .pod = pod("web", "a"), .source = &api }, "");
        expect_one(NULL, NULL, (ActualPod){ .pod = pod("web", "a"), .source = &orphan }, "");
        forget_pods();
}

TEST(an_incomplete_set_starts_and_edits_pods_and_stops_none)
{
        cleanup_with(desired_pods_done) DesiredPods desired = { .is_incomplete = true };
        char reason[] = "web.yaml was removed";
        ActualPod actual[] = {
                { .pod = pod("db", "a"), .source = &web_yaml },
                { .successor = pod("late", "a"), .successor_source = &web_yaml },
                { .pod = pod("web", "a"), .source = &web_yaml, .stop_reason = reason },
        };

        REQUIRE(desired_pods_add(&desired, &web_yaml, pod("db", "b")) == 1);
        REQUIRE(desired_pods_add(&desired, &web_yaml, pod("new", "a")) == 1);
        EXPECT_DIFF(&desired, actual, 3, "edit db-n web.yaml; start new-n web.yaml");
        forget_pods();
}

TEST(a_desired_pod_is_not_stopped_whatever_the_reason)
{
        char reason[] = "web.yaml was removed";
        const Pod *web = pod("web", "a");

        expect_one(&other_yaml, web,
                   (ActualPod){ .pod = web, .source = &web_yaml, .stop_reason = reason },
                   "keep web-n other.yaml");
        forget_pods();
}

TEST(a_pending_successor_is_left_alone_replaced_or_dropped)
{
        const Pod *a = pod("web", "a"), *b = pod("web", "b"), *c = pod("web", "c");
        const ActualPod pending = {
                .pod = a, .source = &web_yaml, .successor = b, .successor_source = &web_yaml
        };

        expect_one(&web_yaml, b, pending, "");
        expect_one(&web_yaml, c, pending, "edit web-n web.yaml");
        expect_one(&other_yaml, b, pending, "edit web-n other.yaml");
        expect_one(&web_yaml, a, pending, "keep web-n web.yaml"); /* the edit was reverted */
        expect_one(NULL, NULL, pending, "drop successor web-n");
        forget_pods();
}

TEST(a_pod_that_has_not_started_needs_no_reason_to_be_dropped)
{
        const Pod *web = pod("web", "a");
        const ActualPod starting = { .successor = web, .successor_source = &web_yaml };

        expect_one(&web_yaml, web, starting, "");
        expect_one(&web_yaml, pod("web", "b"), starting, "start web-n web.yaml");
        expect_one(NULL, NULL, starting, "drop successor web-n");
        forget_pods();
}

TEST(a_terminating_pod_is_followed_by_the_desired_one_and_not_stopped_again)
{
        const Pod *web = pod("web", "a");
        char reason[] = "web.yaml was removed";
        ActualPod terminating = { .pod = web, .source = &web_yaml, .is_terminating = true };

        expect_one(&web_yaml, web, terminating, "start web-n web.yaml");
        terminating.stop_reason = reason;
        expect_one(NULL, NULL, terminating, "");
        terminating.successor = web;
        terminating.successor_source = &web_yaml;
        expect_one(&web_yaml, web, terminating, "");
        expect_one(NULL, NULL, terminating, "drop successor web-n");
        forget_pods();
}

TEST(stops_are_ordered_after_starts_and_edits)
{
        cleanup_with(desired_pods_done) DesiredPods desired = { 0 };
        char reason[] = "web.yaml no longer contains it";
        ActualPod actual[] = {
                { .pod = pod("a", "a"), .source = &web_yaml, .stop_reason = reason },
                { .pod = pod("b", "a"), .source = &web_yaml },
        };

        REQUIRE(desired_pods_add(&desired, &web_yaml, pod("b", "b")) == 1);
        EXPECT_DIFF(&desired, actual, 2,
                    "edit b-n web.yaml; stop a-n: web.yaml no longer contains it");
        forget_pods();
}
