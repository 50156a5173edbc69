/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cgroup.h"

#include "common/cleanup.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

static const char root_path[] = "/sys/fs/cgroup";

/* Version 1 cannot express "no limit"; it is the largest number of pages. */
#define UNLIMITED_BYTES (UINT64_C(1) << 62)

int cgroup_version(void) {
        static int version;
        struct statfs fs;

        if (version == 0)
                version = statfs(root_path, &fs) >= 0 && fs.f_type == CGROUP2_SUPER_MAGIC ? 2 : 1;
        return version;
}

char *cgroup_file(const char *path, const char *controller, const char *file) {
        if (cgroup_version() == 2)
                return text_format("%s%s/%s", root_path, path, file);
        return text_format("%s/%s%s/%s", root_path, controller, path, file);
}

/* Lists the mounted hierarchies: one on v2; on v1 each directory below /sys/fs/cgroup. Links for
 * one of a hierarchy's two controllers are not counted. */
static int list_hierarchies(char ***ret) {
        cleanup_strv char **list = NULL;
        cleanup_closedir DIR *dir = NULL;
        struct dirent *entry;
        int r;

        if (cgroup_version() == 2) {
                r = strv_append(&list, root_path);
                if (r < 0)
                        return r;
                *ret = TAKE_PTR(list);
                return 0;
        }
        dir = opendir(root_path);
        if (!dir)
                return -errno;
        while ((entry = readdir(dir))) {
                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                r = strv_appendf(&list, "%s/%s", root_path, entry->d_name);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(list);
        return 0;
}

/* Whether a name is in a list that ends with a colon, a newline or the end of the text:
 * "cpu,cpuacct:/group". */
static bool list_has_name(const char *list, char separator, const char *name) {
        const char ends[] = { separator, ':', '\n', '\0' };
        size_t length = strlen(name);

        for (;;) {
                size_t n = strcspn(list, ends);

                if (n == length && strncmp(list, name, n) == 0)
                        return true;
                if (list[n] != separator)
                        return false;
                list += n + 1;
        }
}

bool cgroup_has_controller(const char *controller) {
        cleanup_free char *text = NULL;
        cleanup_close int fd = -EBADF;
        char name[64];

        if (cgroup_version() == 1) {
                (void) snprintf(name, sizeof(name), "%s/%s/cgroup.procs", root_path, controller);
                return access(name, F_OK) >= 0;
        }
        (void) snprintf(name, sizeof(name), "%s/cgroup.controllers", root_path);
        fd = open(name, O_RDONLY | O_CLOEXEC);
        return fd >= 0 && read_stream(fd, KIB * 4, &text, NULL) >= 0 &&
               list_has_name(text, ' ', controller);
}

int cgroup_check_hierarchies(Error *reterr) {
        if (cgroup_version() == 2 || cgroup_has_controller("memory"))
                return 0;
        if (cgroup_has_controller("cpu"))
                return error_setf(reterr, ENOENT, CGROUP_CONTROLLER_MISSING, "memory");
        return error_setf(reterr, ENOENT,
                          "there is no cgroup hierarchy at %s; mount one there, such as cgroup2",
                          root_path);
}

static void enable_controllers(const char *directory) {
        static const char *const controllers[] = { "+cpu",  "+cpuset", "+memory",
                                                   "+pids", "+io",     "+hugetlb" };
        cleanup_free char *file = path_join(directory, "cgroup.subtree_control");

        /* Controllers are enabled one at a time, because if one is missing, the kernel refuses the
         * whole list. */
        for (size_t i = 0; file && i < N_ELEMENTS(controllers); i++)
                (void) write_value_at(AT_FDCWD, file, controllers[i]);
}

/* Other users may traverse the directory, regardless of the umask, because users in a pod's user
 * namespace resolve their cgroup from the top. */
static int make_cgroup_directory(const char *directory, Error *reterr) {
        int r = mkdir_parents_at(AT_FDCWD, directory, 0755);

        return r < 0 ? error_setf(reterr, -r, "cannot create cgroup %s: %s", directory,
                                  strerror(-r))
                     : 0;
}

static int create_cgroup_v2(const char *path, Error *reterr) {
        int r;
        cleanup_free char *directory = text_format("%s%s", root_path, path);

        if (!directory)
                return -ENOMEM;
        for (char *slash = strchr(directory + strlen(root_path), '/'); slash;
             slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                r = make_cgroup_directory(directory, reterr);
                if (r < 0)
                        return r;
                enable_controllers(directory);
                *slash = '/';
        }
        return make_cgroup_directory(directory, reterr);
}

/* Most nodes have no hugetlb hierarchy, and cpuacct usually shares cpu's. Each of the others is
 * required, and a missing one is an error. */
static bool has_hierarchy(const char *controller) {
        bool is_optional = streq(controller, "hugetlb") || streq(controller, "cpuacct");

        return !is_optional || cgroup_has_controller(controller);
}

int cgroup_create(const char *path, Error *reterr) {
        static const char *const controllers[] = { "cpu", "cpuacct", "memory", "pids", "hugetlb" };

        FAIL_AT("cgroup.create");
        if (cgroup_version() == 2)
                return create_cgroup_v2(path, reterr);

        for (size_t i = 0; i < N_ELEMENTS(controllers); i++) {
                cleanup_free char *directory = NULL;
                int r;

                if (!has_hierarchy(controllers[i]))
                        continue;
                directory = text_format("%s/%s%s", root_path, controllers[i], path);
                if (!directory)
                        return -ENOMEM;
                r = make_cgroup_directory(directory, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- the own cgroup ---- */

/* The path in the line of that controller; "": the line of version 2. NULL: none. */
static char *find_membership(const char *text, const char *controller) {
        while (*text) {
                size_t length = strcspn(text, "\n");
                const char *controllers = memchr(text, ':', length);
                const char *path = controllers ? memchr(controllers + 1, ':',
                                                        length - (size_t) (controllers + 1 - text))
                                               : NULL;

                if (path && (controller[0] ? list_has_name(controllers + 1, ',', controller)
                                           : path == controllers + 1))
                        return strndup(path + 1, length - (size_t) (path + 1 - text));
                text += length + (text[length] == '\n');
        }
        return NULL;
}

int cgroup_membership_parse(const char *text, int version, char **ret) {
        cleanup_free char *group = find_membership(text, version == 1 ? "memory" : "");
        cleanup_free char *other = find_membership(text, version == 1 ? "cpuacct" : "");

        if (!group || !other || group[0] != '/' || strstr(group, "/.."))
                return -ENOENT; /* or it is outside of this cgroup namespace */
        if (!streq(group, other))
                return -EXDEV;
        *ret = TAKE_PTR(group);
        return 0;
}

int cgroup_of_self(char **ret) {
        cleanup_close int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
        cleanup_free char *text = NULL;
        int r;

        if (fd < 0)
                return -errno;
        r = read_stream(fd, 64 * KIB, &text, NULL);
        return r < 0 ? r : cgroup_membership_parse(text, cgroup_version(), ret);
}

/* ---- values ---- */

/* The file of version 1 that limits memory and swap together, if the kernel has it and a value is
 * given; or NULL. */
static char *limit_with_swap(const char *path, const char *file) {
        cleanup_free char *name = NULL, *text = NULL;
        cleanup_close int fd = -EBADF;

        if (cgroup_version() != 1 || !streq(file, "memory.limit_in_bytes"))
                return NULL;
        name = cgroup_file(path, "memory", "memory.memsw.limit_in_bytes");
        fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -EBADF;
        if (fd < 0 || read_stream(fd, 64, &text, NULL) < 0 ||
            strtoull(text, NULL, 10) >= UNLIMITED_BYTES)
                return NULL;
        return TAKE_PTR(name);
}

/* The memory limit must never exceed the limit of memory and swap: when growing, the latter is
 * written first, when shrinking last. */
static int write_limit_with_swap(const char *name, const char *with_swap, const char *value) {
        int r = write_value_at(AT_FDCWD, with_swap, value);

        if (r != -EINVAL)
                return r < 0 ? r : write_value_at(AT_FDCWD, name, value);
        r = write_value_at(AT_FDCWD, name, value);
        return r < 0 ? r : write_value_at(AT_FDCWD, with_swap, value);
}

int cgroup_write(const char *path, const char *controller, const char *file, const char *value,
                 Error *reterr) {
        cleanup_free char *name = cgroup_file(path, controller, file);
        cleanup_free char *with_swap = limit_with_swap(path, file);
        int r;

        if (!name)
                return -ENOMEM;
        r = with_swap ? write_limit_with_swap(name, with_swap, value)
                      : write_value_at(AT_FDCWD, name, value);
        if (r == -ENOENT && !cgroup_has_controller(controller))
                return error_setf(reterr, ENOENT,
                                  "cannot write '%s' to %s: " CGROUP_CONTROLLER_MISSING, value,
                                  name, controller);
        if (r < 0)
                return error_setf(reterr, -r, "cannot write '%s' to %s: %s", value, name,
                                  strerror(-r));
        return 0;
}

int cgroup_enter(const char *path, Error *reterr) {
        cleanup_strv char **hierarchies = NULL;
        int r = list_hierarchies(&hierarchies);

        if (r < 0)
                return r;
        strv_foreach(hierarchy, hierarchies) {
                cleanup_free char *file = text_format("%s%s/cgroup.procs", *hierarchy, path);

                if (!file)
                        return -ENOMEM;
                r = write_value_at(AT_FDCWD, file, "0");
                if (r < 0 && r != -ENOENT)
                        return error_setf(reterr, -r, "cannot enter the cgroup through %s: %s",
                                          file, strerror(-r));
        }
        return 0;
}

/* Calls 'visit' for the cgroup and all cgroups below, the deepest first. Returns the first error;
 * unreadable cgroups do not prevent visits to others. */
static int walk_groups(int parent_fd, const char *name,
                       int (*visit)(int parent_fd, const char *name)) {
        cleanup_closedir DIR *dir = NULL;
        const struct dirent *entry;
        int fd, q, r = 0;

        fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        dir = fdopendir(fd);
        if (!dir) {
                close_fd(fd);
                return -ENOMEM;
        }
        while ((q = read_directory_entry(dir, &entry)) > 0) {
                if (entry->d_type != DT_DIR)
                        continue;
                q = walk_groups(dirfd(dir), entry->d_name, visit);
                if (q < 0 && r >= 0)
                        r = q;
        }
        if (q < 0 && r >= 0)
                r = q;
        q = visit(parent_fd, name);
        return r < 0 ? r : q;
}

static int for_each_hierarchy(const char *path, int (*visit)(int parent_fd, const char *name)) {
        cleanup_strv char **hierarchies = NULL;
        int result, r;

        result = list_hierarchies(&hierarchies);
        strv_foreach(hierarchy, hierarchies) {
                cleanup_close int fd = open(*hierarchy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

                r = fd < 0 ? -errno : walk_groups(fd, path + 1, visit);
                if (r < 0 && result >= 0)
                        result = r;
        }
        return result;
}

static int kill_one_group(int parent_fd, const char *name) {
        cleanup_close int fd =
                openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        cleanup_close int procs_fd = -EBADF;
        cleanup_free char *procs = NULL;
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (write_value_at(fd, "cgroup.kill", "1") >= 0) /* v2, kernel 5.14 */
                return 0;
        (void) write_value_at(fd, "freezer.state", "THAWED"); /* on v1, frozen processes do not even
                                                               * die when killed */
        procs_fd = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
        if (procs_fd < 0)
                return errno == ENOENT ? 0 : -errno;
        r = read_stream(procs_fd, 16 * MIB, &procs, NULL);
        if (r < 0)
                return r == -ENODEV ? 0 : r; /* removed in the meantime */
        for (char *line = procs; *line;) {
                long pid = strtol(line, &line, 10);

                /* 0 stands for a process in another PID namespace, which has no PID here. */
                if (pid > 0)
                        (void) kill((pid_t) pid, SIGKILL);
                while (*line == '\n')
                        line++;
        }
        return 0;
}

static int is_cgroup_empty(int parent_fd, const char *name) {
        cleanup_free char *path = path_join(name, "cgroup.procs");
        cleanup_close int fd = -EBADF;
        char byte;

        if (!path)
                return -ENOMEM;
        fd = openat(parent_fd, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        return read(fd, &byte, 1) > 0 ? -EBUSY : 0;
}

bool cgroup_has_processes(const char *path) {
        return for_each_hierarchy(path, is_cgroup_empty) == -EBUSY;
}

int cgroup_kill(const char *path) {
        int r = 0;

        FAIL_AT("cgroup.kill");
        /* A process may fork while the list is read; killed processes need a moment to exit. */
        for (unsigned i = 0; i < 200; i++) {
                static const struct timespec moment = { .tv_nsec = 5000000L };

                r = for_each_hierarchy(path, kill_one_group);
                if (r < 0)
                        return r;
                r = for_each_hierarchy(path, is_cgroup_empty);
                if (r != -EBUSY)
                        return r;
                (void) nanosleep(&moment, NULL);
        }
        return r;
}

static int remove_one_group(int parent_fd, const char *name) {
        return unlinkat(parent_fd, name, AT_REMOVEDIR) >= 0 || errno == ENOENT ? 0 : -errno;
}

int cgroup_remove(const char *path) {
        FAIL_AT("cgroup.remove");
        return for_each_hierarchy(path, remove_one_group);
}

int cgroup_remove_if_empty(const char *path) {
        cleanup_strv char **hierarchies = NULL;
        int result = list_hierarchies(&hierarchies);

        strv_foreach(hierarchy, hierarchies) {
                cleanup_close int fd = open(*hierarchy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                int r = fd < 0 ? -errno : remove_one_group(fd, path + 1);

                if (r < 0 && result >= 0)
                        result = r;
        }
        return result;
}
