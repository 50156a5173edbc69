/* SPDX-License-Identifier: Apache-2.0 */

/* The signature is verified before anything is parsed, and the digest of every file before the file
 * is offered to the agent. Content that is already in use, by its digest, is not fetched again;
 * interrupted downloads are resumed. Keys and the highest number are stored separately
 * (source-trust.h). */

#include "agent/image-helper/source/source-index-update.h"

#include "agent/image-helper/source/index-platforms.h"
#include "agent/image-helper/source/source-trust.h"
#include "agent/model/source-index.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json-text.h"

#include <unistd.h>

enum {
        SIBLING_SIZE = sizeof("sha256/") + SHA256_HEX_SIZE
};

/* A verified index and its metadata. */
typedef struct IndexUpdate {
        SourceTransfer *transfer;
        const SourceSettings *settings;
        SourceStore *store;
        json_t *in_use;    /* source.json of "current"; NULL: nothing is in use */
        SourceIndex known; /* the index of "current"; empty: there is none */
        SourceBody body, signature;
        char sha256[SHA256_HEX_SIZE]; /* hash of the index */
        SourceTrust trust;
        SourceIndex index;
} IndexUpdate;

static void index_update_done(IndexUpdate *update) {
        json_decref(update->in_use);
        source_index_done(&update->known);
        source_body_done(&update->body);
        source_body_done(&update->signature);
        source_trust_done(&update->trust);
        source_index_done(&update->index);
}

/* ---- manifests in use ---- */

/* Whether an index was checked against the fleet and the keys in the current configuration. */
static bool is_judged_by_configuration(const IndexUpdate *update, const json_t *state) {
        return streq_ptr(json_text(state, "fleet"), update->settings->fleet) &&
               streq_ptr(json_text(state, "configuredKeys"), update->trust.configured);
}

/* The index in use lists the files whose contents are present. If it is damaged, everything is
 * fetched. */
static void read_known_index(IndexUpdate *update) {
        cleanup_free char *text = NULL;
        size_t length;

        source_index_done(&update->known);
        if (source_store_read(update->store, false, "index.json", SOURCE_INDEX_BYTES_MAX, &text,
                              &length) >= 0)
                (void) source_index_parse(text, length, update->settings->file_max, &update->known,
                                          NULL);
}

/* An earlier version accepted the index without reading which images it names. */
static bool has_unread_images(IndexUpdate *update, const json_t *known) {
        if (!known || json_object_get(known, "images"))
                return false;
        read_known_index(update);
        return update->known.images.n > 0;
}

/* ---- the index ---- */

static int check_index(IndexUpdate *update, Error *reterr) {
        const SourceIndexKnown known = {
                .fleet = update->trust.number > 0 ? update->settings->fleet : NULL,
                .number = update->trust.number,
                .sha256 = update->trust.sha256,
        };
        int r = source_index_verify(update->body.data, update->body.length, update->signature.data,
                                    update->signature.length, update->trust.keys, reterr);

        if (r < 0)
                return r;
        r = source_index_parse(update->body.data, update->body.length, update->settings->file_max,
                               &update->index, reterr);
        if (r < 0)
                return r;
        r = source_index_check(&update->index, update->sha256, &known, update->settings->fleet,
                               now_realtime_usec(), reterr);
        if (r < 0)
                return r;
        return source_trust_advance(&update->trust, update->store, &update->index, update->sha256,
                                    reterr);
}

/* A node from which newer indexes are withheld detects and reports this when its index expires. */
static int check_known_expiry(const json_t *state, Error *reterr) {
        const char *expires = strna(json_text(state, "expires"));
        uint64_t time, now = now_realtime_usec();
        char clock[CLOCK_DESCRIPTION_SIZE];

        if (parse_rfc3339(expires, &time) < 0 || time > now)
                return 0;
        return error_setf(reterr, ESTALE,
                          "the index %lld has expired at %s, and there is no later one; %s",
                          (long long) json_integer_value(json_object_get(state, "number")), expires,
                          clock_describe(clock, now));
}

/* ---- its files ---- */

static bool is_part_of_index(const char *sha256, const void *userdata) {
        const SourceIndex *index = userdata;

        for (size_t i = 0; i < index->files.n; i++)
                if (streq(index->files.items[i].sha256, sha256))
                        return true;
        return false;
}

static bool has_digest(const char *data, size_t length, const SourceIndexFile *file) {
        char sha256[SHA256_HEX_SIZE];

        sha256_hex(data, length, sha256);
        return length == file->size && streq(sha256, file->sha256);
}

/* 1: it is present. */
static int add_known_file(const IndexUpdate *update, const SourceIndexFile *file, Error *reterr) {
        for (size_t i = 0; i < update->known.files.n; i++) {
                const SourceIndexFile *known = &update->known.files.items[i];
                cleanup_free char *data = NULL;
                size_t length;
                int r;

                if (!streq(known->sha256, file->sha256) ||
                    source_store_read(update->store, true, known->name, file->size, &data,
                                      &length) < 0 ||
                    !has_digest(data, length, file))
                        continue;
                r = source_store_add(update->store, true, file->name, data, length, reterr);
                return r < 0 ? r : 1;
        }
        return 0;
}

static int add_downloaded_file(const IndexUpdate *update, const SourceIndexFile *file, int fd,
                               Error *reterr) {
        cleanup_free char *data = NULL;
        size_t length = 0;
        int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : read_stream(fd, file->size, &data, &length);

        if (r < 0)
                return r;
        if (!has_digest(data, length, file)) {
                source_store_remove_part(update->store, file->sha256);
                return error_setf(reterr, EBADMSG, "does not match its digest in the index");
        }
        return source_store_add(update->store, true, file->name, data, length, reterr);
}

static int download_index_file(const IndexUpdate *update, const SourceIndexFile *file,
                               Error *reterr) {
        cleanup_close int fd = source_store_open_part(update->store, file->sha256, reterr);
        char sibling[SIBLING_SIZE];
        int r;

        if (fd < 0)
                return fd;
        (void) snprintf(sibling, sizeof(sibling), "sha256/%s", file->sha256);
        r = source_transfer_download(update->transfer, sibling, file->size, fd, reterr);
        return r < 0 ? r : add_downloaded_file(update, file, fd, reterr);
}

static int add_index_files(const IndexUpdate *update, Error *reterr) {
        for (size_t i = 0; i < update->index.files.n; i++) {
                const SourceIndexFile *file = &update->index.files.items[i];
                int r = add_known_file(update, file, reterr);

                if (r == 0)
                        r = download_index_file(update, file, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "%s", file->name);
        }
        return 0;
}

/* ---- the offer ---- */

static json_t *make_index_state(const IndexUpdate *update) {
        int64_t deadline = update->index.progress_deadline_seconds;
        char expires[RFC3339_SIZE], fetched[RFC3339_SIZE];

        format_rfc3339(expires, update->index.expires);
        return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:o, s:b, s:o, s:I, s:o*}",
                         "url", update->settings->url, "etag", update->body.etag, "sha256",
                         update->sha256, "fetched", format_rfc3339(fetched, now_realtime_usec()),
                         "fleet", update->index.fleet, "number", (json_int_t) update->index.number,
                         "expires", expires, "configuredKeys", update->trust.configured, "keys",
                         document_string_array(update->trust.keys), "hasTrust", true, "summary",
                         json_sprintf("index %lld of the fleet %s, which expires at %s",
                                      (long long) update->index.number, update->index.fleet,
                                      expires),
                         "images", (json_int_t) update->index.images.n, "progressDeadlineSeconds",
                         deadline > 0 ? json_integer(deadline) : NULL);
}

/* The data that the agent needs about the images. */
static int add_index_images(const IndexUpdate *update, Error *reterr) {
        cleanup_json json_t *images = NULL;
        cleanup_free char *text = NULL;

        if (update->index.images.n == 0)
                return 0;
        images = source_images_to_json(&update->index);
        text = images ? json_to_text(images, JSON_COMPACT) : NULL;
        return text ? source_store_add(update->store, false, SOURCE_IMAGES_NAME, text, strlen(text),
                                       reterr)
                    : -ENOMEM;
}

static int offer_index(IndexUpdate *update, Error *reterr) {
        cleanup_json json_t *state = make_index_state(update);
        int r = state ? source_store_begin(update->store, reterr) : -ENOMEM;

        if (r < 0)
                return r;
        source_store_sweep_parts(update->store, is_part_of_index, &update->index);
        r = add_index_files(update, reterr);
        if (r < 0)
                return r;
        r = source_store_add(update->store, false, "index.json", update->body.data,
                             update->body.length, reterr);
        if (r < 0)
                return r;
        r = add_index_images(update, reterr);
        if (r < 0)
                return r;
        r = source_store_finish(update->store, state, reterr);
        if (r < 0)
                return r;
        source_store_sweep_parts(update->store, is_part_of_index, &(SourceIndex){ 0 });
        return 0;
}

/* Keeps the known content, with its current ETag. */
static int keep_index(const IndexUpdate *update, const char *which, json_t *known, Error *reterr) {
        if (!update->body.is_unchanged && !streq_ptr(json_text(known, "etag"), update->body.etag)) {
                (void) json_object_set_new(known, "etag", json_string(update->body.etag));
                (void) json_object_set_new(known, "url", json_string(update->settings->url));
                (void) source_store_write_state(update->store, which, known);
        }
        return update->settings->was_refused ? 0 : check_known_expiry(known, reterr);
}

static int take_index(IndexUpdate *update, Error *reterr) {
        int r = source_transfer_get(update->transfer, ".sig", NULL, SOURCE_SIGNATURE_BYTES_MAX,
                                    &update->signature, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "the signature of the index");
        r = check_index(update, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "the index");
        read_known_index(update);
        return offer_index(update, reterr);
}

int update_index_source(SourceTransfer *transfer, const SourceSettings *settings,
                        SourceStore *store, Error *reterr) {
        cleanup_with(index_update_done)
                IndexUpdate update = { .transfer = transfer, .settings = settings, .store = store };
        const char *which = settings->was_refused ? "next" : "current";
        cleanup_json json_t *known = source_store_read_state(store, which);
        bool is_unchanged;
        int r;

        update.in_use = source_store_read_state(store, "current");
        r = source_trust_load(store, settings, update.in_use, &update.trust, reterr);
        if (r < 0)
                return r;
        if (!is_judged_by_configuration(&update, known) || has_unread_images(&update, known)) {
                json_decref(known);
                known = NULL;
        }
        r = source_transfer_get(transfer, "", known, SOURCE_INDEX_BYTES_MAX, &update.body, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "the index");
        if (!update.body.is_unchanged)
                sha256_hex(update.body.data, update.body.length, update.sha256);
        is_unchanged =
                update.body.is_unchanged || streq_ptr(json_text(known, "sha256"), update.sha256);
        r = is_unchanged ? keep_index(&update, which, known, reterr) : take_index(&update, reterr);
        if (r >= 0)
                print_source_result(transfer, is_unchanged ? "unchanged" : "new");
        return r;
}
