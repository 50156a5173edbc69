/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/source-rollback.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const SourceInUse nothing = { 0 };
static char shops[] = "shops", barns[] = "barns";

static SourceInUse index_of(int64_t number, uint64_t deadline_usec) {
        return (SourceInUse){ .is_there = true,
                              .number = number,
                              .sha256 = (char *) (uintptr_t) (number == 7 ? "seven" : "eight"),
                              .fleet = shops,
                              .deadline_usec = deadline_usec };
}

/* The directory of a source with manifests in use. */
static int make_directory(void) {
        static unsigned n;
        cleanup_free char *path = NULL;
        int fd;

        REQUIRE(asprintf(&path, "%s/%u", test_directory(), n++) > 0);
        REQUIRE(mkdir(path, 0700) == 0);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        REQUIRE(fd >= 0 && mkdirat(fd, "current", 0700) == 0);
        return fd;
}

TEST(an_index_with_a_deadline_is_on_trial_until_it_is_marked_as_proven)
{
        cleanup_close int fd = make_directory();
        const SourceInUse seven = index_of(7, 0), eight = index_of(8, 1), plain = index_of(8, 0);
        const SourceRollback none = { 0 };

        EXPECT(source_is_on_trial(fd, &eight, &seven, &none));
        EXPECT(!source_is_on_trial(fd, &plain, &seven, &none));
        EXPECT(!source_is_on_trial(fd, &eight, &nothing, &none));
        EXPECT_EQ(source_mark_proven(fd), 0);
        EXPECT(!source_is_on_trial(fd, &eight, &seven, &none));
}

TEST(only_an_earlier_index_of_the_fleet_is_a_rollback_target)
{
        cleanup_close int fd = make_directory();
        const SourceInUse eight = index_of(8, 1), nine = index_of(9, 0);
        const SourceRollback none = { 0 };
        SourceInUse other = index_of(7, 0);

        EXPECT(!source_is_on_trial(fd, &eight, &nine, &none)); /* only offered, never used */
        other.fleet = barns;
        EXPECT(!source_is_on_trial(fd, &eight, &other, &none));
        other.fleet = NULL;
        EXPECT(!source_is_on_trial(fd, &eight, &other, &none));
}

TEST(a_recorded_rollback_is_performed_once)
{
        cleanup_close int fd = make_directory();
        cleanup_with(source_rollback_done) SourceRollback rollback = { 0 };
        const SourceInUse seven = index_of(7, 1), eight = index_of(8, 1);

        EXPECT(!source_rollback_is_due(&eight, &seven, &rollback));
        REQUIRE(source_rollback_store(fd, "eight", "index 8 was rolled back") == 0);
        source_rollback_load(fd, &rollback);
        EXPECT_STREQ(rollback.sha256, "eight");
        EXPECT_STREQ(rollback.reason, "index 8 was rolled back");
        EXPECT(source_rollback_is_due(&eight, &seven, &rollback));
        EXPECT(!source_is_on_trial(fd, &eight, &seven, &rollback));
        EXPECT(!source_rollback_is_due(&seven, &eight, &rollback)); /* the rollback was performed */
        EXPECT(!source_is_on_trial(fd, &seven, &eight, &rollback));
}

TEST(damaged_rollback_record_is_ignored)
{
        cleanup_close int fd = make_directory(), file = -EBADF;
        cleanup_with(source_rollback_done) SourceRollback rollback = { 0 };

        REQUIRE(source_rollback_store(fd, "eight", "why") == 0);
        file = openat(fd, SOURCE_ROLLBACK_NAME, O_WRONLY | O_CLOEXEC);
        REQUIRE(file >= 0 && pwrite(file, "X", 1, 0) == 1);
        source_rollback_load(fd, &rollback);
        EXPECT(!rollback.sha256);
        EXPECT(faccessat(fd, SOURCE_ROLLBACK_NAME ".damaged", F_OK, 0) == 0);
}
