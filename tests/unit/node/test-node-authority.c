/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/node-authority.h"

#include "agent/kubeclient/tls-config.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/test.h"

#include <gnutls/x509.h>
#include <limits.h>
#include <time.h>

#define NOW       (1767323045 * USEC_PER_SEC) /* 2026-01-02T03:04:05Z */
#define YEAR_USEC (UINT64_C(365) * 24 * 3600 * USEC_PER_SEC)

/* This file is built with the time_t of GnuTLS, which ends in 2038 on 32-bit distributions. */
#define MUCH_LATER (sizeof(time_t) > 4 ? NOW + 20 * YEAR_USEC : NOW + 11 * YEAR_USEC)

static time_t verification_time;

static time_t get_verification_time(time_t *ret) {
        if (ret)
                *ret = verification_time;
        return verification_time;
}

static gnutls_datum_t make_datum(const char *text) {
        return (gnutls_datum_t){ (unsigned char *) (uintptr_t) text, (unsigned) strlen(text) };
}

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

TEST(an_authority_that_is_damaged_is_refused)
{
        cleanup_with(node_authority_freep) NodeAuthority *made = NULL;
        NodeAuthority *read = NULL;
        cleanup_error Error damaged = ERROR_NULL;

        EXPECT_EQ(node_authority_new("node1", NOW, &made, NULL), 0);
        EXPECT_EQ(node_authority_parse(node_authority_certificate(made), NOW, &read, &damaged),
                  -EINVAL);
        EXPECT(strstr(damaged.message, "it is not a certificate and its key"));
}

/* Returns 0 if the authority has issued the certificate and both are valid at that time. */
static int verify_at(const NodeAuthority *authority, const char *certificate, uint64_t usec) {
        gnutls_datum_t issuer = make_datum(node_authority_certificate(authority)),
                       issued = make_datum(certificate);
        gnutls_x509_trust_list_t list;
        gnutls_x509_crt_t crt;
        unsigned status = UINT_MAX;

        EXPECT_EQ(gnutls_x509_trust_list_init(&list, 0), 0);
        EXPECT_EQ(gnutls_x509_trust_list_add_trust_mem(list, &issuer, NULL, GNUTLS_X509_FMT_PEM, 0,
                                                       0),
                  1);
        EXPECT_EQ(gnutls_x509_crt_init(&crt), 0);
        EXPECT_EQ(gnutls_x509_crt_import(crt, &issued, GNUTLS_X509_FMT_PEM), 0);
        verification_time = (time_t) (usec / USEC_PER_SEC);
        gnutls_global_set_time_function(get_verification_time);
        EXPECT_EQ(gnutls_x509_trust_list_verify_crt(list, &crt, 1, 0, &status, NULL), 0);
        gnutls_global_set_time_function(time);
        gnutls_x509_crt_deinit(crt);
        gnutls_x509_trust_list_deinit(list, 1);
        return (int) status;
}

static const NodeCertificateSpec jane = { .common_name = "jane",
                                          .organization = "system:masters",
                                          .valid_days = 365 };

TEST(an_expired_authority_is_renewed_with_its_key)
{
        cleanup_with(node_authority_freep) NodeAuthority *made = NULL, *renewed = NULL;
        char *text, *certificate, *key;

        EXPECT_EQ(node_authority_new("node1", NOW, &made, NULL), 0);
        EXPECT_EQ(node_authority_issue(made, &jane, NOW, &certificate, &key, NULL), 0);
        text = node_authority_format(made);
        /* The clock is wrong by eleven years, and right again afterwards. */
        REQUIRE(node_authority_parse(text, NOW + 11 * YEAR_USEC, &renewed, NULL) == 1);
        EXPECT(!streq(node_authority_certificate(made), node_authority_certificate(renewed)));
        EXPECT_EQ(verify_at(renewed, certificate, NOW), 0);
        secret_free(key);
        free(certificate);
        EXPECT_EQ(node_authority_issue(renewed, &jane, NOW, &certificate, &key, NULL), 0);
        EXPECT_EQ(verify_at(made, certificate, NOW), 0);
        secret_free(key);
        free(certificate);
        secret_free(text);
}

TEST(an_authority_that_expires_after_2038_is_not_renewed_before)
{
        cleanup_with(node_authority_freep) NodeAuthority *made = NULL, *read = NULL;
        const uint64_t year_2035 = NOW + 9 * YEAR_USEC, year_2044 = NOW + 18 * YEAR_USEC;
        char *text;

        EXPECT_EQ(node_authority_new("node1", year_2035, &made, NULL), 0);
        text = node_authority_format(made);
        EXPECT_EQ(node_authority_parse(text, year_2044, &read, NULL), 0);
        secret_free(text);
}

TEST(an_authority_is_renewed_until_after_2050)
{
        cleanup_with(node_authority_freep) NodeAuthority *made = NULL, *renewed = NULL,
                                                         *read = NULL;
        const uint64_t year_2041 = NOW + 15 * YEAR_USEC;
        char *text, *again;

        EXPECT_EQ(node_authority_new("node1", NOW, &made, NULL), 0);
        text = node_authority_format(made);
        REQUIRE(node_authority_parse(text, year_2041, &renewed, NULL) == 1);
        again = node_authority_format(renewed);
        EXPECT_EQ(node_authority_parse(again, year_2041 + 9 * YEAR_USEC, &read, NULL), 0);
        secret_free(text);
        secret_free(again);
}

TEST(certificates_that_are_made_before_the_clock_is_set_are_valid_later)
{
        cleanup_with(node_authority_freep) NodeAuthority *made = NULL, *read = NULL;
        char *text, *certificate, *key;

        EXPECT_EQ(node_authority_new("node1", 60 * USEC_PER_SEC, &made, NULL), 0);
        EXPECT_EQ(node_authority_issue(made, &jane, 60 * USEC_PER_SEC, &certificate, &key, NULL),
                  0);
        EXPECT_EQ(verify_at(made, certificate, 1 * USEC_PER_SEC), 0);
        EXPECT_EQ(verify_at(made, certificate, MUCH_LATER), 0);
        text = node_authority_format(made);
        EXPECT_EQ(node_authority_parse(text, NOW + 20 * YEAR_USEC, &read, NULL), 0);
        secret_free(text);
        secret_free(key);
        free(certificate);
}

TEST(each_certificate_has_a_separate_key)
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
