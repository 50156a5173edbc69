/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

#define HEAD "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"

/* Returns the errors, each followed by a newline. */
static char *find_errors(const char *yaml) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_strv char **errors = NULL;
        int r = manifest_validate("f", yaml, strlen(yaml), "node1", &objects, &errors);
        char *text;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        EXPECT_EQ(r, errors ? -EINVAL : 0);
        EXPECT(r == 0 || objects.pods.n == 0);
        strv_foreach(message, errors)
                fprintf(out, "%s\n", *message);
        REQUIRE(fclose(out) == 0);
        return text;
}

static void expect_errors(const char *yaml, const char *expected) {
        cleanup_free char *errors = find_errors(yaml);

        EXPECT_STREQ(errors, expected);
}

TEST(a_valid_file_gives_an_empty_list)
{ expect_errors(HEAD "  containers: [{name: c, image: i}]\n", ""); }

TEST(all_fields_of_wrong_types_are_reported)
{
        expect_errors(HEAD "  hostNetwork: 1\n"
                           "  restartPolicy: Sometimes\n"
                           "  containers:\n"
                           "  - name: C\n"
                           "    command: [a, 1, 2]\n"
                           "  - image: i\n",
                      "f:5:16: spec.hostNetwork: must be true or false, not the number 1\n"
                      "f:6:18: spec.restartPolicy: must be Always, OnFailure or Never, not "
                      "'Sometimes'\n"
                      "f:8:11: spec.containers[0].name: must be a DNS label, not 'C'\n"
                      "f:9:18: spec.containers[0].command[1]: must be a string, not the number 1; "
                      "quote it\n"
                      "f:9:21: spec.containers[0].command[2]: must be a string, not the number 2; "
                      "quote it\n"
                      "f:8:5: spec.containers[0].image: is required\n"
                      "f:10:5: spec.containers[1].name: is required\n");
}

TEST(all_broken_rules_are_reported)
{
        expect_errors(HEAD "  volumes: [{name: a, hostpath: {}}, {name: b, emptyDir: {}}]\n"
                           "  tolerations: [{value: x}, {effect: NoExecute, key: a, operator: "
                           "Exists, value: z}]\n"
                           "  containers:\n"
                           "  - {name: c, image: i, volumeMounts: [{name: x, mountPath: /x}, "
                           "{name: z, mountPath: /z}]}\n"
                           "  - {name: c, image: i}\n",
                      "f:5:23: spec.volumes[0].hostpath: is not a field of Volume; did you mean "
                      "'hostPath'?\n"
                      "f:6:17: spec.tolerations[0].operator: must be Exists when `key` is empty, "
                      "which means \"match all values and all keys\"\n"
                      "f:6:82: spec.tolerations[1].value: must be empty when `operator` is "
                      "'Exists'\n"
                      "f:5:13: spec.volumes[0]: must have a source, such as hostPath or emptyDir\n"
                      "f:8:47: spec.containers[0].volumeMounts[0].name: must name a volume of this "
                      "pod, not 'x'\n"
                      "f:8:73: spec.containers[0].volumeMounts[1].name: must name a volume of this "
                      "pod, not 'z'\n"
                      "f:9:12: spec.containers[1].name: must be unique; 'c' is also "
                      "containers[0]\n");
}

TEST(all_documents_are_checked_for_errors)
{
        expect_errors("kind: Pod\n---\n" HEAD "  containers: []\n---\n"
                      "apiVersion: v1\nkind: List\nitems: [1, {apiVersion: v1, kind: Pot}]\n",
                      "f:1:1: apiVersion: is required\n"
                      "f:7:15: spec.containers: is required\n"
                      "f:11:9: items[0]: must be an object with kind and apiVersion\n"
                      "f:11:35: items[1].kind: is Pot, which a node does not run; it runs "
                      "Pod, DaemonSet, ConfigMap, Secret, PriorityClass, RuntimeClass and List\n");
}

TEST(a_file_without_structure_has_one_error)
{
        expect_errors("a: [\n",
                      "f:2:1: did not find expected node content, while parsing a flow node "
                      "that starts at line 2\n");
        expect_errors("", "f: holds no object\n");
}

TEST(number_of_errors_is_limited_to_a_hundred)
{
        char *yaml;
        size_t length, n = 0;
        FILE *out = open_memstream(&yaml, &length);
        cleanup_free char *errors = NULL;

        REQUIRE(out);
        fputs(HEAD "  containers:\n", out);
        for (size_t i = 0; i < 103; i++)
                fputs("  - {name: c, image: 1}\n", out);
        REQUIRE(fclose(out) == 0);
        errors = find_errors(yaml);
        free(yaml);
        for (const char *p = errors; *p; p++)
                n += *p == '\n';
        EXPECT_EQ(n, 101);
        EXPECT(strstr(errors, "\nf: and 3 more\n"));
}

TEST(all_fields_in_the_wrong_place_are_reported_with_the_errors_below_them)
{
        expect_errors("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec:\n"
                      "  selector: {matchLabels: {a: b}}\n  template:\n"
                      "    metadata: {labels: {a: b}}\n"
                      "    tolerations: [{operator: Sometimes}]\n"
                      "    containers: [{name: C, image: i}]\n"
                      "    volumes: []\n",
                      "f:8:5: spec.template.tolerations: is a field of the pod's spec; it belongs "
                      "below spec.template.spec, not below template\n"
                      "f:8:30: spec.template.tolerations[0].operator: must be Exists or Equal, not "
                      "'Sometimes'\n"
                      "f:9:5: spec.template.containers: is a field of the pod's spec; it belongs "
                      "below spec.template.spec, not below template\n"
                      "f:9:25: spec.template.containers[0].name: must be a DNS label, not 'C'\n"
                      "f:10:5: spec.template.volumes: is a field of the pod's spec; it belongs "
                      "below spec.template.spec, not below template\n");
        expect_errors(
                "apiVersion: v1\nkind: Pod\nmetadata: {name: p, hostNetwork: 1}\n"
                "containers: [{name: c, image: i, runAsUser: 0, limits: {cpu: 1}}]\n",
                "f:3:21: metadata.hostNetwork: is a field of the pod's spec; it belongs below "
                "spec, not below metadata\n"
                "f:3:34: metadata.hostNetwork: must be true or false, not the number 1\n"
                "f:4:1: containers: is a field of the pod's spec; it belongs below spec, not "
                "below the document\n"
                "f:4:34: containers[0].runAsUser: is a field of the security context; it "
                "belongs below containers[0].securityContext, not below containers\n"
                "f:4:48: containers[0].limits: is a field of the resources; it belongs below "
                "containers[0].resources, not below containers\n");
        expect_errors(
                "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\n"
                "selector: {matchLabels: {a: b}}\n"
                "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: C, image: i}]}, "
                "env: [{name: 1}]}\n",
                "f:4:1: selector: is a field of the DaemonSet's spec; it belongs below spec, not "
                "below the document\n"
                "f:5:1: template: is a field of the DaemonSet's spec; it belongs below spec, not "
                "below the document\n"
                "f:5:67: template.spec.containers[0].name: must be a DNS label, not 'C'\n"
                "f:5:83: template.env: is a field of a container; it belongs below "
                "template.spec.containers[], not below template\n"
                "f:5:96: template.env[0].name: must be a string, not the number 1; quote it\n");
        expect_errors("apiVersion: v1\nkind: Pod\nnamespace: NS\nimage: i\n",
                      "f:3:1: namespace: is a field of the metadata; it belongs below metadata, "
                      "not below the document\n"
                      "f:3:12: namespace: must be a DNS label, not 'NS'\n"
                      "f:4:1: image: is a field of a container; it belongs below "
                      "spec.containers[], not below the document\n");
}

/* Expects one error of a pod with this text in containers[0], in its spec or at its top level. */
static void expect_advice(const char *top, const char *spec, const char *container,
                          const char *expected) {
        cleanup_free char *yaml = NULL, *all = NULL;

        REQUIRE(asprintf(&yaml,
                         "{apiVersion: v1, kind: Pod, metadata: {name: p}, %s\nspec: {%s\n"
                         "containers: [{name: c, image: i, %s}]}}\n",
                         top, spec, container) > 0);
        REQUIRE(asprintf(&all, "f:%s\n", expected) > 0);
        expect_errors(yaml, all);
}

TEST(a_field_belongs_to_the_nearest_object_that_has_it)
{
        expect_advice("runAsUser: 5,", "", "",
                      "1:50: runAsUser: is a field of the pod's security context; it belongs below "
                      "spec.securityContext, not below the document");
        expect_advice("", "privileged: true,", "",
                      "2:8: spec.privileged: is a field of the security context; it belongs below "
                      "spec.containers[].securityContext, not below spec");
        expect_advice(
                "", "labels: {a: b},", "",
                "2:8: spec.labels: is a field of the metadata; it belongs below metadata, not "
                "below spec");
        expect_advice("", "securityContext: {readOnlyRootFilesystem: true},", "",
                      "2:26: spec.securityContext.readOnlyRootFilesystem: is a field of the "
                      "security context; it belongs below spec.containers[].securityContext, not "
                      "below securityContext");
        expect_advice("", "", "fsGroup: 5",
                      "3:34: spec.containers[0].fsGroup: is a field of the pod's security context; "
                      "it belongs below spec.securityContext, not below containers");
        expect_advice("", "", "securityContext: {hostPID: true}",
                      "3:52: spec.containers[0].securityContext.hostPID: is a field of the pod's "
                      "spec; it belongs below spec, not below securityContext");
        expect_advice("", "", "resources: {cpu: 1}",
                      "3:46: spec.containers[0].resources.cpu: is a field of ResourceList; it "
                      "belongs below spec.containers[0].resources.limits or "
                      "spec.containers[0].resources.requests, not below resources");
        expect_advice(
                "", "", "cpu: 100m",
                "3:34: spec.containers[0].cpu: is a field of ResourceList; it belongs below "
                "spec.containers[0].resources.limits or spec.containers[0].resources.requests, "
                "not below containers");
        expect_advice("", "", "hugepages-2Mi: 2Mi",
                      "3:34: spec.containers[0].hugepages-2Mi: is a field of ResourceList; it "
                      "belongs below spec.containers[0].resources.limits or "
                      "spec.containers[0].resources.requests, not below containers");
        expect_advice("", "memory: 1Gi,", "",
                      "2:8: spec.memory: is a field of ResourceList; it belongs below "
                      "spec.resources.limits or spec.resources.requests, not below spec");
        expect_advice("", "", "httpGet: {port: 80}",
                      "3:34: spec.containers[0].httpGet: is a field of Probe; it belongs below "
                      "spec.containers[0].livenessProbe or spec.containers[0].readinessProbe or "
                      "spec.containers[0].startupProbe, not below containers");
}

/* The name of a Secret is 'name', like that of any object, but its volume has no 'name' field. */
TEST(a_field_of_many_objects_gets_no_advice)
{
        expect_advice("", "volumes: [{name: v, secret: {name: s}}],", "",
                      "2:37: spec.volumes[0].secret.name: is not a field of SecretVolumeSource\n"
                      "f:2:37: spec.volumes[0].secret.secretName: is required; 'name' is not a "
                      "field of SecretVolumeSource");
        expect_advice(
                "", "", "volumeMounts: [{name: v, path: /v}]",
                "3:59: spec.containers[0].volumeMounts[0].path: is not a field of "
                "VolumeMount\n"
                "f:3:59: spec.containers[0].volumeMounts[0].mountPath: is required; 'path' is "
                "not a field of VolumeMount");
        expect_advice("", "", "kind: Pod, apiVersion: v1",
                      "3:34: spec.containers[0].kind: is not a field of Container\n"
                      "f:3:45: spec.containers[0].apiVersion: is not a field of Container");
}
