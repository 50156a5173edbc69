/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads the cache. Reading returns the queued content, if there is any. A failed write
 * is retried with the content that is queued by then. */

#include "agent/apiserver/cache.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable-write.h"
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
};

typedef struct ApiServerCacheEntry ApiServerCacheEntry;
struct ApiServerCacheEntry {
        ApiServerCacheEntry *next;
        const char *directory; /* static */
        char *file;            /* its name there */
        char *text;            /* NULL: the file is to be removed */
        bool is_being_written;
};

struct ApiServerCache {
        sd_event *event;
        char *directory;              /* <state>/cluster */
        ApiServerCacheEntry *entries; /* in the order of the writes */
        ForkedTask *write_child;
        sd_event_source *write_timer;
        int last_error; /* -errno, logged */
};

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

/* The name itself; of one that is too long for a file, its start and its hash. */
static void cache_file_name(const char *name, char ret[CACHE_NAME_SIZE]) {
        char hash[SHA256_HEX_SIZE];

        if (strlen(name) <= DURABLE_WRITE_NAME_MAX) {
                (void) snprintf(ret, CACHE_NAME_SIZE, "%s", name);
                return;
        }
        sha256_hex(name, strlen(name), hash);
        (void) snprintf(ret, CACHE_NAME_SIZE, "%.100s-%s", name, hash);
}

/* The last entry of a name is the one that counts. */
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

/* The first entries that belong in one directory. */
static size_t collect_write_batch(ApiServerCache *cache, DurableFile *files) {
        size_t n = 0, length;

        for (ApiServerCacheEntry *entry = cache->entries; entry && n < DURABLE_WRITE_FILES_MAX;
             entry = entry->next) {
                if (!streq(entry->directory, cache->entries->directory))
                        continue;
                files[n] = (DurableFile){ .name = entry->file, .mode = 0600 };
                if (entry->text && !(files[n].text = checksummed_format(entry->text, &length)))
                        break;
                entry->is_being_written = true;
                n++;
        }
        return n;
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

static int start_cache_write(ApiServerCache *cache) {
        cleanup_free char *path = path_join(cache->directory, cache->entries->directory);
        DurableFile files[DURABLE_WRITE_FILES_MAX];
        size_t n;
        int r;

        if (!path)
                return -ENOMEM;
        n = collect_write_batch(cache, files);
        r = n == 0 ? -ENOMEM
                   : durable_write_start(cache->event, path, files, n, on_cache_synced, cache,
                                         &cache->write_child);
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
        r = checksummed_read_at(fd, file, max_bytes, ret);
        if (r == -EBADMSG)
                checksummed_set_aside_at(fd, file);
        return r;
}

/* Files that are being written, and damaged ones, have a dot in their names. */
int apiserver_cache_list(const ApiServerCache *cache, const char *directory, char ***ret) {
        cleanup_free char *path = path_join(cache->directory, directory);
        cleanup_closedir DIR *dir = path ? opendir(path) : NULL;
        cleanup_strv char **names = NULL;
        const struct dirent *entry;
        int r;

        if (!dir)
                return !path ? -ENOMEM : errno == ENOENT ? 0 : -errno;
        while ((r = read_directory_entry(dir, &entry)) > 0)
                if (!strchr(entry->d_name, '.') && strv_append(&names, entry->d_name) < 0)
                        return -ENOMEM;
        if (r >= 0)
                *ret = TAKE_PTR(names);
        return r;
}

void apiserver_cache_empty(ApiServerCache *cache, const char *directory) {
        cleanup_strv char **names = NULL;
        int r = apiserver_cache_list(cache, directory, &names);

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

/* ---- construction and shutdown ---- */

int apiserver_cache_new(sd_event *event, const char *state_dir, ApiServerCache **ret) {
        ApiServerCache *cache = calloc(1, sizeof(*cache));
        int r;

        if (!cache)
                return -ENOMEM;
        cache->event = event;
        /* The directory keeps its name, so that an update finds the cache. */
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

/* An older text of the same file is being written. */
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

/* Entries whose write has not started are written here: the loop has ended. */
static void write_pending_entries(const ApiServerCache *cache) {
        for (const ApiServerCacheEntry *entry = cache->entries; entry; entry = entry->next) {
                cleanup_close int fd = open_cache_directory(cache, entry->directory);

                if (fd < 0 || entry->is_being_written)
                        continue;
                if (entry->text)
                        (void) checksummed_write_at(fd, entry->file, entry->text, 0600);
                else
                        (void) unlinkat(fd, entry->file, 0);
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
