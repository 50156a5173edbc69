/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/pod-user-namespace.h"

#include "agent/bundle/pod-paths.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>

static const char user_ids_link[] = "user-ids";

/* The ID is stored as the target of a dangling symlink, which is created atomically, so that a
 * power failure leaves no partial value. */
static int read_user_ids_link(int pods_fd, const char *uid, unsigned *ret) {
        cleanup_free char *path = path_join(uid, user_ids_link);
        char text[32];
        unsigned long id;
        ssize_t n;

        if (!path)
                return -ENOMEM;
        n = readlinkat(pods_fd, path, text, sizeof(text) - 1);
        if (n < 0)
                return errno == EINVAL ? -ENOENT : -errno;
        text[n] = '\0';
        id = strtoul(text, NULL, 10);
        if (id < USERNS_FIRST_ID || id >= USERNS_END_ID || id % USERNS_IDS_PER_POD != 0)
                return -ENOENT;
        *ret = (unsigned) id;
        return 0;
}

static int open_pods_state_dir(const BundleConfig *config) {
        cleanup_free char *path = path_join(config->state_dir, "pods");
        int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -ENOMEM;

        return fd < 0 && path ? -errno : fd;
}

int userns_load_ids(const BundleConfig *config, const Pod *pod, unsigned *ret) {
        cleanup_close int fd = -EBADF;

        *ret = 0;
        if (!pod_has_own_users(&pod->spec))
                return 0;
        fd = open_pods_state_dir(config);
        return fd < 0 ? fd : read_user_ids_link(fd, pod->metadata.uid, ret);
}

static bool is_user_id_free(const unsigned *used, size_t n, unsigned id) {
        for (size_t i = 0; i < n; i++)
                if (used[i] == id)
                        return false;
        return true;
}

/* The ID ranges of all pods that have a state directory. */
static int list_used_user_ids(int pods_fd, unsigned **ret, size_t *ret_n) {
        cleanup_closedir DIR *dir = NULL;
        cleanup_free unsigned *used = NULL;
        const struct dirent *entry;
        size_t n = 0;
        int copy = openat(pods_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

        dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                close_fd(copy);
                return -errno;
        }
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                unsigned id = 0;

                r = entry->d_name[0] == '.' ? -ENOENT
                                            : read_user_ids_link(pods_fd, entry->d_name, &id);
                if (r == -ENOENT || r == -ENOTDIR)
                        continue;
                if (r < 0)
                        return r;
                if (!ARRAY_RESERVE(used, n, 1))
                        return -ENOMEM;
                used[n++] = id;
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(used);
        *ret_n = n;
        return 0;
}

static int allocate_user_ids(int pods_fd, const char *uid, unsigned *ret) {
        cleanup_free unsigned *used = NULL;
        cleanup_free char *path = path_join(uid, user_ids_link);
        unsigned id = USERNS_FIRST_ID;
        char text[24];
        size_t n = 0;
        int r = path ? list_used_user_ids(pods_fd, &used, &n) : -ENOMEM;

        if (r < 0)
                return r;
        while (id < USERNS_END_ID && !is_user_id_free(used, n, id))
                id += USERNS_IDS_PER_POD;
        if (id >= USERNS_END_ID)
                return -ENOSPC;
        (void) snprintf(text, sizeof(text), "%u", id);
        (void) unlinkat(pods_fd, path, 0); /* remove a damaged link */
        if (symlinkat(text, pods_fd, path) < 0)
                return -errno;
        *ret = id;
        return 0;
}

int userns_allocate_ids(const BundleConfig *config, const Pod *pod, unsigned *ret, Error *reterr) {
        cleanup_close int fd = -EBADF;
        int r = userns_load_ids(config, pod, ret);

        if (r == -ENOENT) {
                fd = open_pods_state_dir(config);
                r = fd < 0 ? fd : allocate_user_ids(fd, pod->metadata.uid, ret);
        }
        if (r < 0)
                return error_setf(reterr, -r,
                                  "cannot allocate IDs for the pod's user namespace: %s",
                                  strerror(-r));
        return 0;
}

char *userns_path(const BundleConfig *config, const char *uid) {
        return pod_file_path(config, uid, "/user-namespace");
}

static int make_directory_traversable(const char *path, Error *reterr) {
        struct stat st;

        if (stat(path, &st) >= 0 && chmod(path, (st.st_mode & 07777) | 0111) >= 0)
                return 0;
        return error_setf(reterr, errno, "cannot make %s passable for the pod's users: %s", path,
                          strerror(errno));
}

/* The agent does not change permissions above the run directory. */
static int check_directories_traversable(const char *path, Error *reterr) {
        struct stat st;

        if (stat(path, &st) < 0)
                return -errno;
        if (st.st_mode & S_IXOTH)
                return 0;
        return error_setf(reterr, EACCES,
                          "the pod's users cannot pass through %s, which does not have the "
                          "permission x for others",
                          path);
}

int userns_make_traversable(const BundleConfig *config, const char *bundle_dir, Error *reterr) {
        cleanup_free char *path = strdup(bundle_dir);
        size_t ours = strlen(config->run_dir);
        char *slash;
        int r = path ? 0 : -ENOMEM;

        if (r < 0)
                return r;
        while (path[0]) {
                r = strlen(path) >= ours ? make_directory_traversable(path, reterr)
                                         : check_directories_traversable(path, reterr);
                if (r < 0)
                        return r;
                slash = strrchr(path, '/');
                if (!slash)
                        break;
                *slash = '\0';
        }
        return 0;
}

void userns_add_id_mappings(json_t *section, unsigned first_id) {
        static const char *const names[] = { "uidMappings", "gidMappings" };

        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                json_object_set_new(section, names[i],
                                    json_pack("[{s:i, s:I, s:i}]", "containerID", 0, "hostID",
                                              (json_int_t) first_id, "size", USERNS_IDS_PER_POD));
}
