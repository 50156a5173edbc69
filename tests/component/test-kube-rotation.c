/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a kubeconfig are replaced while a client uses them; no error shows their content. */

#include "agent/kubeclient/json-view.h"
#include "agent/manifest/kubeconfig-watch.h"
#include "tests/component/kube-server.h"

typedef struct Node {
        World world;
        KubeconfigWatch *files;
        char *last_error;
        unsigned n_errors;
} Node;

static int use(const Kubeconfig *kubeconfig, void *userdata, Error *reterr) {
        Node *node = userdata;

        if (node->world.client)
                return kube_client_reload(node->world.client, kubeconfig, reterr);
        return kube_client_new(node->world.event, kubeconfig, &node->world.client, reterr);
}

static void on_reload_error(const char *error, char *const *warnings, void *userdata) {
        Node *node = userdata;

        free(node->last_error);
        node->last_error = error ? strdup(error) : NULL;
        node->n_errors += error != NULL;
}

static void write_test_file(const char *name, const char *text) {
        cleanup_free char *path = world_path(name);

        REQUIRE(write_file_atomic_at(AT_FDCWD, path, text, strlen(text), 0600) >= 0);
}

static void copy(const char *from, const char *to) {
        cleanup_free char *path = world_path(from), *text = NULL;
        size_t length;

        REQUIRE(read_file_at(AT_FDCWD, path, MIB, &text, &length) >= 0);
        write_test_file(to, text);
}

static void put_kubeconfig(const Node *node, const char *user) {
        char yaml[2048];

        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                        "clusters: [{name: k, cluster: {server: '%s', certificate-authority: "
                        "trusted.crt}}]\n"
                        "users: [{name: u, user: {%s}}]\n"
                        "contexts: [{name: c, context: {cluster: k, user: u}}]\n",
                        node->world.url, user);
        write_test_file("kubeconfig", yaml);
}

static void node_begin(Node *node) {
        REQUIRE(kubeconfig_watch_new(&(KubeconfigWatchSpec){ .event = node->world.event,
                                                             .path = node->world.config.path,
                                                             .use = use,
                                                             .on_error = on_reload_error,
                                                             .userdata = node },
                                     &node->files) >= 0);
}

static void node_init(Node *node) {
        memset(node, 0, sizeof(*node));
        world_init(&node->world, NULL);
        copy("ca.crt", "trusted.crt");
}

static void node_done(Node *node) {
        kubeconfig_watch_free(node->files);
        free(node->last_error);
        world_done(&node->world);
}

/* The user name for the server. */
static const char *peer(Node *node) {
        static char name[128];
        cleanup_answer Answer answer = { 0 };
        cleanup_free char *word = NULL;

        ask(&node->world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        word = answer.status == 200 ? json_view_dup(json_view_member(
                                              (JsonView){ answer.body, answer.length }, "peer"))
                                    : NULL;
        (void) snprintf(name, sizeof(name), "%s", strna(word));
        return name;
}

TEST(pair_that_is_replaced_file_by_file_is_used_once_it_matches)
{
        uint64_t begun, took;
        Node node;

        node_init(&node);
        put_kubeconfig(&node, "client-certificate: node.crt, client-key: node.key");
        copy("one.crt", "node.crt");
        copy("one.key", "node.key");
        node_begin(&node);
        EXPECT_STREQ(peer(&node), "system:node:one");
        begun = now_boottime_usec();
        copy("two.crt", "node.crt");
        EXPECT_STREQ(peer(&node), "system:node:one");
        copy("two.key", "node.key");
        took = now_boottime_usec() - begun;
        WAIT_UNTIL(&node.world, strcmp(peer(&node), "system:node:two") == 0);
        /* A mismatch that lasts two seconds is reported. */
        EXPECT(node.n_errors == 0 || took >= 2 * USEC_PER_SEC);
        node_done(&node);
}

TEST(mismatched_pair_is_reported_and_the_old_one_stays_in_use)
{
        Node node;

        node_init(&node);
        put_kubeconfig(&node, "client-certificate: node.crt, client-key: node.key");
        copy("one.crt", "node.crt");
        copy("one.key", "node.key");
        node_begin(&node);
        copy("two.key", "node.key");
        WAIT_UNTIL(&node.world, node.last_error != NULL);
        EXPECT(strstr(node.last_error, "node.crt: the key is not that of the certificate"));
        EXPECT_STREQ(peer(&node), "system:node:one");
        write_test_file("node.crt", "-----BEGIN CERTIFICATE-----\n");
        WAIT_UNTIL(&node.world,
                   node.last_error && strstr(node.last_error, "the certificate cannot be used"));
        EXPECT_STREQ(peer(&node), "system:node:one");
        copy("two.crt", "node.crt");
        WAIT_UNTIL(&node.world, node.last_error == NULL);
        EXPECT_STREQ(peer(&node), "system:node:two");
        node_done(&node);
}

TEST(replaced_authority_is_used_for_new_connections)
{
        Node node;

        node_init(&node);
        copy("other-ca.crt", "trusted.crt");
        put_kubeconfig(&node, "");
        node_begin(&node);
        EXPECT_STREQ(peer(&node), "");
        EXPECT(!kube_client_state(node.world.client).is_reached);
        copy("ca.crt", "trusted.crt");
        WAIT_UNTIL(&node.world,
                   kube_client_state(node.world.client).is_reached || (peer(&node), false));
        write_test_file("trusted.crt", "nothing\n");
        WAIT_UNTIL(&node.world, node.last_error != NULL);
        EXPECT(strstr(node.last_error,
                      "trusted.crt: the certificate authority is not a certificate"));
        (void) peer(&node);
        EXPECT(kube_client_state(node.world.client).is_reached);
        node_done(&node);
}

TEST(broken_kubeconfig_leaves_the_last_one_in_use)
{
        Node node;

        node_init(&node);
        write_test_file("kubeconfig", "users: [");
        node_begin(&node);
        EXPECT(node.world.client == NULL);
        EXPECT(node.last_error && strstr(node.last_error, "kubeconfig:"));
        copy("one.crt", "node.crt");
        copy("one.key", "node.key");
        put_kubeconfig(&node, "client-certificate: node.crt, client-key: node.key");
        WAIT_UNTIL(&node.world, node.world.client != NULL);
        EXPECT_STREQ(node.last_error, NULL);
        EXPECT_STREQ(peer(&node), "system:node:one");
        put_kubeconfig(&node, "exec: {command: login}");
        WAIT_UNTIL(&node.world, node.last_error != NULL);
        EXPECT(strstr(node.last_error, "would run a program to log in"));
        EXPECT_STREQ(peer(&node), "system:node:one");
        put_kubeconfig(&node, "client-certificate: two.crt, client-key: two.key");
        WAIT_UNTIL(&node.world, node.last_error == NULL);
        EXPECT_STREQ(peer(&node), "system:node:two");
        node_done(&node);
}

/* ---- signals that must not arrive ---- */

static char *first_line_of_key(const char *name) {
        cleanup_free char *path = world_path(name), *text = NULL;
        size_t length;
        char *line, *end;

        REQUIRE(read_file_at(AT_FDCWD, path, MIB, &text, &length) >= 0);
        line = strchr(text, '\n');
        end = line ? strchr(line + 1, '\n') : NULL;
        REQUIRE(end);
        return strndup(line + 1, (size_t) (end - line - 1));
}

TEST(no_error_shows_a_key_or_a_token)
{
        static const char *const users[] = {
                "token: [pas5w0rd-71]",
                "token: 'pas5w0rd-71 x'",
                "token: pas5w0rd-71, exec: {command: pas5w0rd-71}",
                "token: pas5w0rd-71, client-key-data: 'pas5w0rd-71-'",
                "client-certificate: node.crt, client-key: two.key",
                "client-certificate: two.key, client-key: two.key",
                "client-certificate: node.crt, client-key: trusted.crt",
                "token: pas5w0rd-71, username: u, password: pas5w0rd-71",
        };
        cleanup_free char *key = NULL;
        Node node;

        node_init(&node);
        key = first_line_of_key("two.key");
        copy("one.crt", "node.crt");
        for (size_t i = 0; i < N_ELEMENTS(users); i++) {
                put_kubeconfig(&node, users[i]);
                node_begin(&node);
                printf("%s\n", strna(node.last_error));
                EXPECT(node.last_error != NULL);
                EXPECT(!strstr(strna(node.last_error), "pas5w0rd-71"));
                EXPECT(!strstr(strna(node.last_error), key));
                node.files = kubeconfig_watch_free(node.files);
                free(node.last_error);
                node.last_error = NULL;
                node.world.client = kube_client_free(node.world.client);
        }
        node_done(&node);
}
