/* SPDX-License-Identifier: Apache-2.0 */

/* The manifest source with a real directory. Each test changes the directory like users, editors
 * and programs do, and runs the event loop until the expected state is reached or the deadline is
 * over. */

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum {
        DEADLINE_SEC = 180
};

typedef struct Fixture {
        sd_event *event;
        ManifestDirectory *source;
        char *directory;
        int dir_fd;
        unsigned n_changes;
} Fixture;

static void on_changed(void *userdata) {
        ((Fixture *) userdata)->n_changes++;
}

static void fixture_watch(Fixture *f) {
        REQUIRE(sd_event_new(&f->event) >= 0);
        REQUIRE(manifest_directory_new(f->event, f->directory, "n1", on_changed, f, &f->source) >=
                0);
}

static void fixture_begin(Fixture *f) {
        *f = (Fixture){ .directory = path_join(test_directory(), "manifests") };
        REQUIRE(f->directory);
        f->dir_fd = open_directory_at(AT_FDCWD, f->directory, 0755);
        REQUIRE(f->dir_fd >= 0);
        fixture_watch(f);
}

static void fixture_start(Fixture *f) {
        REQUIRE(manifest_directory_start(f->source, NULL) >= 0);
        EXPECT_EQ(f->n_changes, 1);
}

static void fixture_end(Fixture *f) {
        manifest_directory_free(f->source);
        sd_event_unref(f->event);
        close_fd(f->dir_fd);
        free(f->directory);
}

/* "a.yaml: x y; b.yaml: !b.yaml: is a FIFO…": the state of the source in one line. */
static const char *state(const Fixture *f) {
        static char text[32 * 1024];
        const Manifest *const *manifests;
        size_t n = manifest_directory_list(f->source, &manifests), length = 0;

        text[0] = '\0';
        for (size_t i = 0; i < n; i++) {
                length += (size_t) snprintf(text + length, sizeof(text) - length,
                                            "%s%s:", i > 0 ? "; " : "", manifests[i]->file);
                for (size_t j = 0; j < manifests[i]->pods.n; j++)
                        length += (size_t) snprintf(text + length, sizeof(text) - length, " %s",
                                                    manifests[i]->pods.items[j]->metadata.name);
                if (manifests[i]->error)
                        length += (size_t) snprintf(text + length, sizeof(text) - length, " !%s",
                                                    manifests[i]->error);
        }
        return text;
}

static void turn(Fixture *f) {
        REQUIRE(sd_event_run(f->event, 20 * USEC_PER_MSEC) >= 0);
}

static void expect_state_at(Fixture *f, const char *expected, int line) {
        uint64_t deadline = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;

        while (!streq(state(f), expected) && now_boottime_usec() < deadline)
                turn(f);
        test_expect_string(__FILE__, line, "state", state(f), expected);
}
#define EXPECT_STATE(f, expected) expect_state_at(f, expected, __LINE__)

static void expect_last_error_at(Fixture *f, const char *expected, int line) {
        uint64_t deadline = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;

        while (now_boottime_usec() < deadline) {
                const char *last_error = manifest_directory_last_error(f->source);

                if (expected ? last_error && strstr(last_error, expected) : !last_error)
                        return;
                turn(f);
        }
        test_expect_string(__FILE__, line, "last error", manifest_directory_last_error(f->source),
                           expected);
}
#define EXPECT_LAST_ERROR(f, expected) expect_last_error_at(f, expected, __LINE__)

/* Runs the loop until nothing is due; the last step is a scan of the directory. */
static void turn_until_scanned(Fixture *f) {
        while (sd_event_run(f->event, 0) > 0)
                ;
}

/* Runs the loop for as long as a pending change can take to appear. */
static void settle(Fixture *f) {
        uint64_t end = now_boottime_usec() + 700 * USEC_PER_MSEC;

        while (now_boottime_usec() < end)
                turn(f);
}

static const char *yaml_of(const char *name, const char *image) {
        static char yaml[512];

        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\nspec:\n  containers:\n"
                        "  - name: c\n    image: %s\n",
                        name, image);
        return yaml;
}

/* By a rename, the recommended way. */
static void write_manifest(const Fixture *f, const char *file, const char *yaml) {
        REQUIRE(write_file_atomic_at(f->dir_fd, file, yaml, strlen(yaml), 0644) == 0);
}

static void put_pod(const Fixture *f, const char *file, const char *name) {
        write_manifest(f, file, yaml_of(name, "i"));
}

static int open_for_writing(const Fixture *f, const char *file) {
        int fd = openat(f->dir_fd, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        REQUIRE(fd >= 0);
        return fd;
}

static const Pod *first_pod(const Fixture *f) {
        const Manifest *const *manifests;
        size_t n = manifest_directory_list(f->source, &manifests);

        REQUIRE(n > 0 && manifests[0]->pods.n > 0);
        return manifests[0]->pods.items[0];
}

static const char *first_image(const Fixture *f) {
        return first_pod(f)->spec.containers.items[0].image;
}

TEST(existing_files_are_read_at_the_start)
{
        Fixture f;

        fixture_begin(&f);
        put_pod(&f, "b.yml", "b");
        put_pod(&f, "a.yaml", "a");
        write_manifest(&f, "c.json",
                       "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"c\"},"
                       "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}");
        put_pod(&f, "d.manifest", "d");
        put_pod(&f, ".hidden.yaml", "d");
        put_pod(&f, "e.yaml~", "e");
        put_pod(&f, "f.yaml.bak", "f");
        put_pod(&f, ".g.yaml.swp", "g");
        put_pod(&f, "README", "h");
        fixture_start(&f);
        EXPECT_STREQ(state(&f), "a.yaml: a-n1; b.yml: b-n1; c.json: c-n1; d.manifest: d-n1");
        EXPECT(manifest_directory_last_error(f.source) == NULL);
        fixture_end(&f);
}

TEST(renamed_file_is_read_and_removed_file_dropped)
{
        Fixture f;

        fixture_begin(&f);
        fixture_start(&f);
        put_pod(&f, "a.yaml", "a");
        EXPECT_STATE(&f, "a.yaml: a-n1");
        REQUIRE(unlinkat(f.dir_fd, "a.yaml", 0) == 0);
        EXPECT_STATE(&f, "");
        fixture_end(&f);
}

TEST(a_file_written_byte_by_byte_is_read_when_it_is_closed)
{
        const char *yaml = yaml_of("slow", "i");
        unsigned n_changes;
        Fixture f;
        int fd;

        fixture_begin(&f);
        fixture_start(&f);
        n_changes = f.n_changes;
        fd = open_for_writing(&f, "a.yaml");
        for (const char *p = yaml; *p; p++) {
                REQUIRE(write(fd, p, 1) == 1);
                REQUIRE(sd_event_run(f.event, 2 * USEC_PER_MSEC) >= 0);
        }
        settle(&f);
        EXPECT_STREQ(state(&f), "");
        EXPECT_EQ(f.n_changes, n_changes);
        close_fd(fd);
        EXPECT_STATE(&f, "a.yaml: slow-n1");
        EXPECT_EQ(f.n_changes, n_changes + 1);
        fixture_end(&f);
}

TEST(a_file_rewritten_in_place_keeps_its_pod_until_it_is_complete)
{
        Fixture f;
        int fd;

        fixture_begin(&f);
        put_pod(&f, "a.yaml", "a");
        fixture_start(&f);
        fd = open_for_writing(&f, "a.yaml");
        /* An unrelated file triggers an event in the meantime. */
        put_pod(&f, "b.yaml", "b");
        EXPECT_STATE(&f, "a.yaml: a-n1; b.yaml: b-n1");
        EXPECT_STREQ(first_image(&f), "i");
        REQUIRE(write_all(fd, yaml_of("a", "other"), strlen(yaml_of("a", "other"))) == 0);
        settle(&f);
        EXPECT_STREQ(first_image(&f), "i");
        close_fd(fd);
        for (unsigned i = 0; i < 100 && !streq(first_image(&f), "other"); i++)
                turn(&f);
        EXPECT_STREQ(first_image(&f), "other");
        fixture_end(&f);
}

TEST(hard_link_is_read)
{
        Fixture f;

        fixture_begin(&f);
        fixture_start(&f);
        put_pod(&f, "elsewhere", "a");
        REQUIRE(linkat(f.dir_fd, "elsewhere", f.dir_fd, "a.yaml", 0) == 0);
        EXPECT_STATE(&f, "a.yaml: a-n1");
        fixture_end(&f);
}

TEST(touch_and_same_content_are_not_a_change)
{
        unsigned n_changes;
        const Pod *pod;
        Fixture f;
        int fd;

        fixture_begin(&f);
        put_pod(&f, "a.yaml", "a");
        fixture_start(&f);
        pod = first_pod(&f);
        n_changes = f.n_changes;

        REQUIRE(utimensat(f.dir_fd, "a.yaml", NULL, 0) == 0);
        settle(&f);
        REQUIRE(fchmodat(f.dir_fd, "a.yaml", 0600, 0) == 0);
        settle(&f);
        put_pod(&f, "a.yaml", "a");
        settle(&f);
        fd = open_for_writing(&f, "a.yaml");
        REQUIRE(write_all(fd, yaml_of("a", "i"), strlen(yaml_of("a", "i"))) == 0);
        close_fd(fd);
        settle(&f);
        EXPECT_EQ(f.n_changes, n_changes);
        EXPECT(first_pod(&f) == pod);
        fixture_end(&f);
}

TEST(an_editor_that_renames_the_old_file_away_does_not_stop_the_pod)
{
        unsigned n_seen = 0;
        Fixture f;
        int fd;

        fixture_begin(&f);
        put_pod(&f, "a.yaml", "a");
        fixture_start(&f);

        /* Saves like vim: renames the old file, writes the new one, removes the old one. */
        REQUIRE(renameat(f.dir_fd, "a.yaml", f.dir_fd, "a.yaml~") == 0);
        turn_until_scanned(&f);
        n_seen += streq(state(&f), "a.yaml: a-n1");
        fd = open_for_writing(&f, "a.yaml");
        turn_until_scanned(&f);
        n_seen += streq(state(&f), "a.yaml: a-n1");
        REQUIRE(write_all(fd, yaml_of("a", "new"), strlen(yaml_of("a", "new"))) == 0);
        close_fd(fd);
        REQUIRE(unlinkat(f.dir_fd, "a.yaml~", 0) == 0);
        for (unsigned i = 0; i < 100 && !streq(first_image(&f), "new"); i++)
                turn(&f);
        EXPECT_EQ(n_seen, 2);
        EXPECT_STREQ(state(&f), "a.yaml: a-n1");
        EXPECT_STREQ(first_image(&f), "new");
        fixture_end(&f);
}

TEST(renamed_file_keeps_its_pod)
{
        char uid[40];
        Fixture f;

        fixture_begin(&f);
        put_pod(&f, "a.yaml", "a");
        fixture_start(&f);
        (void) snprintf(uid, sizeof(uid), "%s", first_pod(&f)->metadata.uid);
        REQUIRE(renameat(f.dir_fd, "a.yaml", f.dir_fd, "z.yaml") == 0);
        EXPECT_STATE(&f, "z.yaml: a-n1");
        EXPECT_STREQ(first_pod(&f)->metadata.uid, uid);
        fixture_end(&f);
}

TEST(broken_edit_keeps_the_pod_and_reports_the_error)
{
        const Manifest *const *manifests;
        Fixture f;

        fixture_begin(&f);
        put_pod(&f, "a.yaml", "a");
        fixture_start(&f);
        write_manifest(&f, "a.yaml", "apiVersion: v1\nkind: [Pod\n");
        EXPECT_STATE(&f, "a.yaml: a-n1 !a.yaml:3:1: did not find expected ',' or ']', while "
                         "parsing a flow sequence that starts at line 2");
        REQUIRE(manifest_directory_list(f.source, &manifests) == 1);
        EXPECT(manifests[0]->error_since > 0);
        write_manifest(&f, "a.yaml", yaml_of("A", "i"));
        EXPECT_STATE(&f, "a.yaml: a-n1 !a.yaml:4:9: metadata.name: must be a DNS subdomain, not "
                         "'A'");
        write_manifest(&f, "a.yaml", "");
        EXPECT_STATE(&f, "a.yaml: a-n1 !a.yaml: holds no object");
        write_manifest(&f, "a.yaml", yaml_of("a", "i"));
        EXPECT_STATE(&f, "a.yaml: a-n1");
        REQUIRE(manifest_directory_list(f.source, &manifests) == 1);
        EXPECT_EQ(manifests[0]->error_since, 0);
        fixture_end(&f);
}

static void make_socket(const Fixture *f, const char *name) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", f->directory, name);
        REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *) &address, sizeof(address)) == 0);
}

TEST(non_regular_file_is_an_error_and_stops_nothing)
{
        Fixture f;

        fixture_begin(&f);
        REQUIRE(mkfifoat(f.dir_fd, "a.yaml", 0644) == 0);
        REQUIRE(mkdirat(f.dir_fd, "b.yaml", 0755) == 0);
        make_socket(&f, "c.yaml");
        REQUIRE(mknodat(f.dir_fd, "d.yaml", S_IFCHR | 0644, 0x103) == 0);
        REQUIRE(symlinkat("nowhere.yaml", f.dir_fd, "e.yaml") == 0);
        REQUIRE(symlinkat("/etc/passwd", f.dir_fd, "f.yaml") == 0);
        REQUIRE(symlinkat("../../../etc/passwd", f.dir_fd, "g.yaml") == 0);
        REQUIRE(symlinkat("h.yaml", f.dir_fd, "h.yaml") == 0);
        put_pod(&f, "z.yaml", "z");
        fixture_start(&f);
        EXPECT_STREQ(
                state(&f),
                "a.yaml: !a.yaml: is a FIFO; only regular files are read; "
                "b.yaml: !b.yaml: is a directory; only regular files are read; "
                "c.yaml: !c.yaml: is a socket; only regular files are read; "
                "d.yaml: !d.yaml: is a device; only regular files are read; "
                "e.yaml: !e.yaml: is a link to a file that does not exist; "
                "f.yaml: !f.yaml: is a link that leads out of the directory; only links within it "
                "are followed; "
                "g.yaml: !g.yaml: is a link that leads out of the directory; only links within it "
                "are followed; "
                "h.yaml: !h.yaml: is a link that leads in a circle; "
                "z.yaml: z-n1");
        fixture_end(&f);
}

TEST(file_that_becomes_a_fifo_keeps_its_pod)
{
        Fixture f;

        fixture_begin(&f);
        put_pod(&f, "a.yaml", "a");
        fixture_start(&f);
        REQUIRE(mkfifoat(f.dir_fd, "fifo", 0644) == 0);
        REQUIRE(renameat(f.dir_fd, "fifo", f.dir_fd, "a.yaml") == 0);
        EXPECT_STATE(&f, "a.yaml: a-n1 !a.yaml: is a FIFO; only regular files are read");
        /* The same bytes as before. */
        put_pod(&f, "a.yaml", "a");
        EXPECT_STATE(&f, "a.yaml: a-n1");
        fixture_end(&f);
}

TEST(a_file_that_is_too_large_is_not_read)
{
        Fixture f;
        int fd;

        fixture_begin(&f);
        put_pod(&f, "b.yaml", "b");
        fixture_start(&f);
        fd = open_for_writing(&f, "a.yaml");
        REQUIRE(ftruncate(fd, INT64_C(1) << 40) == 0);
        close_fd(fd);
        EXPECT_STATE(&f, "a.yaml: !a.yaml: is larger than 10 MiB; b.yaml: b-n1");
        fixture_end(&f);
}

TEST(links_within_the_directory_are_followed_as_configmaps_are_mounted)
{
        Fixture f;

        fixture_begin(&f);
        REQUIRE(mkdirat(f.dir_fd, "..v1", 0755) == 0);
        REQUIRE(mkdirat(f.dir_fd, "..v2", 0755) == 0);
        write_manifest(&f, "..v1/a.yaml", yaml_of("a", "one"));
        write_manifest(&f, "..v2/a.yaml", yaml_of("a", "two"));
        REQUIRE(symlinkat("..v1", f.dir_fd, "..data") == 0);
        REQUIRE(symlinkat("..data/a.yaml", f.dir_fd, "a.yaml") == 0);
        fixture_start(&f);
        EXPECT_STREQ(state(&f), "a.yaml: a-n1");
        EXPECT_STREQ(first_image(&f), "one");
        REQUIRE(symlinkat("..v2", f.dir_fd, "..data_tmp") == 0);
        REQUIRE(renameat(f.dir_fd, "..data_tmp", f.dir_fd, "..data") == 0);
        for (unsigned i = 0; i < 100 && !streq(first_image(&f), "two"); i++)
                turn(&f);
        EXPECT_STREQ(first_image(&f), "two");
        fixture_end(&f);
}

TEST(first_file_by_name_owns_a_name_and_an_owner_keeps_it)
{
        Fixture f;

        fixture_begin(&f);
        put_pod(&f, "b.yaml", "web");
        put_pod(&f, "c.yaml", "web");
        fixture_start(&f);
        EXPECT_STREQ(state(&f), "b.yaml: web-n1; c.yaml: !c.yaml: pod default/web-n1 is already "
                                "defined by b.yaml");
        /* The name sorts first, but the file was added later. */
        put_pod(&f, "a.yaml", "web");
        EXPECT_STATE(&f, "a.yaml: !a.yaml: pod default/web-n1 is already defined by b.yaml; "
                         "b.yaml: web-n1; c.yaml: !c.yaml: pod default/web-n1 is already defined "
                         "by b.yaml");
        /* An edit of the file that owns a name does not give the name to another file. */
        write_manifest(&f, "b.yaml", yaml_of("web", "other"));
        settle(&f);
        EXPECT_STATE(&f, "a.yaml: !a.yaml: pod default/web-n1 is already defined by b.yaml; "
                         "b.yaml: web-n1; c.yaml: !c.yaml: pod default/web-n1 is already defined "
                         "by b.yaml");
        REQUIRE(unlinkat(f.dir_fd, "c.yaml", 0) == 0);
        REQUIRE(unlinkat(f.dir_fd, "b.yaml", 0) == 0);
        EXPECT_STATE(&f, "a.yaml: web-n1");
        fixture_end(&f);
}

TEST(two_files_may_swap_their_names)
{
        Fixture f;

        fixture_begin(&f);
        put_pod(&f, "a.yaml", "x");
        put_pod(&f, "b.yaml", "w");
        fixture_start(&f);
        EXPECT_STREQ(state(&f), "a.yaml: x-n1; b.yaml: w-n1");
        put_pod(&f, "a.yaml", "w");
        put_pod(&f, "b.yaml", "x");
        EXPECT_STATE(&f, "a.yaml: w-n1; b.yaml: x-n1");
        fixture_end(&f);
}

TEST(removed_directory_keeps_its_pods_until_it_is_filled_again)
{
        Fixture f;

        fixture_begin(&f);
        put_pod(&f, "a.yaml", "a");
        put_pod(&f, "b.yaml", "b");
        fixture_start(&f);
        REQUIRE(remove_tree_at(AT_FDCWD, f.directory) == 0);
        EXPECT_LAST_ERROR(&f, "No such file or directory");
        settle(&f);
        EXPECT_STREQ(state(&f), "a.yaml: a-n1; b.yaml: b-n1");

        close_fd(f.dir_fd);
        f.dir_fd = open_directory_at(AT_FDCWD, f.directory, 0755);
        REQUIRE(f.dir_fd >= 0);
        EXPECT_LAST_ERROR(&f, "was replaced by an empty directory");
        settle(&f);
        EXPECT_STREQ(state(&f), "a.yaml: a-n1; b.yaml: b-n1");

        /* The directory contains manifests now, so a missing file is accepted. */
        put_pod(&f, "a.yaml", "a");
        EXPECT_STATE(&f, "a.yaml: a-n1");
        EXPECT_LAST_ERROR(&f, NULL);
        fixture_end(&f);
}

TEST(directory_created_later_is_found)
{
        Fixture f = { .directory = path_join(test_directory(), "later"), .dir_fd = -EBADF };

        fixture_watch(&f);
        fixture_start(&f);
        EXPECT_LAST_ERROR(&f, "No such file or directory");
        f.dir_fd = open_directory_at(AT_FDCWD, f.directory, 0755);
        REQUIRE(f.dir_fd >= 0);
        EXPECT_LAST_ERROR(&f, NULL);
        put_pod(&f, "a.yaml", "a");
        EXPECT_STATE(&f, "a.yaml: a-n1");
        fixture_end(&f);
}

TEST(empty_mount_over_the_directory_stops_nothing)
{
        Fixture f;

        fixture_begin(&f);
        put_pod(&f, "a.yaml", "a");
        fixture_start(&f);
        if (mount("none", f.directory, "tmpfs", 0, NULL) < 0) {
                printf("cannot mount: %s\n", strerror(errno));
                fixture_end(&f);
                return;
        }
        /* The event comes from the directory below; the scan finds the one mounted above. */
        REQUIRE(fchmod(f.dir_fd, 0700) == 0);
        EXPECT_LAST_ERROR(&f, "was replaced by an empty directory");
        settle(&f);
        EXPECT_STREQ(state(&f), "a.yaml: a-n1");
        REQUIRE(umount(f.directory) == 0);
        EXPECT_LAST_ERROR(&f, NULL);
        EXPECT_STREQ(state(&f), "a.yaml: a-n1");
        fixture_end(&f);
}

static Pod *pod_of(const char *name) {
        ManifestObjects objects = { 0 };
        const char *yaml = yaml_of(name, "seed");
        Pod *pod;

        REQUIRE(manifest_parse("seed", yaml, strlen(yaml), "n1", &objects, NULL) == 0);
        pod = objects.pods.items[0];
        objects.pods.n = 0;
        manifest_objects_done(&objects);
        return pod;
}

TEST(restored_pod_stays_while_its_file_is_broken)
{
        Fixture f;

        fixture_begin(&f);
        write_manifest(&f, "broken.yaml", "kind: [");
        put_pod(&f, "a.yaml", "both");
        put_pod(&f, "good.yaml", "good");
        REQUIRE(manifest_directory_restore_pod_take(f.source, "broken.yaml", pod_of("kept")) == 0);
        REQUIRE(manifest_directory_restore_pod_take(f.source, "broken.yaml", pod_of("both")) == 0);
        REQUIRE(manifest_directory_restore_pod_take(f.source, "good.yaml", pod_of("good")) == 0);
        REQUIRE(manifest_directory_restore_pod_take(f.source, "gone.yaml", pod_of("gone")) == 0);
        fixture_start(&f);
        EXPECT_STREQ(state(&f), "a.yaml: !a.yaml: pod default/both-n1 is already defined by "
                                "broken.yaml; broken.yaml: kept-n1 both-n1 !broken.yaml:2:1: did "
                                "not find expected node content, while parsing a flow node that "
                                "starts at line 2; good.yaml: good-n1");
        fixture_end(&f);
}

TEST(restored_pod_stays_without_directory)
{
        Fixture f = { .directory = path_join(test_directory(), "none"), .dir_fd = -EBADF };

        fixture_watch(&f);
        REQUIRE(manifest_directory_restore_pod_take(f.source, "a.yaml", pod_of("a")) == 0);
        fixture_start(&f);
        EXPECT_STREQ(state(&f), "a.yaml: a-n1");
        EXPECT_LAST_ERROR(&f, "No such file or directory");
        fixture_end(&f);
}

TEST(many_files_at_once_are_read_and_dropped)
{
        const Manifest *const *manifests;
        uint64_t deadline;
        char name[32];
        Fixture f;

        fixture_begin(&f);
        fixture_start(&f);
        for (unsigned i = 0; i < 300; i++) {
                char pod[16];

                (void) snprintf(pod, sizeof(pod), "p%u", i);
                (void) snprintf(name, sizeof(name), "p%u.yaml", i);
                put_pod(&f, name, pod);
        }
        deadline = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;
        while (manifest_directory_list(f.source, &manifests) < 300 &&
               now_boottime_usec() < deadline)
                turn(&f);
        EXPECT_EQ(manifest_directory_list(f.source, &manifests), 300);
        for (unsigned i = 0; i < 300; i++) {
                (void) snprintf(name, sizeof(name), "p%u.yaml", i);
                REQUIRE(unlinkat(f.dir_fd, name, 0) == 0);
        }
        EXPECT_STATE(&f, "");
        fixture_end(&f);
}

static unsigned n_descriptors(void) {
        cleanup_closedir DIR *dir = opendir("/proc/self/fd");
        unsigned n = 0;

        REQUIRE(dir);
        while (readdir(dir))
                n++;
        return n;
}

TEST(descriptors_are_not_leaked)
{
        unsigned before;
        Fixture f;

        fixture_begin(&f);
        fixture_start(&f);
        settle(&f);
        before = n_descriptors();
        for (unsigned i = 0; i < 20; i++) {
                put_pod(&f, "a.yaml", i % 2 ? "a" : "A");
                turn(&f);
        }
        settle(&f);
        EXPECT_EQ(n_descriptors(), before);
        fixture_end(&f);
}

TEST(idle_directory_causes_no_wakeups)
{
        Fixture f;

        fixture_begin(&f);
        put_pod(&f, "a.yaml", "a");
        REQUIRE(mkfifoat(f.dir_fd, "b.yaml", 0644) == 0);
        write_manifest(&f, "c.yaml", "kind: [");
        fixture_start(&f);
        settle(&f);
        /* Nothing is pending, and no event arrives. */
        EXPECT_EQ(sd_event_run(f.event, 1500 * USEC_PER_MSEC), 0);
        fixture_end(&f);
}

/* In a user namespace, a process may be denied inotify instances. */
static bool forbid_inotify(void) {
        cleanup_close int fd = -EBADF;

        if (unshare(CLONE_NEWUSER) < 0)
                return false;
        fd = open("/proc/sys/user/max_inotify_instances", O_WRONLY | O_CLOEXEC);
        return fd >= 0 && write(fd, "0", 1) == 1;
}

static void see_a_file_without_inotify(void) {
        Fixture f;

        fixture_begin(&f);
        fixture_start(&f);
        put_pod(&f, "a.yaml", "a");
        EXPECT_STATE(&f, "a.yaml: a-n1");
        EXPECT(manifest_directory_last_error(f.source) == NULL);
        fixture_end(&f);
}

TEST(without_inotify_the_directory_is_polled)
{
        int status;
        pid_t pid;

        (void) test_directory();
        pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
                if (forbid_inotify())
                        see_a_file_without_inotify();
                else
                        printf("there is no user namespace to be had\n");
                fflush(stdout);
                /* The directory belongs to the parent. */
                _exit(test_failures > 0);
        }
        REQUIRE(waitpid(pid, &status, 0) == pid);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
