/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/preload-archives.h"

#include "agent/image/archive-names.h"
#include "common/array.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file-stamp.h"
#include "common/file.h"
#include "common/image-reference.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/strv.h"

#include <fcntl.h>

enum {
        ARCHIVES_MAX = 1024,
        ARCHIVE_INDEX_BYTES_MAX = 8 * 1024 * 1024,
        ARCHIVE_INDEX_VERSION = 1
};

#define ARCHIVE_INDEX_NAME "archives.json"

static void forget_archive_images(Archive *archive) {
        for (size_t i = 0; i < archive->n_images; i++) {
                free(archive->images[i].digest);
                free(archive->images[i].index_digest);
                free(archive->images[i].transport);
                strv_free(archive->images[i].names);
                free(archive->images[i].refusal);
                free(archive->images[i].failure);
        }
        free(archive->images);
        archive->images = NULL;
        archive->n_images = 0;
        archive->error = (free(archive->error), NULL);
}

static Archive *archive_free(Archive *archive) {
        if (!archive)
                return NULL;
        child_free(archive->child);
        forget_archive_images(archive);
        free(archive->file);
        free(archive);
        return NULL;
}

DEFINE_CLEANUP(Archive *, archive_free)

static bool name_ends_with(const char *text, const char *suffix) {
        size_t n = strlen(text), m = strlen(suffix);

        return n >= m && streq(text + n - m, suffix);
}

bool archive_is_candidate_name(const char *file) {
        return file[0] != '.' && !name_ends_with(file, ".tmp") && !name_ends_with(file, ".part") &&
               !name_ends_with(file, "~");
}

static Archive *find_archive_file(const ArchiveSet *set, const char *file) {
        for (size_t i = 0; i < set->n_archives; i++)
                if (streq(set->archives[i]->file, file))
                        return set->archives[i];
        return NULL;
}

static int add_archive_file(ArchiveSet *set, const char *file, Archive **ret) {
        cleanup_with(archive_freep) Archive *archive = calloc(1, sizeof(*archive));

        if (set->n_archives >= ARCHIVES_MAX)
                return -E2BIG;
        if (archive)
                archive->file = strdup(file);
        if (!archive || !archive->file)
                return -ENOMEM;
        if (!ARRAY_RESERVE(set->archives, set->n_archives, 1))
                return -ENOMEM;
        *ret = archive;
        set->archives[set->n_archives++] = TAKE_PTR(archive);
        return 0;
}

static void remove_archive_at(ArchiveSet *set, size_t i) {
        archive_free(set->archives[i]);
        set->archives[i] = set->archives[--set->n_archives];
}

/* 1: the archive is new or has changed. */
static int update_archive_file(ArchiveSet *set, const char *file, const struct stat *st) {
        Archive *archive = find_archive_file(set, file);
        int r;

        if (archive && archive->size == (uint64_t) st->st_size &&
            archive->inode == (uint64_t) st->st_ino &&
            archive->mtime_nsec == file_stamp_of(st).modified_nsec) {
                archive->seen = true;
                return 0;
        }
        if (!archive) {
                r = add_archive_file(set, file, &archive);
                if (r < 0)
                        return r;
        }
        archive->child = child_free(archive->child);
        forget_archive_images(archive);
        archive->state = ARCHIVE_NEW;
        archive->size = (uint64_t) st->st_size;
        archive->inode = (uint64_t) st->st_ino;
        archive->mtime_nsec = file_stamp_of(st).modified_nsec;
        archive->seen = true;
        return 1;
}

static int scan_preload_entries(ArchiveSet *set, DIR *dir) {
        const struct dirent *entry;
        int changed = 0;

        while ((errno = 0, entry = readdir(dir))) {
                struct stat st;
                int r;

                if (!archive_is_candidate_name(entry->d_name) ||
                    fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
                        continue;
                r = update_archive_file(set, entry->d_name, &st);
                if (r == -E2BIG)
                        log_warning("More than %d files in the preload directory; ignoring '%s'",
                                    ARCHIVES_MAX, entry->d_name);
                else if (r < 0)
                        return r;
                changed |= r > 0;
        }
        return errno ? -errno : changed;
}

int archive_set_scan(ArchiveSet *set, int dir_fd) {
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
        cleanup_closedir DIR *dir = copy < 0 ? NULL : fdopendir(copy);

        if (!dir) {
                r = -errno;
                close_fd(copy);
                return r;
        }
        for (size_t i = 0; i < set->n_archives; i++)
                set->archives[i]->seen = false;
        r = scan_preload_entries(set, dir);
        if (r < 0)
                return r;
        for (size_t i = set->n_archives; i-- > 0;)
                if (!set->archives[i]->seen) {
                        remove_archive_at(set, i);
                        r = 1;
                }
        return r;
}

void archive_set_reset_broken(ArchiveSet *set, const char *file) {
        Archive *archive = find_archive_file(set, file);

        if (archive && archive->state == ARCHIVE_BROKEN)
                archive->state = ARCHIVE_NEW;
}

bool archive_set_retry_transient(ArchiveSet *set) {
        bool any = false;

        for (size_t i = 0; i < set->n_archives; i++) {
                Archive *archive = set->archives[i];

                if (archive->state != ARCHIVE_BROKEN || !archive->is_transient)
                        continue;
                archive->state = ARCHIVE_NEW;
                any = true;
        }
        return any;
}

static bool archived_image_matches(const ArchivedImage *image, const char *reference) {
        const char *digest = image_reference_digest(reference);

        if (digest)
                return streq(image->digest, digest) || streq_ptr(image->index_digest, digest);
        strv_foreach(name, image->names)
                if (streq(*name, reference))
                        return true;
        return false;
}

static const ArchivedImage *find_archived_image(const Archive *archive, const char *reference) {
        for (size_t i = 0; i < archive->n_images; i++)
                if (!archive->images[i].failure &&
                    archived_image_matches(&archive->images[i], reference))
                        return &archive->images[i];
        return NULL;
}

bool archive_set_give_up_delta(const ArchiveSet *set, const char *file, const char *digest,
                               const char *failure) {
        Archive *archive = find_archive_file(set, file);
        bool given_up = false;

        for (size_t i = 0; archive && i < archive->n_images; i++) {
                ArchivedImage *image = &archive->images[i];

                if (!image->is_delta || image->failure || !streq(image->digest, digest))
                        continue;
                image->failure = strdup(failure);
                given_up = image->failure;
        }
        return given_up;
}

const char *archive_set_find_failure(const ArchiveSet *set, const char *reference) {
        for (size_t i = 0; i < set->n_archives; i++)
                for (size_t j = 0; j < set->archives[i]->n_images; j++) {
                        const ArchivedImage *image = &set->archives[i]->images[j];

                        if (image->failure && archived_image_matches(image, reference))
                                return image->failure;
                }
        return NULL;
}

void archive_set_retry_deltas(const ArchiveSet *set) {
        for (size_t i = 0; i < set->n_archives; i++)
                for (size_t j = 0; j < set->archives[i]->n_images; j++) {
                        free(set->archives[i]->images[j].failure);
                        set->archives[i]->images[j].failure = NULL;
                }
}

/* Prefers an image for this platform; of the same image, the archive that contains it completely;
 * then the newer archive; then the later name. */
static bool is_preferred_archived_image(const ArchivedImage *image, const Archive *archive,
                                        const ArchivedImage *best_image, const Archive *best) {
        if (!image->refusal != !best_image->refusal)
                return !image->refusal;
        if (image->is_delta != best_image->is_delta && streq(image->digest, best_image->digest))
                return !image->is_delta;
        if (archive->mtime_nsec != best->mtime_nsec)
                return archive->mtime_nsec > best->mtime_nsec;
        return strcmp(archive->file, best->file) > 0;
}

const ArchivedImage *archive_set_find(const ArchiveSet *set, const char *reference,
                                      const Archive **ret_archive) {
        const ArchivedImage *best = NULL;

        for (size_t i = 0; i < set->n_archives; i++) {
                const Archive *archive = set->archives[i];
                const ArchivedImage *image = find_archived_image(archive, reference);

                if (!image ||
                    (best && !is_preferred_archived_image(image, archive, best, *ret_archive)))
                        continue;
                best = image;
                *ret_archive = archive;
        }
        return best;
}

bool archive_set_is_pending(const ArchiveSet *set) {
        for (size_t i = 0; i < set->n_archives; i++)
                if (set->archives[i]->state <= ARCHIVE_INDEXING)
                        return true;
        return false;
}

static int parse_archived_image(ArchivedImage *image, const json_t *object, const char *stem,
                                bool only) {
        const json_t *names = json_object_get(object, "names"), *name;
        size_t i;
        int r;

        r = json_copy_text(object, "digest", &image->digest);
        if (r < 0)
                return r;
        if (!image->digest)
                return -EBADMSG;
        r = json_copy_text(object, "indexDigest", &image->index_digest);
        if (r < 0)
                return r;
        r = json_copy_text(object, "transport", &image->transport);
        if (r < 0)
                return r;
        if (!image->transport)
                return -EBADMSG;
        r = json_copy_text(object, "refusal", &image->refusal);
        if (r < 0)
                return r;
        image->is_delta = json_is_true(json_object_get(object, "isDelta"));
        image->size_bytes = MAX(json_integer_value(json_object_get(object, "size")), 0);
        json_array_foreach(names, i, name) {
                if (!json_is_string(name))
                        return -EBADMSG;
                r = archive_names_add(json_string_value(name), stem, &image->names);
                if (r < 0)
                        return r;
        }
        /* If the archive contains only one image and it has no name, it gets the name of the
         * file. */
        if (only && json_array_size(names) == 0)
                return archive_names_add(stem, stem, &image->names);
        return 0;
}

static int parse_archived_images(Archive *archive, const json_t *images) {
        cleanup_free char *stem = image_archive_stem(archive->file);
        size_t n = json_array_size(images), i;
        const json_t *object;

        if (!stem)
                return -ENOMEM;
        if (!json_is_array(images))
                return -EBADMSG;
        archive->images = calloc(n + 1, sizeof(ArchivedImage));
        if (!archive->images)
                return -ENOMEM;
        archive->n_images = n;
        json_array_foreach(images, i, object) {
                int r = parse_archived_image(&archive->images[i], object, stem, n == 1);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int replace_archived_images(Archive *archive, const json_t *images) {
        int r;

        forget_archive_images(archive);
        r = parse_archived_images(archive, images);
        if (r < 0)
                forget_archive_images(archive);
        else
                archive->state = ARCHIVE_INDEXED;
        return r;
}

int archive_parse_index(Archive *archive, const char *text) {
        cleanup_json json_t *index = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

        return replace_archived_images(archive, json_object_get(index, "images"));
}

void archive_mark_broken(Archive *archive, const char *message) {
        forget_archive_images(archive);
        archive->error = strdup(message);
        archive->state = ARCHIVE_BROKEN;
        archive->is_transient = false;
}

/* An index that an earlier version has saved does not contain these members, so its archives are
 * read again. */
static bool has_transports(const json_t *images) {
        const json_t *image;
        size_t i;

        json_array_foreach(images, i, image)
                if (!json_is_string(json_object_get(image, "transport")))
                        return false;
        return true;
}

static int load_saved_archive(ArchiveSet *set, const json_t *object) {
        const char *file = json_text(object, "file");
        Archive *archive;
        int r;

        if (!file || find_archive_file(set, file))
                return -EBADMSG;
        if (!has_transports(json_object_get(object, "images")))
                return 0;
        r = add_archive_file(set, file, &archive);
        if (r < 0)
                return r;
        archive->size = (uint64_t) json_integer_value(json_object_get(object, "size"));
        archive->inode = (uint64_t) json_integer_value(json_object_get(object, "inode"));
        archive->mtime_nsec = json_integer_value(json_object_get(object, "mtime"));
        r = replace_archived_images(archive, json_object_get(object, "images"));
        if (r < 0)
                remove_archive_at(set, set->n_archives - 1);
        return r;
}

static int load_saved_archives(ArchiveSet *set, const json_t *saved) {
        const json_t *object;
        size_t i;

        if (json_integer_value(json_object_get(saved, "version")) != ARCHIVE_INDEX_VERSION)
                return -EBADMSG;
        json_array_foreach(json_object_get(saved, "archives"), i, object) {
                int r = load_saved_archive(set, object);

                if (r < 0)
                        return r;
        }
        return 0;
}

void archive_set_load(ArchiveSet *set, int images_fd) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *saved = NULL;
        int r;

        r = checksummed_read_at(images_fd, ARCHIVE_INDEX_NAME, ARCHIVE_INDEX_BYTES_MAX, &text);
        if (r == -ENOENT)
                return;
        if (r >= 0)
                r = json_parse_text(text, strlen(text), JSON_REJECT_DUPLICATES, &saved, NULL);
        if (r >= 0)
                r = load_saved_archives(set, saved);
        if (r >= 0)
                return;
        archive_set_done(set);
        if (is_file_damage(r)) {
                log_warning("Index of image archives is damaged; setting it aside and reading the "
                            "archives again");
                checksummed_set_aside_at(images_fd, ARCHIVE_INDEX_NAME);
        } else
                (void) log_warning_errno(r, "Cannot read the index of image archives, reading the "
                                            "archives again");
}

static json_t *archived_image_to_json(const ArchivedImage *image) {
        json_t *names = json_array();

        strv_foreach(name, image->names)
                (void) json_array_append_new(names, json_string(*name));
        return json_pack("{s:s, s:s*, s:s, s:s*, s:I, s:b, s:o}", "digest", image->digest,
                         "indexDigest", image->index_digest, "transport", image->transport,
                         "refusal", image->refusal, "size", (json_int_t) image->size_bytes,
                         "isDelta", image->is_delta, "names", names);
}

static json_t *archive_to_json(const Archive *archive) {
        json_t *images = json_array();

        for (size_t i = 0; i < archive->n_images; i++)
                (void) json_array_append_new(images, archived_image_to_json(&archive->images[i]));
        return json_pack("{s:s, s:I, s:I, s:I, s:o}", "file", archive->file, "size",
                         (json_int_t) archive->size, "inode", (json_int_t) archive->inode, "mtime",
                         (json_int_t) archive->mtime_nsec, "images", images);
}

int archive_set_save(const ArchiveSet *set, int images_fd) {
        cleanup_json json_t *archives = json_array(), *saved = NULL;
        cleanup_free char *text = NULL;

        for (size_t i = 0; i < set->n_archives; i++)
                if (set->archives[i]->state == ARCHIVE_INDEXED)
                        (void) json_array_append_new(archives, archive_to_json(set->archives[i]));
        saved = json_pack("{s:i, s:O}", "version", ARCHIVE_INDEX_VERSION, "archives", archives);
        text = saved ? json_to_text(saved, JSON_COMPACT) : NULL;
        return text ? checksummed_write_at(images_fd, ARCHIVE_INDEX_NAME, text, 0600) : -ENOMEM;
}

void archive_set_done(ArchiveSet *set) {
        while (set->n_archives > 0)
                remove_archive_at(set, set->n_archives - 1);
        free(set->archives);
        *set = (ArchiveSet){ 0 };
}
