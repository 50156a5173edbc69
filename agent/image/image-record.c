/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image-record.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/image-user.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <stdint.h>

enum {
        RECORD_BYTES_MAX = 2 * 1024 * 1024,
        RECORD_VERSION = 1,
        USER_VERSION = 2, /* earlier versions did not follow links to /etc/passwd */
        HEX_LENGTH = 64
};

#define DIGEST_PREFIX "sha256:"

static bool is_digest_hex(const char *text) {
        return strspn(text, "0123456789abcdef") == HEX_LENGTH && text[HEX_LENGTH] == '\0';
}

bool image_digest_is_valid(const char *digest) {
        return strncmp(digest, DIGEST_PREFIX, strlen(DIGEST_PREFIX)) == 0 &&
               is_digest_hex(digest + strlen(DIGEST_PREFIX));
}

static int read_record_id(const json_t *value, uint32_t *ret) {
        json_int_t number = json_integer_value(value);

        if (!json_is_integer(value) || number < 0 || number > INT32_MAX)
                return -EBADMSG;
        *ret = (uint32_t) number;
        return 0;
}

static int read_record_ids(const json_t *record, Image *image) {
        const json_t *groups = json_object_get(record, "groups"), *item;
        size_t i;
        int r;

        r = read_record_id(json_object_get(record, "uid"), &image->uid);
        if (r < 0)
                return r;
        r = read_record_id(json_object_get(record, "gid"), &image->gid);
        if (r < 0 || json_array_size(groups) == 0)
                return r;
        image->groups = calloc(json_array_size(groups), sizeof(gid_t));
        if (!image->groups)
                return -ENOMEM;
        json_array_foreach(groups, i, item) {
                r = read_record_id(item, &image->groups[i]);
                if (r < 0)
                        return r;
        }
        image->n_groups = i;
        return 0;
}

/* -ENOENT if a layer is missing. */
static int read_record_layers(const json_t *record, int images_fd, const char *images_path,
                              Image *image) {
        const json_t *layers = json_object_get(record, "layers"), *item;
        size_t i;

        if (json_array_size(layers) == 0)
                return -EBADMSG;
        json_array_foreach(layers, i, item) {
                const char *hex = json_string_value(item);
                cleanup_free char *path = NULL;

                if (!hex || !is_digest_hex(hex))
                        return -EBADMSG;
                path = path_join("layers", hex);
                if (!path || strv_appendf(&image->layers, "%s/%s", images_path, path) < 0)
                        return -ENOMEM;
                if (faccessat(images_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                        return -errno;
        }
        return 0;
}

static int read_record_image(const json_t *record, Image *image) {
        const struct {
                const char *key;
                char **string;
                char ***strings;
        } fields[] = {
                { "entrypoint", NULL, &image->entrypoint },
                { "command", NULL, &image->command },
                { "env", NULL, &image->env },
                { "volumes", NULL, &image->volumes },
                { "workingDir", &image->working_dir, NULL },
                { "stopSignal", &image->stop_signal, NULL },
                { "user", &image->user, NULL },
        };
        int r;

        if (json_integer_value(json_object_get(record, "version")) != RECORD_VERSION)
                return -EBADMSG;
        for (size_t i = 0; i < N_ELEMENTS(fields); i++) {
                r = fields[i].string ? json_copy_text(record, fields[i].key, fields[i].string)
                                     : json_append_texts(json_object_get(record, fields[i].key),
                                                         fields[i].strings);
                if (r < 0)
                        return r;
        }
        image->lacks_volumes = !json_object_get(record, "volumes");
        return read_record_ids(record, image);
}

/* Resolves the user again from the layers, because an earlier version has written the record. */
static int resolve_image_user(Image *image, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_image_user ImageUser found = { 0 };
        int r = image_user_find_in_directories(image->user, image->layers, &found, &error);

        if (r < 0 && r != -EINVAL && r != -E2BIG)
                return error_setf(reterr, -r, "%s", error_message(&error, r));
        free(TAKE_PTR(image->groups));
        image->uid = found.uid;
        image->gid = found.gid;
        image->groups = TAKE_PTR(found.groups);
        image->n_groups = found.n_groups;
        if (r >= 0)
                return 0;
        image->user_error = strdup(error_message(&error, r));
        return image->user_error ? 0 : -ENOMEM;
}

static int read_record_user(const json_t *record, Image *image, Error *reterr) {
        if (json_integer_value(json_object_get(record, "userVersion")) < USER_VERSION)
                return resolve_image_user(image, reterr);
        return json_copy_text(record, "userError", &image->user_error);
}

static int image_from_record(const json_t *record, int images_fd, const char *images_path,
                             const char *reference, const char *digest, Image **ret) {
        cleanup_with(image_unrefp) Image *image = calloc(1, sizeof(*image));
        int r;

        if (!image)
                return -ENOMEM;
        image->n_refs = 1;
        image->reference = strdup(reference);
        image->digest = strdup(digest);
        if (!image->reference || !image->digest)
                return -ENOMEM;
        r = read_record_image(record, image);
        if (r < 0)
                return r;
        r = read_record_layers(record, images_fd, images_path, image);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(image);
        return 0;
}

int image_record_load(int images_fd, const char *images_path, const char *reference,
                      const char *digest, Image **ret, Error *reterr) {
        cleanup_with(image_unrefp) Image *image = NULL;
        cleanup_free char *path = NULL, *text = NULL;
        cleanup_json json_t *record = NULL;
        int r;

        if (!image_digest_is_valid(digest))
                return -ENOENT;
        path = text_format("records/%s.json", digest + strlen(DIGEST_PREFIX));
        if (!path)
                return -ENOMEM;
        r = checksummed_read_at(images_fd, path, RECORD_BYTES_MAX, &text);
        if (r >= 0)
                r = json_parse_text(text, strlen(text), JSON_REJECT_DUPLICATES, &record, NULL);
        if (r >= 0)
                r = image_from_record(record, images_fd, images_path, reference, digest, &image);
        if (is_file_damage(r)) {
                log_warning("Image record '%s' is damaged; setting it aside", path);
                checksummed_set_aside_at(images_fd, path);
                return -ENOENT;
        }
        if (r >= 0)
                r = read_record_user(record, image, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(image);
        return 0;
}

int image_record_path(const char *digest, char ret[static RECORD_PATH_SIZE]) {
        if (!image_digest_is_valid(digest))
                return -EINVAL;
        (void) snprintf(ret, RECORD_PATH_SIZE, "records/%s.json", digest + strlen(DIGEST_PREFIX));
        return 0;
}

uint64_t image_record_size(int images_fd, const char *digest) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *record = NULL;
        char path[RECORD_PATH_SIZE];
        json_int_t size;

        if (image_record_path(digest, path) < 0 ||
            checksummed_read_at(images_fd, path, RECORD_BYTES_MAX, &text) < 0)
                return 0;
        record = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        size = json_integer_value(json_object_get(record, "size"));
        return size > 0 ? (uint64_t) size : 0;
}
