/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the terminated-pod cache. Other files decide when a pod has terminated. */

#include "agent/apiserver/terminated-pods.h"

#include "common/cleanup.h"
#include "common/text.h"

#include <unistd.h>

enum {
        TERMINATED_POD_MAX_BYTES = 4 * 1024 * 1024
};

static const char terminated_pods_directory[] = "ended"; /* on disk: earlier versions use this name
                                                          */

void terminated_pods_add(ApiServerCache *cache, const char *uid, const char *json) {
        apiserver_cache_write(cache, terminated_pods_directory, uid, json);
}

void terminated_pods_remove(ApiServerCache *cache, const char *uid) {
        apiserver_cache_write(cache, terminated_pods_directory, uid, NULL);
}

static bool has_run_this_boot(const char *run_dir, const char *uid) {
        cleanup_free char *path = NULL;

        path = text_format("%s/pods/%s", run_dir, uid);
        if (!path)
                return false;
        return access(path, F_OK) >= 0;
}

bool terminated_pods_find(const ApiServerCache *cache, const char *run_dir, const char *uid,
                          char **ret_json) {
        return !has_run_this_boot(run_dir, uid) &&
               apiserver_cache_read(cache, terminated_pods_directory, uid, TERMINATED_POD_MAX_BYTES,
                                    ret_json) >= 0;
}
