/* SPDX-License-Identifier: Apache-2.0 */
/* <state>/cluster/ended/<uid>: the last words of a pod that an API server wanted and that has
 * succeeded or failed. After a boot nothing of it is left but this, and it must not begin again. */

#include "agent/cluster-private.h"

#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/sealed.h"

#include <fcntl.h>
#include <unistd.h>

enum {
        ENDED_MAX = 4 * 1024 * 1024
};

void cluster_note_ended(Cluster *cluster, const char *uid, const char *json) {
        cleanup_close int fd = cluster_open_kept(cluster, "ended");
        int r = fd < 0 ? fd : sealed_write_at(fd, uid, json, 0600);

        if (r < 0)
                (void) log_error_errno(r, "Cannot note that pod %s has ended", uid);
}

/* What is left of the run of this boot is known by whoever ran it. */
static bool is_of_this_boot(const Cluster *cluster, const char *uid) {
        cleanup_free char *path = NULL;

        if (asprintf(&path, "%s/pods/%s", cluster->config.run_dir, uid) < 0) {
                path = NULL;
                return false;
        }
        return access(path, F_OK) >= 0;
}

bool cluster_has_ended(const Cluster *cluster, const char *uid, char **ret_json) {
        cleanup_close int fd = cluster_open_kept(cluster, "ended");

        if (fd < 0 || is_of_this_boot(cluster, uid))
                return false;
        return sealed_read_at(fd, uid, ENDED_MAX, ret_json) >= 0;
}

void cluster_forget_ended(Cluster *cluster, const char *uid) {
        cleanup_close int fd = cluster_open_kept(cluster, "ended");

        if (fd >= 0)
                (void) unlinkat(fd, uid, 0);
}
