/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/session.h"

#include "agent/shim/sandbox-state.h"
#include "agent/shim/session-run.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"

#include <fcntl.h>
#include <limits.h>

typedef struct ExecSessionTask {
        Shim *shim;
        SessionSpec spec;
} ExecSessionTask;

static ExecSessionTask *exec_session_task_free(ExecSessionTask *session) {
        if (!session)
                return NULL;
        close_fd(session->spec.socket_fd);
        free(session->spec.directory);
        free(session->spec.container);
        strv_free(session->spec.argv);
        free(session);
        return NULL;
}
DEFINE_CLEANUP(ExecSessionTask *, exec_session_task_free)

/* Closes the other descriptors, which are the shim's: a session may last for days and must not hold
 * them. */
static int close_descriptors_except(int fd) {
        enum {
                KEPT = 3
        };

        if (fd != KEPT && dup3(fd, KEPT, O_CLOEXEC) < 0)
                return -errno;
        (void) close_range(KEPT + 1, UINT_MAX, 0);
        return KEPT;
}

/* In a task. Errors have been reported to the client. */
static int exec_session_main(void *userdata, Error *reterr) {
        const ExecSessionTask *session = userdata;
        SessionSpec spec = session->spec;

        spec.socket_fd = close_descriptors_except(spec.socket_fd);
        if (spec.socket_fd >= 0)
                (void) session_run(&spec);
        return 0;
}

static void on_session_task_done(const TaskResult *result, void *userdata) {
        ExecSessionTask *session = userdata;

        session->shim->n_sessions--;
        exec_session_task_free(session);
}

static const char *find_session_refusal(const Shim *shim, const ShimRequest *request) {
        const Attempt *attempt = attempt_find(&shim->attempts, request->id);

        if (shim->n_sessions >= SESSIONS_MAX)
                return "the pod has too many sessions already";
        if (!attempt || attempt->state != ATTEMPT_RUNNING || shim->tearing_down)
                return "the container is not running";
        return request->arguments.n == 0 ? "you must specify at least one command" : NULL;
}

static ExecSessionTask *exec_session_task_new(Shim *shim, const ShimRequest *request) {
        static unsigned serial;
        cleanup_with(exec_session_task_freep) ExecSessionTask *session =
                calloc(1, sizeof(*session));

        if (!session)
                return NULL;
        session->shim = shim;
        session->spec = (SessionSpec){
                .runtime = shim_runtime(shim),
                .container = strdup(request->id),
                .socket_fd = -EBADF,
                .refusal = find_session_refusal(shim, request),
                .has_input = request->has_input,
                .has_output = request->has_output,
                .has_error = request->has_error,
                .has_terminal = request->has_terminal,
        };
        if (asprintf(&session->spec.directory, "%s/exec%u", shim->pod_dir, ++serial) < 0)
                session->spec.directory = NULL;
        for (size_t i = 0; i < request->arguments.n; i++)
                if (strv_append(&session->spec.argv, request->arguments.items[i]) < 0)
                        return NULL;
        return session->spec.container && session->spec.directory ? TAKE_PTR(session) : NULL;
}

void session_begin(Shim *shim, const ShimRequest *request, int socket_fd_consume) {
        cleanup_close int socket_fd = socket_fd_consume;
        cleanup_with(exec_session_task_freep) ExecSessionTask *session =
                exec_session_task_new(shim, request);
        TaskSpec spec = { .main = exec_session_main,
                          .done = on_session_task_done,
                          .userdata = session,
                          .deadline = USEC_INFINITY };

        if (!session || socket_fd < 0)
                return; /* the client sees the end of the connection */
        session->spec.socket_fd = socket_fd;
        if (task_start(&shim->tasks, &spec) < 0) {
                session->spec.socket_fd = -EBADF; /* ours still */
                return;
        }
        /* The task holds it now; the connection must end with the task. */
        session->spec.socket_fd = -EBADF;
        shim->n_sessions++;
        (void) TAKE_PTR(session);
}
