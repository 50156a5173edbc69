/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/sign-images.h"

#include "agent/cli/command-images.h"
#include "agent/cli/image-helper-run.h"
#include "agent/model/containers.h"
#include "agent/model/json-memfd.h"
#include "common/architecture.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/image-reference.h"
#include "common/json-text.h"
#include "common/strv.h"
#include "common/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        COPY_BYTES = 256 * 1024,
        DELTAS_DEFAULT = 3,
        DELTAS_MAX = SOURCE_INDEX_DELTAS_MAX,
        HELPER_BYTES_MAX = 1024 * 1024,
        HELPER_ERROR_BYTES_MAX = 4096,
        CACHED_INDEXES_MAX = DELTAS_MAX + 1
};

#define BLOBS           "images/blobs/sha256"
#define CACHED_PREFIX   "index-"
#define CACHED_SUFFIX   ".json"
#define ANNOTATION_NAME "org.opencontainers.image.ref.name"

/* The images of the pods that run where a nodeSelector matches. */
typedef struct SelectedImages {
        char *selector; /* "": on every node */
        char **images;  /* normalised references */
} SelectedImages;

typedef struct CachedIndex {
        SourceIndex index;
        char *file;
} CachedIndex;

struct IndexImagesMaker {
        const Options *options;
        int directory_fd;
        const SourceIndex *before;
        char *cache;
        int cache_fd;
        char **platforms, **from;
        unsigned n_deltas;
        SelectedImages *selected;
        size_t n_selected;
        CachedIndex cached[CACHED_INDEXES_MAX]; /* the highest number first */
        size_t n_cached;
};

/* ---- the cache ---- */

static char *choose_cache_path(const Options *options) {
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

        if (options->cache)
                return strdup(options->cache);
        if (cache && cache[0] == '/')
                return text_format("%s/mainstay/%s", cache, options->fleet);
        return text_format("%s/.cache/mainstay/%s", home && home[0] ? home : "/var",
                           options->fleet);
}

static int compare_cached_indexes(const void *a, const void *b) {
        const CachedIndex *one = a, *other = b;

        return one->index.number > other->index.number ? -1
                                                       : one->index.number < other->index.number;
}

static void read_cached_index(IndexImagesMaker *maker, const char *file) {
        CachedIndex *cached = &maker->cached[maker->n_cached];
        cleanup_free char *text = NULL;
        size_t length;

        if (strncmp(file, CACHED_PREFIX, strlen(CACHED_PREFIX)) != 0 ||
            maker->n_cached == CACHED_INDEXES_MAX ||
            read_file_at(maker->cache_fd, file, SOURCE_INDEX_BYTES_MAX, &text, &length) < 0 ||
            source_index_parse(text, length, SOURCE_INDEX_TOTAL_BYTES_MAX, &cached->index, NULL) <
                    0)
                return;
        cached->file = strdup(file);
        maker->n_cached += cached->file != NULL;
}

static int open_cache(IndexImagesMaker *maker, Error *reterr) {
        cleanup_closedir DIR *dir = NULL;
        const struct dirent *entry;
        int r, copy;

        maker->cache = choose_cache_path(maker->options);
        if (!maker->cache)
                return -ENOMEM;
        r = maker->cache_fd = open_directory_at(AT_FDCWD, maker->cache, 0700);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", maker->cache);
        copy = openat(maker->cache_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                close_fd(copy);
                return error_prefixf(reterr, -errno, "%s", maker->cache);
        }
        while ((r = read_directory_entry(dir, &entry)) > 0)
                read_cached_index(maker, entry->d_name);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", maker->cache);
        qsort(maker->cached, maker->n_cached, sizeof(maker->cached[0]), compare_cached_indexes);
        return 0;
}

/* ---- which images ---- */

static char *format_node_selector(const StringMap *selector) {
        cleanup_free char *text = strdup("");

        for (size_t i = 0; text && i < selector->n; i++)
                if (text_appendf(&text, "%s%s=%s", i > 0 ? "," : "", selector->items[i].key,
                                 selector->items[i].value) < 0)
                        return NULL;
        return TAKE_PTR(text);
}

static SelectedImages *find_selected(IndexImagesMaker *maker, const StringMap *selector) {
        cleanup_free char *text = format_node_selector(selector);

        for (size_t i = 0; text && i < maker->n_selected; i++)
                if (streq(maker->selected[i].selector, text))
                        return &maker->selected[i];
        if (!text || !ARRAY_RESERVE(maker->selected, maker->n_selected, 1))
                return NULL;
        maker->selected[maker->n_selected] = (SelectedImages){ .selector = TAKE_PTR(text) };
        return &maker->selected[maker->n_selected++];
}

/* An invalid reference is reported as an error of the pod. */
static int add_selected_image(SelectedImages *selected, const char *reference) {
        cleanup_free char *normal = NULL;
        int r = reference ? image_reference_normalise(reference, &normal, NULL) : -EINVAL;

        if (r == -ENOMEM)
                return r;
        return r < 0 || strv_contains(selected->images, normal)
                       ? 0
                       : strv_append(&selected->images, normal);
}

static int add_images_of_pod(IndexImagesMaker *maker, const PodSpec *spec) {
        SelectedImages *selected = find_selected(maker, &spec->node_selector);
        const Container *container;
        int r = selected ? 0 : -ENOMEM;

        if (r < 0)
                return r;
        pod_foreach_container(container, spec)
                if (r >= 0)
                        r = add_selected_image(selected, container->image);
        for (size_t i = 0; r >= 0 && i < spec->volumes.n; i++)
                if (spec->volumes.items[i].image)
                        r = add_selected_image(selected, spec->volumes.items[i].image->reference);
        return r;
}

int index_images_maker_add(IndexImagesMaker *maker, const ManifestObjects *objects) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < objects->pods.n; i++)
                r = add_images_of_pod(maker, &objects->pods.items[i]->spec);
        for (size_t i = 0; r >= 0 && i < objects->daemonsets.n; i++)
                r = add_images_of_pod(maker, &objects->daemonsets.items[i]->spec.template.spec);
        return r;
}

static int list_all_images(const IndexImagesMaker *maker, char ***ret) {
        for (size_t i = 0; i < maker->n_selected; i++)
                strv_foreach(image, maker->selected[i].images)
                        if (!strv_contains(*ret, *image) && strv_append(ret, *image) < 0)
                                return -ENOMEM;
        return 0;
}

/* ---- mainstay-image ---- */

/* Parses the output of mainstay-image. 0; -ENOENT; or -EIO with its message. */
static int ask_image_helper(const IndexImagesMaker *maker, const char *verb,
                            const char *const *words, size_t n_words, const json_t *settings,
                            json_t **ret, Error *reterr) {
        cleanup_close int output = memfd_create("output", MFD_CLOEXEC);
        cleanup_close int error = memfd_create("error", MFD_CLOEXEC);
        cleanup_close int input = json_memfd_open(settings, "settings");
        cleanup_free char *said = NULL, *text = NULL;
        size_t length, text_length;
        int status, r;

        if (output < 0 || error < 0 || input < 0)
                return -ENOMEM;
        status = image_helper_run(&(ImageHelperRun){ .verb = verb,
                                                     .store = maker->cache,
                                                     .words = words,
                                                     .n_words = n_words,
                                                     .input = input,
                                                     .output = output,
                                                     .error = error });
        if (status < 0)
                return error_prefixf(reterr, status, "mainstay-image");
        if (lseek(error, 0, SEEK_SET) < 0 || lseek(output, 0, SEEK_SET) < 0)
                return -errno;
        r = read_stream(error, HELPER_ERROR_BYTES_MAX, &said, &length);
        if (status != 0)
                return error_setf(reterr, status == IMAGE_HELPER_ABSENT ? ENOENT : EIO, "%.*s",
                                  r < 0 ? 0 : (int) strcspn(said, "\n"), r < 0 ? "" : said);
        r = read_stream(output, HELPER_BYTES_MAX, &text, &text_length);
        if (r >= 0)
                r = json_parse_text(text, text_length, JSON_REJECT_DUPLICATES, ret, NULL);
        return r < 0 ? error_setf(reterr, EIO, "mainstay-image reported no image") : 0;
}

/* The user's credentials, as stored by Docker and Podman. */
static json_t *make_collect_settings(void) {
        const char *home = getenv("HOME");
        cleanup_free char *path = home ? path_join(home, ".docker/config.json") : NULL;

        return path && access(path, R_OK) >= 0 ? json_pack("{s:s}", "authFile", path)
                                               : json_object();
}

static int collect_from(const IndexImagesMaker *maker, const char *name, const char *platform,
                        const char *from, json_t **ret, Error *reterr) {
        cleanup_json json_t *settings = make_collect_settings();
        cleanup_free char *option = text_format("--platform=%s", platform);

        if (!option)
                return -ENOMEM;
        return ask_image_helper(maker, "collect", (const char *[]){ option, name, from }, 3,
                                settings, ret, reterr);
}

/* Takes the image from the first place that contains it; registries are queried last. */
static int collect_platform(const IndexImagesMaker *maker, const char *name, const char *platform,
                            json_t **ret, Error *reterr) {
        int r = -ENOENT;

        for (char *const *from = maker->from; r == -ENOENT && from && *from; from++) {
                cleanup_error Error error = ERROR_NULL;

                r = collect_from(maker, name, platform, *from, ret, &error);
                if (r < 0 && r != -ENOENT)
                        return error_setf(reterr, -r, "image %s, %s: %s: %s", name, platform, *from,
                                          error_message(&error, r));
        }
        if (r != -ENOENT)
                return r;
        r = collect_from(maker, name, platform, NULL, ret, reterr);
        return r < 0 ? error_prefixf(reterr, r, "image %s, %s", name, platform) : 0;
}

/* ---- deltas ---- */

static const SourceIndexPlatform *find_platform(const SourceIndex *index, const char *name,
                                                const char *platform) {
        const SourceIndexImage *image = source_index_find_image(index, name);

        for (size_t i = 0; image && i < image->platforms.n; i++)
                if (streq(image->platforms.items[i].name, platform))
                        return &image->platforms.items[i];
        return NULL;
}

static json_t *blobs_to_json(const SourceIndexBlob *blobs, size_t n) {
        json_t *array = json_array();

        for (size_t i = 0; i < n; i++)
                (void) json_array_append_new(array,
                                             json_pack("{s:s, s:I}", "digest", blobs[i].digest,
                                                       "size", (json_int_t) blobs[i].size));
        return array;
}

/* The delta that the directory already contains; NULL: none. */
static json_t *find_known_delta(const IndexImagesMaker *maker, const char *name,
                                const char *platform, const char *digest, const char *base) {
        const SourceIndexPlatform *known = find_platform(maker->before, name, platform);

        if (!known || !streq(known->manifest.digest, digest))
                return NULL;
        for (size_t i = 0; i < known->deltas.n; i++) {
                const SourceIndexDelta *delta = &known->deltas.items[i];

                if (streq(delta->base, base))
                        return json_pack("{s:s, s:s, s:I, s:o}", "base", base, "digest",
                                         delta->manifest.digest, "size",
                                         (json_int_t) delta->manifest.size, "blobs",
                                         blobs_to_json(delta->blobs.items, delta->blobs.n));
        }
        return NULL;
}

static uint64_t sum_of_sizes(const json_t *entry) {
        uint64_t sum = (uint64_t) json_integer_value(json_object_get(entry, "size"));
        const json_t *blob;
        size_t i;

        json_array_foreach(json_object_get(entry, "blobs"), i, blob)
                sum += (uint64_t) json_integer_value(json_object_get(blob, "size"));
        return sum;
}

static bool has_delta_from(const json_t *deltas, const char *base) {
        const json_t *delta;
        size_t i;

        json_array_foreach(deltas, i, delta)
                if (streq_ptr(json_text(delta, "base"), base))
                        return true;
        return false;
}

/* A delta that cannot be created is simply omitted. */
static int add_delta(const IndexImagesMaker *maker, const char *name, const char *platform,
                     json_t *entry, const SourceIndexPlatform *base, json_t *deltas) {
        const char *digest = json_text(entry, "digest");
        cleanup_free char *option = text_format("--platform=%s", platform);
        cleanup_json json_t *delta = NULL, *nothing = json_object();
        cleanup_error Error error = ERROR_NULL;
        int r = 0;

        if (!option)
                return -ENOMEM;
        if (base->blobs.n == 0 || streq(base->manifest.digest, digest) ||
            has_delta_from(deltas, base->blobs.items[0].digest))
                return 0;
        delta = find_known_delta(maker, name, platform, digest, base->blobs.items[0].digest);
        if (!delta)
                r = ask_image_helper(maker, "delta",
                                     (const char *[]){ option, base->manifest.digest, digest }, 3,
                                     nothing, &delta, &error);
        if (r < 0) {
                fprintf(stderr, "mainstay: image %s: no delta from %s: %s\n", name,
                        base->manifest.digest, error_message(&error, r));
                return 0;
        }
        if (sum_of_sizes(delta) >= sum_of_sizes(entry))
                return 0;
        return json_array_append(deltas, delta) < 0 ? -ENOMEM : 0;
}

static int add_deltas(const IndexImagesMaker *maker, const char *name, const char *platform,
                      json_t *entry) {
        cleanup_json json_t *deltas = json_array();
        int r = 0;

        for (size_t i = 0; r >= 0 && i < maker->n_cached && i < maker->n_deltas; i++) {
                const SourceIndexPlatform *base =
                        find_platform(&maker->cached[i].index, name, platform);

                if (base)
                        r = add_delta(maker, name, platform, entry, base, deltas);
        }
        return r < 0 || json_object_set(entry, "deltas", deltas) < 0 ? -ENOMEM : 0;
}

/* ---- blobs ---- */

/* Copies bytes, and hashes them at the same time. */
static int copy_hashed(int from, int to, char ret[SHA256_HEX_SIZE]) {
        cleanup_free char *buffer = malloc(COPY_BYTES);
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();
        int r = 0;

        if (!buffer || !hash)
                return -ENOMEM;
        for (;;) {
                ssize_t n = read(from, buffer, COPY_BYTES);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                sha256_update(hash, buffer, (size_t) n);
                r = to < 0 ? 0 : write_all(to, buffer, (size_t) n);
                if (r < 0)
                        return r;
        }
        sha256_finish(hash, ret);
        return 0;
}

static int copy_blob_file(const IndexImagesMaker *maker, int blobs_fd, const char *hex,
                          Error *reterr) {
        cleanup_free char *path = text_format("blobs/sha256/%s", hex),
                          *part = text_format(".%s.part", hex);
        cleanup_close int from = -EBADF, to = -EBADF;
        char actual[SHA256_HEX_SIZE] = "";
        int r;

        if (!path || !part)
                return -ENOMEM;
        from = open_beneath(maker->cache_fd, path, O_RDONLY, 0);
        if (from < 0)
                return error_prefixf(reterr, from, "%s/%s", maker->cache, path);
        to = openat(blobs_fd, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        r = to < 0 ? -errno : copy_hashed(from, to, actual);
        if (r >= 0 && !streq(actual, hex))
                r = error_setf(reterr, EBADMSG, "%s/%s is damaged: remove the directory %s",
                               maker->cache, path, maker->cache);
        if (r >= 0 && (fsync(to) < 0 || renameat(blobs_fd, part, blobs_fd, hex) < 0))
                r = -errno;
        if (r < 0)
                (void) unlinkat(blobs_fd, part, 0);
        return r < 0 ? error_prefixf(reterr, r, BLOBS "/%s", hex) : 0;
}

static int copy_blob(const IndexImagesMaker *maker, int blobs_fd, const json_t *blob,
                     Error *reterr) {
        const char *digest = strna(json_text(blob, "digest"));
        const char *hex = strchr(digest, ':');
        struct stat st;

        if (!hex)
                return error_setf(reterr, EIO, "mainstay-image reported no digest");
        hex++;
        if (fstatat(blobs_fd, hex, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISREG(st.st_mode) &&
            st.st_size == json_integer_value(json_object_get(blob, "size")))
                return 0;
        return copy_blob_file(maker, blobs_fd, hex, reterr);
}

/* The member of an entry of "platforms" or "deltas". */
static int copy_blobs_of(const IndexImagesMaker *maker, int blobs_fd, const json_t *entry,
                         Error *reterr) {
        const json_t *blob;
        size_t i;
        int r = copy_blob(maker, blobs_fd, entry, reterr);

        json_array_foreach(json_object_get(entry, "blobs"), i, blob)
                if (r >= 0)
                        r = copy_blob(maker, blobs_fd, blob, reterr);
        json_array_foreach(json_object_get(entry, "deltas"), i, blob)
                if (r >= 0)
                        r = copy_blobs_of(maker, blobs_fd, blob, reterr);
        return r;
}

static int copy_blobs(const IndexImagesMaker *maker, const json_t *images, Error *reterr) {
        cleanup_close int blobs_fd = open_directory_at(maker->directory_fd, BLOBS, 0755);
        const json_t *image, *platform;
        size_t i, k;
        int r = blobs_fd < 0 ? error_prefixf(reterr, blobs_fd, BLOBS) : 0;

        json_array_foreach(images, i, image)
                json_array_foreach(json_object_get(image, "platforms"), k, platform)
                        if (r >= 0)
                                r = copy_blobs_of(maker, blobs_fd, platform, reterr);
        return r;
}

static int collect_all_platforms(const IndexImagesMaker *maker, const char *name, json_t *images,
                                 Error *reterr) {
        json_t *platforms = json_array();

        if (json_array_append_new(
                    images, json_pack("{s:s, s:o}", "name", name, "platforms", platforms)) < 0)
                return -ENOMEM;
        strv_foreach(platform, maker->platforms) {
                json_t *entry = NULL;
                int r = collect_platform(maker, name, *platform, &entry, reterr);

                if (r < 0)
                        return r;
                if (json_array_append_new(platforms, entry) < 0)
                        return -ENOMEM;
                r = add_deltas(maker, name, *platform, entry);
                if (r < 0)
                        return r;
        }
        return 0;
}

int index_images_maker_collect(IndexImagesMaker *maker, json_t **ret, Error *reterr) {
        cleanup_json json_t *images = json_array();
        cleanup_strv char **names = NULL;
        int r = maker->options->no_images ? 0 : list_all_images(maker, &names);

        *ret = NULL;
        if (r >= 0 && names)
                r = open_cache(maker, reterr);
        strv_foreach(name, names) {
                if (r >= 0)
                        r = collect_all_platforms(maker, *name, images, reterr);
        }
        if (r >= 0 && names && !maker->options->check)
                r = copy_blobs(maker, images, reterr);
        if (r >= 0 && names)
                *ret = TAKE_PTR(images);
        return r;
}

/* ---- explanations ---- */

static void explain_files(const IndexImagesMaker *maker, const SourceIndex *index) {
        const SourceIndex *before = maker->before;

        for (size_t i = 0; i < index->files.n; i++) {
                const SourceIndexFile *file = &index->files.items[i];
                const char *what = "added";

                for (size_t k = 0; k < before->files.n; k++)
                        if (streq(before->files.items[k].name, file->name))
                                what = streq(before->files.items[k].sha256, file->sha256)
                                               ? NULL
                                               : "changed";
                if (what)
                        printf("%s %s\n", what, file->name);
        }
        for (size_t i = 0; i < before->files.n; i++) {
                bool is_there = false;

                for (size_t k = 0; k < index->files.n; k++)
                        is_there |= streq(before->files.items[i].name, index->files.items[k].name);
                if (!is_there)
                        printf("removed %s\n", before->files.items[i].name);
        }
}

static uint64_t delta_bytes(const SourceIndexDelta *delta) {
        uint64_t bytes = delta->manifest.size;

        for (size_t i = 0; i < delta->blobs.n; i++)
                bytes += delta->blobs.items[i].size;
        return bytes;
}

static void explain_image(const char *name, const SourceIndexPlatform *platform,
                          const char *before) {
        char size[32];

        if (before && streq(before, platform->manifest.digest))
                return;
        printf("%s image %s, %s: %s", before ? "changed" : "added", name, platform->name,
               format_bytes(size, source_index_platform_bytes(platform)));
        for (size_t i = 0; i < platform->deltas.n; i++)
                printf("%s %s", i > 0 ? "," : "; deltas of",
                       format_bytes(size, delta_bytes(&platform->deltas.items[i])));
        putchar('\n');
}

static void explain_all_images(const IndexImagesMaker *maker, const SourceIndex *index) {
        for (size_t i = 0; i < index->images.n; i++)
                for (size_t k = 0; k < index->images.items[i].platforms.n; k++) {
                        const char *name = index->images.items[i].name;
                        const SourceIndexPlatform *platform =
                                &index->images.items[i].platforms.items[k];
                        const SourceIndexPlatform *before =
                                find_platform(maker->before, name, platform->name);

                        explain_image(name, platform, before ? before->manifest.digest : NULL);
                }
        for (size_t i = 0; i < maker->before->images.n; i++)
                if (!source_index_find_image(index, maker->before->images.items[i].name))
                        printf("removed image %s\n", maker->before->images.items[i].name);
}

/* For a node that has the images of the previous index. */
static uint64_t bytes_after_update(const IndexImagesMaker *maker, const char *name,
                                   const SourceIndexPlatform *platform) {
        const SourceIndexPlatform *before = find_platform(maker->before, name, platform->name);

        if (before && streq(before->manifest.digest, platform->manifest.digest))
                return 0;
        for (size_t i = 0; before && before->blobs.n > 0 && i < platform->deltas.n; i++)
                if (streq(platform->deltas.items[i].base, before->blobs.items[0].digest))
                        return delta_bytes(&platform->deltas.items[i]) + platform->manifest.size +
                               platform->blobs.items[0].size;
        return source_index_platform_bytes(platform);
}

static void explain_selected(const IndexImagesMaker *maker, const SourceIndex *index,
                             const SelectedImages *selected) {
        uint64_t whole = 0, update = 0;
        char first[32], later[32];

        strv_foreach(name, selected->images) {
                const SourceIndexPlatform *platform =
                        find_platform(index, *name, maker->platforms[0]);

                if (!platform)
                        continue;
                whole += source_index_platform_bytes(platform);
                update += bytes_after_update(maker, *name, platform);
        }
        if (whole == 0)
                return;
        format_bytes(first, whole);
        format_bytes(later, update);
        printf("%s%s fetches %s of images%s", selected->selector[0] ? "a node with " : "every node",
               selected->selector, first, maker->before->images.n > 0 ? "" : "\n");
        if (maker->before->images.n > 0)
                printf(", after index %lld %s\n", (long long) maker->before->number, later);
}

void index_images_maker_explain(const IndexImagesMaker *maker, const SourceIndex *index) {
        explain_files(maker, index);
        explain_all_images(maker, index);
        for (size_t i = 0; i < maker->n_selected; i++)
                explain_selected(maker, index, &maker->selected[i]);
}

/* ---- after the index is written ---- */

/* The first platform has the plain name, the names of others end with the platform. */
static int add_to_layout(json_t *manifests, const SourceIndexImage *image, size_t k) {
        const SourceIndexPlatform *platform = &image->platforms.items[k];
        cleanup_free char *name =
                k > 0 ? text_format("%s-%s", image->name, platform->name) : strdup(image->name);

        for (char *p = name ? name + strlen(image->name) : NULL; p && *p; p++)
                if (*p == '/')
                        *p = '-';
        if (!name ||
            json_array_append_new(manifests, json_pack("{s:s, s:s, s:I, s:{s:s}}", "mediaType",
                                                       platform->media_type, "digest",
                                                       platform->manifest.digest, "size",
                                                       (json_int_t) platform->manifest.size,
                                                       "annotations", ANNOTATION_NAME, name)) < 0)
                return -ENOMEM;
        return 0;
}

static int write_signed_layout(const IndexImagesMaker *maker, const SourceIndex *index,
                               Error *reterr) {
        static const char version[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
        cleanup_close int fd = open_directory_at(maker->directory_fd, "images", 0755);
        json_t *manifests = json_array();
        cleanup_json json_t *layout =
                json_pack("{s:i, s:s, s:o}", "schemaVersion", 2, "mediaType",
                          "application/vnd.oci.image.index.v1+json", "manifests", manifests);
        cleanup_free char *text = NULL;
        int r = fd < 0 ? fd : layout ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < index->images.n; i++)
                for (size_t k = 0; r >= 0 && k < index->images.items[i].platforms.n; k++)
                        r = add_to_layout(manifests, &index->images.items[i], k);
        text = r >= 0 ? json_to_text(layout, JSON_INDENT(1)) : NULL;
        if (r >= 0)
                r = text ? write_file_atomic_at(fd, "oci-layout", version, strlen(version), 0644)
                         : -ENOMEM;
        if (r >= 0)
                r = write_file_atomic_at(fd, "index.json", text, strlen(text), 0644);
        return r < 0 ? error_prefixf(reterr, r, "images") : 0;
}

static int add_hex(char ***list, const char *digest) {
        return strv_append(list, strchr(digest, ':') + 1);
}

static int list_platform_blobs(const SourceIndexPlatform *platform, char ***ret) {
        int r = add_hex(ret, platform->manifest.digest);

        for (size_t i = 0; r >= 0 && i < platform->blobs.n; i++)
                r = add_hex(ret, platform->blobs.items[i].digest);
        for (size_t i = 0; i < platform->deltas.n; i++) {
                const SourceIndexDelta *delta = &platform->deltas.items[i];

                if (r >= 0)
                        r = add_hex(ret, delta->manifest.digest);
                for (size_t k = 0; r >= 0 && k < delta->blobs.n; k++)
                        r = add_hex(ret, delta->blobs.items[k].digest);
        }
        return r;
}

static int list_index_blobs(const SourceIndex *index, char ***ret) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < index->images.n; i++)
                for (size_t k = 0; r >= 0 && k < index->images.items[i].platforms.n; k++)
                        r = list_platform_blobs(&index->images.items[i].platforms.items[k], ret);
        return r;
}

static int remove_other_blobs(const IndexImagesMaker *maker, const SourceIndex *index,
                              Error *reterr) {
        int fd = openat(maker->directory_fd, BLOBS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        cleanup_strv char **wanted = NULL;
        const struct dirent *entry;
        int r = list_index_blobs(index, &wanted);

        if (!dir) {
                close_fd(fd);
                return errno == ENOENT ? 0 : error_prefixf(reterr, -errno, BLOBS);
        }
        while (r >= 0 && (r = read_directory_entry(dir, &entry)) > 0)
                if (!strv_contains(wanted, entry->d_name))
                        r = unlink_if_present_at(dirfd(dir), entry->d_name);
        return r < 0 ? error_prefixf(reterr, r, BLOBS) : 0;
}

static bool is_cached_elsewhere(const IndexImagesMaker *maker, const SourceIndex *index,
                                const char *digest, size_t n_kept) {
        cleanup_strv char **blobs = NULL;

        if (list_index_blobs(index, &blobs) < 0)
                return true;
        for (size_t i = 0; i < n_kept; i++)
                if (list_index_blobs(&maker->cached[i].index, &blobs) < 0)
                        return true;
        return strv_contains(blobs, strchr(digest, ':') + 1);
}

/* The images of indexes from which no delta will be made. */
static int list_stale_images(const IndexImagesMaker *maker, const SourceIndex *index, size_t n_kept,
                             char ***ret) {
        for (size_t i = n_kept; i < maker->n_cached; i++) {
                const SourceIndex *old = &maker->cached[i].index;

                for (size_t k = 0; k < old->images.n; k++)
                        for (size_t j = 0; j < old->images.items[k].platforms.n; j++) {
                                const char *digest =
                                        old->images.items[k].platforms.items[j].manifest.digest;

                                if (!is_cached_elsewhere(maker, index, digest, n_kept) &&
                                    strv_appendf(ret, "--name=%s", digest) < 0)
                                        return -ENOMEM;
                        }
        }
        return 0;
}

static int prune_cache(const IndexImagesMaker *maker, const SourceIndex *index) {
        size_t n_kept = MIN(maker->n_cached, (size_t) MAX(maker->n_deltas, 1u) - 1);
        cleanup_strv char **stale = NULL;
        int r = list_stale_images(maker, index, n_kept, &stale);

        if (r >= 0 && stale)
                r = image_helper_run(&(ImageHelperRun){ .verb = "remove",
                                                        .store = maker->cache,
                                                        .words = (const char *const *) stale,
                                                        .n_words = strv_length(stale) });
        for (size_t i = n_kept; r == 0 && i < maker->n_cached; i++)
                (void) unlinkat(maker->cache_fd, maker->cached[i].file, 0);
        return MIN(r, 0);
}

int index_images_maker_finish(IndexImagesMaker *maker, const SourceIndex *index, const char *text,
                              Error *reterr) {
        char name[64];
        int r;

        if (index->images.n == 0 && maker->before->images.n == 0)
                return 0;
        r = write_signed_layout(maker, index, reterr);
        if (r >= 0)
                r = remove_other_blobs(maker, index, reterr);
        if (r < 0 || maker->cache_fd < 0)
                return r;
        (void) snprintf(name, sizeof(name), CACHED_PREFIX "%lld" CACHED_SUFFIX,
                        (long long) index->number);
        r = write_file_atomic_at(maker->cache_fd, name, text, strlen(text), 0644);
        if (r >= 0)
                r = prune_cache(maker, index);
        return r < 0 ? error_prefixf(reterr, r, "%s", maker->cache) : 0;
}

/* ---- verifying ---- */

int index_images_verify(int directory_fd, const SourceIndex *index, Error *reterr) {
        cleanup_strv char **blobs = NULL;
        int r = list_index_blobs(index, &blobs);

        strv_foreach(hex, blobs) {
                cleanup_free char *path = path_join(BLOBS, *hex);
                cleanup_close int fd =
                        path ? open_beneath(directory_fd, path, O_RDONLY | O_NONBLOCK, 0) : -ENOMEM;
                char actual[SHA256_HEX_SIZE];

                if (r >= 0)
                        r = fd < 0 ? fd : copy_hashed(fd, -EBADF, actual);
                if (r < 0)
                        return error_prefixf(reterr, r, "%s", strna(path));
                if (!streq(actual, *hex))
                        return error_setf(reterr, EBADMSG,
                                          "%s: does not match its digest in the index", path);
        }
        return r;
}

/* ---- construction ---- */

static int split_list(const char *text, char ***ret) {
        cleanup_free char *copy = strdup(text);
        char *rest = copy, *word;
        int r = copy ? 0 : -ENOMEM;

        while (r >= 0 && (word = strsep(&rest, ",")))
                r = strv_append(ret, word);
        return r;
}

/* A directory without an index of images contains archives. */
static int add_image_place(IndexImagesMaker *maker, const char *path, Error *reterr) {
        cleanup_closedir DIR *dir = opendir(path);
        const struct dirent *entry;
        int r;

        if (!dir || faccessat(dirfd(dir), "index.json", F_OK, 0) >= 0)
                return strv_append(&maker->from, path);
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                cleanup_free char *file = path_join(path, entry->d_name);

                if (entry->d_name[0] == '.')
                        continue;
                r = file ? strv_append(&maker->from, file) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        return r < 0 ? error_prefixf(reterr, r, "%s", path) : 0;
}

static int add_image_places(IndexImagesMaker *maker, Error *reterr) {
        cleanup_strv char **places = NULL;
        int r = split_list(maker->options->from, &places);

        strv_foreach(place, places) {
                if (r >= 0)
                        r = add_image_place(maker, *place, reterr);
        }
        return r;
}

static int choose_delta_number(const char *text, unsigned *ret, Error *reterr) {
        char *end = NULL;
        unsigned long number = text ? strtoul(text, &end, 10) : DELTAS_DEFAULT;

        if (text && (*end || end == text || number > DELTAS_MAX))
                return error_setf(reterr, EINVAL, "--deltas: must be a number of at most %d",
                                  DELTAS_MAX);
        *ret = (unsigned) number;
        return 0;
}

static int parse_image_options(IndexImagesMaker *maker, Error *reterr) {
        const Options *options = maker->options;
        cleanup_free char *own = text_format("linux/%s", machine_architecture());
        int r = own ? split_list(options->platform ? options->platform : own, &maker->platforms)
                    : -ENOMEM;

        if (r >= 0 && options->from)
                r = add_image_places(maker, reterr);
        return r < 0 ? r : choose_delta_number(options->deltas, &maker->n_deltas, reterr);
}

int index_images_maker_new(const Options *options, int directory_fd, const SourceIndex *before,
                           IndexImagesMaker **ret, Error *reterr) {
        cleanup_with(index_images_maker_freep) IndexImagesMaker *maker = calloc(1, sizeof(*maker));
        int r;

        if (!maker)
                return -ENOMEM;
        maker->options = options;
        maker->directory_fd = directory_fd;
        maker->before = before;
        maker->cache_fd = -EBADF;
        r = parse_image_options(maker, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(maker);
        return 0;
}

IndexImagesMaker *index_images_maker_free(IndexImagesMaker *maker) {
        if (!maker)
                return NULL;
        for (size_t i = 0; i < maker->n_selected; i++) {
                free(maker->selected[i].selector);
                strv_free(maker->selected[i].images);
        }
        free(maker->selected);
        for (size_t i = 0; i < maker->n_cached; i++) {
                source_index_done(&maker->cached[i].index);
                free(maker->cached[i].file);
        }
        strv_free(maker->platforms);
        strv_free(maker->from);
        close_fd(maker->cache_fd);
        free(maker->cache);
        free(maker);
        return NULL;
}
