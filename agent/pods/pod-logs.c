/* SPDX-License-Identifier: Apache-2.0 */
/* Which file "logs" means. */

#include "agent/bundle/logs.h"
#include "agent/bundle/paths.h"
#include "agent/pods/pod-worker-private.h"
#include "common/cleanup.h"
#include "common/file.h"

/* As the kubelet has it: while nothing runs, what ended last is both the latest and the previous.
 */
static int choose_log_attempt(const PodWorker *worker, const PodContainer *c, bool previous,
                              unsigned *ret_attempt, Error *reterr) {
        const char *pod = worker->pod->metadata.name, *container = c->spec->name;
        int last = bundle_last_logged_attempt(worker->context->bundle, worker->pod, container);

        if (last < 0 && !previous)
                return error_setf(reterr, EAGAIN,
                                  "container \"%s\" in pod \"%s\" is waiting to start: %s",
                                  container, pod, container_machine_waiting_reason(c->machine));
        if (previous && container_machine_has_process(c->machine))
                last--;
        if (last < 0)
                return error_setf(reterr, ENOENT,
                                  "previous terminated container \"%s\" in pod \"%s\" not found",
                                  container, pod);
        *ret_attempt = (unsigned) last;
        return 0;
}

int pod_worker_find_log(PodWorker *worker, const char *container, bool previous,
                        char **ret_directory, unsigned *ret_attempt, bool *ret_is_live,
                        Error *reterr) {
        const PodContainer *c = pod_worker_find_container(worker, container);
        cleanup_free char *log_dir = pod_log_dir(worker->context->bundle, worker->pod);
        unsigned attempt;
        char *directory;
        int r;

        if (!log_dir)
                return -ENOMEM;
        if (!c)
                return error_setf(reterr, ENOENT, "container %s is not valid for pod %s", container,
                                  worker->pod->metadata.name);
        r = choose_log_attempt(worker, c, previous, &attempt, reterr);
        if (r < 0)
                return r;
        directory = path_join(log_dir, container);
        if (!directory)
                return -ENOMEM;
        *ret_directory = directory;
        *ret_attempt = attempt;
        *ret_is_live = container_machine_has_process(c->machine) &&
                       container_machine_attempt(c->machine) == attempt;
        return 0;
}
