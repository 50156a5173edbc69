/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/manifest.h"

#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

#include <stdio.h>

/* Returns the pod of a file; 'warning' is the only expected warning, or NULL. */
static ManifestObjects parse_pod(const char *annotations, const char *spec, const char *warning) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *yaml = NULL;
        int r;

        REQUIRE(asprintf(&yaml,
                         "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {%s}}\n"
                         "spec: {containers: [{name: c, image: i}], %s}\n",
                         annotations, spec) > 0);
        r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);
        if (r < 0)
                test_fail(__FILE__, __LINE__, yaml, "is refused: %s", error_message(&error, r));
        REQUIRE(r == 0 && objects.pods.n == 1);
        EXPECT_EQ(strv_length(objects.warnings), warning ? 1 : 0);
        if (warning)
                EXPECT(strstr(objects.warnings[0], warning));
        return objects;
}

TEST(the_old_name_of_a_service_account_is_read)
{
        ManifestObjects objects = parse_pod("", "serviceAccount: old", "gets no token");

        EXPECT_STREQ(objects.pods.items[0]->spec.service_account_name, "old");
        manifest_objects_done(&objects);
        objects = parse_pod("", "serviceAccount: old, serviceAccountName: new", "gets no token");
        EXPECT_STREQ(objects.pods.items[0]->spec.service_account_name, "new");
        manifest_objects_done(&objects);
        objects = parse_pod("", "serviceAccount: old, automountServiceAccountToken: false", NULL);
        EXPECT_STREQ(objects.pods.items[0]->spec.service_account_name, "old");
        manifest_objects_done(&objects);
        objects = parse_pod("", "serviceAccount: ''", NULL);
        EXPECT(!objects.pods.items[0]->spec.service_account_name);
        manifest_objects_done(&objects);
}

/* OpenShift's infrastructure pods have such volumes, but a container must not run without its
 * files. */
TEST(a_volume_with_an_unknown_source_is_an_empty_dir)
{
        static const char form[] = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {\n"
                                   "containers: [{name: c, image: i}], volumes: [{name: v, %s}]}}";
        static const struct {
                const char *source;
                int result;
        } cases[] = { { "empty-dir: {}", 0 },
                      { "tmpfs: {}", 0 },
                      { "hostpath: {path: /x}", -EINVAL } };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
                cleanup_free char *yaml = NULL;

                REQUIRE(asprintf(&yaml, form, cases[i].source) > 0);
                EXPECT_EQ(manifest_parse("f", yaml, strlen(yaml), "n", &objects, NULL),
                          cases[i].result);
                EXPECT(cases[i].result < 0 ||
                       objects.pods.items[0]->spec.volumes.items[0].empty_dir);
        }
}

TEST(a_volume_without_a_source_is_an_empty_dir)
{
        static const char *const sources[] = { "", ", emptyDir: ", ", hostPath: null",
                                               ", emptyDir: ~, secret: " };

        for (size_t i = 0; i < N_ELEMENTS(sources); i++) {
                cleanup_free char *spec = NULL;
                ManifestObjects objects;

                REQUIRE(asprintf(&spec, "volumes: [{name: v%s}]", sources[i]) > 0);
                objects = parse_pod("", spec,
                                    "f:4:53: spec.volumes[0]: has no source, so it is an "
                                    "emptyDir");
                EXPECT(objects.pods.items[0]->spec.volumes.items[0].empty_dir);
                manifest_objects_done(&objects);
        }
}

#define APP_ARMOR "container.apparmor.security.beta.kubernetes.io/"

TEST(annotations_set_app_armor_profiles)
{
        static const struct {
                const char *value;
                ProfileType type;
                const char *name;
        } cases[] = {
                { "runtime/default", PROFILE_RUNTIME_DEFAULT, NULL },
                { "unconfined", PROFILE_UNCONFINED, NULL },
                { "localhost/mine", PROFILE_LOCALHOST, "mine" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *annotation = NULL;
                ManifestObjects objects;
                const PodSpec *spec;
                const SecurityProfile *profile;

                REQUIRE(asprintf(&annotation, APP_ARMOR "c: %s, " APP_ARMOR "i: unconfined",
                                 cases[i].value) > 0);
                objects = parse_pod(annotation, "initContainers: [{name: i, image: i}]", NULL);
                spec = &objects.pods.items[0]->spec;
                profile = spec->containers.items[0].security_context.app_armor_profile;
                REQUIRE(profile);
                EXPECT_EQ(profile->type, cases[i].type);
                EXPECT(streq_ptr(profile->localhost_profile, cases[i].name));
                profile = spec->init_containers.items[0].security_context.app_armor_profile;
                REQUIRE(profile);
                EXPECT_EQ(profile->type, PROFILE_UNCONFINED);
                manifest_objects_done(&objects);
        }
}

TEST(an_annotation_that_agrees_with_the_pod_changes_nothing)
{
        ManifestObjects objects =
                parse_pod(APP_ARMOR "c: unconfined",
                          "securityContext: {appArmorProfile: {type: Unconfined}}", NULL);

        EXPECT(!objects.pods.items[0]->spec.containers.items[0].security_context.app_armor_profile);
        manifest_objects_done(&objects);
}
