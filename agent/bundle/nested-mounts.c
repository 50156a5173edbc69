/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/nested-mounts.h"

#include "agent/bundle/mount-list.h"
#include "agent/bundle/pod-paths.h"
#include "agent/bundle/volume-mounts.h"
#include "agent/model/containers.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"

static int append_first_name(char ***names, const char *path) {
        cleanup_free char *name = strndup(path, strcspn(path, "/"));

        if (!name)
                return -ENOMEM;
        return strv_contains(*names, name) ? 0 : strv_append(names, name);
}

/* Names in one mount of the volume, which is at 'outer'. */
static int append_names_below(char ***names, const Container *container, const char *outer) {
        for (size_t i = 0; i < container->volume_mounts.n; i++) {
                cleanup_free char *path = path_clean(container->volume_mounts.items[i].mount_path);
                const char *rest = path ? path_below(path, outer) : NULL;
                int r = path ? 0 : -ENOMEM;

                if (rest)
                        r = append_first_name(names, rest);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int append_names_of_container(char ***names, const Container *container,
                                     const Volume *volume) {
        for (size_t i = 0; i < container->volume_mounts.n; i++) {
                const VolumeMount *mount = &container->volume_mounts.items[i];
                cleanup_free char *outer = NULL;
                int r;

                if (!streq(mount->name, volume->name) || is_part_of_volume(mount))
                        continue;
                outer = path_clean(mount->mount_path);
                r = outer ? append_names_below(names, container, outer) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        return 0;
}

int nested_mount_names(const Pod *pod, const Volume *volume, char ***ret) {
        cleanup_strv char **names = NULL;
        const Container *container;

        pod_foreach_container(container, &pod->spec) {
                int r = append_names_of_container(&names, container, volume);

                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(names);
        return 0;
}

/* The innermost mount that contains the path; NULL: the root file system. */
static const MountEntry *find_outer_mount(const MountList *list, const char *path) {
        const MountEntry *outer = NULL;
        size_t longest = 0;

        for (size_t i = 0; i < list->n; i++) {
                size_t length = strlen(list->items[i].destination);

                if (path_below(path, list->items[i].destination) && length >= longest) {
                        longest = length;
                        outer = &list->items[i];
                }
        }
        return outer;
}

static int put_mount_point(FILE *out, const RuntimeSpecInput *input, const MountList *list,
                           const MountEntry *inner) {
        const MountEntry *outer = find_outer_mount(list, inner->destination);
        const Volume *volume = outer ? outer->data_volume : NULL;
        cleanup_free char *root = NULL;

        if (!volume)
                return 0;
        root = volume_path(input->config, input->pod->metadata.uid, volume);
        if (!root)
                return -ENOMEM;
        fstab_put_mount_point(out, inner->source, root,
                              path_below(inner->destination, outer->destination), volume->name);
        return 0;
}

static int put_mount_points(FILE *out, const RuntimeSpecInput *input) {
        cleanup_with(mount_list_done) MountList list = { 0 };
        int r = container_mounts(input, &list);

        for (size_t i = 0; r >= 0 && i < list.n; i++)
                r = put_mount_point(out, input, &list, &list.items[i]);
        return r;
}

int nested_mounts_fstab(const RuntimeSpecInput *input, char **ret) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        int r = 0;

        if (!out)
                return -ENOMEM;
        if (!input->config->has_old_shim)
                r = put_mount_points(out, input);
        *ret = memstream_finish(out, &text);
        if (*ret && r < 0)
                free(TAKE_PTR(*ret));
        return *ret ? 0 : -ENOMEM;
}
