/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/log-paths.h"

#include "agent/bundle/pod-paths.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <limits.h>

static DIR *open_container_log_dir(const BundleConfig *config, const Pod *pod,
                                   const char *container) {
        cleanup_free char *log_dir = pod_log_dir(config, pod);
        cleanup_free char *directory = log_dir ? path_join(log_dir, container) : NULL;

        return directory ? opendir_no_symlinks(directory) : NULL;
}

/* The attempt of a log file: "3.log" and, if rotated files also count, "3.log.<anything>". -1 if it
 * is not the name of a log. */
static int logged_attempt(const char *name, bool with_rotated) {
        char *end;
        long attempt = strtol(name, &end, 10);

        if (end == name || attempt < 0 || attempt >= INT_MAX)
                return -1;
        if (!streq(end, ".log") && !(with_rotated && strncmp(end, ".log.", 5) == 0))
                return -1;
        return (int) attempt;
}

int bundle_last_logged_attempt(const BundleConfig *config, const Pod *pod, const char *container) {
        cleanup_closedir DIR *dir = open_container_log_dir(config, pod, container);
        struct dirent *entry;
        int last = -1;

        while (dir && (entry = readdir(dir)))
                last = MAX(last, logged_attempt(entry->d_name, /* with_rotated= */ false));
        return last;
}

bool bundle_has_log(const BundleConfig *config, const Pod *pod, const char *container,
                    unsigned attempt) {
        cleanup_closedir DIR *dir = open_container_log_dir(config, pod, container);
        char name[32];

        (void) snprintf(name, sizeof(name), "%u.log", attempt);
        return dir && faccessat(dirfd(dir), name, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
}

static void remove_log_link(const BundleConfig *config, const Pod *pod, const char *container,
                            unsigned attempt) {
        cleanup_close int fd = -EBADF;
        cleanup_free char *link = NULL;
        const char *name;
        char id[65];

        container_id(pod->metadata.uid, container, attempt, id);
        link = container_log_link(config, pod, container, id);
        fd = link ? open_parent_no_symlinks(link, &name) : -ENOMEM;
        if (fd >= 0)
                (void) unlinkat(fd, name, 0);
}

void bundle_remove_logs_before(const BundleConfig *config, const Pod *pod, const char *container,
                               unsigned attempt) {
        cleanup_closedir DIR *dir = open_container_log_dir(config, pod, container);
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                int logged = logged_attempt(entry->d_name, /* with_rotated= */ true);

                if (logged < 0 || (unsigned) logged >= attempt)
                        continue;
                (void) unlinkat(dirfd(dir), entry->d_name, 0);
                remove_log_link(config, pod, container, (unsigned) logged);
        }
}

/* The names of a pod's symlinks start with the pod's name, which is the second of the three parts
 * of its directory's name. */
static bool may_be_link_to(const char *link, const char *log_dir) {
        const char *name = strchr(strrchr(log_dir, '/'), '_'),
                   *end = name ? strchr(name + 1, '_') : NULL;

        return end && strncmp(link, name + 1, (size_t) (end - name)) == 0;
}

void bundle_remove_log_links(const BundleConfig *config, const char *log_dir) {
        cleanup_free char *directory = path_join(config->log_dir, "containers");
        cleanup_closedir DIR *dir = directory ? opendir_no_symlinks(directory) : NULL;
        size_t length = strlen(log_dir);
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                char target[PATH_MAX];
                ssize_t n;

                if (!may_be_link_to(entry->d_name, log_dir))
                        continue;
                n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target));
                if (n > (ssize_t) length && strncmp(target, log_dir, length) == 0 &&
                    target[length] == '/')
                        (void) unlinkat(dirfd(dir), entry->d_name, 0);
        }
}

char *bundle_find_log_dir(const BundleConfig *config, const char *uid) {
        cleanup_free char *parent = path_join(config->log_dir, "pods");
        cleanup_closedir DIR *dir = parent ? opendir_no_symlinks(parent) : NULL;
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                const char *last = strrchr(entry->d_name, '_');

                if (last && streq(last + 1, uid))
                        return path_join(parent, entry->d_name);
        }
        return NULL;
}
