/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/mount-list.h"

#include "agent/bundle/cgroup-resources.h"
#include "agent/bundle/claim-volumes.h"
#include "agent/bundle/csi-volumes.h"
#include "agent/bundle/huge-pages.h"
#include "agent/bundle/pod-paths.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"

#include <inttypes.h>

/* fstab(5): blanks in a field are written in octal. No field here starts with '#'. */
static void put_fstab_text(FILE *out, const char *text) {
        for (const char *c = text; *c; c++)
                if (*c == ' ' || *c == '\t' || *c == '\n' || *c == '\\')
                        (void) fprintf(out, "\\%03o", (unsigned) (unsigned char) *c);
                else
                        (void) fputc(*c, out);
}

static void put_fstab_field(FILE *out, const char *text) {
        put_fstab_text(out, text);
        (void) fputc(' ', out);
}

void fstab_put_users(FILE *out, const char *users) {
        if (users)
                (void) fprintf(out, ",x-mainstay.idmap=%s", users);
}

void fstab_put_context(FILE *out, const char *label) {
        if (!label)
                return;
        (void) fputs(",context=\"", out);
        put_fstab_text(out, label);
        (void) fputc('"', out);
}

void fstab_put_label(FILE *out, const char *path, const char *volume, const char *label) {
        put_fstab_field(out, path);
        (void) fputs("none none x-mainstay.label=\"", out);
        put_fstab_text(out, label);
        (void) fputc('"', out);
        if (volume)
                (void) fprintf(out, ",x-mainstay.volume=%s", volume);
        (void) fprintf(out, " 0 0\n");
}

void fstab_put_beneath(FILE *out, const char *root, const char *path, const char *target,
                       const char *volume, const char *users) {
        cleanup_free char *source = path_join(root, path);

        if (!source)
                return; /* ferror() reports it too */
        put_fstab_field(out, source);
        put_fstab_field(out, target);
        (void) fprintf(out, "none rbind,x-mainstay.volume=%s,x-mainstay.beneath=%s", volume, root);
        fstab_put_users(out, users);
        (void) fprintf(out, " 0 0\n");
}

void fstab_put_whole(FILE *out, const char *root, const char *target, const char *volume,
                     const char *users) {
        put_fstab_field(out, root);
        put_fstab_field(out, target);
        (void) fprintf(out, "none rbind,x-mainstay.volume=%s", volume);
        fstab_put_users(out, users);
        (void) fprintf(out, " 0 0\n");
}

void fstab_put_copy(FILE *out, const char *path, const char *directory, const char *rootfs) {
        put_fstab_field(out, path);
        put_fstab_field(out, directory);
        (void) fprintf(out, "none x-mainstay.copy=%s 0 0\n", rootfs);
}

void fstab_put_mount_point(FILE *out, const char *source, const char *root, const char *path,
                           const char *volume) {
        cleanup_free char *target = path_join(root, path);

        if (!target)
                return; /* ferror() reports it too */
        put_fstab_field(out, source);
        put_fstab_field(out, target);
        (void) fprintf(out, "none x-mainstay.volume=%s,x-mainstay.mountpoint=%s 0 0\n", volume,
                       root);
}

char *shim_mount_target(const RuntimeSpecInput *input, const char *kind, size_t number) {
        cleanup_free char *bundle = container_bundle_dir(input->config, input->pod->metadata.uid,
                                                         input->container->name, input->attempt);

        return bundle ? text_format("%s/%s/%zu", bundle, kind, number) : NULL;
}

void fstab_put_host_path(FILE *out, const char *path, const char *target, const char *volume,
                         const char *type) {
        put_fstab_field(out, path);
        put_fstab_field(out, target);
        (void) fprintf(out, "none rbind,x-mainstay.volume=%s,x-mainstay.hostpath=%s 0 0\n", volume,
                       type);
}

static void put_host_path_mount(FILE *out, const Volume *volume, const HostPathVolumeSource *source,
                                const char *target) {
        fstab_put_host_path(out, source->path, target, volume->name,
                            strna(host_path_type_names[source->type]));
}

/* As in the kubelet: the minimum of the limits of all pods, this pod and the volume; 0: unknown.
 * The kernel does not limit a tmpfs of size 0. */
static int64_t memory_volume_size(const BundleConfig *config, const PodSpec *spec,
                                  const Volume *volume) {
        const int64_t limits[] = { config->allocatable.memory, pod_memory_limit(spec),
                                   volume->empty_dir->size_limit.value };
        int64_t size = 0;

        for (size_t i = 0; i < N_ELEMENTS(limits); i++)
                if (limits[i] > 0 && (size == 0 || limits[i] < size))
                        size = limits[i];
        return size;
}

static void put_volume_size(FILE *out, int64_t size) {
        if (size > 0)
                (void) fprintf(out, ",size=%" PRId64, size);
}

/* As in the kubelet, the tmpfs has the sticky bit, which is the default for one, and is never
 * written to swap space. */
static void put_memory_mount(FILE *out, const BundleConfig *config, const PodSpec *spec,
                             const Volume *volume, const char *target) {
        const OptionalInt *fs_group = &spec->security_context.fs_group;

        put_fstab_field(out, volume->name);
        put_fstab_field(out, target);
        (void) fprintf(out, "tmpfs mode=%s,noswap,x-mainstay.volume=%s",
                       fs_group->is_set ? "03777" : "01777", volume->name);
        if (fs_group->is_set)
                (void) fprintf(out, ",gid=%" PRId64, fs_group->value);
        put_volume_size(out, memory_volume_size(config, spec, volume));
        (void) fprintf(out, " 0 0\n");
}

/* hugetlbfs ignores the set-group-ID bit in its mode option. */
static void put_huge_pages_mount(FILE *out, const PodSpec *spec, const Volume *volume,
                                 const char *target) {
        const OptionalInt *fs_group = &spec->security_context.fs_group;
        const EmptyDirVolumeSource *source = volume->empty_dir;

        put_fstab_field(out, volume->name);
        put_fstab_field(out, target);
        (void) fprintf(out, "hugetlbfs %s,mode=0777,x-mainstay.volume=%s",
                       strna(huge_pages_mount_option(spec, source->medium)), volume->name);
        if (fs_group->is_set)
                (void) fprintf(out, ",gid=%" PRId64 ",x-mainstay.mode=02777", fs_group->value);
        put_volume_size(out, source->size_limit.value);
        (void) fprintf(out, " 0 0\n");
}

/* Applies fsGroup to files that other pods have written. */
static void put_fs_group_line(FILE *out, const PodSecurityContext *context, const Volume *volume,
                              const char *path) {
        bool is_once = context->fs_group_change_policy == FS_GROUP_CHANGE_ON_ROOT_MISMATCH;

        put_fstab_field(out, path);
        (void) fprintf(out, "none none x-mainstay.group=%" PRId64 "%s,x-mainstay.volume=%s 0 0\n",
                       context->fs_group.value, is_once ? ":root-mismatch" : "", volume->name);
}

/* mount.nfs resolves contradictions to "ro": it uses the last option. */
static void put_nfs_mount(FILE *out, const Volume *volume, const NfsExport *export,
                          const char *target) {
        const char *server = export->source->server;
        bool is_ipv6 = strchr(server, ':') && server[0] != '[';
        cleanup_free char *source = text_format("%s%s%s:%s", is_ipv6 ? "[" : "", server,
                                                is_ipv6 ? "]" : "", export->source->path);
        const char *separator = "";

        if (!source)
                return; /* ferror() reports it too */
        put_fstab_field(out, source);
        put_fstab_field(out, target);
        (void) fprintf(out, "nfs x-mainstay.volume=%s,x-mainstay.nfs=\"", volume->name);
        strv_foreach(option, export->mount_options) {
                (void) fprintf(out, "%s%s", separator, *option);
                separator = ",";
        }
        (void) fprintf(out, "%s\" 0 0\n", !export->read_only ? "" : separator[0] ? ",ro" : "ro");
}

/* The driver has mounted it, and the shim binds it like a directory of the node. */
static void put_csi_mount(FILE *out, const BundleConfig *config, const Pod *pod,
                          const Volume *volume, const CsiVolume *csi, const char *target) {
        cleanup_free char *path = csi_volume_path(config, pod, csi);
        const HostPathVolumeSource source = { .path = path, .type = HOST_PATH_DIRECTORY };
        bool driver_sets_group =
                config->csi_sets_group && config->csi_sets_group(csi->driver, config->csi_userdata);

        if (!path)
                return;
        if (pod->spec.security_context.fs_group.is_set && csi_volume_has_group(csi) &&
            !driver_sets_group)
                put_fs_group_line(out, &pod->spec.security_context, volume, path);
        put_host_path_mount(out, volume, &source, target);
}

/* The claims can be resolved, because check_pod_volumes() has already done so. */
static void put_claim_mount(FILE *out, const BundleConfig *config, const Pod *pod,
                            const Volume *volume, const char *target) {
        cleanup_with(csi_volume_done) CsiVolume csi = { 0 };
        HostPathVolumeSource source;
        NfsExport export;

        if (find_csi_volume(config, pod, volume, &csi, NULL) > 0) {
                if (csi.is_block)
                        return;
                put_csi_mount(out, config, pod, volume, &csi, target);
                return;
        }
        if (find_nfs_export(config, pod, volume, &export, NULL) > 0) {
                put_nfs_mount(out, volume, &export, target);
                return;
        }
        if (find_claimed_directory(config, pod, volume, &source, NULL) < 0 ||
            is_block_volume(config, pod, volume))
                return;
        if (pod->spec.security_context.fs_group.is_set &&
            is_local_volume_writable(config, pod, volume))
                put_fs_group_line(out, &pod->spec.security_context, volume, source.path);
        put_host_path_mount(out, volume, &source, target);
}

static void put_pod_volume_mounts(FILE *out, const BundleConfig *config, const Pod *pod) {
        for (size_t i = 0; i < pod->spec.volumes.n; i++) {
                const Volume *volume = &pod->spec.volumes.items[i];
                cleanup_free char *target = volume_path(config, pod->metadata.uid, volume);

                if (!target)
                        continue; /* ferror() also reports a memory stream that is out of memory */
                if (volume->host_path)
                        put_host_path_mount(out, volume, volume->host_path, target);
                else if (volume->nfs || volume->csi || volume->persistent_volume_claim ||
                         volume->ephemeral)
                        put_claim_mount(out, config, pod, volume, target);
                else if (volume->empty_dir && volume->empty_dir->medium == MEDIUM_MEMORY)
                        put_memory_mount(out, config, &pod->spec, volume, target);
                else if (volume->empty_dir && volume->empty_dir->medium >= MEDIUM_HUGE_PAGES)
                        put_huge_pages_mount(out, &pod->spec, volume, target);
        }
}

char *pod_fstab(const BundleConfig *config, const Pod *pod) {
        cleanup_free char *shm = pod_shm_dir(config, pod->metadata.uid);
        char *text = NULL;
        size_t length;
        FILE *out;

        if (!shm)
                return NULL;
        out = open_memstream(&text, &length);
        if (!out)
                return NULL;
        if (!pod->spec.host_ipc) {
                put_fstab_field(out, "shm");
                put_fstab_field(out, shm);
                (void) fprintf(out, "tmpfs nosuid,nodev,noexec,mode=1777,size=65536k 0 0\n");
        }
        put_pod_volume_mounts(out, config, pod);
        return memstream_finish(out, &text);
}

void fstab_put_layers(FILE *out, const Image *image, const char *directory, const char *users) {
        for (size_t i = 0; users && image->layers && image->layers[i]; i++) {
                (void) fprintf(out, "%s %s/%zu none bind,private", image->layers[i], directory, i);
                fstab_put_users(out, users);
                (void) fprintf(out, " 0 0\n");
        }
}

void fstab_put_lower(FILE *out, const Image *image, const char *directory, const char *users) {
        for (size_t i = 0; image->layers && image->layers[i]; i++)
                if (users)
                        (void) fprintf(out, "%s%s/%zu", i > 0 ? ":" : "", directory, i);
                else
                        (void) fprintf(out, "%s%s", i > 0 ? ":" : "", image->layers[i]);
}

char *container_fstab(const Image *image, const char *bundle_dir, const char *state_dir,
                      const char *users, const char *label) {
        cleanup_free char *layers = path_join(bundle_dir, "layers");
        char *text = NULL;
        size_t length;
        FILE *out = layers ? open_memstream(&text, &length) : NULL;

        if (!out)
                return NULL;
        fstab_put_layers(out, image, layers, users);
        (void) fprintf(out, "overlay %s/rootfs overlay lowerdir=", bundle_dir);
        fstab_put_lower(out, image, layers, users);
        /* The data of an attempt is worthless after a power failure, so nothing needs to wait for
         * the disk. Without 'volatile', fsync() in a container, and the unmount at the end of each
         * attempt, would wait for all dirty pages of the filesystem. */
        (void) fprintf(out, ",upperdir=%s/upper,workdir=%s/work,volatile", state_dir, state_dir);
        fstab_put_context(out, label);
        (void) fprintf(out, " 0 0\n");
        return memstream_finish(out, &text);
}
