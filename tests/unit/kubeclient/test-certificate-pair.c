/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/certificate-expiry.h"
#include "agent/kubeclient/tls-config.h"
#include "common/clock.h"
#include "tests/test.h"

/* from 2026-01-01 to 2050-01-01, made by 'openssl ca -startdate … -enddate …' */
static const char pair[] = "-----BEGIN CERTIFICATE-----\n"
                           "MIHAMHQCAQEwBQYDK2VwMAwxCjAIBgNVBAMMAWMwIBcNMjYwMTAxMDAwMDAwWhgP\n"
                           "MjA1MDAxMDEwMDAwMDBaMAwxCjAIBgNVBAMMAWMwKjAFBgMrZXADIQAyZlCcxf0H\n"
                           "+pbORGXKDg/QoqV/OzGNCdg3u7aI7IR1cDAFBgMrZXADQQCHlWjwd4TJ0bNghqDF\n"
                           "nnBwoWufPQs9DTgnU5G/ZHdNHurRW6Zl+4QWW/Jp+mkhq4f2xLY6Vxr7+8eBBLFT\n"
                           "n4YN\n"
                           "-----END CERTIFICATE-----\n"
                           "-----BEGIN PRIVATE KEY-----\n"
                           "MC4CAQAwBQYDK2VwBCIEIHYpIPnL8LDX5IBBFEbflbonvZWlNPtTOojZboa7AsTv\n"
                           "-----END PRIVATE KEY-----\n";

TEST(a_pair_that_expires_after_2038_is_valid_until_then)
{
        const uint64_t from = UINT64_C(1767225600) * USEC_PER_SEC,
                       until = UINT64_C(2524608000) * USEC_PER_SEC, second = USEC_PER_SEC;
        uint64_t not_before = 0, not_after = 0;

        EXPECT_EQ(kube_pair_check(pair, &not_before, &not_after, NULL), 0);
        EXPECT_EQ(not_before, from);
        EXPECT_EQ(not_after, until);
        EXPECT_EQ(certificate_health(not_before, not_after, from + second), CERTIFICATE_VALID);
        EXPECT_EQ(certificate_health(not_before, not_after, until), CERTIFICATE_EXPIRED);
        /* after 80 % of its 24 years, in 2045 */
        EXPECT_EQ(certificate_rotation_deadline(not_before, not_after, 500),
                  from + (until - from) / 10 * 8);
}
