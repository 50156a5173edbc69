/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/store/complete-records.h"

#include "agent/image-helper/pull/document.h"
#include "agent/image-helper/pull/image-config.h"
#include "agent/image-helper/store/stored-image.h"
#include "common/checksummed.h"
#include "common/json-text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
        RECORD_BYTES_MAX = 2 * 1024 * 1024,
        PATH_SIZE = 128,
};

/* A damaged or missing part is reported when it is used. */
static bool is_skipped(int r) {
        return r < 0 && r != -ENOMEM;
}

/* 1 with a record in which the key is missing. */
static int read_old_record(const Store *store, const char *path, const char *key, json_t **ret) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *record = NULL;
        int r = checksummed_read_at(store_fd(store), path, RECORD_BYTES_MAX, &text);

        if (r >= 0)
                r = document_parse(text, strlen(text), &record, NULL);
        if (r < 0)
                return is_skipped(r) ? 0 : r;
        if (!json_is_object(record) || json_object_get(record, key))
                return 0;
        *ret = TAKE_PTR(record);
        return 1;
}

/* Uses the manifest in index.json. */
static int read_config(const Store *store, const char *manifest_digest, ImageConfig **ret) {
        cleanup_free char *text = NULL, *config = NULL;
        cleanup_json json_t *manifest = NULL;
        const char *digest;
        size_t length;
        int r = store_read_blob(store, manifest_digest, MANIFEST_SIZE_MAX, &text, &length);

        if (r >= 0)
                r = document_parse(text, length, &manifest, NULL);
        if (r < 0)
                return r;
        digest = json_text(manifest, "config", "digest");
        if (!digest || !digest_is_valid(digest))
                return -EBADMSG;
        r = store_read_blob(store, digest, CONFIG_SIZE_MAX, &config, &length);
        return r < 0 ? r : image_config_parse(config, length, ret, NULL);
}

static int write_completed_record(Store *store, const char *path, const json_t *record,
                                  Error *reterr) {
        cleanup_free char *text = json_to_text(record, JSON_COMPACT);

        if (!text)
                return -ENOMEM;
        /* The image may have been removed in the meantime. */
        if (faccessat(store_fd(store), path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        return store_write_record(store, path, text, reterr);
}

static int complete_record(Store *store, const json_t *entry, Error *reterr) {
        cleanup_with(image_config_freep) ImageConfig *config = NULL;
        cleanup_json json_t *record = NULL;
        const char *manifest = json_text(entry, "digest"), *digest = stored_image_digest(entry);
        char path[PATH_SIZE];
        int r;

        if (!manifest || !digest || !digest_is_valid(manifest) || !digest_is_valid(digest))
                return 0;
        (void) snprintf(path, sizeof(path), "records/%.64s.json", digest_hex(digest));
        r = read_old_record(store, path, "volumes", &record);
        if (r <= 0)
                return r;
        r = read_config(store, manifest, &config);
        if (r < 0)
                return is_skipped(r) ? 0 : r;
        if (json_object_set_new(record, "volumes", document_string_array(config->volumes)) < 0)
                return -ENOMEM;
        return write_completed_record(store, path, record, reterr);
}

int complete_records(Store *store, Error *reterr) {
        cleanup_json json_t *index = NULL;
        const json_t *entry;
        size_t i;
        int r = stored_images_read_index(store, &index, reterr);

        json_array_foreach(json_object_get(index, "manifests"), i, entry) {
                if (r >= 0)
                        r = complete_record(store, entry, reterr);
        }
        return r;
}
