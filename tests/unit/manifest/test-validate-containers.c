/* SPDX-License-Identifier: Apache-2.0 */
/* Containers within a pod: init, sidecars, names, ports, restart rules. */

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

#define HEAD "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"
#define MAIN "  containers:\n  - {name: c, image: i}\n"

static void expect_error(const char *spec, const char *sentence) {
        cleanup_free char *yaml = NULL;
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r;

        REQUIRE(asprintf(&yaml, HEAD "%s", spec) > 0);
        r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);
        EXPECT_EQ(r, sentence ? -EINVAL : 0);
        EXPECT_STREQ(error.message, sentence);
        manifest_objects_done(&objects);
}

TEST(init_containers_are_validated_like_containers)
{
        expect_error(MAIN "  initContainers:\n  - {name: a, image: i}\n  - {name: b, image: i}\n",
                     NULL);
        expect_error(
                MAIN "  initContainers:\n  - {name: c, image: i}\n",
                "f:6:12: spec.containers[0].name: must be unique; 'c' is also initContainers[0]");
        expect_error(MAIN "  initContainers:\n  - {name: a, image: i}\n  - {name: a, image: i}\n",
                     "f:9:12: spec.initContainers[1].name: must be unique; 'a' is also "
                     "initContainers[0]");
        expect_error(MAIN "  initContainers:\n  - {name: a, image: i, volumeMounts: [{name: v, "
                          "mountPath: /v}]}\n",
                     "f:8:47: spec.initContainers[0].volumeMounts[0].name: must name a volume of "
                     "this pod, not 'v'");
        expect_error(
                MAIN "  initContainers:\n  - {name: a, image: i, resources: {limits: {cpu: 1}, "
                     "requests: {cpu: 2}}}\n",
                "f:8:71: spec.initContainers[0].resources.requests.cpu: must be at most the limit, "
                "1, not 2");
        expect_error(
                MAIN "  initContainers:\n  - {name: a, image: i, env: [{name: A, valueFrom: "
                     "{resourceFieldRef: {containerName: x, resource: limits.cpu}}}]}\n",
                "f:8:87: spec.initContainers[0].env[0].valueFrom.resourceFieldRef.containerName: "
                "must name a container of this pod, not 'x'");
        expect_error(MAIN
                     "  initContainers:\n  - {name: a, image: i, securityContext: {privileged: "
                     "true, allowPrivilegeEscalation: false}}\n",
                     "f:8:42: spec.initContainers[0].securityContext: cannot set "
                     "`allowPrivilegeEscalation` to false and `privileged` to true");
}

#define PORT(number) "ports: [{containerPort: 80, hostPort: " number "}]"

TEST(host_ports_conflict_among_containers_that_run_together)
{
        static const char main_port[] = "  containers:\n  - {name: c, image: i, " PORT("80") "}\n";
        char spec[512];

        (void) snprintf(spec, sizeof(spec),
                        "%s  initContainers:\n  - {name: a, image: i, " PORT(
                                "80") "}\n  - {name: "
                                      "b, image: i, " PORT("80") "}\n",
                        main_port);
        expect_error(spec, NULL);
        (void) snprintf(spec, sizeof(spec),
                        "%s  initContainers:\n  - {name: a, restartPolicy: Always, image: i, " PORT(
                                "80") "}\n",
                        main_port);
        expect_error(spec,
                     "f:6:63: spec.containers[0].ports[0].hostPort: must be unique; port 80 of the "
                     "host is taken by another port of this pod");
        expect_error(
                MAIN "  initContainers:\n  - {name: a, image: i, ports: [{containerPort: 1, "
                     "hostPort: 80}, {containerPort: 2, hostPort: 80}]}\n",
                "f:8:96: spec.initContainers[0].ports[1].hostPort: must be unique; port 80 of the "
                "host is taken by another port of this pod");
}

TEST(restart_rules_are_validated)
{
        static const char rule[] = "{action: Restart, exitCodes: {operator: In, values: [1]}}";
        char spec[4096], codes[2048] = "1";

        expect_error(
                "  containers:\n  - {name: c, image: i, restartPolicy: Never, restartPolicyRules: "
                "[{action: RestartAllContainers, exitCodes: {operator: NotIn, values: [0, 1]}}]}\n",
                NULL);
        expect_error(
                "  containers:\n  - {name: c, image: i, restartPolicyRules: [{action: Restart, "
                "exitCodes: {operator: In, values: [1]}}]}\n",
                "f:6:5: spec.containers[0].restartPolicy: must specify restartPolicy when restart "
                "rules are used");
        expect_error(
                "  containers:\n  - {name: c, image: i, restartPolicy: Never, restartPolicyRules: "
                "[{action: Stop, exitCodes: {operator: In, values: [1]}}]}\n",
                "f:6:77: spec.containers[0].restartPolicyRules[0].action: must be Restart or "
                "RestartAllContainers, not 'Stop'");
        expect_error(
                "  containers:\n  - {name: c, image: i, restartPolicy: Never, restartPolicyRules: "
                "[{action: Restart}]}\n",
                "f:6:68: spec.containers[0].restartPolicyRules[0].exitCodes: is required");
        expect_error(
                "  containers:\n  - {name: c, image: i, restartPolicy: Never, restartPolicyRules: "
                "[{action: Restart, exitCodes: {operator: Is, values: [1]}}]}\n",
                "f:6:108: spec.containers[0].restartPolicyRules[0].exitCodes.operator: must be In "
                "or NotIn, not 'Is'");
        (void) snprintf(spec, sizeof(spec),
                        "  containers:\n  - name: c\n    image: i\n    restartPolicy: Never\n"
                        "    restartPolicyRules:\n");
        for (size_t i = 0; i < 21; i++)
                (void) snprintf(spec + strlen(spec), sizeof(spec) - strlen(spec), "    - %s\n",
                                rule);
        expect_error(spec,
                     "f:10:5: spec.containers[0].restartPolicyRules: must have at most 20 items");
        for (size_t i = 0; i < 255; i++)
                (void) snprintf(codes + strlen(codes), sizeof(codes) - strlen(codes), ",%zu", i);
        (void) snprintf(spec, sizeof(spec),
                        "  containers:\n  - name: c\n    image: i\n    restartPolicy: Never\n"
                        "    restartPolicyRules:\n"
                        "    - {action: Restart, exitCodes: {operator: In, values: [%s]}}\n",
                        codes);
        expect_error(spec,
                     "f:10:59: spec.containers[0].restartPolicyRules[0].exitCodes.values: must "
                     "have at most 255 items");
}

TEST(active_deadline_is_at_least_a_second)
{
        expect_error(MAIN "  activeDeadlineSeconds: 1\n", NULL);
        expect_error(MAIN "  activeDeadlineSeconds: 0\n",
                     "f:7:26: spec.activeDeadlineSeconds: must be between 1 and 2147483647, not 0");
}
