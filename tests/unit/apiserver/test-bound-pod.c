/* SPDX-License-Identifier: Apache-2.0 */
/* The spec of an API pod, its rejection, and the objects whose changes affect it. */

#include "agent/apiserver/bound-pod.h"
#include "agent/apiserver/object-updates.h"

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

#define UID "535c4d56-4cff-442f-93c7-788ab0747ce4"

static Pod *parse_pod(const char *image) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_free char *json = NULL;
        Pod *pod;

        REQUIRE(asprintf(&json,
                         "{\"metadata\":{\"name\":\"web\",\"namespace\":\"default\",\"uid\":\"" UID
                         "\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"%s\","
                         "\"envFrom\":[{\"secretRef\":{\"name\":\"login\"}}]}]}}",
                         image) > 0);
        REQUIRE(manifest_parse_api("default/web", "Pod", json, strlen(json), "n1", &objects,
                                   NULL) == 0);
        pod = objects.pods.items[0];
        objects.pods.n = 0;
        free(objects.pods.items);
        objects.pods.items = NULL;
        return pod;
}

TEST(spec_is_replaced_only_if_it_differs)
{
        cleanup_with(bound_pod_done) BoundPod bound = { 0 };
        cleanup_with(pod_freep) Pod *pod = parse_pod("x:1"), *same = parse_pod("x:1"),
                                    *changed = parse_pod("x:2");

        EXPECT_EQ(bound_pod_update_take(&bound, &pod), 1);
        EXPECT_EQ(bound_pod_update_take(&bound, &same), 0);
        EXPECT_EQ(bound_pod_update_take(&bound, &changed), 1);
        EXPECT_STREQ(bound.desired->spec.containers.items[0].image, "x:2");
}

TEST(spec_is_shared_with_the_running_pod)
{
        cleanup_with(bound_pod_done) BoundPod bound = { 0 };
        cleanup_with(pod_freep) Pod *pod = parse_pod("x:1"), *running = parse_pod("x:1"),
                                    *older = parse_pod("x:0");

        EXPECT_EQ(bound_pod_update_take(&bound, &pod), 1);
        bound_pod_borrow(&bound, older);
        EXPECT(bound.desired == bound.owned && bound.owned);
        bound_pod_borrow(&bound, running);
        EXPECT(bound.desired == running && !bound.owned);
        EXPECT_EQ(bound_pod_return(&bound, older), 0);
        EXPECT(bound.desired == running);
        EXPECT_EQ(bound_pod_return(&bound, running), 0);
        REQUIRE(bound.owned && bound.desired == bound.owned);
        EXPECT_STREQ(bound.desired->spec.containers.items[0].image, "x:1");
}

TEST(valid_spec_replaces_a_rejection)
{
        cleanup_with(bound_pod_done) BoundPod bound = { 0 };
        cleanup_with(pod_freep) Pod *pod = parse_pod("x:1");

        EXPECT_EQ(bound_pod_reject(&bound, "UnexpectedAdmissionError", "first"), 0);
        EXPECT_EQ(bound_pod_reject(&bound, "UnexpectedAdmissionError", "unknown class"), 0);
        REQUIRE(bound.rejection);
        EXPECT_EQ(bound.rejection->phase, POD_FAILED);
        EXPECT_STREQ(bound.rejection->reason, "UnexpectedAdmissionError");
        EXPECT_STREQ(bound.rejection->message, "unknown class");
        EXPECT_EQ(bound_pod_update_take(&bound, &pod), 1);
        EXPECT(!bound.rejection);
}

typedef struct Checks {
        ObjectUpdates *updates;
        const Pod *pod;
        unsigned n_due, n_concerned;
} Checks;

static void on_due(void *userdata) {
        Checks *checks = userdata;

        checks->n_due++;
        checks->n_concerned += object_updates_concern(checks->updates, checks->pod);
}

TEST(changed_object_concerns_the_pods_that_refer_to_it_once)
{
        cleanup_with(sd_event_unrefp) sd_event *event = NULL;
        cleanup_with(pod_freep) Pod *pod = parse_pod("x:1");
        Checks checks = { .pod = pod };

        REQUIRE(sd_event_new(&event) >= 0);
        REQUIRE(object_updates_new(event, on_due, &checks, &checks.updates) == 0);
        object_updates_schedule(checks.updates, "secret_default_login");
        object_updates_schedule(checks.updates, "configmap_default_other");
        EXPECT(sd_event_run(event, 0) > 0);
        EXPECT_EQ(checks.n_due, 1);
        EXPECT_EQ(checks.n_concerned, 1);
        object_updates_schedule(checks.updates, "secret_other_login");
        EXPECT(sd_event_run(event, 0) > 0);
        EXPECT_EQ(checks.n_concerned, 1);
        object_updates_schedule(checks.updates, UID);
        EXPECT(sd_event_run(event, 0) > 0);
        EXPECT_EQ(checks.n_concerned, 2);
        object_updates_schedule(checks.updates, NULL);
        EXPECT(sd_event_run(event, 0) > 0);
        EXPECT_EQ(checks.n_concerned, 3);
        EXPECT_EQ(sd_event_run(event, 0), 0);
        object_updates_free(checks.updates);
}
