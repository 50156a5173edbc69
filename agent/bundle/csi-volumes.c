/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/csi-volumes.h"

#include "agent/bundle/claim-volumes.h"
#include "agent/bundle/selinux-labels.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>

/* ---- objects ---- */

/* The CSIDriver object; NULL: there is none. Pods of files never have one, because no source of
 * manifests contains one. */
static int find_driver_object(const BundleConfig *config, const ObjectMeta *from,
                              const char *driver, const CsiDriverObject **ret, Error *reterr) {
        const DataObject *object = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r = object_lookup(&config->objects, from, OBJECT_CSI_DRIVER, driver, &object, &error);

        *ret = object ? &object->csi_driver : NULL;
        return r >= 0 || r == -ENOENT ? 0 : error_setf(reterr, -r, "%s", error_message(&error, r));
}

/* 'field' names the reference. */
static int find_csi_secret(const BundleConfig *config, const ObjectMeta *from, const char *field,
                           const SecretReference *secret, const DataObject **ret, Error *reterr) {
        ObjectMeta meta = *from;
        int r;

        if (!secret || !secret->name || !secret->name[0])
                return 0;
        meta.namespace = (char *) (uintptr_t) strna(secret->namespace);
        r = object_lookup(&config->objects, &meta, OBJECT_SECRET, secret->name, ret, reterr);
        return r < 0 ? error_prefixf(reterr, r, "fetching %s %s/%s failed", field, meta.namespace,
                                     secret->name)
                     : 0;
}

/* ---- ephemeral volumes ---- */

static int check_ephemeral_mode(const CsiDriverObject *driver, const char *name, Error *reterr) {
        cleanup_free char *modes = NULL;

        if (!driver)
                return error_setf(reterr, EINVAL,
                                  "volume mode \"Ephemeral\" not supported by driver %s (no "
                                  "CSIDriver object)",
                                  name);
        if (driver->lifecycle_modes && strv_contains(driver->lifecycle_modes, "Ephemeral"))
                return 0;
        modes = driver->lifecycle_modes ? text_join(driver->lifecycle_modes, " ")
                                        : strdup("Persistent");
        return error_setf(reterr, EINVAL,
                          "volume mode \"Ephemeral\" not supported by driver %s (only supports "
                          "[%s])",
                          name, strna(modes));
}

static void take_driver_settings(const CsiDriverObject *driver, CsiVolume *volume) {
        volume->driver_object = driver;
        if (!driver)
                return;
        volume->is_republished = driver->requires_republish;
        volume->has_pod_info = driver->pod_info_on_mount;
        volume->is_group_by_file = driver->fs_group_policy == FS_GROUP_POLICY_FILE;
        volume->is_group_left_alone = driver->fs_group_policy == FS_GROUP_POLICY_NONE;
}

/* For pods of files, drivers get the attributes that podInfoOnMount in a CSIDriver requests,
 * because most drivers of ephemeral volumes need the attribute that marks the volume as ephemeral.
 */
static int resolve_ephemeral_volume(const BundleConfig *config, const Pod *pod,
                                    const Volume *volume, CsiVolume *ret, Error *reterr) {
        const CsiVolumeSource *source = volume->csi;
        bool is_of_server = pod->metadata.source == OBJECT_SOURCE_APISERVER;
        const CsiDriverObject *driver = NULL;
        char handle[CSI_NAME_SIZE];
        int r = is_of_server ? find_driver_object(config, &pod->metadata, source->driver, &driver,
                                                  reterr)
                             : 0;

        if (r >= 0 && is_of_server)
                r = check_ephemeral_mode(driver, source->driver, reterr);
        if (r < 0)
                return r;
        csi_ephemeral_handle(pod->metadata.uid, volume->name, handle);
        *ret = (CsiVolume){ .name = volume->name,
                            .driver = source->driver,
                            .handle = strdup(handle),
                            .fs_type = source->fs_type,
                            .attributes = &source->attributes,
                            .is_read_only = source->read_only,
                            .is_ephemeral = true,
                            .has_pod_info = true };
        take_driver_settings(driver, ret);
        if (!ret->handle)
                return -ENOMEM;
        return find_csi_secret(config, &pod->metadata, "NodePublishSecretRef",
                               source->publish_secret
                                       ? &(SecretReference){ source->publish_secret->name,
                                                             pod->metadata.namespace }
                                       : NULL,
                               &ret->publish_secret, reterr);
}

/* ---- PersistentVolumes ---- */

static int find_attachment(const BundleConfig *config, const ObjectMeta *from, CsiVolume *volume,
                           Error *reterr) {
        char name[CSI_NAME_SIZE];
        const DataObject *object = NULL;
        int r;

        csi_attachment_name(volume->handle, volume->driver, config->node ? config->node->name : "",
                            name);
        r = object_lookup(&config->objects, from, OBJECT_VOLUME_ATTACHMENT, name, &object, NULL);
        if (r < 0 || !object->attachment.is_attached)
                return error_setf(
                        reterr, EAGAIN,
                        "volume \"%s\" is not attached to this node yet: VolumeAttachment "
                        "%s is %s",
                        volume->name, name, r < 0 ? "not known" : "not attached");
        volume->publish_context = &object->attachment.metadata;
        return 0;
}

static int resolve_persistent_volume(const BundleConfig *config, const Volume *volume,
                                     const DataObject *object, CsiVolume *ret, Error *reterr) {
        const CsiPersistentVolumeSource *source = object->volume.csi;
        const ClaimVolumeSource *claim = volume->persistent_volume_claim;
        const CsiDriverObject *driver;
        int r = find_driver_object(config, &object->metadata, source->driver, &driver, reterr);

        if (r < 0)
                return r;
        *ret = (CsiVolume){ .name = object->metadata.name,
                            .driver = source->driver,
                            .handle = strdup(source->handle),
                            .fs_type = source->fs_type,
                            .attributes = &source->attributes,
                            .mount_options = object->volume.mount_options,
                            .access = csi_access_of(object->volume.access_modes),
                            .is_read_only = claim && claim->read_only,
                            .is_block = object->volume.mode == VOLUME_MODE_BLOCK,
                            .is_of_one_pod = strv_length(object->volume.access_modes) == 1 &&
                                             csi_access_of(object->volume.access_modes) ==
                                                     CSI_ACCESS_READ_WRITE_ONCE_POD };
        ret->pv_object = object;
        take_driver_settings(driver, ret);
        if (!ret->handle)
                return -ENOMEM;
        if (!driver || csi_driver_must_attach(driver))
                r = find_attachment(config, &object->metadata, ret, reterr);
        if (r >= 0)
                r = find_csi_secret(config, &object->metadata, "NodeStageSecretRef",
                                    source->stage_secret, &ret->stage_secret, reterr);
        if (r >= 0)
                r = find_csi_secret(config, &object->metadata, "NodePublishSecretRef",
                                    source->publish_secret, &ret->publish_secret, reterr);
        return r;
}

/* ---- both ---- */

int find_csi_volume(const BundleConfig *config, const Pod *pod, const Volume *volume,
                    CsiVolume *ret, Error *reterr) {
        CsiVolume found = { 0 };
        const DataObject *object;
        int r;

        if (volume->csi)
                r = resolve_ephemeral_volume(config, pod, volume, &found, reterr);
        else if (volume->persistent_volume_claim || volume->ephemeral) {
                r = find_persistent_volume(config, pod, volume, &object, reterr);
                if (r >= 0 && !object->volume.csi)
                        return 0;
                if (r >= 0)
                        r = resolve_persistent_volume(config, volume, object, &found, reterr);
                if (r >= 0)
                        r = find_volume_claim(config, pod, volume, &found.claim, reterr);
        } else
                return 0;
        if (r < 0) {
                csi_volume_done(&found);
                return r;
        }
        *ret = found;
        return 1;
}

/* ---- tokens ---- */

static int add_token(const TokenLookup *lookup, const Pod *pod, const TokenProjection *wanted,
                     json_t *tokens, Error *reterr) {
        char expiry[RFC3339_SIZE];
        IssuedToken token = { 0 };
        TokenProjection request = *wanted;
        const char *audience = strna(wanted->audience);
        int r;

        if (!audience[0])
                request.audience = NULL;
        r = lookup->find ? lookup->find(pod, &request, &token, reterr, lookup->userdata)
                         : error_setf(reterr, EAGAIN, "there is no API server");
        if (r < 0)
                return r;
        r = json_object_set_new(tokens, audience,
                                json_pack("{s:s, s:s}", "token", token.text, "expirationTimestamp",
                                          format_rfc3339(expiry, token.expires_at)));
        return r < 0 ? -ENOMEM : 0;
}

int csi_volume_add_tokens(const BundleConfig *config, const Pod *pod, CsiVolume *volume,
                          Error *reterr) {
        const CsiDriverObject *driver = volume->driver_object;
        cleanup_json json_t *tokens = NULL;
        int r = 0;

        if (!driver || driver->token_requests.n == 0 || volume->is_block)
                return 0;
        tokens = json_object();
        for (size_t i = 0; i < driver->token_requests.n && r >= 0; i++)
                r = add_token(&config->tokens, pod, &driver->token_requests.items[i], tokens,
                              reterr);
        if (r < 0) /* the kubelet's wording and spelling */
                return error_prefixf(reterr, r,
                                     "kubernetes.io/csi: mounter.SetUpAt failed to get service "
                                     "accoount token attributes");
        volume->tokens = json_to_text(tokens, JSON_COMPACT | JSON_SORT_KEYS);
        volume->has_tokens_in_secrets = driver->has_tokens_in_secrets;
        return volume->tokens ? 0 : -ENOMEM;
}

int csi_volume_add_selinux_label(const BundleConfig *config, const Pod *pod, const Volume *volume,
                                 CsiVolume *csi, Error *reterr) {
        const CsiDriverObject *driver = csi->driver_object;

        if (!driver || !driver->has_selinux_mount || !csi->is_of_one_pod || csi->is_block)
                return 0;
        return selinux_mount_label(config, pod, volume, &csi->selinux_label, reterr);
}

int csi_volume_add_expand_secret(const BundleConfig *config, CsiVolume *volume, Error *reterr) {
        const SecretReference *secret = volume->pv_object->volume.csi->expand_secret;
        cleanup_error Error error = ERROR_NULL;
        int r = find_csi_secret(config, &volume->pv_object->metadata, "NodeExpandSecretRef", secret,
                                &volume->expand_secret, &error);

        return r < 0 ? error_setf(reterr, -r,
                                  "expander.NodeExpand failed to get NodeExpandSecretRef %s/%s: %s",
                                  strna(secret->namespace), secret->name, error_message(&error, r))
                     : 0;
}

char *csi_volume_path(const BundleConfig *config, const Pod *pod, const CsiVolume *volume) {
        cleanup_free char *directory = volume->is_block
                                               ? csi_block_publish_dir(volume->name)
                                               : csi_publish_dir(pod->metadata.uid, volume->name);

        return directory ? text_format("%s/%s/%s", strna(config->kubelet_dir), directory,
                                       volume->is_block ? pod->metadata.uid : "mount")
                         : NULL;
}
