/* SPDX-License-Identifier: Apache-2.0 */
#include "common/stick-watch.h"

#include "common/cleanup.h"
#include "common/file-watch.h"
#include "common/mount-watch.h"
#include "common/strv.h"

#include <stdlib.h>

struct StickWatch {
        char *path;
        MountWatch *mounts;
        FileWatch *files;
};

/* The path, and each of its parent directories. */
static int watch_path(StickWatch *watch) {
        cleanup_strv char **paths = NULL;
        cleanup_free char *path = strdup(watch->path);
        char *slash;
        int r = path ? strv_append(&paths, path) : -ENOMEM;

        while (r >= 0 && (slash = strrchr(path, '/')) && slash > path) {
                *slash = '\0';
                r = strv_append(&paths, path);
        }
        return r < 0 ? r
                     : file_watch_set(watch->files, (const char *const *) paths,
                                      strv_length(paths));
}

int stick_watch_set_absent(StickWatch *watch, bool is_absent) {
        if (is_absent)
                return watch_path(watch);
        (void) file_watch_set(watch->files, NULL, 0);
        return 0;
}

int stick_watch_new(sd_event *event, const char *path, void (*on_changed)(void *userdata),
                    void *userdata, StickWatch **ret) {
        cleanup_with(stick_watch_freep) StickWatch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->path = strdup(path);
        if (!watch->path)
                return -ENOMEM;
        r = mount_watch_new(event, path, on_changed, userdata, &watch->mounts);
        if (r < 0)
                return r;
        r = file_watch_new(event, on_changed, userdata, &watch->files);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(watch);
        return 0;
}

StickWatch *stick_watch_free(StickWatch *watch) {
        if (!watch)
                return NULL;
        mount_watch_free(watch->mounts);
        file_watch_free(watch->files);
        free(watch->path);
        free(watch);
        return NULL;
}
