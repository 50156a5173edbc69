/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/node-authority.h"

#include "agent/kubeclient/tls-config.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/test.h"

#define NOW       (1767323045 * USEC_PER_SEC) /* 2026-01-02T03:04:05Z */
#define YEAR_USEC (UINT64_C(365) * 24 * 3600 * USEC_PER_SEC)

TEST(an_authority_is_read_as_it_was_written)
{
        cleanup_with(node_authority_freep) NodeAuthority *made = NULL, *read = NULL;
        char *text, *again;

        EXPECT_EQ(node_authority_new("node1", NOW, &made, NULL), 0);
        text = node_authority_format(made);
        EXPECT(text);
        EXPECT_EQ(node_authority_parse(text, NOW, &read, NULL), 0);
        again = node_authority_format(read);
        EXPECT_STREQ(again, text);
        EXPECT_STREQ(node_authority_certificate(read), node_authority_certificate(made));
        secret_free(text);
        secret_free(again);
}

TEST(an_authority_that_is_damaged_or_expired_is_refused)
{
        cleanup_with(node_authority_freep) NodeAuthority *made = NULL;
        NodeAuthority *read = NULL;
        cleanup_error Error damaged = ERROR_NULL, expired = ERROR_NULL;
        char *text;

        EXPECT_EQ(node_authority_new("node1", NOW, &made, NULL), 0);
        EXPECT_EQ(node_authority_parse(node_authority_certificate(made), NOW, &read, &damaged),
                  -EINVAL);
        EXPECT(strstr(damaged.message, "it is not a certificate and its key"));
        text = node_authority_format(made);
        EXPECT_EQ(node_authority_parse(text, NOW + 11 * YEAR_USEC, &read, &expired), -EINVAL);
        EXPECT_STREQ(expired.message, "the certificate has expired");
        secret_free(text);
}

TEST(each_certificate_has_a_key_of_its_own)
{
        cleanup_with(node_authority_freep) NodeAuthority *authority = NULL;
        NodeCertificateSpec spec = { .common_name = "jane",
                                     .organization = "system:masters",
                                     .valid_days = 1 };
        char *certificates[2], *keys[2];

        EXPECT_EQ(node_authority_new("node1", NOW, &authority, NULL), 0);
        for (size_t i = 0; i < 2; i++) {
                EXPECT_EQ(node_authority_issue(authority, &spec, NOW, &certificates[i], &keys[i],
                                               NULL),
                          0);
                EXPECT(strstr(certificates[i], "CERTIFICATE-----"));
                EXPECT(strstr(keys[i], "PRIVATE KEY"));
        }
        EXPECT(!streq(certificates[0], certificates[1]));
        EXPECT(!streq(keys[0], keys[1]));
        for (size_t i = 0; i < 2; i++) {
                free(certificates[i]);
                secret_free(keys[i]);
        }
}

TEST(a_self_signed_certificate_is_for_its_names_and_known_as_such)
{
        static const char *const names[] = { "node1", NULL }, *const addresses[] = { "10.0.0.1",
                                                                                     NULL };
        char *const all_names[] = { (char[]){ "node1" }, NULL };
        char *const all_addresses[] = { (char[]){ "10.0.0.1" }, NULL };
        char *const others[] = { (char[]){ "10.0.0.2" }, NULL };
        NodeCertificateSpec spec = {
                .common_name = "node1", .dns_names = names, .addresses = addresses, .valid_days = 1
        };
        cleanup_with(node_authority_freep) NodeAuthority *authority = NULL;
        char *certificate, *key, *issued, *issued_key;

        EXPECT_EQ(self_signed_issue(&spec, NOW, &certificate, &key, NULL), 0);
        EXPECT(is_self_signed(certificate));
        EXPECT(kube_pair_is_for(certificate, all_names, all_addresses));
        EXPECT(!kube_pair_is_for(certificate, all_names, others));
        EXPECT_EQ(node_authority_new("node1", NOW, &authority, NULL), 0);
        EXPECT_EQ(node_authority_issue(authority, &spec, NOW, &issued, &issued_key, NULL), 0);
        EXPECT(!is_self_signed(issued));
        EXPECT(!is_self_signed("nothing"));
        free(certificate);
        free(issued);
        secret_free(key);
        secret_free(issued_key);
}
