/* SPDX-License-Identifier: Apache-2.0 */
/* What a mirror carries, and what it may not. */

#include "agent/kubeclient/mirror-pod.h"

#include "common/cleanup.h"
#include "tests/test.h"

static void expect_mirror(const char *pod, const char *expected) {
        cleanup_free char *mirror = mirror_pod_build(pod, "hash", "n1", "nu");

        EXPECT_STREQ(mirror, expected);
}

#define OWNER                                                                            \
        "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\"," \
        "\"uid\":\"nu\",\"controller\":true}]"
#define MIRROR "\"kubernetes.io/config.mirror\":\"hash\""

TEST(it_belongs_to_the_node_names_its_pod_and_has_no_status)
{
        expect_mirror(
                "{\"metadata\":{\"name\":\"p\",\"ownerReferences\":[{\"kind\":\"DaemonSet\"}]},"
                "\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Running\"}}",
                "{\"metadata\":{\"name\":\"p\"," OWNER ",\"annotations\":{" MIRROR "}},"
                "\"spec\":{\"nodeName\":\"n1\"}}");
}

TEST(what_refers_to_objects_is_left_out_with_its_mounts_and_variables)
{
        expect_mirror("{\"metadata\":{\"annotations\":{\"a\":\"b\"}},\"spec\":{\"volumes\":["
                      "{\"name\":\"s\",\"secret\":{}},{\"name\":\"e\",\"emptyDir\":{}}],"
                      "\"imagePullSecrets\":[{\"name\":\"x\"}],\"priority\":7,"
                      "\"priorityClassName\":\"mine\","
                      "\"runtimeClassName\":\"r\",\"serviceAccountName\":\"sa\","
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

TEST(the_classes_of_the_system_are_kept_for_every_server_has_them)
{
        expect_mirror("{\"metadata\":{},\"spec\":{\"priorityClassName\":\"system-node-critical\","
                      "\"priority\":2000001000}}",
                      "{\"metadata\":{\"annotations\":{" MIRROR "}," OWNER "},"
                      "\"spec\":{\"priorityClassName\":\"system-node-critical\"}}");
}

TEST(what_is_no_pod_has_none)
{
        expect_mirror("[]", NULL);
        expect_mirror("{\"metadata\":{}}", NULL);
}
