/* SPDX-License-Identifier: Apache-2.0 */

/* Makes room. Whenever an image came or a pod ended, one look at the disk says whether it is fuller
 * than the upper threshold; then images go, the one that was used longest ago first and one at a
 * time, until it is no fuller than the lower. Each is removed by a child, and while that works no
 * image is built: it might build on the very layer that goes. There is no timer: a disk that nobody
 * writes to does not fill.
 *
 * Never goes what a container uses, what a wanted pod names, or what an archive in preload/ has. */

#include "agent/image/store-internal.h"

#include "agent/image/record.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/strv.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define REMOVE_TIMEOUT_USEC (60 * (60 * USEC_PER_SEC))
#define DIGEST_PREFIX       "sha256:"

/* ---- what may go ---- */

static bool archive_has(const ImageStore *store, const char *digest, const char **ret_file) {
        for (size_t i = 0; i < store->archives.n_archives; i++) {
                const Archive *archive = store->archives.archives[i];

                for (size_t j = 0; j < archive->n_images; j++)
                        if (streq(archive->images[j].digest, digest)) {
                                *ret_file = archive->file;
                                return true;
                        }
        }
        return false;
}

static bool is_in_use(const ImageStore *store, const char *digest) {
        for (size_t i = 0; i < store->n_images; i++)
                if (store->images[i]->n_refs > 1 && streq(store->images[i]->digest, digest))
                        return true;
        for (size_t i = 0; store->is_wanted && i < store->kept.n_names; i++)
                if (streq(store->kept.names[i].digest, digest) &&
                    store->is_wanted(store->kept.names[i].name, store->userdata))
                        return true;
        return false;
}

static bool may_go(const ImageStore *store, const char *digest) {
        const char *file;

        return !is_in_use(store, digest) && !archive_has(store, digest, &file);
}

static uint64_t used_at(const ImageStore *store, const char *digest) {
        char path[RECORD_PATH_SIZE];
        struct stat st;

        if (image_record_path(digest, path) < 0 ||
            fstatat(store->images_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        return (uint64_t) st.st_mtim.tv_sec * USEC_PER_SEC + (uint64_t) st.st_mtim.tv_nsec / 1000;
}

/* Calls back with the digest of every record. */
static int for_each_record(const ImageStore *store,
                           int (*each)(ImageStore *store, const char *digest, void *userdata),
                           void *userdata) {
        int fd = openat(store->images_fd, "records", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!dir) {
                close_fd(fd);
                return 0; /* nothing was ever unpacked */
        }
        while (r >= 0 && (entry = readdir(dir))) {
                char digest[sizeof(DIGEST_PREFIX) + 64];

                (void) snprintf(digest, sizeof(digest), DIGEST_PREFIX "%.64s", entry->d_name);
                if (image_digest_is_valid(digest) && streq(entry->d_name + 64, ".json"))
                        r = each((ImageStore *) (uintptr_t) store, digest, userdata);
        }
        return r;
}

typedef struct Oldest {
        char digest[sizeof(DIGEST_PREFIX) + 64];
        uint64_t used_at, before;
} Oldest;

static int find_oldest(ImageStore *store, const char *digest, void *userdata) {
        Oldest *oldest = userdata;
        uint64_t at = used_at(store, digest);

        if (at > oldest->before || at >= oldest->used_at || !may_go(store, digest))
                return 0;
        oldest->used_at = at;
        (void) snprintf(oldest->digest, sizeof(oldest->digest), "%s", digest);
        return 0;
}

/* ---- how full it is ---- */

static bool is_fuller_than(const ImageStore *store, unsigned percent) {
        struct statvfs st;

        if (fstatvfs(store->images_fd, &st) < 0 || st.f_blocks == 0)
                return false;
        return (st.f_blocks - st.f_bavail) * 100 > (uint64_t) st.f_blocks * percent;
}

static bool is_at_work(const ImageStore *store) {
        for (const Job *job = store->jobs; job; job = job->next)
                if (job->child)
                        return true;
        return false;
}

/* ---- one goes ---- */

static void forget_image(ImageStore *store, const char *digest) {
        kept_forget(&store->kept, digest);
        for (size_t i = store->n_images; i-- > 0;)
                if (streq(store->images[i]->digest, digest)) {
                        image_unref(store->images[i]);
                        store->images[i] = store->images[--store->n_images];
                }
}

static void on_removed(const ChildResult *result, void *userdata) {
        cleanup_error Error error = ERROR_NULL;
        ImageStore *store = userdata;
        int r;

        store->collector = NULL;
        r = child_explain(result, "mainstay-image", &error);
        if (r < 0) {
                log_warning("Cannot remove image %s: %s", store->going, error_message(&error, r));
                store->makes_room = false;
        } else
                log_info("Image %s is removed", store->going);
        free(store->going);
        store->going = NULL;
        store->wants_check = store->makes_room;
        collect_next(store);
        jobs_start(store);
}

static int remove_image(ImageStore *store, const char *digest) {
        cleanup_free char *option = NULL, *name = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (asprintf(&option, "--store=%s", store->images_path) < 0)
                option = NULL;
        if (asprintf(&name, "--name=%s", digest) < 0)
                name = NULL;
        store->going = strdup(digest);
        if (!option || !name || !store->going)
                return -ENOMEM;
        forget_image(store, digest);
        r = child_spawn(store->event,
                        &(ChildSpec){ .argv = (char *[]){ store->helper_path, (char[]){ "remove" },
                                                          option, name, NULL },
                                      .timeout_usec = REMOVE_TIMEOUT_USEC },
                        on_removed, store, &store->collector, &error);
        if (r < 0) {
                log_warning("%s", error_message(&error, r));
                free(store->going);
                store->going = NULL;
        }
        return r;
}

/* The digest of the next that a person wants removed and that may still go; memory, or NULL. */
static char *take_doomed(ImageStore *store) {
        while (strv_length(store->doomed) > 0) {
                size_t n = strv_length(store->doomed);
                char *digest = store->doomed[n - 1];

                store->doomed[n - 1] = NULL;
                if (may_go(store, digest))
                        return digest;
                free(digest);
        }
        return NULL;
}

static char *take_oldest(ImageStore *store) {
        uint64_t now = now_realtime_usec();
        Oldest oldest = { .used_at = UINT64_MAX, .before = now - MIN(now, store->gc_min_age_usec) };

        if (store->gc_high_percent == 0 || store->gc_high_percent >= 100 || !store->wants_check)
                return NULL;
        store->wants_check = false;
        store->makes_room = is_fuller_than(store, store->makes_room ? store->gc_low_percent
                                                                    : store->gc_high_percent);
        if (store->makes_room)
                (void) for_each_record(store, find_oldest, &oldest);
        if (!oldest.digest[0])
                store->makes_room = false;
        return oldest.digest[0] ? strdup(oldest.digest) : NULL;
}

void collect_next(ImageStore *store) {
        cleanup_free char *digest = NULL;

        if (store->collector || is_at_work(store))
                return;
        digest = take_doomed(store);
        if (!digest)
                digest = take_oldest(store);
        if (digest)
                (void) remove_image(store, digest);
}

void collect_soon(ImageStore *store) {
        store->wants_check = true;
        (void) store_schedule_work(store);
}

void image_store_check_space(ImageStore *store) {
        collect_soon(store);
}

void collect_done(ImageStore *store) {
        child_free(store->collector);
        free(store->going);
        strv_free(store->doomed);
}

/* ---- what a person asks ---- */

typedef struct Listing {
        void (*each)(const ImageInfo *info, void *userdata);
        void *userdata;
} Listing;

static int list_image(ImageStore *store, const char *digest, void *userdata) {
        const Listing *listing = userdata;
        cleanup_strv char **names = NULL;
        ImageInfo info = { .digest = digest, .used_at = used_at(store, digest) };

        for (size_t i = 0; i < store->kept.n_names; i++)
                if (streq(store->kept.names[i].digest, digest) &&
                    strv_append(&names, store->kept.names[i].name) < 0)
                        return -ENOMEM;
        info.names = names;
        info.size_bytes = image_record_size(store->images_fd, digest);
        info.is_in_use = is_in_use(store, digest);
        (void) archive_has(store, digest, &info.archive);
        listing->each(&info, listing->userdata);
        return 0;
}

/* Those of archives that nobody has asked for yet. */
static void list_archives(const ImageStore *store, const Listing *listing) {
        for (size_t i = 0; i < store->archives.n_archives; i++) {
                const Archive *archive = store->archives.archives[i];

                for (size_t j = 0; j < archive->n_images; j++) {
                        const ArchiveImage *image = &archive->images[j];

                        if (!image->digest[0] || image->refusal || used_at(store, image->digest))
                                continue;
                        listing->each(&(ImageInfo){ .digest = image->digest,
                                                    .names = image->names,
                                                    .archive = archive->file },
                                      listing->userdata);
                }
        }
}

int image_store_foreach(ImageStore *store, void (*each)(const ImageInfo *info, void *userdata),
                        void *userdata) {
        Listing listing = { each, userdata };
        int r = for_each_record(store, list_image, &listing);

        if (r >= 0)
                list_archives(store, &listing);
        return r;
}

int image_store_remove(ImageStore *store, const char *name, Error *reterr) {
        cleanup_free char *normal = NULL;
        const char *digest = image_digest_is_valid(name) ? name : NULL, *file;
        int r;

        if (!digest) {
                r = image_reference_normalise(name, &normal, reterr);
                if (r < 0)
                        return r;
                digest = kept_find(&store->kept, normal);
        }
        if (!digest || used_at(store, digest) == 0)
                return error_setf(reterr, ENOENT, "image '%s' is not in the store", name);
        if (archive_has(store, digest, &file))
                return error_setf(reterr, EBUSY, "image '%s' is in the archive '%s/%s'", name,
                                  store->preload_path, file);
        if (is_in_use(store, digest))
                return error_setf(reterr, EBUSY, "image '%s' is used by a pod", name);
        r = strv_append(&store->doomed, digest);
        return r < 0 ? r : store_schedule_work(store);
}

static int doom(ImageStore *store, const char *digest, void *userdata) {
        unsigned *n = userdata;

        if (!may_go(store, digest))
                return 0;
        (*n)++;
        return strv_append(&store->doomed, digest);
}

int image_store_prune(ImageStore *store) {
        unsigned n = 0;
        int r = for_each_record(store, doom, &n);

        if (r >= 0)
                r = store_schedule_work(store);
        return r < 0 ? r : (int) n;
}

bool image_store_is_removing(const ImageStore *store) {
        return store->collector || strv_length(store->doomed) > 0;
}

const char *image_store_preload_path(const ImageStore *store) {
        return store->preload_path;
}

const char *image_store_path(const ImageStore *store) {
        return store->images_path;
}
