/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads the cache. Reading returns the queued content, if there is any. A failed write
 * is retried with the content that is queued at that time. Secrets stay queued as long as there is
 * no key. */

#include "agent/apiserver/cache.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable-write.h"
#include "common/encrypted-text.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/strv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
        CACHE_RETRY_SEC = 5, /* after a failed write */
        CACHE_NAME_SIZE = DURABLE_WRITE_NAME_MAX + 1,
        OLD_FILE_MAX_BYTES = 4 * 1024 * 1024,
};

typedef struct ApiServerCacheEntry ApiServerCacheEntry;
struct ApiServerCacheEntry {
        ApiServerCacheEntry *next;
        const char *directory; /* static */
        char *file;            /* name of the file in it */
        char *text;            /* NULL: remove the file */
        bool is_being_written;
};

struct ApiServerCache {
        sd_event *event;
        SecretStorage *storage;       /* NULL: nothing is encrypted */
        char *directory;              /* <state>/cluster */
        ApiServerCacheEntry *entries; /* in the order of the writes */
        ForkedTask *write_child;
        sd_event_source *write_timer;
        int last_error;    /* -errno, logged */
        bool is_encrypted; /* files of earlier versions have also been encrypted, or are queued for
                            * encryption */
};

const char cached_objects_directory[] = "objects";
const char cached_tokens_directory[] = "tokens";

static const char *const encrypted_directories[] = { cached_objects_directory,
                                                     cached_tokens_directory };

static ApiServerCacheEntry *cache_entry_free(ApiServerCacheEntry *entry) {
        if (!entry)
                return NULL;
        if (entry->text)
                explicit_bzero(entry->text, strlen(entry->text));
        free(entry->text);
        free(entry->file);
        free(entry);
        return NULL;
}
DEFINE_CLEANUP(ApiServerCacheEntry *, cache_entry_free)

/* The name itself or, if it is too long for a file name, its beginning and its hash. */
static void cache_file_name(const char *name, char ret[CACHE_NAME_SIZE]) {
        char hash[SHA256_HEX_SIZE];

        if (strlen(name) <= DURABLE_WRITE_NAME_MAX) {
                (void) snprintf(ret, CACHE_NAME_SIZE, "%s", name);
                return;
        }
        sha256_hex(name, strlen(name), hash);
        (void) snprintf(ret, CACHE_NAME_SIZE, "%.100s-%s", name, hash);
}

/* The last entry with a name is the valid one. */
static ApiServerCacheEntry *find_cache_entry(const ApiServerCache *cache, const char *directory,
                                             const char *file) {
        ApiServerCacheEntry *found = NULL;

        for (ApiServerCacheEntry *entry = cache->entries; entry; entry = entry->next)
                if (streq(entry->directory, directory) && streq(entry->file, file))
                        found = entry;
        return found;
}

static int open_cache_directory(const ApiServerCache *cache, const char *directory) {
        cleanup_free char *path = path_join(cache->directory, directory);

        return path ? open_directory_at(AT_FDCWD, path, 0700) : -ENOMEM;
}

/* ---- encryption ---- */

static bool is_encrypted_directory(const ApiServerCache *cache, const char *directory) {
        for (size_t i = 0; cache->storage && i < N_ELEMENTS(encrypted_directories); i++)
                if (streq(directory, encrypted_directories[i]))
                        return true;
        return false;
}

/* The text of the file, which the caller erases and frees. 0; -EAGAIN or -EKEYREJECTED: the file
 * must wait for the key; -ENOMEM. */
static int format_cache_file(const ApiServerCache *cache, const ApiServerCacheEntry *entry,
                             char **ret) {
        cleanup_free char *name = path_join(entry->directory, entry->file), *text = NULL;
        size_t length;
        int r;

        if (!name)
                return -ENOMEM;
        if (!is_encrypted_directory(cache, entry->directory)) {
                *ret = checksummed_format(entry->text, &length);
                return *ret ? 0 : -ENOMEM;
        }
        r = secret_storage_encrypt(cache->storage, name, entry->text, &text);
        if (r < 0)
                return r;
        *ret = checksummed_format(text, &length);
        explicit_bzero(text, strlen(text));
        return *ret ? 0 : -ENOMEM;
}

static int decrypt_cache_file(const ApiServerCache *cache, const char *directory, const char *file,
                              char **text) {
        cleanup_free char *name = path_join(directory, file);
        char *result = NULL;
        int r;

        if (!is_encrypted_directory(cache, directory))
                return 0;
        r = name ? secret_storage_decrypt(cache->storage, name, *text, &result) : -ENOMEM;
        explicit_bzero(*text, strlen(*text));
        free(*text);
        *text = result;
        return r;
}

/* ---- writing ---- */

static void arm_cache_timer(ApiServerCache *cache, uint64_t usec) {
        (void) event_timer_arm(cache->write_timer, usec);
}

static void log_cache_write_result(ApiServerCache *cache, int r) {
        if (r < 0 && r != cache->last_error)
                log_error("Cannot write the cache of API objects in %s: %s; retrying every %ds",
                          cache->directory, strerror(-r), CACHE_RETRY_SEC);
        else if (r >= 0 && cache->last_error < 0)
                log_info("Wrote the cache of API objects in %s again", cache->directory);
        cache->last_error = r;
}

static void remove_written_entries(ApiServerCache *cache) {
        ApiServerCacheEntry **link = &cache->entries;

        while (*link) {
                ApiServerCacheEntry *entry = *link;

                if (!entry->is_being_written) {
                        link = &entry->next;
                        continue;
                }
                *link = entry->next;
                cache_entry_free(entry);
        }
}

static void on_cache_synced(int r, void *userdata) {
        ApiServerCache *cache = userdata;

        cache->write_child = NULL;
        log_cache_write_result(cache, r);
        if (r >= 0)
                remove_written_entries(cache);
        for (ApiServerCacheEntry *entry = cache->entries; entry; entry = entry->next)
                entry->is_being_written = false;
        if (cache->entries)
                arm_cache_timer(cache, r < 0 ? CACHE_RETRY_SEC * USEC_PER_SEC : 0);
}

/* The first entries that belong to the same directory and do not wait for the key. 0, or -ENOMEM if
 * there is no memory even for one. */
static int collect_write_batch(ApiServerCache *cache, const char **ret_directory,
                               DurableFile *files, size_t *ret_n) {
        const char *directory = NULL;
        size_t n = 0;

        for (ApiServerCacheEntry *entry = cache->entries; entry && n < DURABLE_WRITE_FILES_MAX;
             entry = entry->next) {
                char *text = NULL;
                int r;

                if (directory && !streq(entry->directory, directory))
                        continue;
                r = entry->text ? format_cache_file(cache, entry, &text) : 0;
                if (r == -EAGAIN || r == -EKEYREJECTED)
                        continue;
                if (r < 0 && n == 0)
                        return r;
                if (r < 0)
                        break;
                directory = entry->directory;
                files[n++] = (DurableFile){ .name = entry->file, .text = text, .mode = 0600 };
                entry->is_being_written = true;
        }
        *ret_directory = directory;
        *ret_n = n;
        return 0;
}

static void free_batch_texts(const DurableFile *files, size_t n) {
        for (size_t i = 0; i < n; i++) {
                char *text;

                memcpy(&text, &files[i].text, sizeof(text));
                if (text)
                        explicit_bzero(text, strlen(text));
                free(text);
        }
}

/* Also 0 if everything waits for the key. */
static int start_cache_write(ApiServerCache *cache) {
        cleanup_free char *path = NULL;
        DurableFile files[DURABLE_WRITE_FILES_MAX];
        const char *directory = NULL;
        size_t n = 0;
        int r = collect_write_batch(cache, &directory, files, &n);

        if (r < 0 || n == 0)
                return r;
        path = path_join(cache->directory, directory);
        r = path ? durable_write_start(cache->event, path, files, n, on_cache_synced, cache,
                                       &cache->write_child)
                 : -ENOMEM;
        free_batch_texts(files, n);
        return r;
}

static int on_cache_write_due(sd_event_source *source, uint64_t usec, void *userdata) {
        ApiServerCache *cache = userdata;
        int r;

        if (cache->write_child || !cache->entries)
                return 0;
        r = start_cache_write(cache);
        if (r < 0)
                on_cache_synced(r, cache);
        return 0;
}

static int cache_entry_new(const char *directory, const char *name, const char *text,
                           ApiServerCacheEntry **ret) {
        cleanup_with(cache_entry_freep) ApiServerCacheEntry *entry = calloc(1, sizeof(*entry));
        char file[CACHE_NAME_SIZE];

        if (!entry)
                return -ENOMEM;
        cache_file_name(name, file);
        entry->directory = directory;
        entry->file = strdup(file);
        entry->text = text ? strdup(text) : NULL;
        if (!entry->file || (text && !entry->text))
                return -ENOMEM;
        *ret = TAKE_PTR(entry);
        return 0;
}

/* Appends the entry and drops an older one of the same name that is not being written yet. */
static void queue_cache_entry(ApiServerCache *cache, ApiServerCacheEntry *entry) {
        ApiServerCacheEntry **link = &cache->entries,
                            *old = find_cache_entry(cache, entry->directory, entry->file);

        while (*link) {
                ApiServerCacheEntry *here = *link;

                if (here != old || here->is_being_written) {
                        link = &here->next;
                        continue;
                }
                *link = here->next;
                cache_entry_free(here);
        }
        *link = entry;
}

void apiserver_cache_write(ApiServerCache *cache, const char *directory, const char *name,
                           const char *text) {
        ApiServerCacheEntry *entry = NULL;

        if (cache_entry_new(directory, name, text, &entry) < 0) {
                log_error("Cannot write %s/%s/%s: out of memory; pods that need it cannot start "
                          "while the API server is unreachable",
                          cache->directory, directory, name);
                return;
        }
        queue_cache_entry(cache, entry);
        if (!cache->write_child && cache->last_error >= 0)
                arm_cache_timer(cache, 0);
}

/* ---- reading ---- */

int apiserver_cache_read(const ApiServerCache *cache, const char *directory, const char *name,
                         size_t max_bytes, char **ret) {
        const ApiServerCacheEntry *entry;
        cleanup_close int fd = -EBADF;
        char file[CACHE_NAME_SIZE];
        int r;

        cache_file_name(name, file);
        entry = find_cache_entry(cache, directory, file);
        if (entry && !entry->text)
                return -ENOENT;
        if (entry) {
                *ret = strdup(entry->text);
                return *ret ? 0 : -ENOMEM;
        }
        fd = open_cache_directory(cache, directory);
        if (fd < 0)
                return fd;
        r = checksummed_read_at(fd, file, encrypted_text_length(max_bytes), ret);
        if (r == -EBADMSG)
                checksummed_set_aside_at(fd, file);
        return r < 0 ? r : decrypt_cache_file(cache, directory, file, ret);
}

/* Excludes files that are being written, whose names start with a dot. */
static int list_cache_files(const ApiServerCache *cache, const char *directory, char ***ret) {
        cleanup_free char *path = path_join(cache->directory, directory);
        cleanup_closedir DIR *dir = path ? opendir(path) : NULL;
        cleanup_strv char **names = NULL;
        const struct dirent *entry;
        int r;

        if (!dir)
                return !path ? -ENOMEM : errno == ENOENT ? 0 : -errno;
        while ((r = read_directory_entry(dir, &entry)) > 0)
                if (entry->d_name[0] != '.' && strv_append(&names, entry->d_name) < 0)
                        return -ENOMEM;
        if (r >= 0)
                *ret = TAKE_PTR(names);
        return r;
}

/* Damaged files have a dot in their names. */
int apiserver_cache_list(const ApiServerCache *cache, const char *directory, char ***ret) {
        cleanup_strv char **names = NULL;
        int r = list_cache_files(cache, directory, &names);

        strv_foreach(name, names)
                if (r >= 0 && !strchr(*name, '.'))
                        r = strv_append(ret, *name);
        return r;
}

void apiserver_cache_empty(ApiServerCache *cache, const char *directory) {
        cleanup_strv char **names = NULL;
        int r = list_cache_files(cache, directory, &names);

        if (r < 0)
                (void) log_error_errno(r, "Cannot list %s/%s", cache->directory, directory);
        for (const ApiServerCacheEntry *entry = cache->entries; entry; entry = entry->next)
                if (streq(entry->directory, directory) && strv_append(&names, entry->file) < 0)
                        (void) log_error_errno(-ENOMEM, "Cannot empty %s/%s", cache->directory,
                                               directory);
        strv_foreach(name, names)
                apiserver_cache_write(cache, directory, *name, NULL);
}

void apiserver_cache_set_aside(const ApiServerCache *cache, const char *directory,
                               const char *name) {
        cleanup_close int fd = open_cache_directory(cache, directory);
        char file[CACHE_NAME_SIZE];

        cache_file_name(name, file);
        if (fd >= 0)
                checksummed_set_aside_at(fd, file);
}

/* ---- files of earlier versions ---- */

static bool is_file_encrypted(int dir_fd, const char *name) {
        cleanup_close int fd = openat(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        char start[sizeof(ENCRYPTED_TEXT_PREFIX)] = "";

        return fd >= 0 && read(fd, start, sizeof(start) - 1) == (ssize_t) sizeof(start) - 1 &&
               is_encrypted_text(start);
}

/* JSON contains quotes and tokens contain dots; encrypted files contain neither, even if they are
 * damaged. */
static bool may_be_in_clear(int dir_fd, const char *name) {
        cleanup_free char *data = NULL;
        size_t length = 0;
        bool result;

        if (read_file_at(dir_fd, name, OLD_FILE_MAX_BYTES, &data, &length) < 0)
                return false;
        result = memchr(data, '"', length) || memchr(data, '.', length);
        explicit_bzero(data, length);
        return result;
}

/* A damaged file is useless and would stay unencrypted, so it is removed. */
static void encrypt_old_file(ApiServerCache *cache, const char *directory, int dir_fd,
                             const char *name) {
        cleanup_free char *text = NULL;
        int r = checksummed_read_at(dir_fd, name, OLD_FILE_MAX_BYTES, &text);

        if (r == -EBADMSG && may_be_in_clear(dir_fd, name))
                (void) unlinkat(dir_fd, name, 0);
        if (r < 0)
                return;
        apiserver_cache_write(cache, directory, name, text);
        explicit_bzero(text, strlen(text));
}

static void encrypt_old_files(ApiServerCache *cache, const char *directory) {
        cleanup_close int fd = open_cache_directory(cache, directory);
        cleanup_strv char **names = NULL;

        if (fd < 0 || list_cache_files(cache, directory, &names) < 0)
                return;
        strv_foreach(name, names)
                if (!find_cache_entry(cache, directory, *name) && !is_file_encrypted(fd, *name))
                        encrypt_old_file(cache, directory, fd, *name);
}

void apiserver_cache_on_key(ApiServerCache *cache) {
        if (!cache->is_encrypted && secret_storage_is_open(cache->storage)) {
                cache->is_encrypted = true;
                for (size_t i = 0; i < N_ELEMENTS(encrypted_directories); i++)
                        encrypt_old_files(cache, encrypted_directories[i]);
        }
        if (cache->entries && !cache->write_child && cache->last_error >= 0)
                arm_cache_timer(cache, 0);
}

/* ---- construction and shutdown ---- */

int apiserver_cache_new(sd_event *event, const char *state_dir, SecretStorage *storage,
                        ApiServerCache **ret) {
        ApiServerCache *cache = calloc(1, sizeof(*cache));
        int r;

        if (!cache)
                return -ENOMEM;
        cache->event = event;
        cache->storage = storage;
        /* The name of the directory is unchanged, so that an updated agent finds the cache. */
        cache->directory = path_join(state_dir, "cluster");
        r = cache->directory ? event_add_disabled_timer(event, &cache->write_timer, CLOCK_BOOTTIME,
                                                        1, on_cache_write_due, cache)
                             : -ENOMEM;
        if (r < 0) {
                apiserver_cache_free(cache);
                return r;
        }
        *ret = cache;
        return 0;
}

/* Whether an older text of the same file is being written. */
static bool is_overtaken(const ApiServerCache *cache, const ApiServerCacheEntry *entry) {
        for (const ApiServerCacheEntry *other = cache->entries; other; other = other->next)
                if (other->is_being_written && streq(other->directory, entry->directory) &&
                    streq(other->file, entry->file))
                        return true;
        return false;
}

/* The child that is writing must not replace a newer text that is written here. */
static void wait_for_overtaken_write(ApiServerCache *cache) {
        for (const ApiServerCacheEntry *entry = cache->entries; entry; entry = entry->next)
                if (cache->write_child && !entry->is_being_written && is_overtaken(cache, entry)) {
                        (void) forked_task_wait(cache->write_child);
                        cache->write_child = NULL;
                }
}

/* Entries whose write has not started are written here, because the loop has ended. */
static void write_pending_entries(const ApiServerCache *cache) {
        for (const ApiServerCacheEntry *entry = cache->entries; entry; entry = entry->next) {
                cleanup_close int fd = open_cache_directory(cache, entry->directory);

                cleanup_free char *text = NULL;

                if (fd < 0 || entry->is_being_written)
                        continue;
                if (!entry->text)
                        (void) unlinkat(fd, entry->file, 0);
                else if (format_cache_file(cache, entry, &text) >= 0)
                        (void) write_file_atomic_at(fd, entry->file, text, strlen(text), 0600);
        }
}

ApiServerCache *apiserver_cache_free(ApiServerCache *cache) {
        if (!cache)
                return NULL;
        wait_for_overtaken_write(cache);
        write_pending_entries(cache);
        forked_task_free(cache->write_child);
        sd_event_source_disable_unref(cache->write_timer);
        while (cache->entries) {
                ApiServerCacheEntry *entry = cache->entries;

                cache->entries = entry->next;
                cache_entry_free(entry);
        }
        free(cache->directory);
        free(cache);
        return NULL;
}
