/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/mountinfo.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>

int mountinfo_load(MountInfo *ret) {
        cleanup_close int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        char *data;
        int r;

        if (fd < 0)
                return -errno;
        r = read_stream(fd, 64 * MIB, &data, NULL);
        if (r < 0)
                return r;
        *ret = (MountInfo){ .data = data, .cursor = data };
        return 0;
}

static bool is_octal(char c) {
        return c >= '0' && c <= '7';
}

/* "\040" is a blank, and so on. In place. */
static void unescape_mount_path(char *text) {
        char *out = text;

        for (const char *in = text; *in; out++)
                if (in[0] == '\\' && is_octal(in[1]) && is_octal(in[2]) && is_octal(in[3])) {
                        *out = (char) ((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
                        in += 4;
                } else
                        *out = *in++;
        *out = '\0';
}

/* "36 35 98:0 /root /mount/point options shared:1 … - type source options" */
bool mountinfo_next(MountInfo *info, MountPoint *ret) {
        enum {
                PATH = 4,
                OPTIONAL = 6
        };
        char *line, *word;

        *ret = (MountPoint){ 0 };
        while ((line = strsep(&info->cursor, "\n")) && line[0]) {
                for (unsigned i = 0; (word = strsep(&line, " ")); i++) {
                        if (i == PATH)
                                ret->path = word;
                        if (i >= OPTIONAL && streq(word, "-"))
                                break;
                        if (i >= OPTIONAL && strncmp(word, "shared:", strlen("shared:")) == 0)
                                ret->shared = true;
                }
                if (ret->path) {
                        unescape_mount_path((char *) (uintptr_t) ret->path);
                        return true;
                }
        }
        return false;
}

void mountinfo_done(MountInfo *info) {
        free(info->data);
        *info = (MountInfo){ 0 };
}

bool path_is_beneath(const char *path, const char *root) {
        size_t length = strlen(root);

        while (length > 0 && root[length - 1] == '/')
                length--;
        return strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == '\0');
}
