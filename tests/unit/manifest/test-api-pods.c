/* SPDX-License-Identifier: Apache-2.0 */

/* Pods as an API server has admitted them: with the fields that its defaults, its admission and its
 * controllers fill in, and with what it accepts and a manifest may not have. */

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

/* A pod of the API server with this spec; NULL with the message. */
static Pod *parse_api_pod(const char *metadata, const char *spec, Error *reterr) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_free char *json = NULL;
        Pod *pod;

        REQUIRE(asprintf(&json,
                         "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\","
                         "\"namespace\":\"default\","
                         "\"uid\":\"e1f2c3d4-1111-2222-3333-444455556666\"%s},\"spec\":{%s}}",
                         metadata, spec) > 0);
        if (manifest_parse_api("default/web", "Pod", json, strlen(json), "n1", &objects, reterr) <
            0)
                return NULL;
        REQUIRE(objects.pods.n == 1);
        pod = objects.pods.items[0];
        objects.pods.n = 0;
        return pod;
}

#define CONTAINER                                                                      \
        "\"containers\":[{\"name\":\"main\",\"image\":\"busybox:1\",\"resources\":{}," \
        "\"terminationMessagePath\":\"/dev/"                                           \
        "termination-log\",\"terminationMessagePolicy\":\"File\","                     \
        "\"imagePullPolicy\":\"IfNotPresent\"}]"

static bool is_accepted(const char *metadata, const char *spec) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(pod_freep) Pod *pod = parse_api_pod(metadata, spec, &error);

        if (!pod)
                (void) fprintf(stderr, "%s\n", error.message);
        return pod;
}

TEST(admitted_pod_has_both_its_priority_and_its_class)
{
        cleanup_with(pod_freep) Pod *pod =
                parse_api_pod("",
                              "\"priorityClassName\":\"important\",\"priority\":5000,"
                              "\"preemptionPolicy\":\"Never\"," CONTAINER,
                              NULL);

        REQUIRE(pod);
        EXPECT_STREQ(pod->spec.priority_class_name, "important");
        EXPECT_EQ(pod->spec.priority.value, 5000);
}

/* LimitRanger, PodNodeSelector, DefaultTolerationSeconds, PodTopologyLabels, ServiceAccount,
 * RuntimeClass, Priority, ExtendedResourceToleration; defaults; schedulers and controllers. */
TEST(fields_that_admission_fills_in_are_accepted)
{
        static const char metadata[] =
                ",\"generateName\":\"web-\",\"resourceVersion\":\"7\",\"generation\":3,"
                "\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"deletionGracePeriodSeconds\":30,"
                "\"deletionTimestamp\":\"2026-01-02T03:04:05Z\",\"selfLink\":\"/x\","
                "\"labels\":{\"topology.kubernetes.io/zone\":\"a\",\"pod-template-hash\":\"6b\"},"
                "\"annotations\":{\"kubernetes.io/limit-ranger\":\"LimitRanger plugin set: cpu\","
                "\"container.seccomp.security.alpha.kubernetes.io/other\":\"unconfined\"},"
                "\"finalizers\":[\"batch.kubernetes.io/job-tracking\"],"
                "\"ownerReferences\":[{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\","
                "\"name\":\"t\",\"uid\":\"thing-1\",\"controller\":true}],"
                "\"managedFields\":[{\"manager\":\"kubectl\",\"fieldsV1\":{\"f:spec\":{}}}]";
        static const char spec[] =
                "\"volumes\":[{\"name\":\"kube-api-access-x\",\"projected\":{\"defaultMode\":420,"
                "\"sources\":[{\"serviceAccountToken\":{\"expirationSeconds\":3607,"
                "\"path\":\"token\"}},{\"configMap\":{\"name\":\"kube-root-ca.crt\",\"items\":"
                "[{\"key\":\"ca.crt\",\"path\":\"ca.crt\"}]}},{\"downwardAPI\":{\"items\":"
                "[{\"path\":\"namespace\",\"fieldRef\":{\"apiVersion\":\"v1\","
                "\"fieldPath\":\"metadata.namespace\"}}]}}]}}],"
                "\"containers\":[{\"name\":\"main\",\"image\":\"busybox:1\",\"resources\":{"
                "\"limits\":{\"cpu\":\"1\",\"memory\":\"64Mi\",\"nvidia.com/gpu\":\"1\","
                "\"ephemeral-storage\":\"1Gi\",\"hugepages-2Mi\":\"4Mi\"},"
                "\"requests\":{\"cpu\":\"100m\",\"memory\":\"64Mi\",\"nvidia.com/gpu\":\"1\","
                "\"ephemeral-storage\":\"1Gi\",\"hugepages-2Mi\":\"4Mi\"}},"
                "\"ports\":[{\"containerPort\":80,\"hostPort\":80,\"protocol\":\"TCP\"}],"
                "\"livenessProbe\":{\"httpGet\":{\"path\":\"/\",\"port\":\"none\","
                "\"scheme\":\"HTTP\"},\"timeoutSeconds\":1,\"periodSeconds\":10,"
                "\"successThreshold\":1,\"failureThreshold\":3},"
                "\"securityContext\":{\"windowsOptions\":{\"runAsUserName\":\"x\"}},"
                "\"terminationMessagePath\":\"/dev/termination-log\","
                "\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\","
                "\"resizePolicy\":[{\"resourceName\":\"cpu\",\"restartPolicy\":\"NotRequired\"}]}],"
                "\"ephemeralContainers\":[{\"name\":\"debug\",\"image\":\"busybox\"}],"
                "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,"
                "\"dnsPolicy\":\"ClusterFirst\",\"serviceAccountName\":\"default\","
                "\"serviceAccount\":\"default\",\"automountServiceAccountToken\":true,"
                "\"nodeName\":\"n1\",\"nodeSelector\":{\"pool\":\"a\"},\"hostNetwork\":true,"
                "\"securityContext\":{\"windowsOptions\":{\"hostProcess\":false}},"
                "\"imagePullSecrets\":[{\"name\":\"pull\"}],\"schedulerName\":\"default-"
                "scheduler\","
                "\"tolerations\":[{\"key\":\"node.kubernetes.io/"
                "not-ready\",\"operator\":\"Exists\","
                "\"effect\":\"NoExecute\",\"tolerationSeconds\":300},"
                "{\"key\":\"nvidia.com/gpu\",\"operator\":\"Exists\"}],"
                "\"priorityClassName\":\"important\",\"priority\":5000,"
                "\"enableServiceLinks\":true,\"preemptionPolicy\":\"Never\","
                "\"overhead\":{\"cpu\":\"250m\",\"memory\":\"120Mi\"},"
                "\"runtimeClassName\":\"kata\",\"os\":{\"name\":\"linux\"},"
                "\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topologyKey\":\"zone\","
                "\"whenUnsatisfiable\":\"DoNotSchedule\"}],"
                "\"schedulingGates\":[],\"readinessGates\":[{\"conditionType\":\"a.example/b\"}],"
                "\"workloadRef\":{\"name\":\"w\"},\"schedulingGroup\":{\"podGroupName\":\"g\"},"
                "\"resources\":{\"limits\":{\"cpu\":\"2\",\"memory\":\"1Gi\","
                "\"hugepages-2Mi\":\"4Mi\"},\"requests\":{\"cpu\":\"1\",\"memory\":\"1Gi\","
                "\"hugepages-2Mi\":\"4Mi\"}}";

        EXPECT(is_accepted(metadata, spec));
}

/* Such a pod is rejected when it is to start, with the kubelet's reason. */
TEST(pod_for_another_system_can_be_read)
{
        cleanup_with(pod_freep) Pod *pod = parse_api_pod(
                "",
                "\"os\":{\"name\":\"windows\"},\"securityContext\":{\"windowsOptions\":"
                "{\"hostProcess\":true}},\"hostNetwork\":true," CONTAINER,
                NULL);

        REQUIRE(pod && pod->spec.os);
        EXPECT_EQ(pod->spec.os->name, OS_WINDOWS);
}

/* What the server does not look at, and what is refused of a manifest. */
TEST(values_that_only_a_manifest_must_not_have_are_accepted)
{
        static const char spec[] =
                "\"affinity\":{\"nodeAffinity\":{"
                "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":1,"
                "\"preference\":{\"matchExpressions\":[{\"key\":\"disk\",\"operator\":\"Gt\","
                "\"values\":[\"1Gi\"]}]}}]}},"
                "\"initContainers\":[{\"name\":\"init\",\"image\":\"busybox:1\",\"resizePolicy\":"
                "[{\"resourceName\":\"cpu\",\"restartPolicy\":\"NotRequired\"}]}],"
                "\"volumes\":[{\"name\":\"none\",\"configMap\":{\"name\":\"../$(X)\","
                "\"optional\":true}}]," CONTAINER;

        EXPECT(is_accepted("", spec));
}

TEST(grace_period_of_more_than_32_bits_is_the_longest_one)
{
        cleanup_with(pod_freep) Pod *pod =
                parse_api_pod("", "\"terminationGracePeriodSeconds\":4294967296," CONTAINER, NULL);

        REQUIRE(pod);
        EXPECT_EQ(pod->spec.termination_grace_period_seconds.value, INT32_MAX);
}
