/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/plugins/registry-watch.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/list.h"
#include "common/log.h"
#include "common/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* There are limits, because containers write to the directories. */
enum {
        DIRECTORIES_MAX = 128,
        DEPTH_MAX = 8,
        NAMES_MAX = 4096, /* maximum number of names in a directory */
        EVENTS_SIZE = 64 * 1024,
};

typedef struct RegistryDirectory {
        struct RegistryDirectory *next;
        int wd;
        char *path; /* "": the directory itself */
} RegistryDirectory;

struct RegistryWatch {
        RegistryWatchHandlers handlers;
        int dir_fd;
        int inotify_fd;
        sd_event_source *source;
        RegistryDirectory *directories;
};

bool socket_identity_equals(const SocketIdentity *a, const SocketIdentity *b) {
        return a->device == b->device && a->inode == b->inode &&
               a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

bool registry_path_is_within(const char *path, const char *root) {
        size_t n = strlen(root);

        return strncmp(path, root, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static char *join_relative(const char *directory, const char *name) {
        return directory[0] ? path_join(directory, name) : strdup(name);
}

static unsigned registry_depth(const char *path) {
        unsigned depth = path[0] != '\0';

        for (const char *c = path; *c; c++)
                depth += *c == '/';
        return depth;
}

static size_t count_directories(const RegistryWatch *watch) {
        size_t n = 0;

        list_foreach(directory, watch->directories)
                n++;
        return n;
}

static RegistryDirectory *find_directory(const RegistryWatch *watch, int wd) {
        list_foreach(directory, watch->directories)
                if (directory->wd == wd)
                        return directory;
        return NULL;
}

static void forget_directory(RegistryWatch *watch, RegistryDirectory *directory) {
        LIST_REMOVE(watch->directories, directory);
        (void) inotify_rm_watch(watch->inotify_fd, directory->wd);
        free(directory->path);
        free(directory);
}

static void forget_directories_in(RegistryWatch *watch, const char *path) {
        list_foreach_safe(directory, watch->directories)
                if (registry_path_is_within(directory->path, path))
                        forget_directory(watch, directory);
}

/* ---- scanning ---- */

/* 0: it is now watched, or already was; -errno. */
static int add_directory(RegistryWatch *watch, int fd, const char *path) {
        char link[sizeof("/proc/self/fd/4294967295")];
        RegistryDirectory *directory;
        int wd;

        if (count_directories(watch) >= DIRECTORIES_MAX)
                return -EMFILE;
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        wd = inotify_add_watch(watch->inotify_fd, link,
                               IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR);
        if (wd < 0)
                return -errno;
        if (find_directory(watch, wd))
                return 0;
        directory = calloc(1, sizeof(*directory));
        if (!directory)
                return -ENOMEM;
        directory->wd = wd;
        directory->path = strdup(path);
        LIST_PREPEND(watch->directories, directory);
        return directory->path ? 0 : -ENOMEM;
}

static void look_at(RegistryWatch *watch, const char *path);

static int look_into(RegistryWatch *watch, const char *path) {
        int fd = path[0] ? open_no_symlinks(watch->dir_fd, path, O_RDONLY | O_DIRECTORY, 0)
                         : openat(watch->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;
        int r;

        if (!dir)
                return close_fd(fd), -errno;
        r = add_directory(watch, fd, path);
        for (unsigned n = 0; r >= 0 && n < NAMES_MAX && (entry = readdir(dir)); n++) {
                cleanup_free char *child =
                        entry->d_name[0] == '.' ? NULL : join_relative(path, entry->d_name);

                if (child)
                        look_at(watch, child);
        }
        return r;
}

static void look_at(RegistryWatch *watch, const char *path) {
        cleanup_close int fd = open_no_symlinks(watch->dir_fd, path, O_PATH | O_NOFOLLOW, 0);
        SocketIdentity identity;
        struct stat st;
        int r = 0;

        if (fd < 0 || fstat(fd, &st) < 0)
                return;
        if (S_ISDIR(st.st_mode) && registry_depth(path) < DEPTH_MAX)
                r = look_into(watch, path);
        if (r < 0 && r != -ENOENT)
                (void) log_warning_errno(r, "Cannot watch '%s' in the plugins' registry", path);
        if (!S_ISSOCK(st.st_mode))
                return;
        identity = (SocketIdentity){ st.st_dev, st.st_ino, st.st_ctim };
        watch->handlers.on_socket(path, &identity, watch->handlers.userdata);
}

/* ---- events ---- */

static void handle_inotify_event(RegistryWatch *watch, const struct inotify_event *event) {
        const RegistryDirectory *directory = find_directory(watch, event->wd);
        cleanup_free char *path = NULL;

        if (event->mask & IN_Q_OVERFLOW) {
                watch->handlers.on_lost(watch->handlers.userdata);
                (void) look_into(watch, "");
                return;
        }
        if (!directory || event->len == 0 || event->name[0] == '.')
                return;
        path = join_relative(directory->path, event->name);
        if (!path)
                return;
        if (event->mask & (IN_DELETE | IN_MOVED_FROM)) {
                forget_directories_in(watch, path);
                watch->handlers.on_gone(path, watch->handlers.userdata);
        } else if (event->mask & (IN_CREATE | IN_MOVED_TO))
                look_at(watch, path);
}

static int on_registry_event(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        RegistryWatch *watch = userdata;
        _Alignas(struct inotify_event) char buffer[EVENTS_SIZE];
        ssize_t n = read(fd, buffer, sizeof(buffer));

        for (ssize_t at = 0; at < n;) {
                const struct inotify_event *event =
                        (const struct inotify_event *) (const void *) (buffer + at);

                at += (ssize_t) (sizeof(*event) + event->len);
                if (event->mask & IN_IGNORED) {
                        RegistryDirectory *directory = find_directory(watch, event->wd);

                        if (directory)
                                forget_directory(watch, directory);
                } else
                        handle_inotify_event(watch, event);
        }
        return 0;
}

int registry_watch_new(sd_event *event, int dir_fd, const RegistryWatchHandlers *handlers,
                       RegistryWatch **ret) {
        RegistryWatch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->handlers = *handlers;
        watch->dir_fd = dir_fd;
        watch->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        r = watch->inotify_fd < 0 ? -errno
                                  : sd_event_add_io(event, &watch->source, watch->inotify_fd,
                                                    EPOLLIN, on_registry_event, watch);
        if (r >= 0)
                r = look_into(watch, "");
        if (r < 0)
                registry_watch_free(watch);
        else
                *ret = watch;
        return r;
}

RegistryWatch *registry_watch_free(RegistryWatch *watch) {
        if (!watch)
                return NULL;
        while (watch->directories)
                forget_directory(watch, watch->directories);
        sd_event_source_disable_unref(watch->source);
        close_fd(watch->inotify_fd);
        free(watch);
        return NULL;
}
