/* SPDX-License-Identifier: Apache-2.0 */

/* Pulls an image. This process reads the image's documents and directs the others: fetchers
 * (fetcher-pool.c) have access only to the network; a process for each layer (layer-workers.c)
 * unpacks the data that arrives. The bytes of a blob pass through a file: the fetcher writes it,
 * the unpacker reads it while it grows, and a byte in a pipe announces more data. The file is
 * trusted only when its digest is correct. */

#include "agent/image-helper/pull/pull.h"

#include "agent/image-helper/delta/image-delta.h"
#include "agent/image-helper/process/image-confine.h"
#include "agent/image-helper/process/safe-message.h"
#include "agent/image-helper/pull/docker-configs.h"
#include "agent/image-helper/pull/pull-private.h"
#include "agent/image-helper/registry/document-fetch.h"
#include "agent/image-helper/signature/signature-gate.h"
#include "agent/image-helper/signature/signature-store.h"
#include "agent/image-helper/unpack/unpack.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/pipe.h"
#include "common/text.h"

#include <poll.h>
#include <sys/stat.h>

enum {
        FETCHERS = 4
};

#define TICK_USEC (500 * USEC_PER_MSEC)

/* ---- documents ---- */

static const PulledDocument *find_document(const RegistryPull *pull, const char *digest) {
        for (size_t i = 0; i < pull->n_documents; i++)
                if (streq(pull->documents[i].digest, digest))
                        return &pull->documents[i];
        return NULL;
}

static int add_pulled_document_take(RegistryPull *pull, const char *digest, char *text,
                                    size_t length) {
        if (pull->n_documents == PULLED_DOCUMENTS_MAX) {
                free(text);
                return -E2BIG;
        }
        pull->documents[pull->n_documents] = (PulledDocument){ .text = text, .length = length };
        memcpy(pull->documents[pull->n_documents++].digest, digest, DIGEST_SIZE);
        return 0;
}

/* If a part of the image needed a pull Secret, the whole image does. */
static void note_secret(RegistryPull *pull, int secret) {
        if (pull->secret < 0)
                pull->secret = secret;
}

/* The pull may also use images of its repository whose manifest the registry sends. */
static int fetch_image_document(RegistryPull *pull, RegistryObjectKind kind, const char *digest,
                                size_t max_bytes, FetchedDocument *ret, Error *reterr) {
        int r = document_fetch(&pull->fetchers, kind, digest, max_bytes, &pull->endpoint, ret,
                               reterr);

        if (r >= 0)
                r = fetched_document_check(ret, digest, reterr);
        if (r >= 0)
                store_view_admit(pull->view, digest);
        return r;
}

/* Takes the document from memory, from the store or from the registry. */
static int provide_document(RegistryPull *pull, const CatalogBlob *blob, size_t max_bytes,
                            Error *reterr) {
        bool is_config = blob == &pull->image.config;
        FetchedDocument document = { .secret = -1 };
        int r;

        if (find_document(pull, blob->digest))
                return 0;
        if (blob->size > max_bytes)
                return error_setf(reterr, EFBIG, "'%s' is larger than %zu bytes", blob->digest,
                                  max_bytes);
        r = store_read_blob(pull->store, blob->digest, max_bytes, &document.text, &document.length);
        if (r >= 0)
                r = fetched_document_check(&document, blob->digest, reterr);
        else
                r = fetch_image_document(pull, is_config ? REGISTRY_BLOB : REGISTRY_MANIFEST,
                                         blob->digest, (size_t) blob->size, &document, reterr);
        note_secret(pull, document.secret);
        if (r < 0) {
                fetched_document_done(&document);
                return r;
        }
        return add_pulled_document_take(pull, blob->digest, document.text, document.length);
}

static int read_pulled_document(void *userdata, const CatalogBlob *blob, size_t max_bytes,
                                char **ret, size_t *ret_length, Error *reterr) {
        RegistryPull *pull = userdata;
        const PulledDocument *document;
        int r = provide_document(pull, blob, max_bytes, reterr);

        if (r < 0)
                return r;
        document = find_document(pull, blob->digest);
        *ret = calloc(1, document->length + 1);
        if (!*ret)
                return -ENOMEM;
        memcpy(*ret, document->text, document->length);
        *ret_length = document->length;
        return 0;
}

/* The type of a document: its own mediaType has precedence over the server's. */
static int find_document_type(const PulledDocument *document, const char *media_type,
                              char ret[static 128], Error *reterr) {
        cleanup_json json_t *json = NULL;
        const char *own;
        int r = image_manifest_parse(document->text, document->length, NULL, &json, reterr);

        if (r < 0)
                return r;
        own = json_text(json, "mediaType");
        if (own && media_type_is_manifest(media_type) != media_type_is_manifest(own) &&
            media_type_is_index(media_type) != media_type_is_index(own))
                return error_setf(reterr, EBADMSG,
                                  "its mediaType is '%.100s', the registry's Content-Type '%.100s'",
                                  own, media_type);
        (void) snprintf(ret, 128, "%.127s", own ? own : media_type);
        if (media_type_is_schema_1(ret))
                return document_refuse_schema_1(reterr);
        if (!media_type_is_manifest(ret) && !media_type_is_index(ret))
                return error_setf(reterr, ENOTSUP, "its type '%.120s' is unknown", ret);
        return 0;
}

/* Requests the document that the reference names, and stores its digest. */
static int resolve_pull_reference(RegistryPull *pull, OciDescriptor *ret,
                                  char media_type[static 128], Error *reterr) {
        const ImageReference *reference = pull->reference;
        const char *name = reference->digest ? reference->digest : reference->tag;
        FetchedDocument document = { 0 };
        int r;

        r = document_fetch(&pull->fetchers, REGISTRY_MANIFEST, name, MANIFEST_SIZE_MAX,
                           &pull->endpoint, &document, reterr);
        if (r < 0)
                return r;
        pull->secret = document.secret;
        digest_of(document.text, document.length, ret->digest);
        if (reference->digest && !streq(ret->digest, reference->digest)) {
                fetched_document_done(&document);
                return error_setf(reterr, EBADMSG,
                                  "the registry sent a different image: its digest is "
                                  "%s",
                                  ret->digest);
        }
        store_view_admit(pull->view, ret->digest);
        ret->media_type = media_type;
        ret->size = document.length;
        r = add_pulled_document_take(pull, ret->digest, document.text, document.length);
        if (r < 0)
                return r;
        return find_document_type(find_document(pull, ret->digest), document.media_type, media_type,
                                  reterr);
}

static int read_pulled_image(RegistryPull *pull, const ImageProvider *source, Error *reterr) {
        OciDescriptor descriptor = { 0 };
        char media_type[128];
        int r;

        r = resolve_pull_reference(pull, &descriptor, media_type, reterr);
        if (r < 0)
                return r;
        memcpy(pull->image.digest, descriptor.digest, DIGEST_SIZE);
        r = media_type_is_index(media_type)
                    ? image_manifest_read_index(source, &descriptor, &pull->image, reterr)
                    : image_manifest_read(source, &descriptor, &pull->image, reterr);
        if (r > 0)
                return error_setf(reterr, ENOTSUP, "it is not an image of a container");
        return r;
}

/* ---- images of the store that are requested from the registry ---- */

/* 1: the registry has sent the manifest. A problem is not a failure: the layers are fetched then.
 */
static int ask_for_stored_image(RegistryPull *pull, const char *digest) {
        cleanup_with(fetched_document_done) FetchedDocument document = { 0 };
        int r;

        pull->n_asked++;
        r = fetch_image_document(pull, REGISTRY_MANIFEST, digest, MANIFEST_SIZE_MAX, &document,
                                 NULL);
        return r == -ENOMEM ? r : r >= 0;
}

int pull_ask_for_image_with(RegistryPull *pull, const char *chain_id, const char *blob) {
        int r = 0;

        while (r == 0 && pull->n_asked < STORED_IMAGES_ASKED_MAX) {
                const char *digest = store_view_take_candidate(pull->view, chain_id, blob);

                if (!digest)
                        return 0;
                r = ask_for_stored_image(pull, digest);
        }
        return r;
}

/* The highest present layer is sufficient: its image has those below as well. */
static int find_missing_layers(RegistryPull *pull, bool *missing) {
        const ImageConfig *settings = pull->image.settings;
        cleanup_free char(*chain_ids)[DIGEST_SIZE] =
                calloc(MAX(settings->n_diff_ids, (size_t) 1), sizeof(*chain_ids));
        int r = chain_ids ? unpack_find_missing(&pull->image, pull->store, missing) : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < settings->n_diff_ids; i++)
                digest_chain(i > 0 ? chain_ids[i - 1] : NULL, settings->diff_ids[i], chain_ids[i]);
        for (size_t i = settings->n_diff_ids; r == 0 && i > 0 && missing[i - 1]; i--)
                r = pull_ask_for_image_with(pull, chain_ids[i - 1], NULL);
        return r > 0 ? unpack_find_missing(&pull->image, pull->store, missing) : r;
}

/* ---- blobs ---- */

/* The next blobs that have not been requested yet, in the order in which they are unpacked. */
static int request_layer_blobs(RegistryPull *pull, Error *reterr) {
        for (size_t i = 0; i < pull->n_blobs && pull->n_requested < FETCHERS; i++) {
                const CatalogBlob *layer = catalog_image_blob(&pull->image, i);
                LayerDownload *blob = &pull->blobs[i];
                FetchRequest request = { .id = fetch_id(pull->attempt, i),
                                         .kind = REGISTRY_BLOB,
                                         .first = pull->endpoint,
                                         .from = blob->file.length,
                                         .size_max = layer->size };
                int r;

                if (!blob->is_wanted || blob->is_requested || blob->is_complete)
                        continue;
                (void) snprintf(request.name, sizeof(request.name), "%s", layer->digest);
                r = fetcher_pool_submit(&pull->fetchers, &request, blob->file.fd,
                                        blob->wakeup_write_fd);
                if (r < 0)
                        return error_prefixf(reterr, r, "cannot request a layer");
                blob->wakeup_write_fd = close_fd(blob->wakeup_write_fd);
                blob->is_requested = true;
                blob->attempt = pull->attempt;
                pull->n_requested++;
        }
        return 0;
}

static uint64_t downloaded_bytes(const LayerDownload *blob) {
        struct stat st;

        return fstat(blob->file.fd, &st) < 0 ? 0 : (uint64_t) st.st_size;
}

/* A blob has been fetched, or has failed. */
static int take_layer_reply(RegistryPull *pull, size_t i, const FetchReply *reply, Error *reterr) {
        const CatalogBlob *layer = catalog_image_blob(&pull->image, i);
        LayerDownload *blob = &pull->blobs[i];

        if (reply->r < 0)
                return fetch_reply_to_error(reply, reterr);
        note_secret(pull, reply->secret);
        if (downloaded_bytes(blob) != layer->size) {
                store_discard_blob(pull->store, layer->digest, &blob->file);
                return error_setf(reterr, EBADMSG,
                                  "layer '%s' is damaged: the registry sent %llu "
                                  "bytes of %llu",
                                  layer->digest, (unsigned long long) downloaded_bytes(blob),
                                  (unsigned long long) layer->size);
        }
        blob->is_complete = true;
        return 0;
}

/* Whether another attempt without the delta may help. */
static bool is_fault_of_delta(const RegistryPull *pull, size_t i, int r) {
        static const int others[] = { ENOMEM, ENOSPC, EDQUOT, EHOSTUNREACH, ECANCELED };

        for (size_t k = 0; k < N_ELEMENTS(others); k++)
                if (r == -others[k])
                        return false;
        return r < 0 && pull->image.delta && pull->image.delta[i].digest[0];
}

static int on_fetch_reply(void *userdata, Error *reterr) {
        RegistryPull *pull = userdata;
        FetchReply reply;
        size_t i;
        int r = fetcher_pool_wait(&pull->fetchers, &reply, reterr);

        if (r < 0)
                return r;
        i = fetch_id_layer(reply.id);
        if (i == FETCH_DOCUMENT)
                return 0; /* it was given up */
        if (i >= pull->n_blobs || pull->n_requested == 0)
                return -EPROTO;
        pull->n_requested--;
        /* A reply for a delta that was given up; its file has been closed. */
        if (reply.id != fetch_id(pull->blobs[i].attempt, i))
                return request_layer_blobs(pull, reterr);
        if (!pull->blobs[i].is_requested)
                return -EPROTO;
        r = take_layer_reply(pull, i, &reply, reterr);
        if (r < 0) {
                pull->has_failed_deltas |= is_fault_of_delta(pull, i, r);
                return r;
        }
        return request_layer_blobs(pull, reterr);
}

void pull_print_message(const char *level, const char *text) {
        cleanup_json json_t *message = json_pack("{s:s}", level, text);
        cleanup_free char *line = message ? json_to_text(message, JSON_COMPACT) : NULL;

        if (line)
                (void) puts(line);
        (void) fflush(stdout);
}

/* The reader of a blob waits until the last writer has closed the pipe, so the processes of layers
 * must not hold its write end. */
static void close_wakeup_pipes(void *userdata) {
        RegistryPull *pull = userdata;

        for (size_t i = 0; i < pull->n_blobs; i++)
                pull->blobs[i].wakeup_write_fd = close_fd(pull->blobs[i].wakeup_write_fd);
}

static void print_progress(const RegistryPull *pull) {
        uint64_t done = 0, total = 0;

        if (!pull->settings->progress)
                return;
        for (size_t i = 0; i < pull->n_blobs; i++) {
                if (!pull->blobs[i].is_wanted)
                        continue;
                total += catalog_image_blob(&pull->image, i)->size;
                done += downloaded_bytes(&pull->blobs[i]);
        }
        (void) printf("{\"done\":%llu,\"total\":%llu}\n", (unsigned long long) done,
                      (unsigned long long) total);
        (void) fflush(stdout);
}

/* This may be called without new progress, because many layers may end in a row. */
static int on_pull_tick(void *userdata, Error *reterr) {
        RegistryPull *pull = userdata;
        uint64_t now = now_boottime_usec();

        if (now < pull->next_tick)
                return 0;
        pull->next_tick = now + TICK_USEC;
        print_progress(pull);
        return fetcher_pool_check(&pull->fetchers, reterr);
}

/* The fetcher of the blob has closed the pipe, but has not replied yet. */
static bool is_without_fetcher(const LayerDownload *blob) {
        struct pollfd fd = { .fd = blob->wakeup_read_fd };

        return blob->is_requested && !blob->is_complete && poll(&fd, 1, 0) > 0 &&
               fd.revents & POLLHUP;
}

/* An unpacker sees a layer that ends early only as truncated. The fetcher's reply contains the
 * cause, unless the fetcher has died: then its pipe is closed before its end can be noticed. */
static int find_cause_at_fetcher(RegistryPull *pull, const LayerDownload *blob, Error *reterr) {
        int r = 0;

        while (r >= 0 && is_without_fetcher(blob))
                r = on_fetch_reply(pull, reterr);
        return r;
}

/* If a blob was read completely and its digest is wrong, waiting does not help. */
static int on_layer_finished(void *userdata, size_t i, int r, Error *reterr) {
        RegistryPull *pull = userdata;
        const CatalogBlob *layer = catalog_image_blob(&pull->image, i);
        LayerDownload *blob = &pull->blobs[i];
        cleanup_error Error cause = ERROR_NULL;
        int q = r < 0 ? find_cause_at_fetcher(pull, blob, &cause) : 0;
        bool is_whole = blob->is_complete && downloaded_bytes(blob) == layer->size;

        if (q < 0) {
                error_move(reterr, &cause);
                r = q;
        }
        pull->has_failed_deltas |= is_fault_of_delta(pull, i, r);
        blob->is_unpacked = r >= 0;
        if (r < 0 && r != -ENOSPC && r != -EDQUOT && r != -ENOMEM && is_whole)
                store_discard_blob(pull->store, layer->digest, &blob->file);
        return r;
}

/* The store keeps layers, but not deltas. The blob of a layer that another pull has published in
 * the meantime may be incomplete. */
static int keep_layer_blob(RegistryPull *pull, size_t i, Error *reterr) {
        const CatalogBlob *layer = catalog_image_blob(&pull->image, i);
        const LayerDownload *blob = &pull->blobs[i];

        if (layer == &pull->image.layers[i])
                return blob->is_unpacked
                               ? store_commit_blob(pull->store, layer->digest, &blob->file, reterr)
                               : 0;
        store_discard_blob(pull->store, layer->digest, &pull->blobs[i].file);
        return 0;
}

/* Records which pods may use the image without contacting the registry. This is known only now that
 * the registry, or the visible part of the store, has provided the whole image; and it must be on
 * disk before the image's record, because without it every pod could use the image. */
static int record_pull_access(RegistryPull *pull, Error *reterr) {
        cleanup_free char *repository = NULL;
        const json_t *hash = pull->secret < 0 ? NULL
                                              : json_array_get(pull->settings->auth_hashes,
                                                               (size_t) pull->secret);

        repository = text_format("%s/%s", pull->reference->registry, pull->reference->repository);
        if (!repository)
                return -ENOMEM;
        return verified_write(
                pull->store, pull->image.digest,
                &(VerifiedUpdate){
                        .repository = repository,
                        .secret_hash = pull->secret < 0 ? NULL : strna(json_string_value(hash)) },
                reterr);
}

/* The layers have been synced, and the blobs with them. */
static int on_layers_unpacked(void *userdata, Error *reterr) {
        RegistryPull *pull = userdata;
        int r = 0;

        for (size_t i = 0; i < pull->n_blobs; i++) {
                if (pull->blobs[i].is_wanted)
                        r = keep_layer_blob(pull, i, reterr);
                if (r < 0)
                        return r;
        }
        return record_pull_access(pull, reterr);
}

static int open_pulled_layer(void *userdata, size_t i, ByteStream **ret, Error *reterr) {
        const RegistryPull *pull = userdata;
        const LayerDownload *blob = &pull->blobs[i];

        return byte_stream_new_blob(blob->file.fd, catalog_image_blob(&pull->image, i)->size,
                                    blob->is_complete ? -EBADF : blob->wakeup_read_fd, ret);
}

static void layer_download_done(LayerDownload *blob) {
        close_fd(blob->file.fd);
        close_fd(blob->wakeup_write_fd);
        close_fd(blob->wakeup_read_fd);
        *blob = (LayerDownload){ .file = { .fd = -EBADF },
                                 .wakeup_write_fd = -EBADF,
                                 .wakeup_read_fd = -EBADF };
}

static int open_layer_download(RegistryPull *pull, size_t i, Error *reterr) {
        const CatalogBlob *layer = catalog_image_blob(&pull->image, i);
        LayerDownload *blob = &pull->blobs[i];
        int pipes[2], r;

        blob->is_wanted = true;
        r = store_open_blob(pull->store,
                            &(StoreBlobName){ .digest = layer->digest,
                                              .size = layer->size,
                                              .number = i,
                                              .is_temporary = layer != &pull->image.layers[i] },
                            &blob->file, reterr);
        if (r < 0)
                return r;
        blob->is_complete = blob->file.length == layer->size;
        if (blob->is_complete)
                return 0;
        r = pipe_open(PIPE_WRITE_END, pipes);
        if (r < 0)
                return r;
        blob->wakeup_read_fd = pipes[PIPE_READ_END];
        blob->wakeup_write_fd = pipes[PIPE_WRITE_END];
        return 0;
}

static int open_layer_downloads(RegistryPull *pull, const bool *missing, Error *reterr) {
        size_t n = pull->image.settings->n_diff_ids;
        int r = 0;

        pull->blobs = calloc(n, sizeof(*pull->blobs));
        if (!pull->blobs)
                return -ENOMEM;
        pull->n_blobs = n;
        for (size_t i = 0; i < n; i++)
                pull->blobs[i] = (LayerDownload){ .file = { .fd = -EBADF },
                                                  .wakeup_write_fd = -EBADF,
                                                  .wakeup_read_fd = -EBADF };
        for (size_t i = 0; i < n; i++) {
                if (missing[i])
                        r = open_layer_download(pull, i, reterr);
                else
                        store_discard_part(pull->store, pull->image.layers[i].digest);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int prepare_layer_downloads(RegistryPull *pull, const char *reference, Error *reterr) {
        cleanup_free bool *missing =
                calloc(MAX(pull->image.settings->n_diff_ids, (size_t) 1), sizeof(*missing));
        int r;

        if (!missing)
                return -ENOMEM;
        r = find_missing_layers(pull, missing);
        if (r < 0)
                return r;
        r = pull_find_delta(pull, reference, missing);
        if (r < 0)
                return r;
        return open_layer_downloads(pull, missing, reterr);
}

/* Fetched data of the layers themselves is kept; a fetcher that is still busy with the delta
 * continues, but its reply is ignored. */
static int replace_delta_downloads(RegistryPull *pull, Error *reterr) {
        int r = 0;

        pull->attempt++;
        for (size_t i = 0; i < pull->n_blobs; i++)
                if (pull->blobs[i].is_wanted && pull->image.delta[i].digest[0]) {
                        store_discard_blob(pull->store, pull->image.delta[i].digest,
                                           &pull->blobs[i].file);
                        layer_download_done(&pull->blobs[i]);
                        pull->blobs[i].is_wanted = true;
                        pull->blobs[i].attempt = pull->attempt;
                }
        catalog_image_drop_delta(&pull->image);
        store_discard_work(pull->store);
        for (size_t i = 0; r >= 0 && i < pull->n_blobs; i++)
                if (pull->blobs[i].is_wanted && pull->blobs[i].file.fd < 0)
                        r = open_layer_download(pull, i, reterr);
        return r;
}

/* ---- the whole pull ---- */

static void registry_pull_done(RegistryPull *pull) {
        fetcher_pool_done(&pull->fetchers);
        for (size_t i = 0; i < pull->n_blobs; i++)
                layer_download_done(&pull->blobs[i]);
        free(pull->blobs);
        for (size_t i = 0; i < pull->n_documents; i++)
                free(pull->documents[i].text);
        catalog_image_done(&pull->image);
        store_restrict(pull->store, NULL);
        store_view_free(pull->view);
}

static int unpack_pulled_image(RegistryPull *pull, const ImageProvider *source, char *const *names,
                               Error *reterr) {
        LayerDownloadFeed feed = { .fd = pull->fetchers.fd,
                                   .on_worker = close_wakeup_pipes,
                                   .on_readable = on_fetch_reply,
                                   .on_tick = on_pull_tick,
                                   .on_layer = on_layer_finished,
                                   .on_unpacked = on_layers_unpacked,
                                   .userdata = pull };
        int r = request_layer_blobs(pull, reterr);

        return r < 0 ? r : unpack_image(&pull->image, source, &feed, pull->store, names, reterr);
}

/* The delta is untrusted and optional, so the layers are pulled if there is any problem with it. */
static int unpack_without_delta(RegistryPull *pull, const ImageProvider *source, char *const *names,
                                int why, const Error *error, Error *reterr) {
        cleanup_free char *message = format_safe_message(error, why), *text = NULL;
        int r;

        text = message ? text_format("the delta cannot be applied, pulling whole layers: %s",
                                     message)
                       : NULL;
        if (!text)
                return text = NULL, -ENOMEM;
        pull_print_message("warning", text);
        pull->has_failed_deltas = false;
        r = replace_delta_downloads(pull, reterr);
        return r < 0 ? r : unpack_pulled_image(pull, source, names, reterr);
}

static int run_image_pull(RegistryPull *pull, const char *reference, Error *reterr) {
        ImageProvider source = { .read = read_pulled_document,
                                 .open_layer = open_pulled_layer,
                                 .userdata = pull };
        char *names[] = { (char *) (uintptr_t) reference, NULL };
        cleanup_error Error error = ERROR_NULL;
        int r;

        r = read_pulled_image(pull, &source, reterr);
        if (r < 0)
                return r;
        r = signature_gate_pass_pulled(pull->settings, &pull->image,
                                       &(PulledFrom){ &pull->fetchers, pull->endpoint },
                                       pull->store, reterr);
        if (r < 0)
                return r;
        r = prepare_layer_downloads(pull, reference, reterr);
        if (r < 0)
                return r;
        r = unpack_pulled_image(pull, &source, names, &error);
        if (r < 0 && pull->has_failed_deltas)
                r = unpack_without_delta(pull, &source, names, r, &error, reterr);
        else if (r < 0)
                error_move(reterr, &error);
        if (r < 0)
                return r;
        (void) printf("{\"digest\":\"%s\"}\n", pull->image.digest);
        return 0;
}

static int restrict_store(RegistryPull *pull, Error *reterr) {
        int r = store_view_new(store_fd(pull->store),
                               &(StoreViewer){ .registry = pull->reference->registry,
                                               .repository = pull->reference->repository,
                                               .hashes = pull->settings->auth_hashes,
                                               .access = pull->settings->access },
                               &pull->view);

        if (r < 0)
                return error_prefixf(reterr, r, "image store");
        store_restrict(pull->store, pull->view);
        return 0;
}

int pull_image(const char *reference, const PullSettings *settings, Store *store, Error *reterr) {
        cleanup_with(image_reference_done) ImageReference parsed = { 0 };
        cleanup_with(endpoints_done) Endpoints endpoints = { 0 };
        cleanup_with(registry_pull_done) RegistryPull pull = { .store = store,
                                                               .reference = &parsed,
                                                               .fetchers = { .fd = -EBADF },
                                                               .settings = settings };
        int r;

        r = pull_reference_parse(reference, &parsed, reterr);
        if (r < 0)
                return r;
        r = endpoints_find(&parsed, settings, &endpoints, reterr);
        if (r < 0)
                return r;
        r = fetcher_pool_start(&endpoints, FETCHERS,
                               (int[]){ store_fd(store), store_tmp_fd(store), -EBADF },
                               &pull.fetchers, reterr);
        if (r < 0)
                return r;
        r = confine_parser(true, store_fd(store), reterr);
        if (r < 0)
                return r;
        pull_secrets_print_problems(settings->pull_secrets);
        r = restrict_store(&pull, reterr);
        if (r < 0)
                return r;
        return run_image_pull(&pull, reference, reterr);
}
