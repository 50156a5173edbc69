/* SPDX-License-Identifier: Apache-2.0 */
/* What is due to be written about a pod: here against there. */

#include "agent/kube/pod-write.h"

#include "common/cleanup.h"
#include "tests/test.h"

static const char json[] = "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"here\"},"
                           "\"spec\":{\"containers\":[]},\"status\":{\"phase\":\"Running\"}}";

static KubePodWriteKind due(KubePodLocal local, const KubeMetadata *remote, const char *node_uid) {
        cleanup_with(kube_pod_write_done) KubePodWrite write = { 0 };

        EXPECT_EQ(kube_pod_write(&local, remote, "n", node_uid, &write), 0);
        EXPECT_EQ(write.body != NULL, write.kind != KUBE_POD_NOTHING);
        return write.kind;
}

static const KubePodLocal of_file = { .json = json, .uid = "here" };
static const KubePodLocal of_api = { .json = json, .uid = "here", .is_of_api = true };
static const KubePodLocal nothing = { 0 };

static char *copy(const char *text) {
        return text ? strdup(text) : NULL;
}

static KubeMetadata remote(const char *uid, const char *mirror_hash, bool is_deleting,
                           const char *status) {
        return (KubeMetadata){ .uid = copy(uid),
                               .mirror_hash = copy(mirror_hash),
                               .is_deleting = is_deleting,
                               .status = copy(status) };
}

TEST(a_pod_of_a_file_gets_a_mirror_once_the_node_is_known)
{
        EXPECT_EQ(due(of_file, NULL, NULL), KUBE_POD_NOTHING);
        EXPECT_EQ(due(of_file, NULL, "node-uid"), KUBE_POD_CREATE);
}

TEST(a_mirror_is_told_the_status_and_then_left_alone)
{
        cleanup_with(kube_metadata_done) KubeMetadata fresh = remote("there", "here", false, NULL);
        cleanup_with(kube_metadata_done) KubeMetadata told =
                remote("there", "here", false, "{\"phase\":\"Running\"}");

        EXPECT_EQ(due(of_file, &fresh, "u"), KUBE_POD_STATUS);
        EXPECT_EQ(due(of_file, &told, "u"), KUBE_POD_NOTHING);
}

TEST(a_mirror_of_another_spec_or_that_somebody_deletes_or_of_nobody_goes)
{
        cleanup_with(kube_metadata_done) KubeMetadata other = remote("there", "was", false, NULL);
        cleanup_with(kube_metadata_done) KubeMetadata deleted = remote("there", "here", true, NULL);
        KubePodLocal over = of_file;

        over.is_over = true;
        EXPECT_EQ(due(of_file, &other, "u"), KUBE_POD_DELETE);
        EXPECT_EQ(due(of_file, &deleted, "u"), KUBE_POD_DELETE);
        EXPECT_EQ(due(nothing, &other, "u"), KUBE_POD_DELETE);
        EXPECT_EQ(due(over, &other, "u"), KUBE_POD_DELETE);
}

TEST(a_pod_of_the_server_that_has_the_name_of_one_of_ours_is_left_alone)
{
        cleanup_with(kube_metadata_done) KubeMetadata other = remote("there", NULL, true, NULL);

        EXPECT_EQ(due(of_file, &other, "u"), KUBE_POD_NOTHING);
}

TEST(a_pod_of_the_server_is_deleted_when_nothing_of_it_is_left_and_its_end_is_told)
{
        cleanup_with(kube_metadata_done) KubeMetadata there = remote("here", NULL, true, NULL);
        cleanup_with(kube_metadata_done) KubeMetadata told =
                remote("here", NULL, true, "{\"phase\":\"Running\"}");
        KubePodLocal over = of_api;

        over.is_over = true;
        EXPECT_EQ(due(of_api, &there, NULL), KUBE_POD_STATUS);
        EXPECT_EQ(due(of_api, &told, NULL), KUBE_POD_NOTHING);
        EXPECT_EQ(due(over, &there, NULL), KUBE_POD_STATUS);
        EXPECT_EQ(due(over, &told, NULL), KUBE_POD_DELETE);
        EXPECT_EQ(due(nothing, &there, NULL), KUBE_POD_DELETE);
}

TEST(what_is_here_of_an_older_pod_of_the_name_says_nothing_of_the_new_one)
{
        cleanup_with(kube_metadata_done) KubeMetadata next = remote("next", NULL, false, NULL);
        cleanup_with(kube_metadata_done) KubeMetadata ending = remote("next", NULL, true, NULL);

        EXPECT_EQ(due(of_api, &next, NULL), KUBE_POD_NOTHING);
        EXPECT_EQ(due(of_api, &ending, NULL), KUBE_POD_DELETE);
        EXPECT_EQ(due(of_api, NULL, NULL), KUBE_POD_NOTHING);
}
