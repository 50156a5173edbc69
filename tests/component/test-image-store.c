/* SPDX-License-Identifier: Apache-2.0 */

/* The store in a real loop, with the real mainstay-image and archives that appear and are
 * removed. */

#include "agent/image/image-store.h"
#include "common/clock.h"
#include "tests/component/image-world.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>

enum {
        DEADLINE_SEC = 180
};

typedef struct ImageStoreWorld {
        sd_event *event;
        ImageStore *store;
        char *state_dir;
        char *preload;
        unsigned n_changes;
        const char *wanted; /* the image that a pod uses */
        const MainstayConfig *config;
        unsigned n_lists;
} ImageStoreWorld;

/* The result of one request. */
typedef struct ImageAnswer {
        unsigned n_calls;
        int r;
        Image *image;
        char message[512];
        ImageRequest *request;
} ImageAnswer;

static void on_changed(void *userdata) {
        ImageStoreWorld *world = userdata;

        world->n_changes++;
}

static void list_wanted(ImageSet *ret, void *userdata) {
        ImageStoreWorld *world = userdata;

        world->n_lists++;
        image_set_add(ret, world->wanted);
}

static void on_ready(int r, Image *image, const Error *error, void *userdata) {
        ImageAnswer *answer = userdata;

        answer->n_calls++;
        answer->r = r;
        answer->image = image ? image_ref(image) : NULL;
        answer->request = NULL;
        if (r < 0)
                (void) snprintf(answer->message, sizeof(answer->message), "%s",
                                error_message(error, r));
}

static void answer_done(ImageAnswer *answer) {
        image_request_cancel(answer->request);
        image_unref(answer->image);
        *answer = (ImageAnswer){ 0 };
}

static void open_store(ImageStoreWorld *world, const char *helper) {
        cleanup_error Error error = ERROR_NULL;
        sigset_t mask;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        REQUIRE(sigprocmask(SIG_BLOCK, &mask, NULL) >= 0);
        if (!world->state_dir) {
                world->state_dir = in_test_directory("state");
                world->preload = in_test_directory("state/preload");
        }
        REQUIRE(sd_event_new(&world->event) >= 0);
        REQUIRE(image_store_new(&(ImageStoreConfig){ .event = world->event,
                                                     .helper_path = helper,
                                                     .config = world->config,
                                                     .list_wanted = list_wanted,
                                                     .state_dir = world->state_dir },
                                on_changed, world, &world->store, &error) >= 0);
}

static void close_store(ImageStoreWorld *world) {
        world->store = image_store_free(world->store);
        world->event = sd_event_unref(world->event);
}

static void world_done(ImageStoreWorld *world) {
        close_store(world);
        free(world->state_dir);
        free(world->preload);
}

/* Runs the loop until the condition holds. */
#define LOOP_UNTIL(world, condition)                                                       \
        do {                                                                               \
                uint64_t deadline_ = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;    \
                bool holds_;                                                               \
                while (!(holds_ = (condition)) && now_boottime_usec() < deadline_)         \
                        REQUIRE(sd_event_run((world)->event, 100 * USEC_PER_MSEC) >= 0);   \
                if (!holds_)                                                               \
                        test_fail(__FILE__, __LINE__, #condition, "did not come to hold"); \
                REQUIRE(holds_);                                                           \
        } while (0)

static int request_image(ImageStoreWorld *world, const char *reference, ImageAnswer *answer) {
        cleanup_error Error error = ERROR_NULL;
        /* Archives are the only source of images here. */
        ImageRequestOptions options = { .reference = reference, .policy = PULL_POLICY_NEVER };
        int r = image_store_request(world->store, &options, on_ready, answer, &answer->image,
                                    &answer->request, &error);

        if (r < 0)
                (void) snprintf(answer->message, sizeof(answer->message), "%s",
                                error_message(&error, r));
        return r;
}

/* Adds an archive of one image by rename. */
static void drop_archive(ImageStoreWorld *world, const char *file, const char *name,
                         const char *content, const char *process) {
        cleanup_free char *temporary = in_test_directory("new.tar");
        cleanup_free char *path = path_join(world->preload, file);
        Tar layer = tar_of((TarEntry[]){ { .name = "content", .data = content }, { 0 } });
        char digest[80];

        REQUIRE(mkdir_parents_at(AT_FDCWD, world->preload, 0700) >= 0);
        write_oci_archive(temporary, &(TestImage){ name, &layer, 1, process, NULL }, digest);
        REQUIRE(rename(temporary, path) >= 0);
        tar_done(&layer);
}

static void remove_archive(ImageStoreWorld *world, const char *file) {
        cleanup_free char *path = path_join(world->preload, file);

        REQUIRE(unlink(path) >= 0);
}

static char *content_of(const Image *image) {
        cleanup_free char *path = path_join(image->layers[0], "content");
        char *text = NULL;

        REQUIRE(read_file_at(AT_FDCWD, path, KIB, &text, NULL) >= 0);
        return text;
}

static void expect_content(const Image *image, const char *expected) {
        cleanup_free char *content = image ? content_of(image) : NULL;

        EXPECT_STREQ(content, expected);
}

/* Requests an image and waits; the request must succeed. */
static void request_image_and_wait(ImageStoreWorld *world, const char *reference,
                                   ImageAnswer *answer) {
        int r = request_image(world, reference, answer);

        REQUIRE(r >= 0);
        if (r == 0)
                LOOP_UNTIL(world, answer->n_calls > 0);
        REQUIRE(answer->image);
}

typedef struct ArchiveErrors {
        unsigned n;
        char archive[64];
        char message[256];
} ArchiveErrors;

static void on_archive_error(const char *archive, const char *message, void *userdata) {
        ArchiveErrors *errors = userdata;

        errors->n++;
        (void) snprintf(errors->archive, sizeof(errors->archive), "%s", archive);
        (void) snprintf(errors->message, sizeof(errors->message), "%s", message);
}

static ArchiveErrors archive_errors(ImageStoreWorld *world) {
        ArchiveErrors errors = { 0 };

        image_store_foreach_archive_error(world->store, on_archive_error, &errors);
        return errors;
}

TEST(an_image_present_at_start_is_unpacked_and_then_available)
{
        ImageStoreWorld world = { .state_dir = in_test_directory("state"),
                                  .preload = in_test_directory("state/preload") };
        ImageAnswer first = { 0 }, second = { 0 };

        drop_archive(&world, "app.tar", "app:1", "one",
                     "{\"Cmd\":[\"run\"],\"User\":\"7:8\",\"Env\":[\"A=b\"]}");
        open_store(&world, helper_path());
        EXPECT_EQ(request_image(&world, "app:1", &first), 0);
        LOOP_UNTIL(&world, first.n_calls > 0);
        EXPECT_EQ(first.r, 0);
        REQUIRE(first.image);
        expect_content(first.image, "one");
        EXPECT_STREQ(first.image->reference, "docker.io/library/app:1");
        EXPECT_STREQ(first.image->command[0], "run");
        EXPECT_STREQ(first.image->env[0], "A=b");
        EXPECT_EQ(first.image->uid, 7);
        EXPECT_EQ(first.image->gid, 8);
        EXPECT_EQ(request_image(&world, "docker.io/library/app:1", &second), 1);
        /* One description for all pods of the image. */
        EXPECT(second.image == first.image);
        EXPECT_EQ(second.n_calls, 0);
        answer_done(&first);
        answer_done(&second);
        world_done(&world);
}

TEST(an_image_is_available_when_its_archive_appears)
{
        ImageStoreWorld world = { 0 };
        ImageAnswer answer = { 0 };
        char reference[200];

        open_store(&world, helper_path());
        EXPECT_EQ(request_image(&world, "app:1", &answer), -ENOENT);
        EXPECT(strstr(answer.message, "no archive in '"));
        EXPECT(strstr(answer.message, "contains 'docker.io/library/app:1'"));
        drop_archive(&world, "app.tar", "app:1", "one", NULL);
        LOOP_UNTIL(&world, world.n_changes > 0 && request_image(&world, "app:1", &answer) >= 0);
        LOOP_UNTIL(&world, answer.image);
        expect_content(answer.image, "one");
        /* The image is also found by its digest, with any name. */
        (void) snprintf(reference, sizeof(reference), "example.com/other@%s", answer.image->digest);
        answer_done(&answer);
        EXPECT_EQ(request_image(&world, reference, &answer), 1);
        answer_done(&answer);
        world_done(&world);
}

TEST(requests_for_one_image_share_the_work_and_a_cancelled_one_is_not_called_back)
{
        ImageStoreWorld world = { 0 };
        ImageAnswer answers[5] = { 0 };

        open_store(&world, helper_path());
        drop_archive(&world, "app.tar", "app:1", "one", NULL);
        LOOP_UNTIL(&world, world.n_changes > 0);
        for (size_t i = 0; i < N_ELEMENTS(answers); i++)
                EXPECT_EQ(request_image(&world, i % 2 ? "app:1" : "docker.io/app:1", &answers[i]),
                          0);
        answers[0].request = image_request_cancel(answers[0].request);
        answers[3].request = image_request_cancel(answers[3].request);
        LOOP_UNTIL(&world, answers[1].n_calls && answers[2].n_calls && answers[4].n_calls);
        EXPECT_EQ(answers[0].n_calls, 0);
        EXPECT_EQ(answers[3].n_calls, 0);
        EXPECT(answers[1].image && answers[1].image == answers[2].image);
        for (size_t i = 0; i < N_ELEMENTS(answers); i++)
                answer_done(&answers[i]);
        world_done(&world);
}

TEST(a_request_waits_for_archives_that_are_not_indexed_yet)
{
        ImageStoreWorld world = { .state_dir = in_test_directory("state"),
                                  .preload = in_test_directory("state/preload") };
        ImageAnswer there = { 0 }, not_there = { 0 };

        for (unsigned i = 0; i < 6; i++) {
                char file[32], name[32];

                (void) snprintf(file, sizeof(file), "app%u.tar", i);
                (void) snprintf(name, sizeof(name), "app%u:1", i);
                drop_archive(&world, file, name, name, NULL);
        }
        open_store(&world, helper_path());
        EXPECT_EQ(request_image(&world, "app5:1", &there), 0);
        EXPECT_EQ(request_image(&world, "none:1", &not_there), 0);
        LOOP_UNTIL(&world, there.n_calls && not_there.n_calls);
        EXPECT_EQ(there.r, 0);
        EXPECT_EQ(not_there.r, -ENOENT);
        answer_done(&there);
        answer_done(&not_there);
        world_done(&world);
}

TEST(the_index_of_archives_is_kept_across_restarts)
{
        ImageStoreWorld world = { 0 };
        ImageAnswer answer = { 0 };

        open_store(&world, helper_path());
        drop_archive(&world, "app.tar", "app:1", "one", NULL);
        LOOP_UNTIL(&world, world.n_changes > 0);
        request_image_and_wait(&world, "app:1", &answer);
        answer_done(&answer);
        close_store(&world);
        /* The helper cannot run, which shows that it is not needed. */
        open_store(&world, "/bin/false");
        EXPECT_EQ(request_image(&world, "app:1", &answer), 1);
        expect_content(answer.image, "one");
        answer_done(&answer);
        world_done(&world);
}

TEST(an_image_outlives_its_archive)
{
        ImageStoreWorld world = { 0 };
        ImageAnswer answer = { 0 };

        open_store(&world, helper_path());
        drop_archive(&world, "app.tar", "app:1", "one", NULL);
        LOOP_UNTIL(&world, world.n_changes > 0);
        request_image_and_wait(&world, "app:1", &answer);
        answer_done(&answer);
        remove_archive(&world, "app.tar");
        /* The archive is removed after it was noticed and indexed. */
        LOOP_UNTIL(&world, world.n_changes > 2);
        EXPECT_EQ(request_image(&world, "app:1", &answer), 1);
        answer_done(&answer);
        close_store(&world);
        open_store(&world, helper_path());
        EXPECT_EQ(request_image(&world, "app:1", &answer), 1);
        expect_content(answer.image, "one");
        answer_done(&answer);
        world_done(&world);
}

TEST(a_replaced_archive_gives_the_new_image_and_users_of_the_old_one_keep_it)
{
        ImageStoreWorld world = { 0 };
        ImageAnswer old = { 0 }, new = { 0 };

        open_store(&world, helper_path());
        drop_archive(&world, "app.tar", "app:1", "old", NULL);
        LOOP_UNTIL(&world, world.n_changes > 0);
        request_image_and_wait(&world, "app:1", &old);
        drop_archive(&world, "app.tar", "app:1", "new", NULL);
        LOOP_UNTIL(&world, world.n_changes > 2);
        request_image_and_wait(&world, "app:1", &new);
        expect_content(old.image, "old");
        expect_content(new.image, "new");
        answer_done(&old);
        answer_done(&new);
        world_done(&world);
}

TEST(a_broken_archive_is_reported_until_it_is_replaced)
{
        ImageStoreWorld world = { 0 };
        cleanup_free char *path = NULL;
        ImageAnswer answer = { 0 };
        ArchiveErrors errors;

        open_store(&world, helper_path());
        path = path_join(world.preload, "app.tar");
        write_file(path, "half an archive", 15);
        LOOP_UNTIL(&world, archive_errors(&world).n > 0);
        errors = archive_errors(&world);
        EXPECT_EQ(errors.n, 1);
        EXPECT_STREQ(errors.archive, "app.tar");
        EXPECT(errors.message[0]);
        EXPECT_EQ(request_image(&world, "app:1", &answer), -ENOENT);
        drop_archive(&world, "app.tar", "app:1", "one", NULL);
        LOOP_UNTIL(&world, archive_errors(&world).n == 0);
        LOOP_UNTIL(&world, request_image(&world, "app:1", &answer) >= 0);
        LOOP_UNTIL(&world, answer.image);
        answer_done(&answer);
        world_done(&world);
}

TEST(incomplete_files_are_not_read_as_archives)
{
        static const char *const files[] = { ".app.tar", "app.tar.tmp", "app.tar.part",
                                             "app.tar~" };
        ImageStoreWorld world = { 0 };

        open_store(&world, helper_path());
        for (size_t i = 0; i < N_ELEMENTS(files); i++) {
                cleanup_free char *path = path_join(world.preload, files[i]);

                write_file(path, "x", 1);
        }
        {
                cleanup_free char *fifo = path_join(world.preload, "fifo.tar");

                REQUIRE(mkfifo(fifo, 0600) >= 0);
        }
        drop_archive(&world, "app.tar", "app:1", "one", NULL);
        LOOP_UNTIL(&world, world.n_changes > 0);
        EXPECT_EQ(archive_errors(&world).n, 0);
        world_done(&world);
}

TEST(a_preload_directory_that_is_removed_is_watched_again)
{
        ImageStoreWorld world = { 0 };
        ImageAnswer answer = { 0 };

        open_store(&world, helper_path());
        REQUIRE(remove_tree_at(AT_FDCWD, world.preload) >= 0);
        LOOP_UNTIL(&world, faccessat(AT_FDCWD, world.preload, F_OK, 0) >= 0);
        drop_archive(&world, "app.tar", "app:1", "one", NULL);
        LOOP_UNTIL(&world, world.n_changes > 0 && request_image(&world, "app:1", &answer) >= 0);
        LOOP_UNTIL(&world, answer.image);
        answer_done(&answer);
        world_done(&world);
}

TEST(a_helper_that_dies_fails_the_request_and_the_next_request_starts_it_again)
{
        cleanup_free char *script = in_test_directory("helper"), *text = NULL;
        ImageStoreWorld world = { 0 };
        ImageAnswer answer = { 0 };

        /* A helper that indexes correctly, and is killed when it unpacks. */
        append_text(&text, "#!/bin/sh\n[ \"$1\" = unpack ] && kill -9 $$\nexec %s \"$@\"\n",
                    helper_path());
        write_file(script, text, strlen(text));
        REQUIRE(chmod(script, 0755) >= 0);
        open_store(&world, script);
        drop_archive(&world, "app.tar", "app:1", "one", NULL);
        LOOP_UNTIL(&world, world.n_changes > 0);
        for (unsigned i = 0; i < 2; i++) {
                EXPECT_EQ(request_image(&world, "app:1", &answer), 0);
                LOOP_UNTIL(&world, answer.n_calls > 0);
                EXPECT(answer.r < 0 && answer.r != -ENOENT && answer.r != -EINVAL);
                EXPECT(!answer.image);
                EXPECT(strstr(answer.message,
                              "app.tar: mainstay-image was killed by signal 9 (Killed)"));
                answer_done(&answer);
        }
        world_done(&world);
}

static int read_pid(const char *path) {
        cleanup_free char *text = NULL;

        return read_file_at(AT_FDCWD, path, KIB, &text, NULL) >= 0 ? (int) strtol(text, NULL, 10)
                                                                   : 0;
}

TEST(a_fetch_for_a_signed_index_goes_on_when_an_archive_has_an_image_of_the_name)
{
        cleanup_free char *script = in_test_directory("helper"), *text = NULL;
        cleanup_free char *started = in_test_directory("started");
        char name[] = "docker.io/library/app:1", fleet[] = "fleet", url[] = "file:///stick";
        char digest[] = "sha256:"
                        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        SourceImage image = { .name = name, .digest = digest };
        SourceImages images = { .fleet = fleet, .directory = url, .images = { &image, 1 } };
        SourceConfig source = { .url = url, .fleet = fleet };
        MainstayConfig config = { .source = &source };
        ImageStoreWorld world = { .config = &config };
        ImageAnswer answer = { 0 };
        int pid;

        append_text(&text,
                    "#!/bin/sh\n[ \"$1\" = fetch ] && echo $$ > '%s' && exec sleep 1000\n"
                    "exec %s \"$@\"\n",
                    started, helper_path());
        write_file(script, text, strlen(text));
        REQUIRE(chmod(script, 0755) >= 0);
        open_store(&world, script);
        EXPECT_EQ(
                image_store_request(world.store,
                                    &(ImageRequestOptions){ .reference = name, .source = &images },
                                    on_ready, &answer, &answer.image, &answer.request, NULL),
                0);
        LOOP_UNTIL(&world, read_pid(started) > 0);
        pid = read_pid(started);
        drop_archive(&world, "app.tar", name, "one", NULL);
        LOOP_UNTIL(&world, world.n_changes > 1); /* the archive was noticed, and then read */
        EXPECT_EQ(kill(pid, 0), 0);
        EXPECT_EQ(answer.n_calls, 0);
        answer_done(&answer);
        world_done(&world);
}

TEST(an_archive_that_failed_for_lack_of_space_is_read_again_on_request)
{
        static const char *const ends[] = { "kill -9 $$", "exit 75" };

        for (size_t i = 0; i < N_ELEMENTS(ends); i++) {
                cleanup_free char *script = in_test_directory("helper"), *text = NULL;
                cleanup_free char *full = in_test_directory("full"), *name = NULL;
                ImageStoreWorld world = { 0 };
                ImageAnswer answer = { 0 };
                unsigned n_changes;

                REQUIRE(asprintf(&name, "app%zu:1", i) > 0);
                append_text(&text,
                            "#!/bin/sh\n[ \"$1\" = index ] && [ -e '%s' ] && %s\n"
                            "exec %s \"$@\"\n",
                            full, ends[i], helper_path());
                write_file(script, text, strlen(text));
                REQUIRE(chmod(script, 0755) >= 0);
                write_file(full, "", 0);
                open_store(&world, script);
                drop_archive(&world, "app.tar", name, "one", NULL);
                LOOP_UNTIL(&world, archive_errors(&world).n > 0);
                n_changes = world.n_changes;
                EXPECT_EQ(request_image(&world, name, &answer), 0);
                LOOP_UNTIL(&world, answer.n_calls > 0);
                EXPECT_EQ(answer.r, -ENOENT);
                answer_done(&answer);
                /* The attempt failed, so nothing has changed. */
                EXPECT_EQ(world.n_changes, n_changes);
                REQUIRE(unlink(full) >= 0);
                EXPECT_EQ(request_image(&world, name, &answer), 0);
                LOOP_UNTIL(&world, answer.n_calls > 0);
                EXPECT_EQ(answer.r, 0);
                EXPECT(answer.image);
                answer_done(&answer);
                world_done(&world);
        }
}

TEST(files_of_a_killed_helper_are_swept_at_once)
{
        cleanup_free char *script = in_test_directory("helper"), *text = NULL;
        cleanup_free char *left = in_test_directory("state/images/tmp/left");
        ImageStoreWorld world = { 0 };
        ImageAnswer answer = { 0 };

        append_text(&text,
                    "#!/bin/sh\n[ \"$1\" = unpack ] && mkdir -p '%s/0/etc' && kill -9 $$\n"
                    "exec %s \"$@\"\n",
                    left, helper_path());
        write_file(script, text, strlen(text));
        REQUIRE(chmod(script, 0755) >= 0);
        open_store(&world, script);
        drop_archive(&world, "app.tar", "app:1", "one", NULL);
        LOOP_UNTIL(&world, world.n_changes > 0);
        EXPECT_EQ(request_image(&world, "app:1", &answer), 0);
        LOOP_UNTIL(&world, answer.n_calls > 0);
        EXPECT(strstr(answer.message, "signal 9"));
        LOOP_UNTIL(&world, access(left, F_OK) < 0);
        answer_done(&answer);
        world_done(&world);
}

static void unpack_and_remove_archive(ImageStoreWorld *world, const char *name) {
        ImageAnswer answer = { 0 };
        unsigned n_changes = world->n_changes;

        drop_archive(world, "app.tar", name, name, NULL);
        LOOP_UNTIL(world, world->n_changes > n_changes);
        request_image_and_wait(world, name, &answer);
        answer_done(&answer);
        n_changes = world->n_changes;
        remove_archive(world, "app.tar");
        LOOP_UNTIL(world, world->n_changes > n_changes);
}

static void count_image(const ImageInfo *info, void *userdata) {
        unsigned *counts = userdata;

        counts[info->is_in_use]++;
}

TEST(images_of_pods_are_listed_once_for_all_stored_images)
{
        ImageStoreWorld world = { .wanted = "app:2" };
        unsigned counts[2] = { 0 };

        open_store(&world, helper_path());
        unpack_and_remove_archive(&world, "app:1");
        unpack_and_remove_archive(&world, "app:2");
        unpack_and_remove_archive(&world, "app:3");
        world.n_lists = 0;
        EXPECT_EQ(image_store_foreach(world.store, count_image, counts), 0);
        EXPECT_EQ(counts[true], 1U);
        EXPECT_EQ(counts[false], 2U);
        EXPECT_EQ(world.n_lists, 1U);
        EXPECT_EQ(image_store_prune(world.store), 2);
        EXPECT_EQ(world.n_lists, 2U);
        LOOP_UNTIL(&world, !image_store_is_removing(world.store));
        counts[true] = counts[false] = 0;
        EXPECT_EQ(image_store_foreach(world.store, count_image, counts), 0);
        EXPECT_EQ(counts[true], 1U);
        EXPECT_EQ(counts[false], 0U);
        world_done(&world);
}

TEST(an_image_that_a_signed_index_names_is_not_removed_on_request)
{
        ImageStoreWorld world = { 0 };
        SourceImages in_use = { 0 }, kept = { 0 };
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *digest = NULL;

        open_store(&world, helper_path());
        unpack_and_remove_archive(&world, "app:1");
        digest = strdup(strna(image_store_find_digest(world.store, "app:1")));
        in_use.images.items = calloc(1, sizeof(*in_use.images.items));
        REQUIRE(in_use.images.items && digest);
        in_use.images.items[in_use.images.n++] =
                (SourceImage){ strdup("docker.io/library/app:1"), strdup(digest), 1 };
        image_store_set_source_images(world.store, &in_use, &kept);
        EXPECT_EQ(image_store_remove(world.store, digest, &error), -EBUSY);
        EXPECT(strstr(strna(error.message), "is named by the signed index"));
        image_store_set_source_images(world.store, &in_use, &kept);
        EXPECT_EQ(image_store_remove(world.store, digest, NULL), 0);
        LOOP_UNTIL(&world, !image_store_is_removing(world.store));
        EXPECT_EQ(image_store_remove(world.store, digest, NULL), -ENOENT);
        world_done(&world);
}

TEST(a_missing_helper_only_fails_requests)
{
        ImageStoreWorld world = { 0 };
        ImageAnswer answer = { 0 };

        open_store(&world, helper_path());
        drop_archive(&world, "app.tar", "app:1", "one", NULL);
        /* The archive has been noticed and indexed. */
        LOOP_UNTIL(&world, world.n_changes > 1);
        close_store(&world);
        open_store(&world, "/does/not/exist");
        EXPECT_EQ(request_image(&world, "app:1", &answer), 0);
        LOOP_UNTIL(&world, answer.n_calls > 0);
        EXPECT(answer.r < 0);
        EXPECT(strstr(answer.message, "/does/not/exist"));
        answer_done(&answer);
        world_done(&world);
}

TEST(an_image_that_cannot_run_here_is_refused_with_a_reason)
{
        ImageStoreWorld world = { 0 };
        ImageAnswer answer = { 0 };

        open_store(&world, helper_path());
        drop_archive(&world, "proc.tar", "proc:1", "one", "{\"WorkingDir\":\"/proc/1\"}");
        LOOP_UNTIL(&world, world.n_changes > 0);
        LOOP_UNTIL(&world, archive_errors(&world).n == 1);
        EXPECT_EQ(request_image(&world, "proc:1", &answer), -ENOEXEC);
        EXPECT(strstr(answer.message, "proc.tar: configuration: the working directory"));
        answer_done(&answer);
        world_done(&world);
}

TEST(damaged_records_are_set_aside_and_created_again)
{
        ImageStoreWorld world = { 0 };
        ImageAnswer answer = { 0 };
        cleanup_free char *record = NULL, *archives = NULL, *digest = NULL;
        cleanup_free char *aside = NULL;

        open_store(&world, helper_path());
        drop_archive(&world, "app.tar", "app:1", "one", NULL);
        LOOP_UNTIL(&world, world.n_changes > 0);
        request_image_and_wait(&world, "app:1", &answer);
        digest = strdup(answer.image->digest);
        answer_done(&answer);
        close_store(&world);
        REQUIRE(asprintf(&record, "%s/images/records/%s.json", world.state_dir, digest + 7) > 0);
        REQUIRE(asprintf(&archives, "%s/images/archives.json", world.state_dir) > 0);
        REQUIRE(asprintf(&aside, "%s.damaged", record) > 0);
        write_file(record, "{}", 2);
        write_file(archives, "{}", 2);
        open_store(&world, helper_path());
        request_image_and_wait(&world, "app:1", &answer);
        expect_content(answer.image, "one");
        EXPECT_EQ(faccessat(AT_FDCWD, aside, F_OK, 0), 0);
        answer_done(&answer);
        world_done(&world);
}

TEST(a_missing_layer_is_unpacked_again)
{
        ImageStoreWorld world = { 0 };
        ImageAnswer answer = { 0 };
        cleanup_free char *layer = NULL;

        open_store(&world, helper_path());
        drop_archive(&world, "app.tar", "app:1", "one", NULL);
        LOOP_UNTIL(&world, world.n_changes > 0);
        request_image_and_wait(&world, "app:1", &answer);
        layer = strdup(answer.image->layers[0]);
        answer_done(&answer);
        close_store(&world);
        REQUIRE(remove_tree_at(AT_FDCWD, layer) >= 0);
        open_store(&world, helper_path());
        request_image_and_wait(&world, "app:1", &answer);
        expect_content(answer.image, "one");
        answer_done(&answer);
        world_done(&world);
}

TEST(an_invalid_reference_is_refused_at_once)
{
        ImageStoreWorld world = { 0 };
        ImageAnswer answer = { 0 };

        open_store(&world, helper_path());
        EXPECT_EQ(request_image(&world, "Not A Reference", &answer), -EINVAL);
        EXPECT(strstr(answer.message, "couldn't parse image name 'Not A Reference'"));
        world_done(&world);
}
