/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/node-object.h"
#include "agent/model/pod.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/strv.h"
#include "tests/test.h"

#define NOW   (UINT64_C(1767225600) * USEC_PER_SEC) /* 2026-01-01T00:00:00Z */
#define LATER (NOW + 60 * USEC_PER_SEC)

typedef struct Sample {
        NodeLabelsTaints local;
        NodeStatus status;
} Sample;

static void sample_init(Sample *sample) {
        NodeStatus *status = &sample->status;

        *sample = (Sample){ 0 };
        sample->local.name = strdup("node1");
        REQUIRE(node_labels_taints_add_well_known(&sample->local, "node1", "amd64") == 0);
        status->capacity =
                (NodeResources){ 2000, 24684092 * 1024LL, 264212084 * 1024LL, 0, 0, 110 };
        status->allocatable = (NodeResources){ 1930, 24581692 * 1024LL,  243497856212LL,
                                               0,    NODE_RESOURCE_NONE, 110 };
        REQUIRE(strv_append(&status->addresses, "192.0.2.10") == 0);
        status->hostname = strdup("node1");
        status->info.kernel_version = strdup("6.18.0");
        status->info.architecture = strdup("amd64");
        status->port = 10250;
}

static void sample_done(Sample *sample) {
        node_labels_taints_done(&sample->local);
        node_status_done(&sample->status);
}

static json_t *json_at_path(json_t *json, const char *path) {
        char copy[256], *rest = copy, *part;

        (void) snprintf(copy, sizeof(copy), "%s", path);
        while ((part = strsep(&rest, "|")) && json)
                json = json_is_array(json) ? json_array_get(json, (size_t) (part[0] - '0'))
                                           : json_object_get(json, part);
        return json;
}

static const char *text_at_path(json_t *json, const char *path) {
        return json_string_value(json_at_path(json, path));
}

static json_t *make_node_object(const Sample *sample) {
        cleanup_free char *body = node_object_new(&sample->local, &sample->status, NOW);
        json_t *json = body ? json_loads(body, 0, NULL) : NULL;

        REQUIRE(json);
        return json;
}

/* The response of the server to the body. */
static char *known_of(const Sample *sample) {
        json_t *json = make_node_object(sample);
        char *known;

        (void) json_object_set_new(json_at_path(json, "metadata"), "uid", json_string("u-1"));
        (void) json_object_set_new(json_at_path(json, "metadata"), "resourceVersion",
                                   json_string("7"));
        known = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        return known;
}

static json_t *patch_of(const Sample *sample, const char *known, bool heartbeat, int expected) {
        cleanup_json json_t *node = json_loads(known, 0, NULL);
        cleanup_free char *patch = NULL;

        EXPECT_EQ(
                node_object_patch(node, &sample->local, &sample->status, LATER, heartbeat, &patch),
                expected);
        return patch ? json_loads(patch, 0, NULL) : NULL;
}

TEST(registration_uses_the_reasons_and_messages_of_the_kubelet)
{
        Sample sample;
        json_t *json;

        sample_init(&sample);
        json = make_node_object(&sample);
        EXPECT_STREQ(text_at_path(json, "kind"), "Node");
        EXPECT_STREQ(text_at_path(json, "metadata|labels|kubernetes.io/hostname"), "node1");
        EXPECT_STREQ(text_at_path(json, "status|capacity|cpu"), "2");
        EXPECT_STREQ(text_at_path(json, "status|allocatable|cpu"), "1930m");
        EXPECT_STREQ(text_at_path(json, "status|capacity|memory"), "24684092Ki");
        EXPECT_STREQ(text_at_path(json, "status|allocatable|ephemeral-storage"), "243497856212");
        EXPECT_STREQ(text_at_path(json, "status|capacity|hugepages-2Mi"), "0");
        EXPECT(!json_at_path(json, "status|allocatable|hugepages-2Mi"));
        EXPECT_STREQ(text_at_path(json, "status|conditions|0|type"), "MemoryPressure");
        EXPECT_STREQ(text_at_path(json, "status|conditions|0|reason"),
                     "KubeletHasSufficientMemory");
        EXPECT_STREQ(text_at_path(json, "status|conditions|3|type"), "Ready");
        EXPECT_STREQ(text_at_path(json, "status|conditions|3|status"), "True");
        EXPECT_STREQ(text_at_path(json, "status|conditions|3|message"),
                     "kubelet is posting ready status");
        EXPECT_STREQ(text_at_path(json, "status|conditions|3|lastTransitionTime"),
                     "2026-01-01T00:00:00Z");
        EXPECT_STREQ(text_at_path(json, "status|addresses|0|type"), "InternalIP");
        EXPECT_STREQ(text_at_path(json, "status|addresses|1|address"), "node1");
        EXPECT_STREQ(text_at_path(json, "status|nodeInfo|operatingSystem"), "linux");
        EXPECT_EQ(json_integer_value(
                          json_at_path(json, "status|daemonEndpoints|kubeletEndpoint|Port")),
                  10250);
        EXPECT(!json_at_path(json, "spec|taints"));
        json_decref(json);
        sample_done(&sample);
}

TEST(equal_node_needs_no_patch)
{
        Sample sample;
        cleanup_free char *known = NULL;

        sample_init(&sample);
        known = known_of(&sample);
        (void) patch_of(&sample, known, false, 0);
        sample_done(&sample);
}

TEST(heartbeat_has_the_conditions_only)
{
        Sample sample;
        cleanup_free char *known = NULL;
        json_t *patch;

        sample_init(&sample);
        known = known_of(&sample);
        patch = patch_of(&sample, known, true, 1);
        EXPECT_EQ(json_object_size(json_at_path(patch, "status")), 2);
        EXPECT_EQ(json_array_size(json_at_path(patch, "status|conditions")), 4);
        EXPECT_EQ(json_object_size(json_at_path(patch, "status|conditions|2")), 2);
        EXPECT_STREQ(text_at_path(patch, "status|conditions|2|type"), "PIDPressure");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|2|lastHeartbeatTime"),
                     "2026-01-01T00:01:00Z");
        EXPECT_STREQ(text_at_path(patch, "status|$setElementOrder/conditions|3|type"), "Ready");
        EXPECT(!json_at_path(patch, "metadata"));
        json_decref(patch);
        sample_done(&sample);
}

TEST(changed_condition_has_its_transition_time)
{
        Sample sample;
        cleanup_free char *known = NULL;
        json_t *patch;

        sample_init(&sample);
        known = known_of(&sample);
        sample.status.pressure.set = NODE_CONDITION_BIT(NODE_DISK_PRESSURE);
        patch = patch_of(&sample, known, false, 1);
        EXPECT_STREQ(text_at_path(patch, "status|conditions|1|status"), "True");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|1|reason"), "KubeletHasDiskPressure");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|1|lastTransitionTime"),
                     "2026-01-01T00:01:00Z");
        EXPECT(!json_at_path(patch, "status|conditions|3|status"));
        json_decref(patch);
        sample_done(&sample);
}

/* The same condition as that of the node problem detector. */
TEST(a_read_only_file_system_is_reported_if_there_is_or_was_one)
{
        Sample sample;
        cleanup_free char *usual = NULL, *known = NULL;
        json_t *patch, *json;

        sample_init(&sample);
        usual = known_of(&sample);
        EXPECT(!strstr(usual, "ReadonlyFilesystem"));
        sample.status.pressure.set = NODE_CONDITION_BIT(NODE_READONLY_FILESYSTEM);
        patch = patch_of(&sample, usual, false, 1);
        EXPECT_STREQ(text_at_path(patch, "status|conditions|3|type"), "ReadonlyFilesystem");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|3|status"), "True");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|3|reason"), "FilesystemIsReadOnly");
        json_decref(patch);
        json = make_node_object(&sample);
        EXPECT_EQ(json_array_size(json_at_path(json, "status|conditions")), 5);
        json_decref(json);

        known = known_of(&sample);
        sample.status.pressure.set = 0;
        patch = patch_of(&sample, known, false, 1);
        EXPECT_STREQ(text_at_path(patch, "status|conditions|3|status"), "False");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|3|reason"), "FilesystemIsNotReadOnly");
        json_decref(patch);
        sample_done(&sample);
}

TEST(changed_message_keeps_the_transition_time)
{
        Sample sample;
        cleanup_free char *known = NULL;
        json_t *patch;

        sample_init(&sample);
        sample.status.not_ready_reason = strdup("one");
        known = known_of(&sample);
        free(sample.status.not_ready_reason);
        sample.status.not_ready_reason = strdup("another");
        patch = patch_of(&sample, known, false, 1);
        EXPECT_STREQ(text_at_path(patch, "status|conditions|3|message"), "another");
        EXPECT(!json_at_path(patch, "status|conditions|3|reason"));
        EXPECT(!json_at_path(patch, "status|conditions|3|lastTransitionTime"));
        json_decref(patch);
        sample_done(&sample);
}

TEST(patch_contains_only_the_differences)
{
        Sample sample;
        cleanup_free char *known = NULL;
        json_t *patch;

        sample_init(&sample);
        known = known_of(&sample);
        sample.status.capacity.memory *= 2;
        sample.status.capacity.huge_pages_2mi = NODE_RESOURCE_NONE;
        REQUIRE(strv_append(&sample.status.addresses, "2001:db8::1") == 0);
        patch = patch_of(&sample, known, false, 1);
        EXPECT_EQ(json_object_size(json_at_path(patch, "status|capacity")), 2);
        EXPECT(json_is_null(json_at_path(patch, "status|capacity|hugepages-2Mi")));
        EXPECT(!json_at_path(patch, "status|allocatable"));
        EXPECT(!json_at_path(patch, "status|nodeInfo"));
        EXPECT_EQ(json_array_size(json_at_path(patch, "status|addresses")), 4);
        EXPECT_STREQ(text_at_path(patch, "status|addresses|3|$patch"), "replace");
        EXPECT_EQ(json_array_size(json_at_path(patch, "status|conditions")), 4);
        json_decref(patch);
        sample_done(&sample);
}

TEST(refused_permission_is_a_condition)
{
        Sample sample;
        cleanup_free char *known = NULL;
        json_t *patch;

        sample_init(&sample);
        known = known_of(&sample);
        sample.status.refused = strdup("DaemonSets: it may not list them");
        patch = patch_of(&sample, known, false, 1);
        EXPECT_STREQ(text_at_path(patch, "status|conditions|4|type"), "mainstay.io/Refused");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|4|status"), "True");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|4|message"),
                     "DaemonSets: it may not list them");
        json_decref(patch);

        free(known);
        known = known_of(&sample);
        free(sample.status.refused);
        sample.status.refused = NULL;
        patch = patch_of(&sample, known, false, 1);
        EXPECT_STREQ(text_at_path(patch, "status|conditions|4|status"), "False");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|4|reason"), "NothingRefused");
        json_decref(patch);
        sample_done(&sample);
}

TEST(configured_source_has_a_condition)
{
        Sample sample;
        cleanup_free char *known = NULL;
        json_t *patch;

        sample_init(&sample);
        known = known_of(&sample);
        sample.status.sources = (NodeSources){ .n = 1,
                                               .items[0] = { .name = "source",
                                                             .message = "index 3 is older",
                                                             .has_failed = true,
                                                             .is_refused = true,
                                                             .since = NOW } };
        patch = patch_of(&sample, known, false, 1);
        EXPECT_STREQ(text_at_path(patch, "status|conditions|4|type"), "mainstay.io/SourceFailed");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|4|status"), "True");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|4|reason"), "SourceRefused");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|4|message"), "index 3 is older");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|4|lastTransitionTime"),
                     "2026-01-01T00:00:00Z");
        json_decref(patch);

        free(known);
        known = known_of(&sample);
        json_decref(patch_of(&sample, known, false, 0));
        sample.status.sources.n = 0;
        patch = patch_of(&sample, known, false, 1);
        EXPECT_STREQ(text_at_path(patch, "status|conditions|4|status"), "False");
        EXPECT_STREQ(text_at_path(patch, "status|conditions|4|reason"), "NotConfigured");
        json_decref(patch);
        sample_done(&sample);
}

TEST(number_of_images_is_limited_to_the_maximum_of_the_API)
{
        Sample sample;
        json_t *json;

        sample_init(&sample);
        sample.status.images.items = calloc(60, sizeof(NodeImage));
        REQUIRE(sample.status.images.items);
        for (sample.status.images.n = 0; sample.status.images.n < 60; sample.status.images.n++)
                for (unsigned i = 0; i < 7; i++)
                        REQUIRE(strv_appendf(
                                        &sample.status.images.items[sample.status.images.n].names,
                                        "image:%u", i) == 0);
        json = make_node_object(&sample);
        EXPECT_EQ(json_array_size(json_at_path(json, "status|images")), NODE_IMAGES_MAX);
        EXPECT_EQ(json_array_size(json_at_path(json, "status|images|0|names")),
                  NODE_IMAGE_NAMES_MAX);
        json_decref(json);
        sample_done(&sample);
}

TEST(node_is_parsed)
{
        NodeLabelsTaints external = { 0 };
        char *uid = NULL, *version = NULL;

        cleanup_json json_t *node = json_loads(
                "{\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"9\","
                "\"labels\":{\"a\":\"b\",\"bad\":3}},\"spec\":{\"taints\":[{\"key\":\"k\","
                "\"effect\":\"NoExecute\"},{\"key\":\"x\",\"effect\":\"Odd\"},7]}}",
                0, NULL);

        REQUIRE(node_object_parse(node, &external, &uid, &version) == 0);
        EXPECT_STREQ(external.name, "n");
        EXPECT_STREQ(uid, "u");
        EXPECT_STREQ(version, "9");
        EXPECT_EQ(external.labels.n, 1);
        EXPECT_EQ(external.taints.n, 1);
        EXPECT_EQ(external.taints.items[0].effect, TAINT_NO_EXECUTE);
        node_labels_taints_done(&external);
        free(uid);
        free(version);
}

TEST(json_that_is_not_a_node_is_an_error)
{
        static const char *const cases[] = { "",
                                             "{}",
                                             "[]",
                                             "7",
                                             "{\"metadata\":7}",
                                             "{\"metadata\":{\"name\":7,\"uid\":[]}}",
                                             "{\"metadata\":{\"name\":\"n\"},\"spec\":[]}" };
        Sample sample;

        sample_init(&sample);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                NodeLabelsTaints external = { 0 };
                cleanup_json json_t *node = json_loads(cases[i], 0, NULL);
                char *uid, *version, *patch;

                EXPECT_EQ(node_object_parse(node, &external, &uid, &version), -EBADMSG);
                if (i < 5)
                        EXPECT_EQ(node_object_patch(node, &sample.local, &sample.status, NOW, false,
                                                    &patch),
                                  -EBADMSG);
        }
        sample_done(&sample);
}
