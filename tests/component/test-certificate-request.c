/* SPDX-License-Identifier: Apache-2.0 */
/* TLS bootstrap and certificate rotation. */

#include "agent/kubeclient/certificate-manager.h"
#include "agent/kubeclient/json-view.h"
#include "agent/kubeclient/tls-bootstrap.h"
#include "agent/manifest/read-kubeconfig.h"
#include "common/strv.h"
#include "tests/component/kube-server.h"

#include <sys/stat.h>

typedef struct Node {
        World world;
        CertificateRequest *request;
        CertificateManager *manager;
        char *directory, *kubeconfig;
        char *last_error;
        unsigned n_done;
        bool is_server; /* rotates the serving certificate */
} Node;

static void on_error(const char *error, void *userdata) {
        Node *node = userdata;

        printf("%s\n", error ? error : "no error");
        EXPECT(!error || !strstr(error, "boot.5tr4p"));
        free(node->last_error);
        node->last_error = error ? strdup(error) : NULL;
}

static void on_done(void *userdata) {
        Node *node = userdata;

        node->n_done++;
        node->request = certificate_request_free(node->request);
}

static void start_tls_bootstrap(Node *node, const char *name) {
        cleanup_error Error error = ERROR_NULL;

        REQUIRE(tls_bootstrap_start(
                        &(TlsBootstrapSpec){ .request = { .event = node->world.event,
                                                          .kubeconfig = &node->world.config,
                                                          .node_name = name,
                                                          .directory = node->directory,
                                                          .on_error = on_error,
                                                          .on_done = on_done,
                                                          .userdata = node },
                                             .kubeconfig_to_write = node->kubeconfig },
                        &node->request, &error) >= 0);
}

static void node_init(Node *node) {
        sigset_t child;

        memset(node, 0, sizeof(*node));
        world_init(&node->world, NULL);
        REQUIRE(sigemptyset(&child) == 0 && sigaddset(&child, SIGCHLD) == 0);
        REQUIRE(sigprocmask(SIG_BLOCK, &child, NULL) == 0); /* sd-event requires this */
        node->world.config.token = strdup("boot.5tr4p");
        node->directory = world_path("pki");
        node->kubeconfig = world_path("etc/kubeconfig");
}

static void node_done(Node *node) {
        node->request = certificate_request_free(node->request);
        node->manager = certificate_manager_free(node->manager);
        free(node->directory);
        free(node->kubeconfig);
        free(node->last_error);
        world_done(&node->world);
}

static bool pair_file_exists(const Node *node, const char *name) {
        cleanup_free char *path = path_join(node->directory, name);
        struct stat st;

        return stat(path, &st) == 0 && (st.st_mode & 07777) == 0600;
}

/* The user name that the server sees for the kubeconfig that was written. */
static void expect_peer(Node *node, const char *expected) {
        cleanup_free char *peer = NULL;
        cleanup_strv char **warnings = NULL;
        cleanup_answer Answer answer = { 0 };
        Kubeconfig config = { 0 };
        int r = kubeconfig_load(node->kubeconfig, &config, &warnings, NULL);

        REQUIRE(r >= 0);
        EXPECT(warnings == NULL);
        kubeconfig_done(&node->world.config);
        node->world.config = config;
        node->world.client = kube_client_free(node->world.client);
        world_connect(&node->world);
        ask(&node->world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        peer = json_view_dup(json_view_member((JsonView){ answer.body, answer.length }, "peer"));
        EXPECT_STREQ(peer, expected);
        EXPECT(!strstr(answer.body, "authorization"));
}

TEST(bootstrap_token_is_exchanged_for_a_certificate)
{
        Node node;

        node_init(&node);
        start_tls_bootstrap(&node, "new");
        WAIT_UNTIL(&node.world, node.n_done == 1);
        EXPECT(pair_file_exists(&node, PAIR_FILE));
        EXPECT(!pair_file_exists(&node, "kubelet-client-next.pem"));
        EXPECT(!pair_file_exists(&node, "kubelet-client-pending.pem"));
        EXPECT_STREQ(node.last_error, NULL);
        expect_peer(&node, "system:node:new");
        node_done(&node);
}

TEST(restarted_agent_continues_with_the_same_request)
{
        cleanup_free char *approved = NULL, *said = NULL;
        Node node;

        node_init(&node);
        approved = world_path("approved");
        start_tls_bootstrap(&node, "patient");
        WAIT_UNTIL(&node.world,
                   node.last_error && strstr(node.last_error, "waiting for the approval"));
        said = strdup(node.last_error);
        EXPECT(pair_file_exists(&node, "kubelet-client-pending.pem"));
        node.request = certificate_request_free(node.request);
        free(node.last_error);
        node.last_error = NULL;
        start_tls_bootstrap(&node, "patient");
        WAIT_UNTIL(&node.world, node.last_error != NULL);
        EXPECT_STREQ(node.last_error, said);
        REQUIRE(write_file_atomic_at(AT_FDCWD, approved, "", 0, 0600) >= 0);
        WAIT_UNTIL(&node.world, node.n_done == 1);
        expect_peer(&node, "system:node:patient");
        node_done(&node);
}

TEST(denied_request_is_reported_with_its_reason)
{
        Node node;

        node_init(&node);
        start_tls_bootstrap(&node, "denied");
        WAIT_UNTIL(&node.world, node.last_error && strstr(node.last_error, "denied"));
        EXPECT_STREQ(node.last_error, "the certificate signing request was denied: No: not you");
        EXPECT(!pair_file_exists(&node, "kubelet-client-pending.pem"));
        EXPECT(!pair_file_exists(&node, PAIR_FILE));
        node.request = certificate_request_free(node.request);
        free(node.world.config.token);
        node.world.config.token = strdup("wrong");
        start_tls_bootstrap(&node, "new");
        WAIT_UNTIL(&node.world, node.last_error && strstr(node.last_error, "Unauthorized"));
        node_done(&node);
}

/* Number of requests with this prefix that the server has received. */
static unsigned count_asked(Node *node, const char *start) {
        cleanup_answer Answer answer = { 0 };
        unsigned n = 0;

        ask(&node->world, &(KubeRequestSpec){ .path = "/log" }, &answer);
        for (const char *line = answer.body; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                n += strncmp(line, start, strlen(start)) == 0;
        }
        return n;
}

TEST(request_that_disappears_is_repeated_with_back_off)
{
        uint64_t until;
        Node node;

        node_init(&node);
        world_connect(&node.world);
        start_tls_bootstrap(&node, "forgotten");
        WAIT_UNTIL(&node.world, node.last_error != NULL);
        EXPECT(node.last_error && strstr(node.last_error, "the certificate signing request"));
        /* The request is repeated 0.8, 2.4, 5.6 and 12 s later, not sooner. */
        until = now_boottime_usec() + 10 * USEC_PER_SEC;
        while (now_boottime_usec() < until)
                REQUIRE(sd_event_run(node.world.event, USEC_PER_SEC) >= 0);
        EXPECT(count_asked(&node, "POST ") <= 4);
        node_done(&node);
}

TEST(certificate_for_a_different_key_is_not_installed)
{
        cleanup_free char *current = NULL, *text = NULL;
        size_t length;
        Node node;

        node_init(&node);
        REQUIRE(mkdir(node.directory, 0700) == 0);
        current = path_join(node.directory, PAIR_FILE);
        REQUIRE(write_file_atomic_at(AT_FDCWD, current, "the old one", 11, 0600) >= 0);
        start_tls_bootstrap(&node, "stranger");
        WAIT_UNTIL(&node.world,
                   node.last_error && strstr(node.last_error, "the key is not that of"));
        REQUIRE(read_file_at(AT_FDCWD, current, MIB, &text, &length) >= 0);
        EXPECT_STREQ(text, "the old one");
        node_done(&node);
}

/* A request with the expired certificate and one with a bootstrap token are made at the same time.
 */
TEST(concurrent_requests_do_not_depend_on_the_files_of_each_other)
{
        cleanup_free char *accepted = NULL, *next = NULL, *pending = NULL;
        Node node;

        node_init(&node);
        accepted = world_path("accepted");
        next = path_join(node.directory, "kubelet-client-next.pem");
        pending = path_join(node.directory, "kubelet-client-pending.pem");
        world_connect(&node.world);
        start_tls_bootstrap(&node, "early");
        WAIT_UNTIL(&node.world, node.last_error && strstr(node.last_error, "503"));
        REQUIRE(unlink(next) == 0 && unlink(pending) == 0);
        REQUIRE(write_file_atomic_at(AT_FDCWD, accepted, "", 0, 0600) >= 0);
        WAIT_UNTIL(&node.world, node.n_done == 1);
        EXPECT_EQ(count_asked(&node, "POST "), 1);
        expect_peer(&node, "system:node:early");
        node_done(&node);
}

/* The agent's connection: it leads to the server that exists now, and the agent notices the
 * change. */
TEST(request_is_sent_over_the_connection_of_its_owner)
{
        char name[] = "node1", *names[] = { name, NULL };
        const CsrServer names_of_server = { .names = names };
        cleanup_error Error error = ERROR_NULL;
        cleanup_answer Answer answer = { 0 };
        Node node;

        node_init(&node);
        world_connect(&node.world);
        world_kill(&node.world);
        REQUIRE(certificate_request_new(&(CertificateRequestSpec){ .event = node.world.event,
                                                                   .kubeconfig = &node.world.config,
                                                                   .client = node.world.client,
                                                                   .node_name = "new",
                                                                   .directory = node.directory,
                                                                   .server = &names_of_server,
                                                                   .on_error = on_error,
                                                                   .on_done = on_done,
                                                                   .userdata = &node },
                                        &node.request, &error) >= 0);
        WAIT_UNTIL(&node.world, node.last_error != NULL);
        EXPECT(!kube_client_state(node.world.client).is_reached);
        world_serve(&node.world, NULL);
        free(node.world.config.server);
        node.world.config.server = strdup(node.world.url);
        EXPECT_EQ(kube_client_reload(node.world.client, &node.world.config, NULL), 1);
        ask(&node.world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT_EQ(answer.status, 200);
        WAIT_UNTIL(&node.world, node.n_done == 1);
        EXPECT(pair_file_exists(&node, SERVER_PAIR_FILE));
        node_done(&node);
}

TEST(expiring_certificate_is_rotated_with_itself)
{
        KubeClientState before, after;
        uint64_t now;
        Node node;

        node_init(&node);
        start_tls_bootstrap(&node, "new");
        WAIT_UNTIL(&node.world, node.n_done == 1);
        expect_peer(&node, "system:node:new");
        before = kube_client_state(node.world.client);
        REQUIRE(certificate_manager_new(&(CertificateManagerSpec){ .event = node.world.event,
                                                                   .node_name = "new",
                                                                   .directory = node.directory,
                                                                   .on_error = on_error,
                                                                   .userdata = &node },
                                        &node.manager) >= 0);
        EXPECT_EQ(certificate_manager_set_certificate(node.manager, &node.world.config,
                                                      before.not_before, before.not_after),
                  0);
        EXPECT_STREQ(node.last_error, NULL);
        /* The certificate seems to have been issued long ago. */
        now = now_realtime_usec();
        EXPECT_EQ(certificate_manager_set_certificate(node.manager, &node.world.config,
                                                      now - 97 * USEC_PER_SEC,
                                                      now + 3 * USEC_PER_SEC),
                  0);
        EXPECT(node.last_error && strstr(node.last_error, "is about to expire"));
        do
                REQUIRE(sd_event_run(node.world.event, USEC_PER_SEC) >= 0);
        while (kube_client_reload(node.world.client, &node.world.config, NULL) != 1 &&
               now_realtime_usec() < now + PATIENCE_SEC * USEC_PER_SEC);
        after = kube_client_state(node.world.client);
        EXPECT(after.not_after > 0);
        EXPECT_EQ(certificate_manager_set_certificate(node.manager, &node.world.config,
                                                      after.not_before, after.not_after),
                  0);
        WAIT_UNTIL(&node.world, node.last_error == NULL);
        expect_peer(&node, "system:node:new");
        node_done(&node);
}

TEST(expiry_of_a_foreign_certificate_is_only_reported)
{
        uint64_t now;
        Node node;

        node_init(&node);
        REQUIRE(certificate_manager_new(&(CertificateManagerSpec){ .event = node.world.event,
                                                                   .node_name = "new",
                                                                   .on_error = on_error,
                                                                   .userdata = &node },
                                        &node.manager) >= 0);
        now = now_realtime_usec();
        EXPECT_EQ(certificate_manager_set_certificate(node.manager, &node.world.config,
                                                      now - 98 * USEC_PER_SEC,
                                                      now + 2 * USEC_PER_SEC),
                  0);
        EXPECT(node.last_error && strstr(node.last_error, "is about to expire"));
        WAIT_UNTIL(&node.world, node.last_error && strstr(node.last_error, "has expired"));
        EXPECT(!pair_file_exists(&node, "kubelet-client-pending.pem"));
        EXPECT_EQ(certificate_manager_set_certificate(node.manager, &node.world.config, 0, 0), 0);
        EXPECT_STREQ(node.last_error, NULL);
        node_done(&node);
}

/* Sets a certificate that is already due for renewal, as if the clock were ahead or the signer had
 * issued something other than what was requested. */
static void set_due_certificate(Node *node) {
        uint64_t now = now_realtime_usec();
        uint64_t not_before = node->is_server ? 0 : now - 970 * USEC_PER_SEC;
        uint64_t not_after = node->is_server ? 0 : now + 30 * USEC_PER_SEC;

        EXPECT_EQ(certificate_manager_set_certificate(node->manager, &node->world.config,
                                                      not_before, not_after),
                  0);
}

static void on_rotated_due(void *userdata) {
        Node *node = userdata;

        node->n_done++;
        set_due_certificate(node);
}

static bool dump_contains(const Node *node, const char *words) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        bool is_there;

        REQUIRE(out);
        certificate_manager_dump(node->manager, out);
        (void) fclose(out);
        is_there = strstr(text, words) != NULL;
        printf("%s\n", text);
        return is_there;
}

static void expect_due_certificate_to_be_kept(bool is_server) {
        char name[] = "new", *names[] = { name, NULL };
        const CsrServer names_of_server = { .names = names };
        uint64_t until;
        Node node;

        node_init(&node);
        start_tls_bootstrap(&node, "new");
        WAIT_UNTIL(&node.world, node.n_done == 1);
        expect_peer(&node, "system:node:new");
        node.is_server = is_server;
        REQUIRE(certificate_manager_new(
                        &(CertificateManagerSpec){ .event = node.world.event,
                                                   .node_name = "new",
                                                   .directory = node.directory,
                                                   .server = is_server ? &names_of_server : NULL,
                                                   .on_error = on_error,
                                                   .on_rotated = on_rotated_due,
                                                   .userdata = &node },
                        &node.manager) >= 0);
        set_due_certificate(&node);
        WAIT_UNTIL(&node.world, node.n_done == 2);
        EXPECT(node.last_error && strstr(node.last_error, "is due for rotation already"));
        EXPECT(is_server || !dump_contains(&node, "is being rotated"));
        EXPECT(is_server || dump_contains(&node, "next rotation at the earliest"));
        until = now_boottime_usec() + 3 * USEC_PER_SEC;
        while (now_boottime_usec() < until)
                REQUIRE(sd_event_run(node.world.event, USEC_PER_SEC) >= 0);
        EXPECT_EQ(count_asked(&node, "POST "), 2);
        node_done(&node);
}

TEST(certificate_that_is_already_due_when_issued_is_not_rotated_at_once)
{ expect_due_certificate_to_be_kept(false); }

TEST(serving_certificate_for_other_names_is_not_requested_again_at_once)
{ expect_due_certificate_to_be_kept(true); }
