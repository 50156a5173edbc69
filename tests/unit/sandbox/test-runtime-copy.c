/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/runtime-copy.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>
#include <unistd.h>

typedef struct Fixture {
        sd_event *event;
        RuntimeCopy *copy;
        char *program;
} Fixture;

static void write_program(const Fixture *fixture, const char *content, mode_t mode) {
        cleanup_free char *next = path_join(test_directory(), "next");
        cleanup_close int fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

        REQUIRE(fd >= 0 && write_all(fd, content, strlen(content)) == 0);
        REQUIRE(rename(next, fixture->program) == 0);
}

static Fixture fixture_new(void) {
        Fixture fixture = { .program = path_join(test_directory(), "runtime") };

        REQUIRE(sd_event_new(&fixture.event) >= 0);
        REQUIRE(runtime_copy_new(fixture.event, &fixture.copy) == 0);
        return fixture;
}

static void fixture_done(Fixture *fixture) {
        runtime_copy_free(fixture->copy);
        sd_event_unref(fixture->event);
        free(fixture->program);
}

static void expect_copy_of(int fd, const char *content) {
        cleanup_free char *text = NULL;
        struct stat st;

        REQUIRE(fd >= 0);
        REQUIRE(fstat(fd, &st) == 0);
        EXPECT_EQ(st.st_mode & 0777, 0555);
        EXPECT_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
        text = calloc(1, (size_t) st.st_size + 1);
        EXPECT_EQ(pread(fd, text, (size_t) st.st_size, 0), st.st_size);
        EXPECT_STREQ(text, content);
}

TEST(copy_is_sealed_and_shared_until_the_program_is_replaced)
{
        cleanup_with(fixture_done) Fixture fixture = fixture_new();
        int fd;

        write_program(&fixture, "\177ELF one", 0755);
        fd = runtime_copy_get(fixture.copy, fixture.program);
        expect_copy_of(fd, "\177ELF one");
        EXPECT_EQ(pwrite(fd, "x", 1, 0), -1);
        EXPECT_EQ(runtime_copy_get(fixture.copy, fixture.program), fd);
        write_program(&fixture, "\177ELF two", 0755);
        expect_copy_of(runtime_copy_get(fixture.copy, fixture.program), "\177ELF two");
}

TEST(program_is_found_in_path)
{
        cleanup_with(fixture_done) Fixture fixture = fixture_new();
        cleanup_free char *path = NULL;
        cleanup_free char *before = strdup(getenv("PATH"));

        write_program(&fixture, "\177ELF one", 0755);
        REQUIRE(asprintf(&path, "/nonexistent:%s", test_directory()) > 0);
        setenv("PATH", path, 1);
        expect_copy_of(runtime_copy_get(fixture.copy, "runtime"), "\177ELF one");
        EXPECT_EQ(runtime_copy_get(fixture.copy, "another"), -ENOENT);
        setenv("PATH", before, 1);
}

TEST(scripts_and_files_that_are_not_executable_are_not_copied)
{
        cleanup_with(fixture_done) Fixture fixture = fixture_new();

        EXPECT_EQ(runtime_copy_get(fixture.copy, fixture.program), -ENOENT);
        write_program(&fixture, "#!/bin/sh\n", 0755);
        EXPECT_EQ(runtime_copy_get(fixture.copy, fixture.program), -ENOEXEC);
        write_program(&fixture, "\177ELF one", 0644);
        EXPECT_EQ(runtime_copy_get(fixture.copy, fixture.program), -ENOEXEC);
        EXPECT_EQ(runtime_copy_get(fixture.copy, test_directory()), -ENOEXEC);
}
