/* SPDX-License-Identifier: Apache-2.0 */
/* The preflight refuses a successor for each reason for which its start would be refused. */

#include "agent/bundle/pod-preflight.h"

#include "agent/bundle/selinux-labels.h"
#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

static const DataObject *find_nothing(const ObjectKey *key, void *userdata) {
        return NULL;
}

static bool is_claim_awaited(const ObjectKey *key, void *userdata) {
        return streq(key->name, "awaited");
}

static SeLinuxLabelDefaults labels = { .process = (char[]){ "system_u:system_r:container_t:s0" },
                                       .file = (char[]){
                                               "system_u:object_r:container_file_t:s0" } };

static BundleConfig config = {
        .run_dir = "/run/mainstay",
        .state_dir = "/var/lib/mainstay",
        .log_dir = "/var/log",
        .hostname = "node1",
        .cgroup_root = "/",
        .memory_capacity = INT64_C(8) << 30,
        .pod_pids_limit = -1,
        .oom_score_adj_min = -1000,
        .cpu_capacity_milli = 4000,
        .objects = { .find = find_nothing, .is_awaited = is_claim_awaited },
        .has_se_linux = true,
        .has_selinux_labels = true,
        .labels = &labels,
};

static char *image_command[] = { (char[]){ "/bin/sh" }, NULL };
static Image image = { .command = image_command };

/* Runs the preflight of a pod with these fields in its only container and in its spec, and returns
 * the result. */
static int preflight(const char *of_container, const char *of_spec, Error *reterr) {
        Image *images[] = { &image };
        ManifestObjects objects = { 0 };
        cleanup_free char *yaml = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r;

        REQUIRE(asprintf(&yaml,
                         "apiVersion: v1\nkind: Pod\nmetadata:\n  {name: p, namespace: default, "
                         "uid: 11111111-1111-1111-1111-111111111111}\nspec:\n"
                         "  containers: [{name: c, image: i, %s}]\n  %s\n",
                         of_container, of_spec) > 0);
        r = manifest_parse_api("f", "Pod", yaml, strlen(yaml), "node1", &objects, &error);
        EXPECT_STREQ(strna(error.message), "");
        REQUIRE(r >= 0 && objects.pods.n == 1);
        r = bundle_preflight_pod(&config, objects.pods.items[0], images, reterr);
        manifest_objects_done(&objects);
        return r;
}

static void expect_refused(const char *of_container, const char *of_spec, int code,
                           const char *said) {
        cleanup_error Error error = ERROR_NULL;
        int r = preflight(of_container, of_spec, &error);

        EXPECT_EQ(r, -code);
        if (!strstr(strna(error.message), said))
                test_fail(__FILE__, __LINE__, said, "%s", error_message(&error, r));
}

static void expect_passed(const char *of_container, const char *of_spec) {
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(preflight(of_container, of_spec, &error), 0);
        EXPECT_STREQ(strna(error.message), "");
}

TEST(successor_whose_volume_cannot_be_mounted_is_refused)
{
        expect_passed("", "volumes: [{name: v, emptyDir: {}}]");
        expect_passed("", "volumes: [{name: v, nfs: {server: s, path: /p}}]");
        expect_passed("", "volumes: [{name: v, csi: {driver: d.example}}]");
        expect_refused("", "volumes: [{name: v, persistentVolumeClaim: {claimName: x}}]", ENOENT,
                       "persistentvolumeclaim \"x\" not found");
        expect_refused("", "volumes: [{name: v, emptyDir: {medium: HugePages}}]", EINVAL,
                       "there is no resource request for huge pages");
}

TEST(claim_that_has_not_been_received_is_awaited)
{
        expect_refused("", "volumes: [{name: v, persistentVolumeClaim: {claimName: awaited}}]",
                       EAGAIN, "awaited");
}

TEST(successor_with_selinux_options_that_are_not_valid_is_refused)
{
        expect_passed("securityContext: {seLinuxOptions: {level: \"s0:c1,c2\"}}", "");
        expect_refused("securityContext: {seLinuxOptions: {level: secret}}", "", EINVAL,
                       "the format of 'level' \"secret\" is not correct");
        config.labels = NULL;
        expect_refused("securityContext: {seLinuxOptions: {type: t}}", "", ENOTSUP,
                       "cannot set an SELinux label");
        config.labels = &labels;
}

#define MOUNT(expression)                                                    \
        "volumeMounts: [{name: v, mountPath: /v, subPathExpr: \"" expression \
        "\"}], env: [{name: A, value: a}, "                                  \
        "{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}"
#define VOLUME "volumes: [{name: v, emptyDir: {}}]"

TEST(successor_whose_sub_path_cannot_be_expanded_is_refused)
{
        expect_passed(MOUNT("$(A)/x") "]", VOLUME);
        expect_refused(MOUNT("$(B)/x") "]", VOLUME, BUNDLE_CONFIG_ERROR,
                       "missing value for \"B\" in subPathExpr");
}

TEST(successor_is_not_refused_for_an_unknown_variable_in_a_sub_path)
{
        expect_passed(MOUNT("$(IP)/x") "]", VOLUME);
        expect_passed(MOUNT("$(F)/x") ", {name: F, valueFrom: {fileKeyRef: {volumeName: v, "
                                      "path: f, key: F}}}]",
                      VOLUME);
}

TEST(successor_with_a_limit_that_the_node_cannot_set_is_refused)
{
        expect_passed("resources: {limits: {memory: 64Mi}}", "");
        config.lacks_memory_controller = true;
        expect_refused("resources: {limits: {memory: 64Mi}}", "", ENOENT,
                       "cannot limit the memory of container 'c'");
        config.lacks_memory_controller = false;
        expect_refused("resources: {limits: {memory: 1Mi, hugepages-1Gi: 1048576Gi}}", "", ENOSPC,
                       "Node didn't have enough resource: hugepages-1Gi");
}
