/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/request-back-off.h"

#include "common/clock.h"
#include "tests/test.h"

enum {
        ALWAYS = 1000, /* a random value of 'ALWAYS' adds the whole jitter */
};

TEST(wait_doubles_to_its_limit_and_has_jitter)
{
        static const unsigned msec[] = { 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000 };
        KubeBackOff least = { 0 }, most = { 0 };

        for (size_t i = 0; i < N_ELEMENTS(msec); i++) {
                EXPECT_EQ(kube_back_off_next(&least, &kube_back_off_default, 0, 0, 0),
                          msec[i] * USEC_PER_MSEC);
                EXPECT_EQ(kube_back_off_next(&most, &kube_back_off_default, 0, 0, ALWAYS),
                          msec[i] * (2 * USEC_PER_MSEC));
        }
}

TEST(hundred_clients_that_fail_together_retry_at_different_times)
{
        enum {
                N = 100
        };
        uint64_t first = UINT64_MAX, last = 0;
        unsigned n_early = 0;

        for (unsigned i = 0; i < N; i++) {
                KubeBackOff back_off = { 0 };
                uint64_t wait = kube_back_off_next(&back_off, &kube_back_off_default, 0, 0,
                                                   back_off_random());

                first = MIN(first, wait);
                last = MAX(last, wait);
                n_early += wait < kube_back_off_default.initial_usec +
                                          kube_back_off_default.initial_usec / 2;
        }
        EXPECT(last - first >= first / 5);
        EXPECT(n_early > 10 && n_early < 90); /* about half of them are, at random */
}

TEST(old_failures_are_forgotten)
{
        KubeBackOff back_off = { 0 };
        uint64_t now = 1000 * USEC_PER_SEC;

        for (size_t i = 0; i < 20; i++)
                (void) kube_back_off_next(&back_off, &kube_back_off_default, now, 0, 0);
        EXPECT_EQ(kube_back_off_next(&back_off, &kube_back_off_default, now + 180 * USEC_PER_SEC, 0,
                                     0),
                  30 * USEC_PER_SEC);
        EXPECT_EQ(kube_back_off_next(&back_off, &kube_back_off_default, now + 361 * USEC_PER_SEC, 0,
                                     0),
                  800 * USEC_PER_MSEC);
        (void) kube_back_off_next(&back_off, &kube_back_off_default, now, 0, 0);
        kube_back_off_reset(&back_off);
        EXPECT_EQ(kube_back_off_next(&back_off, &kube_back_off_default, now, 0, 0),
                  800 * USEC_PER_MSEC);
}

TEST(retry_after_is_waited_with_jitter)
{
        KubeBackOff back_off = { 0 };

        EXPECT_EQ(kube_back_off_next(&back_off, &kube_back_off_default, 0, 60 * USEC_PER_SEC, 0),
                  60 * USEC_PER_SEC);
        EXPECT_EQ(
                kube_back_off_next(&back_off, &kube_back_off_default, 0, 60 * USEC_PER_SEC, ALWAYS),
                75 * USEC_PER_SEC);
        EXPECT_EQ(kube_back_off_next(&back_off, &kube_back_off_slow, 0, USEC_PER_SEC, 0),
                  40 * USEC_PER_SEC);
}
