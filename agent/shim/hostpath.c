/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/hostpath.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>

typedef struct HostPathCheck {
        const char *name;
        mode_t format; /* required S_IFMT bits; 0: any */
        bool should_create;
        const char *what; /* as in the kubelet's messages: "… is not a directory" */
} HostPathCheck;

/* clang-format off */
static const HostPathCheck hostpath_checks[] = {
        { "",                  0,       true,  NULL                 },
        { "DirectoryOrCreate", S_IFDIR, true,  "a directory"        },
        { "Directory",         S_IFDIR, false, "a directory"        },
        { "FileOrCreate",      S_IFREG, true,  "a file"             },
        { "File",              S_IFREG, false, "a file"             },
        { "Socket",            S_IFSOCK, false, "a socket file"     },
        { "CharDevice",        S_IFCHR, false, "a character device" },
        { "BlockDevice",       S_IFBLK, false, "a block device"     },
};
/* clang-format on */

static const HostPathCheck *find_hostpath_check(const char *name) {
        for (size_t i = 0; i < N_ELEMENTS(hostpath_checks); i++)
                if (streq(hostpath_checks[i].name, name))
                        return &hostpath_checks[i];
        return NULL;
}

static int create_hostpath(const char *path, const HostPathCheck *type) {
        cleanup_close int fd = -EBADF;

        if (type->format != S_IFREG)
                return mkdir_parents_at(AT_FDCWD, path, 0755);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
                return errno == EEXIST ? 0 : -errno;
        return fchmod(fd, 0644) < 0 ? -errno : 0;
}

int hostpath_open_checked(const char *path, const char *type_name, Error *reterr) {
        const HostPathCheck *type = find_hostpath_check(type_name);
        cleanup_close int fd = -EBADF;
        struct stat st;
        int r;

        if (!type)
                return error_setf(reterr, EINVAL, "%s is an invalid volume type", type_name);
        fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT && type->should_create) {
                r = create_hostpath(path, type);
                if (r < 0)
                        return error_setf(reterr, -r, "cannot create '%s': %s", path, strerror(-r));
                fd = open(path, O_PATH | O_CLOEXEC);
        }
        if (fd < 0 && !type->what)
                return error_setf(reterr, errno, "cannot open '%s': %s", path, strerror(errno));
        if (type->what && (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != type->format))
                return error_setf(reterr, EINVAL, "hostPath type check failed: %s is not %s", path,
                                  type->what);
        return TAKE_FD(fd);
}
