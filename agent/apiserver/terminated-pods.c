/* SPDX-License-Identifier: Apache-2.0 */
/* <state>/cluster/ended/<uid>: the last words of a pod that an API server wanted and that has
 * succeeded or failed. After a boot nothing of it is left but this, and it must not begin again. */

#include "agent/apiserver/apiserver-private.h"

#include "agent/model/names.h"
#include "common/cleanup.h"

#include <unistd.h>

enum {
        TERMINATED_POD_MAX_BYTES = 4 * 1024 * 1024
};

static const char terminated_pods_directory[] = "ended";

void apiserver_cache_terminated_pod(ApiServerSync *api, const char *uid, const char *json) {
        apiserver_cache_write(api, terminated_pods_directory, uid, json);
}

/* What is left of the run of this boot is known by whoever ran it. */
static bool has_run_this_boot(const ApiServerSync *api, const char *uid) {
        cleanup_free char *path = NULL;

        if (asprintf(&path, "%s/pods/%s", api->config.run_dir, uid) < 0) {
                path = NULL;
                return false;
        }
        return access(path, F_OK) >= 0;
}

bool apiserver_find_terminated_pod(const ApiServerSync *api, const char *uid, char **ret_json) {
        return !has_run_this_boot(api, uid) &&
               apiserver_cache_read(api, terminated_pods_directory, uid, TERMINATED_POD_MAX_BYTES,
                                    ret_json) >= 0;
}

void apiserver_forget_terminated_pod(ApiServerSync *api, const char *uid) {
        apiserver_cache_write(api, terminated_pods_directory, uid, NULL);
}
