/* SPDX-License-Identifier: Apache-2.0 */

/* Image garbage collection. When an image has been added or a pod has terminated, disk usage is
 * compared with the high threshold (imageGCHighThresholdPercent); if it is exceeded, the least
 * recently used images are removed one at a time, down to the low threshold. A child removes each
 * of them, and no image is unpacked until it has ended, because an unpacked image might use a layer
 * that is being removed. This needs no timer, because the disk does not fill without writes. Only
 * imageMaximumGCAge needs one: it elapses when the next image has been unused for that long, and
 * the image is removed regardless of disk usage.
 *
 * Images that a container uses, that a desired pod or a signed index names, or that an archive in
 * preload/ contains are never removed. */

#include "agent/image/image-store-private.h"

#include "agent/image/image-record.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/image-reference.h"
#include "common/list.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define REMOVE_TIMEOUT_USEC (60 * (60 * USEC_PER_SEC))
#define DIGEST_PREFIX       "sha256:"

/* ---- which images may be removed ---- */

static bool is_image_archived(const ImageStore *store, const char *digest, const char **ret_file) {
        for (size_t i = 0; i < store->preload.archives.n_archives; i++) {
                const Archive *archive = store->preload.archives.archives[i];

                for (size_t j = 0; j < archive->n_images; j++)
                        if (streq(archive->images[j].digest, digest)) {
                                *ret_file = archive->file;
                                return true;
                        }
        }
        return false;
}

/* The digests of the images that containers use or that pods name, and those names. */
static ImageSet list_used_images(const ImageStore *store) {
        ImageSet used = IMAGE_SET_NULL;

        if (store->list_wanted)
                store->list_wanted(&used, store->userdata);
        for (size_t i = 0; i < store->n_images; i++)
                if (store->images[i]->n_refs > 1)
                        image_set_add(&used, store->images[i]->digest);
        for (size_t i = 0; i < store->image_names.n_names; i++)
                if (image_set_contains(&used, store->image_names.names[i].name))
                        image_set_add(&used, store->image_names.names[i].digest);
        return used;
}

static bool is_image_of_index(const ImageStore *store, const char *digest) {
        return source_images_have_digest(&store->source_images, digest) ||
               source_images_have_digest(&store->kept_images, digest);
}

static bool is_image_removable(const ImageStore *store, const ImageSet *used, const char *digest) {
        const char *file;

        return !image_set_contains(used, digest) && !is_image_archived(store, digest, &file) &&
               !is_image_of_index(store, digest);
}

static uint64_t image_last_used_at(const ImageStore *store, const char *digest) {
        char path[RECORD_PATH_SIZE];
        struct stat st;

        if (image_record_path(digest, path) < 0 ||
            fstatat(store->images_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        return (uint64_t) st.st_mtim.tv_sec * USEC_PER_SEC + (uint64_t) st.st_mtim.tv_nsec / 1000;
}

/* Calls back with the digest of every record. */
static int foreach_image_record(const ImageStore *store,
                                int (*each)(ImageStore *store, const char *digest, void *userdata),
                                void *userdata) {
        int fd = openat(store->images_fd, "records", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
        cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!dir) {
                close_fd(fd);
                return 0; /* no image was ever unpacked */
        }
        keep_access_time(fd);
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                char digest[sizeof(DIGEST_PREFIX) + 64];

                (void) snprintf(digest, sizeof(digest), DIGEST_PREFIX "%.64s", entry->d_name);
                if (!image_digest_is_valid(digest) || !streq(entry->d_name + 64, ".json"))
                        continue;
                r = each((ImageStore *) (uintptr_t) store, digest, userdata);
                if (r < 0)
                        return r;
        }
        return r;
}

typedef struct OldestImage {
        ImageSet used;
        char digest[sizeof(DIGEST_PREFIX) + 64];
        uint64_t last_used_at, before;
} OldestImage;

static int find_oldest_image(ImageStore *store, const char *digest, void *userdata) {
        OldestImage *oldest = userdata;
        uint64_t at = image_last_used_at(store, digest);

        if (at > oldest->before || at >= oldest->last_used_at ||
            !is_image_removable(store, &oldest->used, digest))
                return 0;
        oldest->last_used_at = at;
        (void) snprintf(oldest->digest, sizeof(oldest->digest), "%s", digest);
        return 0;
}

/* ---- age ---- */

typedef struct AgedImages {
        uint64_t now;
        char digest[sizeof(DIGEST_PREFIX) + 64]; /* an image that is too old */
        uint64_t next_usec;                      /* the time until the next one is too old */
        ImageSet used;
} AgedImages;

/* An image that is no longer in use counts as used until now, because the end of a pod triggers a
 * check. */
static int check_image_age(ImageStore *store, const char *digest, void *userdata) {
        AgedImages *aged = userdata;
        uint64_t age;

        if (image_set_contains(&aged->used, digest))
                return 0;
        if (image_set_contains(&store->gc.used, digest))
                image_store_touch_record(store, digest);
        if (!is_image_removable(store, &aged->used, digest))
                return 0;
        age = aged->now - MIN(aged->now, image_last_used_at(store, digest));
        if (age < store->gc.max_age_usec)
                aged->next_usec = MIN(aged->next_usec, store->gc.max_age_usec - age);
        else if (!aged->digest[0])
                (void) snprintf(aged->digest, sizeof(aged->digest), "%s", digest);
        return 0;
}

static void arm_image_age_timer(ImageStore *store, uint64_t usec) {
        (void) event_timer_arm(store->gc.age_timer, usec);
}

static int on_image_age_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        ImageStore *store = userdata;

        store->gc.is_age_due = true;
        image_gc_remove_next(store);
        return 0;
}

/* When the agent starts, the images that desired pods need are not known yet. */
static bool is_image_age_due(const ImageStore *store) {
        return store->gc.max_age_usec > 0 && store->gc.is_age_due &&
               now_boottime_usec() - store->gc.started_at >= store->gc.max_age_usec;
}

static void postpone_aged_images(ImageStore *store) {
        if (!is_image_age_due(store))
                return;
        store->gc.is_age_due = false;
        arm_image_age_timer(store, store->gc.max_age_usec);
}

static char *take_aged_image(ImageStore *store) {
        AgedImages aged = { .now = now_realtime_usec(), .next_usec = store->gc.max_age_usec };

        if (!is_image_age_due(store))
                return NULL;
        aged.used = list_used_images(store);
        (void) foreach_image_record(store, check_image_age, &aged);
        image_set_done(&store->gc.used);
        store->gc.used = aged.used;
        if (aged.digest[0])
                return strdup(aged.digest);
        store->gc.is_age_due = false;
        arm_image_age_timer(store, aged.next_usec);
        return NULL;
}

/* ---- disk usage ---- */

static bool is_disk_fuller_than(const ImageStore *store, unsigned percent) {
        struct statvfs st;

        if (fstatvfs(store->images_fd, &st) < 0 || st.f_blocks == 0)
                return false;
        return (st.f_blocks - st.f_bavail) * 100 > (uint64_t) st.f_blocks * percent;
}

/* ---- removing one image ---- */

static void forget_stored_image(ImageStore *store, const char *digest) {
        image_names_remove_image(&store->image_names, digest);
        for (size_t i = store->n_images; i-- > 0;)
                if (streq(store->images[i]->digest, digest)) {
                        image_unref(store->images[i]);
                        store->images[i] = store->images[--store->n_images];
                }
}

static void on_image_removed(const ChildResult *result, void *userdata) {
        cleanup_error Error error = ERROR_NULL;
        ImageStore *store = userdata;
        int r;

        store->gc.child = NULL;
        r = child_explain(result, "mainstay-image", &error);
        if (r < 0) {
                log_warning("Cannot remove image %s: %s", store->gc.removing_digest,
                            error_message(&error, r));
                store->gc.is_freeing_space = false;
                postpone_aged_images(store); /* it would be selected again */
        } else
                log_info("Removed image %s", store->gc.removing_digest);
        free(store->gc.removing_digest);
        store->gc.removing_digest = NULL;
        store->gc.is_due = store->gc.is_freeing_space;
        image_gc_remove_next(store);
        image_jobs_start(store);
}

static int start_image_removal(ImageStore *store, const char *digest) {
        cleanup_free char *option = NULL, *name = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r;

        option = text_format("--store=%s", store->images_path);
        name = text_format("--name=%s", digest);
        store->gc.removing_digest = strdup(digest);
        if (!option || !name || !store->gc.removing_digest)
                return -ENOMEM;
        forget_stored_image(store, digest);
        r = child_spawn(store->event,
                        &(ChildSpec){ .argv = (char *[]){ store->helper_path, (char[]){ "remove" },
                                                          option, name, NULL },
                                      .timeout_usec = REMOVE_TIMEOUT_USEC },
                        on_image_removed, store, &store->gc.child, &error);
        if (r < 0) {
                log_warning_message(&error, r);
                free(store->gc.removing_digest);
                store->gc.removing_digest = NULL;
        }
        return r;
}

/* The digest of the next manual removal that is still permitted; the caller frees it, or NULL. */
static char *take_queued_removal(ImageStore *store) {
        size_t n = strv_length(store->gc.removal_queue);
        cleanup_with(image_set_done) ImageSet used = IMAGE_SET_NULL;

        if (n > 0)
                used = list_used_images(store);
        while (n-- > 0) {
                char *digest = TAKE_PTR(store->gc.removal_queue[n]);

                if (is_image_removable(store, &used, digest))
                        return digest;
                free(digest);
        }
        return NULL;
}

static char *take_image_above_threshold(ImageStore *store) {
        uint64_t now = now_realtime_usec();
        OldestImage oldest = { .last_used_at = UINT64_MAX,
                               .before = now - MIN(now, store->gc.min_age_usec) };

        if (store->gc.high_percent == 0 || store->gc.high_percent >= 100 || !store->gc.is_due)
                return NULL;
        store->gc.is_due = false;
        store->gc.is_freeing_space = is_disk_fuller_than(
                store, store->gc.is_freeing_space ? store->gc.low_percent : store->gc.high_percent);
        if (store->gc.is_freeing_space) {
                oldest.used = list_used_images(store);
                (void) foreach_image_record(store, find_oldest_image, &oldest);
                image_set_done(&oldest.used);
        }
        if (!oldest.digest[0])
                store->gc.is_freeing_space = false;
        return oldest.digest[0] ? strdup(oldest.digest) : NULL;
}

void image_gc_remove_next(ImageStore *store) {
        cleanup_free char *digest = NULL;

        if (store->gc.child || image_jobs_keep_images(store))
                return;
        digest = take_queued_removal(store);
        if (!digest)
                digest = take_image_above_threshold(store);
        if (!digest)
                digest = take_aged_image(store);
        if (!digest)
                return;
        image_jobs_interrupt(store);
        if (start_image_removal(store, digest) < 0)
                image_jobs_start(store);
}

void image_gc_schedule(ImageStore *store) {
        store->gc.is_due = store->gc.is_age_due = true;
        (void) image_store_schedule_work(store);
}

void image_store_check_disk_usage(ImageStore *store) {
        image_gc_schedule(store);
}

int image_gc_init(ImageStore *store, const ImageStoreConfig *config) {
        store->gc.high_percent = config->gc_high_percent;
        store->gc.low_percent = config->gc_low_percent;
        store->gc.min_age_usec = config->gc_min_age_usec;
        store->gc.max_age_usec = config->gc_max_age_usec;
        store->gc.started_at = now_boottime_usec();
        if (store->gc.max_age_usec == 0)
                return 0;
        return sd_event_add_time_relative(store->event, &store->gc.age_timer, CLOCK_BOOTTIME,
                                          store->gc.max_age_usec, USEC_PER_SEC, on_image_age_timer,
                                          store);
}

void image_gc_done(ImageStore *store) {
        child_free(store->gc.child);
        free(store->gc.removing_digest);
        strv_free(store->gc.removal_queue);
        image_set_done(&store->gc.used);
        sd_event_source_disable_unref(store->gc.age_timer);
}

/* ---- manual removal ---- */

typedef struct ImageListing {
        ImageSet used;
        void (*each)(const ImageInfo *info, void *userdata);
        void *userdata;
} ImageListing;

/* A name that now refers to another image, from a newer archive or pull, does not belong to this
 * image. */
static int add_current_name(const ImageStore *store, const char *digest, const char *name,
                            char ***names) {
        if (!streq_ptr(image_store_find_digest(store, name), digest) || strv_contains(*names, name))
                return 0;
        return strv_append(names, name);
}

static int list_current_names(const ImageStore *store, const char *digest, char ***names) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < store->image_names.n_names; i++)
                if (streq(store->image_names.names[i].digest, digest))
                        r = add_current_name(store, digest, store->image_names.names[i].name,
                                             names);
        for (size_t i = 0; r >= 0 && i < store->source_images.images.n; i++) {
                const SourceImage *image = &store->source_images.images.items[i];

                if (streq_ptr(image->digest, digest) && !strv_contains(*names, image->name))
                        r = strv_append(names, image->name);
        }
        for (size_t i = 0; r >= 0 && i < store->preload.archives.n_archives; i++) {
                const Archive *archive = store->preload.archives.archives[i];

                for (size_t j = 0; r >= 0 && j < archive->n_images; j++)
                        if (streq(archive->images[j].digest, digest))
                                strv_foreach(name, archive->images[j].names)
                                        if (r >= 0)
                                                r = add_current_name(store, digest, *name, names);
        }
        return r;
}

static int list_stored_image(ImageStore *store, const char *digest, void *userdata) {
        const ImageListing *listing = userdata;
        cleanup_strv char **names = NULL;
        ImageInfo info = { .digest = digest, .last_used_at = image_last_used_at(store, digest) };

        if (list_current_names(store, digest, &names) < 0)
                return -ENOMEM;
        info.names = names;
        info.size_bytes = image_record_size(store->images_fd, digest);
        info.is_in_use = image_set_contains(&listing->used, digest);
        (void) is_image_archived(store, digest, &info.archive);
        listing->each(&info, listing->userdata);
        return 0;
}

/* Adds images in archives that have not been requested yet. */
static void list_archived_images(const ImageStore *store, const ImageListing *listing) {
        for (size_t i = 0; i < store->preload.archives.n_archives; i++) {
                const Archive *archive = store->preload.archives.archives[i];

                for (size_t j = 0; j < archive->n_images; j++) {
                        const ArchivedImage *image = &archive->images[j];
                        cleanup_strv char **names = NULL;

                        if (!image->digest[0] || image->refusal ||
                            image_last_used_at(store, image->digest) ||
                            list_current_names(store, image->digest, &names) < 0)
                                continue;
                        listing->each(&(ImageInfo){ .digest = image->digest,
                                                    .names = names,
                                                    .size_bytes = (uint64_t) image->size_bytes,
                                                    .archive = archive->file },
                                      listing->userdata);
                }
        }
}

int image_store_foreach(ImageStore *store, void (*each)(const ImageInfo *info, void *userdata),
                        void *userdata) {
        ImageListing listing = { list_used_images(store), each, userdata };
        int r = foreach_image_record(store, list_stored_image, &listing);

        image_set_done(&listing.used);
        if (r < 0)
                return r;
        list_archived_images(store, &listing);
        return 0;
}

int image_store_remove(ImageStore *store, const char *name, Error *reterr) {
        cleanup_free char *normal = NULL;
        cleanup_with(image_set_done) ImageSet used = list_used_images(store);
        const char *digest = image_digest_is_valid(name) ? name : NULL, *file;
        int r;

        if (!digest) {
                r = image_reference_normalise(name, &normal, reterr);
                if (r < 0)
                        return r;
                digest = image_names_find(&store->image_names, normal);
        }
        if (!digest || image_last_used_at(store, digest) == 0)
                return error_setf(reterr, ENOENT, "image '%s' is not in the store", name);
        if (is_image_archived(store, digest, &file))
                return error_setf(reterr, EBUSY, "image '%s' is in the archive '%s/%s'", name,
                                  store->preload_path, file);
        if (image_set_contains(&used, digest))
                return error_setf(reterr, EBUSY, "image '%s' is used by a pod", name);
        if (is_image_of_index(store, digest))
                return error_setf(reterr, EBUSY, "image '%s' is named by the signed index", name);
        r = strv_append(&store->gc.removal_queue, digest);
        return r < 0 ? r : image_store_schedule_work(store);
}

typedef struct ImagePruning {
        ImageSet used;
        int n; /* number of images to be removed */
} ImagePruning;

static int queue_image_removal(ImageStore *store, const char *digest, void *userdata) {
        ImagePruning *pruning = userdata;

        if (!is_image_removable(store, &pruning->used, digest))
                return 0;
        pruning->n++;
        if (strv_contains(store->gc.removal_queue, digest))
                return 0;
        return strv_append(&store->gc.removal_queue, digest);
}

int image_store_prune(ImageStore *store) {
        ImagePruning pruning = { .used = list_used_images(store) };
        int r = foreach_image_record(store, queue_image_removal, &pruning);

        image_set_done(&pruning.used);
        if (r < 0)
                return r;
        r = image_store_schedule_work(store);
        return r < 0 ? r : pruning.n;
}

bool image_store_is_removing(const ImageStore *store) {
        return store->gc.child ||
               (strv_length(store->gc.removal_queue) > 0 && !image_jobs_keep_images(store));
}
