/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a privileged container: all devices that exist on the node when the container is
 * created. */

#include "agent/bundle/resolved-security.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum {
        DEPTH_MAX = 16,
        DEVICES_MAX = 16384,
};

/* Mount points below /dev that the runtime creates itself, and those of other containers. */
static const char *const skipped[] = {
        ".", "..", "pts", "shm", "fd", "mqueue", "console", ".lxc", ".lxd-mounts", ".udev", NULL,
};

static bool is_device_skipped(const char *name) {
        return text_is_one_of(name, skipped);
}

static void add_device(json_t *devices, const char *path, const struct stat *st) {
        json_array_append_new(devices,
                              json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "path", path, "type",
                                        S_ISCHR(st->st_mode) ? "c" : "b", "major",
                                        (json_int_t) major(st->st_rdev), "minor",
                                        (json_int_t) minor(st->st_rdev), "fileMode",
                                        (json_int_t) (st->st_mode & 07777), "uid",
                                        (json_int_t) st->st_uid, "gid", (json_int_t) st->st_gid));
}

static void add_device_directory(json_t *devices, const char *path, unsigned depth) {
        cleanup_closedir DIR *dir = opendir(path);
        struct dirent *entry;

        while (dir && (entry = readdir(dir)) && json_array_size(devices) < DEVICES_MAX) {
                cleanup_free char *child = NULL;
                struct stat st;

                if (is_device_skipped(entry->d_name) ||
                    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                child = text_format("%s/%s", path, entry->d_name);
                if (!child)
                        return;
                if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
                        add_device_directory(devices, child, depth + 1);
                else if ((S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) && st.st_rdev != 0)
                        add_device(devices, child, &st);
        }
}

json_t *node_devices(const char *directory) {
        json_t *devices = json_array();

        add_device_directory(devices, directory, 0);
        return devices;
}
