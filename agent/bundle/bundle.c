/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the results of the other files of this module: the directories, files and cgroups of a pod
 * and of each attempt of a container. */

#include "agent/bundle/bundle.h"

#include "agent/bundle/anonymous-volumes.h"
#include "agent/bundle/cdi-edits.h"
#include "agent/bundle/cgroup-resources.h"
#include "agent/bundle/cgroups.h"
#include "agent/bundle/claim-volumes.h"
#include "agent/bundle/device-edits.h"
#include "agent/bundle/image-volumes.h"
#include "agent/bundle/mount-list.h"
#include "agent/bundle/nested-mounts.h"
#include "agent/bundle/pod-dns.h"
#include "agent/bundle/pod-paths.h"
#include "agent/bundle/pod-preflight.h"
#include "agent/bundle/pod-user-namespace.h"
#include "agent/bundle/resolved-security.h"
#include "agent/bundle/runtime-spec.h"
#include "agent/bundle/selinux-relabel.h"
#include "agent/bundle/volume-mounts.h"
#include "agent/bundle/volumes.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

static int make_bundle_directory(const char *path, mode_t mode, Error *reterr) {
        int r;

        if (!path)
                return -ENOMEM;
        r = mkdir_parents_at(AT_FDCWD, path, mode);
        if (r < 0)
                return error_setf(reterr, -r, "cannot make the directory %s: %s", path,
                                  strerror(-r));
        return 0;
}

/* Containers may write in the log directory: no link in it is followed. */
static int make_log_directory(const char *path, Error *reterr) {
        int r = path ? make_directory_no_symlinks(path, 0755) : -ENOMEM;

        if (r == -ELOOP)
                return error_setf(reterr, ELOOP,
                                  "cannot make the directory %s: a part of it is a symbolic link",
                                  path);
        return r < 0 ? error_setf(reterr, -r, "cannot make the directory %s: %s", path,
                                  strerror(-r))
                     : 0;
}

static int write_bundle_file(const char *directory, const char *name, const char *text, mode_t mode,
                             Error *reterr) {
        cleanup_close int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : write_file_atomic_at(fd, name, text, strlen(text), mode);

        if (r < 0)
                return error_setf(reterr, -r, "cannot write %s/%s: %s", directory, name,
                                  strerror(-r));
        return 0;
}

/* An empty file as a mount point. An existing file may already be mounted over. */
static int make_bundle_file(const char *directory, const char *name, Error *reterr) {
        cleanup_free char *path = path_join(directory, name);
        cleanup_close int fd = -EBADF;

        if (!path)
                return -ENOMEM;
        fd = open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return error_setf(reterr, errno, "cannot make %s: %s", path, strerror(errno));
        return 0;
}

static int prepare_pod_cgroup(const BundleConfig *config, const Pod *pod, const char *run_dir,
                              Error *reterr) {
        CgroupValue values[POD_CGROUP_VALUES_MAX];
        QosClass qos = pod_qos_class(&pod->spec);
        cleanup_free char *path = cgroup_of_new_pod(config, qos, pod->metadata.uid);
        size_t n;
        int r;

        if (!path)
                return -ENOMEM;
        /* The path is recorded so that a later agent that has no other data about the pod can
         * remove the cgroup. */
        r = write_bundle_file(run_dir, "cgroup", path, 0600, reterr);
        if (r < 0)
                return r;
        r = cgroup_create(path, reterr);
        if (r < 0)
                return r;
        n = pod_cgroup_all_values(config, pod, path, values);
        for (size_t i = 0; i < n; i++) {
                r = cgroup_write(path, values[i].controller, values[i].file, values[i].value,
                                 reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* fsGroup, as the kubelet applies it: the group may write, and new files inherit the group. An
 * emptyDir starts empty, so only its top directory changes. */
static int set_empty_dir_fs_group(const char *path, const OptionalInt *fs_group) {
        if (!fs_group->is_set)
                return chmod(path, 0777);
        if (chown(path, (uid_t) -1, (gid_t) fs_group->value) < 0)
                return -1;
        return chmod(path, 02777);
}

/* The emptyDir is created writable for all users. Later permission changes by containers are kept.
 */
static int make_empty_dir(const char *path, const OptionalInt *fs_group, Error *reterr) {
        cleanup_free char *unfinished = NULL;
        int r;

        if (access(path, F_OK) >= 0)
                return 0;
        unfinished = text_format("%s.new", path);
        if (!unfinished)
                return -ENOMEM;
        r = make_bundle_directory(unfinished, 0711, reterr);
        if (r < 0)
                return r;
        if (set_empty_dir_fs_group(unfinished, fs_group) < 0 || rename(unfinished, path) < 0)
                return error_setf(reterr, errno, "cannot make %s writable for all users: %s", path,
                                  strerror(errno));
        return 0;
}

static int prepare_pod_volumes(const BundleConfig *config, const Pod *pod, Error *reterr) {
        for (size_t i = 0; i < pod->spec.volumes.n; i++) {
                const Volume *volume = &pod->spec.volumes.items[i];
                cleanup_free char *path = NULL;
                int r;

                if (!volume->empty_dir || volume->empty_dir->medium != MEDIUM_UNSET)
                        continue; /* the shim mounts it */
                path = volume_path(config, pod->metadata.uid, volume);
                r = path ? make_empty_dir(path, &pod->spec.security_context.fs_group, reterr)
                         : -ENOMEM;
                if (r < 0)
                        return r;
        }
        return write_pod_object_volumes(config, pod, /* rewrite= */ true, reterr);
}

int bundle_update_volumes(const BundleConfig *config, const Pod *pod, Error *reterr) {
        return write_pod_object_volumes(config, pod, /* rewrite= */ false, reterr);
}

/* The content of a file of the node, "" if it does not exist. */
static int read_node_file(const char *path, char **ret, Error *reterr) {
        int r = path[0] ? read_file_at(AT_FDCWD, path, ETC_FILE_MAX, ret, NULL) : -ENOENT;

        if (r == -ENOENT) {
                *ret = strdup("");
                return *ret ? 0 : -ENOMEM;
        }
        return r < 0 ? error_setf(reterr, -r, "cannot read %s: %s", path, strerror(-r)) : 0;
}

/* Files that the pod's root user may write are owned by it. */
static int set_file_owner(const char *directory, const char *name, unsigned id, Error *reterr) {
        cleanup_free char *path = path_join(directory, name);

        if (!path)
                return -ENOMEM;
        if (chown(path, id, id) < 0)
                return error_setf(reterr, errno, "cannot change the owner of %s to %u: %s", path,
                                  id, strerror(errno));
        return 0;
}

/* Earlier versions look for the file in the run directory. */
static int link_pod_file(const BundleConfig *config, const char *uid, const char *name,
                         const char *etc_dir, Error *reterr) {
        cleanup_free char *run_dir = pod_run_dir(config, uid), *target = path_join(etc_dir, name);
        cleanup_close int fd = -EBADF;

        if (!run_dir || !target)
                return -ENOMEM;
        fd = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 &&
            (symlinkat(target, fd, name) >= 0 ||
             (errno == EEXIST && unlinkat(fd, name, 0) >= 0 && symlinkat(target, fd, name) >= 0)))
                return 0;
        return error_setf(reterr, errno, "cannot make the link %s/%s: %s", run_dir, name,
                          strerror(errno));
}

static int write_pod_file(const BundleConfig *config, const Pod *pod, const char *name,
                          const char *text, Error *reterr) {
        cleanup_free char *etc_dir = pod_etc_dir(config, pod->metadata.uid);
        unsigned first_id = 0;
        int r = text ? make_bundle_directory(etc_dir, 0711, reterr) : -ENOMEM;

        if (r < 0)
                return r;
        r = write_bundle_file(etc_dir, name, text, 0644, reterr);
        if (r < 0)
                return r;
        r = link_pod_file(config, pod->metadata.uid, name, etc_dir, reterr);
        if (r < 0)
                return r;
        r = userns_load_ids(config, pod, &first_id);
        if (r < 0 || first_id == 0)
                return r;
        return set_file_owner(etc_dir, name, first_id, reterr);
}

int bundle_write_hosts(const BundleConfig *config, const Pod *pod, const char *const *addresses,
                       size_t n_addresses, Error *reterr) {
        cleanup_free char *node_hosts = NULL, *text = NULL;
        int r = n_addresses == 0 ? read_node_file("/etc/hosts", &node_hosts, reterr) : 0;

        if (r < 0)
                return r;
        text = compose_hosts_file(config, pod, addresses, n_addresses, node_hosts);
        return write_pod_file(config, pod, "hosts", text, reterr);
}

/* The stub resolver of systemd-resolved listens on the node's loopback interface, which a pod with
 * its own network cannot reach. The file with the upstream servers is next to it. */
static int read_node_resolv_conf(const BundleConfig *config, const Pod *pod, char **ret,
                                 Error *reterr) {
        static const char real[] = "/run/systemd/resolve/resolv.conf";
        const char *path = config->resolv_conf ? config->resolv_conf : "/etc/resolv.conf";
        cleanup_free char *text = NULL;
        int r = read_node_file(path, &text, reterr);

        if (r < 0)
                return r;
        if (!pod->spec.host_network && streq(path, "/etc/resolv.conf") &&
            strstr(text, "nameserver 127.0.0.53") && access(real, R_OK) >= 0)
                return read_node_file(real, ret, reterr);
        *ret = TAKE_PTR(text);
        return 0;
}

static int write_resolv_conf(const BundleConfig *config, const Pod *pod, Error *reterr) {
        cleanup_free char *node = NULL, *text = NULL;
        int r = read_node_resolv_conf(config, pod, &node, reterr);

        if (r < 0)
                return r;
        text = pod_resolv_conf(config, pod, node);
        return write_pod_file(config, pod, "resolv.conf", text, reterr);
}

static int write_hostname(const BundleConfig *config, const Pod *pod, Error *reterr) {
        cleanup_free char *name = NULL, *text = NULL;
        int r = pod_hostname(config, pod, &name, reterr);

        if (r < 0)
                return r;
        text = text_format("%s\n", name);
        return write_pod_file(config, pod, "hostname", text, reterr);
}

static int prepare_etc_files(const BundleConfig *config, const Pod *pod, Error *reterr) {
        int r = write_resolv_conf(config, pod, reterr);

        if (r < 0)
                return r;
        r = write_hostname(config, pod, reterr);
        if (r < 0 || !pod->spec.host_network)
                return r;
        return bundle_write_hosts(config, pod, NULL, 0, reterr);
}

/* The shim reads the first ID from the file "user-namespace" and replaces the file with the
 * namespace. The run directory must be searchable for the pod's root user, so "volumes" is closed:
 * other users must not read Secrets in it. */
static int prepare_pod_user_ids(const BundleConfig *config, const Pod *pod, const char *run_dir,
                                Error *reterr) {
        cleanup_free char *volumes = path_join(run_dir, "volumes");
        unsigned first_id = 0;
        char text[24];
        int r = make_bundle_directory(volumes, 0700, reterr);

        if (r < 0)
                return r;
        r = userns_allocate_ids(config, pod, &first_id, reterr);
        if (r < 0)
                return r;
        (void) snprintf(text, sizeof(text), "%u\n", first_id);
        return write_bundle_file(run_dir, "user-namespace", text, 0600, reterr);
}

int bundle_prepare_pod(const BundleConfig *config, const Pod *pod, Error *reterr) {
        cleanup_free char *run_dir = pod_run_dir(config, pod->metadata.uid);
        cleanup_free char *state_dir = pod_state_dir(config, pod->metadata.uid);
        cleanup_free char *log_dir = pod_log_dir(config, pod);
        cleanup_free char *sysctls = pod_sysctls(&pod->spec);
        int r;

        if (!sysctls)
                return -ENOMEM;
        r = bundle_check_node(config, &pod->spec, reterr);
        if (r < 0)
                return r;
        r = make_bundle_directory(run_dir, 0700, reterr);
        if (r < 0)
                return r;
        r = make_bundle_directory(state_dir, 0711, reterr);
        if (r < 0)
                return r;
        r = make_log_directory(log_dir, reterr);
        if (r < 0)
                return r;
        r = selinux_prepare_pod_level(config, pod, reterr);
        if (r < 0)
                return r;
        if (pod_has_own_users(&pod->spec))
                r = prepare_pod_user_ids(config, pod, run_dir, reterr);
        if (r < 0)
                return r;
        r = prepare_pod_cgroup(config, pod, run_dir, reterr);
        if (r < 0)
                return r;
        r = prepare_etc_files(config, pod, reterr);
        if (r < 0)
                return r;
        if (sysctls[0])
                r = write_bundle_file(run_dir, "sysctls", sysctls, 0600, reterr);
        if (r < 0 || !pod->spec.share_process_namespace)
                return r;
        return make_bundle_file(run_dir, "pid-namespace", reterr);
}

int bundle_prepare_volumes(const BundleConfig *config, const Pod *pod, Error *reterr) {
        cleanup_free char *run_dir = pod_run_dir(config, pod->metadata.uid);
        cleanup_free char *fstab = NULL;
        int r = run_dir ? check_pod_volumes(config, pod, reterr) : -ENOMEM;

        if (r < 0)
                return r;
        r = prepare_pod_volumes(config, pod, reterr);
        if (r < 0)
                return r;
        fstab = pod_fstab(config, pod);
        return fstab ? write_bundle_file(run_dir, "fstab", fstab, 0600, reterr) : -ENOMEM;
}

static char *memory_events_file(const char *cgroup, const char *id) {
        cleanup_free char *path = cgroup_of_container(cgroup, id);

        if (!path)
                return NULL;
        return cgroup_file(path, "memory",
                           cgroup_version() == 2 ? "memory.events" : "memory.oom_control");
}

static int fill_attempt_paths(const BundleConfig *config, const Pod *pod, const char *pod_group,
                              const char *container, unsigned attempt, Bundle *ret) {
        const char *uid = pod->metadata.uid;
        cleanup_free char *log_dir = pod_log_dir(config, pod);
        cleanup_free char *state_dir = container_state_dir(config, uid, container, attempt);
        cleanup_with(bundle_done) Bundle bundle = { 0 };
        int r;

        if (!log_dir || !state_dir)
                return -ENOMEM;
        container_id(uid, container, attempt, bundle.id);
        bundle.directory = container_bundle_dir(config, uid, container, attempt);
        bundle.events_file = memory_events_file(pod_group, bundle.id);
        bundle.log = text_format("%s/%s/%u.log", log_dir, container, attempt);
        if (!bundle.directory || !bundle.events_file || !bundle.log)
                return -ENOMEM;
        r = strv_append(&bundle.remains, bundle.directory);
        if (r < 0)
                return r;
        r = strv_append(&bundle.remains, state_dir);
        if (r < 0)
                return r;
        *ret = bundle;
        bundle = (Bundle){ 0 };
        return 0;
}

int bundle_attempt_paths(const BundleConfig *config, const Pod *pod, const char *container,
                         unsigned attempt, Bundle *ret) {
        cleanup_free char *group =
                cgroup_of_pod(config, pod_qos_class(&pod->spec), pod->metadata.uid);

        return group ? fill_attempt_paths(config, pod, group, container, attempt, ret) : -ENOMEM;
}

void bundle_done(Bundle *bundle) {
        free(bundle->directory);
        free(bundle->log);
        free(bundle->events_file);
        strv_free(bundle->remains);
        *bundle = (Bundle){ 0 };
}

/* The symlink in /var/log/containers, named as in the kubelet. Log shippers parse pod and
 * container from its name. */
static int link_container_log(const BundleConfig *config, const Pod *pod,
                              const Container *container, const Bundle *bundle, Error *reterr) {
        cleanup_free char *link = container_log_link(config, pod, container->name, bundle->id);
        cleanup_close int fd = -EBADF;
        const char *name;
        int r;

        if (!link)
                return -ENOMEM;
        r = fd = open_parent_no_symlinks(link, &name);
        if (fd >= 0 && symlinkat(bundle->log, fd, name) < 0 && errno != EEXIST)
                r = -errno;
        return r < 0 ? error_setf(reterr, -r, "cannot make the link %s: %s", link, strerror(-r))
                     : 0;
}

/* An earlier creation that failed has the same attempt number, and may have mounted the overlay.
 * The kernel marks a 'volatile' overlay and refuses to mount it again, so the mark is removed;
 * nothing has been written to this overlay. */
static int forget_volatile_overlay(const char *work, Error *reterr) {
        cleanup_free char *mark = path_join(work, "work/incompat");
        int r = mark ? remove_tree_at(AT_FDCWD, mark) : -ENOMEM;

        return r < 0 ? error_prefixf(reterr, r, "%s", strna(mark)) : 0;
}

static int make_container_directories(const BundleConfig *config, const Pod *pod,
                                      const Container *container, unsigned attempt,
                                      const Bundle *bundle, Error *reterr) {
        cleanup_free char *state_dir =
                container_state_dir(config, pod->metadata.uid, container->name, attempt);
        cleanup_free char *upper = state_dir ? path_join(state_dir, "upper") : NULL;
        cleanup_free char *work = state_dir ? path_join(state_dir, "work") : NULL;
        cleanup_free char *rootfs = path_join(bundle->directory, "rootfs");
        cleanup_free char *log_dir =
                strndup(bundle->log, (size_t) (strrchr(bundle->log, '/') - bundle->log));
        int r;

        r = make_bundle_directory(rootfs, 0700, reterr);
        if (r < 0)
                return r;
        r = make_bundle_directory(upper, 0755, reterr);
        if (r < 0)
                return r;
        r = make_bundle_directory(work, 0700, reterr);
        if (r < 0)
                return r;
        r = forget_volatile_overlay(work, reterr);
        if (r < 0)
                return r;
        return make_log_directory(log_dir, reterr);
}

/* The fstab of one attempt: root filesystem, image volumes, parts of volumes (subPath), volumes
 * that the image declares, and mount points in volumes. */
static int compose_container_fstab(const RuntimeSpecInput *input, const char *bundle_dir,
                                   char **ret, Error *reterr) {
        cleanup_free char *state_dir = container_state_dir(input->config, input->pod->metadata.uid,
                                                           input->container->name, input->attempt);
        cleanup_free char *root = NULL, *images = NULL, *labels = NULL, *sub_paths = NULL;
        cleanup_free char *copies = NULL, *mount_points = NULL, *devices = NULL, *cdi = NULL;
        char *fstab;
        int r = sub_paths_fstab(input, &sub_paths, reterr);

        if (r < 0)
                return r;
        r = selinux_relabel_fstab(input, &labels);
        if (r < 0)
                return r;
        r = image_volumes_fstab(input, &images, reterr);
        if (r < 0)
                return r;
        r = anonymous_volumes_fstab(input, &copies);
        if (r < 0)
                return r;
        r = nested_mounts_fstab(input, &mount_points);
        if (r < 0)
                return r;
        r = device_mounts_fstab(input, &devices);
        if (r < 0)
                return r;
        r = cdi_mounts_fstab(input, &cdi, reterr);
        if (r < 0)
                return r;
        root = state_dir ? container_fstab(input->image, bundle_dir, state_dir, input->users,
                                           input->labels.file)
                         : NULL;
        fstab = root ? text_format("%s%s%s%s%s%s%s%s", root, images, labels, sub_paths, copies,
                                   mount_points, devices, cdi)
                     : NULL;
        if (!fstab)
                return -ENOMEM;
        *ret = fstab;
        return 0;
}

/* An empty file that every user of the container may write. */
static int make_termination_log(const RuntimeSpecInput *input, Error *reterr) {
        cleanup_free char *directory = container_state_dir(input->config, input->pod->metadata.uid,
                                                           input->container->name, input->attempt);

        return directory ? write_bundle_file(directory, "termination-log", "", 0666, reterr)
                         : -ENOMEM;
}

/* The shim creates the volumes in this directory. */
static int make_anonymous_volumes_dir(const RuntimeSpecInput *input, Error *reterr) {
        cleanup_free char *directory = NULL;

        if (anonymous_volume_count(input) == 0)
                return 0;
        directory = anonymous_volumes_dir(input);
        return make_bundle_directory(directory, 0711, reterr);
}

/* The root directory is the top of the writable layer. */
static int make_bundle_traversable(const RuntimeSpecInput *input, const char *bundle_dir,
                                   Error *reterr) {
        cleanup_free char *state_dir = container_state_dir(input->config, input->pod->metadata.uid,
                                                           input->container->name, input->attempt);
        int r = userns_make_traversable(input->config, bundle_dir, reterr);

        if (r < 0)
                return r;
        return state_dir ? set_file_owner(state_dir, "upper", input->first_id, reterr) : -ENOMEM;
}

static int write_volume_images(const RuntimeSpecInput *input, const char *bundle_dir,
                               Error *reterr) {
        cleanup_free char *digests = NULL;
        int r = image_volumes_digests(input, &digests);

        if (r < 0 || !digests[0])
                return r;
        return write_bundle_file(bundle_dir, IMAGE_VOLUMES_FILE, digests, 0600, reterr);
}

/* Everything that an attempt needs, computed before any of it is written. */
static int write_container_bundle(const RuntimeSpecInput *input, const Bundle *bundle,
                                  Error *reterr) {
        const BundleConfig *config = input->config;
        cleanup_free char *json = NULL, *fstab = NULL;
        int r = make_runtime_spec(input, &json, reterr);

        if (r < 0)
                return r;
        r = compose_container_fstab(input, bundle->directory, &fstab, reterr);
        if (r < 0)
                return r;
        r = make_container_directories(config, input->pod, input->container, input->attempt, bundle,
                                       reterr);
        if (r < 0)
                return r;
        if (input->users)
                r = make_bundle_traversable(input, bundle->directory, reterr);
        if (r < 0)
                return r;
        if (input->container->target_container_name)
                r = make_bundle_file(bundle->directory, "pid-namespace", reterr);
        if (r < 0)
                return r;
        r = make_anonymous_volumes_dir(input, reterr);
        if (r < 0)
                return r;
        r = make_termination_log(input, reterr);
        if (r < 0)
                return r;
        r = write_volume_images(input, bundle->directory, reterr);
        if (r < 0)
                return r;
        r = write_bundle_file(bundle->directory, "config.json", json, 0600, reterr);
        if (r < 0)
                return r;
        r = write_bundle_file(bundle->directory, "fstab", fstab, 0600, reterr);
        if (r < 0)
                return r;
        return link_container_log(config, input->pod, input->container, bundle, reterr);
}

int bundle_prepare_container(const BundleConfig *config, const Pod *pod, const Container *container,
                             unsigned attempt, const Image *image, pid_t sandbox_pid, Bundle *ret,
                             Error *reterr) {
        cleanup_with(bundle_done) Bundle bundle = { 0 };
        RuntimeSpecInput input = { .config = config,
                                   .pod = pod,
                                   .container = container,
                                   .image = image,
                                   .attempt = attempt,
                                   .sandbox_pid = sandbox_pid,
                                   .cgroup_version = cgroup_version() };
        cleanup_free char *group =
                cgroup_of_pod(config, pod_qos_class(&pod->spec), pod->metadata.uid);
        cleanup_free char *users = userns_path(config, pod->metadata.uid);
        int r;

        if (!group || !users)
                return -ENOMEM;
        r = fill_attempt_paths(config, pod, group, container->name, attempt, &bundle);
        if (r < 0)
                return r;
        input.id = bundle.id;
        input.pod_group = group;
        r = userns_load_ids(config, pod, &input.first_id);
        if (r < 0)
                return error_setf(reterr, -r,
                                  "the ID range of the pod's user namespace is unknown: %s",
                                  strerror(-r));
        input.users = input.first_id > 0 ? users : NULL;
        r = selinux_container_labels(config, pod, container, &input.labels, reterr);
        if (r >= 0)
                r = write_container_bundle(&input, &bundle, reterr);
        selinux_labels_done(&input.labels);
        if (r < 0)
                return r;
        *ret = bundle;
        bundle = (Bundle){ 0 };
        return 0;
}

/* The cgroup of all pods: limited to the resources that the node does not reserve. */
static int limit_all_pods(const BundleConfig *config, Error *reterr) {
        cleanup_free char *path = cgroup_of_qos_class(config, QOS_GUARANTEED);
        CgroupValue values[CGROUP_VALUES_MAX];
        size_t n = all_pods_cgroup_values(config, cgroup_version(), values);
        int r = 0;

        if (!path)
                return -ENOMEM;
        if (n > 0)
                r = cgroup_create(path, reterr);
        for (size_t i = 0; i < n && r >= 0; i++)
                r = cgroup_write(path, values[i].controller, values[i].file, values[i].value,
                                 reterr);
        return r;
}

int bundle_update_qos(const BundleConfig *config, int64_t burstable_milli_cpu, Error *reterr) {
        static const QosClass classes[] = { QOS_BURSTABLE, QOS_BEST_EFFORT };
        bool v2 = cgroup_version() == 2;

        for (size_t i = 0; i < N_ELEMENTS(classes); i++) {
                cleanup_free char *path = cgroup_of_qos_class(config, classes[i]);
                uint64_t shares = cpu_shares(classes[i] == QOS_BURSTABLE ? burstable_milli_cpu : 0);
                char value[24];
                int r;

                if (!path)
                        return -ENOMEM;
                (void) snprintf(value, sizeof(value), "%" PRIu64,
                                v2 ? cpu_weight_of_group(shares) : shares);
                r = cgroup_create(path, reterr);
                if (r < 0)
                        return r;
                r = cgroup_write(path, "cpu", v2 ? "cpu.weight" : "cpu.shares", value, reterr);
                if (r < 0)
                        return r;
        }
        return limit_all_pods(config, reterr);
}
