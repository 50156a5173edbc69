/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/csi/csi-files.h"

#include "agent/model/csi-volume.h"
#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define DATA_NAME  "vol_data.json"
#define STAGES     "plugins/kubernetes.io/csi"
#define PODS       "pods"
#define VOLUMES_IN "volumes/kubernetes.io~csi"

enum {
        DIRECTORY_MODE = 0750,
        DATA_MODE = 0644,
        DATA_MAX = 64 * 1024,
        NAMES_MAX = 65536, /* of a directory */
};

void csi_volume_data_done(CsiVolumeData *data) {
        free(data->driver);
        free(data->handle);
        free(data->name);
        free(data->node);
        free(data->attachment);
        *data = (CsiVolumeData){ 0 };
}

/* ---- writing ---- */

static char *print_volume_data(const CsiVolumeData *data) {
        cleanup_json json_t *json =
                data->name ? json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "attachmentID",
                                       strna(data->attachment), "driverName", data->driver,
                                       "nodeName", strna(data->node), "specVolID", data->name,
                                       "volumeHandle", data->handle, "volumeLifecycleMode",
                                       data->is_ephemeral ? "Ephemeral" : "Persistent")
                           : json_pack("{s:s, s:s}", "driverName", data->driver, "volumeHandle",
                                       data->handle);

        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}

int csi_files_write(int kubelet_fd, const char *directory, const char *subdirectory,
                    const CsiVolumeData *data) {
        cleanup_free char *text = print_volume_data(data);
        cleanup_close int fd = make_path_at(kubelet_fd, directory, true, DIRECTORY_MODE);

        if (!text)
                return -ENOMEM;
        if (fd < 0)
                return fd;
        if (subdirectory && mkdirat(fd, subdirectory, DIRECTORY_MODE) < 0 && errno != EEXIST)
                return -errno;
        return write_file_atomic_at(fd, DATA_NAME, text, strlen(text), DATA_MODE);
}

/* ---- removing ---- */

/* The directory 'path', and those above it that are empty then, up to the first component. */
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

int csi_files_remove(int kubelet_fd, const char *directory, const char *subdirectory) {
        cleanup_close int fd = open_no_symlinks(kubelet_fd, directory, O_PATH | O_DIRECTORY, 0);

        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        if (unlinkat(fd, subdirectory, AT_REMOVEDIR) < 0 && errno != ENOENT)
                return -errno;
        if (unlinkat(fd, DATA_NAME, 0) < 0 && errno != ENOENT)
                return -errno;
        return remove_upwards(kubelet_fd, directory);
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
} VolumeSearch;

/* A name that the file gives is used in paths: it must be that of its directory. */
static bool is_volume_of(const CsiVolumeData *data, const char *pod_uid, const char *directory) {
        cleanup_free char *expected = pod_uid ? csi_publish_dir(pod_uid, strna(data->name))
                                              : csi_stage_dir(data->driver, data->handle);

        return streq_ptr(expected, directory);
}

static int find_volume(const VolumeSearch *search, const char *pod_uid, const char *directory) {
        cleanup_with(csi_volume_data_done) CsiVolumeData data = { 0 };
        cleanup_close int fd =
                open_no_symlinks(search->kubelet_fd, directory, O_PATH | O_DIRECTORY, 0);
        cleanup_free char *text = NULL;
        size_t length = 0;
        int r = fd;

        if (fd >= 0)
                r = read_file_at(fd, DATA_NAME, DATA_MAX, &text, &length);
        if (r >= 0)
                r = parse_volume_data(text, length, &data);
        if (r >= 0 && !is_volume_of(&data, pod_uid, directory))
                r = -EBADMSG;
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                log_warning("Ignoring the directory '%s' of a CSI volume: its " DATA_NAME
                            " cannot be used: %s",
                            directory, strerror(-r));
                return 0;
        }
        return search->on_found(pod_uid, &data, search->userdata);
}

typedef int (*visit_directory_t)(const VolumeSearch *search, const char *path, const char *name);

/* A directory that is not there has none. */
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

static int visit_stage(const VolumeSearch *search, const char *path, const char *name) {
        return find_volume(search, NULL, path);
}

static int visit_driver(const VolumeSearch *search, const char *path, const char *name) {
        return streq(name, "volumeDevices") ? 0 : visit_directories(search, path, visit_stage);
}

/* "pods/<uid>/volumes/kubernetes.io~csi/<name>" */
static int visit_volume(const VolumeSearch *search, const char *path, const char *name) {
        cleanup_free char *uid = strdup(path + strlen(PODS "/"));
        char *slash = uid ? strchr(uid, '/') : NULL;

        if (!slash)
                return -ENOMEM;
        *slash = '\0';
        return find_volume(search, uid, path);
}

static int visit_pod(const VolumeSearch *search, const char *path, const char *name) {
        cleanup_free char *volumes = path_join(path, VOLUMES_IN);

        return volumes ? visit_directories(search, volumes, visit_volume) : -ENOMEM;
}

int csi_files_find(int kubelet_fd, csi_volume_found_t on_found, void *userdata) {
        const VolumeSearch search = { kubelet_fd, on_found, userdata };
        int r = visit_directories(&search, STAGES, visit_driver);

        return r < 0 ? r : visit_directories(&search, PODS, visit_pod);
}
