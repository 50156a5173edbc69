/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces common/cgroup.c: cgroups of version 2 are directories below the test's directory. */

#include "common/cgroup.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"
#include "tests/unit/pods/worker/fakes.h"

#include <fcntl.h>
#include <unistd.h>

const char *fake_cgroup_refused_file;

static char root[128];

void fake_cgroups_init(const char *directory) {
        (void) snprintf(root, sizeof(root), "%s/cgroup", directory);
}

int cgroup_version(void) {
        return 2;
}

bool cgroup_has_controller(const char *controller) {
        return true;
}

char *cgroup_file(const char *path, const char *controller, const char *file) {
        return text_format("%s%s/%s", root, path, file);
}

int cgroup_create(const char *path, Error *reterr) {
        cleanup_free char *directory = text_format("%s%s", root, path);

        return mkdir_parents_at(AT_FDCWD, directory, 0755);
}

int cgroup_write(const char *path, const char *controller, const char *file, const char *value,
                 Error *reterr) {
        cleanup_free char *name = cgroup_file(path, controller, file);
        cleanup_close int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        if (fake_cgroup_refused_file && streq(file, fake_cgroup_refused_file))
                return error_setf(reterr, EBUSY, "cannot write %s: the fake is busy", file);
        if (fd < 0)
                return error_setf(reterr, errno, "cannot write %s: %s", name, strerror(errno));
        return write_all(fd, value, strlen(value));
}

int cgroup_remove_if_empty(const char *path) {
        cleanup_free char *directory = text_format("%s%s", root, path);

        return rmdir(directory) < 0 ? -errno : 0;
}

bool cgroup_has_processes(const char *path) {
        return false;
}

int cgroup_kill(const char *path) {
        return 0;
}

int cgroup_remove(const char *path) {
        cleanup_free char *directory = text_format("%s%s", root, path);

        return remove_tree_at(AT_FDCWD, directory);
}

int cgroup_of_self(char **ret) {
        *ret = strdup("/agent");
        return *ret ? 0 : -ENOMEM;
}
