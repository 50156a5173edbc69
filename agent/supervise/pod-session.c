/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervise/pod.h"

#include "agent/bundle/paths.h"
#include "agent/supervise/pod-internal.h"

#include <errno.h>

/* A person's session in a container is between him and the shim; here it is only found. */

int pod_life_session(PodLife *life, const char *container, const SandboxSession *session,
                     int socket_fd, Error *reterr) {
        PodContainer *c = pod_life_find_container(life, container);
        SandboxSession with_id = *session;
        char id[65];
        int r;

        if (!c)
                return error_setf(reterr, ENOENT, "container not found (\"%s\")", container);
        if (!container_is_up(c->life) || !life->sandbox)
                return error_setf(reterr, EAGAIN, "container \"%s\" in pod \"%s\" is not running",
                                  container, life->pod->metadata.name);
        if (socket_fd < 0)
                return 0;
        container_id(life->pod->metadata.uid, container, container_attempt(c->life), id);
        with_id.container = id;
        r = sandbox_session(life->sandbox, &with_id, socket_fd);
        return r < 0 ? error_prefixf(reterr, r, "cannot ask the pod's shim") : 0;
}
