/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces agent/sandbox/sandbox.c: shims that are not processes. Like a real shim, a fake one
 * outlives the Sandbox that started it, keeps the events of its containers, and replays them to the
 * next Sandbox that connects. The shim enforces the time limits of stops itself. */

#include "agent/sandbox/exec-requests.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"
#include "tests/unit/pods/worker/fakes.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum {
        BEHAVIOURS_MAX = 16
};

typedef struct FakeShim FakeShim;

/* An attempt of a container that the shim knows. */
typedef struct FakeAttempt {
        FakeShim *shim;
        char *id, *name, *note;
        unsigned number;
        ShimEventType state; /* SHIM_EVENT_STARTING at first */
        bool runtime_failed, is_deleted, ignores_signal;
        int exit_code, signal;
        uint64_t started_at, finished_at, kill_at; /* kill_at: awake; 0: not stopped */
        int stop_signal;
        sd_event_source *signal_timer, *kill_timer;
        struct FakeAttempt *next;
} FakeAttempt;

/* A command that runs in a container, or a plugin. */
typedef struct FakeExec {
        char *id, *container;
        struct FakeExec *next;
} FakeExec;

struct FakeShim {
        char *uid;
        sd_event *event;
        Sandbox *client;
        FakeAttempt *attempts; /* the oldest first */
        FakeExec *execs;       /* likewise */
        bool is_ready, in_host_network, does_answer;
        FakeShim *next;
};

typedef struct QueuedEvent {
        ShimEvent event;
        struct QueuedEvent *next;
} QueuedEvent;

struct Sandbox {
        SandboxConfig config;
        char *uid;
        FakeShim *shim;
        sandbox_event_t on_event;
        void *userdata;
        SandboxExec *execs;
        QueuedEvent *first, **end;
        sd_event_source *deliver;
        ProcessUsage usage;
};

FakeShimBehaviour fake_shims;

static FakeShim *shims;
static unsigned n_doubles;

static struct {
        char *name;
        FakeContainerBehaviour behaviour;
} behaviours[BEHAVIOURS_MAX];

FakeContainerBehaviour *fake_container(const char *name) {
        size_t i = 0;

        while (behaviours[i].name && !streq(behaviours[i].name, name))
                i++;
        REQUIRE(i < BEHAVIOURS_MAX);
        if (!behaviours[i].name)
                behaviours[i].name = strdup(name);
        return &behaviours[i].behaviour;
}

/* ---- events ---- */

static void queued_event_free(QueuedEvent *queued) {
        ShimEvent *event = &queued->event;

        free((char *) (uintptr_t) event->id);
        free((char *) (uintptr_t) event->name);
        free((char *) (uintptr_t) event->note);
        free((char *) (uintptr_t) event->message);
        free((char *) (uintptr_t) event->output);
        free((char *) (uintptr_t) event->error);
        free(queued);
}

static void queue_event(FakeShim *shim, const ShimEvent *event) {
        Sandbox *sandbox = shim->client;
        QueuedEvent *queued = calloc(1, sizeof(*queued));

        REQUIRE(queued);
        if (!sandbox || !shim->does_answer) {
                free(queued);
                return;
        }
        queued->event = *event;
        queued->event.id = event->id ? strdup(event->id) : NULL;
        queued->event.name = strdup(strna(event->name));
        queued->event.note = strdup(strna(event->note));
        queued->event.message = strdup(strna(event->message));
        queued->event.output = strdup(strna(event->output));
        queued->event.error = strdup(strna(event->error));
        *sandbox->end = queued;
        sandbox->end = &queued->next;
        REQUIRE(sd_event_source_set_enabled(sandbox->deliver, SD_EVENT_ONESHOT) >= 0);
}

static QueuedEvent *take_event(Sandbox *sandbox) {
        QueuedEvent *queued = sandbox->first;

        sandbox->first = queued->next;
        if (!sandbox->first)
                sandbox->end = &sandbox->first;
        else
                REQUIRE(sd_event_source_set_enabled(sandbox->deliver, SD_EVENT_ONESHOT) >= 0);
        return queued;
}

static int on_fake_delivery(sd_event_source *source, void *userdata) {
        Sandbox *sandbox = userdata;
        QueuedEvent *queued;

        if (!sandbox->first)
                return 0;
        queued = take_event(sandbox);
        if (queued->event.type == SHIM_EVENT_EXEC_DONE)
                exec_requests_finish(&sandbox->execs, &queued->event);
        else
                sandbox->on_event(sandbox, &queued->event, sandbox->userdata);
        queued_event_free(queued);
        return 0;
}

static void queue_attempt_event(const FakeAttempt *attempt, bool replayed) {
        queue_event(attempt->shim, &(ShimEvent){ .type = attempt->state,
                                                 .id = attempt->id,
                                                 .name = attempt->name,
                                                 .note = attempt->note,
                                                 .attempt = attempt->number,
                                                 .runtime_failed = attempt->runtime_failed,
                                                 .message = "it cannot be started",
                                                 .exit_code = attempt->exit_code,
                                                 .signal = attempt->signal,
                                                 .started_at = attempt->started_at,
                                                 .finished_at = attempt->finished_at,
                                                 .deleted = attempt->is_deleted,
                                                 .replayed = replayed });
}

/* ---- shims ---- */

static void fake_exec_free(FakeExec *exec) {
        free(exec->id);
        free(exec->container);
        free(exec);
}

static void fake_attempt_free(FakeAttempt *attempt) {
        sd_event_source_disable_unref(attempt->signal_timer);
        sd_event_source_disable_unref(attempt->kill_timer);
        free(attempt->id);
        free(attempt->name);
        free(attempt->note);
        free(attempt);
}

/* Its containers end with it. */
static void end_shim(FakeShim *shim) {
        FakeShim **link = &shims;

        queue_event(shim, &(ShimEvent){ .type = SHIM_EVENT_LOST });
        if (shim->client)
                shim->client->shim = NULL;
        while (*link != shim)
                link = &(*link)->next;
        *link = shim->next;
        while (shim->attempts) {
                FakeAttempt *attempt = shim->attempts;

                shim->attempts = attempt->next;
                fake_attempt_free(attempt);
        }
        while (shim->execs) {
                FakeExec *exec = shim->execs;

                shim->execs = exec->next;
                fake_exec_free(exec);
        }
        free(shim->uid);
        free(shim);
}

static FakeShim *find_shim(const char *uid) {
        FakeShim *shim = shims;

        while (shim && !streq(shim->uid, uid))
                shim = shim->next;
        return shim;
}

static void greet(FakeShim *shim) {
        if (!shim->does_answer)
                return;
        for (const FakeAttempt *attempt = shim->attempts; attempt; attempt = attempt->next)
                queue_attempt_event(attempt, /* replayed= */ true);
        queue_event(shim, &(ShimEvent){ .type = SHIM_EVENT_SYNCED, .ready = shim->is_ready });
}

void fake_shims_die(void) {
        while (shims)
                end_shim(shims);
}

void fake_shims_forget(void) {
        for (FakeShim *shim = shims; shim; shim = shim->next)
                if (shim->client) {
                        shim->client->shim = NULL;
                        shim->client = NULL;
                }
        fake_shims_die();
}

void fake_connections_break(void) {
        for (FakeShim *shim = shims; shim; shim = shim->next)
                if (shim->client)
                        greet(shim);
}

void fake_shims_answer(void) {
        for (FakeShim *shim = shims; shim; shim = shim->next)
                if (!shim->does_answer) {
                        shim->does_answer = true;
                        greet(shim);
                }
}

unsigned fake_count_shims(void) {
        unsigned n = 0;

        for (const FakeShim *shim = shims; shim; shim = shim->next)
                n++;
        return n;
}

/* ---- containers ---- */

static bool has_fake_process(const FakeAttempt *attempt) {
        return attempt->state == SHIM_EVENT_STARTING || attempt->state == SHIM_EVENT_STARTED;
}

unsigned fake_count_processes(const char *name) {
        unsigned n = 0;

        for (const FakeShim *shim = shims; shim; shim = shim->next)
                for (const FakeAttempt *a = shim->attempts; a; a = a->next)
                        n += has_fake_process(a) && (!name || streq(a->name, name));
        return n;
}

unsigned fake_count_doubles(void) {
        return n_doubles;
}

static FakeAttempt *find_attempt(const FakeShim *shim, const char *id) {
        FakeAttempt *attempt = shim->attempts;

        while (attempt && !streq(attempt->id, id))
                attempt = attempt->next;
        return attempt;
}

static FakeAttempt *find_process(const char *name) {
        for (const FakeShim *shim = shims; shim; shim = shim->next)
                for (FakeAttempt *a = shim->attempts; a; a = a->next)
                        if (has_fake_process(a) && streq(a->name, name))
                                return a;
        return NULL;
}

static void end_attempt(FakeAttempt *attempt, int exit_code, int signal) {
        attempt->signal_timer = sd_event_source_disable_unref(attempt->signal_timer);
        attempt->kill_timer = sd_event_source_disable_unref(attempt->kill_timer);
        attempt->state = SHIM_EVENT_EXITED;
        attempt->exit_code = exit_code;
        attempt->signal = signal;
        attempt->finished_at = now_realtime_usec();
        queue_attempt_event(attempt, /* replayed= */ false);
}

void fake_container_exit(const char *name, int exit_code) {
        FakeAttempt *attempt = find_process(name);

        REQUIRE(attempt);
        end_attempt(attempt, exit_code, 0);
}

static void start_attempt(FakeAttempt *attempt) {
        attempt->state = SHIM_EVENT_STARTED;
        attempt->started_at = now_realtime_usec();
        queue_attempt_event(attempt, /* replayed= */ false);
}

void fake_container_start_ends(const char *name, ShimEventType type) {
        FakeAttempt *attempt = find_process(name);

        REQUIRE(attempt && attempt->state == SHIM_EVENT_STARTING);
        if (type == SHIM_EVENT_STARTED) {
                start_attempt(attempt);
                return;
        }
        attempt->state = SHIM_EVENT_START_FAILED;
        queue_attempt_event(attempt, /* replayed= */ false);
}

void fake_container_start_hanging(const char *name) {
        FakeAttempt *attempt = find_process(name);

        if (attempt && attempt->state == SHIM_EVENT_STARTING)
                start_attempt(attempt);
}

static void run_attempt(FakeAttempt *attempt, const FakeContainerBehaviour *behaviour) {
        attempt->ignores_signal = behaviour->ignores_signal;
        switch (behaviour->run) {
        case RUN_HANGS:
                break;
        case RUN_FAILS:
        case RUN_REFUSED:
                attempt->runtime_failed = behaviour->run == RUN_REFUSED;
                attempt->state = SHIM_EVENT_START_FAILED;
                queue_attempt_event(attempt, /* replayed= */ false);
                break;
        case RUN_STARTS:
                start_attempt(attempt);
                break;
        case RUN_EXITS:
                start_attempt(attempt);
                end_attempt(attempt, behaviour->exit_code, 0);
                break;
        }
}

static void make_directory_of(const char *path) {
        cleanup_free char *directory = strndup(path, (size_t) (strrchr(path, '/') - path));

        REQUIRE(mkdir_parents_at(AT_FDCWD, directory, 0755) >= 0);
}

static void make_log_file(const char *path) {
        cleanup_close int fd = -EBADF;

        make_directory_of(path);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        REQUIRE(fd >= 0);
}

int sandbox_run_container(Sandbox *sandbox, const SandboxContainerConfig *run) {
        FakeShim *shim = sandbox->shim;
        FakeAttempt *attempt, **end;

        if (!shim)
                return -ENOTCONN;
        if (run->target && fake_shims.has_old_shims)
                return -ENOTSUP;
        fake_request("run %s/%u%s", run->name, run->attempt, run->target ? " with a target" : "");
        for (end = &shim->attempts; *end; end = &(*end)->next)
                n_doubles += has_fake_process(*end) && streq((*end)->name, run->name);
        attempt = calloc(1, sizeof(*attempt));
        REQUIRE(attempt);
        *attempt = (FakeAttempt){ .shim = shim,
                                  .id = strdup(run->id),
                                  .name = strdup(run->name),
                                  .note = strdup(run->note),
                                  .number = run->attempt,
                                  .state = SHIM_EVENT_STARTING };
        *end = attempt;
        make_log_file(run->log);
        make_directory_of(run->events_file); /* the container's cgroup */
        run_attempt(attempt, fake_container(run->name));
        return 0;
}

static int on_fake_kill(sd_event_source *source, uint64_t usec, void *userdata) {
        end_attempt(userdata, 128 + SIGKILL, SIGKILL);
        return 0;
}

static int on_fake_signal(sd_event_source *source, uint64_t usec, void *userdata) {
        FakeAttempt *attempt = userdata;

        if (!attempt->ignores_signal && attempt->state == SHIM_EVENT_STARTED)
                end_attempt(attempt, 128 + attempt->stop_signal, attempt->stop_signal);
        return 0;
}

static sd_event_source *arm_fake_timer(FakeAttempt *attempt, uint64_t usec,
                                       sd_event_time_handler_t handler) {
        sd_event_source *timer = NULL;

        REQUIRE(sd_event_add_time_relative(attempt->shim->event, &timer, CLOCK_AWAKE, usec, 1,
                                           handler, attempt) >= 0);
        return timer;
}

int sandbox_stop_container_delayed(Sandbox *sandbox, const char *id, int signal,
                                   uint64_t delay_usec, uint64_t grace_usec) {
        FakeAttempt *attempt = sandbox->shim ? find_attempt(sandbox->shim, id) : NULL;
        uint64_t kill_at = now_awake_usec() + grace_usec;

        if (!sandbox->shim)
                return -ENOTCONN;
        if (!attempt || !has_fake_process(attempt))
                return 0;
        fake_request("stop %s/%u signal %d%s%.0d%s kill %" PRIu64, attempt->name, attempt->number,
                     signal, delay_usec > 0 ? " in " : "", (int) (delay_usec / USEC_PER_SEC),
                     delay_usec > 0 ? "," : "", grace_usec / USEC_PER_SEC);
        attempt->stop_signal = signal;
        if (attempt->kill_at == 0 || kill_at < attempt->kill_at) {
                sd_event_source_disable_unref(attempt->kill_timer);
                attempt->kill_at = kill_at;
                attempt->kill_timer = arm_fake_timer(attempt, grace_usec, on_fake_kill);
        }
        sd_event_source_disable_unref(attempt->signal_timer);
        attempt->signal_timer = arm_fake_timer(attempt, delay_usec, on_fake_signal);
        return 0;
}

int sandbox_stop_container(Sandbox *sandbox, const char *id, int signal, uint64_t grace_usec) {
        return sandbox_stop_container_delayed(sandbox, id, signal, 0, grace_usec);
}

int sandbox_set_container_note(Sandbox *sandbox, const char *id, const char *note) {
        FakeAttempt *attempt = sandbox->shim ? find_attempt(sandbox->shim, id) : NULL;

        if (!sandbox->shim)
                return -ENOTCONN;
        if (attempt) {
                free(attempt->note);
                attempt->note = strdup(note);
        }
        return 0;
}

int sandbox_remove_container(Sandbox *sandbox, const char *id, const char *const *directories,
                             size_t n_directories) {
        FakeAttempt *attempt = sandbox->shim ? find_attempt(sandbox->shim, id) : NULL;

        if (!attempt)
                return sandbox->shim ? 0 : -ENOTCONN;
        if (fake_shims.records_deletions)
                fake_request("delete %s/%u", attempt->name, attempt->number);
        attempt->is_deleted = true;
        return 0;
}

/* ---- commands and plugins ---- */

static void answer_exec(FakeShim *shim, FakeExec *exec, const ShimEvent *result) {
        FakeExec **link = &shim->execs;
        ShimEvent event = *result;

        while (*link != exec)
                link = &(*link)->next;
        *link = exec->next;
        event.type = SHIM_EVENT_EXEC_DONE;
        event.id = exec->id;
        queue_event(shim, &event);
        fake_exec_free(exec);
}

static FakeExec *add_exec(FakeShim *shim, const SandboxExec *request, const char *container) {
        FakeExec *exec = calloc(1, sizeof(*exec)), **end = &shim->execs;

        REQUIRE(exec);
        *exec = (FakeExec){ .id = strdup(exec_request_id(request)),
                            .container = strdup(container) };
        while (*end)
                end = &(*end)->next;
        *end = exec;
        return exec;
}

int sandbox_exec_in_container(Sandbox *sandbox, const SandboxContainerExec *spec,
                              sandbox_exec_done_t done, void *userdata, SandboxExec **ret) {
        const FakeAttempt *attempt;
        cleanup_free char *command = text_join(spec->argv, " ");
        FakeExec *added;

        if (!sandbox->shim)
                return -ENOTCONN;
        attempt = find_attempt(sandbox->shim, spec->container);
        if (fake_shims.keeps_execs || !streq(command, "true"))
                fake_request("exec %s: %s", attempt ? attempt->name : "?", command);
        *ret = exec_requests_add(&sandbox->execs, done, userdata);
        added = add_exec(sandbox->shim, *ret, attempt ? attempt->name : "?");
        if (!fake_shims.keeps_execs)
                answer_exec(sandbox->shim, added, &(ShimEvent){ 0 });
        return 0;
}

void fake_exec_ends(const char *name, const ShimEvent *result) {
        for (FakeShim *shim = shims; shim; shim = shim->next)
                for (FakeExec *exec = shim->execs; exec; exec = exec->next)
                        if (streq(exec->container, name)) {
                                answer_exec(shim, exec, result);
                                return;
                        }
        test_fail(__FILE__, __LINE__, name, "has no command that runs");
}

static const char plugin_result[] =
        "{\"cniVersion\":\"1.0.0\",\"interfaces\":[{\"name\":\"eth0\",\"sandbox\":\"/x\"}],"
        "\"ips\":[{\"address\":\"10.88.0.7/16\",\"interface\":0}]}";

int sandbox_run_program(Sandbox *sandbox, const SandboxProgram *program, sandbox_exec_done_t done,
                        void *userdata, SandboxExec **ret) {
        const char *command = "?";
        FakeExec *exec;

        if (!sandbox->shim)
                return -ENOTCONN;
        for (size_t i = 0; program->environment[i]; i++)
                if (strncmp(program->environment[i], "CNI_COMMAND=", 12) == 0)
                        command = program->environment[i] + 12;
        fake_request("plugin %s", command);
        *ret = exec_requests_add(&sandbox->execs, done, userdata);
        exec = add_exec(sandbox->shim, *ret, "plugin");
        answer_exec(sandbox->shim, exec,
                    fake_shims.plugin_error
                            ? &(ShimEvent){ .exit_code = 1, .error = fake_shims.plugin_error }
                            : &(ShimEvent){ .output = plugin_result });
        return 0;
}

/* ---- the sandbox ---- */

int sandbox_new(const SandboxConfig *config, const char *uid, sandbox_event_t on_event,
                void *userdata, Sandbox **ret) {
        Sandbox *sandbox = calloc(1, sizeof(*sandbox));

        REQUIRE(sandbox);
        *sandbox = (Sandbox){
                .config = *config, .uid = strdup(uid), .on_event = on_event, .userdata = userdata
        };
        sandbox->end = &sandbox->first;
        REQUIRE(sd_event_add_defer(config->event, &sandbox->deliver, on_fake_delivery, sandbox) >=
                0);
        REQUIRE(sd_event_source_set_enabled(sandbox->deliver, SD_EVENT_OFF) >= 0);
        *ret = sandbox;
        return 0;
}

static void connect_fake_shim(Sandbox *sandbox, FakeShim *shim) {
        sandbox->shim = shim;
        shim->client = sandbox;
        greet(shim);
}

int sandbox_connect(Sandbox *sandbox, Error *reterr) {
        FakeShim *shim = find_shim(sandbox->uid);

        if (!shim)
                return 0;
        fake_request("connect");
        connect_fake_shim(sandbox, shim);
        return 1;
}

int sandbox_start(Sandbox *sandbox, const SandboxStartOptions *start, Error *reterr) {
        FakeShim *shim;

        if (fake_shims.start_error)
                return error_setf(reterr, EAGAIN, "%s", fake_shims.start_error);
        REQUIRE(!find_shim(sandbox->uid));
        fake_request("start%s", start->host_network ? "" : " with a network");
        shim = calloc(1, sizeof(*shim));
        REQUIRE(shim);
        *shim = (FakeShim){ .uid = strdup(sandbox->uid),
                            .event = sandbox->config.event,
                            .in_host_network = start->host_network,
                            .does_answer = !fake_shims.hangs,
                            .next = shims };
        shims = shim;
        connect_fake_shim(sandbox, shim);
        return 0;
}

int sandbox_setup(Sandbox *sandbox, const SandboxSetupOptions *setup) {
        FakeShim *shim = sandbox->shim;

        if (!shim)
                return -ENOTCONN;
        fake_request("setup");
        if (fake_shims.setup_hangs)
                return 0;
        shim->is_ready = !fake_shims.setup_error;
        queue_event(shim, &(ShimEvent){ .type = shim->is_ready ? SHIM_EVENT_READY
                                                               : SHIM_EVENT_SETUP_FAILED,
                                        .message = fake_shims.setup_error });
        return 0;
}

int sandbox_teardown(Sandbox *sandbox) {
        if (!sandbox->shim)
                return -ENOTCONN;
        fake_request("teardown");
        if (sandbox->shim->does_answer)
                end_shim(sandbox->shim);
        return 0;
}

Sandbox *sandbox_free(Sandbox *sandbox) {
        if (!sandbox)
                return NULL;
        if (sandbox->shim)
                sandbox->shim->client = NULL;
        while (sandbox->first) {
                QueuedEvent *queued = sandbox->first;

                sandbox->first = queued->next;
                queued_event_free(queued);
        }
        exec_requests_abandon(&sandbox->execs);
        sd_event_source_disable_unref(sandbox->deliver);
        free(sandbox->uid);
        free(sandbox);
        return NULL;
}

void sandbox_set_runtime(Sandbox *sandbox, const char *runtime_path) {
}

int sandbox_open_session(Sandbox *sandbox, const SandboxSession *session, int socket_fd) {
        fake_request("session: %s", session->argv[0]);
        return 0;
}

bool sandbox_can_attach(const Sandbox *sandbox) {
        return !fake_shims.has_old_shims;
}

int sandbox_attach(Sandbox *sandbox, const SandboxAttach *attach, int socket_fd) {
        fake_request("attach");
        return 0;
}

int sandbox_set_container_devices(Sandbox *sandbox, const char *id, char *const *devices) {
        return 0;
}

int sandbox_request_usage(Sandbox *sandbox) {
        sandbox->usage.n_descriptors = 7;
        return 0;
}

const ProcessUsage *sandbox_container_usage(const Sandbox *sandbox, const char *id,
                                            uint64_t *ret_taken_at) {
        *ret_taken_at = now_realtime_usec();
        return sandbox->usage.n_descriptors > 0 ? &sandbox->usage : NULL;
}

pid_t sandbox_pid(const Sandbox *sandbox) {
        return sandbox->shim ? getpid() : 0;
}

bool sandbox_prepares_volumes(const Sandbox *sandbox) {
        return !fake_shims.has_old_shims;
}

bool sandbox_is_connected(const Sandbox *sandbox) {
        return sandbox->shim;
}

int sandbox_open_network_namespace(const Sandbox *sandbox) {
        if (!sandbox->shim || sandbox->shim->in_host_network)
                return -ENOENT;
        return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

const char *sandbox_group_of_shims(const SandboxConfig *config) {
        return "/shims";
}

/* ---- the cleanup ---- */

typedef struct FakeCleanup {
        char *uid;
        char **directories;
} FakeCleanup;

static void run_cleanup(void *work) {
        FakeCleanup *cleanup = work;
        FakeShim *shim = cleanup->uid ? find_shim(cleanup->uid) : NULL;

        if (shim)
                end_shim(shim);
        strv_foreach(directory, cleanup->directories)
                (void) remove_tree_at(AT_FDCWD, *directory);
        strv_free(cleanup->directories);
        free(cleanup->uid);
        free(cleanup);
}

int sandbox_cleanup(const SandboxConfig *config, const SandboxCleanup *cleanup, child_done_t done,
                    void *userdata, Child **ret, Error *reterr) {
        FakeCleanup *work = calloc(1, sizeof(*work));
        bool fails = fake_shims.n_cleanup_errors > 0;

        REQUIRE(work);
        fake_request("cleanup of %s", cleanup->synced    ? "everything"
                                      : cleanup->emptied ? "a completed pod"
                                                         : "the sandbox");
        if (fails) {
                fake_shims.n_cleanup_errors--;
                free(work);
                *ret = fake_child_new(config->event, done, userdata, NULL, NULL, 1,
                                      "it cannot be removed");
                return 0;
        }
        work->uid = cleanup->uid ? strdup(cleanup->uid) : NULL;
        for (size_t i = 0; i < cleanup->n_directories; i++)
                REQUIRE(strv_append(&work->directories, cleanup->directories[i]) >= 0);
        if (cleanup->synced)
                REQUIRE(strv_append(&work->directories, cleanup->synced) >= 0);
        *ret = fake_child_new(config->event, done, userdata, run_cleanup, work, 0, NULL);
        return 0;
}
