/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugins of a chain are told, word for word. */

#include "agent/network/network.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

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
/* One that runs to its end is not there for others; one that runs on is. */
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

/* A directory with programs of the names that the chain has. */
static const char *make_plugins(void) {
        static const char *const names[] = { "one", "two", "three" };

        for (size_t i = 0; i < N_ELEMENTS(names); i++) {
                cleanup_free char *path = NULL;
                FILE *file;

                REQUIRE(asprintf(&path, "%s/%s", test_directory(), names[i]) > 0);
                file = fopen(path, "we");
                REQUIRE(file && fchmod(fileno(file), 0755) == 0 && fclose(file) == 0);
        }
        return test_directory();
}

static Network *make(const char *config) {
        cleanup_error Error error = ERROR_NULL;
        Network *network = NULL;
        int r = network_new(config, make_plugins(), &pod, 7, &network, &error);

        EXPECT_STREQ(error.message, NULL);
        REQUIRE(r == 0);
        return network;
}

static void expect_input(const Network *network, NetworkCommand command, size_t step,
                         const char *expected) {
        cleanup_with(network_invocation_done) NetworkInvocation invocation = { 0 };

        REQUIRE(network_invocation(network, command, step, "/n", &invocation, NULL) == 0);
        EXPECT_STREQ(invocation.input, expected);
}

static int answer(Network *network, NetworkCommand command, size_t step, int exit_code,
                  const char *output, Error *reterr) {
        return network_take(
                network, command, step,
                &(NetworkAnswer){ .has_run = true, .exit_code = exit_code, .output = output },
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

TEST(add_goes_forwards_and_chains_results_and_delete_goes_backwards_with_the_last)
{
        cleanup_with(network_freep) Network *network = make(CONFIG);

        EXPECT_EQ(network_n_steps(network, NETWORK_ADD), 3);
        EXPECT_EQ(network_n_steps(network, NETWORK_DEL), 0);
        expect_input(network, NETWORK_ADD, 0, ONE "}");
        network_note_begun(network, 1);
        EXPECT_EQ(network_n_steps(network, NETWORK_DEL), 1);
        expect_input(network, NETWORK_DEL, 0, ONE "}");
        EXPECT_EQ(answer(network, NETWORK_ADD, 0, 0, "{\"first\":1}", NULL), 0);
        expect_input(network, NETWORK_ADD, 1, TWO ",\"prevResult\":{\"first\":1}}");
        EXPECT_EQ(answer(network, NETWORK_ADD, 1, 0, "{\"second\":2}", NULL), 0);
        expect_input(network, NETWORK_ADD, 2, THREE ",\"prevResult\":{\"second\":2}}");
        EXPECT(!network_is_attached(network));
        network_note_begun(network, 3);
        EXPECT_EQ(answer(network, NETWORK_ADD, 2, 0, RESULT, NULL), 0);
        EXPECT(network_is_attached(network));

        EXPECT_EQ(network_n_steps(network, NETWORK_DEL), 3);
        expect_input(network, NETWORK_DEL, 0, THREE ",\"prevResult\":" RESULT "}");
        expect_input(network, NETWORK_DEL, 1, TWO ",\"prevResult\":" RESULT "}");
        expect_input(network, NETWORK_DEL, 2, ONE ",\"prevResult\":" RESULT "}");
        EXPECT_EQ(network_n_steps(network, NETWORK_CHECK), 3);
        expect_input(network, NETWORK_CHECK, 0, ONE ",\"prevResult\":" RESULT "}");
}

TEST(the_environment_is_the_specification_s)
{
        cleanup_with(network_freep) Network *network = make(CONFIG);
        cleanup_with(network_invocation_done) NetworkInvocation invocation = { 0 };
        cleanup_free char *program = NULL, *path = NULL;
        const char *id;

        REQUIRE(network_invocation(network, NETWORK_ADD, 1, "/proc/5/ns/net", &invocation, NULL) ==
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

TEST(sandboxes_of_one_pod_have_names_of_their_own)
{
        cleanup_with(network_freep) Network *first = NULL, *second = NULL;
        cleanup_free char *a = NULL, *b = NULL;

        REQUIRE(network_new(CONFIG, "/p", &pod, 0, &first, NULL) == 0);
        REQUIRE(network_new(CONFIG, "/p", &pod, 1, &second, NULL) == 0);
        a = network_to_text(first);
        b = network_to_text(second);
        EXPECT_EQ(network_number(second), 1);
        EXPECT(strstr(a, "\"containerId\":\"") && strstr(b, "\"containerId\":\""));
        EXPECT(memcmp(strstr(a, "containerId"), strstr(b, "containerId"), 60) != 0);
}

TEST(an_attachment_survives_being_written_down)
{
        cleanup_with(network_freep) Network *network = make(CONFIG), *again = NULL;
        cleanup_free char *text = NULL, *twice = NULL;

        network_note_begun(network, 3);
        REQUIRE(answer(network, NETWORK_ADD, 2, 0, RESULT, NULL) == 0);
        text = network_to_text(network);
        REQUIRE(network_from_text(text, &again, NULL) == 0);
        twice = network_to_text(again);
        EXPECT_STREQ(twice, text);
        EXPECT(network_is_attached(again));
        EXPECT_STREQ(network_address(again, 0), "10.1.2.3");
        EXPECT_STREQ(network_address(again, 1), "fd00::3");
        EXPECT_STREQ(network_address(again, 2), NULL);
        network_begin_delete(again);
        EXPECT(!network_is_attached(again));
        EXPECT_STREQ(network_address(again, 0), NULL);
        expect_input(again, NETWORK_DEL, 2, ONE ",\"prevResult\":" RESULT "}");
}

/* "one" masquerades; 'ipam' is its allocator's configuration. */
static Network *make_masquerading(const char *ipam) {
        cleanup_free char *config = NULL;

        REQUIRE(asprintf(&config,
                         "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[{\"type\":\"one\","
                         "\"ipMasq\":true,\"ipam\":%s},{\"type\":\"two\"}]}",
                         ipam) > 0);
        return make(config);
}

/* Which steps a command has, and what they say of a stand-in. */
static void expect_steps(const Network *network, NetworkCommand command, const char *expected) {
        char told[256] = "";

        for (size_t i = 0; i < network_n_steps(network, command); i++) {
                cleanup_with(network_invocation_done) NetworkInvocation invocation = { 0 };

                REQUIRE(network_invocation(network, command, i, "", &invocation, NULL) == 0);
                EXPECT_STREQ(invocation.interface, invocation.address ? "eth0" : NULL);
                (void) snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s%s %s",
                                i > 0 ? ", " : "", invocation.plugin, strna(invocation.address));
        }
        EXPECT_STREQ(told, expected);
}

TEST(who_masquerades_deletes_with_a_stand_in_for_each_address_before_it_deletes)
{
        cleanup_with(network_freep) Network *network = make_masquerading("{}"), *again = NULL;
        cleanup_free char *text = NULL;

        network_note_begun(network, 2);
        REQUIRE(answer(network, NETWORK_ADD, 1, 0, RESULT, NULL) == 0);
        expect_steps(network, NETWORK_CHECK, "one , two ");
        network_begin_delete(network);
        text = network_to_text(network);
        REQUIRE(network_from_text(text, &again, NULL) == 0);
        network_begin_delete(again);
        expect_steps(again, NETWORK_DEL, "two , one 10.1.2.3, one fd00::3, one ");
}

TEST(what_a_plugin_says_with_a_stand_in_is_no_failure_and_how_it_ends_is)
{
        static const char refusal[] = "{\"code\":1,\"msg\":\"no such chain\"}";
        cleanup_with(network_freep) Network *network = make_masquerading("{}");

        network_note_begun(network, 2);
        REQUIRE(answer(network, NETWORK_ADD, 1, 0, RESULT, NULL) == 0);
        network_begin_delete(network);
        EXPECT(answer(network, NETWORK_DEL, 0, 1, refusal, NULL) < 0);
        EXPECT_EQ(answer(network, NETWORK_DEL, 1, 1, refusal, NULL), 0);
        EXPECT(answer(network, NETWORK_DEL, 2, 137, "", NULL) < 0);
        EXPECT(answer(network, NETWORK_DEL, 3, 1, refusal, NULL) < 0);
}

/* As host-local writes it. */
static void allocate(const char *directory, const char *name, const char *id) {
        cleanup_free char *path = NULL;
        FILE *file;

        REQUIRE(asprintf(&path, "%s/%s", directory, name) > 0);
        file = fopen(path, "we");
        REQUIRE(file && fprintf(file, "%s\r\neth0", id) > 0 && fclose(file) == 0);
}

TEST(where_add_gave_no_result_the_addresses_are_those_that_the_allocator_has_given_away)
{
        cleanup_with(network_freep) Network *network = NULL, *other = NULL;
        cleanup_with(network_invocation_done) NetworkInvocation invocation = { 0 };
        cleanup_free char *ipam = NULL, *directory = NULL;
        const char *id;

        REQUIRE(asprintf(&ipam, "{\"type\":\"host-local\",\"dataDir\":\"%s\"}", test_directory()) >
                0);
        REQUIRE(asprintf(&directory, "%s/n", test_directory()) > 0);
        network = make_masquerading(ipam);
        REQUIRE(network_invocation(network, NETWORK_ADD, 0, "", &invocation, NULL) == 0);
        id = invocation.environment[1] + strlen("CNI_CONTAINERID=");
        network_note_begun(network, 1);
        network_begin_delete(network); /* there is no directory yet */
        expect_steps(network, NETWORK_DEL, "one ");
        REQUIRE(mkdir(directory, 0700) == 0);
        allocate(directory, "10.1.2.4", "another");
        allocate(directory, "lock", id);
        allocate(directory, "10.1.2.3", id);
        network_begin_delete(network);
        expect_steps(network, NETWORK_DEL, "one 10.1.2.3, one ");
        allocate(directory, "10.1.2.3", "another"); /* what is known stays */
        network_begin_delete(network);
        expect_steps(network, NETWORK_DEL, "one 10.1.2.3, one ");
        other = make_masquerading("{\"type\":\"static\"}");
        network_note_begun(other, 1);
        network_begin_delete(other);
        expect_steps(other, NETWORK_DEL, "one ");
}

TEST(what_was_not_written_by_us_is_refused)
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
                Network *network = NULL;

                EXPECT_EQ(network_from_text(texts[i], &network, NULL), -EBADMSG);
                EXPECT(!network);
        }
}

TEST(failures_are_sentences_that_name_the_plugin)
{
        static const struct {
                int exit_code;
                const char *output, *message;
        } cases[] = {
                { 1, "{\"code\":7,\"msg\":\"no room\",\"details\":\"at all\"}",
                  "plugin type=\"three\" failed (add): no room; at all" },
                { 1, "{\"code\":7,\"msg\":\"no room\"}",
                  "plugin type=\"three\" failed (add): no room" },
                { 3, "panic", "plugin type=\"three\" failed (add): it ended with status 3" },
                { 0, "",
                  "plugin type=\"three\" failed (add): its result is no JSON: 1:0: '[' or "
                  "'{' expected near end of file" },
                { 0, "[]",
                  "plugin type=\"three\" failed (add): its result is not of the form that CNI "
                  "has" },
                { 0, "{}",
                  "plugin type=\"three\" failed (add): its result has no address for the "
                  "pod" },
                { 0, "{\"ips\":[{\"address\":\"10.0.0/8\"}]}",
                  "plugin type=\"three\" failed (add): its result has an address that is none: "
                  "'10.0.0/8'" },
                { 0,
                  "{\"interfaces\":[{\"name\":\"eth0\"}],\"ips\":[{\"interface\":0,\"address\":"
                  "\"10.0.0.1/8\"}]}",
                  "plugin type=\"three\" failed (add): its result has no address for the pod" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(network_freep) Network *network = make(CONFIG);
                cleanup_error Error error = ERROR_NULL;

                EXPECT(answer(network, NETWORK_ADD, 2, cases[i].exit_code, cases[i].output,
                              &error) < 0);
                EXPECT_STREQ(error.message, cases[i].message);
                EXPECT(!network_is_attached(network));
        }
}

TEST(a_result_has_limits)
{
        cleanup_with(network_freep) Network *network = make(CONFIG);
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *large = malloc(NETWORK_RESULT_MAX + 2);

        REQUIRE(large);
        memset(large, ' ', NETWORK_RESULT_MAX + 1);
        large[NETWORK_RESULT_MAX + 1] = '\0';
        EXPECT(answer(network, NETWORK_ADD, 0, 0, large, &error) < 0);
        EXPECT_STREQ(error.message,
                     "plugin type=\"one\" failed (add): its result has more than 32768 bytes");
}

TEST(an_old_version_deletes_without_a_result_and_has_no_check)
{
        cleanup_with(network_freep) Network *network =
                make("{\"cniVersion\":\"0.3.1\",\"name\":\"n\",\"type\":\"one\"}");

        network_note_begun(network, 1);
        REQUIRE(answer(network, NETWORK_ADD, 0, 0, "{\"ips\":[{\"address\":\"10.0.0.2/8\"}]}",
                       NULL) == 0);
        EXPECT_STREQ(network_address(network, 0), "10.0.0.2");
        EXPECT_EQ(network_n_steps(network, NETWORK_CHECK), 0);
        expect_input(network, NETWORK_DEL, 0,
                     "{\"cniVersion\":\"0.3.1\",\"name\":\"n\",\"type\":\"one\"}");
}

TEST(a_plugin_that_is_not_installed_is_named_with_where_it_was_looked_for)
{
        cleanup_with(network_freep) Network *network = NULL;
        cleanup_with(network_invocation_done) NetworkInvocation invocation = { 0 };
        cleanup_error Error error = ERROR_NULL;

        REQUIRE(network_new(CONFIG, "/nowhere:relative", &pod, 0, &network, NULL) == 0);
        EXPECT_EQ(network_invocation(network, NETWORK_ADD, 0, "", &invocation, &error), -ENOENT);
        EXPECT_STREQ(error.message, "failed to find plugin \"one\" in path [/nowhere:relative]");
}

TEST(a_bandwidth_that_cannot_be_is_refused)
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
                Network *network = NULL;

                annotations[0].value = value;
                EXPECT_EQ(network_new(CONFIG, "/p", &pod, 0, &network, &error), -EINVAL);
                EXPECT_STREQ(error.message, cases[i].message);
        }
        annotations[0].value = before;
}
