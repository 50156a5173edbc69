/* SPDX-License-Identifier: Apache-2.0 */
/* <state>/cluster/ended/<uid>: the last words of a pod that an API server wanted and that has
 * succeeded or failed. After a boot nothing of it is left but this, and it must not begin again. */

#include "agent/cluster-private.h"

#include "agent/model/names.h"
#include "common/cleanup.h"

#include <unistd.h>

enum {
        ENDED_MAX = 4 * 1024 * 1024
};

static const char directory[] = "ended";

void cluster_note_ended(Cluster *cluster, const char *uid, const char *json) {
        cluster_keep(cluster, directory, uid, json);
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
        return !is_of_this_boot(cluster, uid) &&
               cluster_read_kept(cluster, directory, uid, ENDED_MAX, ret_json) >= 0;
}

void cluster_forget_ended(Cluster *cluster, const char *uid) {
        cluster_keep(cluster, directory, uid, NULL);
}
