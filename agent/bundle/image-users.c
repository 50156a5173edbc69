/* SPDX-License-Identifier: Apache-2.0 */
/* The files are untrusted: they are read whole and bounded, without following links. Layers are
 * searched as overlayfs would: the topmost layer that has the file, or hides it, ends the search.
 */

#include "agent/bundle/image-users.h"

#include "common/account-file.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum {
        FILE_BYTES_MAX = 1024 * 1024,
        GROUPS_MAX = 65536, /* the kernel's NGROUPS_MAX */
};

static bool is_opaque_directory(int fd) {
        char value = '\0';

        return fgetxattr(fd, "trusted.overlay.opaque", &value, sizeof(value)) == 1 && value == 'y';
}

/* 1: read. 0: continue in the layer below. -errno: the file does not exist, whatever the layers
 * below hold. */
static int read_file_in_layer(const char *layer, const char *name, char **ret) {
        cleanup_close int layer_fd = open(layer, O_PATH | O_DIRECTORY | O_CLOEXEC), etc_fd = -EBADF;
        struct stat st;
        int r;

        if (layer_fd < 0)
                return -errno;
        etc_fd = openat(layer_fd, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (etc_fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (fstatat(etc_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT && !is_opaque_directory(etc_fd) ? 0 : -errno;
        if (!S_ISREG(st.st_mode))
                return -ENOENT;
        r = read_file_at(etc_fd, name, FILE_BYTES_MAX, ret, NULL);
        return r < 0 ? r : 1;
}

/* The content of a file in the image's /etc, "" where it does not exist. */
static int read_image_etc_file(const Image *image, const char *name, char **ret) {
        for (char **layer = image->layers; layer && *layer; layer++) {
                int r = read_file_in_layer(*layer, name, ret);

                if (r == -ENOMEM || r > 0)
                        return r;
                if (r < 0)
                        break;
        }
        *ret = strdup("");
        return *ret ? 0 : -ENOMEM;
}

static int find_image_groups(const char *group, const char *name, gid_t **ret, size_t *ret_n) {
        cleanup_account_file AccountFile file = { 0 };
        cleanup_free gid_t *groups = NULL;
        struct group entry;
        size_t n = 0;
        int r;

        r = account_file_open(&file, group);
        if (r < 0)
                return r;
        while (n < GROUPS_MAX && account_file_next_group(&file, &entry)) {
                gid_t *larger;

                if (!group_has_member(&entry, name))
                        continue;
                larger = reallocarray(groups, n + 1, sizeof(*groups));
                if (!larger)
                        return -ENOMEM;
                groups = larger;
                groups[n++] = entry.gr_gid;
        }
        *ret = TAKE_PTR(groups);
        *ret_n = n;
        return 0;
}

int image_find_user_groups(const Image *image, uid_t uid, gid_t *ret_gid, gid_t **ret_groups,
                           size_t *ret_n_groups) {
        cleanup_free char *passwd = NULL, *group = NULL, *name = NULL;
        gid_t gid = 0, *groups = NULL;
        size_t n = 0;
        int r;

        r = read_image_etc_file(image, "passwd", &passwd);
        if (r < 0)
                return r;
        r = find_account(passwd, NULL, uid, &uid, &gid, &name);
        if (r < 0)
                return r;
        if (r > 0) {
                r = read_image_etc_file(image, "group", &group);
                if (r < 0)
                        return r;
                r = find_image_groups(group, name, &groups, &n);
                if (r < 0)
                        return r;
        }
        *ret_gid = gid;
        *ret_groups = groups;
        *ret_n_groups = n;
        return 0;
}
