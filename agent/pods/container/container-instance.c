/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on a container that also need its pod: its ID, its logs (kubectl logs), its sessions
 * (kubectl exec, attach, port-forward). */

#include "agent/pods/container/container-instance.h"

#include "agent/bundle/log-paths.h"
#include "agent/bundle/pod-paths.h"
#include "agent/model/containers.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

void container_instance_print_id(const ContainerInstance *c, char id[CONTAINER_ID_SIZE]) {
        container_id(c->pod->pod->metadata.uid, c->spec->name,
                     container_machine_attempt(c->machine), id);
}

bool container_instance_is_ephemeral(const ContainerInstance *c) {
        return container_role(&c->pod->pod->spec, c->spec) == ROLE_EPHEMERAL;
}

int container_instance_print_target_id(const ContainerInstance *target, const char *name,
                                       char id[CONTAINER_ID_SIZE], Error *reterr) {
        if (!target || !container_machine_is_up(target->machine))
                return error_setf(reterr, ENOENT, "the target container \"%s\" is not running",
                                  name);
        container_instance_print_id(target, id);
        return 0;
}

HandlerTarget container_instance_handler_target(const ContainerInstance *c,
                                                char id[CONTAINER_ID_SIZE]) {
        PodContext *context = c->pod->context;

        container_instance_print_id(c, id);
        return (HandlerTarget){
                .event = context->event,
                .http = &context->http,
                .sandbox = c->pod->sandbox,
                .container = c->spec,
                .id = id,
                .address = pod_instance_address(c->pod),
        };
}

/* ---- logs ---- */

/* Every attempt that runs or has ended has had a log file. */
static bool has_lost_log(const ContainerInstance *c) {
        return container_machine_is_running(c->machine) ||
               container_machine_terminated_state(c->machine);
}

/* In the kubelet's wording. */
static int refuse_lost_log(const ContainerInstance *c, Error *reterr) {
        cleanup_free char *log_dir = pod_log_dir(c->pod->context->bundle, c->pod->pod);
        cleanup_free char *path = NULL;

        if (log_dir)
                path = text_format("%s/%s/%u.log", log_dir, c->spec->name,
                                   container_machine_attempt(c->machine));
        if (!path)
                return -ENOMEM;
        return error_setf(reterr, ENOENT,
                          "failed to try resolving symlinks in path \"%s\": lstat %s: no such file "
                          "or directory",
                          path, path);
}

/* --previous: the attempt that is the lastState in the status. While the container waits to run
 * again, this is the latest attempt; while it runs, and after it has ended, the one before that. */
static int choose_previous_attempt(const ContainerInstance *c, unsigned *ret_attempt,
                                   Error *reterr) {
        if (container_machine_last_attempt(c->machine, ret_attempt) &&
            bundle_has_log(c->pod->context->bundle, c->pod->pod, c->spec->name, *ret_attempt))
                return 0;
        return error_setf(reterr, ENOENT,
                          "previous terminated container \"%s\" in pod \"%s\" not found",
                          c->spec->name, c->pod->pod->metadata.name);
}

/* The kubelet's reasons for a container that cannot start. */
static const char *describe_waiting(const ContainerInstance *c) {
        const char *reason = container_machine_waiting_reason(c->machine);

        if (streq(reason, "ErrImagePull"))
                return "image can't be pulled";
        if (streq(reason, "ImagePullBackOff"))
                return "trying and failing to pull image";
        return reason;
}

/* The log of an attempt that is being created is empty: until it runs, the previous attempt's log
 * is shown. */
static int choose_latest_attempt(const ContainerInstance *c, unsigned *ret_attempt, Error *reterr) {
        const char *pod = c->pod->pod->metadata.name, *container = c->spec->name;
        int last = bundle_last_logged_attempt(c->pod->context->bundle, c->pod->pod, container);

        if (container_machine_is_creating(c->machine) &&
            choose_previous_attempt(c, ret_attempt, NULL) == 0)
                return 0;
        if (last < 0 && has_lost_log(c))
                return refuse_lost_log(c, reterr);
        if (last < 0)
                return error_setf(reterr, EAGAIN,
                                  "container \"%s\" in pod \"%s\" is waiting to start: %s",
                                  container, pod, describe_waiting(c));
        *ret_attempt = (unsigned) last;
        return 0;
}

int container_instance_find_log(const ContainerInstance *c, bool previous, char **ret_directory,
                                unsigned *ret_attempt, bool *ret_is_live, Error *reterr) {
        cleanup_free char *log_dir = pod_log_dir(c->pod->context->bundle, c->pod->pod);
        unsigned attempt;
        char *directory;
        int r;

        if (!log_dir)
                return -ENOMEM;
        r = previous ? choose_previous_attempt(c, &attempt, reterr)
                     : choose_latest_attempt(c, &attempt, reterr);
        if (r < 0)
                return r;
        directory = path_join(log_dir, c->spec->name);
        if (!directory)
                return -ENOMEM;
        *ret_directory = directory;
        *ret_attempt = attempt;
        *ret_is_live = container_machine_has_process(c->machine) &&
                       container_machine_attempt(c->machine) == attempt;
        return 0;
}

/* ---- sessions ---- */

static int check_container_is_up(const ContainerInstance *c, Error *reterr) {
        if (container_machine_is_up(c->machine) && c->pod->sandbox)
                return 0;
        return error_setf(reterr, EAGAIN, "container \"%s\" in pod \"%s\" is not running",
                          c->spec->name, c->pod->pod->metadata.name);
}

/* The session itself connects the client and the shim directly; the agent only finds the container.
 */
int container_instance_open_session(const ContainerInstance *c, const SandboxSession *session,
                                    int socket_fd, Error *reterr) {
        SandboxSession with_id = *session;
        char id[CONTAINER_ID_SIZE];
        int r = check_container_is_up(c, reterr);

        if (r < 0 || socket_fd < 0)
                return r;
        container_instance_print_id(c, id);
        with_id.container = id;
        r = sandbox_open_session(c->pod->sandbox, &with_id, socket_fd);
        return r < 0 ? error_prefixf(reterr, r, "cannot ask the pod's shim") : 0;
}

int container_instance_attach(const ContainerInstance *c, const SandboxAttach *attach,
                              int socket_fd, Error *reterr) {
        char id[CONTAINER_ID_SIZE];
        SandboxAttach to_container = {
                .container = id,
                .has_input = attach->has_input && c->spec->has_stdin,
                .has_output = attach->has_output,
                .has_error = attach->has_error && !c->spec->tty,
                .has_terminal = c->spec->tty,
                .is_input_once = c->spec->stdin_once && !c->spec->tty,
        };
        int r = check_container_is_up(c, reterr);

        if (r < 0)
                return r;
        if (!sandbox_can_attach(c->pod->sandbox))
                return error_setf(reterr, ENOTSUP,
                                  "the shim of pod \"%s\" was started by an older agent, which did "
                                  "not support attach; it does in a new instance of the pod",
                                  c->pod->pod->metadata.name);
        if (socket_fd < 0)
                return 0;
        container_instance_print_id(c, id);
        r = sandbox_attach(c->pod->sandbox, &to_container, socket_fd);
        return r < 0 ? error_prefixf(reterr, r, "cannot ask the pod's shim") : 0;
}
