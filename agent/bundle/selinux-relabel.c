/* SPDX-License-Identifier: Apache-2.0 */
/* Relabeling is requested with each attempt. Files with the right label are not changed; other
 * files, for example after an edit or after the whole disk was relabelled by path, get the right
 * one. */

#include "agent/bundle/selinux-relabel.h"

#include "agent/bundle/mount-list.h"
#include "agent/bundle/pod-paths.h"
#include "agent/bundle/volume-mounts.h"
#include "common/cleanup.h"
#include "common/file.h"

/* Takes ownership of the path. */
static int put_relabel_line(FILE *out, char *path_to_take, const char *volume, const char *label) {
        cleanup_free char *path = path_to_take;

        if (!path)
                return -ENOMEM;
        if (label)
                fstab_put_label(out, path, volume, label);
        return 0;
}

/* The pod's files of /etc may be absent, as in the host network. */
static int put_relabel_pod_files(FILE *out, const RuntimeSpecInput *input) {
        static const char *const files[] = { "/hosts", "/hostname", "/resolv.conf" };
        const char *uid = input->pod->metadata.uid;
        cleanup_free char *label = NULL;
        int r = selinux_shared_label(input->config, input->pod, NULL, &label);

        if (r < 0)
                return r;
        for (size_t i = 0; i < N_ELEMENTS(files); i++) {
                cleanup_free char *path = pod_etc_file_path(input->config, uid, files[i]);

                if (!path)
                        return -ENOMEM;
                if (access(path, F_OK) >= 0)
                        r = put_relabel_line(out, TAKE_PTR(path), NULL, label);
                if (r < 0)
                        return r;
        }
        if (!input->pod->spec.host_ipc)
                return put_relabel_line(out, pod_shm_dir(input->config, uid), NULL, label);
        return 0;
}

static int put_relabel_volumes(FILE *out, const RuntimeSpecInput *input) {
        const Container *container = input->container;
        int r;

        for (size_t i = 0; i < container->volume_mounts.n; i++) {
                const Volume *volume =
                        pod_find_volume(&input->pod->spec, container->volume_mounts.items[i].name);
                cleanup_free char *label = NULL;

                if (!volume || volume->host_path || volume->image || volume->nfs ||
                    volume->persistent_volume_claim || volume->ephemeral)
                        continue;
                r = selinux_shared_label(input->config, input->pod, volume, &label);
                if (r < 0)
                        return r;
                r = put_relabel_line(out,
                                     volume_path(input->config, input->pod->metadata.uid, volume),
                                     volume->name, label);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int put_relabel_lines(FILE *out, const RuntimeSpecInput *input) {
        int r = put_relabel_pod_files(out, input);

        if (r < 0)
                return r;
        r = put_relabel_volumes(out, input);
        if (r < 0)
                return r;
        return put_relabel_line(out,
                                termination_log_path(input->config, input->pod->metadata.uid,
                                                     input->container->name, input->attempt),
                                NULL, input->labels.file);
}

int selinux_relabel_fstab(const RuntimeSpecInput *input, char **ret) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        int r;

        if (!out)
                return -ENOMEM;
        r = input->labels.file ? put_relabel_lines(out, input) : 0;
        text = memstream_finish(out, &text);
        if (text && r >= 0) {
                *ret = text;
                return 0;
        }
        free(text);
        return r < 0 ? r : -ENOMEM;
}
