/* SPDX-License-Identifier: Apache-2.0 */
/* The stdin and environment of the plugins of a chain. */

#include "agent/cni/cni.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>

#define UID "0123456789abcdef0123456789abcdef"

#define CONFIG                                                                                     \
        "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":["                                   \
        "{\"type\":\"one\",\"ipam\":{\"type\":\"host-local\"}},"                                   \
        "{\"type\":\"two\",\"capabilities\":{\"portMappings\":true,\"bandwidth\":true,\"x\":true}" \
        "},"                                                                                       \
        "{\"type\":\"three\",\"capabilities\":{\"portMappings\":false}}]}"

#define RESULT                                                                                    \
        "{\"cniVersion\":\"1.0.0\",\"interfaces\":[{\"name\":\"br\"},{\"name\":\"eth0\","         \
        "\"sandbox\":\"/x\"}],\"ips\":[{\"interface\":1,\"address\":\"10.1.2.3/24\"},"            \
        "{\"interface\":1,\"address\":\"fd00:0::3/64\"},{\"interface\":0,\"address\":\"10.1.2.1/" \
        "24\"}]}"

static ContainerPort ports[] = {
        { .container_port = { true, 80 }, .protocol = PROTOCOL_TCP },
        { .container_port = { true, 53 },
          .host_port = { true, 5353 },
          .protocol = PROTOCOL_UDP,
          .host_ip = (char[]){ "127.0.0.1" } },
};
static ContainerPort sidecar_ports[] = {
        { .container_port = { true, 81 }, .host_port = { true, 8081 }, .protocol = PROTOCOL_TCP },
};
/* hostPorts of an init container are not mapped; those of a sidecar container are. */
static Container init_containers[] = {
        { .ports = { ports, N_ELEMENTS(ports) } },
        { .ports = { sidecar_ports, 1 }, .restart_policy = RESTART_POLICY_ALWAYS },
};
static Container containers[] = { { .ports = { ports, N_ELEMENTS(ports) } } };
static KeyValue annotations[] = {
        { (char[]){ "kubernetes.io/ingress-bandwidth" }, (char[]){ "10M" } },
};
static Pod pod = {
        .metadata = { .name = (char[]){ "web-n1" },
                      .namespace = (char[]){ "default" },
                      .uid = (char[]){ UID },
                      .annotations = { annotations, 1 } },
        .spec.init_containers = { init_containers, 2 },
        .spec.containers = { containers, 1 },
};

/* A directory with a program for each plugin of the chain. */
static const char *make_plugins(void) {
        static const char *const names[] = {
                "one", "two", "three", "bandwidth", "portmap", "bridge"
        };

        for (size_t i = 0; i < N_ELEMENTS(names); i++) {
                cleanup_free char *path = NULL;
                FILE *file;

                REQUIRE(asprintf(&path, "%s/%s", test_directory(), names[i]) > 0);
                file = fopen(path, "we");
                REQUIRE(file && fchmod(fileno(file), 0755) == 0 && fclose(file) == 0);
        }
        return test_directory();
}

static CniNetwork *load_network(const char *config) {
        cleanup_error Error error = ERROR_NULL;
        CniNetwork *network = NULL;
        int r = cni_network_new(config, make_plugins(), &pod, 7, &network, &error);

        EXPECT_STREQ(error.message, NULL);
        REQUIRE(r == 0);
        return network;
}

static void expect_input(const CniNetwork *network, CniCommand command, size_t step,
                         const char *expected) {
        cleanup_with(cni_invocation_done) CniInvocation invocation = { 0 };

        REQUIRE(cni_invocation_build(network, command, step, "/n", &invocation, NULL) == 0);
        EXPECT_STREQ(invocation.input, expected);
}

static int answer(CniNetwork *network, CniCommand command, size_t step, int exit_code,
                  const char *output, Error *reterr) {
        return cni_network_process_exit(
                network, command, step,
                &(CniPluginExit){ .has_run = true, .exit_code = exit_code, .output = output },
                reterr);
}

#define ONE                                                                                       \
        "{\"type\":\"one\",\"ipam\":{\"type\":\"host-local\"},\"name\":\"n\",\"cniVersion\":\"1." \
        "0.0\""
#define TWO                                                                               \
        "{\"type\":\"two\",\"name\":\"n\",\"cniVersion\":\"1.0.0\",\"runtimeConfig\":{"   \
        "\"portMappings\":[{\"hostPort\":8081,\"containerPort\":81,\"protocol\":\"tcp\"," \
        "\"hostIP\":\"\"},{\"hostPort\":5353,\"containerPort\":53,\"protocol\":\"udp\","  \
        "\"hostIP\":\"127.0.0.1\"}],\"bandwidth\":{\"ingressRate\":10000000,"             \
        "\"ingressBurst\":4294967295}}"
#define THREE "{\"type\":\"three\",\"name\":\"n\",\"cniVersion\":\"1.0.0\""

TEST(add_chains_results_and_delete_runs_in_reverse_order_with_the_last_result)
{
        cleanup_with(cni_network_freep) CniNetwork *network = load_network(CONFIG);

        EXPECT_EQ(cni_network_n_steps(network, CNI_ADD), 3);
        EXPECT_EQ(cni_network_n_steps(network, CNI_DEL), 0);
        expect_input(network, CNI_ADD, 0, ONE "}");
        cni_network_record_add_step(network, 1);
        EXPECT_EQ(cni_network_n_steps(network, CNI_DEL), 1);
        expect_input(network, CNI_DEL, 0, ONE "}");
        EXPECT_EQ(answer(network, CNI_ADD, 0, 0, "{\"first\":1}", NULL), 0);
        expect_input(network, CNI_ADD, 1, TWO ",\"prevResult\":{\"first\":1}}");
        EXPECT_EQ(answer(network, CNI_ADD, 1, 0, "{\"second\":2}", NULL), 0);
        expect_input(network, CNI_ADD, 2, THREE ",\"prevResult\":{\"second\":2}}");
        EXPECT(!cni_network_is_attached(network));
        cni_network_record_add_step(network, 3);
        EXPECT_EQ(answer(network, CNI_ADD, 2, 0, RESULT, NULL), 0);
        EXPECT(cni_network_is_attached(network));

        EXPECT_EQ(cni_network_n_steps(network, CNI_DEL), 3);
        expect_input(network, CNI_DEL, 0, THREE ",\"prevResult\":" RESULT "}");
        expect_input(network, CNI_DEL, 1, TWO ",\"prevResult\":" RESULT "}");
        expect_input(network, CNI_DEL, 2, ONE ",\"prevResult\":" RESULT "}");
        EXPECT_EQ(cni_network_n_steps(network, CNI_CHECK), 3);
        expect_input(network, CNI_CHECK, 0, ONE ",\"prevResult\":" RESULT "}");
}

TEST(environment_is_that_of_the_specification)
{
        cleanup_with(cni_network_freep) CniNetwork *network = load_network(CONFIG);
        cleanup_with(cni_invocation_done) CniInvocation invocation = { 0 };
        cleanup_free char *program = NULL, *path = NULL;
        const char *id;

        REQUIRE(cni_invocation_build(network, CNI_ADD, 1, "/proc/5/ns/net", &invocation, NULL) ==
                0);
        REQUIRE(asprintf(&program, "%s/two", test_directory()) > 0);
        REQUIRE(asprintf(&path, "CNI_PATH=%s", test_directory()) > 0);
        EXPECT_STREQ(invocation.plugin, "two");
        EXPECT_EQ(strv_length(invocation.argv), 1);
        EXPECT_STREQ(invocation.argv[0], program);
        REQUIRE(strv_length(invocation.environment) == 7);
        EXPECT_STREQ(invocation.environment[0], "CNI_COMMAND=ADD");
        id = invocation.environment[1] + strlen("CNI_CONTAINERID=");
        EXPECT_EQ(strlen(id), 64);
        EXPECT_STREQ(invocation.environment[2], "CNI_NETNS=/proc/5/ns/net");
        EXPECT_STREQ(invocation.environment[3], "CNI_IFNAME=eth0");
        EXPECT(strncmp(invocation.environment[4],
                       "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-n1;"
                       "K8S_POD_INFRA_CONTAINER_ID=",
                       98) == 0);
        EXPECT(strstr(invocation.environment[4], id));
        EXPECT(strstr(invocation.environment[4], ";K8S_POD_UID=" UID));
        EXPECT_STREQ(invocation.environment[5], path);
}

TEST(each_sandbox_of_a_pod_has_its_own_container_id)
{
        cleanup_with(cni_network_freep) CniNetwork *first = NULL, *second = NULL;
        cleanup_free char *a = NULL, *b = NULL;

        REQUIRE(cni_network_new(CONFIG, "/p", &pod, 0, &first, NULL) == 0);
        REQUIRE(cni_network_new(CONFIG, "/p", &pod, 1, &second, NULL) == 0);
        a = cni_network_to_text(first);
        b = cni_network_to_text(second);
        EXPECT_EQ(cni_network_sandbox_number(second), 1);
        EXPECT(strstr(a, "\"containerId\":\"") && strstr(b, "\"containerId\":\""));
        EXPECT(memcmp(strstr(a, "containerId"), strstr(b, "containerId"), 60) != 0);
}

TEST(stored_attachment_is_read_back)
{
        cleanup_with(cni_network_freep) CniNetwork *network = load_network(CONFIG), *again = NULL;
        cleanup_free char *text = NULL, *twice = NULL;

        cni_network_record_add_step(network, 3);
        REQUIRE(answer(network, CNI_ADD, 2, 0, RESULT, NULL) == 0);
        text = cni_network_to_text(network);
        REQUIRE(cni_network_from_text(text, &again, NULL) == 0);
        twice = cni_network_to_text(again);
        EXPECT_STREQ(twice, text);
        EXPECT(cni_network_is_attached(again));
        EXPECT_STREQ(cni_network_address(again, 0), "10.1.2.3");
        EXPECT_STREQ(cni_network_address(again, 1), "fd00::3");
        EXPECT_STREQ(cni_network_address(again, 2), NULL);
        cni_network_begin_delete(again);
        EXPECT(!cni_network_is_attached(again));
        EXPECT_STREQ(cni_network_address(again, 0), NULL);
        expect_input(again, CNI_DEL, 2, ONE ",\"prevResult\":" RESULT "}");
}

TEST(packed_attachment_keeps_its_address_and_deletes_as_before)
{
        cleanup_with(cni_network_freep) CniNetwork *network = load_network(CONFIG);
        cleanup_free char *text = NULL, *again = NULL;

        cni_network_record_add_step(network, 3);
        REQUIRE(answer(network, CNI_ADD, 2, 0, RESULT, NULL) == 0);
        text = cni_network_to_text(network);
        cni_network_pack(network);
        cni_network_pack(network);
        EXPECT(cni_network_is_attached(network));
        EXPECT_EQ(cni_network_sandbox_number(network), 7);
        EXPECT_STREQ(cni_network_address(network, 0), "10.1.2.3");
        cni_network_set_lost(network);
        EXPECT(!cni_network_is_attached(network));
        EXPECT_STREQ(cni_network_address(network, 0), NULL);
        REQUIRE(cni_network_unpack(network) == 0);
        REQUIRE(cni_network_unpack(network) == 0);
        again = cni_network_to_text(network);
        EXPECT_STREQ(again, text);
        cni_network_begin_delete(network);
        expect_input(network, CNI_DEL, 2, ONE ",\"prevResult\":" RESULT "}");
}

/* Plugin "one" masquerades; 'ipam' is its IPAM configuration. */
static CniNetwork *make_masquerading(const char *ipam) {
        cleanup_free char *config = NULL;

        REQUIRE(asprintf(&config,
                         "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[{\"type\":\"one\","
                         "\"ipMasq\":true,\"ipam\":%s},{\"type\":\"two\"}]}",
                         ipam) > 0);
        return load_network(config);
}

/* The steps of a command, each with the address of its dummy interface. */
static void expect_steps(const CniNetwork *network, CniCommand command, const char *expected) {
        char text[256] = "";

        for (size_t i = 0; i < cni_network_n_steps(network, command); i++) {
                cleanup_with(cni_invocation_done) CniInvocation invocation = { 0 };

                REQUIRE(cni_invocation_build(network, command, i, "", &invocation, NULL) == 0);
                EXPECT_STREQ(invocation.interface, invocation.address ? "eth0" : NULL);
                (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s %s",
                                i > 0 ? ", " : "", invocation.plugin, strna(invocation.address));
        }
        EXPECT_STREQ(text, expected);
}

TEST(masquerading_plugin_deletes_with_a_dummy_interface_for_each_address_first)
{
        cleanup_with(cni_network_freep) CniNetwork *network = make_masquerading("{}"),
                                                   *again = NULL;
        cleanup_free char *text = NULL;

        cni_network_record_add_step(network, 2);
        REQUIRE(answer(network, CNI_ADD, 1, 0, RESULT, NULL) == 0);
        expect_steps(network, CNI_CHECK, "one , two ");
        cni_network_begin_delete(network);
        text = cni_network_to_text(network);
        REQUIRE(cni_network_from_text(text, &again, NULL) == 0);
        cni_network_begin_delete(again);
        expect_steps(again, CNI_DEL, "two , one 10.1.2.3, one fd00::3, one ");
}

TEST(plugin_error_with_a_dummy_interface_is_ignored_but_a_crash_is_not)
{
        static const char refusal[] = "{\"code\":1,\"msg\":\"no such chain\"}";
        cleanup_with(cni_network_freep) CniNetwork *network = make_masquerading("{}");

        cni_network_record_add_step(network, 2);
        REQUIRE(answer(network, CNI_ADD, 1, 0, RESULT, NULL) == 0);
        cni_network_begin_delete(network);
        EXPECT(answer(network, CNI_DEL, 0, 1, refusal, NULL) < 0);
        EXPECT_EQ(answer(network, CNI_DEL, 1, 1, refusal, NULL), 0);
        EXPECT(answer(network, CNI_DEL, 2, 137, "", NULL) < 0);
        EXPECT(answer(network, CNI_DEL, 3, 1, refusal, NULL) < 0);
}

/* Writes the file of an address in the format of host-local. */
static void allocate(const char *directory, const char *name, const char *id) {
        cleanup_free char *path = NULL;
        FILE *file;

        REQUIRE(asprintf(&path, "%s/%s", directory, name) > 0);
        file = fopen(path, "we");
        REQUIRE(file && fprintf(file, "%s\r\neth0", id) > 0 && fclose(file) == 0);
}

TEST(addresses_come_from_host_local_if_add_gave_no_result)
{
        cleanup_with(cni_network_freep) CniNetwork *network = NULL, *other = NULL;
        cleanup_with(cni_invocation_done) CniInvocation invocation = { 0 };
        cleanup_free char *ipam = NULL, *directory = NULL;
        const char *id;

        REQUIRE(asprintf(&ipam, "{\"type\":\"host-local\",\"dataDir\":\"%s\"}", test_directory()) >
                0);
        REQUIRE(asprintf(&directory, "%s/n", test_directory()) > 0);
        network = make_masquerading(ipam);
        REQUIRE(cni_invocation_build(network, CNI_ADD, 0, "", &invocation, NULL) == 0);
        id = invocation.environment[1] + strlen("CNI_CONTAINERID=");
        cni_network_record_add_step(network, 1);
        cni_network_begin_delete(network); /* the directory does not exist yet */
        expect_steps(network, CNI_DEL, "one ");
        REQUIRE(mkdir(directory, 0700) == 0);
        allocate(directory, "10.1.2.4", "another");
        allocate(directory, "lock", id);
        allocate(directory, "10.1.2.3", id);
        cni_network_begin_delete(network);
        expect_steps(network, CNI_DEL, "one 10.1.2.3, one ");
        allocate(directory, "10.1.2.3", "another"); /* the noted address stays */
        cni_network_begin_delete(network);
        expect_steps(network, CNI_DEL, "one 10.1.2.3, one ");
        other = make_masquerading("{\"type\":\"static\"}");
        cni_network_record_add_step(other, 1);
        cni_network_begin_delete(other);
        expect_steps(other, CNI_DEL, "one ");
}

TEST(invalid_record_is_refused)
{
        static const char *const texts[] = {
                "",
                "[]",
                "{}",
                "{\"form\":2}",
                "{\"form\":1,\"containerId\":\"a\",\"pod\":{}}",
                ("{\"form\":1,\"containerId\":\"a\",\"pod\":{},\"list\":{\"cniVersion\":\"1.0.0\","
                 "\"name\":\"n\",\"plugins\":[{\"type\":\"../sh\"}]}}"),
        };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
                CniNetwork *network = NULL;

                EXPECT_EQ(cni_network_from_text(texts[i], &network, NULL), -EBADMSG);
                EXPECT(!network);
        }
}

TEST(error_messages_name_the_plugin)
{
        static const struct {
                int exit_code;
                const char *output, *message;
        } cases[] = {
                { 1, "{\"code\":7,\"msg\":\"no space\",\"details\":\"at all\"}",
                  "plugin type=\"three\" failed (add): no space; at all" },
                { 1, "{\"code\":7,\"msg\":\"no space\"}",
                  "plugin type=\"three\" failed (add): no space" },
                { 3, "panic", "plugin type=\"three\" failed (add): it exited with status 3" },
                { 0, "",
                  "plugin type=\"three\" failed (add): its result is not JSON: 1:0: '[' or "
                  "'{' expected near end of file" },
                { 0, "[]", "plugin type=\"three\" failed (add): its result is not a CNI result" },
                { 0, "{}",
                  "plugin type=\"three\" failed (add): its result has no address of the pod" },
                { 0, "{\"ips\":[{\"address\":\"10.0.0/8\"}]}",
                  "plugin type=\"three\" failed (add): its result has an invalid address: "
                  "'10.0.0/8'" },
                { 0,
                  "{\"interfaces\":[{\"name\":\"eth0\"}],\"ips\":[{\"interface\":0,\"address\":"
                  "\"10.0.0.1/8\"}]}",
                  "plugin type=\"three\" failed (add): its result has no address of the pod" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(cni_network_freep) CniNetwork *network = load_network(CONFIG);
                cleanup_error Error error = ERROR_NULL;

                EXPECT(answer(network, CNI_ADD, 2, cases[i].exit_code, cases[i].output, &error) <
                       0);
                EXPECT_STREQ(error.message, cases[i].message);
                EXPECT(!cni_network_is_attached(network));
        }
}

TEST(too_large_result_is_refused)
{
        cleanup_with(cni_network_freep) CniNetwork *network = load_network(CONFIG);
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *large = malloc(CNI_RESULT_MAX + 2);

        REQUIRE(large);
        memset(large, ' ', CNI_RESULT_MAX + 1);
        large[CNI_RESULT_MAX + 1] = '\0';
        EXPECT(answer(network, CNI_ADD, 0, 0, large, &error) < 0);
        EXPECT_STREQ(error.message,
                     "plugin type=\"one\" failed (add): its result has more than 32768 bytes");
}

TEST(old_version_deletes_without_prev_result_and_skips_check)
{
        cleanup_with(cni_network_freep) CniNetwork *network =
                load_network("{\"cniVersion\":\"0.3.1\",\"name\":\"n\",\"type\":\"one\"}");

        cni_network_record_add_step(network, 1);
        REQUIRE(answer(network, CNI_ADD, 0, 0, "{\"ips\":[{\"address\":\"10.0.0.2/8\"}]}", NULL) ==
                0);
        EXPECT_STREQ(cni_network_address(network, 0), "10.0.0.2");
        EXPECT_EQ(cni_network_n_steps(network, CNI_CHECK), 0);
        expect_input(network, CNI_DEL, 0,
                     "{\"cniVersion\":\"0.3.1\",\"name\":\"n\",\"type\":\"one\"}");
}

/* The pod has a limit, which is not passed to the plugin without the capability. */
TEST(bandwidth_plugin_without_a_limit_is_not_checked)
{
        static const struct {
                const char *plugin;
                size_t n_checks;
        } cases[] = {
                { "{\"type\":\"bandwidth\",\"capabilities\":{\"bandwidth\":true}}", 2 },
                { "{\"type\":\"bandwidth\"}", 1 },
                { "{\"type\":\"bandwidth\",\"ingressRate\":1000}", 2 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *config = NULL;
                cleanup_with(cni_network_freep) CniNetwork *network = NULL;

                REQUIRE(asprintf(&config,
                                 "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[%s,"
                                 "{\"type\":\"one\"}]}",
                                 cases[i].plugin) > 0);
                network = load_network(config);
                cni_network_record_add_step(network, 2);
                REQUIRE(answer(network, CNI_ADD, 1, 0, RESULT, NULL) == 0);
                EXPECT_EQ(cni_network_n_steps(network, CNI_CHECK), cases[i].n_checks);
        }
}

/* The plugin checks rules of both address families. */
TEST(portmap_is_checked_for_pods_with_addresses_of_both_families)
{
        static const struct {
                const char *result;
                size_t n_checks;
        } cases[] = {
                { RESULT, 2 },
                { "{\"ips\":[{\"address\":\"10.0.0.2/8\"}]}", 1 },
                { "{\"ips\":[{\"address\":\"fd00:0::3/64\"}]}", 1 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(cni_network_freep) CniNetwork *network =
                        load_network("{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":["
                                     "{\"type\":\"one\"},{\"type\":\"portmap\","
                                     "\"capabilities\":{\"portMappings\":true}}]}");

                cni_network_record_add_step(network, 2);
                REQUIRE(answer(network, CNI_ADD, 1, 0, cases[i].result, NULL) == 0);
                EXPECT_EQ(cni_network_n_steps(network, CNI_CHECK), cases[i].n_checks);
        }
}

TEST(missing_plugin_is_reported_with_the_search_path)
{
        cleanup_with(cni_network_freep) CniNetwork *network = NULL;
        cleanup_with(cni_invocation_done) CniInvocation invocation = { 0 };
        cleanup_error Error error = ERROR_NULL;

        REQUIRE(cni_network_new(CONFIG, "/nowhere:relative", &pod, 0, &network, NULL) == 0);
        EXPECT_EQ(cni_invocation_build(network, CNI_ADD, 0, "", &invocation, &error), -ENOENT);
        EXPECT_STREQ(error.message, "failed to find plugin \"one\" in path [/nowhere:relative]");
}

/* Kubernetes, Debian and Fedora use different directories for plugins. */
TEST(plugin_is_run_from_the_first_directory_of_the_path_that_has_it)
{
        static const char *const directories[] = { "opt/cni/bin", "usr/lib/cni",
                                                   "usr/libexec/cni" };
        char path[1024];

        (void) snprintf(path, sizeof(path), "%s/%s:%s/%s:%s/%s", test_directory(), directories[0],
                        test_directory(), directories[1], test_directory(), directories[2]);
        for (size_t i = N_ELEMENTS(directories); i-- > 0;) {
                cleanup_with(cni_invocation_done) CniInvocation invocation = { 0 };
                cleanup_with(cni_network_freep) CniNetwork *network = NULL;
                cleanup_free char *directory = path_join(test_directory(), directories[i]);
                cleanup_free char *program = directory ? path_join(directory, "one") : NULL;
                cleanup_close int fd = -EBADF;

                REQUIRE(program && mkdir_parents_at(AT_FDCWD, directory, 0755) >= 0);
                fd = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
                REQUIRE(fd >= 0);
                REQUIRE(cni_network_new(CONFIG, path, &pod, 7, &network, NULL) == 0);
                REQUIRE(cni_invocation_build(network, CNI_ADD, 0, "/n", &invocation, NULL) == 0);
                EXPECT_STREQ(invocation.argv[0], program);
        }
}

TEST(invalid_bandwidth_is_refused)
{
        static const struct {
                const char *value, *message;
        } cases[] = {
                { "10", "metadata.annotations[kubernetes.io/ingress-bandwidth]: must be between 1k "
                        "and 1P bits a second, not '10'" },
                { "2P", "metadata.annotations[kubernetes.io/ingress-bandwidth]: must be between 1k "
                        "and 1P bits a second, not '2P'" },
        };
        char *before = annotations[0].value;

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *value = strdup(cases[i].value);
                CniNetwork *network = NULL;

                annotations[0].value = value;
                EXPECT_EQ(cni_network_new(CONFIG, "/p", &pod, 0, &network, &error), -EINVAL);
                EXPECT_STREQ(error.message, cases[i].message);
        }
        annotations[0].value = before;
}

static bool enables_ipv6_forwarding(const char *plugin, CniCommand command) {
        cleanup_with(cni_invocation_done) CniInvocation invocation = { 0 };
        cleanup_with(cni_network_freep) CniNetwork *network = NULL;
        char config[512];

        (void) snprintf(config, sizeof(config),
                        "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[%s]}", plugin);
        network = load_network(config);
        cni_network_record_add_step(network, 1);
        REQUIRE(cni_invocation_build(network, command, 0, "/n", &invocation, NULL) == 0);
        return invocation.enables_ipv6_forwarding;
}

#define RANGES4 "\"ipam\":{\"ranges\":[[{\"subnet\":\"10.0.0.0/16\"}]]}"
#define RANGES6 \
        "\"ipam\":{\"ranges\":[[{\"subnet\":\"10.0.0.0/16\"}],[{\"subnet\":\"fd00::/64\"}]]}"

TEST(bridge_that_is_a_gateway_of_ipv6_enables_forwarding)
{
        EXPECT(enables_ipv6_forwarding("{\"type\":\"bridge\",\"isGateway\":true," RANGES6 "}",
                                       CNI_ADD));
        EXPECT(enables_ipv6_forwarding(
                "{\"type\":\"bridge\",\"isDefaultGateway\":true," RANGES6 "}", CNI_ADD));
        EXPECT(!enables_ipv6_forwarding("{\"type\":\"bridge\",\"isGateway\":true," RANGES6 "}",
                                        CNI_DEL));
        EXPECT(!enables_ipv6_forwarding("{\"type\":\"bridge\",\"isGateway\":true," RANGES4 "}",
                                        CNI_ADD));
        EXPECT(!enables_ipv6_forwarding("{\"type\":\"bridge\"," RANGES6 "}", CNI_ADD));
        EXPECT(!enables_ipv6_forwarding("{\"type\":\"one\",\"isGateway\":true," RANGES6 "}",
                                        CNI_ADD));
}

TEST(plugin_error_has_a_remedy)
{
        cleanup_with(cni_network_freep) CniNetwork *network = load_network(CONFIG);
        cleanup_error Error iptables = ERROR_NULL, address = ERROR_NULL, other = ERROR_NULL;

        EXPECT_EQ(answer(network, CNI_ADD, 0, 1,
                         "{\"code\":999,\"msg\":\"failed to locate iptables: exec: "
                         "\\\"iptables\\\": executable file not found in $PATH\"}",
                         &iptables),
                  -EIO);
        EXPECT_STREQ(iptables.message,
                     "plugin type=\"one\" failed (add): failed to locate iptables: exec: "
                     "\"iptables\": executable file not found in $PATH; install iptables, or "
                     "nftables with network plugins of version 1.9 or later");
        (void) answer(network, CNI_ADD, 0, 1,
                      "{\"msg\":\"\\\"mainstay0\\\" already has an IP address different from "
                      "10.7.0.1/24\"}",
                      &address);
        EXPECT_STREQ(address.message,
                     "plugin type=\"one\" failed (add): \"mainstay0\" already has an IP address "
                     "different from 10.7.0.1/24; when no pod uses that bridge any more, delete it "
                     "(ip link delete), or restart the machine");
        (void) answer(network, CNI_ADD, 0, 1, "{\"msg\":\"no space\"}", &other);
        EXPECT_STREQ(other.message, "plugin type=\"one\" failed (add): no space");
}
