/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/store/record-writer.h"
#include "common/json-text.h"

#include "agent/image-helper/pull/document.h"

static json_t *record_number_array(const gid_t *groups, size_t n) {
        json_t *array = json_array();

        for (size_t i = 0; array && i < n; i++)
                (void) json_array_append_new(array, json_integer(groups[i]));
        return array;
}

/* Topmost first, as overlayfs expects them. */
static json_t *record_layer_array(char (*chain_ids)[DIGEST_SIZE], size_t n) {
        json_t *array = json_array();

        for (size_t i = n; array && i-- > 0;)
                (void) json_array_append_new(array, json_string(digest_hex(chain_ids[i])));
        return array;
}

int image_record_format(const CatalogImage *image, char (*chain_ids)[DIGEST_SIZE],
                        const ImageUser *account, const char *user_error, char **ret) {
        const ImageConfig *settings = image->settings;
        cleanup_json json_t *record = json_pack(
                "{s:i, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:s*, s:s*, s:s*, s:s*, s:I, s:I, s:I, "
                "s:o}",
                "version", 1, "userVersion", 2, "digest", image->digest, "layers",
                record_layer_array(chain_ids, settings->n_diff_ids), "entrypoint",
                document_string_array(settings->entrypoint), "command",
                document_string_array(settings->command), "env",
                document_string_array(settings->env), "volumes",
                document_string_array(settings->volumes), "workingDir", settings->working_dir,
                "stopSignal", settings->stop_signal, "user", settings->user, "userError",
                user_error, "uid", (json_int_t) account->uid, "gid", (json_int_t) account->gid,
                "size", (json_int_t) catalog_image_size(image), "groups",
                record_number_array(account->groups, account->n_groups));

        *ret = record ? json_to_text(record, JSON_COMPACT) : NULL;
        return *ret ? 0 : -ENOMEM;
}
