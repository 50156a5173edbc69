/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMaps and Secrets, and references to them. */

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

#define MAP    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"
#define SECRET "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
#define POD    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"

static ManifestObjects parse_ok(const char *yaml) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);

        if (r < 0)
                test_fail(__FILE__, __LINE__, yaml, "is refused: %s", error_message(&error, r));
        REQUIRE(r == 0);
        return objects;
}

static void expect_verdict(const char *yaml, const char *verdict) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);

        printf("%s\n", yaml);
        EXPECT_STREQ(r < 0 ? error_message(&error, r) : "", verdict);
        manifest_objects_done(&objects);
}

/* Returns 'text' with 'value' in place of "%s". */
static char *replace_once(const char *text, const char *value) {
        const char *place = strstr(text, "%s");
        char *result = NULL;

        REQUIRE(place &&
                asprintf(&result, "%.*s%s%s", (int) (place - text), text, value, place + 2) >= 0);
        return result;
}

TEST(config_map_values_are_sorted_by_key)
{
        ManifestObjects objects = parse_ok(MAP "immutable: true\ndata: {b: text, a: ''}\n"
                                               "binaryData: {c: AP8=}\n");
        const DataObject *map;

        REQUIRE(objects.data.n == 1 && objects.pods.n == 0);
        map = objects.data.items[0];
        EXPECT_EQ(map->kind, OBJECT_CONFIG_MAP);
        EXPECT_STREQ(map->metadata.namespace, "default");
        EXPECT(map->immutable);
        REQUIRE(map->values.n == 3);
        EXPECT_STREQ(map->values.items[0].key, "a");
        EXPECT_EQ(map->values.items[0].length, 0);
        EXPECT_STREQ(map->values.items[1].bytes, "text");
        EXPECT(map->values.items[2].is_binary && !map->values.items[1].is_binary);
        EXPECT(memcmp(map->values.items[2].bytes, "\0\xff", 3) == 0);
        manifest_objects_done(&objects);
}

TEST(secret_data_is_base64_and_string_data_overrides_it)
{
        ManifestObjects objects = parse_ok(SECRET "data: {a: eA==, b: eQ==}\n"
                                                  "stringData: {b: new, c: z}\n---\n" MAP);
        const DataObject *secret;

        REQUIRE(objects.data.n == 2);
        secret = objects.data.items[0];
        EXPECT_STREQ(secret->type, "Opaque");
        EXPECT_STREQ(data_object_find(secret, "a")->bytes, "x");
        EXPECT_STREQ(data_object_find(secret, "b")->bytes, "new");
        EXPECT_STREQ(data_object_find(secret, "c")->bytes, "z");
        EXPECT(!data_object_find(secret, "d"));
        EXPECT(secret->data.n == 0 && secret->string_data.n == 0);
        manifest_objects_done(&objects);
}

TEST(objects_are_checked)
{
        static const struct {
                const char *yaml;
                const char *verdict;
        } cases[] = {
                { MAP "data: {a: 1}",
                  "f:4:11: data[a]: must be a string, not the number 1; quote it" },
                { SECRET "stringData: {a: 40711}",
                  "f:4:17: stringData[a]: must be a string; quote it" },
                { SECRET "stringData: {a: [x]}", "f:4:17: stringData[a]: must be a string" },
                { SECRET "data: {a: hunter2}",
                  "f:4:11: data[a]: must be base64; text belongs into stringData" },
                { MAP "binaryData: {a: '='}", "f:4:17: binaryData[a]: must be base64" },
                { MAP "data: {a: x}\nbinaryData: {a: eA==}",
                  "f:5:17: binaryData[a]: must be unique; it is also a key of data" },
                { MAP "data: {'a/b': x}",
                  "f:4:15: data[a/b]: must consist of letters, digits, '-', "
                  "'_' and '.', not 'a/b'" },
                { MAP "data: {'..': x}",
                  "f:4:14: data[..]: must be neither '.' nor start with '..', not '..'" },
                { MAP "data: {'.': x}",
                  "f:4:13: data[.]: must be neither '.' nor start with '..', not '.'" },
                { MAP "data: {'.a': x}", "" },
                { MAP "---\n" MAP,
                  "f:7:18: metadata.name: configmap default/m is defined twice in this file" },
                { MAP "---\n" SECRET "---\n" POD "  containers: [{name: c, image: i}]", "" },
                { SECRET "type: kubernetes.io/tls\nstringData: {tls.crt: x}",
                  "f:1:1: data: must have 'tls.key' in a Secret of type kubernetes.io/tls" },
                { SECRET "type: kubernetes.io/basic-auth\nstringData: {password: x}", "" },
                { SECRET "type: kubernetes.io/basic-auth",
                  "f:1:1: data: must have 'username' or 'password' in a Secret of type "
                  "kubernetes.io/basic-auth" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                expect_verdict(cases[i].yaml, cases[i].verdict);
}

/* The document is a Secret or may be one, so that errors must not show any of its content. */
TEST(no_message_about_a_secret_quotes_a_value)
{
        static const char *const documents[] = {
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: %s\n",
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: %s}\n",
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: %s\n",
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: %s}\n",
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ntype: %s\n",
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nimmutable: %s\n",
                "apiVersion: v1\nkind: Secret\nmetadata: %s\n",
                "apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\n",
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: %s}\n",
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s, labels: %s}\n",
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s, labels: {a: %s}}\n",
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {a: %s}}\n",
                "apiVersion: %s\nkind: Secret\nmetadata: {name: s}\n",
                "apiVersion: v1\nkind: List\nitems: %s\n",
                "apiVersion: v1\nkind: List\nitems: [%s]\n",
                "apiVersion: v1\nkind: Secrte\nmetadata: {name: s}\nstringData: {a: %s}\n",
                "metadata: {name: s}\nstringData: {a: %s}\n",
                "%s\n",
                "- %s\n",
        };
        static const char *const values[] = {
                "Hunter_2",
                "*Hunter_2",
                "!Hunter_2",
                "!!Hunter_2",
                "!Hunter_2 x",
                "!!Hunter_2 x",
                "{Hunter_2,Hunter_2}",
                "[Hunter_2]",
                "&Hunter_2 x",
                "%Hunter_2",
                "@Hunter_2",
                "`Hunter_2",
                "|Hunter_2",
                "\"\\Hunter_2\"",
                "'Hunter_2",
                "Hunter_2: x: y",
                "x: Hunter_2",
                "#\n  Hunter_2: *Hunter_2",
        };
        unsigned n_refused = 0;

        for (size_t i = 0; i < N_ELEMENTS(documents) * N_ELEMENTS(values); i++) {
                cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
                cleanup_free char *yaml = replace_once(documents[i / N_ELEMENTS(values)],
                                                       values[i % N_ELEMENTS(values)]);
                cleanup_strv char **errors = NULL;
                int r = manifest_validate("f", yaml, strlen(yaml), "node1", &objects, &errors);

                n_refused += r < 0;
                strv_foreach(message, errors)
                        if (strstr(*message, "unter_2"))
                                test_fail(__FILE__, __LINE__, yaml, "%s", *message);
        }
        EXPECT(n_refused > N_ELEMENTS(documents) * N_ELEMENTS(values) / 2);
}

TEST(object_data_is_limited_to_a_mebibyte)
{
        cleanup_free char *yaml = NULL, *half = malloc(600 * KIB + 1);

        REQUIRE(half);
        memset(half, 'x', 600 * KIB);
        half[600 * KIB] = '\0';
        REQUIRE(asprintf(&yaml, MAP "data: {a: %s, b: %s}\n", half, half) > 0);
        expect_verdict(yaml, "f:4:7: data: must be at most 1048576 bytes together, not 1228800");
}

#define CONTAINER(fields) POD "  containers: [{name: c, image: i, " fields "}]\n"
#define VOLUME(fields) \
        POD "  containers: [{name: c, image: i}]\n  volumes: [{name: v, " fields "}]\n"
#define MOUNT(fields)                                                                            \
        POD "  volumes: [{name: v, emptyDir: {}}]\n"                                             \
            "  containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v, " fields \
            "}]}]\n"

TEST(references_of_a_pod_are_validated)
{
        static const struct {
                const char *yaml;
                const char *verdict;
        } cases[] = {
                { CONTAINER("env: [{name: A, valueFrom: {}}]"),
                  "f:5:63: spec.containers[0].env[0].valueFrom: must specify one of: `fieldRef`, "
                  "`resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`" },
                { CONTAINER("env: [{name: A, value: x}, {name: B}]"), "" },
                { CONTAINER("env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: "
                            "metadata.name}}}]"),
                  "f:5:73: spec.containers[0].env[0].valueFrom: may not be specified when `value` "
                  "is not empty" },
                { CONTAINER("env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: k}, "
                            "secretKeyRef: {name: s, key: k}}}]"),
                  "f:5:63: spec.containers[0].env[0].valueFrom: may not have more than one field "
                  "specified at a time" },
                { CONTAINER(
                          "env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.labels}}}]"),
                  "f:5:86: spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: is not a field "
                  "that "
                  "a variable can refer to: 'metadata.labels'" },
                { CONTAINER("env: [{name: A, valueFrom: {fieldRef: {fieldPath: "
                            "\"metadata.labels['a']\"}}}]"),
                  "" },
                { CONTAINER("env: [{name: A, valueFrom: {fieldRef: {fieldPath: "
                            "\"metadata.labels['']\"}}}]"),
                  "f:5:86: spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: is not a field "
                  "that "
                  "a variable can refer to: 'metadata.labels['']'" },
                { CONTAINER("env: [{name: A, valueFrom: {resourceFieldRef: {resource: "
                            "limits.gpu}}}]"),
                  "f:5:93: spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: must be "
                  "cpu, memory, ephemeral-storage, hugepages-1Gi or hugepages-2Mi after limits. or "
                  "requests., not 'limits.gpu'" },
                { CONTAINER("env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, "
                            "divisor: 10m}}}]"),
                  "f:5:114: spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: must be "
                  "1 "
                  "or 1m, not '10m'" },
                { CONTAINER("env: [{name: A, valueFrom: {resourceFieldRef: {containerName: x, "
                            "resource: limits.cpu}}}]"),
                  "f:5:98: spec.containers[0].env[0].valueFrom.resourceFieldRef.containerName: "
                  "must name a container of this pod, not 'x'" },
                { CONTAINER("envFrom: [{prefix: A_}]"),
                  "f:5:46: spec.containers[0].envFrom[0]: must specify one of: `configMapRef` or "
                  "`secretRef`" },
                { CONTAINER("envFrom: [{configMapRef: {}}]"),
                  "f:5:61: spec.containers[0].envFrom[0].configMapRef.name: is required" },
                { VOLUME("configMap: {name: m}, emptyDir: {}"),
                  "f:6:13: spec.volumes[0]: must have one source, not several" },
                { VOLUME("secret: {}"), "f:6:31: spec.volumes[0].secret.secretName: is required" },
                { VOLUME("secret: {secretName: s, defaultMode: 512}"),
                  "f:6:60: spec.volumes[0].secret.defaultMode: must be between 0 and 0777 (octal, "
                  "which is 511), not 512" },
                { VOLUME("configMap: {name: m, items: [{key: k, path: a/../b}]}"),
                  "f:6:67: spec.volumes[0].configMap.items[0].path: must not contain '..', not "
                  "'a/../b'" },
                { VOLUME("configMap: {name: m, items: [{key: k, path: /a}]}"),
                  "f:6:67: spec.volumes[0].configMap.items[0].path: must be a relative path, not "
                  "'/a'" },
                { VOLUME("configMap: {name: m, items: [{key: k, path: ..data}]}"),
                  "f:6:67: spec.volumes[0].configMap.items[0].path: must not start with '..', not "
                  "'..data'" },
                { VOLUME("downwardAPI: {items: [{path: a, fieldRef: {fieldPath: spec.nodeName}}]}"),
                  "f:6:77: spec.volumes[0].downwardAPI.items[0].fieldRef.fieldPath: is not a field "
                  "that "
                  "a file can refer to: 'spec.nodeName'" },
                { VOLUME("downwardAPI: {items: [{path: a}]}"),
                  "f:6:45: spec.volumes[0].downwardAPI.items[0]: must have one of fieldRef and "
                  "resourceFieldRef" },
                { VOLUME("projected: {sources: [{configMap: {name: m}, secret: {name: s}}]}"),
                  "f:6:45: spec.volumes[0].projected.sources[0]: may not specify more than 1 "
                  "volume "
                  "type per source" },
                { VOLUME("projected: {sources: [{serviceAccountToken: {path: token}}]}"),
                  "f:6:46: spec.volumes[0].projected.sources[0].serviceAccountToken: needs a "
                  "cluster: its API server issues the tokens of service accounts; remove this "
                  "source, or use a secret source with a token that a Secret of a file has" },
                { MOUNT("subPath: /a"), "f:6:85: spec.containers[0].volumeMounts[0].subPath: must "
                                        "be a relative path, not "
                                        "'/a'" },
                { MOUNT("subPath: a/../../b"),
                  "f:6:85: spec.containers[0].volumeMounts[0].subPath: must not contain '..', not "
                  "'a/../../b'" },
                { MOUNT("subPath: a, subPathExpr: b"),
                  "f:6:101: spec.containers[0].volumeMounts[0].subPathExpr: subPathExpr and "
                  "subPath "
                  "are mutually exclusive" },
                { MOUNT("recursiveReadOnly: Enabled"),
                  "f:6:95: spec.containers[0].volumeMounts[0].recursiveReadOnly: may only be "
                  "specified when readOnly is true" },
                { MOUNT("readOnly: true, recursiveReadOnly: Enabled, mountPropagation: "
                        "HostToContainer"),
                  "f:6:111: spec.containers[0].volumeMounts[0].recursiveReadOnly: may only be "
                  "specified when mountPropagation is None or not specified" },
                { MOUNT("mountPropagation: Bidirectional"),
                  "f:6:94: spec.containers[0].volumeMounts[0].mountPropagation: Bidirectional "
                  "mount "
                  "propagation is available only to privileged containers" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                expect_verdict(cases[i].yaml, cases[i].verdict);
}

TEST(values_of_a_secret_of_an_api_server_are_not_parsed)
{
        static const char json[] = "{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{"
                                   "\"name\":\"s\",\"namespace\":\"n\"},"
                                   "\"type\":\"kubernetes.io/"
                                   "dockerconfigjson\",\"data\":{\".dockerconfigjson\":\"e30=\"}}";
        cleanup_free char *damaged = strdup(json);
        ManifestObjects objects = { 0 };

        memcpy(strstr(damaged, "e30="), "ez09", 4); /* "{==" */
        EXPECT(manifest_parse("f", damaged, strlen(damaged), "node1", &objects, NULL) < 0);
        REQUIRE(manifest_parse_api("n/s", "Secret", damaged, strlen(damaged), "node1", &objects,
                                   NULL) >= 0);
        EXPECT_EQ(objects.data.n, 1);
        manifest_objects_done(&objects);
}
