/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a controller manager is active, and when to check again. */

#include "agent/apiserver/controller-lease.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/test.h"

static uint64_t realtime_of(const char *text) {
        uint64_t usec = 0;

        REQUIRE(parse_rfc3339(text, &usec) >= 0);
        return usec;
}

/* Checks the lease and expects the verdict; 'second' is the time of both clocks. Returns the time
 * until the next check, in seconds. */
static unsigned next_look_sec(ControllerLease *lease, const char *renewed, uint64_t second,
                              ControllerVerdict expected) {
        uint64_t next = 0, start = realtime_of("2026-01-01T00:00:00Z");
        cleanup_free char *json = NULL;

        REQUIRE(asprintf(&json,
                         "{\"kind\":\"Lease\",\"spec\":{\"holderIdentity\":\"a\","
                         "\"leaseDurationSeconds\":15,"
                         "\"renewTime\":\"2026-01-01T00:%s.000000Z\"}}",
                         renewed) > 0);
        EXPECT_EQ(controller_lease_observe(lease, json, strlen(json), (second + 7) * USEC_PER_SEC,
                                           start + second * USEC_PER_SEC, &next),
                  expected);
        return (unsigned) (next / USEC_PER_SEC);
}

TEST(renewed_lease_is_checked_every_minute)
{
        ControllerLease lease = { 0 };

        EXPECT_EQ(next_look_sec(&lease, "00:00", 1, CONTROLLER_UNDECIDED), 10);
        EXPECT_EQ(next_look_sec(&lease, "00:10", 11, CONTROLLER_ACTIVE), 60);
        EXPECT_EQ(next_look_sec(&lease, "00:40", 41, CONTROLLER_ACTIVE), 60);
        controller_lease_done(&lease);
}

/* The Lease was renewed after the last check, but not since then. */
TEST(old_renewal_is_checked_again_after_the_duration_of_the_lease)
{
        ControllerLease lease = { 0 };

        (void) next_look_sec(&lease, "00:00", 1, CONTROLLER_UNDECIDED);
        EXPECT_EQ(next_look_sec(&lease, "00:12", 31, CONTROLLER_ACTIVE), 15);
        EXPECT_EQ(next_look_sec(&lease, "00:12", 46, CONTROLLER_ABSENT), 60);
        controller_lease_done(&lease);
}

TEST(fast_clock_does_not_make_the_controller_absent)
{
        ControllerLease lease = { 0 };

        (void) next_look_sec(&lease, "00:00", 1001, CONTROLLER_UNDECIDED);
        for (unsigned i = 1; i < 50; i++) {
                char renewed[16];

                (void) snprintf(renewed, sizeof(renewed), "00:%02u", i);
                EXPECT_EQ(next_look_sec(&lease, renewed, 1001 + i * 15, CONTROLLER_ACTIVE), 15);
        }
        controller_lease_done(&lease);
}

TEST(slow_clock_only_delays_the_verdict)
{
        ControllerLease lease = { 0 };

        (void) next_look_sec(&lease, "50:00", 1, CONTROLLER_UNDECIDED);
        EXPECT_EQ(next_look_sec(&lease, "50:02", 31, CONTROLLER_ACTIVE), 60);
        EXPECT_EQ(next_look_sec(&lease, "50:02", 61, CONTROLLER_ABSENT), 60);
        controller_lease_done(&lease);
}

TEST(lease_that_has_not_changed_yet_gives_no_verdict)
{
        ControllerLease lease = { 0 };

        EXPECT_EQ(next_look_sec(&lease, "00:00", 1, CONTROLLER_UNDECIDED), 10);
        EXPECT_EQ(next_look_sec(&lease, "00:00", 11, CONTROLLER_UNDECIDED), 5);
        EXPECT_EQ(next_look_sec(&lease, "00:00", 16, CONTROLLER_ABSENT), 60);
        EXPECT_EQ(next_look_sec(&lease, "00:20", 46, CONTROLLER_ACTIVE), 15);
        controller_lease_done(&lease);
}

TEST(lease_without_a_holder_means_no_controller)
{
        static const char *const leases[] = {
                "{\"kind\":\"Lease\",\"spec\":{\"holderIdentity\":\"\",\"renewTime\":\"2026\"}}",
                "{\"kind\":\"Lease\",\"spec\":{\"holderIdentity\":\"a\"}}",
                "{\"kind\":\"Lease\",\"spec\":{}}",
        };
        ControllerLease lease = { 0 };
        uint64_t next;

        for (size_t i = 0; i < N_ELEMENTS(leases); i++)
                EXPECT_EQ(
                        controller_lease_observe(&lease, leases[i], strlen(leases[i]), 1, 1, &next),
                        CONTROLLER_ABSENT);
        EXPECT(lease.renewed == NULL);
}

/* If a proxy returns a page instead of the Lease, this node must not act as the controller. */
TEST(invalid_lease_gives_no_verdict)
{
        static const char *const texts[] = {
                "",
                "{}",
                "<html></html>",
                "{\"kind\":\"Lease\",\"spec\":{\"holderId",
                "{\"kind\":\"Status\",\"status\":\"Failure\"}",
        };
        ControllerLease lease = { 0 };
        uint64_t next;

        for (size_t i = 0; i < N_ELEMENTS(texts); i++)
                EXPECT_EQ(controller_lease_observe(&lease, texts[i], strlen(texts[i]), 1, 1, &next),
                          CONTROLLER_UNDECIDED);
        EXPECT(controller_lease_is_not_found(texts[4], strlen(texts[4])));
        EXPECT(!controller_lease_is_not_found(texts[2], strlen(texts[2])));
}
