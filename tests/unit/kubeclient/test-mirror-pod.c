/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of a pod its mirror pod contains, and which are omitted. */

#include "agent/kubeclient/mirror-pod.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "tests/test.h"

static void expect_mirror(const char *pod, const char *expected) {
        cleanup_json json_t *tree = json_loads(pod, 0, NULL);
        cleanup_free char *mirror = mirror_pod_build(tree, "hash", "n1", "nu");

        EXPECT_STREQ(mirror, expected);
}

#define OWNER                                                                            \
        "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\"," \
        "\"uid\":\"nu\",\"controller\":true}]"
#define MIRROR "\"kubernetes.io/config.mirror\":\"hash\""

TEST(mirror_pod_is_owned_by_the_node_and_has_no_status)
{
        expect_mirror(
                "{\"metadata\":{\"name\":\"p\",\"ownerReferences\":[{\"kind\":\"DaemonSet\"}]},"
                "\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Running\"}}",
                "{\"metadata\":{\"name\":\"p\"," OWNER ",\"annotations\":{" MIRROR "}},"
                "\"spec\":{\"nodeName\":\"n1\"}}");
}

TEST(references_to_objects_are_left_out_with_their_mounts_and_variables)
{
        expect_mirror("{\"metadata\":{\"annotations\":{\"a\":\"b\"}},\"spec\":{\"volumes\":["
                      "{\"name\":\"s\",\"secret\":{}},{\"name\":\"e\",\"emptyDir\":{}}],"
                      "\"imagePullSecrets\":[{\"name\":\"x\"}],\"priority\":7,"
                      "\"priorityClassName\":\"mine\","
                      "\"runtimeClassName\":\"r\",\"serviceAccountName\":\"sa\","
                      "\"ephemeralContainers\":[{\"name\":\"e\"}],"
                      "\"containers\":[{\"name\":\"c\",\"envFrom\":[{\"secretRef\":{}}],\"env\":["
                      "{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"B\",\"valueFrom\":{"
                      "\"secretKeyRef\":{}}},"
                      "{\"name\":\"D\",\"valueFrom\":{\"configMapKeyRef\":{}}},"
                      "{\"name\":\"E\",\"valueFrom\":{\"fieldRef\":{}}}],"
                      "\"volumeMounts\":[{\"name\":\"s\"},{\"name\":\"e\"}]}]}}",
                      "{\"metadata\":{\"annotations\":{\"a\":\"b\"," MIRROR "}," OWNER "},"
                      "\"spec\":{\"volumes\":[{\"name\":\"e\",\"emptyDir\":{}}],"
                      "\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":\"A\",\"value\":\"1\"},"
                      "{\"name\":\"E\",\"valueFrom\":{\"fieldRef\":{}}}],"
                      "\"volumeMounts\":[{\"name\":\"e\"}]}]}}");
}

TEST(system_priority_classes_are_kept)
{
        expect_mirror("{\"metadata\":{},\"spec\":{\"priorityClassName\":\"system-node-critical\","
                      "\"priority\":2000001000}}",
                      "{\"metadata\":{\"annotations\":{" MIRROR "}," OWNER "},"
                      "\"spec\":{\"priorityClassName\":\"system-node-critical\"}}");
}

#define SOURCE(name) "\"kubernetes.io/config.source\":\"" name "\""
#define HASH         "\"kubernetes.io/config.hash\":\"h\""
#define TOLERATION   "{\"operator\":\"Exists\",\"effect\":\"NoExecute\"}"

TEST(a_static_pod_tolerates_all_noexecute_taints)
{
        static const struct {
                const char *annotations, *spec, *expected;
        } rows[] = {
                { HASH "," SOURCE("file"), "", "\"tolerations\":[" TOLERATION "]" },
                { HASH "," SOURCE("file"), "\"tolerations\":[{\"key\":\"a\"}]",
                  "\"tolerations\":[{\"key\":\"a\"}," TOLERATION "]" },
                { HASH "," SOURCE("file"), "\"tolerations\":[" TOLERATION "]",
                  "\"tolerations\":[" TOLERATION "]" },
                { HASH "," SOURCE("http"), "", "" },
                { SOURCE("file"), "", "" }, /* a pod of a DaemonSet */
        };

        for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
                cleanup_free char *pod = NULL, *expected = NULL;

                REQUIRE(asprintf(&pod, "{\"metadata\":{\"annotations\":{%s}},\"spec\":{%s}}",
                                 rows[i].annotations, rows[i].spec) >= 0);
                REQUIRE(asprintf(&expected,
                                 "{\"metadata\":{\"annotations\":{%s," MIRROR "}," OWNER
                                 "},\"spec\":{%s}}",
                                 rows[i].annotations, rows[i].expected) >= 0);
                expect_mirror(pod, expected);
        }
}

TEST(json_that_is_not_a_pod_gives_no_mirror_pod)
{
        expect_mirror("[]", NULL);
        expect_mirror("{\"metadata\":{}}", NULL);
}
