/* SPDX-License-Identifier: Apache-2.0 */

/* Who is who: this process knows the image's documents and directs; fetchers (fetcher.c) have the
 * network and nothing else; a process for each layer (layers.c) unpacks what arrives. A blob's
 * bytes go through a file: the fetcher writes it, the unpacker reads behind it, and a byte in a
 * pipe says that there is more. What the file says is believed when its digest is right. */

#include "agent/fetch/pull.h"

#include "agent/fetch/confine.h"
#include "agent/fetch/fetcher.h"
#include "agent/fetch/unpack.h"
#include "common/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
        FETCHERS = 4,
        DOCUMENTS_MAX = 4,
        DOCUMENT_ID = UINT16_MAX,
        PATIENCE_MSEC = 1000
};

#define TICK_USEC (500 * USEC_PER_MSEC)

/* A manifest or a configuration that was fetched. */
typedef struct Document {
        char digest[DIGEST_SIZE];
        char *text;
        size_t length;
} Document;

typedef struct Blob {
        bool is_wanted; /* its layer is missing */
        bool is_asked, is_here;
        StoreBlob file;
        int ring;     /* the fetcher's end of the doorbell */
        int doorbell; /* the unpacker's */
} Blob;

typedef struct Pull {
        const PullReference *reference;
        Store *store;
        Fetchers fetchers;
        uint32_t endpoint; /* that had the manifest */
        Document documents[DOCUMENTS_MAX];
        size_t n_documents;
        CatalogImage image;
        Blob *blobs; /* one for each layer */
        size_t n_blobs;
        size_t n_asked; /* and not answered */
        bool progress;
        uint64_t next_tick;
} Pull;

/* ---- fetchers ---- */

static int check_fetchers(Pull *pull, Error *reterr) {
        for (size_t i = 0; i < pull->fetchers.n; i++) {
                int status;

                if (waitpid(pull->fetchers.pids[i], &status, WNOHANG) <= 0)
                        continue;
                pull->fetchers.pids[i] = pull->fetchers.pids[--pull->fetchers.n];
                return error_setf(reterr, EIO, "the process that fetches was ended by signal %d",
                                  WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        }
        return 0;
}

static int hear(Pull *pull, FetchReply *ret, Error *reterr) {
        for (;;) {
                struct pollfd fd = { .fd = pull->fetchers.fd, .events = POLLIN };
                int r = poll(&fd, 1, PATIENCE_MSEC);

                if (r > 0)
                        break;
                r = check_fetchers(pull, reterr);
                if (r < 0)
                        return r;
        }
        return fetchers_hear(&pull->fetchers, ret);
}

static int failure(const FetchReply *reply, Error *reterr) {
        if (!reply->sentence[0])
                return reply->r;
        return error_setf(reterr, -reply->r, "%s", reply->sentence);
}

/* ---- documents ---- */

static int read_memory(int fd, size_t max_bytes, char **ret, size_t *ret_length) {
        cleanup_free char *text = NULL;
        struct stat st;
        ssize_t n;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size < 0 || (size_t) st.st_size > max_bytes)
                return -EFBIG;
        text = calloc(1, (size_t) st.st_size + 1);
        if (!text)
                return -ENOMEM;
        n = pread(fd, text, (size_t) st.st_size, 0);
        if (n != st.st_size)
                return -EIO;
        *ret = TAKE_PTR(text);
        *ret_length = (size_t) n;
        return 0;
}

/* Fetches one document whole into memory. */
static int fetch(Pull *pull, const char *name, bool is_blob, size_t max_bytes, char **ret,
                 size_t *ret_length, char media_type[static 128], Error *reterr) {
        cleanup_close int fd = memfd_create("document", MFD_CLOEXEC);
        FetchRequest request = { .id = DOCUMENT_ID,
                                 .is_blob = is_blob,
                                 .size_max = max_bytes,
                                 .first = pull->endpoint };
        FetchReply reply;
        int r;

        if (fd < 0)
                return -errno;
        (void) snprintf(request.name, sizeof(request.name), "%s", name);
        r = fetchers_ask(&pull->fetchers, &request, fd, -1);
        if (r >= 0)
                r = hear(pull, &reply, reterr);
        if (r < 0)
                return r;
        if (reply.r < 0)
                return failure(&reply, reterr);
        pull->endpoint = reply.endpoint;
        memcpy(media_type, reply.media_type, sizeof(reply.media_type));
        return read_memory(fd, max_bytes, ret, ret_length);
}

static const Document *find_document(const Pull *pull, const char *digest) {
        for (size_t i = 0; i < pull->n_documents; i++)
                if (streq(pull->documents[i].digest, digest))
                        return &pull->documents[i];
        return NULL;
}

static int keep_document_take(Pull *pull, const char *digest, char *text, size_t length) {
        if (pull->n_documents == DOCUMENTS_MAX) {
                free(text);
                return -E2BIG;
        }
        pull->documents[pull->n_documents] = (Document){ .text = text, .length = length };
        memcpy(pull->documents[pull->n_documents++].digest, digest, DIGEST_SIZE);
        return 0;
}

/* From memory, from the store, from the registry. */
static int provide_document(Pull *pull, const CatalogBlob *blob, size_t max_bytes, Error *reterr) {
        bool is_manifest = blob != &pull->image.config;
        char media_type[128], digest[DIGEST_SIZE];
        char *text = NULL;
        size_t length;
        int r;

        if (find_document(pull, blob->digest))
                return 0;
        if (blob->size > max_bytes)
                return error_setf(reterr, EFBIG, "'%s' is larger than %zu bytes", blob->digest,
                                  max_bytes);
        r = store_read_blob(pull->store, blob->digest, max_bytes, &text, &length);
        if (r < 0)
                r = fetch(pull, blob->digest, !is_manifest, (size_t) blob->size, &text, &length,
                          media_type, reterr);
        if (r < 0)
                return r;
        digest_of(text, length, digest);
        if (!streq(digest, blob->digest)) {
                free(text);
                return error_setf(reterr, EBADMSG, "'%s' is damaged: its digest is %s",
                                  blob->digest, digest);
        }
        return keep_document_take(pull, digest, text, length);
}

static int read_document(void *userdata, const CatalogBlob *blob, size_t max_bytes, char **ret,
                         size_t *ret_length, Error *reterr) {
        Pull *pull = userdata;
        const Document *document;
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

/* What a document is: what it says itself goes before what the server says of it. */
static int find_type(const Document *document, const char *media_type, char ret[static 128],
                     Error *reterr) {
        cleanup_json json_t *json = NULL;
        const char *own;
        int r = manifest_parse(document->text, document->length, NULL, &json, reterr);

        if (r < 0)
                return r;
        own = document_string(json, "mediaType");
        if (own && media_type_is_manifest(media_type) != media_type_is_manifest(own) &&
            media_type_is_index(media_type) != media_type_is_index(own))
                return error_setf(reterr, EBADMSG,
                                  "it calls itself '%.100s', the registry '%.100s'", own,
                                  media_type);
        (void) snprintf(ret, 128, "%.127s", own ? own : media_type);
        if (!media_type_is_manifest(ret) && !media_type_is_index(ret))
                return error_setf(reterr, ENOTSUP, "it is of the unknown type '%.120s'", ret);
        return 0;
}

/* Asks for what the reference means, and takes note of it by its digest. */
static int resolve(Pull *pull, Descriptor *ret, char media_type[static 128], Error *reterr) {
        const PullReference *reference = pull->reference;
        const char *name = reference->digest[0] ? reference->digest : reference->tag;
        char said[128] = "";
        char *text = NULL;
        size_t length = 0;
        int r;

        r = fetch(pull, name, false, MANIFEST_SIZE_MAX, &text, &length, said, reterr);
        if (r < 0)
                return r;
        digest_of(text, length, ret->digest);
        if (reference->digest[0] && !streq(ret->digest, reference->digest)) {
                free(text);
                return error_setf(reterr, EBADMSG,
                                  "the registry gave another image: its digest is "
                                  "%s",
                                  ret->digest);
        }
        r = keep_document_take(pull, ret->digest, text, length);
        if (r >= 0)
                r = find_type(find_document(pull, ret->digest), said, media_type, reterr);
        ret->media_type = media_type;
        ret->size = length;
        return r;
}

static int read_image(Pull *pull, const ImageSource *source, Error *reterr) {
        Descriptor descriptor = { 0 };
        char media_type[128];
        int r;

        r = resolve(pull, &descriptor, media_type, reterr);
        if (r < 0)
                return r;
        memcpy(pull->image.digest, descriptor.digest, DIGEST_SIZE);
        r = media_type_is_index(media_type)
                    ? manifest_read_index(source, &descriptor, &pull->image, reterr)
                    : manifest_read(source, &descriptor, &pull->image, reterr);
        if (r > 0)
                return error_setf(reterr, ENOTSUP, "it is no image of a container");
        return r;
}

/* ---- blobs ---- */

/* The next blobs that nobody was asked for, in the order in which they are unpacked. */
static int ask_for_blobs(Pull *pull, Error *reterr) {
        for (size_t i = 0; i < pull->n_blobs && pull->n_asked < FETCHERS; i++) {
                const CatalogBlob *layer = &pull->image.layers[i];
                Blob *blob = &pull->blobs[i];
                FetchRequest request = { .id = (uint32_t) i,
                                         .is_blob = true,
                                         .first = pull->endpoint,
                                         .from = blob->file.length,
                                         .size_max = layer->size };
                int r;

                if (!blob->is_wanted || blob->is_asked || blob->is_here)
                        continue;
                (void) snprintf(request.name, sizeof(request.name), "%s", layer->digest);
                r = fetchers_ask(&pull->fetchers, &request, blob->file.fd, blob->ring);
                if (r < 0)
                        return error_prefixf(reterr, r, "cannot ask for a layer");
                blob->ring = close_fd(blob->ring);
                blob->is_asked = true;
                pull->n_asked++;
        }
        return 0;
}

static uint64_t bytes_here(const Blob *blob) {
        struct stat st;

        return fstat(blob->file.fd, &st) < 0 ? 0 : (uint64_t) st.st_size;
}

static int on_reply(void *userdata, Error *reterr) {
        Pull *pull = userdata;
        FetchReply reply;
        Blob *blob;
        int r = hear(pull, &reply, reterr);

        if (r < 0)
                return r;
        if (reply.id >= pull->n_blobs || !pull->blobs[reply.id].is_asked)
                return -EPROTO;
        blob = &pull->blobs[reply.id];
        if (reply.r < 0)
                return failure(&reply, reterr);
        if (bytes_here(blob) != pull->image.layers[reply.id].size) {
                store_discard_blob(pull->store, pull->image.layers[reply.id].digest, &blob->file);
                return error_setf(reterr, EBADMSG,
                                  "layer '%s' is damaged: the registry gave %llu "
                                  "bytes of %llu",
                                  pull->image.layers[reply.id].digest,
                                  (unsigned long long) bytes_here(blob),
                                  (unsigned long long) pull->image.layers[reply.id].size);
        }
        blob->is_here = true;
        pull->n_asked--;
        return ask_for_blobs(pull, reterr);
}

static void print_progress(const Pull *pull) {
        uint64_t done = 0, total = 0;

        if (!pull->progress)
                return;
        for (size_t i = 0; i < pull->n_blobs; i++) {
                if (!pull->blobs[i].is_wanted)
                        continue;
                total += pull->image.layers[i].size;
                done += bytes_here(&pull->blobs[i]);
        }
        (void) printf("{\"done\":%llu,\"total\":%llu}\n", (unsigned long long) done,
                      (unsigned long long) total);
        (void) fflush(stdout);
}

/* Layers that end in a row bring us here more often than there is something to say. */
static int on_tick(void *userdata, Error *reterr) {
        Pull *pull = userdata;
        uint64_t now = now_boottime_usec();

        if (now < pull->next_tick)
                return 0;
        pull->next_tick = now + TICK_USEC;
        print_progress(pull);
        return check_fetchers(pull, reterr);
}

/* What was read whole and is not what it should be will not get better by waiting. */
static void on_layer(void *userdata, size_t i, int r) {
        Pull *pull = userdata;
        Blob *blob = &pull->blobs[i];
        bool is_whole = blob->is_here && bytes_here(blob) == pull->image.layers[i].size;

        if (r < 0 && r != -ENOSPC && r != -EDQUOT && r != -ENOMEM && is_whole)
                store_discard_blob(pull->store, pull->image.layers[i].digest, &blob->file);
}

/* The layers have been synced, and the blobs with them. */
static int on_unpacked(void *userdata, Error *reterr) {
        Pull *pull = userdata;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < pull->n_blobs; i++)
                if (pull->blobs[i].is_wanted)
                        r = store_keep_blob(pull->store, pull->image.layers[i].digest,
                                            &pull->blobs[i].file, reterr);
        return r;
}

static int open_layer(void *userdata, size_t i, Stream **ret, Error *reterr) {
        const Pull *pull = userdata;
        const Blob *blob = &pull->blobs[i];

        return stream_new_blob(blob->file.fd, pull->image.layers[i].size,
                               blob->is_here ? -EBADF : blob->doorbell, ret);
}

static int open_blob(Pull *pull, size_t i, Error *reterr) {
        const CatalogBlob *layer = &pull->image.layers[i];
        Blob *blob = &pull->blobs[i];
        int pipes[2], r;

        blob->is_wanted = true;
        r = store_open_blob(pull->store, layer->digest, layer->size, i, &blob->file, reterr);
        if (r < 0)
                return r;
        blob->is_here = blob->file.length == layer->size;
        if (blob->is_here)
                return 0;
        if (pipe2(pipes, O_CLOEXEC) < 0)
                return -errno;
        blob->doorbell = pipes[0];
        blob->ring = pipes[1];
        return fcntl(blob->ring, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_blobs(Pull *pull, Error *reterr) {
        size_t n = pull->image.settings->n_diff_ids;
        cleanup_free bool *missing = calloc(n, sizeof(*missing));
        int r;

        pull->blobs = calloc(n, sizeof(*pull->blobs));
        if (!missing || !pull->blobs)
                return -ENOMEM;
        pull->n_blobs = n;
        for (size_t i = 0; i < n; i++)
                pull->blobs[i] =
                        (Blob){ .file = { .fd = -EBADF }, .ring = -EBADF, .doorbell = -EBADF };
        r = unpack_find_missing(&pull->image, pull->store, missing);
        for (size_t i = 0; r >= 0 && i < n; i++)
                if (missing[i])
                        r = open_blob(pull, i, reterr);
        return r;
}

/* ---- all of it ---- */

static void pull_done(Pull *pull) {
        fetchers_done(&pull->fetchers);
        for (size_t i = 0; i < pull->n_blobs; i++) {
                close_fd(pull->blobs[i].file.fd);
                close_fd(pull->blobs[i].ring);
                close_fd(pull->blobs[i].doorbell);
        }
        free(pull->blobs);
        for (size_t i = 0; i < pull->n_documents; i++)
                free(pull->documents[i].text);
        catalog_image_done(&pull->image);
}

static int run(Pull *pull, const char *reference, Error *reterr) {
        ImageSource source = { .read = read_document, .open_layer = open_layer, .userdata = pull };
        LayerFeed feed = { .on_readable = on_reply,
                           .on_tick = on_tick,
                           .on_layer = on_layer,
                           .on_unpacked = on_unpacked,
                           .userdata = pull };
        char *names[] = { (char *) (uintptr_t) reference, NULL };
        int r;

        r = read_image(pull, &source, reterr);
        if (r >= 0)
                r = open_blobs(pull, reterr);
        if (r >= 0)
                r = ask_for_blobs(pull, reterr);
        if (r < 0)
                return r;
        feed.fd = pull->fetchers.fd;
        r = unpack_image(&pull->image, &source, &feed, pull->store, names, reterr);
        if (r >= 0)
                (void) printf("{\"digest\":\"%s\"}\n", pull->image.digest);
        return r;
}

int pull_image(const char *reference, const PullSettings *settings, Store *store, Error *reterr) {
        cleanup_with(pull_reference_done) PullReference parsed = { 0 };
        cleanup_with(endpoints_done) Endpoints endpoints = { 0 };
        cleanup_with(pull_done) Pull pull = { .store = store,
                                              .fetchers = { .fd = -EBADF },
                                              .progress = settings->progress };
        int r;

        r = pull_reference_parse(reference, &parsed, reterr);
        if (r >= 0)
                r = endpoints_find(&parsed, settings, &endpoints, reterr);
        if (r >= 0)
                r = fetchers_start(&endpoints, FETCHERS,
                                   (int[]){ store_fd(store), store_tmp_fd(store), -EBADF },
                                   &pull.fetchers, reterr);
        if (r >= 0)
                r = confine_reader(true, store_fd(store), reterr);
        pull.reference = &parsed;
        return r < 0 ? r : run(&pull, reference, reterr);
}
