/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cdi/cdi-registry.h"

#include "agent/manifest/cdi-spec.h"
#include "agent/manifest/reader.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define BUSY_RETRY_USEC (100 * USEC_PER_MSEC)

enum {
        WATCH_PRIORITY =
                SD_EVENT_PRIORITY_NORMAL + 10, /* shares an inotify instance with other watches */
        FILES_MAX = 1000,                      /* limit of one directory */
};

typedef struct CdiFile {
        char *path;
        const char *name; /* points into 'path' */
        ManifestStamp stamp;
        CdiSpec *spec; /* NULL: it cannot be used */
        char *error;   /* the reason in that case; NULL while it is still being written */
        bool is_seen;  /* the current scan has found it */
} CdiFile;

typedef struct CdiDirectory {
        CdiRegistry *registry;
        const char *path;
        LIST_OF(CdiFile) files;
        sd_event_source *inotify_source;
        ino_t inode; /* inode of the watched directory; 0: an ancestor is watched */
        dev_t device;
        char *awaited;    /* the next component of the path, in the ancestor */
        char *unreadable; /* why it cannot be read */
} CdiDirectory;

struct CdiRegistry {
        CdiRegistryConfig config;
        CdiDirectory *directories;
        size_t n;
        sd_event_source *scan_source;
        sd_event_source *timer;
        bool has_changed; /* the current scan has found a change */
        bool is_busy;     /* a file is being written, or could not be read because memory is
                           * exhausted */
};

/* ---- watches ---- */

static int on_cdi_inotify_event(sd_event_source *source, const struct inotify_event *event,
                                void *userdata) {
        CdiDirectory *directory = userdata;

        if (event->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))
                directory->inode = 0;
        else if (directory->awaited && event->len > 0 && !streq(event->name, directory->awaited))
                return 0;
        return sd_event_source_set_enabled(directory->registry->scan_source, SD_EVENT_ONESHOT);
}

static int watch_fd(CdiDirectory *directory, int fd, uint32_t mask) {
        directory->inotify_source = sd_event_source_disable_unref(directory->inotify_source);
        return sd_event_add_inotify_fd(
                directory->registry->config.event, &directory->inotify_source, fd,
                mask | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR, on_cdi_inotify_event, directory);
}

static void log_unwatched(const CdiDirectory *directory, int r) {
        log_warning("Cannot watch %s for devices: %s; restart mainstayd after changes in it",
                    directory->path, strerror(-r));
}

/* Watches the nearest existing ancestor, until the next component of the path appears in it. */
static void watch_ancestor(CdiDirectory *directory) {
        cleanup_free char *path = strdup(directory->path);
        char *slash;

        free(TAKE_PTR(directory->awaited));
        directory->inode = 0;
        while (path && (slash = strrchr(path, '/'))) {
                cleanup_close int fd = -EBADF;
                int r;

                *slash = '\0';
                fd = open(path[0] ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (fd < 0 && path[0])
                        continue;
                directory->awaited = strdup(slash + 1);
                r = fd < 0               ? -errno
                    : directory->awaited ? watch_fd(directory, fd, IN_CREATE | IN_MOVED_TO)
                                         : -ENOMEM;
                if (r < 0)
                        log_unwatched(directory, r);
                else if (access(directory->path, F_OK) >= 0) /* it has appeared in the meantime */
                        (void) sd_event_source_set_enabled(directory->registry->scan_source,
                                                           SD_EVENT_ONESHOT);
                return;
        }
}

static void watch_directory(CdiDirectory *directory, int fd) {
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0 || (directory->inode == st.st_ino && directory->device == st.st_dev))
                return;
        free(TAKE_PTR(directory->awaited));
        r = watch_fd(directory, fd,
                     IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                             IN_ATTRIB);
        if (r < 0)
                log_unwatched(directory, r);
        directory->inode = st.st_ino;
        directory->device = st.st_dev;
}

/* ---- files ---- */

static void cdi_file_done(CdiFile *file) {
        free(file->path);
        free(file->error);
        cdi_spec_free(file->spec);
}

/* Unlike in a manifest directory, only these two suffixes are valid. */
static bool is_cdi_file_name(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot && (streq(dot, ".yaml") || streq(dot, ".json"));
}

static CdiFile *find_cdi_file(CdiDirectory *directory, const char *name) {
        for (size_t i = 0; i < directory->files.n; i++)
                if (streq(directory->files.items[i].name, name))
                        return &directory->files.items[i];
        return NULL;
}

static CdiFile *add_cdi_file(CdiDirectory *directory, const char *name) {
        char *path = path_join(directory->path, name);
        CdiFile *file = path ? ARRAY_APPEND(directory->files.items, directory->files.n) : NULL;

        if (!file) {
                free(path);
                return NULL;
        }
        file->path = path;
        file->name = path + strlen(path) - strlen(name);
        return file;
}

static void set_cdi_file_error(CdiDirectory *directory, CdiFile *file, const char *message) {
        CdiRegistry *registry = directory->registry;
        bool is_new = !streq_ptr(file->error, message);

        if (file->spec || is_new)
                registry->has_changed = true;
        file->spec = cdi_spec_free(file->spec);
        if (!is_new)
                return;
        (void) text_replace(&file->error, message);
        registry->config.on_invalid(message, registry->config.userdata);
}

static void load_cdi_file(CdiDirectory *directory, CdiFile *file, const char *data, size_t length) {
        cleanup_error Error error = ERROR_NULL;
        CdiSpec *spec = NULL;
        int r = cdi_spec_parse(file->path, data, length, &spec, &error);

        if (r == -ENOMEM) {
                file->stamp = (ManifestStamp){ 0 };
                directory->registry->is_busy = true;
                return;
        }
        if (r < 0) {
                set_cdi_file_error(directory, file, error_message(&error, r));
                return;
        }
        cdi_spec_free(file->spec);
        file->spec = spec;
        free(TAKE_PTR(file->error));
        directory->registry->has_changed = true;
}

static int scan_cdi_file(CdiDirectory *directory, int dir_fd, const char *name) {
        CdiFile *file = find_cdi_file(directory, name);
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *data = NULL, *message = NULL;
        size_t length;
        int r;

        if (!file)
                file = add_cdi_file(directory, name);
        if (!file)
                return -ENOMEM;
        r = read_manifest_file(dir_fd, name, &file->stamp, &data, &length, &error);
        if (r == -ENOENT && !error.message)
                return 0; /* it was just removed */
        file->is_seen = true;
        directory->registry->is_busy = directory->registry->is_busy || r == READER_BUSY;
        if (r == 0)
                load_cdi_file(directory, file, data, length);
        if (r >= 0)
                return 0;
        file->stamp = (ManifestStamp){ 0 };
        if (r == -ENOMEM || r == -EMFILE || r == -ENFILE) { /* no event reports when this ends */
                directory->registry->is_busy = true;
                return 0;
        }
        message = text_format("%s/%s", directory->path, error_message(&error, r));
        set_cdi_file_error(directory, file, message ? message : file->path);
        return 0;
}

static void drop_unseen_files(CdiDirectory *directory) {
        for (size_t i = directory->files.n; i > 0; i--) {
                CdiFile *file = &directory->files.items[i - 1];

                if (file->is_seen) {
                        file->is_seen = false;
                        continue;
                }
                directory->registry->has_changed = true;
                cdi_file_done(file);
                ARRAY_REMOVE(directory->files.items, directory->files.n, i - 1);
        }
}

/* ---- directories ---- */

static void set_directory_unreadable(CdiDirectory *directory, int r) {
        CdiRegistry *registry = directory->registry;
        cleanup_free char *message =
                r < 0 ? text_format("%s: cannot be read for devices: %s", directory->path,
                                    r == -E2BIG ? "it has too many files" : strerror(-r))
                      : NULL;

        if (streq_ptr(directory->unreadable, message))
                return;
        registry->has_changed = true;
        (void) text_replace(&directory->unreadable, message);
        if (message)
                registry->config.on_invalid(message, registry->config.userdata);
}

static int scan_open_cdi_directory(CdiDirectory *directory, int fd) {
        cleanup_strv char **names = NULL;
        size_t n = 0;
        int r;

        watch_directory(directory, fd);
        r = list_manifest_files(fd, &names);
        strv_foreach(name, names) {
                if (r < 0 || !is_cdi_file_name(*name))
                        continue;
                r = n++ < FILES_MAX ? scan_cdi_file(directory, fd, *name) : -E2BIG;
        }
        if (r != -ENOMEM)
                drop_unseen_files(directory);
        return r;
}

static int scan_cdi_directory(CdiDirectory *directory) {
        cleanup_close int fd = open(directory->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r;

        if (fd >= 0)
                r = scan_open_cdi_directory(directory, fd);
        else {
                r = errno == ENOENT ? 0 : -errno;
                watch_ancestor(directory);
                drop_unseen_files(directory);
        }
        set_directory_unreadable(directory, r);
        return r == -ENOMEM ? r : 0;
}

static int scan_cdi_directories(CdiRegistry *registry) {
        int result = 0;

        registry->has_changed = false;
        registry->is_busy = false;
        for (size_t i = 0; i < registry->n; i++) {
                int r = scan_cdi_directory(&registry->directories[i]);

                result = result < 0 ? result : r;
        }
        if (registry->is_busy || result < 0)
                (void) event_timer_arm(registry->timer, BUSY_RETRY_USEC);
        return result;
}

static int on_cdi_scan(sd_event_source *source, void *userdata) {
        CdiRegistry *registry = userdata;

        (void) scan_cdi_directories(registry);
        if (registry->has_changed)
                registry->config.on_changed(registry->config.userdata);
        return 0;
}

static int on_cdi_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        return on_cdi_scan(source, userdata);
}

/* ---- lookup ---- */

static const CdiDevice *find_device_in_file(const CdiFile *file, const char *name) {
        size_t n = file->spec ? strlen(file->spec->kind) : 0;

        if (!file->spec || strncmp(name, file->spec->kind, n) != 0 || name[n] != '=')
                return NULL;
        for (size_t i = 0; i < file->spec->devices.n; i++)
                if (streq(file->spec->devices.items[i].name, name + n + 1))
                        return &file->spec->devices.items[i];
        return NULL;
}

/* 1: found; 0: no file defines the device; -ENOENT: two files do. */
static int find_device_in_directory(const CdiDirectory *directory, const char *name, CdiMatch *ret,
                                    Error *reterr) {
        const CdiFile *first = NULL;
        CdiMatch match = { 0 };

        for (size_t i = 0; i < directory->files.n; i++) {
                const CdiFile *file = &directory->files.items[i];
                const CdiDevice *device = find_device_in_file(file, name);

                if (device && first)
                        return error_setf(reterr, ENOENT,
                                          "both %s:%u:%u and %s:%u:%u define it; remove one",
                                          first->path, match.device->line, match.device->column,
                                          file->path, device->line, device->column);
                if (!device)
                        continue;
                first = file;
                match = (CdiMatch){ file->spec, device };
        }
        if (first)
                *ret = match;
        return first != NULL;
}

/* An invalid file may be the one that defines the device. */
static const char *first_file_error(const CdiRegistry *registry) {
        for (size_t i = registry->n; i > 0; i--) {
                const CdiDirectory *directory = &registry->directories[i - 1];

                if (directory->unreadable)
                        return directory->unreadable;
                for (size_t j = 0; j < directory->files.n; j++)
                        if (directory->files.items[j].error)
                                return directory->files.items[j].error;
        }
        return NULL;
}

static int explain_missing_device(const CdiRegistry *registry, Error *reterr) {
        cleanup_free char *directories = text_join(registry->config.directories, " and ");
        const char *error = first_file_error(registry);

        return error_setf(reterr, ENOENT, "no valid file in %s defines it%s%s", strna(directories),
                          error ? "; " : "", strna(error));
}

static int find_cdi_device(const char *name, CdiMatch *ret, Error *reterr, void *userdata) {
        const CdiRegistry *registry = userdata;

        for (size_t i = registry->n; i > 0; i--) {
                int r = find_device_in_directory(&registry->directories[i - 1], name, ret, reterr);

                if (r != 0)
                        return MIN(r, 0);
        }
        return explain_missing_device(registry, reterr);
}

CdiLookup cdi_registry_lookup(CdiRegistry *registry) {
        return (CdiLookup){ .find = find_cdi_device, .userdata = registry };
}

int cdi_registry_new(const CdiRegistryConfig *config, CdiRegistry **ret) {
        cleanup_with(cdi_registry_freep) CdiRegistry *registry = calloc(1, sizeof(*registry));
        size_t n = strv_length((char **) (uintptr_t) config->directories);
        int r;

        if (!registry)
                return -ENOMEM;
        registry->config = *config;
        registry->directories = calloc(n + 1, sizeof(*registry->directories));
        if (!registry->directories)
                return -ENOMEM;
        for (; registry->n < n; registry->n++)
                registry->directories[registry->n] =
                        (CdiDirectory){ .registry = registry,
                                        .path = config->directories[registry->n] };
        r = event_add_disabled_defer(config->event, &registry->scan_source, WATCH_PRIORITY,
                                     on_cdi_scan, registry);
        if (r < 0)
                return r;
        r = event_add_disabled_timer(config->event, &registry->timer, CLOCK_BOOTTIME,
                                     50 * USEC_PER_MSEC, on_cdi_timer, registry);
        if (r < 0)
                return r;
        r = scan_cdi_directories(registry);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(registry);
        return 0;
}

static void dump_cdi_file(const CdiFile *file, FILE *out) {
        if (!file->spec) {
                dump_line(out, 2, "file: %s", file->error ? file->error : file->path);
                return;
        }
        dump_line(out, 2, "file: %s, ok", file->path);
        for (size_t i = 0; i < file->spec->devices.n; i++)
                dump_line(out, 3, "device: %s=%s", file->spec->kind,
                          file->spec->devices.items[i].name);
}

void cdi_registry_dump(const CdiRegistry *registry, FILE *out) {
        dump_section(out, "CDI devices");
        for (size_t i = 0; i < registry->n; i++) {
                const CdiDirectory *directory = &registry->directories[i];
                const char *state = directory->unreadable   ? "unreadable"
                                    : directory->inode != 0 ? "watched"
                                                            : "not there";

                dump_line(out, 1, "directory: %s, %s", directory->path, state);
                for (size_t j = 0; j < directory->files.n; j++)
                        dump_cdi_file(&directory->files.items[j], out);
        }
}

CdiRegistry *cdi_registry_free(CdiRegistry *registry) {
        if (!registry)
                return NULL;
        for (size_t i = 0; i < registry->n; i++) {
                CdiDirectory *directory = &registry->directories[i];

                sd_event_source_disable_unref(directory->inotify_source);
                for (size_t j = 0; j < directory->files.n; j++)
                        cdi_file_done(&directory->files.items[j]);
                free(directory->files.items);
                free(directory->awaited);
                free(directory->unreadable);
        }
        free(registry->directories);
        sd_event_source_disable_unref(registry->scan_source);
        sd_event_source_disable_unref(registry->timer);
        free(registry);
        return NULL;
}
