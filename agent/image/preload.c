/* SPDX-License-Identifier: Apache-2.0 */

/* Watches the preload directory; children index each archive once. inotify events are only a
 * trigger: the directory is scanned and compared. */

#include "agent/image/image-store-private.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sysexits.h>

enum {
        INDEXERS_MAX = 2,
        OUTPUT_BYTES_MAX = 4 * 1024 * 1024
};

#define INDEX_TIMEOUT_USEC (30 * (60 * USEC_PER_SEC))

#define PRELOAD_EVENTS                                                                           \
        (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_DELETE_SELF | \
         IN_MOVE_SELF | IN_ONLYDIR)

static void on_archive_indexed(const ChildResult *result, void *userdata) {
        Archive *archive = userdata;
        ImageStore *store = archive->store;
        cleanup_error Error error = ERROR_NULL;
        bool same = false;
        int r;

        archive->child = NULL;
        r = child_explain(result, "mainstay-image", &error);
        if (r >= 0 && archive_parse_index(archive, result->output) < 0)
                r = error_setf(&error, EBADMSG,
                               "Cannot parse the output of mainstay-image as JSON");
        if (r < 0) {
                same = streq_ptr(archive->error, error_message(&error, r));
                archive_mark_broken(archive, error_message(&error, r));
                archive->is_transient = result->code != CLD_EXITED || result->status == EX_TEMPFAIL;
                log_set_message_id(MESSAGE_ARCHIVE_INVALID);
                log_warning("Cannot use image archive '%s': %s", archive->file,
                            error_message(&error, r));
        } else {
                r = archive_set_save(&store->preload.archives, store->images_fd);
                if (r < 0)
                        (void) log_warning_errno(r, "Cannot save the index of the image archives");
        }
        preload_index_archives(store);
        image_store_settle_requests(store);
        /* If a request were repeated on every change, its own attempt would trigger it again. */
        if (!same)
                store->on_changed(store->userdata);
}

static int start_archive_indexer(ImageStore *store, Archive *archive, Error *reterr) {
        cleanup_free char *path = path_join(store->preload_path, archive->file), *option = NULL;
        int r;

        option = path ? text_format("--store=%s", store->images_path) : NULL;
        if (!option)
                return -ENOMEM;
        archive->store = store;
        r = child_spawn(store->event,
                        &(ChildSpec){ .argv = (char *[]){ store->helper_path, (char[]){ "index" },
                                                          option, path, NULL },
                                      .output_max = OUTPUT_BYTES_MAX,
                                      .timeout_usec = INDEX_TIMEOUT_USEC },
                        on_archive_indexed, archive, &archive->child, reterr);
        if (r < 0)
                return r;
        archive->state = ARCHIVE_INDEXING;
        return 0;
}

void preload_index_archives(ImageStore *store) {
        unsigned running = 0;

        for (size_t i = 0; i < store->preload.archives.n_archives; i++)
                running += store->preload.archives.archives[i]->state == ARCHIVE_INDEXING;
        for (size_t i = 0; i < store->preload.archives.n_archives && running < INDEXERS_MAX; i++) {
                Archive *archive = store->preload.archives.archives[i];
                cleanup_error Error error = ERROR_NULL;
                int r = 0;

                if (archive->state != ARCHIVE_NEW)
                        continue;
                r = start_archive_indexer(store, archive, &error);
                if (r < 0) {
                        archive_mark_broken(archive, error_message(&error, r));
                        log_set_message_id(MESSAGE_ARCHIVE_INVALID);
                        log_warning("Cannot index image archive '%s': %s", archive->file,
                                    archive->error);
                } else {
                        running++;
                }
        }
}

/* A new file is not read before it is closed; a link is complete at once. */
static bool is_preload_link(const ImageStore *store, const char *name) {
        cleanup_free char *path = path_join(store->preload_path, name);
        struct stat st;

        return path && lstat(path, &st) >= 0 && (S_ISLNK(st.st_mode) || st.st_nlink > 1);
}

static int on_preload_changed(sd_event_source *source, const struct inotify_event *event,
                              void *userdata) {
        ImageStore *store = userdata;

        if ((event->mask & IN_CREATE) && !is_preload_link(store, event->name))
                return 0;
        if (event->len > 0)
                archive_set_reset_broken(&store->preload.archives, event->name);
        if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED))
                store->preload.watch = sd_event_source_disable_unref(store->preload.watch);
        return image_store_schedule_work(store);
}

/* Adds the inotify watch, again after the directory was removed. */
static int watch_preload_directory(ImageStore *store) {
        int r;

        if (store->preload.watch)
                return 0;
        r = sd_event_add_inotify(store->event, &store->preload.watch, store->preload_path,
                                 PRELOAD_EVENTS, on_preload_changed, store);
        return r < 0 ? r : sd_event_source_set_description(store->preload.watch, "preload-watch");
}

/* The directory is not held open, because the removal of an open directory is not reported. */
int preload_scan_directory(ImageStore *store) {
        cleanup_close int fd = open_directory_at(AT_FDCWD, store->preload_path, 0700);
        int r = fd < 0 ? fd : watch_preload_directory(store);

        if (r >= 0)
                r = archive_set_scan(&store->preload.archives, fd);
        if (r > 0)
                archive_set_retry_deltas(&store->preload.archives);
        if (r < 0) {
                log_warning("Cannot read '%s': %s; keeping the known image archives",
                            store->preload_path, strerror(-r));
                return r;
        }
        preload_index_archives(store);
        return r;
}

/* The reason why the archive has no image that can be used; NULL: it has one. */
static const char *explain_unusable_archive(const Archive *archive) {
        if (archive->state == ARCHIVE_BROKEN)
                return strna(archive->error);
        for (size_t i = 0; i < archive->n_images; i++)
                if (!archive->images[i].refusal)
                        return NULL;
        return archive->n_images > 0 ? archive->images[0].refusal : NULL;
}

void image_store_foreach_archive(const ImageStore *store,
                                 void (*each)(const ArchiveInfo *archive, void *userdata),
                                 void *userdata) {
        for (size_t i = 0; i < store->preload.archives.n_archives; i++) {
                const Archive *archive = store->preload.archives.archives[i];

                each(&(ArchiveInfo){ .file = archive->file,
                                     .inode = archive->inode,
                                     .mtime_nsec = archive->mtime_nsec,
                                     .is_read = archive->state >= ARCHIVE_INDEXED,
                                     .error = explain_unusable_archive(archive),
                                     .is_transient = archive->is_transient },
                     userdata);
        }
}

void image_store_foreach_archive_error(ImageStore *store,
                                       void (*each)(const char *archive, const char *message,
                                                    void *userdata),
                                       void *userdata) {
        for (size_t i = 0; i < store->preload.archives.n_archives; i++) {
                const Archive *archive = store->preload.archives.archives[i];

                if (archive->state == ARCHIVE_BROKEN)
                        each(archive->file, strna(archive->error), userdata);
                for (size_t j = 0; j < archive->n_images; j++) {
                        const ArchivedImage *image = &archive->images[j];

                        if (image->refusal || image->failure)
                                each(archive->file,
                                     image->refusal ? image->refusal : image->failure, userdata);
                }
        }
}

void preload_init(ImageStore *store) {
        archive_set_load(&store->preload.archives, store->images_fd);
        (void) preload_scan_directory(store);
}

void preload_done(ImageStore *store) {
        archive_set_done(&store->preload.archives);
        sd_event_source_disable_unref(store->preload.watch);
}
