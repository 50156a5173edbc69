/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/block-devices.h"

#include "agent/bundle/claim-volumes.h"
#include "agent/bundle/csi-volumes.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <errno.h>

/* The device on the node. 0 or -errno with a message. */
static int find_block_device(const BundleConfig *config, const Pod *pod, const Volume *volume,
                             char **ret_path, bool *ret_is_read_only, Error *reterr) {
        cleanup_with(csi_volume_done) CsiVolume csi = { 0 };
        HostPathVolumeSource local;
        int r = find_csi_volume(config, pod, volume, &csi, reterr);

        if (r > 0) {
                *ret_is_read_only = csi.is_read_only;
                *ret_path = csi_volume_path(config, pod, &csi);
        } else if (r == 0) {
                r = find_claimed_directory(config, pod, volume, &local, reterr);
                *ret_is_read_only = !is_local_volume_writable(config, pod, volume);
                *ret_path = r >= 0 ? strdup(local.path) : NULL;
        }
        return r < 0 ? r : *ret_path ? 0 : -ENOMEM;
}

static int add_block_device(const BundleConfig *config, const Pod *pod, const VolumeDevice *device,
                            DeviceEdits *edits, Error *reterr) {
        const Volume *volume = pod_find_volume(&pod->spec, strna(device->name));
        cleanup_free char *path = NULL;
        bool is_read_only = false;
        DeviceFile *file;
        int r;

        if (!volume)
                return error_setf(reterr, EINVAL, "volumeDevices: there is no volume \"%s\"",
                                  strna(device->name));
        r = find_block_device(config, pod, volume, &path, &is_read_only, reterr);
        if (r < 0)
                return r;
        file = ARRAY_APPEND(edits->files.items, edits->files.n);
        if (!file)
                return -ENOMEM;
        *file = (DeviceFile){ .container_path = strdup(strna(device->device_path)),
                              .host_path = TAKE_PTR(path),
                              .permissions = strdup(is_read_only ? "r" : "rwm") };
        return file->container_path && file->permissions ? 0 : -ENOMEM;
}

int add_block_devices(const BundleConfig *config, const Pod *pod, const Container *container,
                      DeviceEdits *edits, Error *reterr) {
        int r = 0;

        for (size_t i = 0; i < container->volume_devices.n && r >= 0; i++)
                r = add_block_device(config, pod, &container->volume_devices.items[i], edits,
                                     reterr);
        return r;
}
