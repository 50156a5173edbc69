/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/attempt.h"
#include "tests/test.h"

#include <errno.h>

static int start_test_attempt(AttemptList *list, const char *id, const char *name, unsigned number,
                              Attempt **ret) {
        ShimRequest request = {
                .type = SHIM_REQUEST_RUN, .id = id, .name = name, .attempt = number, .bundle = "/b"
        };

        return attempt_new(list, &request, ret);
}

static size_t count_attempts(const AttemptList *list) {
        size_t n = 0;

        for (const Attempt *attempt = list->first; attempt; attempt = attempt->next)
                n++;
        return n;
}

TEST(an_id_is_kept_as_long_as_the_container_may_have_run)
{
        AttemptList list = { 0 };
        Attempt *attempt = NULL;

        EXPECT_EQ(start_test_attempt(&list, "a", "c", 0, &attempt), 0);
        EXPECT_EQ(start_test_attempt(&list, "a", "c", 0, &attempt), -EEXIST);
        attempt->state = ATTEMPT_RUNNING;
        EXPECT_EQ(start_test_attempt(&list, "a", "c", 0, &attempt), -EEXIST);
        attempt->state = ATTEMPT_EXITED;
        EXPECT_EQ(start_test_attempt(&list, "a", "c", 0, &attempt), -EEXIST);
        attempt_set_deleted(attempt);
        EXPECT_EQ(start_test_attempt(&list, "a", "c", 0, &attempt), -EEXIST);
        attempt->state = ATTEMPT_FAILED;
        EXPECT_EQ(start_test_attempt(&list, "a", "c", 0, &attempt), 0);
        EXPECT_EQ(attempt->state, ATTEMPT_STARTING);
        EXPECT_EQ(count_attempts(&list), 1);
        attempts_free(&list);
}

TEST(an_id_is_a_file_name_and_not_an_option)
{
        static const char *const bad[] = { "",    ".",   "..",  ".x",      "-x",
                                           "a/b", "a b", "a\n", "\xc3\xbc" };
        char longest[130];
        AttemptList list = { 0 };
        Attempt *attempt = NULL;

        for (size_t i = 0; i < N_ELEMENTS(bad); i++)
                EXPECT_EQ(start_test_attempt(&list, bad[i], "c", 0, &attempt), -EINVAL);
        memset(longest, 'f', sizeof(longest));
        longest[129] = '\0';
        EXPECT_EQ(start_test_attempt(&list, longest, "c", 0, &attempt), -EINVAL);
        longest[128] = '\0';
        EXPECT_EQ(start_test_attempt(&list, longest, "c", 0, &attempt), 0);
        attempts_free(&list);
}

TEST(past_attempts_are_dropped_except_two_per_container)
{
        AttemptList list = { 0 };
        Attempt *attempt = NULL, *other = NULL;

        REQUIRE(start_test_attempt(&list, "other", "other", 0, &other) == 0);
        other->state = ATTEMPT_EXITED;
        attempt_set_deleted(other);
        for (unsigned i = 0; i < 1000; i++) {
                char id[16];

                (void) snprintf(id, sizeof(id), "c%u", i);
                EXPECT_EQ(start_test_attempt(&list, id, "c", i, &attempt), 0);
                attempt->state = i % 2 ? ATTEMPT_EXITED : ATTEMPT_FAILED;
                if (i % 2)
                        attempt_set_deleted(attempt);
                EXPECT(count_attempts(&list) <= 4);
        }
        EXPECT(attempt_find(&list, "other"));
        EXPECT(attempt_find(&list, "c997") && attempt_find(&list, "c999"));
        EXPECT(!attempt_find(&list, "c996"));
        attempts_free(&list);
}

TEST(attempts_with_leftovers_are_kept_up_to_a_limit)
{
        AttemptList list = { 0 };
        Attempt *attempt = NULL;
        char id[16];

        for (unsigned i = 0; i < ATTEMPTS_MAX; i++) {
                (void) snprintf(id, sizeof(id), "c%u", i);
                EXPECT_EQ(start_test_attempt(&list, id, "c", i, &attempt), 0);
                attempt->state = ATTEMPT_EXITED;
        }
        EXPECT_EQ(start_test_attempt(&list, "more", "c", 0, &attempt), -ENOBUFS);
        attempt_set_deleted(attempt_find(&list, "c7"));
        EXPECT_EQ(start_test_attempt(&list, "more", "c", 0, &attempt), 0);
        EXPECT_EQ(count_attempts(&list), ATTEMPTS_MAX + 1);
        attempts_free(&list);
}

TEST(a_process_is_found_only_while_its_container_runs)
{
        AttemptList list = { 0 };
        Attempt *attempt = NULL;

        REQUIRE(start_test_attempt(&list, "a", "c", 0, &attempt) == 0);
        attempt->pid = 42;
        EXPECT(!attempt_find_pid(&list, 42));
        attempt->state = ATTEMPT_RUNNING;
        EXPECT(attempt_find_pid(&list, 42) == attempt);
        attempt->state = ATTEMPT_EXITED;
        EXPECT(!attempt_find_pid(&list, 42)); /* the PID may be reused by now */
        attempts_free(&list);
}
