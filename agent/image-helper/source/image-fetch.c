/* SPDX-License-Identifier: Apache-2.0 */

/* Blobs are copied to the store before they are unpacked, and hashed while they are read from
 * there, so changes at the source in the meantime cannot become part of an image. */

#include "agent/image-helper/source/image-fetch.h"

#include "agent/image-helper/delta/image-delta.h"
#include "agent/image-helper/process/image-confine.h"
#include "agent/image-helper/process/safe-message.h"
#include "agent/image-helper/pull/pull-private.h"
#include "agent/image-helper/signature/signature-gate.h"
#include "agent/image-helper/signature/signature-store.h"
#include "agent/image-helper/source/index-platforms.h"
#include "agent/image-helper/source/source-transfer.h"
#include "agent/image-helper/unpack/unpack.h"
#include "common/array.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/image-access.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
        BLOB_SIBLING_SIZE = sizeof("images/blobs/sha256/") + SHA256_HEX_SIZE
};

#define TICK_USEC (500 * USEC_PER_MSEC)

typedef struct FetchedBlob {
        bool is_missing; /* its layer is missing */
        bool is_unpacked;
        StoreBlob file;
} FetchedBlob;

typedef struct ImageFetch {
        const PullSettings *settings;
        SourceSettings source;
        SourceTransfer transfer;
        SourceIndex index;
        const SourceIndexPlatform *platform; /* the chosen platform of the image in the index */
        const SourceIndexDelta *delta;       /* the delta in use; NULL: none */
        Store *store;
        StoreView *view;
        PulledDocument *documents;
        size_t n_documents;
        CatalogImage image;
        FetchedBlob *blobs; /* one for each layer */
        size_t n_blobs;
        uint64_t total, done; /* bytes of the missing blobs */
        int arriving_fd;      /* the blob that is being fetched */
        uint64_t next_tick;
} ImageFetch;

/* ---- blobs ---- */

static bool is_same_blob(const SourceIndexBlob *blob, const char *digest, uint64_t size) {
        return blob->size == size && streq(blob->digest, digest);
}

static bool list_has_blob(const SourceIndexBlob *blobs, size_t n, const char *digest,
                          uint64_t size) {
        for (size_t i = 0; i < n; i++)
                if (is_same_blob(&blobs[i], digest, size))
                        return true;
        return false;
}

/* Whether the index lists this blob for the image. */
static bool is_named_blob(const ImageFetch *fetch, const char *digest, uint64_t size) {
        const SourceIndexPlatform *platform = fetch->platform;

        if (is_same_blob(&platform->manifest, digest, size) ||
            list_has_blob(platform->blobs.items, platform->blobs.n, digest, size))
                return true;
        for (size_t i = 0; i < platform->deltas.n; i++) {
                const SourceIndexDelta *delta = &platform->deltas.items[i];

                if (is_same_blob(&delta->manifest, digest, size) ||
                    list_has_blob(delta->blobs.items, delta->blobs.n, digest, size))
                        return true;
        }
        return false;
}

static void print_fetch_progress(void *userdata) {
        ImageFetch *fetch = userdata;
        uint64_t now = now_boottime_usec();
        struct stat st;

        if (!fetch->settings->progress || fetch->arriving_fd < 0 || now < fetch->next_tick ||
            fstat(fetch->arriving_fd, &st) < 0)
                return;
        fetch->next_tick = now + TICK_USEC;
        (void) printf("{\"done\":%llu,\"total\":%llu}\n",
                      (unsigned long long) (fetch->done + (uint64_t) st.st_size),
                      (unsigned long long) fetch->total);
        (void) fflush(stdout);
}

/* 'fd' may already contain the beginning of the blob. */
static int download_blob(ImageFetch *fetch, const char *digest, uint64_t size, int fd,
                         Error *reterr) {
        char sibling[BLOB_SIBLING_SIZE];
        struct stat st;
        int r;

        if (!is_named_blob(fetch, digest, size))
                return error_setf(reterr, EBADMSG,
                                  "the index does not name blob %s of %llu bytes for the image",
                                  digest, (unsigned long long) size);
        (void) snprintf(sibling, sizeof(sibling), "images/blobs/sha256/%.64s", digest_hex(digest));
        r = source_transfer_download(&fetch->transfer, sibling, size, fd, reterr);
        if (r < 0)
                return r;
        if (fstat(fd, &st) < 0 || (uint64_t) st.st_size != size)
                return error_setf(reterr, EBADMSG, "%s has %llu bytes, and not %llu", sibling,
                                  (unsigned long long) st.st_size, (unsigned long long) size);
        return 0;
}

/* ---- documents ---- */

static int read_fetched_document(ImageFetch *fetch, const char *digest, uint64_t size, char **ret,
                                 size_t *ret_length, Error *reterr) {
        cleanup_close int fd = memfd_create("document", MFD_CLOEXEC);
        char actual[DIGEST_SIZE];
        int r = fd < 0 ? -errno : download_blob(fetch, digest, size, fd, reterr);

        if (r < 0)
                return r;
        r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : read_stream(fd, size, ret, ret_length);
        if (r < 0)
                return r;
        digest_of(*ret, *ret_length, actual);
        if (streq(actual, digest))
                return 0;
        return error_setf(reterr, EBADMSG, "blob %s is damaged: its digest is %s", digest, actual);
}

static const PulledDocument *find_fetched_document(const ImageFetch *fetch, const char *digest) {
        for (size_t i = 0; i < fetch->n_documents; i++)
                if (streq(fetch->documents[i].digest, digest))
                        return &fetch->documents[i];
        return NULL;
}

/* Opens the blob in the store, or fetches it from the source. */
static int provide_fetched_document(ImageFetch *fetch, const CatalogBlob *blob, size_t max_bytes,
                                    Error *reterr) {
        cleanup_free char *text = NULL;
        PulledDocument *document;
        size_t length;
        int r;

        if (find_fetched_document(fetch, blob->digest))
                return 0;
        if (blob->size > max_bytes)
                return error_setf(reterr, EFBIG, "'%s' is larger than %zu bytes", blob->digest,
                                  max_bytes);
        r = store_read_blob(fetch->store, blob->digest, max_bytes, &text, &length);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                r = read_fetched_document(fetch, blob->digest, blob->size, &text, &length, reterr);
        if (r < 0)
                return r;
        if (!ARRAY_RESERVE(fetch->documents, fetch->n_documents, 1))
                return -ENOMEM;
        document = &fetch->documents[fetch->n_documents++];
        *document = (PulledDocument){ .text = TAKE_PTR(text), .length = length };
        memcpy(document->digest, blob->digest, DIGEST_SIZE);
        return 0;
}

static int provide_copy_of_document(void *userdata, const CatalogBlob *blob, size_t max_bytes,
                                    char **ret, size_t *ret_length, Error *reterr) {
        ImageFetch *fetch = userdata;
        const PulledDocument *document;
        int r = provide_fetched_document(fetch, blob, max_bytes, reterr);

        if (r < 0)
                return r;
        document = find_fetched_document(fetch, blob->digest);
        *ret = calloc(1, document->length + 1);
        if (!*ret)
                return -ENOMEM;
        memcpy(*ret, document->text, document->length);
        *ret_length = document->length;
        return 0;
}

static int read_indexed_image(ImageFetch *fetch, const ImageProvider *provider, Error *reterr) {
        const SourceIndexPlatform *platform = fetch->platform;
        OciDescriptor descriptor = { .media_type = platform->media_type,
                                     .size = platform->manifest.size };
        int r = digest_parse(platform->manifest.digest, descriptor.digest);

        if (r < 0)
                return r;
        if (!media_type_is_manifest(descriptor.media_type))
                return error_setf(reterr, ENOTSUP,
                                  "the type '%s' in the index is not of a manifest",
                                  descriptor.media_type);
        memcpy(fetch->image.digest, descriptor.digest, DIGEST_SIZE);
        r = image_manifest_read(provider, &descriptor, &fetch->image, reterr);
        return r > 0 ? error_setf(reterr, ENOTSUP, "it is not an image of a container") : r;
}

/* ---- the delta ---- */

/* 1: the delta was added to the image; 0: its base image is not in the store; -errno.
 */
static int try_indexed_delta(ImageFetch *fetch, const ImageProvider *provider,
                             const SourceIndexDelta *delta, Error *reterr) {
        CatalogBlob blob = { .size = delta->manifest.size };
        cleanup_json json_t *artifact = NULL;
        int r;

        if (!delta_base_is_present(fetch->store, delta->base))
                return 0;
        memcpy(blob.digest, delta->manifest.digest, DIGEST_SIZE);
        r = image_manifest_provide(provider, &blob, &artifact, reterr);
        if (r >= 0)
                r = image_delta_attach(artifact, &fetch->image, reterr);
        if (r < 0)
                return r;
        if (streq(fetch->image.base_config, delta->base))
                return 1;
        catalog_image_drop_delta(&fetch->image);
        return error_setf(reterr, EBADMSG, "its base is not the image that the index names");
}

static void warn_of_delta(int r, const Error *error) {
        cleanup_free char *why = format_safe_message(error, r), *text = NULL;

        if (why)
                text = text_format("fetching whole layers, the delta cannot be used: %s", why);
        if (text)
                pull_print_message("warning", text);
}

/* Failures are not errors: the layers are fetched then. */
static int find_indexed_delta(ImageFetch *fetch, const ImageProvider *provider,
                              const bool *missing) {
        uint64_t delta_bytes, layer_bytes;

        for (size_t i = 0; i < fetch->platform->deltas.n && !fetch->delta; i++) {
                const SourceIndexDelta *delta = &fetch->platform->deltas.items[i];
                cleanup_error Error error = ERROR_NULL;
                int r = try_indexed_delta(fetch, provider, delta, &error);

                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        warn_of_delta(r, &error);
                if (r > 0)
                        fetch->delta = delta;
        }
        if (fetch->delta)
                catalog_image_drop_large_delta_blobs(&fetch->image, missing, &delta_bytes,
                                                     &layer_bytes);
        return 0;
}

/* ---- layers ---- */

static int fetch_layer(ImageFetch *fetch, size_t i, Error *reterr) {
        const CatalogBlob *layer = catalog_image_blob(&fetch->image, i);
        FetchedBlob *blob = &fetch->blobs[i];
        int r = store_open_blob(
                fetch->store,
                &(StoreBlobName){ .digest = layer->digest,
                                  .size = layer->size,
                                  .number = i,
                                  .is_temporary = layer != &fetch->image.layers[i] },
                &blob->file, reterr);

        if (r < 0)
                return r;
        blob->is_missing = true;
        if (blob->file.length < layer->size) {
                fetch->arriving_fd = blob->file.fd;
                r = download_blob(fetch, layer->digest, layer->size, blob->file.fd, reterr);
                fetch->arriving_fd = -EBADF;
        }
        fetch->done += layer->size;
        return r < 0 ? error_prefixf(reterr, r, "layer '%s'", layer->digest) : 0;
}

static int fetch_layers(ImageFetch *fetch, const bool *missing, Error *reterr) {
        int r = 0;

        fetch->total = fetch->done = 0;
        for (size_t i = 0; i < fetch->n_blobs; i++)
                if (missing[i])
                        fetch->total += catalog_image_blob(&fetch->image, i)->size;
        for (size_t i = 0; r >= 0 && i < fetch->n_blobs; i++) {
                if (missing[i])
                        r = fetch_layer(fetch, i, reterr);
                else
                        store_discard_part(fetch->store, fetch->image.layers[i].digest);
        }
        return r;
}

static int open_fetched_layer(void *userdata, size_t i, ByteStream **ret, Error *reterr) {
        const ImageFetch *fetch = userdata;

        return byte_stream_new_blob(fetch->blobs[i].file.fd,
                                    catalog_image_blob(&fetch->image, i)->size, -EBADF, ret);
}

static void ignore_worker(void *userdata) {
}

static int ignore_feed(void *userdata, Error *reterr) {
        return 0;
}

/* If a blob was read completely and its digest is wrong, waiting does not help. */
static int on_fetched_layer(void *userdata, size_t i, int r, Error *reterr) {
        ImageFetch *fetch = userdata;
        FetchedBlob *blob = &fetch->blobs[i];

        blob->is_unpacked = r >= 0;
        if (r < 0 && r != -ENOSPC && r != -EDQUOT && r != -ENOMEM && blob->is_missing)
                store_discard_blob(fetch->store, catalog_image_blob(&fetch->image, i)->digest,
                                   &blob->file);
        return r;
}

/* The store keeps layers, but not deltas. */
static int keep_fetched_blob(ImageFetch *fetch, size_t i, Error *reterr) {
        const CatalogBlob *layer = catalog_image_blob(&fetch->image, i);
        FetchedBlob *blob = &fetch->blobs[i];

        if (layer != &fetch->image.layers[i]) {
                store_discard_blob(fetch->store, layer->digest, &blob->file);
                return 0;
        }
        return blob->is_unpacked
                       ? store_commit_blob(fetch->store, layer->digest, &blob->file, reterr)
                       : 0;
}

/* Only pods of the source may use the image; others need a registry that provides it to them. */
static int record_source_access(ImageFetch *fetch, Error *reterr) {
        cleanup_free char *repository = image_access_source_name(fetch->source.fleet);

        if (!repository)
                return -ENOMEM;
        return verified_write(
                fetch->store, fetch->image.digest,
                &(VerifiedUpdate){ .repository = repository, .secret_hash = repository }, reterr);
}

static int on_fetched_layers_unpacked(void *userdata, Error *reterr) {
        ImageFetch *fetch = userdata;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < fetch->n_blobs; i++)
                if (fetch->blobs[i].is_missing)
                        r = keep_fetched_blob(fetch, i, reterr);
        return r < 0 ? r : record_source_access(fetch, reterr);
}

/* ---- the image ---- */

static void fetched_blobs_done(ImageFetch *fetch) {
        for (size_t i = 0; i < fetch->n_blobs; i++)
                close_fd(fetch->blobs[i].file.fd);
        free(fetch->blobs);
        fetch->blobs = NULL;
        fetch->n_blobs = 0;
}

static int allocate_fetched_blobs(ImageFetch *fetch) {
        size_t n = fetch->image.settings->n_diff_ids;

        fetched_blobs_done(fetch);
        fetch->blobs = calloc(MAX(n, (size_t) 1), sizeof(*fetch->blobs));
        if (!fetch->blobs)
                return -ENOMEM;
        fetch->n_blobs = n;
        for (size_t i = 0; i < n; i++)
                fetch->blobs[i].file.fd = -EBADF;
        return 0;
}

/* In the store's index.json, the image gets a name that no pod uses, and that the next version of
 * the image does not take over. */
static char *make_private_name(const ImageFetch *fetch, const char *reference) {
        return text_format(IMAGE_NAME_OF_INDEX "%s %.*s@%s", fetch->source.fleet,
                           (int) strcspn(reference, "@"), reference, fetch->image.digest);
}

static int unpack_fetched_image(ImageFetch *fetch, const ImageProvider *provider,
                                const bool *missing, const char *reference, Error *reterr) {
        LayerDownloadFeed feed = { .fd = -EBADF,
                                   .on_worker = ignore_worker,
                                   .on_readable = ignore_feed,
                                   .on_tick = ignore_feed,
                                   .on_layer = on_fetched_layer,
                                   .on_unpacked = on_fetched_layers_unpacked,
                                   .userdata = fetch };
        cleanup_free char *name = make_private_name(fetch, reference);
        int r = name ? allocate_fetched_blobs(fetch) : -ENOMEM;

        if (r >= 0)
                r = fetch_layers(fetch, missing, reterr);
        return r < 0 ? r
                     : unpack_image(&fetch->image, provider, &feed, fetch->store,
                                    (char *[]){ name, NULL }, reterr);
}

/* Errors of the machine or of the connection to the source are not caused by the delta. */
static bool is_delta_at_fault(const ImageFetch *fetch, int r) {
        return fetch->delta && r != -ENOMEM && r != -ENOSPC && r != -EDQUOT && r != -EAGAIN &&
               r != -ECANCELED;
}

/* A partial blob that was not unpacked is kept and resumed; a partial delta is not. */
static void discard_delta_blobs(ImageFetch *fetch) {
        for (size_t i = 0; i < fetch->n_blobs; i++)
                if (fetch->blobs[i].is_missing && fetch->image.delta[i].digest[0])
                        store_discard_blob(fetch->store, fetch->image.delta[i].digest,
                                           &fetch->blobs[i].file);
        catalog_image_drop_delta(&fetch->image);
        store_discard_work(fetch->store);
        fetch->delta = NULL;
}

static int fetch_indexed_image(ImageFetch *fetch, const char *reference, Error *reterr) {
        ImageProvider provider = { .read = provide_copy_of_document,
                                   .open_layer = open_fetched_layer,
                                   .userdata = fetch };
        cleanup_error Error error = ERROR_NULL;
        cleanup_free bool *missing = NULL;
        int r = read_indexed_image(fetch, &provider, reterr);

        if (r < 0)
                return r;
        r = signature_gate_pass_vouched(fetch->settings, &fetch->image, fetch->store, reterr);
        if (r < 0)
                return r;
        missing = calloc(MAX(fetch->image.settings->n_diff_ids, (size_t) 1), sizeof(*missing));
        r = missing ? unpack_find_missing(&fetch->image, fetch->store, missing) : -ENOMEM;
        if (r >= 0)
                r = find_indexed_delta(fetch, &provider, missing);
        if (r < 0)
                return r;
        r = unpack_fetched_image(fetch, &provider, missing, reference, &error);
        if (r < 0 && is_delta_at_fault(fetch, r)) {
                warn_of_delta(r, &error);
                discard_delta_blobs(fetch);
                return unpack_fetched_image(fetch, &provider, missing, reference, reterr);
        }
        error_move(reterr, &error);
        return r;
}

/* ---- the index ---- */

static int open_verified_index(const SourceSettings *source, Error *reterr) {
        cleanup_free char *path = path_join(source->directory, "index.json");
        int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;

        if (!path)
                return -ENOMEM;
        return fd < 0 ? error_prefixf(reterr, -errno, "%s", path) : fd;
}

/* Finds the image in the index, which must still list it with this digest. */
static int find_in_index(ImageFetch *fetch, int index_fd, const char *reference, const char *digest,
                         Error *reterr) {
        cleanup_free char *text = NULL;
        const SourceIndexImage *image;
        size_t length;
        int r = read_stream(index_fd, SOURCE_INDEX_BYTES_MAX, &text, &length);

        if (r >= 0)
                r = source_index_parse(text, length, SOURCE_INDEX_TOTAL_BYTES_MAX, &fetch->index,
                                       reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "the index");
        image = source_index_find_image(&fetch->index, reference);
        fetch->platform = image ? source_image_choose_platform(image) : NULL;
        if (!fetch->platform || !streq(fetch->platform->manifest.digest, digest))
                return error_setf(reterr, ENOENT, "the index does not name image %s with digest %s",
                                  reference, digest);
        return 0;
}

static void image_fetch_done(ImageFetch *fetch) {
        fetched_blobs_done(fetch);
        for (size_t i = 0; i < fetch->n_documents; i++)
                free(fetch->documents[i].text);
        free(fetch->documents);
        catalog_image_done(&fetch->image);
        store_restrict(fetch->store, NULL);
        store_view_free(fetch->view);
        source_index_done(&fetch->index);
        source_transfer_done(&fetch->transfer);
        source_settings_done(&fetch->source);
}

/* Restricts the view to images of the same source and those that are open to all. */
static int restrict_to_source(ImageFetch *fetch, Error *reterr) {
        cleanup_free char *name = image_access_source_name(fetch->source.fleet);
        cleanup_json json_t *hashes = name ? json_pack("[s]", name) : NULL;
        int r = hashes ? store_view_new(store_fd(fetch->store),
                                        &(StoreViewer){ .registry = IMAGE_ACCESS_SOURCE,
                                                        .repository = fetch->source.fleet,
                                                        .hashes = hashes,
                                                        .access = fetch->settings->access },
                                        &fetch->view)
                       : -ENOMEM;

        if (r < 0)
                return error_prefixf(reterr, r, "image store");
        store_restrict(fetch->store, fetch->view);
        return 0;
}

int fetch_image(const char *reference, const char *digest, const PullSettings *settings,
                Store *store, Error *reterr) {
        cleanup_with(image_fetch_done) ImageFetch fetch = { .settings = settings,
                                                            .store = store,
                                                            .transfer = SOURCE_TRANSFER_NULL,
                                                            .arriving_fd = -EBADF };
        cleanup_close int index_fd = -EBADF;
        int r = source_settings_parse(json_incref(json_object_get(settings->document, "source")),
                                      &fetch.source, reterr);

        if (r < 0)
                return r;
        if (!fetch.source.fleet || !fetch.source.directory)
                return error_setf(reterr, EINVAL, "settings on standard input: no source");
        r = index_fd = open_verified_index(&fetch.source, reterr);
        if (r < 0)
                return r;
        r = source_transfer_start(&fetch.source,
                                  (int[]){ store_fd(store), store_tmp_fd(store), index_fd, -EBADF },
                                  &fetch.transfer, reterr);
        if (r < 0)
                return r;
        source_transfer_on_tick(&fetch.transfer, print_fetch_progress, &fetch);
        r = confine_image_fetch(store_fd(store), fetch.transfer.stick_fd, reterr);
        if (r < 0)
                return r;
        r = restrict_to_source(&fetch, reterr);
        if (r >= 0)
                r = find_in_index(&fetch, index_fd, reference, digest, reterr);
        if (r >= 0)
                r = fetch_indexed_image(&fetch, reference, reterr);
        if (r >= 0)
                (void) printf("{\"digest\":\"%s\"}\n", fetch.image.digest);
        return r;
}
