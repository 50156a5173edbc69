/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/sysctls.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>

enum {
        FILE_BYTES_MAX = 1024 * 1024,
};

/* "net.ipv4.tcp_syncookies" and "net/ipv4/tcp_syncookies" are the same name; the first separator
 * determines the form. NULL: out of memory. */
static char *name_to_path(const char *name) {
        bool swap = name[strcspn(name, "./")] == '.';
        char *path = strdup(name);

        for (char *c = path; swap && c && *c; c++)
                if (*c == '.')
                        *c = '/';
                else if (*c == '/')
                        *c = '.';
        return path;
}

static int apply_sysctl_line(int sys_fd, char *line, Error *reterr) {
        char *value = strstr(line, " = ");
        cleanup_close int fd = -EBADF;
        cleanup_free char *path = NULL;
        int r;

        if (!value)
                return error_setf(reterr, EINVAL, "'%s' is not a sysctl", line);
        *value = '\0';
        value += 3;
        path = name_to_path(line);
        if (!path)
                return -ENOMEM;
        fd = open_beneath(sys_fd, path, O_WRONLY, 0);
        r = fd < 0 ? fd : write_all(fd, value, strlen(value));
        if (r < 0)
                return error_setf(reterr, -r, "cannot set the sysctl %s to '%s': %s", line, value,
                                  strerror(-r));
        return 0;
}

int sysctls_apply(const char *pod_dir, Error *reterr) {
        cleanup_free char *path = path_join(pod_dir, "sysctls"), *text = NULL;
        cleanup_close int sys_fd = -EBADF;
        char *rest, *line;
        int r;

        if (!path)
                return -ENOMEM;
        r = read_file_at(AT_FDCWD, path, FILE_BYTES_MAX, &text, NULL);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return error_setf(reterr, -r, "cannot read '%s': %s", path, strerror(-r));
        sys_fd = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (sys_fd < 0)
                return error_setf(reterr, errno, "cannot open /proc/sys: %s", strerror(errno));
        rest = text;
        while ((line = strsep(&rest, "\n"))) {
                r = line[0] ? apply_sysctl_line(sys_fd, line, reterr) : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}
