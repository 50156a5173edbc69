/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/claim-volumes.h"

#include "agent/bundle/huge-pages.h"
#include "agent/model/containers.h"
#include "agent/model/match.h"
#include "agent/model/names.h"
#include "agent/model/object-identity.h"
#include "common/cleanup.h"
#include "common/strv.h"

/* ---- claims ---- */

/* The claim of a generic ephemeral volume belongs to the pod. */
static bool is_claim_of_pod(const DataObject *claim, const Pod *pod) {
        const OwnerReference *owner = object_controller(&claim->metadata);

        return owner && object_has_uid(&pod->metadata, owner->uid);
}

int find_volume_claim(const BundleConfig *config, const Pod *pod, const Volume *volume,
                      const DataObject **ret, Error *reterr) {
        cleanup_free char *name = volume_claim_name(pod, volume);
        const DataObject *claim;
        int r;

        if (!name)
                return -ENOMEM;
        r = object_lookup(&config->objects, &pod->metadata, OBJECT_VOLUME_CLAIM, name, &claim,
                          reterr);
        if (r < 0)
                return r;
        if (volume->ephemeral && !is_claim_of_pod(claim, pod))
                return error_setf(reterr, EINVAL,
                                  "persistentvolumeclaim \"%s\" was not created for this pod",
                                  name);
        if (!volume_claim_is_bound(&claim->claim))
                return error_setf(reterr, ENOENT,
                                  "persistentvolumeclaim \"%s\" is not bound to a volume yet",
                                  name);
        *ret = claim;
        return 0;
}

static int explain_unsupported_volume(const DataObject *object, Error *reterr) {
        const char *name = object->metadata.name;

        return error_setf(
                reterr, EINVAL,
                "no volume plugin matched: persistentvolume \"%s\" is neither a hostPath, "
                "nor a local volume, nor on NFS, nor of a CSI driver",
                name);
}

/* Uses the kubelet's wording. */
static int check_volume_node(const BundleConfig *config, const DataObject *object, Error *reterr) {
        const VolumeNodeAffinity *affinity = object->volume.node_affinity;

        if (!affinity || !affinity->required || !config->node ||
            node_selector_matches(affinity->required, config->node))
                return 0;
        return error_setf(reterr, EINVAL,
                          "persistentvolume \"%s\": no matching NodeSelectorTerms: its node "
                          "affinity does not select this node",
                          object->metadata.name);
}

static int check_persistent_volume(const BundleConfig *config, const DataObject *claim,
                                   const DataObject *object, Error *reterr) {
        if (!object->volume.claim || !object_has_uid(&claim->metadata, object->volume.claim->uid))
                return error_setf(reterr, EINVAL, "persistentvolume \"%s\" is bound to %s",
                                  object->metadata.name,
                                  object->volume.claim ? "another claim" : "no claim");
        if (object->volume.mode == VOLUME_MODE_BLOCK && !object->volume.csi &&
            !object->volume.local)
                return error_setf(reterr, EINVAL,
                                  "MapVolume.FindMapperPluginBySpec failed to find "
                                  "BlockVolumeMapper plugin: persistentvolume \"%s\" is neither of "
                                  "a CSI driver nor local",
                                  object->metadata.name);
        return check_volume_node(config, object, reterr);
}

static bool has_volume_mount(const Container *container, const char *name) {
        for (size_t i = 0; i < container->volume_mounts.n; i++)
                if (streq(container->volume_mounts.items[i].name, name))
                        return true;
        return false;
}

static bool has_volume_device(const Container *container, const char *name) {
        for (size_t i = 0; i < container->volume_devices.n; i++)
                if (streq(strna(container->volume_devices.items[i].name), name))
                        return true;
        return false;
}

/* A volume must be used in the mode (Filesystem or Block) of its claim. */
static int check_volume_use(const Pod *pod, const Volume *volume, VolumeMode mode, Error *reterr) {
        const Container *container;
        bool is_block = mode == VOLUME_MODE_BLOCK;

        pod_foreach_container(container, &pod->spec)
                if (is_block ? has_volume_mount(container, volume->name)
                             : has_volume_device(container, volume->name))
                        return error_setf(reterr, EINVAL,
                                          "volume %s has volumeMode %s, but is specified in %s",
                                          volume->name, is_block ? "Block" : "Filesystem",
                                          is_block ? "volumeMounts" : "volumeDevices");
        return 0;
}

int find_persistent_volume(const BundleConfig *config, const Pod *pod, const Volume *volume,
                           const DataObject **ret, Error *reterr) {
        const DataObject *claim;
        int r = find_volume_claim(config, pod, volume, &claim, reterr);

        if (r < 0)
                return r;
        r = object_lookup(&config->objects, &claim->metadata, OBJECT_PERSISTENT_VOLUME,
                          claim->claim.spec.volume_name, ret, reterr);
        if (r >= 0)
                r = check_persistent_volume(config, claim, *ret, reterr);
        return r < 0 ? r : check_volume_use(pod, volume, (*ret)->volume.mode, reterr);
}

bool is_block_volume(const BundleConfig *config, const Pod *pod, const Volume *volume) {
        const DataObject *object;

        return find_persistent_volume(config, pod, volume, &object, NULL) >= 0 &&
               object->volume.mode == VOLUME_MODE_BLOCK;
}

bool is_local_volume_writable(const BundleConfig *config, const Pod *pod, const Volume *volume) {
        const ClaimVolumeSource *claim = volume->persistent_volume_claim;
        const DataObject *object;

        return find_persistent_volume(config, pod, volume, &object, NULL) >= 0 &&
               object->volume.local && !(claim && claim->read_only);
}

/* Claims of NFS and of CSI drivers are not directories of the node. */
static bool has_csi_volume(const BundleConfig *config, const Pod *pod, const Volume *volume) {
        const DataObject *object;

        return find_persistent_volume(config, pod, volume, &object, NULL) >= 0 &&
               object->volume.csi;
}

static int explain_unknown_type(Error *reterr) {
        return error_setf(reterr, EINVAL,
                          "hostPath type check failed: this version of Mainstay does not know its "
                          "type");
}

int find_claimed_directory(const BundleConfig *config, const Pod *pod, const Volume *volume,
                           HostPathVolumeSource *ret, Error *reterr) {
        const DataObject *object;
        int r = find_persistent_volume(config, pod, volume, &object, reterr);

        if (r < 0)
                return r;
        if (object->volume.host_path)
                *ret = *object->volume.host_path;
        else if (object->volume.local)
                *ret = (HostPathVolumeSource){ .path = object->volume.local->path,
                                               .type = HOST_PATH_DIRECTORY };
        else
                return explain_unsupported_volume(object, reterr);
        return ret->type == HOST_PATH_OTHER ? explain_unknown_type(reterr) : 0;
}

/* ---- NFS ---- */

int find_nfs_export(const BundleConfig *config, const Pod *pod, const Volume *volume,
                    NfsExport *ret, Error *reterr) {
        const ClaimVolumeSource *claim = volume->persistent_volume_claim;
        const DataObject *object;
        int r;

        if (volume->nfs) {
                *ret = (NfsExport){ volume->nfs, NULL, volume->nfs->read_only };
                return 1;
        }
        if (!claim && !volume->ephemeral)
                return 0;
        r = find_persistent_volume(config, pod, volume, &object, reterr);
        if (r < 0)
                return r;
        if (!object->volume.nfs)
                return 0;
        *ret = (NfsExport){ object->volume.nfs, object->volume.mount_options,
                            object->volume.nfs->read_only || (claim && claim->read_only) };
        return 1;
}

/* Volumes from an API server or an old record are checked only here. */
static int check_nfs_export(const NfsExport *export, Error *reterr) {
        int r = check_nfs_server(strna(export->source->server), reterr);

        if (r >= 0)
                r = check_absolute_path(strna(export->source->path), reterr);
        strv_foreach(option, export->mount_options)
                if (r >= 0)
                        r = check_nfs_option(*option, reterr);
        return r < 0 ? error_prefixf(reterr, r, "nfs %s:%s", strna(export->source->server),
                                     strna(export->source->path))
                     : 0;
}

static int check_nfs_volume(const BundleConfig *config, const Pod *pod, const Volume *volume,
                            Error *reterr) {
        NfsExport export;
        int r = find_nfs_export(config, pod, volume, &export, reterr);

        return r <= 0 ? r : check_nfs_export(&export, reterr);
}

static int check_claim_volume(const BundleConfig *config, const Pod *pod, const Volume *volume,
                              Error *reterr) {
        HostPathVolumeSource source;
        NfsExport export;
        int r = find_nfs_export(config, pod, volume, &export, reterr);

        if (r > 0)
                return check_nfs_export(&export, reterr);
        if (r == 0 && has_csi_volume(config, pod, volume))
                return 0;
        return r < 0 ? r : find_claimed_directory(config, pod, volume, &source, reterr);
}

/* ---- all kinds ---- */

static int check_projected_sources(const ProjectedVolumeSource *projected, Error *reterr) {
        for (size_t i = 0; i < projected->sources.n; i++) {
                if (projected->sources.items[i].cluster_trust_bundle)
                        return error_setf(reterr, EINVAL,
                                          "this node does not project a clusterTrustBundle");
                if (projected->sources.items[i].pod_certificate)
                        return error_setf(reterr, EINVAL,
                                          "this node does not project a podCertificate");
        }
        return 0;
}

static int check_volume_is_mountable(const BundleConfig *config, const Pod *pod,
                                     const Volume *volume, Error *reterr) {
        const char *kind = volume_unmountable_kind(volume);

        if (kind)
                return error_setf(reterr, EINVAL,
                                  "no volume plugin matched: this node does not mount volumes of "
                                  "the kind %s",
                                  kind);
        if (volume->nfs)
                return check_nfs_volume(config, pod, volume, reterr);
        if (volume->csi)
                return 0; /* pods/pod/pod-csi-volumes.h mounts it */
        if (volume->host_path && volume->host_path->type == HOST_PATH_OTHER)
                return explain_unknown_type(reterr);
        if (volume->host_path && volume->host_path->path[0] != '/')
                return error_setf(reterr, EINVAL, "hostPath '%.200s' is not an absolute path",
                                  volume->host_path->path);
        if (volume->persistent_volume_claim || volume->ephemeral)
                return check_claim_volume(config, pod, volume, reterr);
        if (volume->empty_dir && volume->empty_dir->medium == MEDIUM_OTHER)
                return error_setf(reterr, EINVAL, "unknown storage medium");
        if (volume->empty_dir && volume->empty_dir->medium >= MEDIUM_HUGE_PAGES &&
            !huge_pages_mount_option(&pod->spec, volume->empty_dir->medium))
                return error_setf(
                        reterr, EINVAL,
                        "medium %s: hugePages storage requested, but there is no resource "
                        "request for huge pages",
                        medium_names[volume->empty_dir->medium]);
        return volume->projected ? check_projected_sources(volume->projected, reterr) : 0;
}

int check_pod_volumes(const BundleConfig *config, const Pod *pod, Error *reterr) {
        for (size_t i = 0; i < pod->spec.volumes.n; i++) {
                const Volume *volume = &pod->spec.volumes.items[i];
                int r = check_volume_is_mountable(config, pod, volume, reterr);

                if (r < 0)
                        return error_prefixf(reterr, r,
                                             "MountVolume.SetUp failed for volume \"%s\" ",
                                             volume->name);
        }
        return 0;
}
