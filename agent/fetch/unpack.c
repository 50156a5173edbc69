/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/fetch/unpack.h"

#include "agent/fetch/account.h"
#include "agent/fetch/document.h"
#include "agent/fetch/layer.h"
#include "agent/fetch/record.h"
#include "agent/fetch/sentence.h"

#include <fcntl.h>
#include <sys/stat.h>

typedef struct Unpack {
        const Source *source;
        const CatalogImage *image;
        Store *store;
        size_t n;
        char (*chain_ids)[DIGEST_SIZE]; /* lowest first */
        uint64_t *sizes;                /* unpacked; 0 where the layer was not read */
        const char **made;              /* those that were missing and lie in the work directory */
        int *stack;                     /* open layers, the topmost first, filled from the end */
} Unpack;

/* The blob as the manifest promised it, and the tar in it as the configuration did. */
static int verify_layer(const Unpack *unpack, size_t i, Stream *tar, Error *reterr) {
        const CatalogBlob *blob = &unpack->image->layers[i];
        const char *diff_id = unpack->image->settings->diff_ids[i];
        char digest[DIGEST_SIZE];
        Stream *packed = stream_below(tar);
        int r;

        r = stream_drain(packed, reterr);
        if (r < 0)
                return r;
        stream_digest(packed, digest);
        if (blob->digest[0] &&
            (stream_length(packed) != blob->size || !streq(digest, blob->digest)))
                return error_setf(reterr, EBADMSG, "is damaged: its digest is %s", digest);
        stream_digest(tar, digest);
        if (!streq(digest, diff_id))
                return error_setf(reterr, EBADMSG, "is damaged: its DiffID is %s, not %s", digest,
                                  diff_id);
        unpack->sizes[i] = stream_length(tar);
        return 0;
}

static int open_layer_stream(const Unpack *unpack, size_t i, Stream **ret, Error *reterr) {
        const Member *member = source_find(unpack->source, unpack->image->layers[i].member);
        Stream *packed;
        int r;

        if (!member)
                return error_setf(reterr, ENOENT, "is not in the archive");
        r = source_stream(unpack->source, member, &packed, reterr);
        return r < 0 ? r : stream_new_plain_take(packed, ret, reterr);
}

static int read_layer(const Unpack *unpack, size_t i, int fd, Error *reterr) {
        const CatalogBlob *blob = &unpack->image->layers[i];
        View below = { unpack->stack + (unpack->n - i), i };
        cleanup_with(stream_freep) Stream *tar = NULL;
        int r;

        r = open_layer_stream(unpack, i, &tar, reterr);
        if (r >= 0)
                r = layer_unpack(tar, fd, &below, reterr);
        if (r >= 0)
                r = verify_layer(unpack, i, tar, reterr);
        return r < 0 ? error_prefixf(reterr, r, "layer '%s'",
                                     blob->digest[0] ? blob->digest : blob->member)
                     : 0;
}

/* Damage shows late, sometimes as an entry that makes no sense; then it is still damage that the
 * person must hear of. The layer is read once more, for its digests only. */
static int explain_failure(const Unpack *unpack, size_t i, int r, Error *reterr) {
        const CatalogBlob *blob = &unpack->image->layers[i];
        cleanup_with(stream_freep) Stream *tar = NULL;
        cleanup_error Error error = ERROR_NULL;
        int q;

        if (r == -ENOMEM || r == -ENOSPC || r == -EDQUOT)
                return r;
        q = open_layer_stream(unpack, i, &tar, &error);
        if (q >= 0)
                q = stream_drain(tar, &error);
        if (q >= 0)
                q = verify_layer(unpack, i, tar, &error);
        if (q >= 0)
                return r;
        (void) error_prefixf(&error, q, "layer '%s'",
                             blob->digest[0] ? blob->digest : blob->member);
        if (reterr)
                error_move(reterr, &error);
        return q;
}

static int make_layer(Unpack *unpack, size_t i, Error *reterr) {
        int work_fd = store_work_fd(unpack->store, reterr), fd, r;
        char name[32];

        if (work_fd < 0)
                return work_fd;
        (void) snprintf(name, sizeof(name), "%zu", i);
        if (mkdirat(work_fd, name, 0700) < 0)
                return -errno;
        fd = openat(work_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        unpack->stack[unpack->n - 1 - i] = fd;
        unpack->made[i] = unpack->chain_ids[i];
        r = read_layer(unpack, i, fd, reterr);
        return r < 0 ? explain_failure(unpack, i, r, reterr) : 0;
}

static int provide_layers(Unpack *unpack, Error *reterr) {
        const ImageConfig *settings = unpack->image->settings;
        bool any = false;

        for (size_t i = 0; i < unpack->n; i++) {
                int fd, r;

                digest_chain(i > 0 ? unpack->chain_ids[i - 1] : NULL, settings->diff_ids[i],
                             unpack->chain_ids[i]);
                fd = store_open_layer(unpack->store, unpack->chain_ids[i]);
                if (fd >= 0) {
                        unpack->stack[unpack->n - 1 - i] = fd;
                        continue;
                }
                r = fd == -ENOENT ? make_layer(unpack, i, reterr) : fd;
                if (r < 0)
                        return r;
                any = true;
        }
        return any ? store_publish_layers(unpack->store, unpack->made, unpack->n, reterr) : 0;
}

/* Of a layer that was here already, which need not be read for anything else. */
static int measure_layer(const Unpack *unpack, size_t i, Error *reterr) {
        cleanup_with(stream_freep) Stream *tar = NULL;
        int r;

        r = open_layer_stream(unpack, i, &tar, reterr);
        if (r >= 0)
                r = stream_drain(tar, reterr);
        return r < 0 ? r : verify_layer(unpack, i, tar, reterr);
}

/* An image without a manifest gets one, of its layers as they are unpacked. */
static int make_manifest(const Unpack *unpack, char **ret, Error *reterr) {
        const CatalogImage *image = unpack->image;
        cleanup_json json_t *layers = json_array(), *manifest = NULL;
        char *text;

        for (size_t i = 0; i < unpack->n; i++) {
                int r = unpack->sizes[i] > 0 ? 0 : measure_layer(unpack, i, reterr);

                if (r < 0)
                        return r;
                (void) json_array_append_new(layers,
                                             json_pack("{s:s, s:s, s:I}", "mediaType",
                                                       "application/vnd.oci.image.layer.v1.tar",
                                                       "digest", image->settings->diff_ids[i],
                                                       "size", (json_int_t) unpack->sizes[i]));
        }
        manifest = json_pack("{s:i, s:s, s:{s:s, s:s, s:I}, s:O}", "schemaVersion", 2, "mediaType",
                             "application/vnd.oci.image.manifest.v1+json", "config", "mediaType",
                             "application/vnd.oci.image.config.v1+json", "digest",
                             image->config.digest, "size", (json_int_t) image->config.size,
                             "layers", layers);
        text = manifest ? json_dumps(manifest, JSON_COMPACT) : NULL;
        if (!text)
                return -ENOMEM;
        *ret = text;
        return 0;
}

static int read_verified(const Source *source, const CatalogBlob *blob, size_t max_bytes,
                         char **ret, size_t *ret_length, Error *reterr) {
        cleanup_free char *text = NULL;
        char digest[DIGEST_SIZE];
        size_t length;
        int r;

        r = source_read(source, blob->member, max_bytes, &text, &length, reterr);
        if (r < 0)
                return r;
        digest_of(text, length, digest);
        if (!streq(digest, blob->digest))
                return error_setf(reterr, EBADMSG, "'%s' has changed while it was read",
                                  blob->member);
        *ret = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}

static int put_documents(const Unpack *unpack, char *const *names, Error *reterr) {
        const CatalogImage *image = unpack->image;
        cleanup_free char *manifest = NULL, *config = NULL;
        size_t manifest_length, config_length;
        char digest[DIGEST_SIZE];
        StoreEntry entry;
        int r;

        r = read_verified(unpack->source, &image->config, CONFIG_SIZE_MAX, &config, &config_length,
                          reterr);
        if (r < 0)
                return r;
        if (image->manifest.member) {
                r = read_verified(unpack->source, &image->manifest, MANIFEST_SIZE_MAX, &manifest,
                                  &manifest_length, reterr);
        } else {
                r = make_manifest(unpack, &manifest, reterr);
                manifest_length = r < 0 ? 0 : strlen(manifest);
        }
        if (r < 0)
                return r;
        digest_of(manifest, manifest_length, digest);
        r = store_put_blob(unpack->store, image->config.digest, config, config_length, reterr);
        if (r >= 0)
                r = store_put_blob(unpack->store, digest, manifest, manifest_length, reterr);
        if (r < 0)
                return r;
        entry = (StoreEntry){
                .media_type = image->manifest.media_type
                                      ? image->manifest.media_type
                                      : "application/vnd.oci.image.manifest.v1+json",
                .manifest_digest = digest,
                .manifest_size = manifest_length,
                .image_digest = image->digest,
                .names = names,
        };
        return store_name_image(unpack->store, &entry, reterr);
}

static int put_record(const Unpack *unpack, Error *reterr) {
        View view = { unpack->stack, unpack->n };
        cleanup_error Error user_error = ERROR_NULL;
        cleanup_free char *text = NULL, *sentence = NULL;
        Account account = { 0 };
        int r;

        /* Whoever names another user may run it all the same, so this is said when it matters. */
        r = account_find_in_image(unpack->image->settings->user, &view, &account, &user_error);
        if (r < 0)
                sentence = sentence_format(&user_error, r);
        if (r == -ENOMEM || (r < 0 && !sentence)) {
                account_done(&account);
                return -ENOMEM;
        }
        r = record_format(unpack->image, unpack->chain_ids, &account, sentence, &text);
        account_done(&account);
        if (r < 0)
                return r;
        return store_put_record(unpack->store, unpack->image->digest, text, reterr);
}

static int run(Unpack *unpack, char *const *names, Error *reterr) {
        int r;

        r = provide_layers(unpack, reterr);
        if (r >= 0)
                r = put_documents(unpack, names, reterr);
        /* Last: who finds a record finds all the rest. */
        return r < 0 ? r : put_record(unpack, reterr);
}

static void unpack_done(Unpack *unpack) {
        for (size_t i = 0; unpack->stack && i < unpack->n; i++)
                close_fd(unpack->stack[i]);
        free(unpack->stack);
        free(unpack->made);
        free(unpack->sizes);
        free(unpack->chain_ids);
}

int unpack_image(const Catalog *catalog, Store *store, const char *digest, char *const *names,
                 Error *reterr) {
        const CatalogImage *image = catalog_find(catalog, digest);
        Unpack unpack = { .source = catalog->source, .image = image, .store = store };
        int r = -ENOMEM;

        if (!image)
                return error_setf(reterr, ENOENT, "holds no image %s", digest);
        if (image->refusal)
                return error_setf(reterr, ENOEXEC, "%s", image->refusal);
        unpack.n = image->settings->n_diff_ids;
        unpack.chain_ids = calloc(unpack.n, sizeof(*unpack.chain_ids));
        unpack.made = calloc(unpack.n, sizeof(*unpack.made));
        unpack.sizes = calloc(unpack.n, sizeof(*unpack.sizes));
        unpack.stack = malloc(unpack.n * sizeof(*unpack.stack));
        for (size_t i = 0; unpack.stack && i < unpack.n; i++)
                unpack.stack[i] = -EBADF;
        if (unpack.chain_ids && unpack.made && unpack.sizes && unpack.stack)
                r = run(&unpack, names, reterr);
        unpack_done(&unpack);
        return r;
}
