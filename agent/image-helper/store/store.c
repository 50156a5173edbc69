/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/store/store-private.h"

#include "agent/image-helper/pull/document.h"
#include "common/checksummed.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/image-reference.h"
#include "common/json-text.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#define ANNOTATION_NAME  "org.opencontainers.image.ref.name"
#define ANNOTATION_IMAGE "mainstay.image.digest"

/* Several processes may open a new store at the same time; each one writes under a separate
 * name. */
static int write_layout(int store_fd) {
        char name[sizeof("oci-layout.") + 20];
        int r;

        (void) snprintf(name, sizeof(name), "oci-layout.%d", (int) getpid());
        r = write_file_atomic_at(store_fd, name, OCI_LAYOUT, strlen(OCI_LAYOUT), 0600);
        if (r < 0)
                return r;
        if (renameat(store_fd, name, store_fd, "oci-layout") < 0)
                return -errno;
        return 0;
}

static int prepare_store_directory(Store *store) {
        static const char *const directories[] = { "tmp",         "layers",     "records",
                                                   "partial",     "signatures", "verified",
                                                   "blobs/sha256" };
        int r;

        for (size_t i = 0; i < N_ELEMENTS(directories); i++) {
                r = mkdir_parents_at(store->fd, directories[i], 0700);
                if (r < 0)
                        return r;
        }
        if (faccessat(store->fd, "oci-layout", F_OK, 0) < 0) {
                r = write_layout(store->fd);
                if (r < 0)
                        return r;
        }
        store->tmp_fd = openat(store->fd, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return store->tmp_fd < 0 ? -errno : 0;
}

int store_open(const char *path, Store **ret, Error *reterr) {
        cleanup_with(store_freep) Store *store = calloc(1, sizeof(*store));
        int r;

        if (!store)
                return -ENOMEM;
        store->tmp_fd = store->work_fd = -EBADF;
        store->fd = open_directory_at(AT_FDCWD, path, 0700);
        if (store->fd < 0)
                return error_prefixf(reterr, store->fd, "image store '%s'", path);
        r = prepare_store_directory(store);
        if (r < 0)
                return error_prefixf(reterr, r, "image store '%s'", path);
        *ret = TAKE_PTR(store);
        return 0;
}

int store_fd(const Store *store) {
        return store->fd;
}

int store_tmp_fd(Store *store) {
        return store->tmp_fd;
}

bool store_is_removed(const Store *store) {
        struct stat whole, tmp;

        return store && fstat(store->fd, &whole) >= 0 && fstat(store->tmp_fd, &tmp) >= 0 &&
               (whole.st_nlink == 0 || tmp.st_nlink == 0);
}

static int make_work_directory(Store *store) {
        uint64_t number;
        int fd;

        if (getrandom(&number, sizeof(number), 0) != sizeof(number))
                return -EIO;
        (void) snprintf(store->work_name, sizeof(store->work_name), "%016llx",
                        (unsigned long long) number);
        if (mkdirat(store->tmp_fd, store->work_name, 0700) < 0) {
                store->work_name[0] = '\0';
                return -errno;
        }
        fd = openat(store->tmp_fd, store->work_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) >= 0)
                return fd;
        close_fd(fd);
        return -errno;
}

/* The lock on tmp/ prevents a sweep between creating and locking. */
int store_work_fd(Store *store, Error *reterr) {
        int r;

        if (store->work_fd >= 0)
                return store->work_fd;
        r = flock(store->tmp_fd, LOCK_SH) < 0 ? -errno : make_work_directory(store);
        (void) flock(store->tmp_fd, LOCK_UN);
        if (r < 0)
                return error_prefixf(reterr, r, "image store: tmp");
        return store->work_fd = r;
}

/* Locks a directory that is not locked. Returns a descriptor or -errno. */
static int lock_stale_directory(int tmp_fd, const char *name) {
        cleanup_close int fd = -EBADF;
        int r = 0;

        if (flock(tmp_fd, LOCK_EX) < 0)
                return -errno;
        fd = openat(tmp_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
                r = -errno;
        (void) flock(tmp_fd, LOCK_UN);
        return r < 0 ? r : TAKE_FD(fd);
}

void store_remove_stale_work(Store *store) {
        int copy = openat(store->tmp_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_closedir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        const struct dirent *entry;

        if (!dir) {
                close_fd(copy);
                return;
        }
        while ((entry = readdir(dir))) {
                cleanup_close int fd = -EBADF;

                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                fd = lock_stale_directory(store->tmp_fd, entry->d_name);
                if (fd >= 0)
                        (void) remove_tree_at(store->tmp_fd, entry->d_name);
        }
}

void store_restrict(Store *store, const StoreView *view) {
        store->view = view;
}

int store_open_layer(const Store *store, const char *chain_id) {
        cleanup_free char *path = path_join("layers", digest_hex(chain_id));
        int fd;

        if (!path)
                return -ENOMEM;
        if (store->view && !store_view_has_layer(store->view, chain_id))
                return -ENOENT;
        fd = openat(store->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int publish_layer(const Store *store, int layers_fd, size_t i, const char *chain_id) {
        char name[32];

        FAIL_AT("store.publish-layer");
        (void) snprintf(name, sizeof(name), "%zu", i);
        if (renameat2(store->work_fd, name, layers_fd, digest_hex(chain_id), RENAME_NOREPLACE) >= 0)
                return 0;
        return errno == EEXIST ? 0 : -errno;
}

static void staged_name(size_t i, char ret[static 32]) {
        (void) snprintf(ret, 32, "staged-%zu", i);
}

/* The bytes of the file are not synced yet. */
static int stage_file(Store *store, const char *path, const void *data, size_t length,
                      Error *reterr) {
        int work_fd = store_work_fd(store, reterr), r;
        cleanup_close int fd = -EBADF;
        char name[32];

        if (work_fd < 0)
                return work_fd;
        staged_name(strv_length(store->staged), name);
        fd = openat(work_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : write_all(fd, data, length);
        if (r >= 0)
                r = strv_append(&store->staged, path);
        return r < 0 ? error_prefixf(reterr, r, "image store: %s", path) : 0;
}

int store_stage_blob(Store *store, const char *digest, const void *data, size_t length,
                     Error *reterr) {
        cleanup_free char *path = path_join("blobs/sha256", digest_hex(digest));

        return path ? stage_file(store, path, data, length, reterr) : -ENOMEM;
}

int store_stage_record(Store *store, const char *digest, const char *text, Error *reterr) {
        cleanup_free char *path = NULL, *whole = NULL;
        size_t length;

        path = text_format("records/%s.json", digest_hex(digest));
        if (!path)
                return -ENOMEM;
        whole = checksummed_format(text, &length);
        return whole ? stage_file(store, path, whole, length, reterr) : -ENOMEM;
}

static int publish_staged(const Store *store, size_t i) {
        char name[32];

        FAIL_AT("store.publish-file");
        staged_name(i, name);
        return renameat(store->work_fd, name, store->fd, store->staged[i]) < 0 ? -errno : 0;
}

static int sync_staged(const Store *store) {
        for (size_t i = 0; i < strv_length(store->staged); i++) {
                cleanup_close int fd = -EBADF;
                char name[32];

                staged_name(i, name);
                fd = openat(store->work_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0 || fsync(fd) < 0)
                        return -errno;
        }
        return 0;
}

static int sync_filesystem(const Store *store, const char *const *chain_ids, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (chain_ids[i])
                        return syncfs(store->fd) < 0 ? -errno : 0;
        return sync_staged(store);
}

int store_sync_directory(const Store *store, const char *name) {
        cleanup_close int fd = openat(store->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int store_sync(const Store *store, const char *const *chain_ids, size_t n, Error *reterr) {
        int r = sync_filesystem(store, chain_ids, n);

        FAIL_AT("store.synced");
        return r < 0 ? error_prefixf(reterr, r, "image store: cannot sync") : 0;
}

/* The last staged file is the record, which follows when everything else is durable. */
static int publish_blobs(const Store *store) {
        size_t n_staged = strv_length(store->staged);

        for (size_t i = 0; i + 1 < n_staged; i++) {
                int r = publish_staged(store, i);

                if (r < 0)
                        return r;
        }
        return store_sync_directory(store, "blobs/sha256");
}

static int publish_layers(const Store *store, const char *const *chain_ids, size_t n) {
        cleanup_close int layers_fd =
                openat(store->fd, "layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (layers_fd < 0)
                return -errno;
        for (size_t i = 0; i < n; i++) {
                int r = chain_ids[i] ? publish_layer(store, layers_fd, i, chain_ids[i]) : 0;

                if (r < 0)
                        return r;
        }
        return fsync(layers_fd) < 0 ? -errno : 0;
}

int store_publish(const Store *store, const char *const *chain_ids, size_t n, Error *reterr) {
        int r = publish_blobs(store);

        if (r >= 0)
                r = publish_layers(store, chain_ids, n);
        return r < 0 ? error_prefixf(reterr, r, "image store: layers") : 0;
}

int store_publish_record(Store *store, Error *reterr) {
        size_t n_staged = strv_length(store->staged);
        int r = n_staged > 0 ? publish_staged(store, n_staged - 1) : 0;

        store->staged = strv_free(store->staged);
        if (r >= 0)
                r = store_sync_directory(store, "records");
        return r < 0 ? error_prefixf(reterr, r, "image store: records") : 0;
}

/* Writes the whole file under a temporary name, syncs and renames it. */
static int write_store_file(Store *store, const char *path, const void *data, size_t length,
                            Error *reterr) {
        int work_fd = store_work_fd(store, reterr), r;
        cleanup_close int fd = -EBADF;

        if (work_fd < 0)
                return work_fd;
        fd = openat(work_fd, "file", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : write_all(fd, data, length);
        FAIL_AT("store.rename");
        if (r >= 0 && (fsync(fd) < 0 || renameat(work_fd, "file", store->fd, path) < 0))
                r = -errno;
        return r < 0 ? error_prefixf(reterr, r, "image store: %s", path) : 0;
}

int store_write_record(Store *store, const char *path, const char *text, Error *reterr) {
        size_t length;
        cleanup_free char *whole = checksummed_format(text, &length),
                          *directory = strndup(path, strcspn(path, "/"));
        int r;

        if (!whole || !directory)
                return -ENOMEM;
        r = write_store_file(store, path, whole, length, reterr);
        if (r < 0)
                return r;
        r = store_sync_directory(store, directory);
        return r < 0 ? error_prefixf(reterr, r, "image store: %s", path) : 0;
}

/* A damaged index is set aside: the records describe the images, the index only contains their
 * names. */
static int load_index(const Store *store, json_t **ret) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *index = NULL;
        size_t length;
        int r;

        r = read_file_at(store->fd, "index.json", MANIFEST_SIZE_MAX, &text, &length);
        if (r >= 0)
                r = document_parse(text, length, &index, NULL);
        if (r >= 0 && !json_is_array(json_object_get(index, "manifests")))
                r = -EBADMSG;
        if (r >= 0) {
                *ret = TAKE_PTR(index);
                return 0;
        }
        if (is_file_damage(r))
                checksummed_set_aside_at(store->fd, "index.json");
        else if (r != -ENOENT)
                return r;
        *ret = json_pack("{s:i, s:s, s:[]}", "schemaVersion", 2, "mediaType",
                         "application/vnd.oci.image.index.v1+json", "manifests");
        return *ret ? 0 : -ENOMEM;
}

static bool is_named_one_of(const json_t *descriptor, char *const *names) {
        const char *name = json_text(descriptor, "annotations", ANNOTATION_NAME);

        for (; name && names && *names; names++)
                if (image_reference_equals(name, *names))
                        return true;
        return false;
}

static json_t *make_descriptor(const StoreEntry *entry, const char *name) {
        return json_pack("{s:s, s:s, s:I, s:{s:s, s:s}}", "mediaType", entry->media_type, "digest",
                         entry->manifest_digest, "size", (json_int_t) entry->manifest_size,
                         "annotations", ANNOTATION_NAME, name, ANNOTATION_IMAGE,
                         entry->image_digest);
}

static int rename_in_index(json_t *index, const StoreEntry *entry) {
        json_t *manifests = json_object_get(index, "manifests");

        for (size_t i = json_array_size(manifests); i-- > 0;)
                if (is_named_one_of(json_array_get(manifests, i), entry->names))
                        (void) json_array_remove(manifests, i);
        for (char *const *name = entry->names; name && *name; name++)
                if (json_array_append_new(manifests, make_descriptor(entry, *name)) < 0)
                        return -ENOMEM;
        return 0;
}

/* Returns a descriptor that releases the lock when it is closed. */
static int lock_index(const Store *store, Error *reterr) {
        cleanup_close int lock =
                openat(store->fd, "index.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (lock < 0 || flock(lock, LOCK_EX) < 0)
                return error_setf(reterr, errno, "image store: index.lock: %s", strerror(errno));
        return TAKE_FD(lock);
}

/* The index must be durable before the next step: the record of an image that it names, or the
 * removal of blobs of an image that it no longer names. */
static int write_store_index(Store *store, const json_t *index, Error *reterr) {
        cleanup_free char *text = json_to_text(index, JSON_COMPACT);
        int r;

        if (!text)
                return -ENOMEM;
        r = write_store_file(store, "index.json", text, strlen(text), reterr);
        if (r < 0)
                return r;
        r = store_sync_directory(store, ".");
        return r < 0 ? error_prefixf(reterr, r, "image store: index.json") : 0;
}

int store_tag_image(Store *store, const StoreEntry *entry, Error *reterr) {
        cleanup_close int lock = lock_index(store, reterr);
        cleanup_json json_t *index = NULL;
        int r;

        if (lock < 0)
                return lock;
        r = load_index(store, &index);
        if (r < 0)
                return error_prefixf(reterr, r, "image store: index.json");
        r = rename_in_index(index, entry);
        return r < 0 ? r : write_store_index(store, index, reterr);
}

int store_untag_images(Store *store, char *const *digests, json_t **ret_index, Error *reterr) {
        cleanup_close int lock = lock_index(store, reterr);
        cleanup_json json_t *index = NULL;
        json_t *manifests;
        int r;

        if (lock < 0)
                return lock;
        r = load_index(store, &index);
        if (r < 0)
                return error_prefixf(reterr, r, "index.json");
        manifests = json_object_get(index, "manifests");
        for (size_t i = json_array_size(manifests); i-- > 0;) {
                const json_t *annotations =
                        json_object_get(json_array_get(manifests, i), "annotations");
                const char *digest = json_text(annotations, ANNOTATION_IMAGE);

                if (digest && strv_contains(digests, digest))
                        (void) json_array_remove(manifests, i);
        }
        r = write_store_index(store, index, reterr);
        if (r < 0)
                return r;
        *ret_index = TAKE_PTR(index);
        return 0;
}

void store_discard_work(Store *store) {
        if (store->work_name[0])
                (void) remove_tree_at(store->tmp_fd, store->work_name);
        store->work_name[0] = '\0';
        store->work_fd = close_fd(store->work_fd);
        store->staged = strv_free(store->staged);
}

Store *store_free(Store *store) {
        if (!store)
                return NULL;
        store_discard_work(store);
        close_fd(store->tmp_fd);
        close_fd(store->fd);
        free(store);
        return NULL;
}
