/* SPDX-License-Identifier: Apache-2.0 */

/* The manifest directory (staticPodPath; kubelet: config source file). inotify events are only a
 * trigger: when the queue has been drained, the directory is scanned once, and the result is
 * compared with the known state. Therefore an overflow of the queue, the renames of an editor and
 * the first scan are handled in the same way.
 *
 * A file that cannot be read never removes anything. Pods are dropped only if their file is absent
 * from a directory that can be listed and that is either the known one or contains manifests.
 *
 * No timer runs in the normal case. A timer is armed while a file is being written, for a moment
 * after a file has vanished (editors remove a file and put it back), while the directory cannot be
 * read, and if inotify is not available. */

#include "agent/manifest/manifest-table.h"
#include "agent/manifest/manifest.h"
#include "agent/model/names.h"
#include "agent/model/pod-source.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define BUSY_RETRY_USEC  (250 * USEC_PER_MSEC)
#define MISSING_USEC     (250 * USEC_PER_MSEC)
#define ERROR_RETRY_USEC (1 * USEC_PER_SEC)
#define POLL_USEC        (5 * USEC_PER_SEC)

/* Parsing a file larger than this leaves so much free memory in the heap that it is returned to the
 * kernel. */
#define LARGE_FILE_BYTES (64 * KIB)

/* The priority is below process exits and timers, which concern running pods. */
enum {
        INOTIFY_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 10,
        SCAN_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 11,
        INOTIFY_EVENTS_MAX = 1000,
};

struct ManifestDirectory {
        sd_event *event;
        char *directory;
        char *node_name;
        manifest_changed_t on_changed;
        void *userdata;

        ManifestTable table;
        char *last_error;
        char *warning; /* users other than root may write */
        unsigned generation;
        unsigned fetched_generation; /* likewise, for fetched manifests */
        bool has_new_fetched;        /* since the last scan */
        bool is_started;

        /* The directory from which the current set was read, and the watched one. */
        dev_t known_device;
        ino_t known_inode;
        bool is_known;
        dev_t watched_device;
        ino_t watched_inode;
        bool has_logged_polling;
        bool is_unresolved;        /* the last scan ran out of memory */
        unsigned n_inotify_events; /* since the last scan */

        sd_event_source *inotify_source;
        sd_event_source *scan_source;
        sd_event_source *timer;
};

/* The result of a scan. */
typedef struct DirectoryScan {
        ManifestDirectory *source;
        int dir_fd;
        bool has_changed;
        bool has_read_much;
        uint64_t next_usec; /* relative time of the next scan; USEC_INFINITY: only on an inotify
                               event */
} DirectoryScan;

static void schedule_scan(DirectoryScan *scan, uint64_t usec) {
        scan->next_usec = MIN(scan->next_usec, usec);
}

/* The directory was moved or removed. A later one at this path is a different directory, even if it
 * has the same inode number. */
static void reset_known_directory(ManifestDirectory *source) {
        source->known_inode = 0;
        source->watched_inode = 0;
}

static int on_manifest_inotify_event(sd_event_source *inotify_source,
                                     const struct inotify_event *event, void *userdata);

/* Watches the open directory, unless it is already watched. */
static void watch_manifest_directory(DirectoryScan *scan, const struct stat *st) {
        static const uint32_t mask = IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM |
                                     IN_DELETE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF |
                                     IN_ONLYDIR | IN_EXCL_UNLINK;
        ManifestDirectory *source = scan->source;
        int r;

        if (source->inotify_source && source->watched_device == st->st_dev &&
            source->watched_inode == st->st_ino)
                return;
        source->inotify_source = sd_event_source_disable_unref(source->inotify_source);
        r = sd_event_add_inotify_fd(source->event, &source->inotify_source, scan->dir_fd, mask,
                                    on_manifest_inotify_event, source);
        if (r >= 0)
                r = sd_event_source_set_priority(source->inotify_source, INOTIFY_PRIORITY);
        if (r < 0) {
                source->inotify_source = sd_event_source_disable_unref(source->inotify_source);
                if (!source->has_logged_polling)
                        log_warning("Cannot watch '%s': %s; polling it every 5s", source->directory,
                                    strerror(-r));
                source->has_logged_polling = true;
                return;
        }
        (void) sd_event_source_set_description(source->inotify_source, "manifest-directory");
        source->watched_device = st->st_dev;
        source->watched_inode = st->st_ino;
        source->has_logged_polling = false;
}

static void set_directory_error_take(DirectoryScan *scan, char *error_text) {
        if (!streq_ptr(scan->source->last_error, error_text))
                scan->has_changed = true;
        free(scan->source->last_error);
        scan->source->last_error = error_text;
}

static void set_directory_error(DirectoryScan *scan, const char *what) {
        char *error_text = text_format("%s: %s", scan->source->directory, what);

        set_directory_error_take(scan, error_text);
}

static int replace_entry_objects(DirectoryScan *scan, ManifestEntry *entry, const char *data,
                                 size_t length, Error *reterr) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        int r = manifest_parse(entry->manifest.file, data, length, scan->source->node_name,
                               &objects, reterr);

        if (r < 0)
                return r;
        r = manifest_entry_check_immutable(entry, &objects, reterr);
        if (r < 0)
                return r;
        r = manifest_entry_check_selectors(entry, &objects, reterr);
        if (r < 0)
                return r;
        return manifest_entry_set_objects(&scan->source->table, entry, &objects);
}

/* Replaces the bytes of a file. */
static int load_manifest_file(DirectoryScan *scan, ManifestEntry *entry, const char *data,
                              size_t length, Error *reterr) {
        char hash[SHA256_HEX_SIZE];
        int r;

        sha256_hex(data, length, hash);
        if (streq(hash, entry->manifest.hash))
                return READER_UNCHANGED;
        r = replace_entry_objects(scan, entry, data, length, reterr);
        /* Memory is exhausted, so the file is parsed again later. */
        if (r != -ENOMEM)
                memcpy(entry->manifest.hash, hash, sizeof(hash));
        return r;
}

/* The error of a file that cannot be used, or NULL. The last good pods stay in both cases. */
static int set_file_error(DirectoryScan *scan, ManifestEntry *entry, const char *text) {
        char *error_text = text ? strdup(text) : NULL;

        if (text && !error_text)
                return -ENOMEM;
        if (manifest_entry_set_error_take(entry, error_text))
                scan->has_changed = true;
        return 0;
}

/* The file cannot be read at all. When it can be read again, it counts as new, regardless of its
 * content.
 */
static int mark_file_unreadable(DirectoryScan *scan, ManifestEntry *entry, const char *text) {
        entry->stamp = (ManifestStamp){ 0 };
        entry->manifest.hash[0] = '\0';
        return set_file_error(scan, entry, text);
}

static int update_manifest_entry(DirectoryScan *scan, ManifestEntry *entry,
                                 const ManifestStamp *stamp, const char *data, size_t length) {
        cleanup_error Error error = ERROR_NULL;
        int r = load_manifest_file(scan, entry, data, length, &error);

        scan->has_read_much = scan->has_read_much || length > LARGE_FILE_BYTES;
        if (r == -ENOMEM)
                return r;
        entry->stamp = *stamp;
        if (r == READER_UNCHANGED)
                return 0;
        scan->has_changed = true;
        return set_file_error(scan, entry, r < 0 ? error_message(&error, r) : NULL);
}

/* The kubelet does not check this either. Refusing the directory would prevent all pods from
 * starting because of a mode, so the mode is only reported. */
static void check_directory_writers(DirectoryScan *scan, const struct stat *st) {
        bool is_shared = (st->st_uid != 0 && st->st_uid != geteuid()) || (st->st_mode & S_IWOTH) ||
                         ((st->st_mode & S_IWGRP) && st->st_gid != 0);
        char *warning = NULL;

        if (is_shared)
                warning = text_format(
                        "%s: users other than root may write here (mode %04o, owner %u:%u) and so "
                        "run anything as root",
                        scan->source->directory, (unsigned) st->st_mode & 07777,
                        (unsigned) st->st_uid, (unsigned) st->st_gid);
        if (!streq_ptr(scan->source->warning, warning))
                scan->has_changed = true;
        free(scan->source->warning);
        scan->source->warning = warning;
}

/* Conditions that end without an event in the directory. */
static bool is_transient_error(int r) {
        return r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EIO || r == -ESTALE;
}

/* Scans one name of the directory. Returns an error only if memory is exhausted. */
static int scan_file(DirectoryScan *scan, const char *file) {
        ManifestEntry *entry = manifest_table_find(&scan->source->table, file);
        ManifestStamp stamp = entry ? entry->stamp : (ManifestStamp){ 0 };
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *data = NULL;
        size_t length;
        int r;

        r = read_manifest_file(scan->dir_fd, file, &stamp, &data, &length, &error);
        if (r == READER_BUSY)
                schedule_scan(scan, BUSY_RETRY_USEC);
        /* A new file is used only once it is complete. A file that vanished after the listing
         * counts as absent. */
        if ((r == READER_BUSY && !entry) || (r == -ENOENT && !error.message))
                return 0;
        if (!entry)
                entry = manifest_table_get(&scan->source->table, file);
        if (!entry)
                return -ENOMEM;
        entry->generation = scan->source->generation;
        entry->missing_since = 0;
        if (is_transient_error(r))
                schedule_scan(scan, ERROR_RETRY_USEC);
        if (r < 0)
                return mark_file_unreadable(scan, entry, error_message(&error, r));
        return r == 0 ? update_manifest_entry(scan, entry, &stamp, data, length) : 0;
}

/* A file that this scan has not found is kept for a moment, because some editors save by removing
 * and renaming. */
static bool is_file_removed(DirectoryScan *scan, ManifestEntry *entry, bool is_first) {
        uint64_t now = now_boottime_usec();

        if (entry->generation == scan->source->generation || manifest_is_fetched(&entry->manifest))
                return false;
        if (is_first || entry->pods.n + entry->data.n + entry->daemonsets.n == 0)
                return true;
        if (entry->missing_since == 0)
                entry->missing_since = now;
        if (now - entry->missing_since >= MISSING_USEC)
                return true;
        schedule_scan(scan, MISSING_USEC - (now - entry->missing_since));
        return false;
}

static void drop_removed_files(DirectoryScan *scan, bool is_first) {
        ManifestTable *table = &scan->source->table;

        for (size_t i = table->n; i > 0; i--)
                if (is_file_removed(scan, table->entries[i - 1], is_first)) {
                        manifest_table_remove(table, i - 1);
                        scan->has_changed = true;
                }
}

/* There is a different directory at the path, without manifests: because of a mount or an unmount,
 * or because a new directory is still being filled. */
static bool is_empty_replacement(const ManifestDirectory *source, const struct stat *st,
                                 char *const *names) {
        bool is_same = st->st_dev == source->known_device && st->st_ino == source->known_inode;

        return source->is_known && !is_same && !names && source->table.n > 0;
}

static int scan_names(DirectoryScan *scan, const struct stat *st, char **names) {
        ManifestDirectory *source = scan->source;
        bool is_first = source->generation == 0;

        source->generation++;
        strv_foreach(name, names) {
                int r = scan_file(scan, *name);
                if (r < 0)
                        return r;
        }
        drop_removed_files(scan, is_first);
        source->known_device = st->st_dev;
        source->known_inode = st->st_ino;
        source->is_known = true;
        return 0;
}

static void scan_open_directory(DirectoryScan *scan) {
        cleanup_strv char **names = NULL;
        struct stat st;
        int r;

        if (fstat(scan->dir_fd, &st) < 0) {
                set_directory_error(scan, strerror(errno));
                schedule_scan(scan, ERROR_RETRY_USEC);
                return;
        }
        check_directory_writers(scan, &st);
        watch_manifest_directory(scan, &st);
        if (!scan->source->inotify_source)
                schedule_scan(scan, POLL_USEC);

        r = list_manifest_files(scan->dir_fd, &names);
        if (r >= 0 && is_empty_replacement(scan->source, &st, names)) {
                set_directory_error(scan, "was replaced by an empty directory; "
                                          "its pods are kept");
                schedule_scan(scan, ERROR_RETRY_USEC);
                return;
        }
        if (r >= 0)
                r = scan_names(scan, &st, names);
        if (r < 0) {
                set_directory_error(scan, r == -E2BIG ? "holds too many manifests" : strerror(-r));
                schedule_scan(scan, ERROR_RETRY_USEC);
        } else
                set_directory_error_take(scan, NULL);
}

static void arm_manifest_scan_timer(ManifestDirectory *source, uint64_t usec) {
        int r = usec == USEC_INFINITY ? sd_event_source_set_enabled(source->timer, SD_EVENT_OFF)
                                      : event_timer_arm(source->timer, usec);

        if (r < 0)
                log_warning_errno(r, "Cannot set the timer of '%s'", source->directory);
}

/* True if anything has changed. If memory is insufficient to resolve names, no change is
 * reported. */
static bool scan_directory(ManifestDirectory *source) {
        cleanup_close int fd =
                openat(AT_FDCWD, source->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DirectoryScan scan = { .source = source, .dir_fd = fd, .next_usec = USEC_INFINITY };
        bool has_changed;
        int r;

        if (fd >= 0)
                scan_open_directory(&scan);
        else {
                set_directory_error(&scan, strerror(errno));
                reset_known_directory(source);
                source->inotify_source = sd_event_source_disable_unref(source->inotify_source);
                schedule_scan(&scan, ERROR_RETRY_USEC);
        }
        r = manifest_table_resolve_names(&source->table, now_realtime_usec());
        if (r < 0)
                schedule_scan(&scan, ERROR_RETRY_USEC);
        has_changed = scan.has_changed || source->has_new_fetched || r > 0 || source->is_unresolved;
        source->is_unresolved = r < 0;
        source->n_inotify_events = 0;
        source->has_new_fetched = false;
        arm_manifest_scan_timer(source, scan.next_usec);
        if (scan.has_read_much)
                malloc_trim(0);
        return has_changed && !source->is_unresolved;
}

static int on_manifest_scan(sd_event_source *event_source, void *userdata) {
        ManifestDirectory *source = userdata;

        if (scan_directory(source))
                source->on_changed(source->userdata);
        return 0;
}

static int on_manifest_inotify_event(sd_event_source *inotify_source,
                                     const struct inotify_event *event, void *userdata) {
        ManifestDirectory *source = userdata;

        if (event->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))
                reset_known_directory(source);
        /* A continuous stream of events must not delay the scan without bound. */
        if (++source->n_inotify_events > INOTIFY_EVENTS_MAX)
                return on_manifest_scan(inotify_source, source);
        return sd_event_source_set_enabled(source->scan_source, SD_EVENT_ONESHOT);
}

static int on_manifest_scan_timer(sd_event_source *timer, uint64_t usec, void *userdata) {
        return on_manifest_scan(timer, userdata);
}

static int add_scan_event_sources(ManifestDirectory *source) {
        int r;

        r = event_add_disabled_defer(source->event, &source->scan_source, SCAN_PRIORITY,
                                     on_manifest_scan, source);
        if (r < 0)
                return r;
        r = event_add_disabled_timer(source->event, &source->timer, CLOCK_BOOTTIME,
                                     50 * USEC_PER_MSEC, on_manifest_scan_timer, source);
        if (r < 0)
                return r;
        r = sd_event_source_set_priority(source->timer, SCAN_PRIORITY);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(source->scan_source, "manifest-scan");
        (void) sd_event_source_set_description(source->timer, "manifest-timer");
        return 0;
}

/* ---- manifests that were fetched ---- */

bool manifest_is_fetched(const Manifest *manifest) {
        return pod_source_of_file(manifest->file).kind != POD_SOURCE_FILE;
}

/* A prefix that ends in '/' is followed by the file's own name. */
static char *name_fetched_manifest(const char *prefix, const char *file) {
        return text_format("%s%s", prefix, prefix[strlen(prefix) - 1] == '/' ? file : "");
}

static int read_fetched_manifest(int dir_fd, const char *file, const char *name, char **ret_data,
                                 size_t *ret_length, Error *reterr) {
        int r = read_file_at(dir_fd, file, MANIFEST_BYTES_MAX, ret_data, ret_length);

        return r < 0 ? error_prefixf(reterr, r, "%s", name) : 0;
}

static int load_fetched_manifest(DirectoryScan *scan, const char *prefix, const char *file,
                                 Error *reterr) {
        cleanup_free char *name = name_fetched_manifest(prefix, file), *data = NULL;
        ManifestEntry *entry;
        size_t length = 0;
        int r = name ? read_fetched_manifest(scan->dir_fd, file, name, &data, &length, reterr)
                     : -ENOMEM;

        if (r < 0)
                return r;
        entry = manifest_table_get(&scan->source->table, name);
        if (!entry)
                return -ENOMEM;
        entry->generation = scan->source->fetched_generation;
        return update_manifest_entry(scan, entry, &(ManifestStamp){ 0 }, data, length);
}

/* Drops the manifests with the prefix that the last load has not found. */
static void drop_fetched_manifests(DirectoryScan *scan, const char *prefix) {
        ManifestTable *table = &scan->source->table;

        for (size_t i = table->n; i > 0; i--) {
                const ManifestEntry *entry = table->entries[i - 1];

                if (strncmp(entry->manifest.file, prefix, strlen(prefix)) != 0 ||
                    !manifest_is_fetched(&entry->manifest) ||
                    entry->generation == scan->source->fetched_generation)
                        continue;
                manifest_table_remove(table, i - 1);
                scan->has_changed = true;
        }
}

/* Their objects are available at once, because the desired pods may be computed before the scan
 * that reports the change. */
static int use_fetched_manifests(const DirectoryScan *scan) {
        ManifestDirectory *source = scan->source;

        if (scan->has_changed &&
            manifest_table_resolve_names(&source->table, now_realtime_usec()) < 0)
                source->is_unresolved = true;
        return sd_event_source_set_enabled(source->scan_source, SD_EVENT_ONESHOT);
}

int manifest_directory_set_fetched(ManifestDirectory *source, const char *prefix, int dir_fd,
                                   Error *reterr) {
        DirectoryScan scan = { .source = source, .dir_fd = dir_fd, .next_usec = USEC_INFINITY };
        cleanup_strv char **names = NULL;
        int r = dir_fd < 0 ? 0 : list_manifest_files(dir_fd, &names), q;

        source->fetched_generation++;
        if (r < 0)
                return error_prefixf(reterr, r, "%s", prefix);
        /* If a manifest cannot be read, those that could be read are used, and none is dropped. */
        for (char **name = names; r >= 0 && name && *name; name++)
                r = load_fetched_manifest(&scan, prefix, *name, reterr);
        if (r >= 0)
                drop_fetched_manifests(&scan, prefix);
        source->has_new_fetched = source->has_new_fetched || scan.has_changed;
        q = source->is_started ? use_fetched_manifests(&scan) : 0;
        return r < 0 ? r : q;
}

/* Checks the rules for a manifest that replaces another one. */
static int check_fetched_successor(const ManifestDirectory *source, const char *name,
                                   const ManifestObjects *objects, Error *reterr) {
        const ManifestEntry *entry = manifest_table_find(&source->table, name);
        int r = entry ? manifest_entry_check_immutable(entry, objects, reterr) : 0;

        return r < 0 || !entry ? r : manifest_entry_check_selectors(entry, objects, reterr);
}

int manifest_directory_check_fetched(const ManifestDirectory *source, const char *prefix,
                                     int dir_fd, Error *reterr) {
        cleanup_strv char **files = NULL;
        size_t n_objects = 0;
        int r = list_manifest_files(dir_fd, &files);

        if (r < 0)
                return r;
        strv_foreach(file, files) {
                cleanup_free char *name = name_fetched_manifest(prefix, *file), *data = NULL;
                cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
                size_t length = 0;

                if (!name)
                        return -ENOMEM;
                r = read_fetched_manifest(dir_fd, *file, name, &data, &length, reterr);
                if (r < 0)
                        return r;
                r = manifest_parse(name, data, length, source->node_name, &objects, reterr);
                if (r < 0)
                        return r;
                r = check_fetched_successor(source, name, &objects, reterr);
                if (r < 0)
                        return r;
                n_objects += manifest_objects_count(&objects);
        }
        /* A response without objects must not stop all pods. */
        if (files && files[0] && n_objects == 0)
                return error_setf(reterr, EINVAL, "%s: holds no object that a node runs", prefix);
        return 0;
}

int manifest_directory_new(sd_event *event, const char *directory, const char *node_name,
                           manifest_changed_t on_changed, void *userdata, ManifestDirectory **ret) {
        cleanup_with(manifest_directory_freep) ManifestDirectory *source =
                calloc(1, sizeof(*source));
        int r;

        if (!source)
                return -ENOMEM;
        source->event = sd_event_ref(event);
        source->directory = strdup(directory);
        source->node_name = strdup(node_name);
        source->on_changed = on_changed;
        source->userdata = userdata;
        if (!source->directory || !source->node_name)
                return -ENOMEM;
        r = add_scan_event_sources(source);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(source);
        return 0;
}

int manifest_directory_restore_pod_take(ManifestDirectory *source, const char *file, Pod *pod) {
        ManifestEntry *entry = manifest_table_get(&source->table, file);

        if (!entry) {
                pod_free(pod);
                return -ENOMEM;
        }
        return manifest_entry_restore_pod_take(entry, pod);
}

int manifest_directory_restore_set_take(ManifestDirectory *source, const char *file,
                                        DaemonSet *set) {
        ManifestEntry *entry = manifest_table_get(&source->table, file);

        if (!entry) {
                daemonset_free(set);
                return -ENOMEM;
        }
        return manifest_entry_restore_set_take(entry, set);
}

int manifest_directory_start(ManifestDirectory *source, Error *reterr) {
        source->is_started = true;
        (void) scan_directory(source);
        if (source->is_unresolved)
                return error_prefixf(reterr, -ENOMEM, "%s", source->directory);
        source->on_changed(source->userdata);
        return 0;
}

const char *manifest_directory_last_error(const ManifestDirectory *source) {
        return source->last_error;
}

const char *manifest_directory_warning(const ManifestDirectory *source) {
        return source->warning;
}

bool manifest_directory_is_resolved(const ManifestDirectory *source) {
        return !source->is_unresolved;
}

size_t manifest_directory_list(const ManifestDirectory *source, const Manifest *const **ret) {
        *ret = source->table.manifests;
        return source->table.n;
}

static const DataObject *find_manifest_object(const Manifest *manifest, const ObjectKey *key) {
        for (size_t i = 0; i < manifest->data.n; i++)
                if (object_key_matches(key, manifest->data.items[i]))
                        return manifest->data.items[i];
        return NULL;
}

const DataObject *manifest_directory_find_object(const ManifestDirectory *source,
                                                 const ObjectKey *key) {
        for (size_t i = 0; i < source->table.n; i++) {
                const Manifest *manifest = source->table.manifests[i];
                const DataObject *class = manifest->default_class;
                const DataObject *object =
                        key->name ? find_manifest_object(manifest, key)
                        : class && object_sources_match(class->metadata.source, key->source) ? class
                                                                                             : NULL;

                if (object)
                        return object;
        }
        return NULL;
}

unsigned manifest_directory_data_generation(const ManifestDirectory *source) {
        return source->table.data_generation;
}

ManifestDirectory *manifest_directory_free(ManifestDirectory *source) {
        if (!source)
                return NULL;
        sd_event_source_disable_unref(source->timer);
        sd_event_source_disable_unref(source->scan_source);
        sd_event_source_disable_unref(source->inotify_source);
        manifest_table_done(&source->table);
        free(source->last_error);
        free(source->warning);
        free(source->node_name);
        free(source->directory);
        sd_event_unref(source->event);
        free(source);
        return NULL;
}
