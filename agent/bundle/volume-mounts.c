/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/volume-mounts.h"

#include "agent/bundle/anonymous-volumes.h"
#include "agent/bundle/environment.h"
#include "agent/bundle/image-volumes.h"
#include "agent/bundle/mount-list.h"
#include "agent/bundle/pod-paths.h"
#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <limits.h>

enum {
        POD_MOUNTS = 5, /* shared memory, three files, the termination message */
};

void mount_list_done(MountList *list) {
        for (size_t i = 0; i < list->n; i++) {
                free(list->items[i].destination);
                free(list->items[i].source);
        }
        free(list->items);
        *list = (MountList){ 0 };
}

/* readOnly, recursiveReadOnly and mountPropagation as options of mount(8). */
static const char *volume_mount_options(const Volume *volume, const VolumeMount *mount) {
        static const char *const options[N_MOUNT_PROPAGATIONS][3] = {
                [MOUNT_PROPAGATION_UNSET] = { "rbind,rprivate,rw", "rbind,rprivate,ro",
                                              "rbind,rprivate,rro" },
                [MOUNT_PROPAGATION_NONE] = { "rbind,rprivate,rw", "rbind,rprivate,ro",
                                             "rbind,rprivate,rro" },
                [MOUNT_PROPAGATION_HOST_TO_CONTAINER] = { "rbind,rslave,rw", "rbind,rslave,ro",
                                                          "rbind,rslave,rro" },
                [MOUNT_PROPAGATION_BIDIRECTIONAL] = { "rbind,rshared,rw", "rbind,rshared,ro",
                                                      "rbind,rshared,rro" },
        };
        if (volume->image)
                return "rbind,rprivate," IMAGE_VOLUME_OPTIONS;
        /* Volumes made of ConfigMaps, Secrets and fields of the pod are read-only for containers.
         */
        size_t kind =
                mount->read_only || volume_is_data(volume) ||
                (volume->csi && volume->csi->read_only) ||
                (volume->persistent_volume_claim && volume->persistent_volume_claim->read_only);

        /* Every supported kernel can make mounts recursively read-only (mount_setattr), because the
         * shim's own mounts also need this. */
        if (kind > 0 && mount->recursive_read_only > RECURSIVE_READ_ONLY_DISABLED)
                kind = 2;
        return options[mount->mount_propagation][kind];
}

const char *rootfs_propagation(const Container *container) {
        MountPropagation most = MOUNT_PROPAGATION_UNSET;

        for (size_t i = 0; i < container->volume_mounts.n; i++)
                most = MAX(most, container->volume_mounts.items[i].mount_propagation);
        if (most == MOUNT_PROPAGATION_BIDIRECTIONAL)
                return "rshared";
        return most == MOUNT_PROPAGATION_HOST_TO_CONTAINER ? "rslave" : NULL;
}

bool is_part_of_volume(const VolumeMount *mount) {
        return mount->sub_path || mount->sub_path_expr;
}

/* The shim binds a part of a volume into the bundle (subPath), or, in a user namespace, the whole
 * volume with mapped IDs. Image volumes are already mapped. */
static bool is_mounted_in_bundle(const RuntimeSpecInput *input, const VolumeMount *mount,
                                 const Volume *volume) {
        return is_part_of_volume(mount) || (input->users && !volume->image);
}

char *termination_log_path(const BundleConfig *config, const char *uid, const char *container,
                           unsigned attempt) {
        cleanup_free char *directory = container_state_dir(config, uid, container, attempt);

        return directory ? path_join(directory, "termination-log") : NULL;
}

/* Takes ownership of both strings. */
static int append_mount(MountList *list, char *destination, char *source, const char *options) {
        MountEntry *entry = &list->items[list->n++];

        *entry = (MountEntry){ .destination = destination, .source = source, .options = options };
        return destination && source ? 0 : -ENOMEM;
}

static char *volume_mount_source(const RuntimeSpecInput *input, const Volume *volume) {
        return volume->image ? image_volume_path(input, volume)
                             : volume_path(input->config, input->pod->metadata.uid, volume);
}

static int append_volume_mounts(const RuntimeSpecInput *input, MountList *list) {
        int r;

        for (size_t i = 0; i < input->container->volume_mounts.n; i++) {
                const VolumeMount *mount = &input->container->volume_mounts.items[i];
                const Volume *volume = pod_find_volume(&input->pod->spec, mount->name);

                if (!volume)
                        continue; /* validated by manifest/ */
                r = append_mount(list, path_clean(mount->mount_path),
                                 is_mounted_in_bundle(input, mount, volume)
                                         ? shim_mount_target(input, "subpaths", i)
                                         : volume_mount_source(input, volume),
                                 volume_mount_options(volume, mount));
                if (r < 0)
                        return r;
                if (volume_is_data(volume) && !is_part_of_volume(mount))
                        list->items[list->n - 1].data_volume = volume;
        }
        return 0;
}

/* ---- /dev/shm and the files of /etc ---- */

static const VolumeMount *mount_at(const Container *container, const char *path) {
        for (size_t i = 0; i < container->volume_mounts.n; i++)
                if (streq(container->volume_mounts.items[i].mount_path, path))
                        return &container->volume_mounts.items[i];
        return NULL;
}

/* A mount point cannot be created in a read-only volume. */
static bool is_hidden_by_mount(const RuntimeSpecInput *input, const char *directory) {
        const VolumeMount *mount = mount_at(input->container, directory);
        const Volume *volume = mount ? pod_find_volume(&input->pod->spec, mount->name) : NULL;

        return volume && (volume_is_data(volume) || volume->image);
}

/* /etc/hosts, /etc/hostname and /etc/resolv.conf: the pod's own copies, unless the pod mounts
 * something there itself. The kubelet's file (hosts) is always writable; those of container engines
 * are read-only if the root is. */
static int append_etc_file_mounts(const RuntimeSpecInput *input, MountList *list) {
        static const char *const files[] = { "/etc/hosts", "/etc/hostname", "/etc/resolv.conf" };
        bool read_only = input->container->security_context.read_only_root_filesystem;
        int r = 0;

        for (size_t i = 0; i < N_ELEMENTS(files); i++) {
                cleanup_free char *source =
                        pod_etc_file_path(input->config, input->pod->metadata.uid, files[i]);

                if (!source)
                        return -ENOMEM;
                if (access(source, F_OK) >= 0 && !mount_at(input->container, files[i]) &&
                    !is_hidden_by_mount(input, "/etc"))
                        r = append_mount(list, strdup(files[i]), TAKE_PTR(source),
                                         read_only && i > 0 ? "rbind,rprivate,ro"
                                                            : "rbind,rprivate,rw");
                if (r < 0)
                        return r;
        }
        return 0;
}

static int append_shared_memory(const RuntimeSpecInput *input, MountList *list) {
        static const char path[] = "/dev/shm";

        if (mount_at(input->container, path))
                return 0;
        return append_mount(list, strdup(path),
                            input->pod->spec.host_ipc
                                    ? strdup(path)
                                    : pod_shm_dir(input->config, input->pod->metadata.uid),
                            "rbind,rprivate,rw");
}

/* ---- the volumes of the image ---- */

/* Whether the pod or the runtime mounts something at the path. */
static int is_mount_point(const RuntimeSpecInput *input, const MountList *list, const char *path) {
        cleanup_free char *message = path_clean(strna(input->container->termination_message_path));

        if (!message)
                return -ENOMEM;
        for (size_t i = 0; i < list->n; i++)
                if (streq(list->items[i].destination, path))
                        return 1;
        return is_runtime_mount(path) || streq(message, path);
}

static int append_anonymous_volumes(const RuntimeSpecInput *input, MountList *list) {
        for (size_t i = 0; i < anonymous_volume_count(input); i++) {
                const char *path = input->image->volumes[i];
                int r = is_mount_point(input, list, path);

                if (r == 0)
                        r = append_mount(list, strdup(path), anonymous_volume_path(input, i),
                                         "rbind,rprivate,rw");
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- all mounts ---- */

static size_t path_depth(const char *path) {
        size_t n = 0;

        for (; *path; path++)
                n += *path == '/' && path[1] && path[1] != '/';
        return n;
}

/* The sort is stable, so mounts of the same depth keep their order. */
static void sort_by_depth(MountList *list) {
        for (size_t i = 1; i < list->n; i++)
                for (size_t j = i; j > 0 && path_depth(list->items[j - 1].destination) >
                                                    path_depth(list->items[j].destination);
                     j--) {
                        MountEntry entry = list->items[j];

                        list->items[j] = list->items[j - 1];
                        list->items[j - 1] = entry;
                }
}

int check_container_mounts(const Container *container, Error *reterr) {
        for (size_t i = 0; i < container->volume_mounts.n; i++) {
                const VolumeMount *mount = &container->volume_mounts.items[i];

                if (mount->mount_propagation == MOUNT_PROPAGATION_OTHER)
                        return error_setf(reterr, BUNDLE_CONFIG_ERROR,
                                          "invalid MountPropagation mode of the mount at %s: this "
                                          "version of Mainstay does not know it",
                                          mount->mount_path);
                if (mount->recursive_read_only == RECURSIVE_READ_ONLY_OTHER)
                        return error_setf(reterr, BUNDLE_CONFIG_ERROR,
                                          "unknown recursive read-only mode of the mount at %s: "
                                          "this version of Mainstay does not know it",
                                          mount->mount_path);
        }
        return 0;
}

int container_mounts(const RuntimeSpecInput *input, MountList *ret) {
        const Container *container = input->container;
        cleanup_with(mount_list_done) MountList list = { 0 };
        int r;

        list.items = calloc(container->volume_mounts.n + anonymous_volume_count(input) + POD_MOUNTS,
                            sizeof(*list.items));
        if (!list.items)
                return -ENOMEM;
        r = append_shared_memory(input, &list);
        if (r < 0)
                return r;
        r = append_etc_file_mounts(input, &list);
        if (r < 0)
                return r;
        r = append_volume_mounts(input, &list);
        if (r < 0)
                return r;
        r = append_anonymous_volumes(input, &list);
        if (r < 0)
                return r;
        sort_by_depth(&list);
        if (container->termination_message_path)
                r = append_mount(&list, path_clean(container->termination_message_path),
                                 termination_log_path(input->config, input->pod->metadata.uid,
                                                      container->name, input->attempt),
                                 "rbind,rprivate,rw");
        if (r < 0)
                return r;
        *ret = list;
        list = (MountList){ 0 };
        return 0;
}

static int expand_sub_path(const VolumeMount *mount, const VariableSet *variables, char **ret,
                           Error *reterr) {
        cleanup_free char *path = NULL, *missing = NULL;
        int r = expand_variables(mount->sub_path_expr, variables, &path, &missing);

        if (r == -E2BIG || (r >= 0 && strlen(path) >= PATH_MAX))
                return error_setf(reterr, BUNDLE_CONFIG_ERROR,
                                  "subPathExpr '%s' is longer than %d bytes when its variables are "
                                  "expanded",
                                  mount->sub_path_expr, PATH_MAX - 1);
        if (r < 0)
                return r;
        if (missing)
                return error_setf(reterr, BUNDLE_CONFIG_ERROR,
                                  "missing value for \"%s\" in subPathExpr '%s'", missing,
                                  mount->sub_path_expr);
        r = check_descending_path(path, reterr);
        if (r < 0)
                return error_prefixf(reterr, r == -EINVAL ? -BUNDLE_CONFIG_ERROR : r,
                                     "subPathExpr '%s'", mount->sub_path_expr);
        *ret = TAKE_PTR(path);
        return 0;
}

static int put_sub_path_mount(FILE *out, const RuntimeSpecInput *input, size_t i,
                              const VariableSet *variables, Error *reterr) {
        const VolumeMount *mount = &input->container->volume_mounts.items[i];
        const Volume *volume = pod_find_volume(&input->pod->spec, mount->name);
        cleanup_free char *expanded = NULL, *target = shim_mount_target(input, "subpaths", i);
        cleanup_free char *root = volume ? volume_mount_source(input, volume) : NULL;
        int r = 0;

        if (!root || !target)
                return -ENOMEM;
        if (mount->sub_path_expr)
                r = expand_sub_path(mount, variables, &expanded, reterr);
        if (r < 0)
                return r;
        if (is_part_of_volume(mount))
                fstab_put_beneath(out, root, expanded ? expanded : mount->sub_path, target,
                                  volume->name, volume->image ? NULL : input->users);
        else
                fstab_put_whole(out, root, target, volume->name, input->users);
        return 0;
}

static bool is_nth_mounted_in_bundle(const RuntimeSpecInput *input, size_t i) {
        const VolumeMount *mount = &input->container->volume_mounts.items[i];
        const Volume *volume = pod_find_volume(&input->pod->spec, mount->name);

        return volume && is_mounted_in_bundle(input, mount, volume);
}

/* The variables, if a subPathExpr refers to them. */
static int sub_path_variables(const RuntimeSpecInput *input, VariableSet *ret, Error *reterr) {
        for (size_t i = 0; i < input->container->volume_mounts.n; i++)
                if (is_nth_mounted_in_bundle(input, i) &&
                    input->container->volume_mounts.items[i].sub_path_expr)
                        return container_variables(input->config, input->pod, input->container, ret,
                                                   reterr);
        return 0;
}

static int put_sub_path_mounts(FILE *out, const RuntimeSpecInput *input, Error *reterr) {
        cleanup_with(variable_set_done) VariableSet variables = VARIABLE_SET_NULL;
        int r = sub_path_variables(input, &variables, reterr);

        for (size_t i = 0; r >= 0 && i < input->container->volume_mounts.n; i++)
                if (is_nth_mounted_in_bundle(input, i))
                        r = put_sub_path_mount(out, input, i, &variables, reterr);
        return r;
}

int sub_paths_fstab(const RuntimeSpecInput *input, char **ret, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        int r;

        if (!out)
                return -ENOMEM;
        r = put_sub_path_mounts(out, input, reterr);
        if (fclose(out) != 0 && r >= 0)
                r = -ENOMEM;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(text);
        return 0;
}
