/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/pod-preflight.h"

#include "agent/bundle/cgroup-resources.h"
#include "agent/bundle/claim-volumes.h"
#include "agent/bundle/huge-pages.h"
#include "agent/bundle/pod-dns.h"
#include "agent/bundle/pod-paths.h"
#include "agent/bundle/resolved-security.h"
#include "agent/bundle/runtime-spec.h"
#include "agent/bundle/volume-mounts.h"
#include "agent/bundle/volumes.h"
#include "agent/model/containers.h"
#include "common/cgroup.h"
#include "common/cleanup.h"

#include <unistd.h>

/* If some container of a pod has no limit, the pod has none either, and only the runtime would try
 * to set the limits of the others. */
static int check_memory_limits(const BundleConfig *config, const PodSpec *spec, Error *reterr) {
        const Container *container;

        if (!config->lacks_memory_controller)
                return 0;
        pod_foreach_container(container, spec)
                if (container_memory_limit(spec, container) > 0)
                        return error_setf(reterr, ENOENT,
                                          "cannot limit the memory of container "
                                          "'%s': " CGROUP_CONTROLLER_MISSING,
                                          container->name, "memory");
        return 0;
}

int bundle_check_node(const BundleConfig *config, const PodSpec *spec, Error *reterr) {
        int r = pod_check_sysctls(config, spec, reterr);

        if (r < 0)
                return r;
        if (spec->security_context.supplemental_groups_policy == GROUPS_POLICY_OTHER)
                return error_setf(reterr, EINVAL,
                                  "unsupported supplementalGroupsPolicy: this version of Mainstay "
                                  "knows Merge and Strict");
        r = huge_pages_check(spec, HUGE_PAGES_DIRECTORY, reterr);
        return r < 0 ? r : check_memory_limits(config, spec, reterr);
}

static int preflight_volume(const BundleConfig *config, const Pod *pod, const Volume *volume,
                            Error *reterr) {
        cleanup_with(volume_payload_done) VolumePayload payload = { 0 };
        int r = volume_is_data(volume) ? build_volume_payload(config, pod, volume, &payload, reterr)
                                       : 0;

        return r < 0 ? error_prefixf(reterr, r, "MountVolume.SetUp failed for volume \"%s\" ",
                                     volume->name)
                     : 0;
}

/* Whether variables come from files, which containers of the pod write. */
static bool has_variables_of_files(const Container *container) {
        for (size_t i = 0; i < container->env.n; i++)
                if (container->env.items[i].value_from &&
                    container->env.items[i].value_from->file_key_ref)
                        return true;
        return false;
}

/* Computes the mounts of parts of volumes only to detect errors. */
static int preflight_sub_paths(const RuntimeSpecInput *input, Error *reterr) {
        cleanup_free char *fstab = NULL;

        if (has_variables_of_files(input->container))
                return 0; /* a value to which subPathExpr refers is not known yet */
        return sub_paths_fstab(input, &fstab, reterr);
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
        if (r >= 0)
                r = selinux_check_container(config, pod, container, reterr);
        if (r >= 0)
                r = preflight_sub_paths(&input, reterr);
        return r < 0 ? error_prefixf(reterr, r, "container '%s'", container->name) : 0;
}

static int preflight_volumes(const BundleConfig *config, const Pod *pod, Error *reterr) {
        int r = check_pod_volumes(config, pod, reterr);

        for (size_t i = 0; r >= 0 && i < pod->spec.volumes.n; i++)
                r = preflight_volume(config, pod, &pod->spec.volumes.items[i], reterr);
        return r;
}

int bundle_preflight_pod(const BundleConfig *config, const Pod *pod, Image *const *images,
                         Error *reterr) {
        BundleConfig of_pod = *config;
        cleanup_free char *hostname = NULL;
        const Container *container;
        int r = bundle_check_node(config, &pod->spec, reterr);

        if (r < 0)
                return r;
        r = pod_hostname(config, pod, &hostname, reterr);
        if (r < 0)
                return r;
        r = preflight_volumes(config, pod, reterr);
        if (r < 0)
                return r;
        of_pod.pod_ips[0] = "0.0.0.0"; /* a placeholder, because the real address is not known yet
                                        */
        for (size_t i = 0; (container = pod_nth_container(&pod->spec, i)); i++) {
                r = preflight_container(&of_pod, pod, container, images[i], reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}
