/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers and computations of the agent without memory: manifests, objects of an API server,
 * records, configurations, and the data that is computed from a manifest. */

#include "agent/bundle/env-file.h"
#include "agent/bundle/environment.h"
#include "agent/bundle/mount-list.h"
#include "agent/bundle/runtime-spec.h"
#include "agent/cni/cni.h"
#include "agent/cni/network-config.h"
#include "agent/cni/result.h"
#include "agent/daemonset/rules/rules.h"
#include "agent/image/image-set.h"
#include "agent/image/signature-policy.h"
#include "agent/kubeclient/object-summary.h"
#include "agent/manifest/manifest.h"
#include "agent/manifest/read-kubeconfig.h"
#include "agent/model/containers.h"
#include "agent/model/edit-plan.h"
#include "agent/model/json.h"
#include "agent/model/source-index.h"
#include "agent/sandbox/protocol.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/image-reference.h"
#include "common/json-text.h"
#include "common/strv.h"
#include "tests/allocations.h"

#include <fcntl.h>
#include <jansson.h>

/* gnutls_hash_init() keeps its first allocation if a later one fails. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void) {
        return "leak:gnutls_hash_init\n";
}

static const char manifests[] = SOURCE_DIR "/manifests";

enum {
        STRIDE = 7, /* for functions with thousands of allocations */
};

static char *read_source(const char *path) {
        cleanup_free char *full = path_join(SOURCE_DIR, path);
        char *text = NULL;

        REQUIRE(full && read_file_at(AT_FDCWD, full, MIB, &text, NULL) >= 0);
        return text;
}

/* ---- manifests ---- */

static int join_text(char **all, char *text_to_take) {
        cleanup_free char *text = text_to_take, *before = *all;

        *all = NULL;
        if (!text)
                return -ENOMEM;
        if (asprintf(all, "%s%s\n", before ? before : "", text) < 0) {
                *all = NULL;
                return -ENOMEM;
        }
        return 0;
}

static int print_objects(const ManifestObjects *objects, char **ret) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < objects->pods.n; i++)
                r = join_text(ret, pod_to_json(objects->pods.items[i], NULL));
        for (char *at = *ret; at && (at = strstr(at, "config.seen\":\""));)
                for (at += strlen("config.seen\":\""); *at && *at != '"'; at++)
                        *at = '-'; /* the time */
        return r;
}

static int parse_file(const char *text, char **ret) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse("f.yaml", text, strlen(text), "node1", &objects, &error);

        return r < 0 ? r : print_objects(&objects, ret);
}

static int validate_file(const char *text, char **ret) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_strv char **errors = NULL;

        return manifest_validate("f.yaml", text, strlen(text), "node1", &objects, &errors);
}

static int parse_api_object(const char *text, char **ret) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        KubeObjectSummary summary = { 0 };
        int r = kube_object_summary_parse(text, strlen(text), &summary, NULL);

        kube_object_summary_done(&summary);
        if (r < 0)
                return r;
        r = manifest_parse_api("api", "Pod", text, strlen(text), "node1", &objects, &error);
        return r < 0 ? r : print_objects(&objects, ret);
}

static int parse_record(const char *text, char **ret) {
        cleanup_with(pod_freep) Pod *pod = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse_record(text, strlen(text), &pod, &error);

        return r < 0 ? r : take_allocated_text(pod_to_json(pod, NULL), ret);
}

TEST(parsing_a_pod_with_all_fields_survives_failed_allocations)
{
        cleanup_free char *text = read_source("tests/unit/manifest/everything.yaml");

        expect_survives_failed_allocations("everything.yaml", parse_file, text, STRIDE);
        expect_survives_failed_allocations("everything.yaml, all errors", validate_file, text,
                                           STRIDE);
}

TEST(parsing_the_examples_survives_failed_allocations)
{
        cleanup_closedir DIR *dir = opendir(manifests);
        struct dirent *entry;

        REQUIRE(dir);
        while ((entry = readdir(dir))) {
                cleanup_free char *path = path_join("manifests", entry->d_name), *text = NULL;

                if (entry->d_type != DT_REG || !strstr(entry->d_name, ".yaml"))
                        continue;
                text = read_source(path);
                expect_survives_failed_allocations(entry->d_name, parse_file, text, STRIDE);
        }
}

TEST(reporting_manifest_errors_survives_failed_allocations)
{
        expect_survives_failed_allocations("an unknown kind", parse_file,
                                           "apiVersion: v1\nkind: Prod\nmetadata: {name: a}\n", 1);
        expect_survives_failed_allocations(
                "two errors", validate_file,
                "apiVersion: v1\nkind: Pod\nmetadata: {name: A}\nspec:\n  containers: "
                "[{name: a, image: b, foo: c}, {name: a}]\n",
                1);
        expect_survives_failed_allocations("broken YAML", parse_file, "a: b: c\n\t- [", 1);
        expect_survives_failed_allocations(
                "aliases", parse_file,
                "apiVersion: v1\nkind: Pod\nmetadata: &m {name: a, labels: {a: b}}\nspec:\n"
                "  containers:\n  - &c {name: a, image: b}\n  - {<<: *c, name: d}\n",
                1);
}

TEST(parsing_api_server_objects_and_records_survives_failed_allocations)
{
        static const char pod[] =
                "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
                "\"namespace\":\"b\",\"uid\":\"c\",\"resourceVersion\":\"1\",\"labels\":{\"d\":"
                "\"e\"}},\"spec\":{\"nodeName\":\"node1\",\"containers\":[{\"name\":\"f\","
                "\"image\":\"g\",\"env\":[{\"name\":\"h\",\"value\":\"i\"}]}]}}";
        cleanup_free char *record = read_source("tests/fuzz/corpus/record/pod");

        expect_survives_failed_allocations("a pod of an API server", parse_api_object, pod, 1);
        expect_survives_failed_allocations("a record", parse_record, record, 1);
}

/* ---- data computed from a manifest ---- */

static char *image_layers[] = { (char[]){ "/layers/top" }, (char[]){ "/layers/base" }, NULL };
static char *image_command[] = { (char[]){ "/bin/sh" }, NULL };
static char *image_env[] = { (char[]){ "PATH=/bin" }, NULL };
static Image image = { .layers = image_layers, .command = image_command, .env = image_env };

static const DataObject *find_nothing(const ObjectKey *key, void *userdata) {
        return NULL;
}

static const BundleConfig bundle_config = {
        .run_dir = "/run/mainstay",
        .state_dir = "/var/lib/mainstay",
        .log_dir = "/var/log",
        .hostname = "node1",
        .cgroup_root = "/",
        .memory_capacity = INT64_C(8) << 30,
        .pod_pids_limit = -1,
        .oom_score_adj_min = -1000,
        .cpu_capacity_milli = 4000,
        .allocatable = { .cpu_milli = 4000, .memory = INT64_C(8) << 30 },
        .host_ips = { "10.0.0.1", NULL },
        .objects.find = find_nothing,
};

/* Parsed with enough memory. */
static const Pod *shown_pod;

static int print_container(const Container *container, char **ret) {
        cleanup_error Error error = ERROR_NULL;
        char *text = NULL;
        int r = make_runtime_spec(&(RuntimeSpecInput){ .config = &bundle_config,
                                                       .pod = shown_pod,
                                                       .container = container,
                                                       .image = &image,
                                                       .id = "0123",
                                                       .attempt = 2,
                                                       .sandbox_pid = 42,
                                                       .cgroup_version = 2 },
                                  &text, &error);

        return r < 0 ? r : join_text(ret, text);
}

static int print_bundle(const char *input, char **ret) {
        const Container *container;
        int r = join_text(ret, pod_fstab(&bundle_config, shown_pod));

        pod_foreach_container(container, &shown_pod->spec)
                if (r >= 0)
                        r = print_container(container, ret);
        return r;
}

static int plan_edit(const char *input, char **ret) {
        cleanup_with(pod_freep) Pod *desired = NULL;
        EditPlan plan = { 0 };
        int r = manifest_parse_record(input, strlen(input), &desired, NULL);

        if (r < 0)
                return r;
        r = edit_plan_make(shown_pod, desired, &plan);
        edit_plan_done(&plan);
        return r;
}

TEST(building_a_bundle_survives_failed_allocations)
{
        static const char *const files[] = { "hello", "init", "host-path", "hooks", "environment" };

        for (size_t i = 0; i < N_ELEMENTS(files); i++) {
                cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
                cleanup_free char *path = NULL, *text = NULL;

                REQUIRE(asprintf(&path, "manifests/%s.yaml", files[i]) > 0);
                text = read_source(path);
                REQUIRE(manifest_parse(path, text, strlen(text), "node1", &objects, NULL) >= 0);
                shown_pod = objects.pods.items[0];
                expect_survives_failed_allocations(files[i], print_bundle, "", STRIDE);
        }
}

TEST(an_edit_plan_survives_failed_allocations)
{
        cleanup_free char *record = read_source("tests/fuzz/corpus/record/pod");
        cleanup_free char *text = read_source("manifests/hello.yaml");
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };

        REQUIRE(manifest_parse("f", text, strlen(text), "node1", &objects, NULL) >= 0);
        shown_pod = objects.pods.items[0];
        expect_survives_failed_allocations("an edit", plan_edit, record, 1);
}

/* ---- DaemonSets ---- */

static const DaemonSet *shown_set;

static int evaluate_set(const char *input, char **ret) {
        static char name[] = "node1";
        const NodeLabelsTaints node = { .name = name };
        cleanup_with(daemonset_decision_done) DaemonSetDecision decision = { 0 };
        cleanup_with(pod_freep) Pod *pod = NULL;
        char hash[REVISION_HASH_SIZE];
        int r = daemonset_evaluate_placement(shown_set, &node, &(NodePods){ 0 }, 0, &decision);

        if (r >= 0)
                r = daemonset_revision_hash(&shown_set->spec.template, hash);
        if (r >= 0)
                r = daemonset_make_pod(shown_set, &shown_set->spec.template, hash, 1, name, &pod);
        if (r < 0)
                return r;
        r = join_text(ret, decision.why ? strdup(decision.why) : NULL);
        return r < 0 ? r : join_text(ret, pod_to_json(pod, NULL));
}

TEST(evaluating_a_daemonset_survives_failed_allocations)
{
        cleanup_free char *text = read_source("manifests/daemon-set.yaml");
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };

        REQUIRE(manifest_parse("f", text, strlen(text), "node1", &objects, NULL) >= 0);
        REQUIRE(objects.daemonsets.n > 0);
        shown_set = objects.daemonsets.items[0];
        expect_survives_failed_allocations("a DaemonSet", evaluate_set, "", 1);
}

/* ---- configurations ---- */

static int load_config(const char *path, char **ret) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_strv char **warnings = NULL;
        Config config = { 0 };
        int r = kubelet_config_load(path, &config, &warnings, &error);

        config_done(&config);
        return r;
}

static int load_kubeconfig(const char *path, char **ret) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_strv char **warnings = NULL;
        Kubeconfig kubeconfig = { 0 };
        int r = kubeconfig_load(path, &kubeconfig, &warnings, &error);

        if (r >= 0)
                r = take_allocated_text(strdup(kubeconfig.server), ret);
        kubeconfig_done(&kubeconfig);
        return r;
}

static void load_corpus(const char *corpus, allocating_function_t function, bool by_path) {
        cleanup_free char *folder = path_join(SOURCE_DIR "/tests/fuzz/corpus", corpus);
        cleanup_closedir DIR *dir = folder ? opendir(folder) : NULL;
        struct dirent *entry;

        REQUIRE(dir);
        while ((entry = readdir(dir))) {
                cleanup_free char *path = path_join(folder, entry->d_name), *text = NULL;

                if (entry->d_type != DT_REG)
                        continue;
                REQUIRE(read_file_at(AT_FDCWD, path, MIB, &text, NULL) >= 0);
                expect_survives_failed_allocations(entry->d_name, function, by_path ? path : text,
                                                   1);
        }
}

TEST(loading_a_configuration_survives_failed_allocations)
{
        load_corpus("config", load_config, true);
        load_corpus("config", load_kubeconfig, true);
}

static int parse_network(const char *text, char **ret) {
        cleanup_error Error error = ERROR_NULL;
        json_t *list = NULL;
        int r = cni_config_list_parse(text, &list, &error);

        if (r >= 0)
                r = take_allocated_text(json_to_text(list, JSON_SORT_KEYS), ret);
        json_decref(list);
        return r;
}

static int parse_network_result(const char *text, char **ret) {
        cleanup_error Error error = ERROR_NULL;
        CniAddresses addresses = { 0 };
        json_t *result = NULL;
        int r = cni_result_parse(text, &result, &error);

        if (r >= 0)
                r = cni_result_pod_addresses(result, "eth0", &addresses, &error);
        json_decref(result);
        return r;
}

static int load_network(const char *text, char **ret) {
        cleanup_with(cni_network_freep) CniNetwork *network = NULL;
        int r = cni_network_from_text(text, &network, NULL);

        return r < 0 ? r : take_allocated_text(cni_network_to_text(network), ret);
}

TEST(parsing_network_configurations_and_results_survives_failed_allocations)
{
        load_corpus("cni", parse_network, false);
        load_corpus("cni", parse_network_result, false);
        load_corpus("cni", load_network, false);
}

static int parse_index(const char *text, char **ret) {
        cleanup_with(source_index_done) SourceIndex index = { 0 };
        cleanup_error Error error = ERROR_NULL;

        return source_index_parse(text, strlen(text), MIB, &index, &error);
}

static int normalise_reference(const char *text, char **ret) {
        cleanup_error Error error = ERROR_NULL;

        return image_reference_normalise(text, ret, &error);
}

static int parse_policy(const char *text, char **ret) {
        cleanup_error Error error = ERROR_NULL;
        json_t *policy = NULL;
        int r = signature_policy_parse(text, strlen(text), &policy, &error);

        json_decref(policy);
        return r;
}

static int expand_text(const char *text, char **ret) {
        cleanup_free char *value = NULL, *missing = NULL;
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(variable_set_done) VariableSet env = VARIABLE_SET_NULL;
        int r = env_file_find(text, "A", &value, &error);

        if (r == -ENOMEM)
                return r;
        r = variable_set_put(&env, "A", "0123456789abcdef");
        return r < 0 ? r : expand_variables(text, &env, ret, &missing);
}

TEST(parsing_indexes_references_policies_and_variables_survives_failed_allocations)
{
        load_corpus("index", parse_index, false);
        load_corpus("reference", normalise_reference, false);
        load_corpus("environment", expand_text, false);
        expect_survives_failed_allocations(
                "a policy", parse_policy,
                "{\"default\":[{\"type\":\"reject\"}],\"transports\":{\"docker\":{\"a.b/c\":"
                "[{\"type\":\"insecureAcceptAnything\"}]}}}",
                1);
}

/* A superfluous image in the set is merely not removed, but a missing one would be removed while it
 * is in use. */
static int fill_image_set(const char *reference, char **ret) {
        cleanup_with(image_set_done) ImageSet set = IMAGE_SET_NULL;
        bool is_there;

        image_set_add(&set, "app:1");
        image_set_add(&set, reference);
        is_there = image_set_contains(&set, "docker.io/library/app:1") &&
                   image_set_contains(&set, "docker.io/library/busybox:1");
        return take_allocated_text(strdup(is_there ? "whole" : "incomplete"), ret);
}

TEST(filling_a_set_of_images_survives_failed_allocations)
{ expect_survives_failed_allocations("a set of images", fill_image_set, "busybox:1", 1); }

/* ---- the protocol of the shim ---- */

static int pass_request(const char *text, char **ret) {
        cleanup_shim_request ShimRequest request = { 0 };
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *packet = NULL;
        size_t length;
        int r = shim_request_decode(text, strlen(text), &request, &error);

        if (r < 0)
                return r;
        r = shim_request_encode(&request, &packet, &length);
        return r < 0 ? r : take_allocated_text(strndup(packet, length), ret);
}

static int pass_event(const char *text, char **ret) {
        cleanup_shim_event ShimEvent event = { 0 };
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *packet = NULL;
        size_t length;
        int r = shim_event_decode(text, strlen(text), &event, &error);

        if (r < 0)
                return r;
        r = shim_event_encode(&event, &packet, &length);
        return r < 0 ? r : take_allocated_text(strndup(packet, length), ret);
}

TEST(coding_requests_and_events_survives_failed_allocations)
{
        load_corpus("protocol", pass_request, false);
        load_corpus("protocol", pass_event, false);
}
