/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/csi-volume.h"

#include "common/text.h"

#include <stdlib.h>

void csi_volume_done(CsiVolume *volume) {
        free(volume->handle);
        if (volume->tokens)
                explicit_bzero(volume->tokens, strlen(volume->tokens));
        free(volume->tokens);
        free(volume->selinux_label);
        *volume = (CsiVolume){ 0 };
}

CsiAccess csi_access_of(char *const *access_modes) {
        const char *first = access_modes ? access_modes[0] : NULL;

        if (streq_ptr(first, "ReadOnlyMany"))
                return CSI_ACCESS_READ_ONLY_MANY;
        if (streq_ptr(first, "ReadWriteMany"))
                return CSI_ACCESS_READ_WRITE_MANY;
        if (streq_ptr(first, "ReadWriteOncePod"))
                return CSI_ACCESS_READ_WRITE_ONCE_POD;
        return CSI_ACCESS_READ_WRITE_ONCE;
}

bool csi_volume_has_group(const CsiVolume *volume) {
        if (volume->is_read_only || volume->is_group_left_alone || volume->is_block)
                return false;
        return volume->is_group_by_file || (volume->fs_type && volume->fs_type[0] &&
                                            (volume->access == CSI_ACCESS_READ_WRITE_ONCE ||
                                             volume->access == CSI_ACCESS_READ_WRITE_ONCE_POD));
}

static void hash_texts(const char *const *texts, size_t n, char ret[CSI_NAME_SIZE]) {
        Sha256 *hash = sha256_new();

        memcpy(ret, "csi-", 4);
        ret[4] = '\0';
        if (!hash)
                return;
        for (size_t i = 0; i < n; i++)
                sha256_update(hash, texts[i], strlen(texts[i]));
        sha256_finish(hash, ret + 4);
        sha256_free(hash);
}

void csi_attachment_name(const char *handle, const char *driver, const char *node,
                         char ret[CSI_NAME_SIZE]) {
        hash_texts((const char *const[]){ handle, driver, node }, 3, ret);
}

void csi_ephemeral_handle(const char *pod_uid, const char *volume, char ret[CSI_NAME_SIZE]) {
        hash_texts((const char *const[]){ pod_uid, volume }, 2, ret);
}

char *csi_publish_dir(const char *pod_uid, const char *name) {
        return text_format("pods/%s/volumes/kubernetes.io~csi/%s", pod_uid, name);
}

char *csi_stage_dir(const char *driver, const char *handle) {
        char hex[SHA256_HEX_SIZE];

        sha256_hex(handle, strlen(handle), hex);
        return text_format("plugins/kubernetes.io/csi/%s/%s", driver, hex);
}

#define BLOCK_DEVICES "plugins/kubernetes.io/csi/volumeDevices"

char *csi_block_data_dir(const char *name) {
        return text_format(BLOCK_DEVICES "/%s/data", name);
}

char *csi_block_stage_dir(const char *name) {
        return text_format(BLOCK_DEVICES "/staging/%s", name);
}

char *csi_block_publish_dir(const char *name) {
        return text_format(BLOCK_DEVICES "/publish/%s", name);
}

char *csi_block_link(const char *pod_uid, const char *name) {
        return text_format("pods/%s/volumeDevices/kubernetes.io~csi/%s", pod_uid, name);
}
