/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemonset/daemonset-action.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const Manifest *find_manifest_of_file(const ManifestDirectory *directory, const char *file) {
        const Manifest *const *manifests;
        size_t n = manifest_directory_list(directory, &manifests);

        for (size_t i = 0; i < n; i++)
                if (streq(manifests[i]->file, file))
                        return manifests[i];
        return NULL;
}

/* Deleting a DaemonSet removes its file, unless the file contains other objects. */
static int delete_daemonset_manifest(const DaemonSetAction *action, const char *namespace,
                                     const char *name, bool orphan, Error *reterr) {
        const PodSource *source =
                daemonset_controller_find_source(action->controller, namespace, name, reterr);
        const char *file = source ? pod_source_format(source) : NULL;
        const Manifest *manifest = file ? find_manifest_of_file(action->manifests, file) : NULL;
        cleanup_free char *path = NULL;
        int r = file ? 0 : -ENOENT;

        if (r < 0)
                return r;
        if (manifest && manifest_is_fetched(manifest))
                return error_setf(reterr, EINVAL, "%s is not a file of this node; remove it there",
                                  file);
        if (!manifest || manifest->error ||
            manifest->pods.n + manifest->data.n + manifest->daemonsets.n != 1)
                return error_setf(
                        reterr, EINVAL,
                        "%s contains other objects as well; remove the set from it by hand", file);
        path = path_join(action->manifest_dir, file);
        if (!path)
                return -ENOMEM;
        if (orphan) {
                r = daemonset_controller_orphan_pods(action->controller, namespace, name, reterr);
                if (r < 0)
                        return r;
                action->on_recompute_due(action->userdata);
        }
        if (unlink(path) >= 0)
                return 0;
        r = error_setf(reterr, errno, "cannot remove %s: %s", path, strerror(errno));
        if (orphan)
                daemonset_controller_readopt_pods(action->controller, namespace, name);
        return r;
}

int daemonset_action_run(const DaemonSetAction *action, const char *namespace, const char *name,
                         const char *verb, int64_t revision, Error *reterr) {
        if (streq(verb, "undo"))
                return daemonset_controller_undo_rollout(action->controller, namespace, name,
                                                         revision, reterr);
        if (streq(verb, "restart"))
                return daemonset_controller_restart_rollout(action->controller, namespace, name,
                                                            reterr);
        return delete_daemonset_manifest(action, namespace, name, streq(verb, "orphan"), reterr);
}
