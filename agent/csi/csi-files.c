/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/csi/csi-files.h"

#include "agent/model/csi-volume.h"
#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define DATA_NAME     "vol_data.json"
#define STAGES        "plugins/kubernetes.io/csi"
#define BLOCK         STAGES "/volumeDevices"
#define BLOCK_STAGES  BLOCK "/staging"
#define BLOCK_DEVICES BLOCK "/publish"
#define PODS          "pods"
#define VOLUMES_IN    "volumes/kubernetes.io~csi"
#define DEVICES_IN    "volumeDevices/kubernetes.io~csi"

enum {
        DIRECTORY_MODE = 0750,
        DATA_MODE = 0644,
        DATA_MAX = 64 * 1024,
        NAMES_MAX = 65536, /* limit of one directory */
};

void csi_volume_data_done(CsiVolumeData *data) {
        free(data->driver);
        free(data->handle);
        free(data->name);
        free(data->node);
        free(data->attachment);
        free(data->selinux_label);
        *data = (CsiVolumeData){ 0 };
}

/* ---- writing ---- */

/* The data of a block device has no lifecycle mode, as in the kubelet, because it is always
 * persistent. */
static char *print_volume_data(const CsiVolumeData *data) {
        const char *mode = data->is_block ? NULL : data->is_ephemeral ? "Ephemeral" : "Persistent";
        cleanup_json json_t *json =
                data->name
                        ? json_pack("{s:s, s:s, s:s, s:s, s:s, s:s*, s:s*}", "attachmentID",
                                    strna(data->attachment), "driverName", data->driver, "nodeName",
                                    strna(data->node), "specVolID", data->name, "volumeHandle",
                                    data->handle, "volumeLifecycleMode", mode,
                                    "seLinuxMountContext", data->selinux_label)
                        : json_pack("{s:s, s:s, s:s*}", "driverName", data->driver, "volumeHandle",
                                    data->handle, "seLinuxMountContext", data->selinux_label);

        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}

/* Creates the directory and its parents, all with the same mode: make_path_at() gives parents
 * search permission, and mkdir_parents_at() follows links, which a driver may have created here. A
 * descriptor or -errno. */
static int make_directories(int kubelet_fd, const char *path) {
        cleanup_free char *copy = strdup(path);
        int r = copy ? 0 : -ENOMEM;

        for (char *slash = copy; r >= 0 && (slash = strchr(slash, '/')); *slash++ = '/') {
                *slash = '\0';
                r = make_path_at(kubelet_fd, copy, true, DIRECTORY_MODE);
                close_fd(r);
        }
        return r < 0 ? r : make_path_at(kubelet_fd, path, true, DIRECTORY_MODE);
}

int csi_files_write(int kubelet_fd, const char *directory, const char *subdirectory,
                    const CsiVolumeData *data) {
        cleanup_free char *text = print_volume_data(data);
        cleanup_close int fd = make_directories(kubelet_fd, directory);

        if (!text)
                return -ENOMEM;
        if (fd < 0)
                return fd;
        if (subdirectory && mkdirat(fd, subdirectory, DIRECTORY_MODE) < 0 && errno != EEXIST)
                return -errno;
        return write_file_atomic_at(fd, DATA_NAME, text, strlen(text), DATA_MODE);
}

/* ---- removing ---- */

/* Removes the directory 'path', and its parents that become empty, up to the first component. */
static int remove_upwards(int kubelet_fd, const char *path) {
        cleanup_free char *copy = strdup(path);
        bool is_first = true;

        if (!copy)
                return -ENOMEM;
        for (char *slash; (slash = strrchr(copy, '/')); *slash = '\0', is_first = false) {
                cleanup_close int fd = -EBADF;

                *slash = '\0';
                fd = open_no_symlinks(kubelet_fd, copy, O_PATH | O_DIRECTORY, 0);
                if (fd >= 0 && unlinkat(fd, slash + 1, AT_REMOVEDIR) < 0 && errno != ENOENT)
                        return is_first ? -errno : 0;
        }
        return 0;
}

/* Also removes the remains of the file if an agent died while writing it. */
static int remove_data_file(int fd) {
        static const char *const names[] = { DATA_NAME, DATA_NAME ".tmp" };

        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                if (unlinkat(fd, names[i], 0) < 0 && errno != ENOENT)
                        return -errno;
        return 0;
}

int csi_files_remove(int kubelet_fd, const char *directory, const char *subdirectory) {
        cleanup_close int fd = open_no_symlinks(kubelet_fd, directory, O_PATH | O_DIRECTORY, 0);
        int r;

        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        if (unlinkat(fd, subdirectory, AT_REMOVEDIR) < 0 && errno != ENOENT)
                return -errno;
        r = remove_data_file(fd);
        return r < 0 ? r : remove_upwards(kubelet_fd, directory);
}

/* ---- block devices ---- */

static int write_device_data(int kubelet_fd, const CsiVolumeData *data) {
        cleanup_free char *directory = csi_block_data_dir(data->name);

        return directory ? csi_files_write(kubelet_fd, directory, NULL, data) : -ENOMEM;
}

/* An existing link is identical, because its text depends only on its location. */
static int link_block_device(int kubelet_fd, const char *kubelet_dir, const char *pod_uid,
                             const char *name) {
        cleanup_free char *link = csi_block_link(pod_uid, name),
                          *devices = csi_block_publish_dir(name), *target = NULL;
        cleanup_close int fd = -EBADF;
        char *slash = link ? strrchr(link, '/') : NULL;

        if (!slash || !devices)
                return -ENOMEM;
        target = text_format("%s/%s/%s", kubelet_dir, devices, pod_uid);
        if (!target)
                return -ENOMEM;
        *slash = '\0';
        fd = make_directories(kubelet_fd, link);
        if (fd < 0)
                return fd;
        return symlinkat(target, fd, slash + 1) < 0 && errno != EEXIST ? -errno : 0;
}

int csi_files_write_block(int kubelet_fd, const char *kubelet_dir, const char *pod_uid,
                          const CsiVolumeData *data) {
        cleanup_free char *directory =
                pod_uid ? csi_block_publish_dir(data->name) : csi_block_stage_dir(data->name);
        cleanup_close int fd = -EBADF;
        int r = directory ? write_device_data(kubelet_fd, data) : -ENOMEM;

        if (r < 0)
                return r;
        DIE_AT("csi.device-described");
        fd = make_directories(kubelet_fd, directory);
        if (fd < 0)
                return fd;
        return pod_uid ? link_block_device(kubelet_fd, kubelet_dir, pod_uid, data->name) : 0;
}

/* Removes the file or directory, and its parents that become empty. */
static int remove_directory_entry(int kubelet_fd, const char *directory, const char *name) {
        cleanup_close int fd = open_no_symlinks(kubelet_fd, directory, O_PATH | O_DIRECTORY, 0);

        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        if (unlinkat(fd, name, 0) < 0 && errno != ENOENT &&
            (errno != EISDIR || unlinkat(fd, name, AT_REMOVEDIR) < 0))
                return -errno;
        (void) remove_upwards(kubelet_fd, directory);
        return 0;
}

static bool is_path_there(int kubelet_fd, const char *path) {
        cleanup_close int fd = open_no_symlinks(kubelet_fd, path, O_PATH, 0);

        return fd != -ENOENT;
}

static int remove_block_data(int kubelet_fd, const char *directory) {
        cleanup_close int fd = open_no_symlinks(kubelet_fd, directory, O_PATH | O_DIRECTORY, 0);
        int r = fd < 0 ? fd : remove_data_file(fd);

        if (r < 0 && r != -ENOENT)
                return r;
        (void) remove_upwards(kubelet_fd, directory);
        return 0;
}

int csi_files_remove_block(int kubelet_fd, const char *pod_uid, const char *name) {
        cleanup_free char *stage = csi_block_stage_dir(name),
                          *devices = csi_block_publish_dir(name), *data = csi_block_data_dir(name),
                          *link = pod_uid ? csi_block_link(pod_uid, name) : NULL;
        char *slash = link ? strrchr(link, '/') : NULL;
        int r;

        if (!stage || !devices || !data || (pod_uid && !slash))
                return -ENOMEM;
        if (slash)
                *slash = '\0';
        r = slash ? remove_directory_entry(kubelet_fd, devices, pod_uid)
                  : remove_upwards(kubelet_fd, stage);
        if (r >= 0 && slash)
                r = remove_directory_entry(kubelet_fd, link, name);
        if (r < 0 || is_path_there(kubelet_fd, stage) || is_path_there(kubelet_fd, devices))
                return r;
        return remove_block_data(kubelet_fd, data);
}

/* ---- finding ---- */

static int parse_volume_data(const char *text, size_t length, CsiVolumeData *ret) {
        cleanup_json json_t *json = NULL;
        cleanup_free char *mode = NULL;
        int r = json_parse_text(text, length, 0, &json, NULL);

        if (r >= 0)
                r = json_copy_text(json, "driverName", &ret->driver);
        if (r >= 0)
                r = json_copy_text(json, "volumeHandle", &ret->handle);
        if (r >= 0)
                r = json_copy_text(json, "specVolID", &ret->name);
        if (r >= 0)
                r = json_copy_text(json, "volumeLifecycleMode", &mode);
        if (r >= 0)
                r = json_copy_text(json, "seLinuxMountContext", &ret->selinux_label);
        if (r < 0)
                return r;
        ret->is_ephemeral = streq_ptr(mode, "Ephemeral");
        return ret->driver && ret->handle && check_csi_driver(ret->driver, NULL) >= 0 ? 0
                                                                                      : -EBADMSG;
}

typedef struct VolumeSearch {
        int kubelet_fd;
        csi_volume_found_t on_found;
        void *userdata;
        char ***linked; /* the names of block devices that pods use */
} VolumeSearch;

/* A name in the file is used in paths, so it must equal the name of the directory. */
static bool is_volume_of(const CsiVolumeData *data, const char *pod_uid, const char *directory) {
        cleanup_free char *expected = pod_uid ? csi_publish_dir(pod_uid, strna(data->name))
                                              : csi_stage_dir(data->driver, data->handle);

        return streq_ptr(expected, directory);
}

static int read_volume_data(const VolumeSearch *search, const char *directory, CsiVolumeData *ret) {
        cleanup_close int fd =
                open_no_symlinks(search->kubelet_fd, directory, O_PATH | O_DIRECTORY, 0);
        cleanup_free char *text = NULL;
        size_t length = 0;
        int r = fd < 0 ? fd : read_file_at(fd, DATA_NAME, DATA_MAX, &text, &length);

        return r < 0 ? r : parse_volume_data(text, length, ret);
}

static int ignore_volume(const char *directory, int r) {
        if (r == -ENOMEM)
                return r;
        log_warning("Ignoring the directory '%s' of a CSI volume: its " DATA_NAME
                    " cannot be used: %s",
                    directory, strerror(-r));
        return 0;
}

static int find_volume(const VolumeSearch *search, const char *pod_uid, const char *directory) {
        cleanup_with(csi_volume_data_done) CsiVolumeData data = { 0 };
        int r = read_volume_data(search, directory, &data);

        if (r >= 0 && !is_volume_of(&data, pod_uid, directory))
                r = -EBADMSG;
        if (r == -ENOENT && /* it is written before anything is mounted */
            csi_files_remove(search->kubelet_fd, directory,
                             pod_uid ? CSI_MOUNT_NAME : CSI_STAGE_NAME) >= 0)
                return 0;
        return r < 0 ? ignore_volume(directory, r)
                     : search->on_found(pod_uid, &data, search->userdata);
}

/* The UID in "pods/<uid>/…"; the caller frees it, NULL: out of memory. */
static char *pod_of_path(const char *path) {
        const char *uid = path + strlen(PODS "/");

        return strndup(uid, strcspn(uid, "/"));
}

typedef int (*visit_directory_t)(const VolumeSearch *search, const char *path, const char *name);

/* A directory that does not exist has no volumes. */
static int visit_directories(const VolumeSearch *search, const char *path,
                             visit_directory_t visit) {
        int fd = open_no_symlinks(search->kubelet_fd, path, O_RDONLY | O_DIRECTORY, 0), r = 0;
        cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!dir)
                return close_fd(fd), 0;
        for (unsigned n = 0; r >= 0 && n < NAMES_MAX && (entry = readdir(dir)); n++) {
                cleanup_free char *child = NULL;

                if (entry->d_name[0] == '.')
                        continue;
                child = path_join(path, entry->d_name);
                r = child ? visit(search, child, entry->d_name) : -ENOMEM;
        }
        return r;
}

/* The directory or the link of a block device was found; 'name' is the name of its volume. */
static int find_mapped_device(const VolumeSearch *search, const char *pod_uid, const char *name) {
        cleanup_with(csi_volume_data_done) CsiVolumeData data = { 0 };
        cleanup_free char *directory = csi_block_data_dir(name);
        int r = directory ? read_volume_data(search, directory, &data) : -ENOMEM;

        if (r >= 0 && !streq_ptr(data.name, name))
                r = -EBADMSG;
        data.is_block = true;
        return r < 0 ? ignore_volume(directory, r)
                     : search->on_found(pod_uid, &data, search->userdata);
}

static int visit_block_stage(const VolumeSearch *search, const char *path, const char *name) {
        return find_mapped_device(search, NULL, name);
}

static int visit_block_link(const VolumeSearch *search, const char *path, const char *name) {
        cleanup_free char *uid = pod_of_path(path);
        int r = uid ? strv_append(search->linked, name) : -ENOMEM;

        return r < 0 ? r : find_mapped_device(search, uid, name);
}

/* Removes the data of a device if an agent died before it created the directory of the device. */
static int visit_block_data(const VolumeSearch *search, const char *path, const char *name) {
        cleanup_free char *stage = csi_block_stage_dir(name),
                          *devices = csi_block_publish_dir(name), *data = csi_block_data_dir(name);

        if (!stage || !devices || !data)
                return -ENOMEM;
        if (streq(path, BLOCK_STAGES) || streq(path, BLOCK_DEVICES) ||
            strv_contains(*search->linked, name))
                return 0;
        (void) remove_upwards(search->kubelet_fd, devices);
        return is_path_there(search->kubelet_fd, stage) ||
                               is_path_there(search->kubelet_fd, devices)
                       ? 0
                       : remove_block_data(search->kubelet_fd, data);
}

static int visit_stage(const VolumeSearch *search, const char *path, const char *name) {
        return find_volume(search, NULL, path);
}

static int visit_driver(const VolumeSearch *search, const char *path, const char *name) {
        return streq(name, "volumeDevices") ? 0 : visit_directories(search, path, visit_stage);
}

static int visit_volume(const VolumeSearch *search, const char *path, const char *name) {
        cleanup_free char *uid = pod_of_path(path);

        return uid ? find_volume(search, uid, path) : -ENOMEM;
}

/* Also removes the directories of a pod in which an agent that died had created nothing yet. */
static int visit_pod(const VolumeSearch *search, const char *path, const char *name) {
        cleanup_free char *volumes = path_join(path, VOLUMES_IN),
                          *devices = path_join(path, DEVICES_IN);
        int r = volumes && devices ? visit_directories(search, volumes, visit_volume) : -ENOMEM;

        if (r >= 0)
                r = visit_directories(search, devices, visit_block_link);
        if (r < 0)
                return r;
        (void) remove_upwards(search->kubelet_fd, volumes);
        (void) remove_upwards(search->kubelet_fd, devices);
        return 0;
}

int csi_files_find(int kubelet_fd, csi_volume_found_t on_found, void *userdata) {
        cleanup_strv char **linked = NULL;
        const VolumeSearch search = { kubelet_fd, on_found, userdata, &linked };
        int r = visit_directories(&search, STAGES, visit_driver);

        if (r >= 0)
                r = visit_directories(&search, BLOCK_STAGES, visit_block_stage);
        if (r >= 0)
                r = visit_directories(&search, PODS, visit_pod);
        return r < 0 ? r : visit_directories(&search, BLOCK, visit_block_data);
}
