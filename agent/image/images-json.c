/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/images-json.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

static json_t *image_names_to_json(char *const *strv) {
        json_t *array = json_array();

        for (; array && strv && *strv; strv++)
                (void) json_array_append_new(array, json_string(*strv));
        return array;
}

static void add_image_json(const ImageInfo *info, void *userdata) {
        char time[RFC3339_SIZE];
        json_t *one =
                json_pack("{s:s, s:o, s:b, s:s*, s:s*}", "digest", info->digest, "names",
                          image_names_to_json(info->names), "inUse", info->is_in_use, "archive",
                          info->archive, "usedAt",
                          info->last_used_at ? format_rfc3339(time, info->last_used_at) : NULL);

        if (one && info->size_bytes > 0)
                (void) json_object_set_new(one, "sizeBytes",
                                           json_integer((json_int_t) info->size_bytes));
        (void) json_array_append_new(userdata, one);
}

static void add_archive_json(const ArchiveInfo *archive, void *userdata) {
        (void) json_array_append_new(
                userdata, json_pack("{s:s, s:I, s:I, s:b, s:b, s:s*}", "file", archive->file,
                                    "inode", (json_int_t) archive->inode, "mtimeNsec",
                                    (json_int_t) archive->mtime_nsec, "isRead", archive->is_read,
                                    "isTransient", archive->is_transient, "error", archive->error));
}

static void add_pull_json(const ImagePull *pull, void *userdata) {
        (void) json_array_append_new(
                userdata, json_pack("{s:s, s:I, s:I, s:b, s:s*, s:s*}", "reference",
                                    pull->reference, "doneBytes", (json_int_t) pull->done,
                                    "totalBytes", (json_int_t) pull->total, "isEnded",
                                    pull->is_ended, "error", pull->error, "digest", pull->digest));
}

char *images_to_json(ImageStore *store, const ManualPulls *manual_pulls) {
        cleanup_json json_t *images = json_array(), *archives = json_array();
        cleanup_json json_t *pulls = json_array(), *all = NULL;

        if (!images || !archives || !pulls ||
            image_store_foreach(store, add_image_json, images) < 0)
                return NULL;
        image_store_foreach_archive(store, add_archive_json, archives);
        manual_pulls_foreach(manual_pulls, add_pull_json, pulls);
        image_store_foreach_pull(store, add_pull_json, pulls);
        all = json_pack("{s:s, s:s, s:O, s:O, s:O}", "preload", image_store_preload_path(store),
                        "store", image_store_path(store), "images", images, "archives", archives,
                        "pulls", pulls);
        return all ? json_to_text(all, JSON_COMPACT) : NULL;
}
