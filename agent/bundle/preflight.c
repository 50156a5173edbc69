/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/preflight.h"

#include "agent/bundle/paths.h"
#include "agent/bundle/pod-dns.h"
#include "agent/bundle/runtime-spec.h"
#include "agent/bundle/security.h"
#include "agent/bundle/volumes.h"
#include "agent/model/containers.h"
#include "common/cgroup.h"
#include "common/cleanup.h"

#include <sys/stat.h>
#include <unistd.h>

/* hostPath types whose path must exist, and the file type that it must have. */
static const mode_t host_path_modes[N_HOST_PATH_TYPES] = {
        [HOST_PATH_DIRECTORY] = S_IFDIR,    [HOST_PATH_FILE] = S_IFREG,
        [HOST_PATH_SOCKET] = S_IFSOCK,      [HOST_PATH_CHAR_DEVICE] = S_IFCHR,
        [HOST_PATH_BLOCK_DEVICE] = S_IFBLK,
};

static int preflight_host_path(const HostPathVolumeSource *source, Error *reterr) {
        mode_t mode = host_path_modes[source->type];
        struct stat st;

        if (mode == 0)
                return 0;
        if (stat(source->path, &st) >= 0 && (st.st_mode & S_IFMT) == mode)
                return 0;
        return error_setf(reterr, ENOENT, "hostPath type check failed: %s is not of type %s",
                          source->path, host_path_type_names[source->type]);
}

static int preflight_volume(const BundleConfig *config, const Pod *pod, const Volume *volume,
                            Error *reterr) {
        cleanup_with(volume_payload_done) VolumePayload payload = { 0 };
        int r = 0;

        if (volume_is_data(volume))
                r = build_volume_payload(config, pod, volume, &payload, reterr);
        else if (volume->host_path)
                r = preflight_host_path(volume->host_path, reterr);
        return r < 0 ? error_prefixf(reterr, r, "MountVolume.SetUp failed for volume \"%s\" ",
                                     volume->name)
                     : 0;
}

static int preflight_container(const BundleConfig *config, const Pod *pod,
                               const Container *container, const Image *image, Error *reterr) {
        RuntimeSpecInput input = { .config = config,
                                   .pod = pod,
                                   .container = container,
                                   .image = image,
                                   .sandbox_pid = getpid(),
                                   .cgroup_version = cgroup_version() };
        cleanup_free char *json = NULL;
        char id[65];
        int r;

        container_id(pod->metadata.uid, container->name, 0, id);
        input.id = id;
        r = make_runtime_spec(&input, &json, reterr);
        return r < 0 ? error_prefixf(reterr, r, "container '%s'", container->name) : 0;
}

int bundle_preflight_pod(const BundleConfig *config, const Pod *pod, Image *const *images,
                         Error *reterr) {
        cleanup_free char *hostname = NULL;
        const Container *container;
        int r = pod_check_sysctls(config, &pod->spec, reterr);

        if (r < 0)
                return r;
        r = pod_hostname(config, pod, &hostname, reterr);
        if (r < 0)
                return r;
        for (size_t i = 0; i < pod->spec.volumes.n; i++) {
                r = preflight_volume(config, pod, &pod->spec.volumes.items[i], reterr);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; (container = pod_nth_container(&pod->spec, i)); i++) {
                r = preflight_container(config, pod, container, images[i], reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}
