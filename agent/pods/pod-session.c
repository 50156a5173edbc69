/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod-worker.h"

#include "agent/bundle/paths.h"
#include "agent/pods/pod-worker-private.h"

#include <errno.h>

/* A person's session in a container is between him and the shim; here it is only found. */

int pod_worker_open_session(PodWorker *worker, const char *container, const SandboxSession *session,
                            int socket_fd, Error *reterr) {
        PodContainer *c = pod_worker_find_container(worker, container);
        SandboxSession with_id = *session;
        char id[65];
        int r;

        if (!c)
                return error_setf(reterr, ENOENT, "container not found (\"%s\")", container);
        if (!container_machine_is_up(c->machine) || !worker->sandbox)
                return error_setf(reterr, EAGAIN, "container \"%s\" in pod \"%s\" is not running",
                                  container, worker->pod->metadata.name);
        if (socket_fd < 0)
                return 0;
        container_id(worker->pod->metadata.uid, container, container_machine_attempt(c->machine),
                     id);
        with_id.container = id;
        r = sandbox_open_session(worker->sandbox, &with_id, socket_fd);
        return r < 0 ? error_prefixf(reterr, r, "cannot ask the pod's shim") : 0;
}
