/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/json.h"
#include "common/clock.h"
#include "tests/test.h"

#define SECOND_OF_2026 (UINT64_C(1767225600) * USEC_PER_SEC)

static char *words[] = { (char[]){ "sh" }, (char[]){ "" }, NULL };
static KeyValue labels[] = { { (char[]){ "app" }, (char[]){ "web" } } };
static EnvVar env[] = { { (char[]){ "A" }, NULL }, { (char[]){ "B" }, (char[]){ "b\n" } } };
static ContainerPort ports[] = {
        { .container_port = { true, 80 }, .protocol = PROTOCOL_UDP },
};
static VolumeMount mounts[] = {
        { .name = (char[]){ "v" }, .mount_path = (char[]){ "/v" }, .read_only = true },
};
static EmptyDirVolumeSource empty_dir;
static HostPathVolumeSource host_path = { (char[]){ "/h" }, HOST_PATH_FILE };
static Volume volumes[] = {
        { .name = (char[]){ "v" }, .empty_dir = &empty_dir },
        { .name = (char[]){ "h" }, .host_path = &host_path },
};
static Container containers[] = { {
        .name = (char[]){ "c" },
        .image = (char[]){ "i" },
        .image_pull_policy = PULL_POLICY_NEVER,
        .command = words,
        .ports = { ports, N_ELEMENTS(ports) },
        .env = { env, N_ELEMENTS(env) },
        .resources.requests.cpu = { (char[]){ "500m" }, 1, 500 },
        .volume_mounts = { mounts, N_ELEMENTS(mounts) },
} };

static const Pod pod = {
        .metadata = {
                .name = (char[]){ "web-n1" },
                .namespace = (char[]){ "default" },
                .uid = (char[]){ "0123456789abcdef0123456789abcdef" },
                .labels = { labels, N_ELEMENTS(labels) },
        },
        .spec = {
                .containers = { containers, N_ELEMENTS(containers) },
                .volumes = { volumes, N_ELEMENTS(volumes) },
                .restart_policy = RESTART_POLICY_ON_FAILURE,
                .termination_grace_period_seconds = { true, 0 },
                .node_name = (char[]){ "n1" },
                .host_network = true,
        },
};

#define METADATA_HEAD                                                                \
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-n1\"," \
        "\"namespace\":\"default\",\"uid\":\"0123456789abcdef0123456789abcdef\""
#define LABELS "\"labels\":{\"app\":\"web\"}}"
#define SPEC                                                                          \
        "{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}},"                             \
        "{\"name\":\"h\",\"hostPath\":{\"path\":\"/h\",\"type\":\"File\"}}],"         \
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":[\"sh\",\"\"],"  \
        "\"ports\":[{\"containerPort\":80,\"protocol\":\"UDP\"}],"                    \
        "\"env\":[{\"name\":\"A\"},{\"name\":\"B\",\"value\":\"b\\n\"}],"             \
        "\"resources\":{\"requests\":{\"cpu\":\"500m\"}},"                            \
        "\"volumeMounts\":[{\"name\":\"v\",\"readOnly\":true,\"mountPath\":\"/v\"}]," \
        "\"imagePullPolicy\":\"Never\"}],\"restartPolicy\":\"OnFailure\","            \
        "\"terminationGracePeriodSeconds\":0,\"nodeName\":\"n1\",\"hostNetwork\":true}"

TEST(record_is_a_pod_without_status)
{
        char *json = pod_to_json(&pod, NULL);

        EXPECT_STREQ(json, METADATA_HEAD "," LABELS ",\"spec\":" SPEC "}");
        free(json);
}

TEST(equal_specs_give_equal_json)
{
        char *json = pod_spec_to_json(&pod.spec);

        EXPECT_STREQ(json, SPEC);
        free(json);
}

static char *json_of(const PodStatus *status) {
        char *json = pod_to_json(&pod, status);
        char *found = json ? strstr(json, ",\"status\":") : NULL;
        char *copy = found ? strdup(found + strlen(",\"status\":")) : NULL;

        /* Without the closing brace of the pod. */
        if (copy)
                copy[strlen(copy) - 1] = '\0';
        free(json);
        return copy;
}

TEST(a_new_pods_status_has_all_its_conditions)
{
        PodStatus status = { .phase = POD_PENDING, .qos_class = QOS_BURSTABLE };
        char *json = json_of(&status);

        EXPECT_STREQ(json, "{\"phase\":\"Pending\",\"conditions\":["
                           "{\"type\":\"PodReadyToStartContainers\",\"status\":\"False\","
                           "\"lastProbeTime\":null,\"lastTransitionTime\":null},"
                           "{\"type\":\"Initialized\",\"status\":\"False\","
                           "\"lastProbeTime\":null,\"lastTransitionTime\":null},"
                           "{\"type\":\"Ready\",\"status\":\"False\","
                           "\"lastProbeTime\":null,\"lastTransitionTime\":null},"
                           "{\"type\":\"ContainersReady\",\"status\":\"False\","
                           "\"lastProbeTime\":null,\"lastTransitionTime\":null},"
                           "{\"type\":\"PodScheduled\",\"status\":\"False\","
                           "\"lastProbeTime\":null,\"lastTransitionTime\":null}],"
                           "\"qosClass\":\"Burstable\"}");
        free(json);
}

static ContainerStatus container_statuses[] = {
        {
                .name = (char[]){ "a" },
                .state = { .kind = STATE_RUNNING, .started_at = SECOND_OF_2026 },
                .last_state = {
                        .kind = STATE_TERMINATED,
                        .reason = (char[]){ "OOMKilled" },
                        .exit_code = 137,
                        .signal = 9,
                        .container_id = (char[]){ "mainstay://1" },
                        .started_at = SECOND_OF_2026,
                        .finished_at = SECOND_OF_2026 + USEC_PER_SEC,
                },
                .ready = true,
                .started = true,
                .restart_count = 2,
                .image = (char[]){ "i" },
                .image_id = (char[]){ "sha256:1" },
                .container_id = (char[]){ "mainstay://2" },
        },
        {
                .name = (char[]){ "b" },
                .state = {
                        .kind = STATE_WAITING,
                        .reason = (char[]){ "CreateContainerError" },
                        .message = (char[]){ "no \xff here" },
                },
                .image = (char[]){ "i" },
        },
};

TEST(status_of_a_running_pod_has_the_api_format)
{
        PodStatus status = {
                .phase = POD_RUNNING,
                .conditions[CONDITION_READY] = {
                        .is_true = false,
                        .reason = (char[]){ "ContainersNotReady" },
                        .message = (char[]){ "containers with unready status: [b]" },
                        .last_transition = SECOND_OF_2026,
                },
                .host_ip = (char[]){ "192.0.2.1" },
                .pod_ip = (char[]){ "192.0.2.1" },
                .start_time = SECOND_OF_2026,
                .containers = { container_statuses, N_ELEMENTS(container_statuses) },
                .qos_class = QOS_GUARANTEED,
        };
        char *json = json_of(&status);

        EXPECT(json &&
               strstr(json, "{\"type\":\"Ready\",\"status\":\"False\",\"lastProbeTime\":null,"
                            "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\","
                            "\"reason\":\"ContainersNotReady\","
                            "\"message\":\"containers with unready status: [b]\"}"));
        EXPECT_STREQ(json ? strstr(json, "\"hostIP\"") : NULL,
                     "\"hostIP\":\"192.0.2.1\",\"hostIPs\":[{\"ip\":\"192.0.2.1\"}],"
                     "\"podIP\":\"192.0.2.1\",\"podIPs\":[{\"ip\":\"192.0.2.1\"}],"
                     "\"startTime\":\"2026-01-01T00:00:00Z\",\"containerStatuses\":["
                     "{\"name\":\"a\",\"state\":{\"running\":{"
                     "\"startedAt\":\"2026-01-01T00:00:00Z\"}},"
                     "\"lastState\":{\"terminated\":{\"exitCode\":137,\"signal\":9,"
                     "\"reason\":\"OOMKilled\",\"startedAt\":\"2026-01-01T00:00:00Z\","
                     "\"finishedAt\":\"2026-01-01T00:00:01Z\",\"containerID\":\"mainstay://1\"}},"
                     "\"ready\":true,\"restartCount\":2,\"image\":\"i\",\"imageID\":\"sha256:1\","
                     "\"containerID\":\"mainstay://2\",\"started\":true},"
                     "{\"name\":\"b\",\"state\":{\"waiting\":{\"reason\":\"CreateContainerError\","
                     "\"message\":\"no ? here\"}},\"lastState\":{},\"ready\":false,"
                     "\"restartCount\":0,\"image\":\"i\",\"imageID\":\"\",\"started\":false}],"
                     "\"qosClass\":\"Guaranteed\",\"allocatedResources\":{\"cpu\":\"500m\"},"
                     "\"resources\":{\"requests\":{\"cpu\":\"500m\"}}}");
        free(json);
}

TEST(actual_resources_are_in_the_container_status)
{
        static int64_t groups[] = { 2000, 3000 };
        ResourceRequirements actual = {
                .requests.cpu = { (char[]){ "250m" }, 1, 250 },
                .limits.memory = { (char[]){ "64Mi" }, 64 << 20, 0 },
        };
        ContainerStatus one = {
                .name = (char[]){ "c" },
                .state = { .kind = STATE_RUNNING, .started_at = SECOND_OF_2026 },
                .container_id = (char[]){ "mainstay://2" },
                .resources = &actual,
                .user = { true, 1000, 2000, { groups, 2 } },
                .stop_signal = 15,
        };
        PodStatus status = { .containers = { &one, 1 }, .qos_class = QOS_BURSTABLE };
        char *json = json_of(&status);

        EXPECT_STREQ(json ? strstr(json, "\"started\"") : NULL,
                     "\"started\":false,\"allocatedResources\":{\"cpu\":\"500m\"},"
                     "\"resources\":{\"limits\":{\"memory\":\"64Mi\"},"
                     "\"requests\":{\"cpu\":\"250m\"}},"
                     "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\",\"readOnly\":true,"
                     "\"recursiveReadOnly\":\"Disabled\"}],"
                     "\"user\":{\"linux\":{\"uid\":1000,\"gid\":2000,"
                     "\"supplementalGroups\":[2000,3000]}},\"stopSignal\":\"SIGTERM\"}],"
                     "\"qosClass\":\"Burstable\",\"allocatedResources\":{\"cpu\":\"500m\"},"
                     "\"resources\":{\"requests\":{\"cpu\":\"500m\"}}}");
        free(json);
        one.container_id = NULL;
        json = json_of(&status);
        EXPECT(json && strstr(json, "\"started\":false}]"));
        free(json);
}

TEST(init_container_statuses_are_a_separate_list)
{
        PodStatus status = {
                .init_containers = { container_statuses, 1 },
                .containers = { container_statuses + 1, 1 },
                .may_restart_all = true,
        };
        char *json = json_of(&status);
        const char *init = json ? strstr(json, "\"initContainerStatuses\":[{\"name\":\"a\"") : NULL;

        EXPECT(init && strstr(init, "\"containerStatuses\":[{\"name\":\"b\""));
        EXPECT(json && strstr(json, "{\"type\":\"AllContainersRestarting\",\"status\":\"False\""));
        free(json);
}

TEST(stopping_pod_has_a_deletion_timestamp)
{
        PodStatus status = {
                .start_time = SECOND_OF_2026,
                .deletion_time = SECOND_OF_2026 + USEC_PER_SEC,
        };
        char *json = pod_to_json(&pod, &status);

        EXPECT(json && strstr(json, METADATA_HEAD ",\"creationTimestamp\":\"2026-01-01T00:00:00Z\","
                                                  "\"deletionTimestamp\":\"2026-01-01T00:00:01Z\","
                                                  "\"deletionGracePeriodSeconds\":0," LABELS));
        free(json);
}
