/* SPDX-License-Identifier: Apache-2.0 */
/* Adoption: which running pod of a DaemonSet the controller's pod takes over, and how the adopted
 * pod follows changes. */

#include "agent/apiserver/daemonset-pod-adoption.h"

#include "agent/daemonset/rules/rules.h"
#include "agent/manifest/manifest.h"
#include "agent/model/pod-adoption.h"
#include "common/cleanup.h"
#include "tests/test.h"

#define SET_UID "ed4039d5-875b-439a-b39a-04074960c986"
#define API_UID "535c4d56-4cff-442f-93c7-788ab0747ce4"

#define SPEC(image) "{\"containers\":[{\"name\":\"c\",\"image\":\"" image "\"}]}"

static const char daemonset_json[] =
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"DaemonSet\",\"metadata\":{\"name\":\"logd\","
        "\"namespace\":\"default\",\"uid\":\"" SET_UID "\"},\"spec\":{\"selector\":{"
        "\"matchLabels\":{\"name\":\"logd\"}},\"template\":{\"metadata\":{\"labels\":{\"name\":"
        "\"logd\"}},\"spec\":" SPEC("x:1") "}}}";

/* The pod that this node creates for the DaemonSet. */
static Pod *make_local_pod(void) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        char hash[REVISION_HASH_SIZE];
        const DaemonSet *set;
        Pod *pod;

        REQUIRE(manifest_parse_api("p", "DaemonSet", daemonset_json, strlen(daemonset_json), "n1",
                                   &objects, NULL) == 0);
        set = objects.daemonsets.items[0];
        REQUIRE(daemonset_revision_hash(&set->spec.template, hash) == 0);
        REQUIRE(daemonset_make_pod(set, &set->spec.template, hash, 1, "n1", &pod) == 0);
        return pod;
}

/* The pod that the controller binds, with the node's tolerations, labels and affinity. */
static Pod *make_api_pod(const Pod *local_pod, const char *image) {
        Pod *pod;

        REQUIRE(pod_copy(local_pod, &pod) == 0);
        free(pod->metadata.name);
        free(pod->metadata.uid);
        free(pod->spec.containers.items[0].image);
        pod->metadata.name = strdup("logd-fdzrp");
        pod->metadata.uid = strdup(API_UID);
        pod->spec.containers.items[0].image = strdup(image);
        REQUIRE(string_map_set(&pod->metadata.annotations, pod_source_annotation, "api") == 0);
        return pod;
}

static PodStatus ready_status(void) {
        PodStatus status = { .phase = POD_RUNNING };

        status.conditions[CONDITION_READY].is_true = true;
        return status;
}

static int check_candidate(AdoptionSearch *search, const Pod *pod, const PodStatus *status) {
        return adoption_search_check(
                search,
                &(AdoptionCandidate){ .pod = pod, .status = status, .is_evaluated_here = true });
}

/* A user made the pod by hand, with the set as its owner and with labels that the set does not
 * select. */
TEST(pod_that_its_daemonset_does_not_control_neither_adopts_nor_waits)
{
        cleanup_with(pod_freep) Pod *local_pod = make_local_pod();
        cleanup_with(pod_freep) Pod *desired = make_api_pod(local_pod, "x:1");
        AdoptionSearch search = { .desired = desired };
        PodStatus status = ready_status();

        EXPECT_EQ(check_candidate(&search, local_pod, &status), 0);
        EXPECT(!search.adopted && !search.is_blocked && !search.serving_pod);
}

TEST(ready_pod_of_the_same_template_is_adopted)
{
        cleanup_with(pod_freep) Pod *local_pod = make_local_pod();
        cleanup_with(pod_freep) Pod *desired = make_api_pod(local_pod, "x:1");
        cleanup_with(pod_freep) Pod *adopted = NULL;
        AdoptionSearch search = { .desired = desired, .is_of_daemonset = true };
        PodStatus status = ready_status();

        EXPECT_EQ(check_candidate(&search, local_pod, &status), 0);
        adopted = search.adopted;
        REQUIRE(adopted);
        EXPECT_STREQ(adopted->metadata.uid, local_pod->metadata.uid);
        EXPECT_STREQ(adopted->metadata.name, local_pod->metadata.name);
        EXPECT_STREQ(pod_adoption_api_uid(adopted), API_UID);
}

TEST(ready_pod_of_another_template_keeps_serving_and_is_not_adopted)
{
        cleanup_with(pod_freep) Pod *local_pod = make_local_pod();
        cleanup_with(pod_freep) Pod *desired = make_api_pod(local_pod, "x:2");
        AdoptionSearch search = { .desired = desired, .is_of_daemonset = true };
        PodStatus status = ready_status();

        EXPECT_EQ(check_candidate(&search, local_pod, &status), 0);
        EXPECT(!search.adopted && search.is_blocked);
        EXPECT(search.serving_pod == local_pod);
}

TEST(pod_whose_status_is_not_known_yet_is_waited_for)
{
        cleanup_with(pod_freep) Pod *local_pod = make_local_pod();
        cleanup_with(pod_freep) Pod *desired = make_api_pod(local_pod, "x:1");
        AdoptionSearch search = { .desired = desired, .is_of_daemonset = true };
        PodStatus status = { .is_syncing = true };

        EXPECT_EQ(check_candidate(&search, local_pod, &status), 0);
        EXPECT(!search.adopted && search.is_blocked);
        EXPECT(search.syncing_pod == local_pod);
}

TEST(unready_or_terminating_pod_is_not_adopted_but_waited_for)
{
        cleanup_with(pod_freep) Pod *local_pod = make_local_pod();
        cleanup_with(pod_freep) Pod *desired = make_api_pod(local_pod, "x:1");
        PodStatus pending = { .phase = POD_PENDING }, terminating = ready_status();
        const PodStatus *statuses[] = { &pending, &terminating };

        terminating.deletion_time = 1;
        for (size_t i = 0; i < N_ELEMENTS(statuses); i++) {
                AdoptionSearch search = { .desired = desired, .is_of_daemonset = true };

                EXPECT_EQ(check_candidate(&search, local_pod, statuses[i]), 0);
                EXPECT(search.is_blocked && !search.adopted);
                EXPECT(!search.serving_pod && !search.syncing_pod);
        }
}

TEST(static_pods_other_daemonsets_and_adopted_pods_are_not_candidates)
{
        cleanup_with(pod_freep) Pod *local_pod = make_local_pod();
        cleanup_with(pod_freep) Pod *desired = make_api_pod(local_pod, "x:1");
        cleanup_with(pod_freep) Pod *other = make_local_pod();
        PodStatus status = ready_status();
        AdoptionSearch search = { .desired = desired, .is_of_daemonset = true };
        AdoptionCandidate of_file = { .pod = local_pod, .status = &status };
        AdoptionCandidate elsewhere = { .pod = local_pod,
                                        .status = &status,
                                        .is_evaluated_here = true,
                                        .is_adopted_elsewhere = true };

        other->metadata.owner_references.items[0].uid[0] = 'f';
        EXPECT_EQ(adoption_search_check(&search, &of_file), 0);
        EXPECT_EQ(adoption_search_check(&search, &elsewhere), 0);
        EXPECT_EQ(check_candidate(&search, other, &status), 0);
        EXPECT(!search.is_blocked && !search.adopted);
}

/* A table entry that has adopted the local pod, as it is restored from the pod's record. */
static ApiServerPod *restore_adopted(PodTable *table, const Pod *local_pod) {
        cleanup_with(pod_freep) Pod *desired = make_api_pod(local_pod, "x:1");
        cleanup_with(pod_freep) Pod *adopted = NULL;

        REQUIRE(pod_adoption_make(local_pod, desired, EDIT_IN_PLACE, &adopted) == 1);
        REQUIRE(adopted_pod_restore(table, adopted) == 0);
        REQUIRE(table->first);
        return table->first;
}

TEST(adopted_pod_of_an_earlier_agent_is_found_by_its_record)
{
        cleanup_with(pod_freep) Pod *local_pod = make_local_pod();
        cleanup_with(pod_table_done) PodTable table = { 0 };
        ApiServerPod *pod = restore_adopted(&table, local_pod);

        EXPECT_STREQ(pod->key, "default/logd-fdzrp");
        EXPECT_STREQ(pod->bound.desired->metadata.uid, API_UID);
        EXPECT(adopted_pod_find_entry(&table, pod->bound.adopted) == pod);
        EXPECT(adopted_pod_find_entry(&table, local_pod) == NULL);
        EXPECT_STREQ(adopted_pod_reported_uid(pod, pod->bound.adopted), API_UID);
        EXPECT(pod_table_find_adopted(&table, local_pod, NULL) == pod);
        EXPECT(!pod_table_find_adopted(&table, local_pod, pod));
        EXPECT_EQ(adopted_pod_update(pod), 1);
}

TEST(new_template_restarts_the_containers_of_the_adopted_pod)
{
        cleanup_with(pod_freep) Pod *local_pod = make_local_pod();
        cleanup_with(pod_table_done) PodTable table = { 0 };
        ApiServerPod *pod = restore_adopted(&table, local_pod);
        Pod *changed = make_api_pod(local_pod, "x:2");

        EXPECT_EQ(bound_pod_update_take(&pod->bound, &changed), 1);
        EXPECT_EQ(adopted_pod_update(pod), 1);
        EXPECT_STREQ(pod->bound.adopted->metadata.uid, local_pod->metadata.uid);
        EXPECT_STREQ(pod->bound.adopted->spec.containers.items[0].image, "x:2");
}

TEST(another_pod_of_the_controller_ends_the_adoption)
{
        cleanup_with(pod_freep) Pod *local_pod = make_local_pod();
        cleanup_with(pod_table_done) PodTable table = { 0 };
        ApiServerPod *pod = restore_adopted(&table, local_pod);
        Pod *next = make_api_pod(local_pod, "x:1");

        next->metadata.uid[0] = 'f';
        EXPECT_EQ(bound_pod_update_take(&pod->bound, &next), 1);
        EXPECT_EQ(adopted_pod_update(pod), 0);
        EXPECT(!pod->bound.adopted);
}

TEST(event_of_an_adopted_pod_is_sent_for_the_api_pod)
{
        cleanup_with(pod_freep) Pod *local_pod = make_local_pod();
        cleanup_with(pod_table_done) PodTable table = { 0 };
        cleanup_free char *event = NULL, *renamed = NULL;

        restore_adopted(&table, local_pod);
        REQUIRE(asprintf(&event,
                         "{\"metadata\":{\"name\":\"%s.17\"},\"involvedObject\":{\"name\":\"%s\","
                         "\"uid\":\"%s\"}}",
                         local_pod->metadata.name, local_pod->metadata.name,
                         local_pod->metadata.uid) > 0);
        renamed = adopted_pod_rename_event(&table, event);
        EXPECT_STREQ(renamed,
                     "{\"metadata\":{\"name\":\"logd-fdzrp.17\"},\"involvedObject\":{\"name\":"
                     "\"logd-fdzrp\",\"uid\":\"" API_UID "\"}}");
        EXPECT(!adopted_pod_rename_event(&table, "{\"metadata\":{\"name\":\"web.1\"}}"));
}
