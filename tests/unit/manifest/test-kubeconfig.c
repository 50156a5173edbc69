/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/read-kubeconfig.h"

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "tests/test.h"

#include <fcntl.h>

#define SECRET "s3cr3t-token"

static const char *path(void) {
        static char text[128];

        (void) snprintf(text, sizeof(text), "%s/kubeconfig", test_directory());
        return text;
}

/* The error after the path, or "". */
static const char *load(const char *yaml, Kubeconfig *config, char ***warnings) {
        static char text[1024];
        cleanup_error Error error = ERROR_NULL;
        int r;

        REQUIRE(write_file_atomic_at(AT_FDCWD, path(), yaml, strlen(yaml), 0600) >= 0);
        r = kubeconfig_load(path(), config, warnings, &error);
        if (r >= 0)
                return "";
        EXPECT(strncmp(error_message(&error, r), path(), strlen(path())) == 0);
        (void) snprintf(text, sizeof(text), "%s", error_message(&error, r) + strlen(path()));
        EXPECT(!strstr(text, SECRET));
        return text;
}

static const char *verdict(const char *yaml) {
        static char text[2048];
        cleanup_strv char **warnings = NULL;
        Kubeconfig config = { 0 };

        (void) snprintf(text, sizeof(text), "%s", load(yaml, &config, &warnings));
        strv_foreach(warning, warnings) {
                EXPECT(!strstr(*warning, SECRET));
                (void) snprintf(text, sizeof(text), "warning%s", *warning + strlen(path()));
        }
        kubeconfig_done(&config);
        return text;
}

/* These are lines 1 to 3; the cluster is on line 4, the user on line 5. */
static const char *kubeconfig_verdict(const char *cluster, const char *user) {
        char yaml[4096];

        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Config\n"
                        "current-context: c\n"
                        "clusters: [{name: k, cluster: {server: 'https://a:1'%s%s}}]\n"
                        "users: [{name: u, user: {%s}}]\n"
                        "contexts: [{name: c, context: {cluster: k, user: u}}]\n",
                        cluster[0] ? ", " : "", cluster, user);
        return verdict(yaml);
}

TEST(current_context_is_resolved)
{
        static const char yaml[] =
                "apiVersion: v1\nkind: Config\ncurrent-context: two\npreferences: {}\n"
                "clusters:\n"
                "- name: other\n  cluster: {server: 'https://other'}\n"
                "- name: k\n  cluster:\n"
                "    server: https://10.0.0.1:6443/\n"
                "    certificate-authority: pki/ca.crt\n"
                "    certificate-authority-data: UEVN\n"
                "    tls-server-name: kubernetes\n"
                "    proxy-url: http://10.0.0.2:3128\n"
                "users:\n"
                "- name: guest\n  user: {exec: {command: aws}}\n"
                "- name: node\n  user:\n"
                "    client-certificate: /abs/node.crt\n"
                "    client-key: node.key\n"
                "    client-key-data: S0VZ\n"
                "    token: " SECRET "\n"
                "    tokenFile: ../token\n"
                "contexts:\n"
                "- {name: one, context: {cluster: other, user: guest}}\n"
                "- {name: two, context: {cluster: k, user: node, namespace: things}}\n";
        cleanup_strv char **warnings = NULL;
        cleanup_free char *directory = realpath(test_directory(), NULL);
        char expected[256];
        Kubeconfig config = { 0 };

        EXPECT_STREQ(load(yaml, &config, &warnings), "");
        EXPECT(warnings == NULL);
        EXPECT_STREQ(config.path, path());
        EXPECT_STREQ(config.server, "https://10.0.0.1:6443");
        EXPECT_STREQ(config.tls_server_name, "kubernetes");
        EXPECT(!config.insecure);
        (void) snprintf(expected, sizeof(expected), "%s/pki/ca.crt", directory);
        EXPECT_STREQ(config.authority_file, expected);
        EXPECT_STREQ(config.authority_data, "PEM");
        EXPECT_STREQ(config.certificate_file, "/abs/node.crt");
        EXPECT_STREQ(config.certificate_data, NULL);
        (void) snprintf(expected, sizeof(expected), "%s/node.key", directory);
        EXPECT_STREQ(config.key_file, expected);
        EXPECT_STREQ(config.key_data, "KEY");
        EXPECT_STREQ(config.token, SECRET);
        (void) snprintf(expected, sizeof(expected), "%s/../token", directory);
        EXPECT_STREQ(config.token_file, expected);
        EXPECT_STREQ(config.proxy_url, "http://10.0.0.2:3128");
        EXPECT_STREQ(config.namespace, "things");
        kubeconfig_done(&config);
}

TEST(kubeconfig_may_be_json)
{
        cleanup_strv char **warnings = NULL;
        Kubeconfig config = { 0 };

        EXPECT_STREQ(load("{\"current-context\":\"c\",\"clusters\":[{\"name\":\"k\",\"cluster\":"
                          "{\"server\":\"http://a:1\",\"insecure-skip-tls-verify\":true}}],"
                          "\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"k\"}}]}",
                          &config, &warnings),
                     "");
        EXPECT_STREQ(config.server, "http://a:1");
        EXPECT(config.insecure);
        EXPECT_STREQ(config.namespace, "default");
        EXPECT_STREQ(config.token, NULL);
        kubeconfig_done(&config);
}

#define AGENT "an agent has a certificate, a token or a token file"

TEST(unsupported_ways_to_log_in_are_refused)
{
        static const struct {
                const char *user, *verdict;
        } cases[] = {
                { "token: " SECRET, "" },
                { "exec: {command: aws}",
                  ":5:26: users[0].user.exec: would run a program to log in; " AGENT },
                { "auth-provider: {name: gcp}",
                  ":5:26: users[0].user.auth-provider: would need a plugin to log in; " AGENT },
                { "username: me, password: " SECRET,
                  ":5:26: users[0].user.username: is for users; " AGENT },
                { "as: root", ":5:26: users[0].user.as: a node cannot impersonate other users" },
                { "as-groups: [a]",
                  ":5:26: users[0].user.as-groups: a node cannot impersonate other users" },
                { "exec: null, as: ''", "" },
                { "token: 12345", ":5:33: users[0].user.token: must be a string; quote it" },
                { "token: \"" SECRET "\\nX: y\"",
                  ":5:33: users[0].user.token: must be visible characters of ASCII" },
                { "client-key: a", ":5:38: users[0].user.client-key: needs client-certificate" },
                { "client-certificate: a",
                  ":5:46: users[0].user.client-certificate: needs client-key" },
                { "client-certificate: a, client-key-data: '" SECRET "!'",
                  ":5:66: users[0].user.client-key-data: must be base64" },
                { "client-certificate: a, client-key-data: AAAA",
                  ":5:66: users[0].user.client-key-data: must be PEM in base64" },
                { "tokn: " SECRET, "warning:5:26: users[0].user.tokn: is not a field of AuthInfo; "
                                   "did you mean 'token'?" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                printf("%s\n", cases[i].user);
                EXPECT_STREQ(kubeconfig_verdict("", cases[i].user), cases[i].verdict);
        }
}

TEST(clusters_are_checked)
{
        static const struct {
                const char *cluster, *verdict;
        } cases[] = {
                { "server: 'https://a/b'", ":4:55: duplicate key 'server'; the "
                                           "first is at line 4, column 32" },
                { "proxy-url: 'http://me:" SECRET "@a:1'", "" },
                { "proxy-url: 'gopher://a'", ":4:66: clusters[0].cluster.proxy-url: must be a URL "
                                             "such as http://10.0.0.1:3128" },
                { "insecure-skip-tls-verify: true, certificate-authority: a",
                  ":4:81: clusters[0].cluster.insecure-skip-tls-verify: cannot be combined with a "
                  "certificate-authority" },
                { "certificate-authority-data: '-'",
                  ":4:83: clusters[0].cluster.certificate-authority-data: must be base64" },
                { "tls-server-name: 'A b'",
                  ":4:72: clusters[0].cluster.tls-server-name: must be a DNS subdomain, "
                  "not 'A b'" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                printf("%s\n", cases[i].cluster);
                EXPECT_STREQ(kubeconfig_verdict(cases[i].cluster, ""), cases[i].verdict);
        }
}

TEST(documents_are_checked)
{
        static const struct {
                const char *yaml, *verdict;
        } cases[] = {
                { "", ": must hold one document, not 0" },
                { "{}\n---\n{}\n", ": must hold one document, not 2" },
                { "kind: Pod\n", ":1:7: kind: must be Config, not the string 'Pod'" },
                { "apiVersion: v2\n", ":1:13: apiVersion: must be v1, not the string 'v2'" },
                { "kind: Config\n", ":1:1: current-context: is required" },
                { "current-context: c\n", ":1:1: contexts: does not contain context 'c'" },
                { "current-context: c\ncontexts: [{name: c}]\n",
                  ":2:12: contexts[0].context: is required" },
                { "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n",
                  ":1:1: clusters: does not contain cluster 'k'" },
                { "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                  "clusters: [{name: k, cluster: {server: 'https://a'}}]\nusers: []\n",
                  ":4:8: users: does not contain user 'u'" },
                { "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                  "clusters: [{name: k, cluster: {server: 'ftp://" SECRET "'}}]\n",
                  ":3:40: clusters[0].cluster.server: must be a URL such as "
                  "https://10.0.0.1:6443" },
                { "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                  "clusters: [{name: k, cluster: {server: 'http://a'}}]\n"
                  "users: [{name: u, user: {token: " SECRET "}}]\n",
                  ":3:40: clusters[0].cluster.server: must be https where there are credentials" },
                { "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                  "clusters: [{name: k, cluster: {server: 'https://a'}}]\n"
                  "users: [{name: u, user: " SECRET "}]\n",
                  ":4:25: users[0].user: must be a mapping" },
                { "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                  "clusters: [{name: k, cluster: {server: 'https://a'}}]\n"
                  "users: [{name: u, user: {exec: {command: " SECRET "}, token: *" SECRET "}}]\n",
                  ":4:64: the alias has no anchor before it; quote a text that starts with '*'" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                printf("%s\n", cases[i].yaml);
                EXPECT_STREQ(verdict(cases[i].yaml), cases[i].verdict);
        }
}

TEST(missing_kubeconfig_is_an_error)
{
        cleanup_error Error error = ERROR_NULL;
        char **warnings = NULL;
        Kubeconfig config = { 0 };

        EXPECT_EQ(kubeconfig_load("/nowhere/kubeconfig", &config, &warnings, &error), -ENOENT);
        EXPECT_STREQ(error.message, "/nowhere/kubeconfig: No such file or directory");
}
