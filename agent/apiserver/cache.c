/* SPDX-License-Identifier: Apache-2.0 */
/* <state>/cluster: what is kept for when the server is away. Each file is sealed and written by a
 * child, which syncs it, so that a power cut leaves the old one or the new one and nobody waits for
 * a disk. Who asks for what is still to be written gets it. A disk that takes nothing is tried
 * again; what is another by then is written as it is then. */

#include "agent/apiserver/apiserver-private.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable-write.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <unistd.h>

enum {
        CACHE_RETRY_SEC = 5, /* after a disk that took nothing */
};

typedef struct ApiServerCacheEntry ApiServerCacheEntry;
struct ApiServerCacheEntry {
        ApiServerCacheEntry *next;
        const char *directory; /* static */
        char *name;
        char *text; /* NULL: it is to be removed */
        bool is_being_written;
};

struct ApiServerCache {
        ApiServerSync *api;
        ApiServerCacheEntry *entries; /* in their order */
        ForkedTask *write_child;
        sd_event_source *write_timer;
        int last_error; /* -errno, that was said */
};

static ApiServerCacheEntry *cache_entry_free(ApiServerCacheEntry *entry) {
        if (!entry)
                return NULL;
        if (entry->text)
                explicit_bzero(entry->text, strlen(entry->text));
        free(entry->text);
        free(entry->name);
        free(entry);
        return NULL;
}
DEFINE_CLEANUP(ApiServerCacheEntry *, cache_entry_free)

/* The last one is what it will be. */
static ApiServerCacheEntry *find_cache_entry(const ApiServerCache *cache, const char *directory,
                                             const char *name) {
        ApiServerCacheEntry *found = NULL;

        for (ApiServerCacheEntry *entry = cache->entries; entry; entry = entry->next)
                if (streq(entry->directory, directory) && streq(entry->name, name))
                        found = entry;
        return found;
}

static char *format_cache_directory(const ApiServerSync *api, const char *directory) {
        char *path = NULL;

        return asprintf(&path, "%s/cluster/%s", api->config.state_dir, directory) < 0 ? NULL : path;
}

/* ---- writing ---- */

static void arm_cache_timer(ApiServerCache *cache, uint64_t usec) {
        (void) sd_event_source_set_time_relative(cache->write_timer, usec);
        (void) sd_event_source_set_enabled(cache->write_timer, SD_EVENT_ONESHOT);
}

static void log_cache_write_result(ApiServerCache *cache, int r) {
        if (r < 0 && r != cache->last_error)
                (void) log_error_errno(r, "Cannot keep in %s/cluster what the API server said",
                                       cache->api->config.state_dir);
        else if (r >= 0 && cache->last_error < 0)
                log_info("What the API server said is kept again");
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

/* As many of the first ones as belong into one directory. */
static size_t collect_write_batch(ApiServerCache *cache, DurableFile *files) {
        size_t n = 0, length;

        for (ApiServerCacheEntry *entry = cache->entries; entry && n < DURABLE_WRITE_FILES_MAX;
             entry = entry->next) {
                if (!streq(entry->directory, cache->entries->directory))
                        continue;
                files[n] = (DurableFile){ .name = entry->name, .mode = 0600 };
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
        cleanup_free char *path = format_cache_directory(cache->api, cache->entries->directory);
        DurableFile files[DURABLE_WRITE_FILES_MAX];
        size_t n;
        int r;

        if (!path)
                return -ENOMEM;
        n = collect_write_batch(cache, files);
        r = n == 0 ? -ENOMEM
                   : durable_write_start(cache->api->config.event, path, files, n, on_cache_synced,
                                         cache, &cache->write_child);
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

        if (!entry)
                return -ENOMEM;
        entry->directory = directory;
        entry->name = strdup(name);
        entry->text = text ? strdup(text) : NULL;
        if (!entry->name || (text && !entry->text))
                return -ENOMEM;
        *ret = TAKE_PTR(entry);
        return 0;
}

/* Behind all others; what would be written before is not, if that has not begun. */
static void queue_cache_entry(ApiServerCache *cache, ApiServerCacheEntry *entry) {
        ApiServerCacheEntry **link = &cache->entries,
                            *old = find_cache_entry(cache, entry->directory, entry->name);

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

void apiserver_cache_write(ApiServerSync *api, const char *directory, const char *name,
                           const char *text) {
        ApiServerCache *cache = api->cache;
        ApiServerCacheEntry *entry = NULL;
        int r = cache_entry_new(directory, name, text, &entry);

        if (r < 0) {
                log_error("Out of memory, %s is not kept for when the API server is away", name);
                return;
        }
        queue_cache_entry(cache, entry);
        if (!cache->write_child && cache->last_error >= 0)
                arm_cache_timer(cache, 0);
}

/* ---- reading ---- */

int apiserver_cache_read(const ApiServerSync *api, const char *directory, const char *name,
                         size_t max_bytes, char **ret) {
        const ApiServerCacheEntry *entry = find_cache_entry(api->cache, directory, name);
        cleanup_free char *path = format_cache_directory(api, directory);
        cleanup_close int fd = -EBADF;
        int r;

        if (entry && !entry->text)
                return -ENOENT;
        if (entry) {
                *ret = strdup(entry->text);
                return *ret ? 0 : -ENOMEM;
        }
        fd = path ? open_directory_at(AT_FDCWD, path, 0700) : -ENOMEM;
        r = fd < 0 ? fd : checksummed_read_at(fd, name, max_bytes, ret);
        if (r == -EBADMSG)
                checksummed_set_aside_at(fd, name);
        return r;
}

void apiserver_cache_set_aside(const ApiServerSync *api, const char *directory, const char *name) {
        cleanup_free char *path = format_cache_directory(api, directory);
        cleanup_close int fd = path ? open_directory_at(AT_FDCWD, path, 0700) : -ENOMEM;

        if (fd >= 0)
                checksummed_set_aside_at(fd, name);
}

/* ---- life ---- */

int apiserver_cache_new(ApiServerSync *api) {
        ApiServerCache *cache = calloc(1, sizeof(*cache));
        int r;

        if (!cache)
                return -ENOMEM;
        cache->api = api;
        api->cache = cache;
        r = sd_event_add_time(api->config.event, &cache->write_timer, CLOCK_BOOTTIME, 0, 1,
                              on_cache_write_due, cache);
        return r < 0 ? r : sd_event_source_set_enabled(cache->write_timer, SD_EVENT_OFF);
}

/* What has not begun is written now, for there is no loop any more that would. */
static void write_pending_entries(const ApiServerCache *cache) {
        for (const ApiServerCacheEntry *entry = cache->entries; entry; entry = entry->next) {
                cleanup_free char *path = format_cache_directory(cache->api, entry->directory);
                cleanup_close int fd = path ? open_directory_at(AT_FDCWD, path, 0700) : -ENOMEM;

                if (fd < 0 || entry->is_being_written)
                        continue;
                if (entry->text)
                        (void) checksummed_write_at(fd, entry->name, entry->text, 0600);
                else
                        (void) unlinkat(fd, entry->name, 0);
        }
}

void apiserver_cache_free(ApiServerSync *api) {
        ApiServerCache *cache = api->cache;

        if (!cache)
                return;
        write_pending_entries(cache);
        forked_task_free(cache->write_child);
        sd_event_source_disable_unref(cache->write_timer);
        while (cache->entries) {
                ApiServerCacheEntry *entry = cache->entries;

                cache->entries = entry->next;
                cache_entry_free(entry);
        }
        free(cache);
        api->cache = NULL;
}
