/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/machine/start-limiter.h"

#include "tests/test.h"

#define GIB (UINT64_C(1) << 30)

static unsigned order[16], n_served;

static void record_acquired(void *userdata) {
        order[n_served++] = *(unsigned *) userdata;
}

TEST(start_limit_depends_on_processors_and_memory)
{
        static const struct {
                unsigned n_cpus;
                uint64_t memory_bytes;
                StartLimit expected;
        } rows[] = {
                { 1, 8 * GIB, { 4, false } },  { 16, 64 * GIB, { 32, false } },
                { 4, 97 * MIB, { 1, true } },  { 4, 30 * MIB, { 1, true } },
                { 16, 1 * GIB, { 16, true } }, { 2, 256 * MIB, { 4, true } },
                { 2, 0, { 4, false } }, /* unknown */
        };

        for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
                StartLimit limit = start_limit_of(rows[i].n_cpus, rows[i].memory_bytes);

                EXPECT_EQ(limit.max, rows[i].expected.max);
                EXPECT_EQ(limit.is_of_memory, rows[i].expected.is_of_memory);
        }
}

TEST(start_slots_are_granted_in_order_up_to_the_limit)
{
        static unsigned names[5] = { 0, 1, 2, 3, 4 };
        StartSlot slots[5] = { 0 };
        StartLimiter limiter;

        n_served = 0;
        start_limiter_init(&limiter, (StartLimit){ .max = 2 });
        for (size_t i = 0; i < 5; i++) {
                slots[i] = (StartSlot){ .on_acquired = record_acquired, .userdata = &names[i] };
                start_limiter_acquire(&limiter, &slots[i]);
        }
        EXPECT_EQ(n_served, 2);
        start_limiter_acquire(&limiter, &slots[0]); /* a repeated request changes nothing */
        start_limiter_release(&limiter, &slots[3]); /* leaves the queue */
        start_limiter_release(&limiter, &slots[0]);
        EXPECT_EQ(n_served, 3);
        start_limiter_release(&limiter, &slots[1]);
        start_limiter_release(&limiter, &slots[1]);
        EXPECT_EQ(n_served, 4);
        EXPECT_EQ(order[2], 2);
        EXPECT_EQ(order[3], 4);
        start_limiter_release(&limiter, &slots[2]);
        start_limiter_release(&limiter, &slots[4]);
        EXPECT_EQ(limiter.held, 0);
        start_limiter_acquire(&limiter, &slots[3]);
        EXPECT_EQ(order[4], 3);
}

static StartLimiter quick;
static unsigned depth, deepest, n_quick;

static void gives_back_at_once(void *userdata) {
        depth++;
        deepest = MAX(deepest, depth);
        n_quick++;
        start_limiter_release(&quick, userdata);
        depth--;
}

TEST(slots_released_at_once_are_granted_without_recursion)
{
        StartSlot slots[1000] = { 0 };

        start_limiter_init(&quick, (StartLimit){ 0 });
        for (size_t i = 0; i < N_ELEMENTS(slots); i++) {
                slots[i] = (StartSlot){ .on_acquired = gives_back_at_once, .userdata = &slots[i] };
                quick.limit.max = i == N_ELEMENTS(slots) - 1;
                start_limiter_acquire(&quick, &slots[i]);
        }
        EXPECT_EQ(n_quick, 1000);
        EXPECT_EQ(deepest, 1);
        EXPECT_EQ(quick.held, 0);
}
