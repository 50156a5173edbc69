/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/rollout-pod.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/pod-selection.h"
#include "agent/cli/watch.h"
#include "agent/cli/words.h"
#include "agent/model/json.h"
#include "agent/model/own-keys.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <errno.h>
#include <stdio.h>

typedef struct PodRolloutWait {
        const char *namespace;
        const char *name;
        bool is_announced;
        Error *reterr;
} PodRolloutWait;

static int on_rollout_pod(const char *type, json_t *pod, void *userdata) {
        PodRolloutWait *wait = userdata;
        const char *reason = own_pod_json_value(pod, OWN_KEY_ROLLED_BACK);

        if (streq(type, "DELETED") || !pod_is_called(pod, wait->name) ||
            !streq_ptr(json_text(pod, "metadata", "namespace"), wait->namespace))
                return 0;
        if (reason)
                return error_setf(wait->reterr, ETIME,
                                  "pod \"%s\" exceeded its progress deadline: %s", wait->name,
                                  reason);
        if (pod_json_is_ready_or_done(pod)) {
                print_line(stdout, "pod \"%s\" successfully rolled out", wait->name);
                return 1;
        }
        if (!wait->is_announced)
                print_line(stdout, "Waiting for pod \"%s\" to be ready...", wait->name);
        wait->is_announced = true;
        fflush(stdout);
        return 0;
}

int show_pod_rollout_status(const Options *options, const char *namespace, const char *name,
                            Error *reterr) {
        PodRolloutWait wait = { .namespace = namespace, .name = name, .reterr = reterr };
        char *const names[] = { strdupa(name) };
        cleanup_json json_t *pods = NULL;
        int r = pods_fetch(options->socket,
                           &(PodFilter){ .namespace = namespace, .names = names, .n_names = 1 },
                           &pods, reterr);

        if (r < 0)
                return r;
        if (json_array_size(pods) == 0)
                return error_setf(reterr, ENOENT, "pods \"%s\" not found", name);
        return watch_objects(options->socket, "/pods?watch=1", on_rollout_pod, &wait, reterr);
}
