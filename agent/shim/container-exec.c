/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/container-exec.h"

#include "agent/shim/capture.h"
#include "agent/shim/dummy-interface.h"
#include "agent/shim/router-advertisements.h"
#include "agent/shim/sandbox-state.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/memfd.h"
#include "common/pipe.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

/* How long the end of a program may be delayed to collect its output. */
#define CAPTURED_USEC_MAX (30 * USEC_PER_SEC)

enum {
        ERROR_MAX = 4 * 1024,
        CONTAINER_OUTPUT_MAX =
                COPIER_CAPTURE_MAX, /* as much as the kubelet reads of a probe's output */
        PROGRAMS_MAX = 256,
};

/* A pipe that a program writes to. If the program runs in a container, the copier reads the
 * pipe. */
typedef struct ProgramPipe {
        Capture capture; /* outside of containers */
        int read_fd;     /* in a container: kept for another copier */
        int write_fd;    /* the program's end, kept until the program has started */
} ProgramPipe;

#define PROGRAM_PIPE_NULL \
        { .capture.source.fd = -EBADF, .read_fd = -EBADF, .write_fd = -EBADF }

struct Program {
        Program *next;
        Shim *shim;
        char *id;
        char **argv;
        char **environment;
        char *interface; /* name of the dummy interface; NULL: none is requested */
        char *address;
        int input_fd; /* a memfd, or -EBADF for /dev/null */
        bool in_host;
        bool keeps_router_advertisements;
        bool has_started;
        uint64_t timeout_usec;
        char *container; /* NULL: runs in the shim. Otherwise the container whose PID namespace it
                          * joins; the members below are used only in that case */
        char *pid_file;
        char *log;         /* log of the runtime */
        pid_t pid;         /* set once the runtime has handed the program over */
        uint64_t deadline; /* awake time; USEC_INFINITY: none, or the program was killed */
        bool timed_out;
        unsigned capture_id;
        bool is_ending; /* the program has ended, and the copier still has its output */
        int status;     /* as above: the program's status from waitpid(2) */
        char *message;  /* as above: why the program was not run, or NULL */
        ProgramPipe output;
        ProgramPipe error;
};

/* ---- output ---- */

static void send_capture(const Program *program) {
        CopierMessage message = COPIER_MESSAGE(COPIER_CAPTURE, program->capture_id);

        message.max_size = CONTAINER_OUTPUT_MAX;
        message.fds[COPIER_FD_OUTPUT] = program->output.read_fd;
        copier_send(&program->shim->copier, &message, NULL, 0);
}

static void send_finish(const Program *program) {
        const CopierMessage message = COPIER_MESSAGE(COPIER_FINISH, program->capture_id);

        copier_send(&program->shim->copier, &message, NULL, 0);
}

void programs_send_captures(ProgramList *list) {
        for (const Program *program = list->first; program; program = program->next) {
                if (program->capture_id == 0)
                        continue;
                send_capture(program);
                if (program->is_ending)
                        send_finish(program);
        }
}

static int open_program_pipe(Program *program, ProgramPipe *pipe, size_t max) {
        int pipes[2], r;

        r = pipe_open(PIPE_READ_END, pipes);
        if (r < 0)
                return r;
        pipe->write_fd = pipes[PIPE_WRITE_END];
        if (!program->container)
                return capture_open(&pipe->capture, program->shim->epoll_fd, pipes[PIPE_READ_END],
                                    max);
        pipe->read_fd = pipes[PIPE_READ_END];
        program->capture_id = copier_new_id(&program->shim->copier);
        send_capture(program);
        return 0;
}

static void program_pipe_done(ProgramPipe *pipe) {
        capture_done(&pipe->capture);
        close_fd(pipe->read_fd);
        close_fd(pipe->write_fd);
}

/* ---- running and ending ---- */

static Program *program_free(Program *program) {
        if (!program)
                return NULL;
        program_pipe_done(&program->output);
        program_pipe_done(&program->error);
        free(program->message);
        close_fd(program->input_fd);
        if (program->pid_file)
                runtime_remove_pid_file(program->pid_file);
        if (program->log)
                (void) unlink(program->log);
        free(program->pid_file);
        free(program->log);
        free(program->container);
        free(program->address);
        free(program->interface);
        strv_free(program->environment);
        strv_free(program->argv);
        free(program->id);
        free(program);
        return NULL;
}
DEFINE_CLEANUP(Program *, program_free)

static void program_unlink(Program *program) {
        for (Program **link = &program->shim->programs.first; *link; link = &(*link)->next)
                if (*link == program) {
                        *link = program->next;
                        return;
                }
}

/* If many bytes must be escaped, the captured output does not fit into a packet. */
static void send_exec_done(Shim *shim, ShimEvent *event, Capture *output) {
        cleanup_free char *packet = NULL;
        size_t length;

        event->output = capture_text(output);
        while (output->length > 0 && shim_event_encode(event, &packet, &length) == -EMSGSIZE) {
                output->length /= 2;
                event->output = capture_text(output);
        }
        agent_connection_send(&shim->connection, event);
}

static void start_next_program(Shim *shim);

/* Reports the program's end and frees the program. */
static void report_program(Program *program, const char *message, int status) {
        Shim *shim = program->shim;
        ShimEvent event = {
                .type = SHIM_EVENT_EXEC_DONE,
                .id = program->id,
                .message = message,
                .timed_out = program->timed_out,
                .error = capture_last_line(&program->error.capture),
        };

        if (WIFSIGNALED(status))
                event.signal = WTERMSIG(status);
        event.exit_code = event.signal > 0 ? 128 + event.signal : WEXITSTATUS(status);
        send_exec_done(shim, &event, &program->output.capture);
        program_unlink(program);
        program_free(program);
        start_next_program(shim);
}

/* 'message': why the program was not run, or NULL. Its output is in the pipes; the shim does not
 * wait for a child that keeps them open. */
static void finish_program(Program *program, const char *message, int status) {
        if (program->capture_id > 0) {
                program->is_ending = true;
                program->status = status;
                program->message = message ? strdup(message) : NULL;
                program->pid = 0;
                program->deadline = now_awake_usec() + CAPTURED_USEC_MAX;
                send_finish(program);
                return;
        }
        if (program->has_started) {
                capture_read(&program->output.capture);
                capture_read(&program->error.capture);
        }
        report_program(program, message, status);
}

/* 'text' has 'length' bytes and a NUL; it comes from the copier. */
void program_take_captured(Shim *shim, unsigned id, const char *text, size_t length) {
        Program *program = shim->programs.first;
        Capture *output;

        while (program && !(program->is_ending && program->capture_id == id))
                program = program->next;
        if (!program)
                return;
        output = &program->output.capture;
        output->text = malloc(length + 1);
        if (output->text) {
                memcpy(output->text, text, length);
                output->length = length;
        }
        report_program(program, program->message, program->status);
}

static void on_program_task_done(const TaskResult *result, void *userdata) {
        Program *program = userdata;

        program->timed_out = result->timed_out;
        finish_program(program, result->message[0] ? result->message : NULL, result->status);
}

/* ---- in a container ---- */

/* The program leads a separate session, so its children are killed with it, unless they have left
 * the session. */
static void kill_container_program(Program *program) {
        program->timed_out = true;
        program->deadline = USEC_INFINITY;
        (void) kill(-program->pid, SIGKILL);
        (void) kill(program->pid, SIGKILL);
}

static void finish_unstarted_program(Program *program, const TaskResult *result) {
        cleanup_free char *message = NULL;
        int status = 0;

        /* The runtime may have started the program before it was killed. */
        if (runtime_read_pid(program->pid_file, &program->pid) >= 0 &&
            shim_claim_process(program->shim, program->pid, &status) == 1)
                kill_container_program(program);
        program->timed_out = result->timed_out;
        if (program->timed_out) {
                finish_program(program, NULL, result->status);
                return;
        }
        message = runtime_log_last_error_at(program->log);
        if (!message)
                message = runtime_describe_end(program->shim->options->runtime, "exec",
                                               result->status);
        finish_program(program, result->message[0] ? result->message : strna(message),
                       result->status);
}

/* The runtime has ended; the program that it started continues, or has already ended. */
static void on_exec_runtime_done(const TaskResult *result, void *userdata) {
        Program *program = userdata;
        int status = 0, r;

        if (!task_succeeded(result)) {
                finish_unstarted_program(program, result);
                return;
        }
        r = runtime_read_pid(program->pid_file, &program->pid);
        if (r >= 0)
                r = shim_claim_process(program->shim, program->pid, &status);
        if (r < 0)
                finish_program(program, "the runtime left no process that is a child of the shim",
                               0);
        else if (r == 0)
                finish_program(program, NULL, status);
}

bool program_reap(Shim *shim, pid_t pid, int status) {
        for (Program *program = shim->programs.first; program; program = program->next)
                if (program->pid == pid) {
                        finish_program(program, NULL, status);
                        return true;
                }
        return false;
}

bool programs_are_starting(const ProgramList *list) {
        for (const Program *program = list->first; program; program = program->next)
                if (program->container && program->has_started && program->pid == 0 &&
                    !program->is_ending)
                        return true;
        return false;
}

uint64_t programs_next_deadline(const ProgramList *list) {
        uint64_t deadline = USEC_INFINITY;

        for (const Program *program = list->first; program; program = program->next)
                if (program->pid > 0 || program->is_ending)
                        deadline = MIN(deadline, program->deadline);
        return deadline;
}

static Program *find_overdue_program(const ProgramList *list, uint64_t now_awake) {
        Program *program = list->first;

        while (program && !(program->is_ending && program->deadline <= now_awake))
                program = program->next;
        return program;
}

void programs_kill_timed_out(ProgramList *list, uint64_t now_awake) {
        Program *overdue;

        for (Program *program = list->first; program; program = program->next)
                if (program->pid > 0 && program->deadline <= now_awake)
                        kill_container_program(program);
        while ((overdue = find_overdue_program(list, now_awake))) {
                copier_replace(&overdue->shim->copier);
                report_program(overdue, overdue->message, overdue->status);
        }
}

/* In a task: becomes the runtime. Both streams share one pipe. */
static int exec_in_container_main(void *userdata, Error *reterr) {
        const Program *program = userdata;
        const Runtime runtime = shim_runtime(program->shim);
        int r = runtime_set_closed_input();

        if (r < 0)
                return r;
        if (dup2(program->output.write_fd, STDOUT_FILENO) < 0 ||
            dup2(program->output.write_fd, STDERR_FILENO) < 0)
                return -errno;
        return runtime_exec_in(&runtime,
                               &(RuntimeExec){ .id = program->container,
                                               .pid_file = program->pid_file,
                                               .log = program->log,
                                               .argv = program->argv },
                               reterr);
}

/* ---- in the shim's namespaces ---- */

/* In a task: sets namespaces and descriptors, then becomes the program. */
static int exec_program_main(void *userdata, Error *reterr) {
        const Program *program = userdata;
        const HostNamespaces *host = &program->shim->host;
        int r = 1;

        if (program->in_host && host->network_fd >= 0 &&
            (setns(host->network_fd, CLONE_NEWNET) < 0 || setns(host->uts_fd, CLONE_NEWUTS) < 0))
                return error_setf(reterr, errno, "cannot enter the node's namespaces: %s",
                                  strerror(errno));
        if (program->keeps_router_advertisements)
                keep_router_advertisements("/proc/sys/net/ipv6/conf");
        if (program->interface)
                r = dummy_interface_create(program->interface, program->address,
                                           program->environment, reterr);
        if (r <= 0) /* if there is no interface to replace, nothing is run */
                return r;
        if (program->input_fd >= 0 && dup2(program->input_fd, STDIN_FILENO) < 0)
                return -errno;
        if (dup2(program->output.write_fd, STDOUT_FILENO) < 0 ||
            dup2(program->error.write_fd, STDERR_FILENO) < 0)
                return -errno;
        (void) execve(program->argv[0], program->argv,
                      program->environment ? program->environment : (char *[]){ NULL });
        return error_setf(reterr, errno, "cannot run '%s': %s", program->argv[0], strerror(errno));
}

/* Programs in the node's namespaces run one after the other. */
static bool must_wait_for_host_program(const Program *program) {
        for (const Program *other = program->shim->programs.first; other != program;
             other = other->next)
                if (program->in_host && other->in_host)
                        return true;
        return false;
}

static void start_program(Program *program) {
        TaskSpec spec = {
                .main = program->container ? exec_in_container_main : exec_program_main,
                .done = program->container ? on_exec_runtime_done : on_program_task_done,
                .userdata = program,
                .outlives_shim = !program->container, /* see wait_for_plugins() */
        };
        int r = open_program_pipe(program, &program->output, SHIM_PROTOCOL_OUTPUT_MAX);

        program->has_started = true;
        program->deadline =
                program->timeout_usec > 0
                        ? now_awake_usec() + MIN(program->timeout_usec, USEC_INFINITY / 2)
                        : USEC_INFINITY;
        spec.deadline = program->deadline;
        if (r >= 0 && !program->container)
                r = open_program_pipe(program, &program->error, ERROR_MAX);
        if (r >= 0)
                r = task_start(&program->shim->tasks, &spec);
        /* The task has its own copy. This one would keep the pipes open. */
        program->output.write_fd = close_fd(program->output.write_fd);
        program->error.write_fd = close_fd(program->error.write_fd);
        program->input_fd = close_fd(program->input_fd);
        if (r < 0)
                finish_program(program, strerror(-r), 0);
}

static void start_next_program(Shim *shim) {
        Program *program = shim->programs.first;

        while (program && (program->has_started || must_wait_for_host_program(program)))
                program = program->next;
        if (program && !shim->tearing_down)
                start_program(program);
}

static int copy_string_list(const StringList *list, char ***ret) {
        int r;

        for (size_t i = 0; i < list->n; i++) {
                r = strv_append(ret, list->items[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The input is in a file, so that no writer is needed while the program reads. */
static int open_program_input(const char *input, int *ret) {
        int fd = memfd_open("mainstay-input", input, strlen(input));

        if (fd < 0)
                return fd;
        *ret = fd;
        return 0;
}

static int set_program_container(Program *program, const char *container) {
        static unsigned serial;
        const char *directory = program->shim->pod_dir;

        program->pid_file = text_format("%s/exec-%u.pid", directory, ++serial);
        program->log = text_format("%s/exec-%u.log", directory, serial);
        program->container = strdup(container);
        return program->container && program->pid_file && program->log ? 0 : -ENOMEM;
}

static int set_dummy_interface(Program *program, const ShimRequest *request) {
        program->interface = strdup(request->interface);
        program->address = strdup(request->address);
        return program->interface && program->address ? 0 : -ENOMEM;
}

/* A program cannot run in a container that has ended or has not started yet. */
static bool container_runs(const Shim *shim, const char *id) {
        const Attempt *attempt = attempt_find(&shim->attempts, id);

        return attempt && attempt->state == ATTEMPT_RUNNING;
}

static const char *exec_refusal_message(int r) {
        return r == -ESRCH ? "the container is not running" : strerror(-r);
}

static int program_new(Shim *shim, const ShimRequest *request, Program **ret) {
        cleanup_with(program_freep) Program *program = calloc(1, sizeof(*program));
        int r;

        if (!program)
                return -ENOMEM;
        *program = (Program){
                .shim = shim,
                .id = strdup(request->id),
                .in_host = request->in_host,
                .keeps_router_advertisements = request->keeps_router_advertisements,
                .timeout_usec = request->timeout_usec,
                .input_fd = -EBADF,
                .deadline = USEC_INFINITY,
                .output = PROGRAM_PIPE_NULL,
                .error = PROGRAM_PIPE_NULL,
        };
        r = program->id ? copy_string_list(&request->arguments, &program->argv) : -ENOMEM;
        if (r < 0)
                return r;
        r = copy_string_list(&request->environment, &program->environment);
        if (r < 0)
                return r;
        if (request->interface && request->address)
                r = set_dummy_interface(program, request);
        if (r < 0)
                return r;
        if (request->input)
                r = open_program_input(request->input, &program->input_fd);
        if (r < 0)
                return r;
        if (request->container)
                r = set_program_container(program, request->container);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(program);
        return 0;
}

static size_t count_programs(const ProgramList *list) {
        size_t n = 0;

        for (const Program *program = list->first; program; program = program->next)
                n++;
        return n;
}

void program_run(Shim *shim, const ShimRequest *request) {
        Program *program = NULL, **end = &shim->programs.first;
        int r = -ECANCELED;

        if (count_programs(&shim->programs) >= PROGRAMS_MAX)
                r = -EBUSY;
        else if (request->arguments.n == 0)
                r = -EINVAL;
        else if (request->container && !container_runs(shim, request->container))
                r = -ESRCH;
        else if (!shim->tearing_down)
                r = program_new(shim, request, &program);
        if (r < 0) {
                agent_connection_send(&shim->connection,
                                      &(ShimEvent){ .type = SHIM_EVENT_EXEC_DONE,
                                                    .id = request->id,
                                                    .exit_code = EXIT_FAILURE,
                                                    .message = exec_refusal_message(r) });
                return;
        }
        while (*end)
                end = &(*end)->next;
        *end = program;
        if (!must_wait_for_host_program(program))
                start_program(program);
}

void programs_drop_waiting(ProgramList *list) {
        for (Program **link = &list->first; *link;) {
                Program *program = *link;

                if (program->has_started) {
                        link = &program->next;
                        continue;
                }
                *link = program->next;
                program_free(program);
        }
}

void programs_free(ProgramList *list) {
        while (list->first) {
                Program *program = list->first;

                list->first = program->next;
                program_free(program);
        }
}
