/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/shim-session.h"

#include "agent/shim/sandbox-state.h"
#include "agent/shim/session-command.h"
#include "agent/shim/session-run.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <limits.h>

typedef struct ExecSessionTask {
        Shim *shim;
        SessionSpec spec;
        unsigned attachment; /* number of the attachment; 0: the session runs a command */
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

static int compare_descriptors(const void *a, const void *b) {
        int x = *(const int *) a, y = *(const int *) b;

        return (x > y) - (x < y);
}

/* Closes the shim's other descriptors: a session may last for days and must not hold them. */
static void close_unused_descriptors(const SessionSpec *spec) {
        const AttachmentStreams *streams = &spec->streams;
        int kept[] = { STDERR_FILENO,     spec->socket_fd,     streams->output_fd,
                       streams->error_fd, streams->notice_fd,  streams->resume_fd,
                       streams->input_fd, streams->terminal_fd };

        qsort(kept, N_ELEMENTS(kept), sizeof(kept[0]), compare_descriptors);
        for (size_t i = 0; i < N_ELEMENTS(kept); i++) {
                unsigned first = (unsigned) kept[i] + 1;
                unsigned end = i + 1 < N_ELEMENTS(kept) ? (unsigned) kept[i + 1] : UINT_MAX;

                if (kept[i] >= STDERR_FILENO && first < end)
                        (void) close_range(first, end == UINT_MAX ? end : end - 1, 0);
        }
}

/* In a task. Errors have been reported to the client. */
static int exec_session_main(void *userdata, Error *reterr) {
        const ExecSessionTask *session = userdata;
        const SessionSpec *spec = &session->spec;
        const SessionPipes none = SESSION_PIPES_NULL;

        close_unused_descriptors(spec);
        if (spec->attaches || spec->refusal)
                (void) session_copy(spec, &none, getppid());
        else
                (void) session_command_run(spec);
        return 0;
}

/* NULL: it is gone. */
static ContainerOutput *find_attachable_output(const Shim *shim, const char *id) {
        Attempt *attempt = attempt_find(&shim->attempts, id);

        return attempt ? attempt->output : NULL;
}

static void end_session_task(ExecSessionTask *session) {
        ContainerOutput *output = find_attachable_output(session->shim, session->spec.container);

        if (output && session->attachment > 0)
                container_output_detach(output, session->attachment);
        exec_session_task_free(session);
}

static void on_session_task_done(const TaskResult *result, void *userdata) {
        ExecSessionTask *session = userdata;

        session->shim->n_sessions--;
        end_session_task(session);
}

static const char *find_session_refusal(const Shim *shim, const ShimRequest *request) {
        const Attempt *attempt = attempt_find(&shim->attempts, request->id);

        if (shim->n_sessions >= SESSIONS_MAX)
                return "the pod has too many sessions already";
        if (!attempt || attempt->state != ATTEMPT_RUNNING || shim->tearing_down)
                return "the container is not running";
        return request->type == SHIM_REQUEST_SESSION && request->arguments.n == 0
                       ? "you must specify at least one command"
                       : NULL;
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
                .streams = ATTACHMENT_STREAMS_NULL,
                .attaches = request->type == SHIM_REQUEST_ATTACH,
                .refusal = find_session_refusal(shim, request),
                .has_input = request->has_input,
                .has_output = request->has_output,
                .has_error = request->has_error,
                .has_terminal = request->has_terminal,
                .is_held = request->is_held,
        };
        if (!session->spec.attaches)
                session->spec.directory = text_format("%s/exec%u", shim->pod_dir, ++serial);
        for (size_t i = 0; i < request->arguments.n; i++)
                if (strv_append(&session->spec.argv, request->arguments.items[i]) < 0)
                        return NULL;
        if (!session->spec.container || (!session->spec.directory && !session->spec.attaches))
                return NULL;
        return TAKE_PTR(session);
}

/* Opens the container's streams for the session. 0 or -errno. */
static int attach_session(ExecSessionTask *session, const ContainerAttach *attach) {
        ContainerOutput *output = find_attachable_output(session->shim, session->spec.container);
        int r;

        if (!session->spec.attaches || session->spec.refusal || !output)
                return 0;
        r = container_output_attach(output, attach, &session->spec.streams);
        if (r < 0)
                return r;
        session->attachment = (unsigned) r;
        return 0;
}

/* The session's process has its own copies. */
static void release_attached_streams(ExecSessionTask *session, const ContainerAttach *attach) {
        ContainerOutput *output = find_attachable_output(session->shim, session->spec.container);

        attachment_streams_close(&session->spec.streams);
        if (output && session->attachment > 0)
                container_output_attached(output, attach);
}

void session_begin(Shim *shim, const ShimRequest *request, int socket_fd_consume) {
        cleanup_close int socket_fd = socket_fd_consume;
        ExecSessionTask *session = exec_session_task_new(shim, request);
        const ContainerAttach attach = { .has_output = request->has_output,
                                         .has_error = request->has_error,
                                         .has_input = request->has_input,
                                         .is_input_once = request->is_input_once };
        TaskSpec spec = { .main = exec_session_main,
                          .done = on_session_task_done,
                          .userdata = session,
                          .deadline = USEC_INFINITY };
        int r;

        if (!session)
                return; /* the client sees the end of the connection */
        session->spec.socket_fd = socket_fd;
        r = socket_fd < 0 ? socket_fd : attach_session(session, &attach);
        if (r >= 0)
                r = task_start(&shim->tasks, &spec);
        /* The shim still owns the socket, even if the task has a copy, because the connection must
         * end with the task. */
        session->spec.socket_fd = -EBADF;
        if (r < 0) {
                attachment_streams_close(&session->spec.streams);
                end_session_task(session);
                return;
        }
        release_attached_streams(session, &attach);
        shim->n_sessions++;
}
