/* SPDX-License-Identifier: Apache-2.0 */

/* Pods as an API server has admitted them: with the fields that its defaults, its admission and its
 * controllers fill in, and with fields that it accepts and a manifest may not have. */

#include "agent/manifest/manifest.h"
#include "agent/model/containers.h"
#include "agent/model/json.h"
#include "agent/model/match.h"
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

/* Such a pod is rejected at its start, with the kubelet's reason. */
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

/* Fields that the API server does not check, and fields that are refused in a manifest. */
TEST(values_that_are_invalid_only_in_manifests_are_accepted)
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

/* ---- rules of this agent that an API server does not have ---- */

#define MAIN(fields) "\"containers\":[{\"name\":\"main\",\"image\":\"busybox:1\"," fields "}]"
#define POD_VOLUME(source, mount)                                                        \
        "\"volumes\":[{\"name\":\"v\"," source "}]," MAIN("\"volumeMounts\":[{\"name\":" \
                                                          "\"v\",\"mountPath\":\"" mount "\"}]")
#define PROBE(action) MAIN("\"livenessProbe\":{\"successThreshold\":1," action "}")
#define ENV(source)   MAIN("\"env\":[{\"name\":\"A\",\"valueFrom\":{" source "}}]")

TEST(rules_of_manifests_do_not_apply_to_pods_of_an_api_server)
{
        static const char *const specs[] = {
                POD_VOLUME("\"hostPath\":{\"path\":\"relative\"}", "/v"),
                POD_VOLUME("\"emptyDir\":{}", "/a:b"),
                POD_VOLUME("\"persistentVolumeClaim\":{\"claimName\":\"Not_A_Name\"}", "/v"),
                POD_VOLUME("\"configMap\":{\"name\":\"m\",\"items\":[{\"key\":\"a b\",\"path\":"
                           "\"f\"}]}",
                           "/v"),
                POD_VOLUME("\"downwardAPI\":{\"items\":[{\"path\":\"f\",\"resourceFieldRef\":{"
                           "\"containerName\":\"none\",\"resource\":\"limits.cpu\"}}]}",
                           "/v"),
                ENV("\"resourceFieldRef\":{\"containerName\":\"none\",\"resource\":\"limits."
                    "cpu\"}"),
                ENV("\"resourceFieldRef\":{\"resource\":\"limits.hugepages-64Ki\"}"),
                MAIN("\"terminationMessagePath\":\"/a:b\""),
                MAIN("\"securityContext\":{\"capabilities\":{\"add\":[\"FLY\"],\"drop\":[\"X\"]}}"),
                MAIN("\"securityContext\":{\"allowPrivilegeEscalation\":false,\"capabilities\":{"
                     "\"add\":[\"SYS_ADMIN\"]}}"),
                MAIN("\"securityContext\":{\"seccompProfile\":{\"type\":\"Localhost\","
                     "\"localhostProfile\":\"\"}}"),
                PROBE("\"httpGet\":{\"port\":80,\"path\":\"/a\\nb\",\"host\":\"a/b\","
                      "\"httpHeaders\":[{\"name\":\"A\",\"value\":\"a\\nb\"}]}"),
                PROBE("\"tcpSocket\":{\"port\":\"no-port\",\"host\":\"a/b\"}"),
                "\"hostUsers\":false,\"securityContext\":{\"runAsUser\":70000,\"fsGroup\":70000,"
                "\"supplementalGroups\":[70000]}," CONTAINER,
                "\"securityContext\":{\"sysctls\":[{\"name\":\"kernel.shmmax\",\"value\":\"\"},"
                "{\"name\":\"kernel.shmall\",\"value\":\"1\\n2\"}]}," CONTAINER,
                "\"dnsConfig\":{\"nameservers\":[\"010.0.0.1\"],\"options\":[{\"name\":\"a b\","
                "\"value\":\"c d\"}]},\"hostAliases\":[{\"ip\":\"010.0.0.1\"}]," CONTAINER,
                "\"initContainers\":[{\"name\":\"s\",\"image\":\"i\",\"restartPolicy\":\"Always\","
                "\"ports\":[{\"containerPort\":80,\"hostPort\":80}]}]," MAIN(
                        "\"ports\":[{\"containerPort\":80,\"hostPort\":80}]"),
                "\"affinity\":{\"podAffinity\":{"
                "\"preferredDuringSchedulingIgnoredDuringExecution\":"
                "[{\"weight\":1,\"podAffinityTerm\":{\"topologyKey\":\"a\",\"labelSelector\":{"
                "\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"a "
                "b\"]}]}}}]"
                "}}," CONTAINER,
        };

        for (size_t i = 0; i < N_ELEMENTS(specs); i++) {
                cleanup_error Error error = ERROR_NULL;
                cleanup_with(pod_freep) Pod *pod = parse_api_pod("", specs[i], &error),
                                            *again = NULL;
                cleanup_free char *record = NULL;

                if (!pod) {
                        test_fail(__FILE__, __LINE__, specs[i], "is refused: %s", error.message);
                        continue;
                }
                record = pod_to_json(pod, NULL);
                REQUIRE(record);
                if (manifest_parse_record(record, strlen(record), &again, &error) < 0)
                        test_fail(__FILE__, __LINE__, record, "is no record: %s", error.message);
        }
}

TEST(annotations_of_this_agent_are_not_read_in_pods_of_an_api_server)
{
        EXPECT(is_accepted(",\"annotations\":{\"mainstay.dev/critical\":\"maybe\","
                           "\"mainstay.dev/after\":\"No Name\","
                           "\"mainstay.dev/progress-deadline-seconds\":\"x\","
                           "\"cdi.k8s.io/gpu\":\"vendor.com/gpu=0\"}",
                           CONTAINER));
}

/* The API server stores each variable twice: in the spec, and in the entry of its field manager. */
TEST(a_pod_of_many_variables_is_accepted)
{
        char *metadata = NULL, *spec = NULL;
        size_t n = 20000, size;
        FILE *out = open_memstream(&metadata, &size);

        REQUIRE(out);
        fputs(",\"managedFields\":[{\"fieldsV1\":{\"f:env\":{\".\":{}", out);
        for (size_t i = 0; i < n; i++)
                fprintf(out,
                        ",\"k:{\\\"name\\\":\\\"A%zu\\\"}\":"
                        "{\".\":{},\"f:name\":{},\"f:value\":{}}",
                        i);
        fputs("}}}]", out);
        REQUIRE(fclose(out) == 0);
        out = open_memstream(&spec, &size);
        REQUIRE(out);
        fputs("\"containers\":[{\"name\":\"main\",\"image\":\"i\",\"env\":[", out);
        for (size_t i = 0; i < n; i++)
                fprintf(out, "%s{\"name\":\"A%zu\",\"value\":\"1\"}", i > 0 ? "," : "", i);
        fputs("]}]", out);
        REQUIRE(fclose(out) == 0);
        EXPECT(is_accepted(metadata, spec));
        free(metadata);
        free(spec);
}

/* Lists that a server keeps as a whole can be longer than those whose items have managers. */
TEST(lists_of_a_pod_may_be_as_long_as_the_server_accepts)
{
        static const struct {
                const char *start, *before, *after, *end;
        } lists[] = {
                { "\"tolerations\":[", "{\"operator\":\"Exists\",\"key\":\"k", "\"}",
                  "]," CONTAINER },
                { "\"securityContext\":{\"sysctls\":[", "{\"value\":\"1\",\"name\":\"net.a", "\"}",
                  "]}," CONTAINER },
                { "\"securityContext\":{\"supplementalGroups\":[", "", "", "]}," CONTAINER },
                { "\"volumes\":[{\"name\":\"v\",\"projected\":{\"sources\":[",
                  "{\"secret\":{\"name\":\"s", "\"}}", "]}}]," CONTAINER },
                { "\"volumes\":[{\"name\":\"v\",\"projected\":{\"sources\":[{\"secret\":"
                  "{\"name\":\"s\",\"items\":[",
                  "{\"key\":\"k\",\"path\":\"p", "\"}", "]}}]}}]," CONTAINER },
                { "\"containers\":[{\"name\":\"main\",\"image\":\"i\",\"envFrom\":[",
                  "{\"secretRef\":{\"name\":\"s", "\"}}", "]}]" },
        };

        for (size_t i = 0; i < N_ELEMENTS(lists); i++) {
                char *spec = NULL;
                size_t size;
                FILE *out = open_memstream(&spec, &size);

                REQUIRE(out);
                fputs(lists[i].start, out);
                for (size_t n = 0; n < 50000; n++)
                        fprintf(out, "%s%s%zu%s", n > 0 ? "," : "", lists[i].before, n,
                                lists[i].after);
                fputs(lists[i].end, out);
                REQUIRE(fclose(out) == 0);
                EXPECT(is_accepted("", spec));
                free(spec);
        }
}

/* An API server does not check the medium of a volume, and a newer server may have more operators
 * and policies. A volume with an unknown medium fails when it is mounted. */
TEST(names_that_are_valid_only_at_the_api_server_do_not_fail_a_pod)
{
        cleanup_with(pod_freep) Pod *pod = parse_api_pod(
                "",
                "\"volumes\":[{\"name\":\"v\",\"emptyDir\":{\"medium\":\"Optane\"}}],"
                "\"dnsPolicy\":\"New\",\"securityContext\":{\"fsGroupChangePolicy\":\"New\"},"
                "\"tolerations\":[{\"key\":\"a\",\"operator\":\"Gt\",\"value\":\"5\"}]," CONTAINER,
                NULL);
        char key[] = "a", value[] = "5";
        const Taint taint = { .key = key, .value = value, .effect = TAINT_NO_EXECUTE };
        cleanup_with(pod_freep) Pod *again = NULL;
        cleanup_free char *record = NULL;

        REQUIRE(pod);
        EXPECT_EQ(pod->spec.volumes.items[0].empty_dir->medium, MEDIUM_OTHER);
        EXPECT(!toleration_tolerates(&pod->spec.tolerations.items[0], &taint));
        EXPECT_EQ(pod->spec.dns_policy, DNS_POLICY_CLUSTER_FIRST);
        record = pod_to_json(pod, NULL);
        REQUIRE(record && manifest_parse_record(record, strlen(record), &again, NULL) == 0);
        EXPECT_EQ(again->spec.volumes.items[0].empty_dir->medium, MEDIUM_OTHER);
}

/* Returns the pod with this spec after it was written to its record and read again. */
static Pod *parse_newer_pod(const char *spec) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(pod_freep) Pod *pod = parse_api_pod("", spec, &error);
        cleanup_free char *record = NULL;
        Pod *again = NULL;

        if (!pod)
                (void) fprintf(stderr, "%s\n", error.message);
        REQUIRE(pod);
        record = pod_to_json(pod, NULL);
        if (record && manifest_parse_record(record, strlen(record), &again, &error) < 0)
                (void) fprintf(stderr, "%s\n", error.message);
        REQUIRE(again);
        return again;
}

#define NEWER_CONTAINER(fields) \
        "\"containers\":[{\"name\":\"main\",\"image\":\"busybox:1\"," fields "}]"

static Container *first_container(Pod *pod) {
        return &pod->spec.containers.items[0];
}

TEST(unknown_restart_policies_are_the_defaults)
{
        cleanup_with(pod_freep) Pod *pod = parse_newer_pod(
                "\"restartPolicy\":\"New\","
                "\"initContainers\":[{\"name\":\"init\",\"image\":\"i\",\"restartPolicy\":\"New\"}]"
                "," NEWER_CONTAINER(
                        "\"restartPolicy\":\"New\",\"restartPolicyRules\":["
                        "{\"action\":\"New\",\"exitCodes\":{\"operator\":\"In\",\"values\":[1]}},"
                        "{\"action\":\"Restart\",\"exitCodes\":{\"operator\":\"New\"}},"
                        "{\"action\":\"Restart\",\"signals\":[9]}]"));
        const RestartRule *rules = first_container(pod)->restart_policy_rules.items;

        EXPECT_EQ(pod->spec.restart_policy, RESTART_POLICY_ALWAYS);
        EXPECT_EQ(container_own_restart_policy(&pod->spec, first_container(pod)),
                  RESTART_POLICY_ALWAYS);
        EXPECT_EQ(container_role(&pod->spec, &pod->spec.init_containers.items[0]), ROLE_INIT);
        EXPECT_EQ(rules[0].action, RESTART_ACTION_UNSET);
        EXPECT_EQ(rules[1].exit_codes->operator, EXIT_CODE_OPERATOR_UNSET);
        EXPECT(!rules[2].exit_codes);
}

TEST(unknown_pull_policy_queries_the_registry)
{
        cleanup_with(pod_freep) Pod *pod = parse_newer_pod(
                "\"volumes\":[{\"name\":\"v\",\"image\":{\"reference\":\"i:1\",\"pullPolicy\":"
                "\"New\"}}]," NEWER_CONTAINER("\"imagePullPolicy\":\"New\""));

        EXPECT_EQ(first_container(pod)->image_pull_policy, PULL_POLICY_ALWAYS);
        EXPECT_EQ(pod->spec.volumes.items[0].image->pull_policy, PULL_POLICY_ALWAYS);
}

TEST(unknown_protocol_of_a_port_is_tcp)
{
        cleanup_with(pod_freep) Pod *pod = parse_newer_pod(
                NEWER_CONTAINER("\"ports\":[{\"containerPort\":80,\"protocol\":\"QUIC\"}]"));

        EXPECT_EQ(first_container(pod)->ports.items[0].protocol, PROTOCOL_TCP);
}

TEST(unknown_resize_policies_are_ignored)
{
        cleanup_with(pod_freep) Pod *pod =
                parse_newer_pod("\"restartPolicy\":\"Never\"," NEWER_CONTAINER(
                        "\"resizePolicy\":["
                        "{\"resourceName\":\"network\",\"restartPolicy\":\"NotRequired\"},"
                        "{\"resourceName\":\"disk\",\"restartPolicy\":\"NotRequired\"},"
                        "{\"resourceName\":\"cpu\",\"restartPolicy\":\"New\"}]"));
        const ResizePolicy *policies = first_container(pod)->resize_policy.items;

        EXPECT_EQ(policies[0].resource_name, RESIZE_RESOURCE_UNSET);
        EXPECT_EQ(policies[1].resource_name, RESIZE_RESOURCE_UNSET);
        EXPECT_EQ(policies[2].restart_policy, RESIZE_RESTART_UNSET);
}

TEST(unknown_options_of_mounts_and_volumes_are_marked_as_unknown)
{
        cleanup_with(pod_freep) Pod *pod = parse_newer_pod(
                "\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/"
                "x\",\"type\":\"New\"}}]," NEWER_CONTAINER(
                        "\"volumeMounts\":["
                        "{\"name\":\"v\",\"mountPath\":\"/a\",\"mountPropagation\":\"New\"},"
                        "{\"name\":\"v\",\"mountPath\":\"/b\",\"readOnly\":true,"
                        "\"recursiveReadOnly\":\"New\"}]"));
        const VolumeMount *mounts = first_container(pod)->volume_mounts.items;

        EXPECT_EQ(pod->spec.volumes.items[0].host_path->type, HOST_PATH_OTHER);
        EXPECT_EQ(mounts[0].mount_propagation, MOUNT_PROPAGATION_OTHER);
        EXPECT_EQ(mounts[1].recursive_read_only, RECURSIVE_READ_ONLY_OTHER);
}

TEST(unknown_profiles_and_group_policies_are_marked_as_unknown)
{
        cleanup_with(pod_freep) Pod *pod = parse_newer_pod(
                "\"securityContext\":{\"supplementalGroupsPolicy\":\"New\","
                "\"seccompProfile\":{\"type\":\"New\"}}," NEWER_CONTAINER(
                        "\"securityContext\":{\"appArmorProfile\":{\"type\":\"New\"}}"));

        EXPECT_EQ(pod->spec.security_context.supplemental_groups_policy, GROUPS_POLICY_OTHER);
        EXPECT_EQ(pod->spec.security_context.seccomp_profile->type, PROFILE_OTHER);
        EXPECT_EQ(first_container(pod)->security_context.app_armor_profile->type, PROFILE_OTHER);
}

TEST(unknown_scheme_or_kind_of_a_handler_is_marked_as_unknown)
{
        cleanup_with(pod_freep) Pod *pod = parse_newer_pod(NEWER_CONTAINER(
                "\"livenessProbe\":{\"httpGet\":{\"port\":80,\"scheme\":\"GOPHER\"}},"
                "\"readinessProbe\":{\"telepathy\":{\"port\":80}},"
                "\"lifecycle\":{\"preStop\":{\"telepathy\":{}}}"));

        EXPECT_EQ(first_container(pod)->liveness_probe->handler.http_get->scheme, URI_SCHEME_OTHER);
        EXPECT(first_container(pod)->readiness_probe);
        EXPECT(first_container(pod)->lifecycle->pre_stop);
}

TEST(unknown_operating_system_is_not_linux)
{
        cleanup_with(pod_freep) Pod *pod =
                parse_newer_pod("\"os\":{\"name\":\"plan9\"}," CONTAINER);

        EXPECT_EQ(pod->spec.os->name, OS_OTHER);
}

TEST(unknown_effect_of_a_toleration_tolerates_no_taint)
{
        cleanup_with(pod_freep) Pod *pod =
                parse_newer_pod("\"tolerations\":[{\"operator\":\"Exists\",\"effect\":\"New\","
                                "\"tolerationSeconds\":5}]," CONTAINER);
        char key[] = "a";

        for (TaintEffect effect = TAINT_NO_SCHEDULE; effect < N_TAINT_EFFECTS; effect++)
                EXPECT(!toleration_tolerates(&pod->spec.tolerations.items[0],
                                             &(Taint){ .key = key, .effect = effect }));
}

/* A term with an unknown operator matches no node; the labels of other pods are not compared with
 * it. */
TEST(unknown_operator_of_a_selector_matches_nothing)
{
        static const char requirement[] = "{\"key\":\"a\",\"operator\":\"Gte\",\"values\":[\"1\"]}";
        cleanup_with(pod_freep) Pod *pod = NULL;
        const NodeLabelsTaints node = { 0 };
        char spec[2048];

        (void) snprintf(spec, sizeof(spec),
                        "\"affinity\":{\"nodeAffinity\":{"
                        "\"requiredDuringSchedulingIgnoredDuringExecution\":{"
                        "\"nodeSelectorTerms\":[{\"matchExpressions\":[%s]},"
                        "{\"matchFields\":[%s]}]}},"
                        "\"podAntiAffinity\":{"
                        "\"requiredDuringSchedulingIgnoredDuringExecution\":["
                        "{\"topologyKey\":\"a\",\"labelSelector\":{\"matchExpressions\":[%s]}}]}}"
                        "," CONTAINER,
                        requirement, requirement, requirement);
        pod = parse_newer_pod(spec);
        EXPECT(!pod_matches_node(&pod->spec, &node));
}

TEST(unknown_sources_of_variables_and_files_are_accepted)
{
        cleanup_with(pod_freep) Pod *pod = parse_newer_pod(
                "\"volumes\":[{\"name\":\"v\",\"downwardAPI\":{\"items\":["
                "{\"path\":\"a\",\"nodeRef\":{\"x\":\"y\"}},"
                "{\"path\":\"b\",\"fieldRef\":{\"fieldPath\":\"metadata.labelsOfNode\"}}]}}]"
                "," NEWER_CONTAINER(
                        "\"envFrom\":[{\"nodeRef\":{\"name\":\"n\"}}],"
                        "\"env\":[{\"name\":\"A\",\"valueFrom\":{\"nodeRef\":{\"x\":\"y\"}}},"
                        "{\"name\":\"B\",\"valueFrom\":{\"fieldRef\":"
                        "{\"fieldPath\":\"status.newIP\"}}}]"));

        EXPECT_EQ(first_container(pod)->env.n, 2);
}

TEST(placeholder_names_of_records_are_invalid_in_manifests)
{
        static const char yaml[] = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {\n"
                                   "containers: [{name: c, image: i}],\n"
                                   "volumes: [{name: v, emptyDir: {medium: Other}}]}}";
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(manifest_parse("f", yaml, strlen(yaml), "n", &objects, &error), -EINVAL);
        EXPECT(strstr(strna(error.message), "or HugePages-2Mi, not 'Other'"));
}
