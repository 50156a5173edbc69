/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/agent-paths.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/file.h"
#include "common/log.h"
#include "common/text.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

void agent_paths_done(AgentPaths *paths) {
        free(paths->config);
        free(paths->config_dir);
        free(paths->manifest_dir);
        free(paths->kubeconfig);
        free(paths->bootstrap_kubeconfig);
        free(paths->certificate_dir);
        free(paths->shim_cgroup);
        free(paths->state_dir);
        free(paths->run_dir);
        free(paths->log_dir);
        free(paths->socket);
        close_fd(paths->lock_fd);
        free(paths->shim);
        free(paths->connector);
        free(paths->image_helper);
        free(paths->secret_helper);
        free(paths->node_api);
        free(paths->plugin_host);
}

/* ---- options and configuration ---- */

static const char *find_given_path(const char *path, const char *otherwise) {
        return path ? path : otherwise;
}

/* NULL stays NULL. */
static int copy_path(const char *path, char **ret) {
        if (path && !(*ret = strdup(path)))
                return -ENOMEM;
        return 0;
}

/* The path without trailing slashes. NULL: out of memory, or no current directory. */
static char *find_absolute_path(const char *path) {
        char current[PATH_MAX];
        cleanup_free char *whole = NULL;

        if (path[0] == '/')
                return path_clean(path);
        whole = getcwd(current, sizeof(current)) ? path_join(current, path) : NULL;
        return whole ? path_clean(whole) : NULL;
}

int agent_paths_choose_config(AgentPaths *paths, const AgentOptions *options, ConfigFiles *ret) {
        const char *given = options->config_dir, *file = options->config_path;
        const char *slash = strrchr(file, '/');
        int parent = slash ? (int) (slash - file) + 1 : 0;

        if (copy_path(file, &paths->config) < 0)
                return -ENOMEM;
        paths->config_dir = given ? find_absolute_path(given)
                                  : text_format("%.*sconfig.d", parent, slash ? file : "");
        if (!paths->config_dir)
                return -ENOMEM;
        *ret = (ConfigFiles){ .file = paths->config,
                              .directory = paths->config_dir,
                              .needs_directory = options->config_dir != NULL };
        return 0;
}

/* staticPodPath from the configuration, unless an option names the directory. */
int agent_paths_choose(AgentPaths *paths, const AgentOptions *options, const Config *config,
                       Error *reterr) {
        const char *kubeconfig = find_given_path(options->kubeconfig, config->mainstay.kubeconfig);
        const char *bootstrap = find_given_path(options->bootstrap_kubeconfig,
                                                config->mainstay.bootstrap_kubeconfig);
        const char *manifest_dir = find_given_path(options->manifest_dir, config->static_pod_path);

        if (bootstrap && !kubeconfig)
                return error_setf(
                        reterr, EINVAL,
                        "%s: a bootstrap kubeconfig needs the path of a kubeconfig to write",
                        bootstrap);
        if (copy_path(kubeconfig, &paths->kubeconfig) < 0 ||
            copy_path(bootstrap, &paths->bootstrap_kubeconfig) < 0 ||
            copy_path(options->cert_dir, &paths->certificate_dir) < 0 ||
            copy_path(find_given_path(manifest_dir, "/etc/kubernetes/manifests"),
                      &paths->manifest_dir) < 0)
                return -ENOMEM;
        paths->shim_cgroup = text_format(
                "%s/mainstay", streq(config->cgroup_root, "/") ? "" : config->cgroup_root);
        return paths->shim_cgroup ? 0 : -ENOMEM;
}

/* ---- directories ---- */

/* Overlayfs takes a list of paths, which cannot contain its separators. */
static int check_mountable_path(const char *path, Error *reterr) {
        if (strpbrk(path, ",:\\\n\t \"'"))
                return error_setf(reterr, EINVAL,
                                  "the directory '%s' has a character in its path that a mount "
                                  "option cannot hold",
                                  path);
        return 0;
}

/* Makes the directory with its parents, sets its mode, and returns its real path. On a read-only
 * file system, existing directories are used. */
static int make_agent_directory(const char *path, mode_t mode, char **ret, Error *reterr) {
        char real[PATH_MAX];
        int r = mkdir_parents_at(AT_FDCWD, path, 0755);

        if (r < 0)
                return error_setf(reterr, -r, "cannot make the directory %s: %s", path,
                                  strerror(-r));
        if ((chmod(path, mode) < 0 && errno != EROFS) || !realpath(path, real))
                return error_setf(reterr, errno, "cannot use the directory %s: %s", path,
                                  strerror(errno));
        r = check_mountable_path(real, reterr);
        if (r < 0)
                return r;
        *ret = strdup(real);
        return *ret ? 0 : -ENOMEM;
}

/* Makes "<parent>/<name>" with its parents; an existing directory stays as it is. */
static int make_subdirectory(const char *parent, const char *name, Error *reterr) {
        cleanup_free char *path = path_join(parent, name);
        int r = path ? mkdir_parents_at(AT_FDCWD, path, 0755) : -ENOMEM;

        if (r < 0)
                return error_setf(reterr, -r, "cannot make the directory %s/%s: %s", parent, name,
                                  strerror(-r));
        return 0;
}

/* An existing directory, such as /var/log, keeps its mode. The path is absolute, because shims and
 * symbolic links also use it. */
static int make_log_directories(const char *path, char **ret, Error *reterr) {
        int r = make_subdirectory(path, "pods", reterr);

        if (r < 0)
                return r;
        r = make_subdirectory(path, "containers", reterr);
        if (r < 0)
                return r;
        *ret = realpath(path, NULL);
        return *ret ? 0
                    : error_setf(reterr, errno, "cannot use the directory %s: %s", path,
                                 strerror(errno));
}

int agent_paths_make_directories(AgentPaths *paths, const AgentOptions *options, Error *reterr) {
        int r = make_agent_directory(options->state_dir, 0700, &paths->state_dir, reterr);

        if (r < 0)
                return r;
        r = make_agent_directory(options->run_dir, 0700, &paths->run_dir, reterr);
        if (r < 0)
                return r;
        paths->socket = path_join(paths->run_dir, "mainstay.sock");
        if (!paths->socket)
                return -ENOMEM;
        return make_log_directories(options->log_dir, &paths->log_dir, reterr);
}

/* The mode is set regardless of the umask, which the systemd unit sets for the agent's own files.
 */
static int make_kubelet_directory(int dir_fd, const char *path) {
        mode_t mask = umask(0);
        int r = mkdirat(dir_fd, path, 0750) < 0 && errno != EEXIST ? -errno : 0;

        (void) umask(mask);
        return r;
}

static int make_kubelet_directories(const char *root) {
        static const char *const names[] = { "device-plugins", "plugins", "plugins_registry",
                                             "pod-resources", "pods" };
        cleanup_close int root_fd = -EBADF;
        int r = make_kubelet_directory(AT_FDCWD, root);

        if (r < 0)
                return r;
        root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (root_fd < 0)
                return -errno;
        for (size_t i = 0; i < N_ELEMENTS(names) && r >= 0; i++)
                r = make_kubelet_directory(root_fd, names[i]);
        return r;
}

void agent_paths_make_kubelet_directories(const AgentOptions *options) {
        int r = make_kubelet_directories(options->kubelet_dir);

        if (r < 0)
                log_warning("Cannot make the directories of plugins in %s: %s; pods with hostPath "
                            "volumes there may wait for them. Make it writable, or name another "
                            "directory with --kubelet-dir",
                            options->kubelet_dir, strerror(-r));
}

int agent_paths_lock(AgentPaths *paths, Error *reterr) {
        cleanup_free char *path = path_join(paths->run_dir, "lock");
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        if (!path)
                return -ENOMEM;
        paths->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (paths->lock_fd < 0)
                return error_setf(reterr, errno, "cannot open %s: %s", path, strerror(errno));
        /* The lock belongs to the process, not to the open file: if the agent is killed while a
         * child is between fork() and exec(), the child keeps the descriptors a moment longer, but
         * must not hold the lock. */
        if (fcntl(paths->lock_fd, F_SETLK, &lock) < 0)
                return error_setf(reterr, errno == EAGAIN || errno == EACCES ? EBUSY : errno,
                                  "another mainstayd uses the run directory %s", paths->run_dir);
        return 0;
}

/* A file system in user space, for example, may not support these attributes, and an overlayfs on
 * it would refuse its files. An agent that may not set overlayfs's attributes tests with its own
 * ones. */
static bool lacks_extended_attributes(const char *path) {
        static const char *const names[] = { "trusted.mainstay.test", "user.mainstay.test" };

        for (size_t i = 0; i < N_ELEMENTS(names); i++) {
                if (setxattr(path, names[i], "", 0, 0) >= 0) {
                        (void) removexattr(path, names[i]);
                        return false;
                }
                if (errno != EPERM)
                        return errno == EOPNOTSUPP;
        }
        return false;
}

/* File systems that cannot be the upper layer of an overlayfs. */
void agent_paths_check_state(const AgentPaths *paths) {
        static const struct {
                unsigned magic;
                const char *name;
        } unsuitable[] = {
                { OVERLAYFS_SUPER_MAGIC, "overlayfs" },
                { NFS_SUPER_MAGIC, "NFS" },
                { CIFS_SUPER_MAGIC, "CIFS" },
                { SMB2_SUPER_MAGIC, "SMB" },
                { MSDOS_SUPER_MAGIC, "FAT" },
                { EXFAT_SUPER_MAGIC, "exFAT" },
                { FUSE_SUPER_MAGIC, "FUSE without extended attributes" },
        };
        struct statfs st;

        if (statfs(paths->state_dir, &st) < 0)
                return;
        for (size_t i = 0; i < N_ELEMENTS(unsuitable); i++)
                if ((unsigned) st.f_type == unsuitable[i].magic &&
                    (unsuitable[i].magic != FUSE_SUPER_MAGIC ||
                     lacks_extended_attributes(paths->state_dir)))
                        log_error("The state directory %s is on %s, where containers cannot have "
                                  "their root file systems: none will start. Mount ext4 or XFS "
                                  "there, or name another directory with --state-dir",
                                  paths->state_dir, unsuitable[i].name);
}

/* ---- programs ---- */

static int find_program(const char *name, char **ret) {
        char self[PATH_MAX], *path, *slash;
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        if (n > 0) {
                self[n] = '\0';
                slash = strrchr(self, '/');
                path = text_format("%.*s/%s", (int) (slash - self), self, name);
                if (!path)
                        return -ENOMEM;
                if (access(path, X_OK) >= 0) {
                        *ret = path;
                        return 0;
                }
                free(path);
        }
        *ret = path_join(MAINSTAY_LIBEXEC_DIR, name);
        return *ret ? 0 : -ENOMEM;
}

int agent_paths_find_programs(AgentPaths *paths) {
        bool is_launched = getenv("MAINSTAY_LAUNCH_SOCKET");
        int r = find_program("mainstay-shim", &paths->shim);

        if (r < 0)
                return r;
        r = find_program(is_launched ? "launch/mainstay-shim" : "mainstay-shim", &paths->connector);
        if (r < 0)
                return r;
        r = find_program(is_launched ? "launch/mainstay-image" : "mainstay-image",
                         &paths->image_helper);
        if (r < 0)
                return r;
        r = find_program("mainstay-secret", &paths->secret_helper);
        if (r < 0)
                return r;
        r = find_program(is_launched ? "launch/mainstay-plugins" : "mainstay-plugins",
                         &paths->plugin_host);
        if (r < 0)
                return r;
        return find_program(is_launched ? "launch/mainstay-api" : "mainstay-api", &paths->node_api);
}

uint64_t node_creation_time(const char *state_dir) {
        struct statx st;

        if (statx(AT_FDCWD, state_dir, 0, STATX_BTIME, &st) < 0 || !(st.stx_mask & STATX_BTIME))
                return 0;
        return (uint64_t) st.stx_btime.tv_sec * USEC_PER_SEC;
}

void agent_paths_dump(const AgentPaths *paths, FILE *out) {
        dump_line(out, 1, "manifest directory: %s", paths->manifest_dir);
        dump_line(out, 1, "state directory: %s", paths->state_dir);
        dump_line(out, 1, "run directory: %s", paths->run_dir);
        dump_line(out, 1, "log directory: %s", paths->log_dir);
        dump_line(out, 1, "configuration: %s", paths->config);
        dump_line(out, 1, "kubeconfig: %s", paths->kubeconfig ? paths->kubeconfig : "none");
}
