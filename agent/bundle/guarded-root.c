/* SPDX-License-Identifier: Apache-2.0 */
/* Compares paths after the links of the image have been resolved. A container that can write to a
 * volume controls the content below it, so it matters whether a volume covers the devices of the
 * container, and whether another mount or the working directory is below a volume. */

#include "agent/bundle/guarded-root.h"

#include "agent/bundle/anonymous-volumes.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/layer-view.h"
#include "common/strv.h"

#include <fcntl.h>

/* Whether a directory of a layer is reached through a link. */
static bool passes_link_of_image(const LayerDirectories *layers, const char *path) {
        for (size_t i = 0; i < layers->n; i++) {
                cleanup_close int fd =
                        *path ? open_no_symlinks(layers->fds[i], path, O_PATH, 0) : -ENOENT;

                /* A path with ".." does not lead where its text suggests if a link precedes it. */
                if (fd == -ELOOP || fd == -EXDEV)
                        return true;
        }
        return false;
}

/* Adds the path without links, "." and repeated slashes; "" is the root. 0 or -errno. */
static int add_resolved(const LayerDirectories *layers, const char *path, char ***ret) {
        const LayerView view = { .layers = layers->fds, .n_layers = layers->n };
        char resolved[PATH_MAX];
        int r = layer_view_resolve_file(&view, path + strspn(path, "/"), resolved);

        return r < 0 ? r : strv_append(ret, resolved);
}

/* The rest of 'path' below 'directory', without leading slashes; NULL if it is not below. */
static const char *find_rest(const char *path, const char *directory) {
        size_t length = strlen(directory);

        if (strncmp(path, directory, length) != 0 ||
            (length > 0 && path[length] != '/' && path[length] != '\0'))
                return NULL;
        return path + length + strspn(path + length, "/");
}

static bool is_below(const char *path, const char *directory) {
        const char *rest = find_rest(path, directory);

        return rest && *rest;
}

static int resolve_volumes(const RuntimeSpecInput *input, const LayerDirectories *layers,
                           char ***ret) {
        const Container *container = input->container;
        size_t n_anonymous = anonymous_volume_count(input);
        int r = 0;

        for (size_t i = 0; r >= 0 && i < container->volume_mounts.n; i++)
                r = add_resolved(layers, container->volume_mounts.items[i].mount_path, ret);
        for (size_t i = 0; r >= 0 && i < n_anonymous; i++)
                r = add_resolved(layers, input->image->volumes[i], ret);
        return r;
}

static int resolve_destinations(const json_t *mounts, const LayerDirectories *layers, char ***ret) {
        const json_t *mount;
        size_t i;
        int r = 0;

        json_array_foreach(mounts, i, mount) {
                const char *path = json_text(mount, "destination");

                r = path ? add_resolved(layers, path, ret) : -EBADMSG;
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Links in a volume redirect the paths below it. */
static bool volume_is_followed(const char *volume, char **followed) {
        if (find_rest(volume, "dev"))
                return true;
        strv_foreach(path, followed)
                if (is_below(*path, volume))
                        return true;
        return false;
}

bool root_needs_guard(const RuntimeSpecInput *input, const json_t *mounts, const char *directory) {
        cleanup_with(layer_directories_done) LayerDirectories layers = { 0 };
        cleanup_strv char **volumes = NULL, **followed = NULL;

        if (input->container->volume_mounts.n == 0 && anonymous_volume_count(input) == 0 &&
            !directory[strspn(directory, "/")])
                return false;
        if (layer_directories_open(input->image->layers, &layers) < 0 ||
            passes_link_of_image(&layers, directory + strspn(directory, "/")) ||
            resolve_volumes(input, &layers, &volumes) < 0)
                return true;
        if (volumes && (resolve_destinations(mounts, &layers, &followed) < 0 ||
                        strv_extend(&followed, volumes) < 0 ||
                        add_resolved(&layers, directory, &followed) < 0))
                return true;
        strv_foreach(volume, volumes)
                if (volume_is_followed(*volume, followed))
                        return true;
        return false;
}
