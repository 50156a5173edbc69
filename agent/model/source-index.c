/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/source-index.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/ed25519.h"
#include "common/image-reference.h"
#include "common/json-text.h"
#include "common/strv.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

enum {
        INDEX_FORMAT = 1,
        FLEET_LENGTH_MAX = 253,
        PLATFORM_LENGTH_MAX = 64,
        MEDIA_TYPE_LENGTH_MAX = 127
};

#define BLOB_BYTES_MAX (UINT64_C(256) << 30)

static void index_platform_done(SourceIndexPlatform *platform) {
        for (size_t i = 0; i < platform->deltas.n; i++)
                free(platform->deltas.items[i].blobs.items);
        free(platform->deltas.items);
        free(platform->blobs.items);
        free(platform->media_type);
        free(platform->name);
}

static void index_image_done(SourceIndexImage *image) {
        for (size_t i = 0; i < image->platforms.n; i++)
                index_platform_done(&image->platforms.items[i]);
        free(image->platforms.items);
        free(image->name);
}

void source_index_done(SourceIndex *index) {
        for (size_t i = 0; i < index->images.n; i++)
                index_image_done(&index->images.items[i]);
        free(index->images.items);
        for (size_t i = 0; i < index->files.n; i++)
                free(index->files.items[i].name);
        free(index->files.items);
        strv_free(index->keys);
        free(index->fleet);
        *index = (SourceIndex){ 0 };
}

/* ---- the format ---- */

/* The characters that are allowed in the name of a file or a fleet: none that has a meaning in a
 * path or for a terminal. */
static bool is_plain_name(const char *name, size_t max) {
        for (const char *p = name; *p; p++)
                if (!isalnum((unsigned char) *p) && !strchr("._-", *p))
                        return false;
        return name[0] && name[0] != '.' && strlen(name) <= max;
}

bool source_name_is_valid(const char *name) {
        return is_plain_name(name, FLEET_LENGTH_MAX);
}

const char *source_stick_path(const char *url) {
        if (strncmp(url, "file:///", 8) == 0)
                return url + 7;
        return strncmp(url, "file:/", 6) == 0 ? url + 5 : NULL;
}

static bool is_index_file_name(const char *name) {
        static const char *const endings[] = { ".yaml", ".yml", ".json" };
        size_t n = strlen(name);

        for (size_t i = 0; i < N_ELEMENTS(endings); i++) {
                size_t n_ending = strlen(endings[i]);

                if (n > n_ending && streq(name + n - n_ending, endings[i]))
                        return is_plain_name(name, SOURCE_INDEX_NAME_MAX);
        }
        return false;
}

static bool is_sha256_hex(const char *text) {
        return strlen(text) == SHA256_HEX_SIZE - 1 &&
               strspn(text, "0123456789abcdef") == SHA256_HEX_SIZE - 1;
}

static int parse_index_file(const json_t *json, uint64_t file_max, SourceIndexFile *file,
                            Error *reterr) {
        const char *name = strna(json_text(json, "name"));
        const char *sha256 = strna(json_text(json, "sha256"));
        json_int_t size = json_integer_value(json_object_get(json, "size"));

        if (!is_index_file_name(name))
                return error_setf(reterr, EBADMSG,
                                  "name: must be the name of a manifest, at most %d letters, "
                                  "digits, '.', '_' and '-'",
                                  SOURCE_INDEX_NAME_MAX);
        if (!is_sha256_hex(sha256))
                return error_setf(reterr, EBADMSG, "sha256: must be 64 lower-case hex digits");
        if (size <= 0 || (uint64_t) size > file_max)
                return error_setf(reterr, EBADMSG, "size: must be between 1 and %llu",
                                  (unsigned long long) file_max);
        file->size = (uint64_t) size;
        memcpy(file->sha256, sha256, SHA256_HEX_SIZE);
        file->name = strdup(name);
        return file->name ? 0 : -ENOMEM;
}

static int compare_index_files(const void *a, const void *b) {
        return strcmp(((const SourceIndexFile *) a)->name, ((const SourceIndexFile *) b)->name);
}

static int check_file_list(SourceIndex *index, Error *reterr) {
        uint64_t total = 0;

        if (index->files.n > 0)
                qsort(index->files.items, index->files.n, sizeof(*index->files.items),
                      compare_index_files);
        for (size_t i = 0; i < index->files.n; i++) {
                total += index->files.items[i].size;
                if (i > 0 && streq(index->files.items[i].name, index->files.items[i - 1].name))
                        return error_setf(reterr, EBADMSG, "files: %s occurs twice",
                                          index->files.items[i].name);
        }
        if (total > SOURCE_INDEX_TOTAL_BYTES_MAX)
                return error_setf(reterr, EBADMSG, "files: are larger than %zu MiB together",
                                  SOURCE_INDEX_TOTAL_BYTES_MAX / MIB);
        return 0;
}

static int parse_file_list(const json_t *array, uint64_t file_max, SourceIndex *index,
                           Error *reterr) {
        const json_t *item;
        size_t i;

        if (!json_is_array(array) || json_array_size(array) > SOURCE_INDEX_FILES_MAX)
                return error_setf(reterr, EBADMSG, "files: must be a list of at most %d",
                                  SOURCE_INDEX_FILES_MAX);
        index->files.items = calloc(json_array_size(array) + 1, sizeof(*index->files.items));
        if (!index->files.items)
                return -ENOMEM;
        json_array_foreach(array, i, item) {
                int r = parse_index_file(item, file_max, &index->files.items[index->files.n++],
                                         reterr);

                if (r < 0)
                        return error_prefixf(reterr, r, "files[%zu]", i);
        }
        return check_file_list(index, reterr);
}

/* ---- images ---- */

static int parse_index_digest(const json_t *json, const char *key, char ret[SOURCE_DIGEST_SIZE],
                              Error *reterr) {
        const char *digest = strna(json_text(json, key));

        if (strncmp(digest, "sha256:", 7) != 0 || !is_sha256_hex(digest + 7))
                return error_setf(reterr, EBADMSG,
                                  "%s: must be 'sha256:' and 64 lower-case hex digits", key);
        memcpy(ret, digest, SOURCE_DIGEST_SIZE);
        return 0;
}

static int parse_index_blob(const json_t *json, SourceIndexBlob *blob, Error *reterr) {
        json_int_t size = json_integer_value(json_object_get(json, "size"));

        if (size <= 0 || (uint64_t) size > BLOB_BYTES_MAX)
                return error_setf(reterr, EBADMSG, "size: must be between 1 and %llu",
                                  (unsigned long long) BLOB_BYTES_MAX);
        blob->size = (uint64_t) size;
        return parse_index_digest(json, "digest", blob->digest, reterr);
}

/* Parses a list of at most 'max' objects; allocates a structure of 'size' bytes for each. */
static int begin_index_list(const json_t *json, const char *key, size_t max, size_t size,
                            const json_t **ret_array, void *ret_items, Error *reterr) {
        const json_t *array = json_object_get(json, key);
        void *items;

        if (array && (!json_is_array(array) || json_array_size(array) > max))
                return error_setf(reterr, EBADMSG, "%s: must be a list of at most %zu", key, max);
        items = calloc(json_array_size(array) + 1, size);
        if (!items)
                return -ENOMEM;
        memcpy(ret_items, &items, sizeof(items));
        *ret_array = array;
        return 0;
}

static int parse_blob_list(const json_t *json, SourceIndexBlob **ret, size_t *ret_n,
                           Error *reterr) {
        const json_t *array = NULL, *item;
        size_t i;
        int r = begin_index_list(json, "blobs", SOURCE_INDEX_BLOBS_MAX, sizeof(**ret), &array, ret,
                                 reterr);

        if (r < 0)
                return r;
        json_array_foreach(array, i, item) {
                r = parse_index_blob(item, &(*ret)[(*ret_n)++], reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "blobs[%zu]", i);
        }
        return 0;
}

static int parse_index_delta(const json_t *json, SourceIndexDelta *delta, Error *reterr) {
        int r = parse_index_digest(json, "base", delta->base, reterr);

        if (r >= 0)
                r = parse_index_blob(json, &delta->manifest, reterr);
        return r < 0 ? r : parse_blob_list(json, &delta->blobs.items, &delta->blobs.n, reterr);
}

static int parse_delta_list(const json_t *json, SourceIndexPlatform *platform, Error *reterr) {
        const json_t *array = NULL, *item;
        size_t i;
        int r = begin_index_list(json, "deltas", SOURCE_INDEX_DELTAS_MAX,
                                 sizeof(*platform->deltas.items), &array, &platform->deltas.items,
                                 reterr);

        if (r < 0)
                return r;
        json_array_foreach(array, i, item) {
                r = parse_index_delta(item, &platform->deltas.items[platform->deltas.n++], reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "deltas[%zu]", i);
        }
        return 0;
}

static bool is_plain_text(const char *text, const char *others, size_t max) {
        for (const char *p = text; *p; p++)
                if (!isalnum((unsigned char) *p) && !strchr(others, *p))
                        return false;
        return text[0] && strlen(text) <= max;
}

static int parse_index_platform(const json_t *json, SourceIndexPlatform *platform, Error *reterr) {
        const char *name = strna(json_text(json, "platform"));
        const char *media_type = strna(json_text(json, "mediaType"));
        int r;

        if (!strchr(name, '/') || !is_plain_text(name, "/._-", PLATFORM_LENGTH_MAX))
                return error_setf(reterr, EBADMSG,
                                  "platform: must be a system and an architecture, such as "
                                  "linux/amd64");
        if (!is_plain_text(media_type, "/.+_-", MEDIA_TYPE_LENGTH_MAX))
                return error_setf(reterr, EBADMSG, "mediaType: must be that of a manifest");
        platform->name = strdup(name);
        platform->media_type = strdup(media_type);
        if (!platform->name || !platform->media_type)
                return -ENOMEM;
        r = parse_index_blob(json, &platform->manifest, reterr);
        if (r >= 0)
                r = parse_blob_list(json, &platform->blobs.items, &platform->blobs.n, reterr);
        return r < 0 ? r : parse_delta_list(json, platform, reterr);
}

static int parse_platform_list(const json_t *json, SourceIndexImage *image, Error *reterr) {
        const json_t *array = NULL, *item;
        size_t i;
        int r = begin_index_list(json, "platforms", SOURCE_INDEX_PLATFORMS_MAX,
                                 sizeof(*image->platforms.items), &array, &image->platforms.items,
                                 reterr);

        if (r < 0)
                return r;
        if (json_array_size(array) == 0)
                return error_setf(reterr, EBADMSG, "platforms: must be a list of at least one");
        json_array_foreach(array, i, item) {
                r = parse_index_platform(item, &image->platforms.items[image->platforms.n++],
                                         reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "platforms[%zu]", i);
        }
        return 0;
}

/* A name spelled differently from the one that nodes look up would never be found. */
static int parse_index_image(const json_t *json, SourceIndexImage *image, Error *reterr) {
        const char *name = strna(json_text(json, "name"));
        int r = image_reference_normalise(name, &image->name, reterr);

        if (r < 0)
                return r == -ENOMEM ? r : error_prefixf(reterr, -EBADMSG, "name");
        if (!streq(name, image->name))
                return error_setf(reterr, EBADMSG, "name: must be written as '%s'", image->name);
        return parse_platform_list(json, image, reterr);
}

static int compare_index_images(const void *a, const void *b) {
        return strcmp(((const SourceIndexImage *) a)->name, ((const SourceIndexImage *) b)->name);
}

static int parse_image_list(const json_t *json, SourceIndex *index, Error *reterr) {
        const json_t *array = NULL, *item;
        size_t i;
        int r = begin_index_list(json, "images", SOURCE_INDEX_IMAGES_MAX,
                                 sizeof(*index->images.items), &array, &index->images.items,
                                 reterr);

        if (r < 0)
                return r;
        json_array_foreach(array, i, item) {
                r = parse_index_image(item, &index->images.items[index->images.n++], reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "images[%zu]", i);
        }
        qsort(index->images.items, index->images.n, sizeof(*index->images.items),
              compare_index_images);
        for (i = 1; i < index->images.n; i++)
                if (streq(index->images.items[i].name, index->images.items[i - 1].name))
                        return error_setf(reterr, EBADMSG, "images: %s occurs twice",
                                          index->images.items[i].name);
        return 0;
}

static int compare_index_image_name(const char *name, const SourceIndexImage *image) {
        return strcmp(name, image->name);
}

const SourceIndexImage *source_index_find_image(const SourceIndex *index, const char *name) {
        return ARRAY_FIND(name, index->images.items, index->images.n, compare_index_image_name);
}

uint64_t source_index_platform_bytes(const SourceIndexPlatform *platform) {
        uint64_t bytes = platform->manifest.size;

        for (size_t i = 0; i < platform->blobs.n; i++)
                bytes += platform->blobs.items[i].size;
        return bytes;
}

/* ---- other members ---- */

/* With unusable keys, or none, the node could not accept any later index. */
static int parse_next_keys(const json_t *array, SourceIndex *index, Error *reterr) {
        uint8_t key[ED25519_KEY_SIZE];
        const json_t *item;
        size_t i;

        if (!array)
                return 0;
        if (!json_is_array(array) || json_array_size(array) == 0 ||
            json_array_size(array) > SOURCE_INDEX_KEYS_MAX)
                return error_setf(reterr, EBADMSG, "keys: must be a list of 1 to %d keys",
                                  SOURCE_INDEX_KEYS_MAX);
        json_array_foreach(array, i, item) {
                const char *text = strna(json_string_value(item));

                int r = ed25519_key_parse(text, key);

                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        return error_setf(reterr, EBADMSG,
                                          "keys[%zu]: must be a public key of Ed25519 in base64",
                                          i);
                if (strv_append(&index->keys, text) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* The time within which the index's pods must be ready. */
static int parse_progress_deadline(const json_t *json, SourceIndex *index, Error *reterr) {
        const json_t *seconds = json_object_get(json, "progressDeadlineSeconds");

        if (!seconds)
                return 0;
        index->progress_deadline_seconds = json_integer_value(seconds);
        if (index->progress_deadline_seconds > 0 &&
            index->progress_deadline_seconds <= SOURCE_DEADLINE_SECONDS_MAX)
                return 0;
        return error_setf(reterr, EBADMSG,
                          "progressDeadlineSeconds: must be a number between 1 and %d",
                          SOURCE_DEADLINE_SECONDS_MAX);
}

static int parse_index_head(const json_t *json, SourceIndex *index, Error *reterr) {
        const char *fleet = strna(json_text(json, "fleet"));

        if (json_integer_value(json_object_get(json, "format")) != INDEX_FORMAT)
                return error_setf(reterr, EBADMSG, "format: must be %d", INDEX_FORMAT);
        index->number = json_integer_value(json_object_get(json, "number"));
        if (index->number <= 0)
                return error_setf(reterr, EBADMSG, "number: must be a number above 0");
        if (parse_rfc3339(strna(json_text(json, "expires")), &index->expires) < 0)
                return error_setf(reterr, EBADMSG,
                                  "expires: must be a time such as 2027-01-31T00:00:00Z");
        if (!source_name_is_valid(fleet))
                return error_setf(reterr, EBADMSG,
                                  "fleet: must be a name of letters, digits, '.', '_' and '-'");
        index->fleet = strdup(fleet);
        return index->fleet ? 0 : -ENOMEM;
}

int source_index_parse(const char *text, size_t length, uint64_t file_max, SourceIndex *ret,
                       Error *reterr) {
        cleanup_with(source_index_done) SourceIndex index = { 0 };
        cleanup_json json_t *json = NULL;
        json_error_t where;
        int r;

        if (length > SOURCE_INDEX_BYTES_MAX)
                return error_setf(reterr, EBADMSG, "is larger than %zu MiB",
                                  SOURCE_INDEX_BYTES_MAX / MIB);
        r = json_parse_text(text, length, JSON_REJECT_DUPLICATES, &json, &where);
        if (r == -ENOMEM)
                return r;
        if (!json_is_object(json))
                return error_setf(reterr, EBADMSG, "is not a JSON object: line %d, column %d",
                                  where.line, where.column);
        r = parse_index_head(json, &index, reterr);
        if (r < 0)
                return r;
        r = parse_file_list(json_object_get(json, "files"), file_max, &index, reterr);
        if (r < 0)
                return r;
        r = parse_image_list(json, &index, reterr);
        if (r < 0)
                return r;
        r = parse_next_keys(json_object_get(json, "keys"), &index, reterr);
        if (r < 0)
                return r;
        r = parse_progress_deadline(json, &index, reterr);
        if (r < 0)
                return r;
        *ret = index;
        index = (SourceIndex){ 0 };
        return 0;
}

/* ---- acceptance ---- */

int source_index_check(const SourceIndex *index, const char *sha256, const SourceIndexKnown *known,
                       const char *fleet, uint64_t now_realtime_usec, Error *reterr) {
        bool is_follower = streq_ptr(known->fleet, fleet);
        char time[RFC3339_SIZE], clock[CLOCK_DESCRIPTION_SIZE];

        if (!streq(index->fleet, fleet))
                return error_setf(reterr, EBADMSG, "is of the fleet '%s', not of '%s'",
                                  index->fleet, fleet);
        if (is_follower && index->number < known->number)
                return error_setf(reterr, EBADMSG,
                                  "has the number %lld, and an index with the number %lld "
                                  "was verified before",
                                  (long long) index->number, (long long) known->number);
        if (is_follower && index->number == known->number && !streq_ptr(sha256, known->sha256))
                return error_setf(reterr, EBADMSG,
                                  "has the number of an index that was verified before, %lld, "
                                  "and other contents",
                                  (long long) index->number);
        if (index->expires <= now_realtime_usec)
                return error_setf(reterr, EBADMSG, "has expired at %s; %s; " CLOCK_RETRY_HINT,
                                  format_rfc3339(time, index->expires),
                                  clock_describe(clock, now_realtime_usec));
        return 0;
}

int source_index_verify(const char *text, size_t length, const char *signatures,
                        size_t signatures_length, char *const *keys, Error *reterr) {
        uint8_t found[ED25519_SIGNATURES_MAX][ED25519_SIGNATURE_SIZE];
        size_t n = ed25519_signatures_parse(signatures, signatures_length, found);

        if (n == 0)
                return error_setf(reterr, EBADMSG, "the file of signatures contains none");
        for (; keys && *keys; keys++) {
                uint8_t key[ED25519_KEY_SIZE];

                for (size_t i = 0; ed25519_key_parse(*keys, key) >= 0 && i < n; i++)
                        if (ed25519_verify(key, text, length, found[i]))
                                return 0;
        }
        return error_setf(reterr, EBADMSG, "is not signed by one of the known keys");
}
