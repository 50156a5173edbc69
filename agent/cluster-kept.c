/* SPDX-License-Identifier: Apache-2.0 */
/* <state>/cluster: what is kept for when the server is away. Each file is sealed and written by a
 * child, which syncs it, so that a power cut leaves the old one or the new one and nobody waits for
 * a disk. Who asks for what is still to be written gets it. A disk that takes nothing is tried
 * again; what is another by then is written as it is then. */

#include "agent/cluster-private.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file-sync.h"
#include "common/file.h"
#include "common/log.h"
#include "common/sealed.h"

#include <fcntl.h>
#include <unistd.h>

enum {
        AGAIN_SEC = 5, /* after a disk that took nothing */
};

typedef struct Entry Entry;
struct Entry {
        Entry *following;
        const char *directory; /* static */
        char *name;
        char *text; /* NULL: it is to be removed */
        bool is_under_way;
};

struct ClusterKept {
        Cluster *cluster;
        Entry *entries; /* in their order */
        Forked *sync;
        sd_event_source *due;
        int trouble; /* -errno, that was said */
};

static Entry *entry_free(Entry *entry) {
        if (!entry)
                return NULL;
        if (entry->text)
                explicit_bzero(entry->text, strlen(entry->text));
        free(entry->text);
        free(entry->name);
        free(entry);
        return NULL;
}
DEFINE_CLEANUP(Entry *, entry_free)

/* The last one is what it will be. */
static Entry *find(const ClusterKept *kept, const char *directory, const char *name) {
        Entry *found = NULL;

        for (Entry *entry = kept->entries; entry; entry = entry->following)
                if (streq(entry->directory, directory) && streq(entry->name, name))
                        found = entry;
        return found;
}

static char *print_directory(const Cluster *cluster, const char *directory) {
        char *path = NULL;

        return asprintf(&path, "%s/cluster/%s", cluster->config.state_dir, directory) < 0 ? NULL
                                                                                          : path;
}

/* ---- writing ---- */

static void arm(ClusterKept *kept, uint64_t usec) {
        (void) sd_event_source_set_time_relative(kept->due, usec);
        (void) sd_event_source_set_enabled(kept->due, SD_EVENT_ONESHOT);
}

static void say(ClusterKept *kept, int r) {
        if (r < 0 && r != kept->trouble)
                (void) log_error_errno(r, "Cannot keep in %s/cluster what the API server said",
                                       kept->cluster->config.state_dir);
        else if (r >= 0 && kept->trouble < 0)
                log_info("What the API server said is kept again");
        kept->trouble = r;
}

static void forget_written(ClusterKept *kept) {
        Entry **link = &kept->entries;

        while (*link) {
                Entry *entry = *link;

                if (!entry->is_under_way) {
                        link = &entry->following;
                        continue;
                }
                *link = entry->following;
                entry_free(entry);
        }
}

static void on_synced(int r, void *userdata) {
        ClusterKept *kept = userdata;

        kept->sync = NULL;
        say(kept, r);
        if (r >= 0)
                forget_written(kept);
        for (Entry *entry = kept->entries; entry; entry = entry->following)
                entry->is_under_way = false;
        if (kept->entries)
                arm(kept, r < 0 ? AGAIN_SEC * USEC_PER_SEC : 0);
}

/* As many of the first ones as belong into one directory. */
static size_t take_batch(ClusterKept *kept, FileText *files) {
        size_t n = 0, length;

        for (Entry *entry = kept->entries; entry && n < FILE_SYNC_MAX; entry = entry->following) {
                if (!streq(entry->directory, kept->entries->directory))
                        continue;
                files[n] = (FileText){ .name = entry->name, .mode = 0600 };
                if (entry->text && !(files[n].text = sealed_format(entry->text, &length)))
                        break;
                entry->is_under_way = true;
                n++;
        }
        return n;
}

static void free_texts(const FileText *files, size_t n) {
        for (size_t i = 0; i < n; i++) {
                char *text;

                memcpy(&text, &files[i].text, sizeof(text));
                if (text)
                        explicit_bzero(text, strlen(text));
                free(text);
        }
}

static int begin(ClusterKept *kept) {
        cleanup_free char *path = print_directory(kept->cluster, kept->entries->directory);
        FileText files[FILE_SYNC_MAX];
        size_t n;
        int r;

        if (!path)
                return -ENOMEM;
        n = take_batch(kept, files);
        r = n == 0 ? -ENOMEM
                   : file_sync_start(kept->cluster->config.event, path, files, n, on_synced, kept,
                                     &kept->sync);
        free_texts(files, n);
        return r;
}

static int on_due(sd_event_source *source, uint64_t usec, void *userdata) {
        ClusterKept *kept = userdata;
        int r;

        if (kept->sync || !kept->entries)
                return 0;
        r = begin(kept);
        if (r < 0)
                on_synced(r, kept);
        return 0;
}

static int entry_new(const char *directory, const char *name, const char *text, Entry **ret) {
        cleanup_with(entry_freep) Entry *entry = calloc(1, sizeof(*entry));

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
static void put(ClusterKept *kept, Entry *entry) {
        Entry **link = &kept->entries, *old = find(kept, entry->directory, entry->name);

        while (*link) {
                Entry *here = *link;

                if (here != old || here->is_under_way) {
                        link = &here->following;
                        continue;
                }
                *link = here->following;
                entry_free(here);
        }
        *link = entry;
}

void cluster_keep(Cluster *cluster, const char *directory, const char *name, const char *text) {
        ClusterKept *kept = cluster->kept;
        Entry *entry = NULL;
        int r = entry_new(directory, name, text, &entry);

        if (r < 0) {
                log_error("Out of memory, %s is not kept for when the API server is away", name);
                return;
        }
        put(kept, entry);
        if (!kept->sync && kept->trouble >= 0)
                arm(kept, 0);
}

/* ---- reading ---- */

int cluster_read_kept(const Cluster *cluster, const char *directory, const char *name,
                      size_t max_bytes, char **ret) {
        const Entry *entry = find(cluster->kept, directory, name);
        cleanup_free char *path = print_directory(cluster, directory);
        cleanup_close int fd = -EBADF;
        int r;

        if (entry && !entry->text)
                return -ENOENT;
        if (entry) {
                *ret = strdup(entry->text);
                return *ret ? 0 : -ENOMEM;
        }
        fd = path ? open_directory_at(AT_FDCWD, path, 0700) : -ENOMEM;
        r = fd < 0 ? fd : sealed_read_at(fd, name, max_bytes, ret);
        if (r == -EBADMSG)
                sealed_set_aside_at(fd, name);
        return r;
}

void cluster_set_kept_aside(const Cluster *cluster, const char *directory, const char *name) {
        cleanup_free char *path = print_directory(cluster, directory);
        cleanup_close int fd = path ? open_directory_at(AT_FDCWD, path, 0700) : -ENOMEM;

        if (fd >= 0)
                sealed_set_aside_at(fd, name);
}

/* ---- life ---- */

int cluster_kept_new(Cluster *cluster) {
        ClusterKept *kept = calloc(1, sizeof(*kept));
        int r;

        if (!kept)
                return -ENOMEM;
        kept->cluster = cluster;
        cluster->kept = kept;
        r = sd_event_add_time(cluster->config.event, &kept->due, CLOCK_BOOTTIME, 0, 1, on_due,
                              kept);
        return r < 0 ? r : sd_event_source_set_enabled(kept->due, SD_EVENT_OFF);
}

/* What has not begun is written now, for there is no loop any more that would. */
static void write_rest(const ClusterKept *kept) {
        for (const Entry *entry = kept->entries; entry; entry = entry->following) {
                cleanup_free char *path = print_directory(kept->cluster, entry->directory);
                cleanup_close int fd = path ? open_directory_at(AT_FDCWD, path, 0700) : -ENOMEM;

                if (fd < 0 || entry->is_under_way)
                        continue;
                if (entry->text)
                        (void) sealed_write_at(fd, entry->name, entry->text, 0600);
                else
                        (void) unlinkat(fd, entry->name, 0);
        }
}

void cluster_forget_kept(Cluster *cluster) {
        ClusterKept *kept = cluster->kept;

        if (!kept)
                return;
        write_rest(kept);
        forked_free(kept->sync);
        sd_event_source_disable_unref(kept->due);
        while (kept->entries) {
                Entry *entry = kept->entries;

                kept->entries = entry->following;
                entry_free(entry);
        }
        free(kept);
        cluster->kept = NULL;
}
