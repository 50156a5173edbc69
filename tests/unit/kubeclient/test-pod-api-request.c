/* SPDX-License-Identifier: Apache-2.0 */
/* Which request is due for a pod: the local pod and the API server's object decide. */

#include "agent/kubeclient/pod-api-request.h"

#include "common/cleanup.h"
#include "tests/test.h"

static char pod_name[] = "p", pod_namespace[] = "d", pod_uid[] = "here";
static const Pod pod = { .metadata = {
                                 .name = pod_name, .namespace = pod_namespace, .uid = pod_uid } };

/* A status without its conditions, so that the tests can contain the reported text. */
static const PodStatus running = { .phase = POD_RUNNING, .is_rejected = true };

#define RUNNING "{\"phase\":\"Running\"}"

static KubePodRequestKind next_action(KubeLocalPod local, const KubeObjectSummary *remote,
                                      const char *node_uid) {
        cleanup_with(kube_pod_request_done) KubePodRequest action = { 0 };

        EXPECT_EQ(kube_pod_next_request(&local, remote, "n", node_uid, &action), 0);
        EXPECT_EQ(action.body != NULL, action.kind != KUBE_POD_NO_REQUEST);
        return action.kind;
}

static const KubeLocalPod static_pod = { .pod = &pod, .status = &running, .uid = "here" };
static const KubeLocalPod api_pod = {
        .pod = &pod, .status = &running, .uid = "here", .is_api_pod = true
};
static const KubeLocalPod no_pod = { 0 };

static char *copy(const char *text) {
        return text ? strdup(text) : NULL;
}

static KubeObjectSummary remote(const char *uid, const char *mirror_hash, bool is_deleting,
                                const char *status) {
        return (KubeObjectSummary){ .uid = copy(uid),
                                    .mirror_hash = copy(mirror_hash),
                                    .is_deleting = is_deleting,
                                    .status = copy(status) };
}

TEST(static_pod_gets_a_mirror_pod_once_the_node_exists)
{
        EXPECT_EQ(next_action(static_pod, NULL, NULL), KUBE_POD_NO_REQUEST);
        EXPECT_EQ(next_action(static_pod, NULL, "node-uid"), KUBE_POD_CREATE_MIRROR);
}

TEST(status_of_a_mirror_pod_is_patched_until_it_is_equal)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary fresh =
                remote("there", "here", false, NULL);
        cleanup_with(kube_object_summary_done) KubeObjectSummary reported =
                remote("there", "here", false, RUNNING);

        EXPECT_EQ(next_action(static_pod, &fresh, "u"), KUBE_POD_PATCH_STATUS);
        EXPECT_EQ(next_action(static_pod, &reported, "u"), KUBE_POD_NO_REQUEST);
}

TEST(mirror_pod_of_another_spec_or_without_a_static_pod_is_deleted)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary other =
                remote("there", "was", false, NULL);
        cleanup_with(kube_object_summary_done) KubeObjectSummary deleted =
                remote("there", "here", true, NULL);
        KubeLocalPod terminated = static_pod;

        terminated.is_terminated = true;
        EXPECT_EQ(next_action(static_pod, &other, "u"), KUBE_POD_DELETE);
        EXPECT_EQ(next_action(static_pod, &deleted, "u"), KUBE_POD_DELETE);
        EXPECT_EQ(next_action(no_pod, &other, "u"), KUBE_POD_DELETE);
        EXPECT_EQ(next_action(terminated, &other, "u"), KUBE_POD_DELETE);
}

TEST(mirror_pod_is_recreated_when_its_static_pod_was_edited)
{
        char key[] = "kubernetes.io/config.hash", now[] = "now";
        KeyValue hash = { key, now };
        const Pod edited = { .metadata = { .name = pod_name,
                                           .namespace = pod_namespace,
                                           .uid = pod_uid,
                                           .annotations = { &hash, 1 } } };
        cleanup_with(kube_object_summary_done) KubeObjectSummary old =
                remote("there", "here", false, RUNNING);
        KubeLocalPod local = static_pod;

        local.pod = &edited;
        old.config_hash = copy("before");
        local.awaits_edit = true;
        EXPECT_EQ(next_action(local, &old, "u"), KUBE_POD_NO_REQUEST);
        local.awaits_edit = false;
        EXPECT_EQ(next_action(local, &old, "u"), KUBE_POD_DELETE);
        free(old.config_hash);
        old.config_hash = copy("now");
        EXPECT_EQ(next_action(local, &old, "u"), KUBE_POD_NO_REQUEST);
        free(old.mirror_hash);
        old.mirror_hash = copy("now");
        EXPECT_EQ(next_action(local, &old, "u"), KUBE_POD_NO_REQUEST);
        free(old.mirror_hash);
        old.mirror_hash = copy("another");
        EXPECT_EQ(next_action(local, &old, "u"), KUBE_POD_DELETE);
}

TEST(api_pod_with_the_name_of_a_static_pod_is_left_alone)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary other =
                remote("there", NULL, true, NULL);

        EXPECT_EQ(next_action(static_pod, &other, "u"), KUBE_POD_NO_REQUEST);
}

TEST(api_pod_is_deleted_after_its_final_status_was_reported)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary there =
                remote("here", NULL, true, NULL);
        cleanup_with(kube_object_summary_done) KubeObjectSummary reported =
                remote("here", NULL, true, RUNNING);
        KubeLocalPod terminated = api_pod;

        terminated.is_terminated = true;
        EXPECT_EQ(next_action(api_pod, &there, NULL), KUBE_POD_PATCH_STATUS);
        EXPECT_EQ(next_action(api_pod, &reported, NULL), KUBE_POD_NO_REQUEST);
        EXPECT_EQ(next_action(terminated, &there, NULL), KUBE_POD_PATCH_STATUS);
        EXPECT_EQ(next_action(terminated, &reported, NULL), KUBE_POD_DELETE);
        EXPECT_EQ(next_action(no_pod, &there, NULL), KUBE_POD_DELETE);
}

TEST(old_pod_instance_does_not_report_for_the_next_one_of_its_name)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary next =
                remote("next", NULL, false, NULL);
        cleanup_with(kube_object_summary_done) KubeObjectSummary terminating =
                remote("next", NULL, true, NULL);

        EXPECT_EQ(next_action(api_pod, &next, NULL), KUBE_POD_NO_REQUEST);
        EXPECT_EQ(next_action(api_pod, &terminating, NULL), KUBE_POD_DELETE);
        EXPECT_EQ(next_action(api_pod, NULL, NULL), KUBE_POD_NO_REQUEST);
}

TEST(status_has_the_generation_of_the_object)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary there =
                remote("here", NULL, false, RUNNING);
        cleanup_with(kube_pod_request_done) KubePodRequest action = { 0 };

        there.generation = 3;
        EXPECT_EQ(kube_pod_next_request(&api_pod, &there, "n", NULL, &action), 0);
        EXPECT_STREQ(action.body,
                     "{\"metadata\":{\"uid\":\"here\"},\"status\":{\"observedGeneration\":3}}");
}

TEST(rejected_pod_is_reported_with_phase_reason_and_message_only)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary there =
                remote("here", NULL, false, "{\"phase\":\"Pending\"}");
        char reason[] = "UnexpectedAdmissionError", message[] = "no such class";
        PodStatus rejection = {
                .phase = POD_FAILED, .is_rejected = true, .reason = reason, .message = message
        };
        KubeLocalPod rejected = {
                .status = &rejection, .uid = "here", .is_api_pod = true, .is_terminated = true
        };
        cleanup_with(kube_pod_request_done) KubePodRequest action = { 0 };

        EXPECT_EQ(kube_pod_next_request(&rejected, &there, "n", NULL, &action), 0);
        EXPECT_EQ(action.kind, KUBE_POD_PATCH_STATUS);
        EXPECT_STREQ(action.body, "{\"metadata\":{\"uid\":\"here\"},\"status\":{\"message\":"
                                  "\"no such class\",\"phase\":\"Failed\",\"reason\":"
                                  "\"UnexpectedAdmissionError\"}}");
}

TEST(cached_final_status_is_reported_like_a_computed_one)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary there =
                remote("here", NULL, false, NULL);
        cleanup_with(kube_object_summary_done) KubeObjectSummary reported =
                remote("here", NULL, true, RUNNING);
        KubeLocalPod cached = { .cached = "{\"metadata\":{},\"status\":" RUNNING "}",
                                .uid = "here",
                                .is_api_pod = true,
                                .is_terminated = true };

        EXPECT_EQ(next_action(cached, &there, NULL), KUBE_POD_PATCH_STATUS);
        EXPECT_EQ(next_action(cached, &reported, NULL), KUBE_POD_DELETE);
}

TEST(status_that_the_server_has_is_reported_as_such_and_not_compared_again)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary reported =
                remote("here", NULL, false, RUNNING);
        cleanup_with(kube_object_summary_done) KubeObjectSummary fresh =
                remote("here", NULL, false, NULL);
        cleanup_with(kube_pod_request_done) KubePodRequest request = { 0 };
        KubeLocalPod local = api_pod;

        EXPECT_EQ(kube_pod_next_request(&local, &reported, "n", NULL, &request), 0);
        EXPECT(request.kind == KUBE_POD_NO_REQUEST && request.is_reported);
        EXPECT_EQ(next_action(local, &fresh, NULL), KUBE_POD_PATCH_STATUS);
        local.is_reported = true;
        EXPECT_EQ(next_action(local, &fresh, NULL), KUBE_POD_NO_REQUEST);
        fresh.is_deleting = true;
        local.is_terminated = true;
        EXPECT_EQ(next_action(local, &fresh, NULL), KUBE_POD_DELETE);
}

TEST(outdated_api_pod_is_deleted_with_its_grace_period_once)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary there =
                remote("here", NULL, false, NULL);
        cleanup_with(kube_object_summary_done) KubeObjectSummary deleting =
                remote("here", NULL, true, NULL);
        cleanup_with(kube_pod_request_done) KubePodRequest request = { 0 };
        KubeLocalPod outdated = api_pod;

        outdated.is_outdated = true;
        EXPECT_EQ(kube_pod_next_request(&outdated, &there, "n", NULL, &request), 0);
        EXPECT_EQ(request.kind, KUBE_POD_RETIRE);
        EXPECT(strstr(request.body, "\"uid\": \"here\"") ||
               strstr(request.body, "\"uid\":\"here\""));
        EXPECT(!strstr(request.body, "gracePeriodSeconds"));
        EXPECT_EQ(next_action(outdated, &deleting, NULL), KUBE_POD_PATCH_STATUS);
}
