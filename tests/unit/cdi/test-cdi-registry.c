/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cdi/cdi-registry.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Two directories, of which the second has precedence, and the reported errors. */
typedef struct Fixture {
        sd_event *event;
        char *directories[3];
        CdiRegistry *registry;
        unsigned n_changes;
        char *invalid; /* all messages */
} Fixture;

static void on_changed(void *userdata) {
        ((Fixture *) userdata)->n_changes++;
}

static void on_invalid(const char *message, void *userdata) {
        REQUIRE(text_appendf(&((Fixture *) userdata)->invalid, "%s\n", message) == 0);
}

static void setup(Fixture *f) {
        *f = (Fixture){ .directories = { text_format("%s/static", test_directory()),
                                         text_format("%s/run/dynamic", test_directory()) } };
        REQUIRE(sd_event_new(&f->event) >= 0);
}

static void start(Fixture *f) {
        REQUIRE(cdi_registry_new(&(CdiRegistryConfig){ .event = f->event,
                                                       .directories = f->directories,
                                                       .on_changed = on_changed,
                                                       .on_invalid = on_invalid,
                                                       .userdata = f },
                                 &f->registry) == 0);
}

static void teardown(Fixture *f) {
        cdi_registry_free(f->registry);
        sd_event_unref(f->event);
        free(f->directories[0]);
        free(f->directories[1]);
        free(f->invalid);
}

/* Writes the file by rename, so that it is never visible in part. */
static void put_file(const Fixture *f, unsigned directory, const char *name, const char *text) {
        cleanup_close int fd = -EBADF;

        REQUIRE(mkdir_parents_at(AT_FDCWD, f->directories[directory], 0755) >= 0);
        fd = open(f->directories[directory], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        REQUIRE(fd >= 0 && write_file_atomic_at(fd, name, text, strlen(text), 0644) >= 0);
}

static void put_device(const Fixture *f, unsigned directory, const char *name, const char *device,
                       const char *value) {
        cleanup_free char *text = text_format("cdiVersion: 0.5.0\nkind: v/c\ndevices:\n- name: %s\n"
                                              "  containerEdits: {env: [A=%s]}\n",
                                              device, value);

        put_file(f, directory, name, text);
}

/* Returns the value of the device's variable, or the reason why there is none. Valid until the next
 * call. */
static const char *find(Fixture *f, const char *name) {
        static Error error;
        CdiLookup lookup = cdi_registry_lookup(f->registry);
        CdiMatch match;
        int r;

        error_done(&error);
        r = lookup.find(name, &match, &error, lookup.userdata);
        return r < 0 ? error_message(&error, r) : match.device->edits.env[0] + 2;
}

static void wait_for(Fixture *f, const char *name, const char *value) {
        for (unsigned i = 0; i < 100 && !streq(find(f, name), value); i++)
                REQUIRE(sd_event_run(f->event, USEC_PER_SEC) >= 0);
        EXPECT_STREQ(find(f, name), value);
}

TEST(a_later_directory_overrides_single_devices_of_an_earlier_one)
{
        Fixture f;

        setup(&f);
        put_device(&f, 0, "a.yaml", "one", "static");
        put_device(&f, 0, "b.json", "two", "static");
        put_device(&f, 1, "a.yaml", "one", "dynamic");
        start(&f);
        EXPECT_STREQ(find(&f, "v/c=one"), "dynamic");
        EXPECT_STREQ(find(&f, "v/c=two"), "static");
        teardown(&f);
}

TEST(a_device_of_two_files_of_one_directory_is_a_conflict_unless_a_later_one_has_it)
{
        Fixture f;
        cleanup_free char *message = NULL;

        setup(&f);
        put_device(&f, 0, "a.yaml", "one", "x");
        put_device(&f, 0, "b.yaml", "one", "y");
        start(&f);
        message = text_format("both %s/a.yaml:4:3 and %s/b.yaml:4:3 define it; remove one",
                              f.directories[0], f.directories[0]);
        EXPECT_STREQ(find(&f, "v/c=one"), message);
        put_device(&f, 1, "c.yaml", "one", "z");
        wait_for(&f, "v/c=one", "z");
        teardown(&f);
}

TEST(a_missing_device_is_explained_with_the_file_that_is_invalid)
{
        Fixture f;
        cleanup_free char *message = NULL, *invalid = NULL;

        setup(&f);
        put_file(&f, 0, "bad.yaml",
                 "cdiVersion: 9.0.0\nkind: v/c\ndevices: [{name: d, "
                 "containerEdits: {env: [A=b]}}]\n");
        put_device(&f, 0, "good.yaml", "one", "x");
        put_file(&f, 0, "notes.yml", "not read");
        put_file(&f, 0, ".hidden.yaml", "not read");
        put_file(&f, 0, "spec.txt", "not read");
        start(&f);
        invalid =
                text_format("%s/bad.yaml:1:13: cdiVersion: must be 0.3.0 to 0.8.0, 1.0.0 or 1.1.0, "
                            "not '9.0.0'\n",
                            f.directories[0]);
        EXPECT_STREQ(f.invalid, invalid);
        message = text_format("no valid file in %s and %s defines it; %.*s", f.directories[0],
                              f.directories[1], (int) strlen(invalid) - 1, invalid);
        EXPECT_STREQ(find(&f, "v/c=d"), message);
        EXPECT_STREQ(find(&f, "v/c=one"), "x");
        teardown(&f);
}

TEST(directories_and_files_are_followed_from_before_they_exist_until_they_are_gone)
{
        Fixture f;
        cleanup_free char *file = NULL, *none = NULL;

        setup(&f);
        start(&f);
        none = text_format("no valid file in %s and %s defines it", f.directories[0],
                           f.directories[1]);
        EXPECT_STREQ(find(&f, "v/c=one"), none);
        put_device(&f, 1, "a.yaml", "one", "x");
        wait_for(&f, "v/c=one", "x");
        put_device(&f, 1, "a.yaml", "one", "y");
        wait_for(&f, "v/c=one", "y");
        file = text_format("%s/a.yaml", f.directories[1]);
        REQUIRE(unlink(file) == 0);
        wait_for(&f, "v/c=one", none);
        REQUIRE(rmdir(f.directories[1]) == 0);
        put_device(&f, 1, "a.yaml", "one", "z");
        wait_for(&f, "v/c=one", "z");
        EXPECT(!f.invalid);
        EXPECT(f.n_changes >= 4);
        teardown(&f);
}

TEST(event_loop_sleeps_while_no_file_changes)
{
        Fixture f;

        setup(&f);
        put_device(&f, 0, "a.yaml", "one", "x");
        start(&f);
        while (sd_event_run(f.event, 0) > 0)
                ;
        EXPECT_EQ(sd_event_run(f.event, 300 * USEC_PER_MSEC), 0);
        teardown(&f);
}
