/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/csr.h"

#include "agent/kubeclient/json-view.h"
#include "agent/kubeclient/tls-config.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>

TEST(request_is_for_a_node_and_named_after_its_key)
{
        cleanup_with(secret_freep) char *key = NULL, *other = NULL;
        cleanup_free char *name = NULL, *json = NULL, *again = NULL, *json_again = NULL;
        cleanup_free char *other_name = NULL, *other_json = NULL, *pem = NULL, *base64 = NULL;
        JsonView spec;
        size_t length;

        REQUIRE(csr_generate_key(&key, NULL) >= 0);
        REQUIRE(csr_generate_key(&other, NULL) >= 0);
        EXPECT(strncmp(key, "-----BEGIN PRIVATE KEY-----\n", 28) == 0);
        REQUIRE(csr_build_object("node1", NULL, key, &name, &json, NULL) >= 0);
        REQUIRE(csr_build_object("node1", NULL, key, &again, &json_again, NULL) >= 0);
        REQUIRE(csr_build_object("node1", NULL, other, &other_name, &other_json, NULL) >= 0);
        EXPECT_STREQ(again, name);
        EXPECT(strcmp(other_name, name) != 0);
        EXPECT_EQ(strlen(name), strlen("node-csr-") + 64);
        spec = json_view_member((JsonView){ json, strlen(json) }, "spec");
        EXPECT(json_view_equals(json_view_member(spec, "signerName"),
                                "kubernetes.io/kube-apiserver-client-kubelet"));
        base64 = json_view_dup(json_view_member(spec, "request"));
        REQUIRE(base64 && base64_decode(base64, &pem, &length) >= 0);
        EXPECT(strncmp(pem, "-----BEGIN CERTIFICATE REQUEST-----\n", 36) == 0);
}

TEST(serving_request_has_another_signer_and_a_name_with_its_addresses)
{
        CsrServer server = { .names = (char *[]){ (char[]){ "node1" }, NULL },
                             .addresses = (char *[]){ (char[]){ "10.0.0.1" }, NULL } };
        CsrServer moved = { .names = server.names,
                            .addresses = (char *[]){ (char[]){ "fd00::1" }, NULL } };
        cleanup_with(secret_freep) char *key = NULL;
        cleanup_free char *name = NULL, *json = NULL, *again = NULL, *json_again = NULL;
        cleanup_free char *other_name = NULL, *other_json = NULL;
        JsonView spec, usages;

        REQUIRE(csr_generate_key(&key, NULL) >= 0);
        REQUIRE(csr_build_object("node1", &server, key, &name, &json, NULL) >= 0);
        REQUIRE(csr_build_object("node1", &server, key, &again, &json_again, NULL) >= 0);
        REQUIRE(csr_build_object("node1", &moved, key, &other_name, &other_json, NULL) >= 0);
        EXPECT_STREQ(again, name);
        EXPECT(strcmp(other_name, name) != 0);
        spec = json_view_member((JsonView){ json, strlen(json) }, "spec");
        EXPECT(json_view_equals(json_view_member(spec, "signerName"),
                                "kubernetes.io/kubelet-serving"));
        usages = json_view_member(spec, "usages");
        EXPECT(json_view_equals(json_view_item(usages, 0), "digital signature"));
        EXPECT(json_view_equals(json_view_item(usages, 1), "server auth"));
}

TEST(invalid_key_gives_an_error)
{
        cleanup_error Error error = ERROR_NULL;
        char *name = NULL, *json = NULL;

        EXPECT_EQ(csr_build_object("node1", NULL, "s3cr3t", &name, &json, &error), -EINVAL);
        EXPECT(error.message && !strstr(error.message, "s3cr3t"));
        EXPECT(name == NULL && json == NULL);
}

TEST(status_follows_from_conditions_and_certificate)
{
        static const struct {
                const char *status;
                CsrStatus verdict;
                const char *text;
        } cases[] = {
                { "{}", CSR_PENDING, NULL },
                { "{\"conditions\":[{\"type\":\"Approved\"}]}", CSR_PENDING, NULL },
                { "{\"certificate\":\"UEVN\",\"conditions\":[{\"type\":\"Approved\"}]}", CSR_ISSUED,
                  "PEM" },
                { "{\"conditions\":[{\"type\":\"Approved\"},{\"type\":\"Failed\",\"message\":\"x\"}"
                  "]}",
                  CSR_REFUSED, "the certificate signing request was not fulfilled: x" },
                { "{\"conditions\":[{\"type\":\"Denied\",\"reason\":\"No\"}]}", CSR_REFUSED,
                  "the certificate signing request was denied: No" },
                { "{\"certificate\":\"?\"}", CSR_REFUSED, "the issued certificate is not base64" },
                { "7", CSR_PENDING, NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *text = NULL;
                char json[512];

                (void) snprintf(json, sizeof(json), "{\"status\":%s}", cases[i].status);
                EXPECT_EQ(csr_read_status(json, strlen(json), &text), cases[i].verdict);
                EXPECT_STREQ(text, cases[i].text);
        }
}
