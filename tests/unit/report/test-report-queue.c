/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/report-queue.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
        ROOM = 1024 * 1024
};

static void expect_taken(ReportQueue *queue, const char *expected) {
        cleanup_free char *text = report_queue_take(queue, ROOM);

        EXPECT_STREQ(text, expected);
}

TEST(a_newer_status_replaces_the_queued_one)
{
        cleanup_with(report_queue_freep) ReportQueue *queue = report_queue_new(ROOM);

        EXPECT_EQ(report_queue_put(queue, "web", REPORT_STATUS_KEY, "{1}"), 1);
        EXPECT_EQ(report_queue_put(queue, "db", REPORT_STATUS_KEY, "{2}"), 1);
        EXPECT_EQ(report_queue_put(queue, "web", REPORT_STATUS_KEY, "{3}"), 1);
        EXPECT_EQ(report_queue_length(queue), 2);
        expect_taken(queue, "{2}\n{3}\n");
}

TEST(an_unchanged_status_is_not_queued_even_after_it_was_sent)
{
        cleanup_with(report_queue_freep) ReportQueue *queue = report_queue_new(ROOM);

        EXPECT_EQ(report_queue_put(queue, "web", REPORT_STATUS_KEY, "{1}"), 1);
        EXPECT_EQ(report_queue_put(queue, "web", REPORT_STATUS_KEY, "{1}"), 0);
        expect_taken(queue, "{1}\n");
        report_queue_sent(queue);
        EXPECT_EQ(report_queue_length(queue), 0);
        EXPECT_EQ(report_queue_put(queue, "web", REPORT_STATUS_KEY, "{1}"), 0);
        EXPECT(!report_queue_has_unsaved(queue));
        report_queue_forget(queue, "web");
        EXPECT_EQ(report_queue_put(queue, "web", REPORT_STATUS_KEY, "{1}"), 1);
}

TEST(line_that_was_replaced_while_in_transit_still_waits)
{
        cleanup_with(report_queue_freep) ReportQueue *queue = report_queue_new(ROOM);

        (void) report_queue_put(queue, "web", REPORT_STATUS_KEY, "{1}");
        (void) report_queue_put(queue, "web", "e1", "{2}");
        expect_taken(queue, "{1}\n{2}\n");
        (void) report_queue_put(queue, "web", REPORT_STATUS_KEY, "{3}");
        report_queue_sent(queue);
        expect_taken(queue, "{3}\n");
        report_queue_not_sent(queue);
        report_queue_sent(queue);
        EXPECT_EQ(report_queue_length(queue), 1);
}

TEST(the_oldest_lines_are_dropped_and_counted)
{
        cleanup_with(report_queue_freep) ReportQueue *queue = report_queue_new(10);

        (void) report_queue_put(queue, "a", REPORT_STATUS_KEY, "{1}");
        (void) report_queue_put(queue, "b", REPORT_STATUS_KEY, "{2}");
        (void) report_queue_put(queue, "c", REPORT_STATUS_KEY, "{3}");
        EXPECT_EQ(report_queue_dropped(queue), 1);
        EXPECT_EQ(report_queue_put(queue, "a", REPORT_STATUS_KEY, "{1}"), 1);
        EXPECT_EQ(report_queue_dropped(queue), 2);
        expect_taken(queue, "{3}\n{1}\n");
}

TEST(only_the_latest_events_of_an_object_are_queued)
{
        cleanup_with(report_queue_freep) ReportQueue *queue = report_queue_new(ROOM);
        char key[8];

        (void) report_queue_put(queue, "web", REPORT_STATUS_KEY, "{}");
        for (int i = 0; i < REPORT_EVENTS_OF_OBJECT_MAX + 3; i++) {
                (void) snprintf(key, sizeof(key), "e%d", i);
                (void) report_queue_put(queue, "web", key, i < 3 ? "{old}" : "{new}");
        }
        EXPECT_EQ(report_queue_length(queue), REPORT_EVENTS_OF_OBJECT_MAX + 1);
        EXPECT_EQ(report_queue_dropped(queue), 3);
}

TEST(the_size_of_a_request_is_limited)
{
        cleanup_with(report_queue_freep) ReportQueue *queue = report_queue_new(ROOM);
        cleanup_free char *first = NULL;

        (void) report_queue_put(queue, "a", REPORT_STATUS_KEY, "{1}");
        (void) report_queue_put(queue, "b", REPORT_STATUS_KEY, "{2}");
        (void) report_queue_put(queue, "c", REPORT_STATUS_KEY, "{3}");
        first = report_queue_take(queue, 9);
        EXPECT_STREQ(first, "{1}\n{2}\n");
        report_queue_sent(queue);
        expect_taken(queue, "{3}\n");
}

TEST(names_that_no_file_can_have_are_refused)
{
        static const char *const names[] = { "", ".", "..", "a/b", "a b", ".hidden", "a\n" };
        cleanup_with(report_queue_freep) ReportQueue *queue = report_queue_new(ROOM);

        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                EXPECT_EQ(report_queue_put(queue, names[i], "k", "{}"), -EINVAL);
        EXPECT_EQ(report_queue_put(queue, "a", "k", "{\n}"), -EINVAL);
        EXPECT_EQ(report_queue_length(queue), 0);
}

static ReportQueue *restore(const char *lines, size_t length, int *ret_r) {
        ReportQueue *queue = report_queue_new(ROOM);
        cleanup_free char *copy = strndup(lines, length);

        *ret_r = report_queue_restore(queue, "web", copy);
        return queue;
}

TEST(truncated_lines_are_restored_completely_or_not_at_all)
{
        static const char lines[] = "1 e1 {1}\n22 status {22}\n";
        static const size_t ends[] = { 0, 9, sizeof(lines) - 1 };
        static const char *const taken[] = { NULL, "{1}\n", "{1}\n{22}\n" };

        for (size_t i = 0, n = 0; i < sizeof(lines); i++) {
                cleanup_with(report_queue_freep) ReportQueue *queue = NULL;
                cleanup_free char *text = NULL;
                int r;

                if (n + 1 < N_ELEMENTS(ends) && i == ends[n + 1])
                        n++;
                queue = restore(lines, i, &r);
                EXPECT_EQ(r, i == ends[n] ? 0 : -EBADMSG);
                text = report_queue_take(queue, ROOM);
                EXPECT(taken[n] ? text && streq(text, taken[n]) : !text);
        }
}

TEST(invalid_lines_are_refused)
{
        static const char *const lines[] = { "\n",
                                             "1\n",
                                             "1 status\n",
                                             "status {}\n",
                                             "-1 status {}\n",
                                             " 1 status {}\n",
                                             "1  {}\n",
                                             "1 .key {}\n",
                                             "18446744073709551615 status {}\n" };

        for (size_t i = 0; i < N_ELEMENTS(lines); i++) {
                cleanup_with(report_queue_freep) ReportQueue *queue = NULL;
                int r;

                queue = restore(lines[i], strlen(lines[i]), &r);
                EXPECT_EQ(r, -EBADMSG);
                EXPECT_EQ(report_queue_length(queue), 0);
        }
}

TEST(numbers_restart_after_the_largest_one_and_lines_stay_readable)
{
        static const char lines[] = "9223372036854775807 e1 {1}\n";
        cleanup_with(report_queue_freep) ReportQueue *queue = NULL, *again = NULL;
        cleanup_free char *text = NULL;
        const char *name;
        char *written;
        int r;

        queue = restore(lines, strlen(lines), &r);
        REQUIRE(r == 0);
        EXPECT_EQ(report_queue_put(queue, "web", "e2", "{2}"), 1);
        REQUIRE(report_queue_next_unsaved(queue, &name, &written) > 0);
        again = restore(written, strlen(written), &r);
        free(written);
        EXPECT_EQ(r, 0);
        text = report_queue_take(again, ROOM);
        EXPECT(text && streq(text, "{1}\n{2}\n"));
}
