/* SPDX-License-Identifier: Apache-2.0 */
/* What is due to be written about a pod: here against there. */

#include "agent/kubeclient/pod-action.h"

#include "common/cleanup.h"
#include "tests/test.h"

static const char json[] = "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"here\"},"
                           "\"spec\":{\"containers\":[]},\"status\":{\"phase\":\"Running\"}}";

static KubePodActionKind due(KubeLocalPod local, const KubeObjectSummary *remote,
                             const char *node_uid) {
        cleanup_with(kube_pod_action_done) KubePodAction write = { 0 };

        EXPECT_EQ(kube_pod_next_action(&local, remote, "n", node_uid, &write), 0);
        EXPECT_EQ(write.body != NULL, write.kind != KUBE_POD_NO_ACTION);
        return write.kind;
}

static const KubeLocalPod of_file = { .json = json, .uid = "here" };
static const KubeLocalPod of_api = { .json = json, .uid = "here", .is_api_pod = true };
static const KubeLocalPod nothing = { 0 };

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

TEST(a_pod_of_a_file_gets_a_mirror_once_the_node_is_known)
{
        EXPECT_EQ(due(of_file, NULL, NULL), KUBE_POD_NO_ACTION);
        EXPECT_EQ(due(of_file, NULL, "node-uid"), KUBE_POD_CREATE_MIRROR);
}

TEST(a_mirror_is_told_the_status_and_then_left_alone)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary fresh =
                remote("there", "here", false, NULL);
        cleanup_with(kube_object_summary_done) KubeObjectSummary told =
                remote("there", "here", false, "{\"phase\":\"Running\"}");

        EXPECT_EQ(due(of_file, &fresh, "u"), KUBE_POD_PATCH_STATUS);
        EXPECT_EQ(due(of_file, &told, "u"), KUBE_POD_NO_ACTION);
}

TEST(a_mirror_of_another_spec_or_that_somebody_deletes_or_of_nobody_goes)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary other =
                remote("there", "was", false, NULL);
        cleanup_with(kube_object_summary_done) KubeObjectSummary deleted =
                remote("there", "here", true, NULL);
        KubeLocalPod over = of_file;

        over.is_terminated = true;
        EXPECT_EQ(due(of_file, &other, "u"), KUBE_POD_DELETE);
        EXPECT_EQ(due(of_file, &deleted, "u"), KUBE_POD_DELETE);
        EXPECT_EQ(due(nothing, &other, "u"), KUBE_POD_DELETE);
        EXPECT_EQ(due(over, &other, "u"), KUBE_POD_DELETE);
}

TEST(a_pod_of_the_server_that_has_the_name_of_one_of_ours_is_left_alone)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary other =
                remote("there", NULL, true, NULL);

        EXPECT_EQ(due(of_file, &other, "u"), KUBE_POD_NO_ACTION);
}

TEST(a_pod_of_the_server_is_deleted_when_nothing_of_it_is_left_and_its_end_is_told)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary there =
                remote("here", NULL, true, NULL);
        cleanup_with(kube_object_summary_done) KubeObjectSummary told =
                remote("here", NULL, true, "{\"phase\":\"Running\"}");
        KubeLocalPod over = of_api;

        over.is_terminated = true;
        EXPECT_EQ(due(of_api, &there, NULL), KUBE_POD_PATCH_STATUS);
        EXPECT_EQ(due(of_api, &told, NULL), KUBE_POD_NO_ACTION);
        EXPECT_EQ(due(over, &there, NULL), KUBE_POD_PATCH_STATUS);
        EXPECT_EQ(due(over, &told, NULL), KUBE_POD_DELETE);
        EXPECT_EQ(due(nothing, &there, NULL), KUBE_POD_DELETE);
}

TEST(what_is_here_of_an_older_pod_of_the_name_says_nothing_of_the_new_one)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary next =
                remote("next", NULL, false, NULL);
        cleanup_with(kube_object_summary_done) KubeObjectSummary ending =
                remote("next", NULL, true, NULL);

        EXPECT_EQ(due(of_api, &next, NULL), KUBE_POD_NO_ACTION);
        EXPECT_EQ(due(of_api, &ending, NULL), KUBE_POD_DELETE);
        EXPECT_EQ(due(of_api, NULL, NULL), KUBE_POD_NO_ACTION);
}
