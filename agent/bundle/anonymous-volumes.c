/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/anonymous-volumes.h"

#include "agent/bundle/mount-list.h"
#include "agent/bundle/pod-paths.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"

size_t anonymous_volume_count(const RuntimeSpecInput *input) {
        return input->config->has_old_shim ? 0 : strv_length(input->image->volumes);
}

char *anonymous_volumes_dir(const RuntimeSpecInput *input) {
        cleanup_free char *state_dir = container_state_dir(input->config, input->pod->metadata.uid,
                                                           input->container->name, input->attempt);

        return state_dir ? path_join(state_dir, "volumes") : NULL;
}

char *anonymous_volume_path(const RuntimeSpecInput *input, size_t i) {
        cleanup_free char *directory = anonymous_volumes_dir(input);

        return directory ? text_format("%s/%zu", directory, i) : NULL;
}

bool is_runtime_mount(const char *path) {
        return TEXT_IS_ANY_OF(path, "/proc", "/dev", "/dev/pts", "/dev/mqueue", "/sys",
                              "/sys/fs/cgroup");
}

int anonymous_volumes_fstab(const RuntimeSpecInput *input, char **ret) {
        cleanup_free char *bundle = container_bundle_dir(input->config, input->pod->metadata.uid,
                                                         input->container->name, input->attempt);
        cleanup_free char *rootfs = bundle ? path_join(bundle, "rootfs") : NULL;
        char *text = NULL;
        size_t length;
        FILE *out = rootfs ? open_memstream(&text, &length) : NULL;
        int r = 0;

        if (!out)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < anonymous_volume_count(input); i++) {
                cleanup_free char *path = anonymous_volume_path(input, i);

                if (!path) {
                        r = -ENOMEM;
                        continue;
                }
                fstab_put_copy(out, input->image->volumes[i], path, rootfs);
                if (input->labels.file)
                        fstab_put_label(out, path, NULL, input->labels.file);
        }
        *ret = memstream_finish(out, &text);
        if (*ret && r < 0)
                free(TAKE_PTR(*ret));
        return *ret ? 0 : -ENOMEM;
}
