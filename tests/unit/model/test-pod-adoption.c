/* SPDX-License-Identifier: Apache-2.0 */
/* Adoption: compares the pod that this node creates for a DaemonSet with the pod that a controller
 * manager creates for the same set and that admission changes. */

#include "agent/model/pod-adoption.h"

#include "agent/daemonset/rules/rules.h"
#include "agent/manifest/manifest.h"
#include "agent/model/own-values.h"
#include "common/cleanup.h"
#include "tests/test.h"

#define UID "535c4d56-4cff-442f-93c7-788ab0747ce4"

static const char set_json[] =
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"DaemonSet\",\"metadata\":{\"name\":\"logd\","
        "\"namespace\":\"kube-system\",\"uid\":\"ed4039d5-875b-439a-b39a-04074960c986\"},\"spec\":{"
        "\"selector\":{\"matchLabels\":{\"name\":\"logd\"}},\"template\":{\"metadata\":{\"labels\":"
        "{\"name\":\"logd\"}},\"spec\":{\"volumes\":[{\"name\":\"varlog\",\"hostPath\":{\"path\":"
        "\"/var/log\",\"type\":\"\"}}],\"initContainers\":[{\"name\":\"first\",\"image\":\"x:1\"}],"
        "\"containers\":[{\"name\":\"logd\",\"image\":\"x:1\",\"resources\":{\"limits\":{"
        "\"memory\":\"200Mi\"},\"requests\":{\"cpu\":\"100m\",\"memory\":\"200Mi\"}},"
        "\"volumeMounts\":[{\"name\":\"varlog\",\"mountPath\":\"/var/log\"}],\"readinessProbe\":{"
        "\"exec\":{\"command\":[\"true\"]},\"timeoutSeconds\":1,\"periodSeconds\":2,"
        "\"successThreshold\":1,\"failureThreshold\":3}}],\"restartPolicy\":\"Always\","
        "\"terminationGracePeriodSeconds\":5,\"dnsPolicy\":\"ClusterFirst\",\"securityContext\":{},"
        "\"schedulerName\":\"default-scheduler\"}}}}";

static const char token_volume[] =
        "{\"name\":\"kube-api-access-fql27\",\"projected\":{\"sources\":[{\"serviceAccountToken\":{"
        "\"expirationSeconds\":3607,\"path\":\"token\"}},{\"configMap\":{\"name\":"
        "\"kube-root-ca.crt\",\"items\":[{\"key\":\"ca.crt\",\"path\":\"ca.crt\"}]}},{"
        "\"downwardAPI\":{\"items\":[{\"path\":\"namespace\",\"fieldRef\":{\"apiVersion\":\"v1\","
        "\"fieldPath\":\"metadata.namespace\"}}]}}],\"defaultMode\":420}}";

static const char token_mount[] =
        "{\"name\":\"kube-api-access-fql27\",\"readOnly\":true,"
        "\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}";

/* The %s stand for the volumes, the mounts, further fields of the container, and further fields of
 * the spec. */
static const char pod_json[] =
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"logd-fdzrp\","
        "\"generateName\":\"logd-\",\"namespace\":\"kube-system\",\"uid\":\"" UID "\","
        "\"labels\":{\"controller-revision-hash\":\"b5d476d4f\",\"name\":\"logd\","
        "\"pod-template-generation\":\"1\"},\"ownerReferences\":[{\"apiVersion\":\"apps/v1\","
        "\"kind\":\"DaemonSet\",\"name\":\"logd\",\"uid\":\"ed4039d5-875b-439a-b39a-04074960c986\","
        "\"controller\":true,\"blockOwnerDeletion\":true}]},\"spec\":{\"volumes\":[{\"name\":"
        "\"varlog\",\"hostPath\":{\"path\":\"/var/log\",\"type\":\"\"}}%s],\"initContainers\":[{"
        "\"name\":\"first\",\"image\":\"x:1\",\"volumeMounts\":[%s]}],\"containers\":[{\"name\":"
        "\"logd\",%s\"resources\":{\"limits\":{\"memory\":\"200Mi\"},\"requests\":{\"cpu\":"
        "\"100m\",\"memory\":\"200Mi\"}},\"volumeMounts\":[{\"name\":\"varlog\",\"mountPath\":"
        "\"/var/log\"}%s],\"readinessProbe\":{\"exec\":{\"command\":[\"true\"]},"
        "\"timeoutSeconds\":1,\"periodSeconds\":2,\"successThreshold\":1,\"failureThreshold\":3},"
        "\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\","
        "\"imagePullPolicy\":\"IfNotPresent\"}],\"restartPolicy\":\"Always\","
        "\"terminationGracePeriodSeconds\":5,\"dnsPolicy\":\"ClusterFirst\",%s\"nodeName\":"
        "\"node1\",\"securityContext\":{},\"affinity\":{\"nodeAffinity\":{"
        "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
        "\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"node1\"]}]}]"
        "}}},\"schedulerName\":\"default-scheduler\",\"tolerations\":[{\"key\":"
        "\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"}],"
        "\"priority\":0,\"preemptionPolicy\":\"PreemptLowerPriority\"},"
        "\"status\":{\"phase\":\"Pending\",\"qosClass\":\"Burstable\"}}";

static ManifestObjects parse_api_object(const char *kind, const char *json) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse_api("api", kind, json, strlen(json), "node1", &objects, &error);

        if (r < 0)
                test_fail(__FILE__, __LINE__, json, "is refused: %s", error_message(&error, r));
        REQUIRE(r == 0);
        return objects;
}

/* The pod that this node creates for the set. */
static Pod *make_ours(void) {
        cleanup_with(manifest_objects_done) ManifestObjects objects =
                parse_api_object("DaemonSet", set_json);
        const DaemonSet *set = objects.daemonsets.items[0];
        Pod *pod;

        REQUIRE(daemonset_make_pod(set, &set->spec.template, "abc", 1, "node1", &pod) == 0);
        return pod;
}

/* The pod that the controller created, with or without the changes of admission, and with further
 * fields. */
typedef struct Theirs {
        bool has_token;
        const char *container; /* fields followed by a comma */
        const char *spec;      /* likewise */
} Theirs;

static Pod *make_theirs(const Theirs *theirs) {
        cleanup_free char *volumes = NULL, *mounts = NULL, *json = NULL;
        const char *container = theirs->container ? theirs->container : "\"image\":\"x:1\",";
        ManifestObjects objects;
        Pod *pod;

        REQUIRE(asprintf(&volumes, ",%s", token_volume) > 0);
        REQUIRE(asprintf(&mounts, ",%s", token_mount) > 0);
        REQUIRE(asprintf(&json, pod_json, theirs->has_token ? volumes : "",
                         theirs->has_token ? token_mount : "", container,
                         theirs->has_token ? mounts : "", strna(theirs->spec)) > 0);
        objects = parse_api_object("Pod", json);
        pod = objects.pods.items[0];
        objects.pods.n = 0;
        manifest_objects_done(&objects);
        return pod;
}

static const char admitted[] = "\"serviceAccountName\":\"default\",\"serviceAccount\":\"default\","
                               "\"enableServiceLinks\":true,";

TEST(pod_of_the_same_template_is_adopted_whatever_admission_adds)
{
        static const Theirs cases[] = {
                { .has_token = true, .spec = admitted },
                { .has_token = false, .spec = admitted },
                { .has_token = false, .spec = "\"automountServiceAccountToken\":false," },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(pod_freep) Pod *ours = make_ours(), *theirs = make_theirs(&cases[i]);
                cleanup_with(pod_freep) Pod *adopted = NULL;
                cleanup_free char *name = NULL;

                EXPECT_EQ(pod_adoption_make(ours, theirs, EDIT_IN_PLACE, &adopted), 1);
                REQUIRE(adopted != NULL);
                EXPECT_STREQ(adopted->metadata.name, ours->metadata.name);
                EXPECT_STREQ(adopted->metadata.uid, ours->metadata.uid);
                EXPECT_STREQ(pod_adoption_api_uid(adopted), UID);
                name = pod_adoption_api_name(adopted);
                EXPECT_STREQ(name, "logd-fdzrp");
                EXPECT_STREQ(string_map_get(&adopted->metadata.labels, "controller-revision-hash"),
                             "b5d476d4f");
                EXPECT_EQ(adopted->spec.volumes.n, (size_t) 1);
                EXPECT_EQ(adopted->spec.init_containers.items[0].volume_mounts.n, (size_t) 0);
                EXPECT_EQ(adopted->spec.containers.items[0].volume_mounts.n, (size_t) 1);
        }
}

TEST(pod_of_a_different_template_is_not_adopted)
{
        static const Theirs cases[] = {
                { .container = "\"image\":\"x:2\"," },
                { .container = "\"image\":\"x:1\",\"env\":[{\"name\":\"A\",\"value\":\"b\"}]," },
                { .spec = "\"hostNetwork\":true," },
                { .spec = "\"serviceAccountName\":\"robot\"," },
                { .spec = "\"enableServiceLinks\":false," },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(pod_freep) Pod *ours = make_ours(), *theirs = make_theirs(&cases[i]);
                cleanup_with(pod_freep) Pod *adopted = NULL;

                EXPECT_EQ(pod_adoption_make(ours, theirs, EDIT_IN_PLACE, &adopted), 0);
                EXPECT(adopted == NULL);
        }
}

TEST(adopted_pod_follows_edits_of_the_api_servers_pod)
{
        cleanup_with(pod_freep) Pod *ours = make_ours();
        cleanup_with(pod_freep) Pod *theirs = make_theirs(&(Theirs){ .has_token = true });
        cleanup_with(pod_freep) Pod *edited =
                make_theirs(&(Theirs){ .has_token = true, .container = "\"image\":\"x:2\"," });
        cleanup_with(pod_freep) Pod *adopted = NULL, *next = NULL;

        REQUIRE(pod_adoption_make(ours, theirs, EDIT_IN_PLACE, &adopted) == 1);
        EXPECT_EQ(pod_adoption_make(adopted, edited, EDIT_IN_PLACE, &next), 0);
        EXPECT_EQ(pod_adoption_make(adopted, edited, EDIT_RESTART_CONTAINER, &next), 1);
        REQUIRE(next != NULL);
        EXPECT_STREQ(next->spec.containers.items[0].image, "x:2");
        EXPECT_EQ(next->spec.volumes.n, (size_t) 1);
        EXPECT_STREQ(next->metadata.uid, ours->metadata.uid);
}

TEST(adoption_is_restored_from_the_annotation)
{
        cleanup_with(pod_freep) Pod *ours = make_ours();
        cleanup_with(pod_freep) Pod *theirs = make_theirs(&(Theirs){ .has_token = true });
        cleanup_with(pod_freep) Pod *adopted = NULL, *api_pod = NULL;

        REQUIRE(pod_adoption_make(ours, theirs, EDIT_IN_PLACE, &adopted) == 1);
        REQUIRE(pod_adoption_restore_api_pod(adopted, &api_pod) == 0);
        EXPECT_STREQ(api_pod->metadata.name, "logd-fdzrp");
        EXPECT_STREQ(api_pod->metadata.uid, UID);
        EXPECT_STREQ(object_controller(&api_pod->metadata)->name, "logd");
        EXPECT(pod_is_of_api(api_pod));
}

TEST(annotation_of_a_foreign_pod_is_ignored)
{
        cleanup_with(pod_freep) Pod *ours = make_ours(), *theirs = make_theirs(&(Theirs){ 0 });

        EXPECT(pod_adoption_api_uid(ours) == NULL);
        REQUIRE(own_value_set(&ours->metadata, OWN_KEY_COVERS, "a/b") >= 0);
        EXPECT(pod_adoption_api_uid(ours) == NULL);
        REQUIRE(own_value_set(&theirs->metadata, OWN_KEY_COVERS, "a/b") >= 0);
        EXPECT(pod_adoption_api_uid(theirs) == NULL);
        EXPECT(pod_adoption_api_name(theirs) == NULL);
}
