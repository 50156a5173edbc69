/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A node for one test: a run directory, an image made of the host's busybox, a separate cgroup, and
 * pods with real shims and containers. Tests check everything from outside: events, files,
 * processes, mounts. */

#include "agent/sandbox/sandbox.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/list.h"
#include "common/strv.h"
#include "tests/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
        RECORDS_MAX = 512,
        DEADLINE_SEC = 180,
        TEXT_MAX = 4400,
};

/* A copy of one event, which remains valid after the callback. */
typedef struct ShimEventRecord {
        ShimEvent event;
        char id[130], name[64], note[1100], message[TEXT_MAX], output[TEXT_MAX], error[256];
} ShimEventRecord;

typedef struct PodWorld {
        sd_event *event;
        SandboxConfig config;
        char *directory; /* test directory */
        char *run_dir;
        char *image;
        char *cgroup;
        char *mounts_before;
} PodWorld;

typedef struct TestPod {
        PodWorld *world;
        Sandbox *sandbox;
        const char *uid;
        char *directory; /* <run-dir>/pods/<uid> */
        ShimEventRecord *records;
        size_t n_records;
        size_t cursor; /* position of pod_expect() */
        struct TestExec *execs;
} TestPod;

/* A command that the shim runs for the test. */
typedef struct TestExec {
        TestPod *pod;
        char id[32];       /* the test's, for pod_expect() */
        SandboxExec *exec; /* NULL: its result has arrived */
        struct TestExec *next;
} TestExec;

typedef struct TestContainer {
        const char *name;
        unsigned attempt;
        const char *script; /* for "sh -c"; alternatively: */
        const char *program;
        bool host_pids;
        int64_t memory_bytes;
        const char *fstab; /* more lines */
        const char *note;
} TestContainer;

static inline char *print_text(const char *format, ...) printf_like(1, 2);
static inline char *print_text(const char *format, ...) {
        char *text = NULL;
        va_list ap;

        va_start(ap, format);
        REQUIRE(vasprintf(&text, format, ap) >= 0);
        va_end(ap);
        return text;
}

static inline void write_text(const char *path, const char *text) {
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        REQUIRE(fd >= 0);
        REQUIRE(write_all(fd, text, strlen(text)) >= 0);
}

static inline char *read_text(const char *path) {
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        char *text = NULL;

        if (fd < 0 || read_stream(fd, 64 * MIB, &text, NULL) < 0)
                return strdup("");
        return text;
}

static inline bool exists(const char *path) {
        struct stat st;

        return lstat(path, &st) >= 0;
}

/* The mounts in or on a directory here. The caller frees it. */
static inline char *mounts_in(const char *directory) {
        cleanup_free char *all = read_text("/proc/self/mountinfo");
        char *text = strdup(""), *rest = all, *line;

        while ((line = strsep(&rest, "\n")))
                if (strstr(line, directory)) {
                        char *longer = print_text("%s%s\n", text, line);
                        free(text);
                        text = longer;
                }
        return text;
}

/* --- the world ---------------------------------------------------------------------------- */

static inline void make_image(PodWorld *world) {
        static const char *const applets[] = { "sh",   "sleep", "cat", "echo", "kill", "true",
                                               "head", "yes",   "dd",  "ls",   "tr",   "seq" };
        cleanup_free char *bin = path_join(world->image, "bin");
        static const char *const others[] = { "proc", "dev", "tmp", "data" };
        char *argv[] = { (char[]){ "cp" }, (char[]){ "/bin/busybox" }, bin, NULL };
        pid_t pid;

        REQUIRE(mkdir_parents_at(AT_FDCWD, bin, 0755) >= 0);
        pid = fork();
        if (pid == 0) {
                (void) execvp(argv[0], argv);
                _exit(127);
        }
        REQUIRE(waitpid(pid, NULL, 0) == pid);
        for (size_t i = 0; i < N_ELEMENTS(applets); i++) {
                cleanup_free char *link = path_join(bin, applets[i]);
                REQUIRE(symlink("busybox", link) >= 0);
        }
        for (size_t i = 0; i < N_ELEMENTS(others); i++) {
                cleanup_free char *path = path_join(world->image, others[i]);
                REQUIRE(mkdir(path, 0755) >= 0);
        }
}

/* A mount namespace in which all mounts are shared, as on a host with systemd: mounts that a shim
 * makes in the wrong place would be visible here. It is separate from the machine's own namespace,
 * in which other programs may mount. */
static inline void become_host(void) {
        static bool done;

        if (done)
                return;
        REQUIRE(unshare(CLONE_NEWNS) >= 0);
        REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) >= 0);
        REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) >= 0);
        done = true;
}

static inline void world_init(PodWorld *world) {
        cleanup_error Error error = ERROR_NULL;
        sigset_t mask;

        become_host();
        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        REQUIRE(sigprocmask(SIG_BLOCK, &mask, NULL) >= 0);
        *world = (PodWorld){ 0 };
        REQUIRE(sd_event_new(&world->event) >= 0);
        world->directory = strdup(test_directory());
        world->run_dir = path_join(world->directory, "run");
        world->image = path_join(world->directory, "image");
        world->cgroup = print_text("/mainstay-test-%d", getpid());
        make_image(world);
        world->config = (SandboxConfig){
                .event = world->event,
                .shim_path = BUILD_DIR "/agent/mainstay-shim",
                .runtime_path = "runc",
                .run_dir = world->run_dir,
                .shim_cgroup = print_text("%s/shims", world->cgroup),
        };
        REQUIRE(sandbox_prepare(&world->config, NULL, &error) >= 0);
        world->mounts_before = mounts_in(world->directory);
}

/* No mount of a pod has ever appeared here. */
static inline void expect_no_mounts(const PodWorld *world) {
        cleanup_free char *now = mounts_in(world->directory);

        EXPECT_STREQ(now, world->mounts_before);
}

static inline void world_done(PodWorld *world) {
        expect_no_mounts(world);
        EXPECT_EQ(cgroup_kill(world->cgroup), 0);
        EXPECT_EQ(cgroup_remove(world->cgroup), 0);
        (void) umount2(world->run_dir, MNT_DETACH);
        sd_event_unref(world->event);
        free((char *) (uintptr_t) world->config.shim_cgroup);
        free(world->mounts_before);
        free(world->cgroup);
        free(world->image);
        free(world->run_dir);
        free(world->directory);
}

/* --- pods --------------------------------------------------------------------------------- */

static inline void on_pod_event(Sandbox *sandbox, const ShimEvent *event, void *userdata) {
        TestPod *pod = userdata;
        ShimEventRecord *record;

        REQUIRE(pod->n_records < RECORDS_MAX);
        record = &pod->records[pod->n_records++];
        record->event = *event;
        (void) snprintf(record->id, sizeof(record->id), "%s", strna(event->id));
        (void) snprintf(record->name, sizeof(record->name), "%s", strna(event->name));
        (void) snprintf(record->note, sizeof(record->note), "%s", strna(event->note));
        (void) snprintf(record->message, sizeof(record->message), "%s", strna(event->message));
        (void) snprintf(record->output, sizeof(record->output), "%s", strna(event->output));
        (void) snprintf(record->error, sizeof(record->error), "%s", strna(event->error));
        record->event.output = record->output;
        record->event.error = record->error;
        record->event.id = record->id;
        record->event.name = record->name;
        record->event.note = record->note;
        record->event.message = record->message;
}

/* The result of the command becomes an event of the pod. */
static inline void on_pod_exec_done(const ShimEvent *result, void *userdata) {
        TestExec *exec = userdata;
        ShimEvent event = *result;

        exec->exec = NULL;
        event.id = exec->id;
        on_pod_event(exec->pod->sandbox, &event, exec->pod);
}

static inline TestExec *pod_add_exec(TestPod *pod, const char *id) {
        TestExec *exec = calloc(1, sizeof(*exec));

        REQUIRE(exec);
        exec->pod = pod;
        (void) snprintf(exec->id, sizeof(exec->id), "%s", id);
        LIST_PREPEND(pod->execs, exec);
        return exec;
}

/* Runs a command; SHIM_EVENT_EXEC_DONE with this ID follows. */
static inline void pod_run_program(TestPod *pod, const char *id, const SandboxProgram *program) {
        TestExec *exec = pod_add_exec(pod, id);

        EXPECT_EQ(sandbox_run_program(pod->sandbox, program, on_pod_exec_done, exec, &exec->exec),
                  0);
}

static inline void pod_exec_in(TestPod *pod, const char *id, const SandboxContainerExec *spec) {
        TestExec *exec = pod_add_exec(pod, id);

        EXPECT_EQ(
                sandbox_exec_in_container(pod->sandbox, spec, on_pod_exec_done, exec, &exec->exec),
                0);
}

static inline void pod_init(TestPod *pod, PodWorld *world, const char *uid) {
        *pod = (TestPod){ .world = world, .uid = uid };
        pod->directory = print_text("%s/pods/%s", world->run_dir, uid);
        pod->records = calloc(RECORDS_MAX, sizeof(ShimEventRecord));
        REQUIRE(pod->records);
        REQUIRE(mkdir_parents_at(AT_FDCWD, pod->directory, 0700) >= 0);
        REQUIRE(sandbox_new(&world->config, uid, on_pod_event, pod, &pod->sandbox) >= 0);
}

/* Waits for the next event of this type of the container (NULL: of the sandbox); earlier events are
 * skipped. */
static inline const ShimEvent *pod_expect(TestPod *pod, ShimEventType type, const char *id) {
        uint64_t deadline = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;

        for (;;) {
                while (pod->cursor < pod->n_records) {
                        const ShimEvent *event = &pod->records[pod->cursor++].event;

                        if (event->type == type && (!id || streq(event->id, id)))
                                return event;
                }
                if (now_boottime_usec() >= deadline)
                        break;
                (void) sd_event_run(pod->world->event, USEC_PER_SEC / 10);
        }
        for (size_t i = 0; i < pod->n_records; i++)
                printf("  event %d '%.12s' %s\n", (int) pod->records[i].event.type,
                       pod->records[i].id, pod->records[i].message);
        test_fail(__FILE__, __LINE__, "the event", "%d of '%.12s' did not come", (int) type,
                  strna(id));
        exit(1);
}

/* Looks for an event among all received ones, regardless of the cursor. */
static inline const ShimEvent *pod_find(const TestPod *pod, ShimEventType type, const char *id) {
        for (size_t i = 0; i < pod->n_records; i++)
                if (pod->records[i].event.type == type && streq(pod->records[i].id, id))
                        return &pod->records[i].event;
        return NULL;
}

static inline void pod_start(TestPod *pod) {
        cleanup_error Error error = ERROR_NULL;
        int r = sandbox_start(pod->sandbox, &(SandboxStartOptions){ .host_network = true }, &error);

        EXPECT_STREQ(r < 0 ? error_message(&error, r) : NULL, NULL);
        EXPECT(!pod_expect(pod, SHIM_EVENT_SYNCED, NULL)->ready);
}

static inline void pod_ask_setup(TestPod *pod, const char *fstab, uint64_t log_max_size) {
        cleanup_free char *path = path_join(pod->directory, "fstab");
        SandboxSetupOptions setup = { .fstab = path,
                                      .log_max_size = log_max_size,
                                      .log_max_files = 3 };

        write_text(path, fstab);
        EXPECT_EQ(sandbox_setup(pod->sandbox, &setup), 0);
}

/* A shim that is set up and runs no container. */
static inline void pod_up(TestPod *pod, PodWorld *world, const char *uid) {
        pod_init(pod, world, uid);
        pod_start(pod);
        pod_ask_setup(pod, "", 0);
        (void) pod_expect(pod, SHIM_EVENT_READY, NULL);
}

static inline void pod_disconnect(TestPod *pod) {
        pod->sandbox = sandbox_free(pod->sandbox);
}

/* Connects to the shim like a restarted agent. */
static inline void pod_reconnect(TestPod *pod) {
        cleanup_error Error error = ERROR_NULL;

        pod->n_records = pod->cursor = 0;
        REQUIRE(sandbox_new(&pod->world->config, pod->uid, on_pod_event, pod, &pod->sandbox) >= 0);
        EXPECT_EQ(sandbox_connect(pod->sandbox, &error), 1);
}

static inline void pod_done(TestPod *pod) {
        pod->sandbox = sandbox_free(pod->sandbox);
        list_foreach_safe(exec, pod->execs) {
                sandbox_exec_cancel(exec->exec);
                free(exec);
        }
        free(pod->records);
        free(pod->directory);
}

static inline void pod_down(TestPod *pod) {
        EXPECT_EQ(sandbox_teardown(pod->sandbox), 0);
        (void) pod_expect(pod, SHIM_EVENT_LOST, NULL);
        pod_done(pod);
}

/* The mounts in the shim's namespace. The caller frees it. */
static inline char *shim_mounts(const TestPod *pod) {
        cleanup_free char *path = print_text("/proc/%d/mountinfo", sandbox_pid(pod->sandbox));

        return read_text(path);
}

/* The lines that concern the pod, without the numbers, because other mounts of the host may be made
 * and removed in the meantime. */
static inline char *pod_mounts(const TestPod *pod) {
        cleanup_free char *all = shim_mounts(pod);
        char *own = NULL, *rest = all;
        size_t length;
        FILE *out = open_memstream(&own, &length);

        REQUIRE(out);
        for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
                const char *path = strstr(line, pod->directory);

                if (path)
                        (void) fprintf(out, "%s\n", path);
        }
        REQUIRE(fclose(out) == 0);
        return own;
}

/* Requests the setup and waits. Returns "ready", or the reason why it failed. */
static inline const char *pod_set_up(TestPod *pod, const char *fstab) {
        size_t before = pod->n_records;

        pod_ask_setup(pod, fstab, 0);
        while (pod->n_records == before)
                (void) sd_event_run(pod->world->event, USEC_PER_SEC / 10);
        EXPECT_EQ(pod->n_records, before + 1);
        pod->cursor = pod->n_records;
        return pod->records[before].event.type == SHIM_EVENT_READY ? "ready"
                                                                   : pod->records[before].message;
}

/* --- containers --------------------------------------------------------------------------- */

static inline char *container_path(const TestPod *pod, const TestContainer *spec,
                                   const char *file) {
        return print_text("%s/containers/%s/%u%s%s", pod->directory, spec->name, spec->attempt,
                          file[0] ? "/" : "", file);
}

static inline char *container_id_of(const TestPod *pod, const TestContainer *spec) {
        return print_text("%d-%s-%s-%u", getpid(), pod->uid, spec->name, spec->attempt);
}

static inline char *container_log(const TestPod *pod, const TestContainer *spec) {
        return print_text("%s/logs/%s/%u.log", pod->directory, spec->name, spec->attempt);
}

static inline char *container_cgroup(const TestPod *pod, const TestContainer *spec) {
        return print_text("%s/pod%s/%s-%u", pod->world->cgroup, pod->uid, spec->name,
                          spec->attempt);
}

static inline json_t *container_config(const TestPod *pod, const TestContainer *spec) {
        cleanup_free char *rootfs = container_path(pod, spec, "rootfs");
        cleanup_free char *cgroup = container_cgroup(pod, spec);
        cleanup_free char *ipc = print_text("/proc/%d/ns/ipc", sandbox_pid(pod->sandbox));
        json_t *args = spec->program ? json_pack("[s]", spec->program)
                                     : json_pack("[s,s,s]", "/bin/sh", "-c", spec->script);
        json_t *namespaces =
                json_pack("[{s:s},{s:s,s:s}]", "type", "mount", "type", "ipc", "path", ipc);
        json_t *resources = json_object();

        if (!spec->host_pids)
                (void) json_array_append_new(namespaces, json_pack("{s:s}", "type", "pid"));
        if (spec->memory_bytes > 0)
                (void) json_object_set_new(resources, "memory",
                                           json_pack("{s:I,s:I}", "limit",
                                                     (json_int_t) spec->memory_bytes, "swap",
                                                     (json_int_t) spec->memory_bytes));
        return json_pack("{s:s, s:{s:{s:i,s:i}, s:o, s:[s], s:s, s:{s:[s],s:[s],s:[s]}}, s:{s:s},"
                         " s:[{s:s,s:s,s:s},{s:s,s:s,s:s,s:[s,s]},{s:s,s:s,s:s,s:[s]}],"
                         " s:{s:o, s:s, s:o}}",
                         "ociVersion", "1.0.2", "process", "user", "uid", 0, "gid", 0, "args", args,
                         "env", "PATH=/bin", "cwd", "/", "capabilities", "bounding", "CAP_KILL",
                         "effective", "CAP_KILL", "permitted", "CAP_KILL", "root", "path", rootfs,
                         "mounts", "destination", "/proc", "type", "proc", "source", "proc",
                         "destination", "/dev", "type", "tmpfs", "source", "tmpfs", "options",
                         "nosuid", "mode=755", "destination", "/data", "type", "bind", "source",
                         pod->directory, "options", "rbind", "linux", "namespaces", namespaces,
                         "cgroupsPath", cgroup, "resources", resources);
}

/* Writes the bundle and requests the container. Returns the container's ID, which the caller
 * frees. */
static inline char *pod_run(TestPod *pod, const TestContainer *spec) {
        cleanup_free char *bundle = container_path(pod, spec, "");
        cleanup_free char *config = container_path(pod, spec, "config.json");
        cleanup_free char *fstab = container_path(pod, spec, "fstab");
        cleanup_free char *log = container_log(pod, spec);
        cleanup_free char *log_dir = strndup(log, (size_t) (strrchr(log, '/') - log));
        cleanup_free char *state = print_text("%s/state/%s-%s-%u", pod->world->directory, pod->uid,
                                              spec->name, spec->attempt);
        cleanup_free char *upper = path_join(state, "upper"), *work = path_join(state, "work");
        cleanup_free char *mounts =
                print_text("overlay %s/rootfs overlay lowerdir=%s,upperdir=%s,workdir=%s 0 0\n%s",
                           bundle, pod->world->image, upper, work, strna(spec->fstab));
        cleanup_free char *cgroup = container_cgroup(pod, spec);
        cleanup_free char *events = cgroup_file(
                cgroup, "memory", cgroup_version() == 2 ? "memory.events" : "memory.oom_control");
        json_t *json = container_config(pod, spec);
        char *id = container_id_of(pod, spec);
        SandboxContainerConfig run = {
                .id = id,
                .name = spec->name,
                .attempt = spec->attempt,
                .bundle = bundle,
                .log = log,
                .events_file = events,
                .note = spec->note,
        };

        REQUIRE(mkdir_parents_at(AT_FDCWD, bundle, 0755) >= 0);
        REQUIRE(mkdir_parents_at(AT_FDCWD, log_dir, 0755) >= 0);
        REQUIRE(mkdir_parents_at(AT_FDCWD, upper, 0755) >= 0);
        REQUIRE(mkdir_parents_at(AT_FDCWD, work, 0755) >= 0);
        REQUIRE(json_dump_file(json, config, 0) >= 0);
        json_decref(json);
        write_text(fstab, mounts);
        EXPECT_EQ(sandbox_run_container(pod->sandbox, &run), 0);
        return id;
}

static inline void pod_delete(TestPod *pod, const TestContainer *spec, const char *id) {
        cleanup_free char *bundle = container_path(pod, spec, "");
        const char *directories[] = { bundle };

        EXPECT_EQ(sandbox_remove_container(pod->sandbox, id, directories, 1), 0);
}

/* The content of the container's log, without times: "stdout F hello\n…". The caller frees it. */
static inline char *pod_log(const TestPod *pod, const TestContainer *spec) {
        cleanup_free char *path = container_log(pod, spec);
        char *text = read_text(path), *out = text;

        for (char *line = text; *line;) {
                char *end = strchrnul(line, '\n');
                size_t head = strlen("2026-01-02T03:04:05.123456789Z ");
                size_t length = (size_t) (end - line) + (*end == '\n');

                if (length < head || line[head - 2] != 'Z')
                        break;
                memmove(out, line + head, length - head);
                out += length - head;
                line += length;
        }
        *out = '\0';
        return text;
}

/* --- remains ------------------------------------------------------------------------------ */

static inline void on_cleaned(const ChildResult *result, void *userdata) {
        cleanup_error Error error = ERROR_NULL;
        int *done = userdata;

        *done = child_succeeded(result) ? 1 : -1;
        if (child_explain(result, "cleanup", &error) < 0)
                printf("%s\n", error.message);
}

static inline int clean_up(PodWorld *world, const char *cgroup, const char *const *directories,
                           size_t n) {
        SandboxCleanup cleanup = { .cgroup = cgroup,
                                   .directories = directories,
                                   .n_directories = n };
        int done = 0;

        EXPECT_EQ(sandbox_cleanup(&world->config, &cleanup, on_cleaned, &done, NULL, NULL), 0);
        while (done == 0)
                (void) sd_event_run(world->event, USEC_PER_SEC / 10);
        return done;
}
