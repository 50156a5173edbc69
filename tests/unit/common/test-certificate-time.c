/* SPDX-License-Identifier: Apache-2.0 */
#include "common/certificate-time.h"

#include "tests/test.h"

#include <errno.h>

#define PEM(text) "-----BEGIN CERTIFICATE-----\n" text "-----END CERTIFICATE-----\n"

static gnutls_x509_crt_t import_pem(const char *text) {
        gnutls_datum_t pem = { (unsigned char *) (uintptr_t) text, (unsigned) strlen(text) };
        gnutls_x509_crt_t certificate = NULL;

        REQUIRE(gnutls_x509_crt_init(&certificate) == 0);
        REQUIRE(gnutls_x509_crt_import(certificate, &pem, GNUTLS_X509_FMT_PEM) == 0);
        return certificate;
}

TEST(certificates_may_expire_after_2038)
{
        /* made by 'openssl ca -startdate … -enddate …' */
        static const struct {
                const char *pem;
                int64_t not_after;
        } cases[] = {
                { PEM("MIG+MHICAQEwBQYDK2VwMAwxCjAIBgNVBAMMAWMwHhcNMjYwMTAxMDAwMDAwWhcN\n"
                      "NDkxMjMxMjM1OTU5WjAMMQowCAYDVQQDDAFjMCowBQYDK2VwAyEARYxNfbAcI9Mi\n"
                      "6CD1ROIy0ozp3aaaTn1lxtynxezfY+AwBQYDK2VwA0EAEx6ihnIoK8uEcd3d4Y04\n"
                      "S+wybJ8aQdCkAjAi9u7vT8G/jTllM1Yh5R7CiASTwE4ljf+0fBm4n3Iaoc0HDiul\n"
                      "BQ==\n"),
                  INT64_C(2524607999) }, /* the last second of two digits */
                { PEM("MIHAMHQCAQEwBQYDK2VwMAwxCjAIBgNVBAMMAWMwIBcNMjYwMTAxMDAwMDAwWhgP\n"
                      "MjA1MDAxMDEwMDAwMDBaMAwxCjAIBgNVBAMMAWMwKjAFBgMrZXADIQAyZlCcxf0H\n"
                      "+pbORGXKDg/QoqV/OzGNCdg3u7aI7IR1cDAFBgMrZXADQQCHlWjwd4TJ0bNghqDF\n"
                      "nnBwoWufPQs9DTgnU5G/ZHdNHurRW6Zl+4QWW/Jp+mkhq4f2xLY6Vxr7+8eBBLFT\n"
                      "n4YN\n"),
                  INT64_C(2524608000) }, /* the first second of four digits */
                { PEM("MIHAMHQCAQEwBQYDK2VwMAwxCjAIBgNVBAMMAWMwIBcNMjYwMTAxMDAwMDAwWhgP\n"
                      "OTk5OTEyMzEyMzU5NTlaMAwxCjAIBgNVBAMMAWMwKjAFBgMrZXADIQBaXOdQDMDG\n"
                      "QzOhOidZJNmm+EuxJvY95l/bkRgpDpG9vjAFBgMrZXADQQAzM6/sdOwhH4t+MBkA\n"
                      "mej3ejwSco8C4kx4HxlLZviPQov7dDHseAsyDS88GmE46gjZyN7Z4J7iE9kdMi0s\n"
                      "jiIM\n"),
                  INT64_C(253402300799) }, /* never */
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                gnutls_x509_crt_t certificate = import_pem(cases[i].pem);
                CertificateTimes times = { 0 };

                EXPECT_EQ(certificate_read_times(certificate, &times), 0);
                EXPECT_EQ(times.not_before, 1767225600); /* 2026-01-01T00:00:00Z */
                EXPECT_EQ(times.not_after, cases[i].not_after);
                gnutls_x509_crt_deinit(certificate);
        }
}

static void sign_with_times(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key,
                            const CertificateTimes *times) {
        REQUIRE(gnutls_x509_crt_set_version(certificate, 3) == 0);
        REQUIRE(gnutls_x509_crt_set_serial(certificate, "1", 1) == 0);
        REQUIRE(gnutls_x509_crt_set_dn(certificate, "CN=x", NULL) == 0);
        REQUIRE(gnutls_x509_crt_set_key(certificate, key) == 0);
        REQUIRE(certificate_set_times(certificate, times) == 0);
        REQUIRE(gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0) == 0);
}

TEST(certificate_times_are_read_back_after_they_are_set)
{
        static const CertificateTimes cases[] = {
                { 0, 1 },
                { 1767225600, INT32_MAX },
                { 0, CERTIFICATE_NEVER_EXPIRES },
                { 1767225600, INT64_C(2524608000) },
        };
        gnutls_x509_privkey_t key;

        REQUIRE(gnutls_x509_privkey_init(&key) == 0);
        REQUIRE(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                             GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
                                             0) == 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                gnutls_x509_crt_t certificate;
                CertificateTimes times = { 0 };

                REQUIRE(gnutls_x509_crt_init(&certificate) == 0);
                sign_with_times(certificate, key, &cases[i]);
                EXPECT_EQ(certificate_read_times(certificate, &times), 0);
                EXPECT_EQ(times.not_before, cases[i].not_before);
                /* Times that GnuTLS cannot represent on 32 bits do not become times in the past. */
                if (cases[i].not_after == CERTIFICATE_NEVER_EXPIRES ||
                    (cases[i].not_after > INT32_MAX && sizeof(long) == 4 &&
                     times.not_after != cases[i].not_after))
                        EXPECT_EQ(times.not_after, INT64_C(253402300799)); /* year 9999 */
                else
                        EXPECT_EQ(times.not_after, cases[i].not_after);
                gnutls_x509_crt_deinit(certificate);
        }
        gnutls_x509_privkey_deinit(key);
}

TEST(invalid_certificate_is_refused)
{
        CertificateTimes times = { 7, 8 };
        gnutls_x509_crt_t certificate;

        REQUIRE(gnutls_x509_crt_init(&certificate) == 0);
        EXPECT_EQ(certificate_read_times(certificate, &times), -EINVAL);
        EXPECT_EQ(times.not_before, 7);
        EXPECT_EQ(times.not_after, 8);
        gnutls_x509_crt_deinit(certificate);
}
