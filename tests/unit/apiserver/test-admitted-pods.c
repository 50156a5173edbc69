/* SPDX-License-Identifier: Apache-2.0 */
/* The proof that the API server admits a DaemonSet's pod: which pods are kept as proof, for how
 * long, and for which sets. */

#include "agent/apiserver/admitted-pods.h"
#include "agent/apiserver/daemonset-admission.h"

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <stdio.h>
#include <unistd.h>

#define UID_OF "00000000-0000-4000-8000-%012u"

static DaemonSet *make_set(const char *namespace, unsigned number, const char *spec) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        char json[1024];
        DaemonSet *set;

        (void) snprintf(
                json, sizeof(json),
                "{\"apiVersion\":\"apps/v1\",\"kind\":\"DaemonSet\",\"metadata\":{\"name\":"
                "\"d\",\"namespace\":\"%s\",\"uid\":\"" UID_OF "\"},\"spec\":{\"selector\":{"
                "\"matchLabels\":{\"app\":\"d\"}},\"template\":{\"metadata\":{\"labels\":{"
                "\"app\":\"d\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"x:1\"}]"
                "%s}}}}",
                namespace, number, spec);
        REQUIRE(manifest_parse_api("d", "DaemonSet", json, strlen(json), "n1", &objects, NULL) ==
                0);
        REQUIRE(daemonset_copy(objects.daemonsets.items[0], &set) == 0);
        return set;
}

static Pod *make_pod(const DaemonSet *set) {
        char hash[REVISION_HASH_SIZE];
        Pod *pod;

        REQUIRE(daemonset_revision_hash(&set->spec.template, hash) == 0);
        REQUIRE(daemonset_make_pod(set, &set->spec.template, hash, 1, "n1", &pod) == 0);
        return pod;
}

/* The set's pod that the API server had bound to the node. */
static void add_bound_pod(AdmittedPods *pods, const char *namespace, unsigned number) {
        cleanup_with(daemonset_freep) DaemonSet *set = make_set(namespace, number, "");
        cleanup_with(pod_freep) Pod *pod = make_pod(set);

        REQUIRE(string_map_set(&pod->metadata.annotations, pod_source_annotation, "api") == 0);
        admitted_pods_add(pods, pod);
}

static bool is_known(const AdmittedPods *pods, const char *namespace, unsigned number) {
        cleanup_with(daemonset_freep) DaemonSet *set = make_set(namespace, number, "");
        cleanup_with(pod_freep) Pod *pod = NULL;

        return admitted_pods_find(pods, set, &pod) > 0;
}

typedef struct Store {
        sd_event *event;
        ApiServerCache *cache;
        AdmittedPods *pods;
} Store;

static void open_store(Store *store) {
        REQUIRE(sd_event_new(&store->event) >= 0);
        REQUIRE(apiserver_cache_new(store->event, test_directory(), NULL, &store->cache) == 0);
        REQUIRE(admitted_pods_new(store->cache, &store->pods) == 0);
}

static void close_store(Store *store) {
        admitted_pods_free(store->pods);
        apiserver_cache_free(store->cache);
        sd_event_unref(store->event);
}

TEST(last_pod_of_a_set_is_known_after_a_restart_until_the_set_is_gone)
{
        Store store;

        open_store(&store);
        add_bound_pod(store.pods, "team", 1);
        EXPECT(is_known(store.pods, "team", 1));
        EXPECT(!is_known(store.pods, "team", 2));
        EXPECT(!is_known(store.pods, "evil", 1));
        close_store(&store);
        open_store(&store);
        EXPECT(is_known(store.pods, "team", 1));
        EXPECT(!is_known(store.pods, "evil", 1));
        close_store(&store);
}

static bool is_never_needed(const char *uid, void *userdata) {
        return false;
}

TEST(pods_of_removed_sets_are_forgotten)
{
        Store store;

        open_store(&store);
        add_bound_pod(store.pods, "team", 1);
        admitted_pods_retain(store.pods, is_never_needed, NULL);
        EXPECT(!is_known(store.pods, "team", 1));
        close_store(&store);
        open_store(&store);
        EXPECT(!is_known(store.pods, "team", 1));
        close_store(&store);
}

TEST(pods_with_many_invented_owners_displace_only_those_of_their_namespace)
{
        Store store;

        open_store(&store);
        add_bound_pod(store.pods, "team", 1);
        for (unsigned i = 0; i < 300; i++)
                add_bound_pod(store.pods, "evil", i);
        EXPECT(is_known(store.pods, "team", 1));
        EXPECT(!is_known(store.pods, "evil", 0));
        EXPECT(is_known(store.pods, "evil", 299));
        close_store(&store);
}

TEST(only_additions_of_admission_may_differ_from_the_template)
{
        static const struct {
                const char *spec;
                bool is_alike;
        } cases[] = {
                { "", true },
                { ",\"serviceAccountName\":\"default\",\"enableServiceLinks\":true", true },
                { ",\"priority\":7,\"schedulerName\":\"s\"", true },
                { ",\"imagePullSecrets\":[{\"name\":\"p\"}]", true },
                { ",\"hostPID\":true", false },
                { ",\"securityContext\":{\"runAsUser\":0}", false },
                { ",\"securityContext\":{\"windowsOptions\":{\"hostProcess\":true}}", false },
                { ",\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/\"}}]", false },
                { ",\"serviceAccountName\":\"other\"", false },
                { ",\"hostUsers\":false", false },
                { ",\"initContainers\":[{\"name\":\"i\",\"image\":\"x\"}]", false },
        };
        cleanup_with(daemonset_freep) DaemonSet *set = make_set("team", 1, "");
        cleanup_with(pod_freep) Pod *made = make_pod(set);

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(daemonset_freep) DaemonSet *other = make_set("team", 1, cases[i].spec);
                cleanup_with(pod_freep) Pod *pod = make_pod(other);

                REQUIRE(string_map_set(&pod->metadata.annotations, pod_source_annotation, "api") ==
                        0);
                EXPECT_EQ(is_pod_made_alike(made, pod), cases[i].is_alike);
                if (!cases[i].is_alike)
                        EXPECT_EQ(is_pod_made_alike(pod, made), 0);
        }
}
