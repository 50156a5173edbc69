/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/certificate-expiry.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/test.h"

#define NOT_BEFORE (UINT64_C(1790000000) * USEC_PER_SEC)
#define NOT_AFTER  (NOT_BEFORE + 100 * USEC_PER_SEC)

TEST(rotation_is_due_between_70_and_90_percent)
{
        EXPECT_EQ(certificate_rotation_deadline(NOT_BEFORE, NOT_AFTER, 0),
                  NOT_BEFORE + 70 * USEC_PER_SEC);
        EXPECT_EQ(certificate_rotation_deadline(NOT_BEFORE, NOT_AFTER, 500),
                  NOT_BEFORE + 80 * USEC_PER_SEC);
        EXPECT_EQ(certificate_rotation_deadline(NOT_BEFORE, NOT_AFTER, 1000),
                  NOT_BEFORE + 90 * USEC_PER_SEC);
        EXPECT_EQ(certificate_rotation_deadline(NOT_AFTER, NOT_BEFORE, 1000), NOT_BEFORE);
}

TEST(expiry_state_and_next_check_follow_from_the_time)
{
        static const struct {
                int64_t at;
                CertificateHealth health;
                int64_t next; /* -1: never */
        } cases[] = {
                { -5, CERTIFICATE_NOT_YET_VALID, 0 }, { 0, CERTIFICATE_VALID, 80 },
                { 79, CERTIFICATE_VALID, 80 },        { 80, CERTIFICATE_EXPIRES_SOON, 95 },
                { 94, CERTIFICATE_EXPIRES_SOON, 95 }, { 95, CERTIFICATE_CRITICAL, 100 },
                { 99, CERTIFICATE_CRITICAL, 100 },    { 100, CERTIFICATE_EXPIRED, -1 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                uint64_t now = NOT_BEFORE + (uint64_t) cases[i].at * USEC_PER_SEC;

                EXPECT_EQ(certificate_health(NOT_BEFORE, NOT_AFTER, now), cases[i].health);
                EXPECT_EQ(certificate_next_check(NOT_BEFORE, NOT_AFTER, now),
                          cases[i].next < 0 ? UINT64_MAX
                                            : NOT_BEFORE + (uint64_t) cases[i].next * USEC_PER_SEC);
        }
}

TEST(problem_is_described_with_its_time)
{
        cleanup_free char *low =
                certificate_describe_problem(NOT_BEFORE, NOT_AFTER, NOT_AFTER - 15 * USEC_PER_SEC);
        cleanup_free char *expired = certificate_describe_problem(NOT_BEFORE, NOT_AFTER, NOT_AFTER);
        cleanup_free char *early = certificate_describe_problem(NOT_BEFORE, NOT_AFTER, 0);

        EXPECT(certificate_describe_problem(NOT_BEFORE, NOT_AFTER, NOT_BEFORE) == NULL);
        EXPECT_STREQ(low, "the certificate expires soon, at 2026-09-21T14:15:00Z");
        EXPECT_STREQ(expired, "the certificate has expired, at 2026-09-21T14:15:00Z; "
                              "the clock of this machine says 2026-09-21");
        EXPECT_STREQ(early, "the certificate is not valid yet, from 2026-09-21T14:13:20Z; "
                            "the clock of this machine is not set, it says 1970-01-01");
}
