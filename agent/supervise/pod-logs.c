/* SPDX-License-Identifier: Apache-2.0 */
/* Which file "logs" means. */

#include "agent/bundle/logs.h"
#include "agent/bundle/paths.h"
#include "agent/supervise/pod-internal.h"
#include "common/cleanup.h"
#include "common/file.h"

/* As the kubelet has it: while nothing runs, what ended last is both the latest and the previous.
 */
static int choose_attempt(const PodLife *life, const PodContainer *c, bool previous,
                          unsigned *ret_attempt, Error *reterr) {
        const char *pod = life->pod->metadata.name, *container = c->spec->name;
        int last = bundle_last_logged_attempt(life->context->bundle, life->pod, container);

        if (last < 0 && !previous)
                return error_setf(reterr, EAGAIN,
                                  "container \"%s\" in pod \"%s\" is waiting to start: %s",
                                  container, pod, container_waiting_reason(c->life));
        if (previous && container_has_process(c->life))
                last--;
        if (last < 0)
                return error_setf(reterr, ENOENT,
                                  "previous terminated container \"%s\" in pod \"%s\" not found",
                                  container, pod);
        *ret_attempt = (unsigned) last;
        return 0;
}

int pod_life_find_log(PodLife *life, const char *container, bool previous, char **ret_directory,
                      unsigned *ret_attempt, bool *ret_is_live, Error *reterr) {
        const PodContainer *c = pod_life_find_container(life, container);
        cleanup_free char *log_dir = pod_log_dir(life->context->bundle, life->pod);
        unsigned attempt;
        char *directory;
        int r;

        if (!log_dir)
                return -ENOMEM;
        if (!c)
                return error_setf(reterr, ENOENT, "container %s is not valid for pod %s", container,
                                  life->pod->metadata.name);
        r = choose_attempt(life, c, previous, &attempt, reterr);
        if (r < 0)
                return r;
        directory = path_join(log_dir, container);
        if (!directory)
                return -ENOMEM;
        *ret_directory = directory;
        *ret_attempt = attempt;
        *ret_is_live = container_has_process(c->life) && container_attempt(c->life) == attempt;
        return 0;
}
