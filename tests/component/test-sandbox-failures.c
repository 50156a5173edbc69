/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a pod's sandbox, and what is left of it. */
#include "tests/component/pod-world.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

static char *shim_mounts(const TestPod *pod) {
        cleanup_free char *path = print_text("/proc/%d/mountinfo", sandbox_pid(pod->sandbox));

        return read_text(path);
}

/* A path as the shim sees it. */
static char *in_shim(const TestPod *pod, const char *path) {
        return print_text("/proc/%d/root%s", sandbox_pid(pod->sandbox), path);
}

static int connect_raw(const TestPod *pod) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%.60s/shim.sock",
                        pod->directory);
        REQUIRE(connect(fd, (const struct sockaddr *) &address, sizeof(address)) >= 0);
        return fd;
}

static const char *set_up(TestPod *pod, const char *fstab) {
        size_t before = pod->n_records;

        pod_ask_setup(pod, fstab, 0);
        while (pod->n_records == before)
                (void) sd_event_run(pod->world->event, USEC_PER_SEC / 10);
        EXPECT_EQ(pod->n_records, before + 1);
        pod->cursor = pod->n_records;
        return pod->records[before].event.type == SANDBOX_READY ? "ready"
                                                                : pod->records[before].message;
}

static char *host_path_line(const TestPod *pod, const char *path, const char *type) {
        return print_text("%s/%s %s/volumes/data none "
                          "rbind,x-mainstay.volume=data,x-mainstay.hostpath=%s 0 0\n",
                          pod->world->directory, path, pod->directory, type);
}

TEST(a_host_path_of_the_wrong_type_is_refused_in_the_kubelets_words)
{
        static const struct {
                const char *path, *type, *says;
        } cases[] = {
                { "missing", "Directory", "is not a directory" },
                { "file", "Directory", "is not a directory" },
                { "file", "DirectoryOrCreate", "is not a directory" },
                { "missing", "File", "is not a file" },
                { "directory", "File", "is not a file" },
                { "directory", "FileOrCreate", "is not a file" },
                { "missing", "Socket", "is not a socket file" },
                { "file", "Socket", "is not a socket file" },
                { "file", "CharDevice", "is not a character device" },
                { "file", "BlockDevice", "is not a block device" },
        };
        cleanup_free char *invalid = NULL, *orphan = NULL, *good = NULL, *expected = NULL;
        World world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "types");
        pod_start(&pod);
        for (size_t i = 0; i < 2; i++) {
                cleanup_free char *path =
                        print_text("%s/%s", world.directory, i == 0 ? "file" : "directory");
                if (i == 0)
                        write_text(path, "");
                else
                        REQUIRE(mkdir(path, 0755) >= 0);
        }
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *fstab = host_path_line(&pod, cases[i].path, cases[i].type);
                cleanup_free char *says =
                        print_text("volume \"data\": hostPath type check failed: %s/%s %s",
                                   world.directory, cases[i].path, cases[i].says);

                EXPECT_STREQ(set_up(&pod, fstab), says);
        }
        invalid = host_path_line(&pod, "file", "Nonsense");
        EXPECT_STREQ(set_up(&pod, invalid), "volume \"data\": Nonsense is an invalid volume type");
        orphan = host_path_line(&pod, "no/parent", "FileOrCreate");
        expected = print_text(
                "volume \"data\": cannot create '%s/no/parent': No such file or directory",
                world.directory);
        EXPECT_STREQ(set_up(&pod, orphan), expected);
        good = host_path_line(&pod, "directory", "Directory");
        EXPECT_STREQ(set_up(&pod, good), "ready");
        EXPECT_STREQ(set_up(&pod, invalid), "ready"); /* asked again it is done already */
        pod_down(&pod);
        world_done(&world);
}

TEST(host_paths_are_made_and_bound)
{
        static const struct {
                const char *type;
                mode_t mode;
        } cases[] = {
                { "", S_IFDIR | 0755 },
                { "DirectoryOrCreate", S_IFDIR | 0755 },
                { "FileOrCreate", S_IFREG | 0644 },
                { "CharDevice", S_IFCHR | 0600 },
                { "BlockDevice", S_IFBLK | 0600 },
                { "Socket", S_IFSOCK | 0600 },
        };
        World world;

        world_init(&world);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *uid = print_text("bound%zu", i);
                cleanup_free char *host = print_text("%s/made/%zu", world.directory, i);
                cleanup_free char *parent = print_text("%s/made", world.directory);
                cleanup_free char *relative = print_text("made/%zu", i);
                cleanup_free char *target = NULL, *seen = NULL, *fstab = NULL;
                struct stat st, there;
                TestPod pod;

                pod_init(&pod, &world, uid);
                pod_start(&pod);
                (void) mkdir(parent, 0755);
                if (S_ISSOCK(cases[i].mode) || S_ISCHR(cases[i].mode) || S_ISBLK(cases[i].mode))
                        REQUIRE(mknod(host, cases[i].mode, makedev(1, 3)) >= 0);
                fstab = host_path_line(&pod, relative, cases[i].type);
                EXPECT_STREQ(set_up(&pod, fstab), "ready");
                REQUIRE(stat(host, &st) >= 0);
                EXPECT_EQ(st.st_mode, cases[i].mode);
                target = print_text("%s/volumes/data", pod.directory);
                seen = in_shim(&pod, target);
                REQUIRE(stat(seen, &there) >= 0);
                EXPECT_EQ(there.st_ino, st.st_ino);
                EXPECT(stat(target, &there) >= 0 && there.st_ino != st.st_ino);
                pod_down(&pod);
        }
        world_done(&world);
}

TEST(a_setup_that_fails_leaves_no_mounts)
{
        cleanup_free char *fstab = NULL, *before = NULL, *after = NULL;
        World world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "undone");
        pod_start(&pod);
        (void) set_up(&pod, "this is no fstab\n");
        EXPECT(strstr(pod.records[pod.n_records - 1].message, "fstab: line 1: "));
        before = shim_mounts(&pod);
        fstab = print_text("tmpfs %s/a tmpfs size=64k 0 0\n"
                           "%s/a %s/b none bind,ro 0 0\n"
                           "nothing %s/c no-such-type defaults 0 0\n",
                           pod.directory, pod.directory, pod.directory, pod.directory);
        EXPECT(strstr(set_up(&pod, fstab), "cannot mount no-such-type on"));
        after = shim_mounts(&pod);
        EXPECT_STREQ(after, before);
        EXPECT_STREQ(set_up(&pod, ""), "ready");
        pod_down(&pod);
        world_done(&world);
}

TEST(mount_points_lie_below_the_pods_directory)
{
        cleanup_free char *outside = NULL, *dots = NULL, *itself = NULL, *link = NULL, *path = NULL;
        World world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "inside");
        pod_start(&pod);
        outside = print_text("tmpfs %s/x tmpfs defaults 0 0\n", world.directory);
        EXPECT(strstr(set_up(&pod, outside), "is not below"));
        dots = print_text("tmpfs %s/../x tmpfs defaults 0 0\n", pod.directory);
        EXPECT(strstr(set_up(&pod, dots), "cannot make the mount point"));
        itself = print_text("tmpfs %s tmpfs defaults 0 0\n", pod.directory);
        EXPECT(strstr(set_up(&pod, itself), "is not below"));
        path = path_join(pod.directory, "link");
        REQUIRE(symlink(world.directory, path) >= 0);
        link = print_text("tmpfs %s/link/never tmpfs defaults 0 0\n", pod.directory);
        EXPECT(strstr(set_up(&pod, link), "cannot make the mount point"));
        free(path);
        path = path_join(world.directory, "never");
        EXPECT(!exists(path));
        pod_down(&pod);
        world_done(&world);
}

TEST(a_source_stays_beneath_its_root)
{
        cleanup_free char *volume = NULL, *link = NULL, *secret = NULL, *escape = NULL,
                          *made = NULL;
        cleanup_free char *seen = NULL, *target = NULL;
        struct stat st;
        World world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "beneath");
        pod_start(&pod);
        volume = path_join(world.directory, "volume");
        secret = path_join(world.directory, "secret");
        link = path_join(volume, "link");
        REQUIRE(mkdir(volume, 0750) >= 0 && mkdir(secret, 0700) >= 0);
        REQUIRE(symlink("../secret", link) >= 0);
        escape = print_text("%s/link %s/v none bind,x-mainstay.beneath=%s 0 0\n", volume,
                            pod.directory, volume);
        EXPECT(strstr(set_up(&pod, escape), "cannot open 'link' beneath"));
        made = print_text("%s/new/dir %s/v none bind,ro,nosuid,x-mainstay.beneath=%s 0 0\n", volume,
                          pod.directory, volume);
        EXPECT_STREQ(set_up(&pod, made), "ready");
        target = path_join(pod.directory, "v");
        seen = in_shim(&pod, target);
        EXPECT(stat(seen, &st) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0750);
        {
                cleanup_free char *mounts = shim_mounts(&pod);
                cleanup_free char *line = print_text(" %s ro,nosuid,", target);

                EXPECT(strstr(mounts, line));
        }
        pod_down(&pod);
        world_done(&world);
}

TEST(what_the_host_shares_stays_on_the_host)
{
        cleanup_free char *host = NULL, *sub = NULL, *file = NULL, *later = NULL, *fstab = NULL;
        cleanup_free char *volume = NULL, *seen = NULL, *bad = NULL;
        World world;
        TestPod pod;

        world_init(&world);
        host = path_join(world.directory, "host");
        sub = path_join(host, "sub");
        later = path_join(host, "later");
        file = path_join(sub, "canary");
        REQUIRE(mkdir(host, 0755) >= 0);
        REQUIRE(mount("tmpfs", host, "tmpfs", 0, NULL) >= 0);
        REQUIRE(mount(NULL, host, NULL, MS_SHARED, NULL) >= 0);
        REQUIRE(mkdir(sub, 0755) >= 0 && mkdir(later, 0755) >= 0);
        REQUIRE(mount("tmpfs", sub, "tmpfs", 0, NULL) >= 0);
        write_text(file, "alive");
        free(world.mounts_before);
        world.mounts_before = mounts_in(world.directory);

        pod_init(&pod, &world, "shared");
        pod_start(&pod);
        volume = print_text("%s/volumes/data", pod.directory);
        /* Undone because the second line fails; then made for good. */
        bad = print_text("%s %s none rbind 0 0\nx %s/y no-such-type defaults 0 0\n", host, volume,
                         pod.directory);
        EXPECT(strstr(set_up(&pod, bad), "no-such-type"));
        EXPECT(exists(file));
        fstab = print_text("%s %s none rbind 0 0\n", host, volume);
        EXPECT_STREQ(set_up(&pod, fstab), "ready");
        seen = print_text("/proc/%d/root%s/sub/canary", sandbox_pid(pod.sandbox), volume);
        EXPECT(exists(seen));
        expect_no_mounts(&world);

        /* The volume keeps its peers: what the host mounts later is seen in the pod. */
        REQUIRE(mount("tmpfs", later, "tmpfs", 0, NULL) >= 0);
        {
                cleanup_free char *mounts = shim_mounts(&pod);
                cleanup_free char *line = print_text(" %s/later ", volume);

                EXPECT(strstr(mounts, line));
        }
        REQUIRE(umount(later) >= 0);
        pod_down(&pod);
        EXPECT(exists(file));
        expect_no_mounts(&world);
        REQUIRE(umount2(host, MNT_DETACH) >= 0);
        free(world.mounts_before);
        world.mounts_before = mounts_in(world.directory);
        world_done(&world);
}

/* --- runtimes ----------------------------------------------------------------------------- */

/* A runtime that is a script; "$id" and "$bundle" are set. The caller frees the path. */
static char *fake_runtime(World *world, const char *script) {
        char *path = path_join(world->directory, "fake-runtime");
        cleanup_free char *text = print_text("#!/bin/sh\n"
                                             "for word in \"$@\"; do\n"
                                             "  [ \"$last\" = --bundle ] && bundle=$word\n"
                                             "  [ \"$last\" = --log ] && log=$word\n"
                                             "  [ \"$word\" = delete ] && deleting=yes\n"
                                             "  last=$word\n"
                                             "done\n"
                                             "[ \"$deleting\" ] && exec runc \"$@\"\n"
                                             "%s\n",
                                             script);

        write_text(path, text);
        REQUIRE(chmod(path, 0755) >= 0);
        world->config.runtime_path = path;
        return path;
}

TEST(a_runtime_that_is_not_there_is_named)
{
        ContainerSpec spec = { .name = "c", .script = "true" };
        cleanup_free char *id = NULL, *again = NULL, *path = NULL;
        const SandboxEvent *event;
        World world;
        TestPod pod;

        world_init(&world);
        world.config.runtime_path = "no-such-runc";
        pod_up(&pod, &world, "missing");
        id = pod_run(&pod, &spec);
        event = pod_expect(&pod, SANDBOX_START_FAILED, id);
        EXPECT_STREQ(event->message, "cannot run 'no-such-runc': No such file or directory");
        EXPECT(event->runtime_failed);
        /* What never ran may be tried again under its name. */
        again = pod_run(&pod, &spec);
        EXPECT(pod_expect(&pod, SANDBOX_START_FAILED, again)->runtime_failed);
        pod_down(&pod);

        path = fake_runtime(&world, "");
        REQUIRE(chmod(path, 0644) >= 0);
        pod_up(&pod, &world, "forbidden");
        free(TAKE_PTR(id));
        id = pod_run(&pod, &spec);
        event = pod_expect(&pod, SANDBOX_START_FAILED, id);
        EXPECT(strstr(event->message, "fake-runtime': Permission denied"));
        pod_down(&pod);
        world_done(&world);
}

TEST(a_runtime_that_fails_says_why_and_not_into_the_log)
{
        static const struct {
                const char *script, *says;
        } cases[] = {
                { "echo talk; echo first >&2; echo 'the reason' >&2; exit 1", "the reason" },
                { "echo only; exit 1", "only" },
                { "exit 3", "' ended with status 3" },
                { "kill -SEGV $$", "' was ended by signal 11 (Segmentation fault)" },
                { "yes noise | head -c 10000000; echo 'at last' >&2; exit 1", "at last" },
                { "yes noise | head -c 6000000 >&2; exit 1", "noise" },
                { "head -c 100000 /dev/zero >&2; exit 1", "' ended with status 1" },
                { "echo noise; echo '{\"level\":\"error\",\"msg\":\"old\"}' >$log;"
                  "echo '{\"level\":\"error\",\"msg\":\"new \\u00fc\"}' >>$log;"
                  "echo '{\"level\":\"info\",\"msg\":\"nothing\"}' >>$log; echo junk >>$log; exit "
                  "1",
                  "new ü" },
                { "exit 0", "the runtime did not say which process it started" },
                { "echo abc >$bundle/pid", "the runtime did not say which process it started" },
                { "echo 1 >$bundle/pid", "the runtime did not say which process it started" },
                { "echo -5 >$bundle/pid", "the runtime did not say which process it started" },
                { "echo 4000000 >$bundle/pid",
                  "the runtime left a process that is not the shim's to watch" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ContainerSpec spec = { .name = "c", .script = "true" };
                cleanup_free char *path = NULL, *id = NULL, *log = NULL;
                const SandboxEvent *event;
                World world;
                TestPod pod;

                world_init(&world);
                path = fake_runtime(&world, cases[i].script);
                pod_up(&pod, &world, "fails");
                id = pod_run(&pod, &spec);
                event = pod_expect(&pod, SANDBOX_START_FAILED, id);
                EXPECT(event->runtime_failed);
                if (!strstr(event->message, cases[i].says))
                        EXPECT_STREQ(event->message, cases[i].says);
                log = container_log(&pod, &spec);
                {
                        cleanup_free char *text = read_text(log);
                        EXPECT_STREQ(text, "");
                }
                pod_down(&pod);
                (void) umount2(world.run_dir, MNT_DETACH);
                REQUIRE(remove_tree_at(AT_FDCWD, world.image) >= 0);
                free(TAKE_PTR(world.mounts_before));
                world.mounts_before = mounts_in(world.directory);
                world_done(&world);
        }
}

TEST(a_runtime_that_hangs_is_ended)
{
        ContainerSpec spec = { .name = "c", .script = "true" };
        cleanup_free char *path = NULL, *id = NULL, *text = NULL, *child = NULL;
        const SandboxEvent *event;
        World world;
        TestPod pod;

        world_init(&world);
        world.config.runtime_timeout_sec = 1;
        path = fake_runtime(&world, "sleep 3600 & echo $! >$bundle/child; wait");
        pod_up(&pod, &world, "hangs");
        id = pod_run(&pod, &spec);
        event = pod_expect(&pod, SANDBOX_START_FAILED, id);
        EXPECT(event->runtime_failed);
        EXPECT(strstr(event->message, "fake-runtime' took longer than 1 s and was ended"));
        child = container_path(&pod, &spec, "child");
        text = read_text(child);
        for (unsigned i = 0; i < 500 && kill((pid_t) atoi(text), 0) >= 0; i++)
                (void) sd_event_run(world.event, USEC_PER_SEC / 100);
        EXPECT(kill((pid_t) atoi(text), 0) < 0);
        /* One that hangs does not hold up the end of the pod, nor do other containers wait. */
        pod_down(&pod);
        world_done(&world);
}

TEST(a_runtime_that_talks_much_loses_nothing)
{
        ContainerSpec spec = { .name = "c", .script = "echo hello" };
        cleanup_free char *path = NULL, *id = NULL, *log = NULL;
        size_t lines = 0;
        World world;
        TestPod pod;

        world_init(&world);
        path = fake_runtime(&world, "seq 1 200000; exec runc \"$@\"");
        pod_up(&pod, &world, "talks");
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SANDBOX_EXITED, id);
        log = pod_log(&pod, &spec);
        for (const char *p = log; (p = strchr(p, '\n')); p++)
                lines++;
        EXPECT_EQ(lines, 200001);
        EXPECT(strstr(log, "stdout F 200000\nstdout F hello\n"));
        pod_down(&pod);
        world_done(&world);
}

TEST(what_fails_before_the_runtime_is_told_apart)
{
        ContainerSpec mount_fails = { .name = "mount", .script = "true" };
        ContainerSpec no_log = { .name = "log", .script = "true" };
        cleanup_free char *fstab = NULL, *id = NULL, *log_id = NULL, *log = NULL, *outside = NULL;
        cleanup_free char *bundle = NULL, *early = NULL;
        const SandboxEvent *event;
        World world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "before");
        pod_start(&pod);
        early = pod_run(&pod, &mount_fails);
        event = pod_expect(&pod, SANDBOX_START_FAILED, early);
        EXPECT_STREQ(event->message, "the sandbox is not set up");
        EXPECT(!event->runtime_failed);
        EXPECT_STREQ(set_up(&pod, ""), "ready");

        bundle = container_path(&pod, &mount_fails, "");
        fstab = print_text("/no/such/source %s/data none bind 0 0\n", bundle);
        mount_fails.fstab = fstab;
        id = pod_run(&pod, &mount_fails);
        event = pod_expect(&pod, SANDBOX_START_FAILED, id);
        EXPECT(!event->runtime_failed);
        EXPECT_STREQ(event->message, "cannot open '/no/such/source': No such file or directory");
        {
                cleanup_free char *mounts = shim_mounts(&pod);
                EXPECT(!strstr(mounts, bundle));
        }
        log_id = container_id_of(&pod, &no_log);
        log = container_log(&pod, &no_log);
        EXPECT_EQ(sandbox_run(pod.sandbox,
                              &(SandboxRun){
                                      .id = log_id, .name = "log", .bundle = bundle, .log = log }),
                  0);
        event = pod_expect(&pod, SANDBOX_START_FAILED, log_id);
        EXPECT(!event->runtime_failed);
        EXPECT(strstr(event->message, "cannot open the log '"));
        pod_down(&pod);
        world_done(&world);
}

/* --- ends --------------------------------------------------------------------------------- */

static void on_cleaned(const ChildResult *result, void *userdata) {
        cleanup_error Error error = ERROR_NULL;
        int *done = userdata;

        *done = child_succeeded(result) ? 1 : -1;
        if (child_explain(result, "cleanup", &error) < 0)
                printf("%s\n", error.message);
}

static int clean_up(World *world, const char *cgroup, const char *const *directories, size_t n) {
        SandboxCleanup cleanup = { cgroup, directories, n };
        int done = 0;

        EXPECT_EQ(sandbox_cleanup(&world->config, &cleanup, on_cleaned, &done, NULL, NULL), 0);
        while (done == 0)
                (void) sd_event_run(world->event, USEC_PER_SEC / 10);
        return done;
}

TEST(a_shim_that_is_killed_is_lost_once_and_cleaned_up_after)
{
        ContainerSpec spec = { .name = "c", .script = "sleep 3600 & sleep 3600" };
        cleanup_free char *id = NULL, *cgroup = NULL, *memory = NULL, *state = NULL, *again = NULL;
        int status = 0;
        World world;
        TestPod pod;
        pid_t pid;

        REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) >= 0); /* to see how the container ends */
        world_init(&world);
        pod_up(&pod, &world, "killed");
        id = pod_run(&pod, &spec);
        pid = pod_expect(&pod, SANDBOX_STARTED, id)->pid;
        EXPECT(kill(sandbox_pid(pod.sandbox), SIGKILL) >= 0);
        (void) pod_expect(&pod, SANDBOX_LOST, NULL);
        EXPECT(!sandbox_is_connected(pod.sandbox));
        EXPECT_EQ(sandbox_pid(pod.sandbox), 0);
        EXPECT_EQ(sandbox_run(pod.sandbox, &(SandboxRun){ .id = id }), -ENOTCONN);
        EXPECT_EQ(sandbox_connect(pod.sandbox, NULL), 0);
        EXPECT(kill(pid, 0) >= 0); /* that is what the cleanup is for */

        cgroup = print_text("%s/podkilled", world.cgroup);
        memory = cgroup_file(cgroup, "memory", "cgroup.procs");
        EXPECT(exists(memory));
        state = path_join(world.directory, "state");
        {
                const char *directories[] = { pod.directory, state, "/no/such/directory" };

                EXPECT_EQ(clean_up(&world, cgroup, directories, 3), 1);
                EXPECT(!exists(memory));
                EXPECT(!exists(pod.directory));
                EXPECT(!exists(state));
                EXPECT_EQ(clean_up(&world, cgroup, directories, 3), 1);
        }
        EXPECT_EQ(waitpid(pid, &status, 0), pid);
        EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        for (size_t i = 0, lost = 0; i < pod.n_records; i++) {
                lost += pod.records[i].event.type == SANDBOX_LOST;
                EXPECT(lost <= 1);
        }
        expect_no_mounts(&world);

        /* And the pod can have another one, through the same Sandbox. */
        REQUIRE(mkdir(pod.directory, 0700) >= 0);
        pod_start(&pod);
        EXPECT_STREQ(set_up(&pod, ""), "ready");
        again = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SANDBOX_STARTED, again);
        pod_down(&pod);
        world_done(&world);
}

TEST(a_socket_of_a_dead_shim_is_no_hindrance)
{
        World world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "stale");
        EXPECT(kill(sandbox_pid(pod.sandbox), SIGKILL) >= 0);
        (void) pod_expect(&pod, SANDBOX_LOST, NULL);
        pod_start(&pod);
        pod_down(&pod);
        world_done(&world);
}

TEST(a_connection_that_ends_is_made_again_while_the_shim_lives)
{
        ContainerSpec spec = { .name = "c", .script = "sleep 3600" };
        cleanup_free char *id = NULL;
        World world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "again");
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SANDBOX_STARTED, id);
        close_fd(connect_raw(&pod)); /* takes our place, as a second agent would */
        EXPECT(pod_expect(&pod, SANDBOX_STARTED, id)->replayed);
        EXPECT(pod_expect(&pod, SANDBOX_SYNCED, NULL)->ready);
        EXPECT(sandbox_pid(pod.sandbox) > 0);
        for (size_t i = 0; i < pod.n_records; i++)
                EXPECT(pod.records[i].event.type != SANDBOX_LOST);
        pod_down(&pod);
        world_done(&world);
}

TEST(a_shim_that_cannot_start_is_an_error_or_lost)
{
        cleanup_error Error error = ERROR_NULL;
        World world;
        TestPod pod;

        world_init(&world);
        world.config.shim_path = "/no/such/shim";
        pod_init(&pod, &world, "none");
        EXPECT_EQ(sandbox_start(pod.sandbox, true, false, &error), -ENOENT);
        EXPECT_STREQ(error.message, "cannot start '/no/such/shim': No such file or directory");
        EXPECT_EQ(sandbox_connect(pod.sandbox, NULL), 0);
        pod_done(&pod);

        world.config.shim_path = "/bin/true";
        pod_init(&pod, &world, "true");
        EXPECT_EQ(sandbox_start(pod.sandbox, true, false, NULL), 0);
        (void) pod_expect(&pod, SANDBOX_LOST, NULL);
        EXPECT_EQ(pod.n_records, 1);
        pod_done(&pod);
        world_done(&world);
}

TEST(the_end_of_a_pod_leaves_nothing)
{
        ContainerSpec runs = { .name = "runs", .script = "trap '' TERM; sleep 3600" };
        ContainerSpec family = { .name = "family",
                                 .host_pids = true,
                                 .script = "sleep 3600 & sleep 3600" };
        ContainerSpec ended = { .name = "ended", .script = "true" };
        const ContainerSpec *specs[] = { &runs, &family, &ended };
        cleanup_free char *fstab = NULL, *socket = NULL, *runtime = NULL;
        World world;
        TestPod pod;
        pid_t shim, pid;

        world_init(&world);
        pod_init(&pod, &world, "whole");
        pod_start(&pod);
        fstab = print_text("tmpfs %s/shm tmpfs size=64k 0 0\n", pod.directory);
        EXPECT_STREQ(set_up(&pod, fstab), "ready");
        for (size_t i = 0; i < N_ELEMENTS(specs); i++) {
                cleanup_free char *id = pod_run(&pod, specs[i]);

                pid = pod_expect(&pod, SANDBOX_STARTED, id)->pid;
                if (specs[i] == &ended)
                        (void) pod_expect(&pod, SANDBOX_EXITED, id);
        }
        expect_no_mounts(&world);
        shim = sandbox_pid(pod.sandbox);
        EXPECT_EQ(sandbox_teardown(pod.sandbox), 0);
        (void) pod_expect(&pod, SANDBOX_LOST, NULL);
        for (unsigned i = 0; i < 500 && kill(shim, 0) >= 0; i++)
                (void) sd_event_run(world.event, USEC_PER_SEC / 100);
        EXPECT(kill(shim, 0) < 0); /* reaped by the loop */
        EXPECT(kill(pid, 0) < 0);
        socket = path_join(pod.directory, "shim.sock");
        EXPECT(!exists(socket));
        runtime = path_join(pod.directory, "runtime");
        for (size_t i = 0; i < N_ELEMENTS(specs); i++) {
                cleanup_free char *cgroup = container_cgroup(&pod, specs[i]);
                cleanup_free char *procs = cgroup_file(cgroup, "memory", "cgroup.procs");
                cleanup_free char *id = container_id_of(&pod, specs[i]);
                cleanup_free char *state = path_join(runtime, id);

                EXPECT(!exists(procs));
                EXPECT(!exists(state));
        }
        expect_no_mounts(&world);
        pod_done(&pod);
        world_done(&world);
}

TEST(a_deleted_container_leaves_its_log)
{
        ContainerSpec spec = { .name = "c", .script = "echo kept" };
        cleanup_free char *id = NULL, *bundle = NULL, *log = NULL, *runtime = NULL, *mounts = NULL;
        World world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "deleted");
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SANDBOX_EXITED, id);
        bundle = container_path(&pod, &spec, "");
        EXPECT(exists(bundle));
        pod_delete(&pod, &spec, id);
        (void) pod_expect(&pod, SANDBOX_DELETED, id);
        EXPECT(!exists(bundle));
        mounts = shim_mounts(&pod);
        EXPECT(!strstr(mounts, bundle));
        runtime = print_text("%s/runtime/%s", pod.directory, id);
        EXPECT(!exists(runtime));
        log = pod_log(&pod, &spec);
        EXPECT_STREQ(log, "stdout F kept\n");
        pod_down(&pod);
        world_done(&world);
}

/* --- prepare and cleanup ------------------------------------------------------------------ */

static size_t count_lines_with(const char *text, const char *word) {
        size_t n = 0;

        for (const char *p = text; (p = strstr(p, word)); p++)
                n++;
        return n;
}

TEST(prepare_makes_one_private_mount)
{
        cleanup_free char *parent = NULL, *directory = NULL, *mounts = NULL, *word = NULL;
        SandboxConfig config = { .shim_path = BUILD_DIR "/agent/mainstay-shim" };
        struct stat st;

        become_host();
        parent = path_join(test_directory(), "shared");
        directory = path_join(parent, "run dir");
        REQUIRE(mkdir(parent, 0755) >= 0);
        REQUIRE(mount("tmpfs", parent, "tmpfs", 0, NULL) >= 0);
        REQUIRE(mount(NULL, parent, NULL, MS_SHARED, NULL) >= 0);
        config.run_dir = directory;
        for (unsigned i = 0; i < 3; i++)
                EXPECT_EQ(sandbox_prepare(&config, NULL), 0);
        EXPECT(stat(directory, &st) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0700);
        mounts = read_text("/proc/self/mountinfo");
        word = print_text("%s/run\\040dir rw,", parent);
        EXPECT_EQ(count_lines_with(mounts, word), 1);
        EXPECT(!strstr(strstr(mounts, word), "shared:") ||
               strchr(strstr(mounts, word), '\n') < strstr(strstr(mounts, word), "shared:"));
        REQUIRE(umount2(parent, MNT_DETACH) >= 0);
}

TEST(a_pod_is_not_mounted_where_the_host_would_see_it)
{
        cleanup_free char *path = NULL;
        World world;
        TestPod pod;

        world_init(&world);
        REQUIRE(mount(NULL, world.run_dir, NULL, MS_SHARED, NULL) >= 0);
        free(world.mounts_before);
        world.mounts_before = mounts_in(world.directory);
        pod_init(&pod, &world, "exposed");
        pod_start(&pod);
        path = print_text("tmpfs %s/x tmpfs defaults 0 0\n", pod.directory);
        EXPECT(strstr(set_up(&pod, path), "is on a mount that is shared with the host"));
        pod_down(&pod);
        world_done(&world);
}

TEST(cleanup_never_removes_through_a_mount)
{
        cleanup_free char *gone = NULL, *inside = NULL, *elsewhere = NULL, *canary = NULL;
        World world;

        world_init(&world);
        gone = path_join(world.directory, "gone");
        inside = path_join(gone, "a/mounted here");
        elsewhere = path_join(world.directory, "elsewhere");
        canary = path_join(elsewhere, "canary");
        REQUIRE(mkdir_parents_at(AT_FDCWD, inside, 0755) >= 0);
        REQUIRE(mkdir(elsewhere, 0755) >= 0);
        write_text(canary, "alive");
        REQUIRE(mount(elsewhere, inside, NULL, MS_BIND, NULL) >= 0);
        REQUIRE(mount("tmpfs", inside, "tmpfs", 0, NULL) >= 0);
        {
                const char *directories[] = { gone };

                EXPECT_EQ(clean_up(&world, NULL, directories, 1), 1);
        }
        EXPECT(!exists(gone));
        EXPECT(exists(canary));
        expect_no_mounts(&world);
        world_done(&world);
}

/* --- the socket --------------------------------------------------------------------------- */

/* Receives until a packet has that in it. False at the end of the connection. */
static bool receive_until(int fd, const char *word) {
        char packet[70000];
        ssize_t n;

        while ((n = recv(fd, packet, sizeof(packet) - 1, 0)) > 0) {
                packet[n] = '\0';
                if (strstr(packet, word))
                        return true;
        }
        return false;
}

TEST(nonsense_on_the_socket_is_dropped)
{
        static const char *const nonsense[] = {
                "x",
                "{",
                "[]",
                "null",
                "{\"type\":5}",
                "{\"type\":\"run\"}",
                "{\"type\":\"run\",\"id\":\"../../x\",\"name\":\"c\",\"bundle\":\"/\",\"log\":\"/"
                "x\"}",
                "{\"type\":\"stop\",\"id\":\"x\",\"signal\":99999999999}",
                "{\"type\":\"stop\",\"id\":\"x\",\"grace_usec\":-1}",
                "{\"type\":\"delete\",\"id\":\"x\",\"directories\":[1]}",
        };
        cleanup_free char *large = malloc(200000);
        World world;
        TestPod pod;
        int fd;

        world_init(&world);
        pod_up(&pod, &world, "socket");
        pod_disconnect(&pod);
        fd = connect_raw(&pod);
        EXPECT(receive_until(fd, "\"synced\""));
        for (size_t i = 0; i < N_ELEMENTS(nonsense); i++)
                EXPECT(send(fd, nonsense[i], strlen(nonsense[i]), 0) >= 0);
        REQUIRE(large);
        memset(large, '[', 200000);
        EXPECT(send(fd, large, 65536, 0) >= 0);
        EXPECT(send(fd, large, 150000, 0) >= 0);
        EXPECT(send(fd, "{\"type\":\"dance\"}", 16, 0) >= 0);
        EXPECT(receive_until(fd, "unknown message 'dance'"));
        /* Words of a newer agent are no nonsense. */
        EXPECT(send(fd, "{\"type\":\"hello\",\"version\":7,\"new\":{}}", 38, 0) >= 0);
        close_fd(fd);
        pod_reconnect(&pod);
        EXPECT(pod_expect(&pod, SANDBOX_SYNCED, NULL)->ready);
        pod_down(&pod);
        world_done(&world);
}

TEST(an_agent_that_does_not_read_is_let_go)
{
        ContainerSpec spec = { .name = "c", .script = "echo alive" };
        cleanup_free char *id = NULL;
        bool hung_up = false;
        World world;
        TestPod pod;
        int fd;

        world_init(&world);
        pod_up(&pod, &world, "deaf");
        pod_disconnect(&pod);
        fd = connect_raw(&pod);
        for (unsigned i = 0; i < 100000 && !hung_up; i++)
                hung_up = send(fd, "{\"type\":\"dance\"}", 16, MSG_NOSIGNAL) < 0;
        EXPECT(hung_up);
        close_fd(fd);
        pod_reconnect(&pod);
        EXPECT(pod_expect(&pod, SANDBOX_SYNCED, NULL)->ready);
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SANDBOX_EXITED, id);
        pod_down(&pod);
        world_done(&world);
}

TEST(only_root_may_connect)
{
        cleanup_free char *socket_path = NULL, *pods = NULL;
        struct stat st;
        World world;
        TestPod pod;
        int status;
        pid_t child;

        world_init(&world);
        pod_up(&pod, &world, "root");
        socket_path = path_join(pod.directory, "shim.sock");
        EXPECT(stat(socket_path, &st) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0600);
        /* Even where somebody has opened every door to it. */
        pod_disconnect(&pod);
        REQUIRE(chmod(socket_path, 0666) >= 0 && chmod(pod.directory, 0755) >= 0);
        REQUIRE(chmod(world.run_dir, 0755) >= 0 && chmod(world.directory, 0755) >= 0);
        pods = path_join(world.run_dir, "pods");
        REQUIRE(chmod(pods, 0755) >= 0);
        child = fork();
        if (child == 0) {
                int fd;

                if (setuid(65534) < 0)
                        _exit(2);
                fd = connect_raw(&pod);
                _exit(receive_until(fd, "hello"));
        }
        REQUIRE(waitpid(child, &status, 0) == child);
        EXPECT_EQ(status, 0);
        pod_reconnect(&pod);
        pod_down(&pod);
        world_done(&world);
}

TEST(a_run_directory_may_have_a_long_name)
{
        cleanup_free char *deep = NULL;
        World world;
        TestPod pod;

        world_init(&world);
        (void) umount2(world.run_dir, MNT_DETACH);
        deep = print_text("%s/%0150d", world.run_dir, 0);
        free(world.run_dir);
        world.run_dir = TAKE_PTR(deep);
        world.config.run_dir = world.run_dir;
        REQUIRE(sandbox_prepare(&world.config, NULL) >= 0);
        free(world.mounts_before);
        world.mounts_before = mounts_in(world.directory);
        pod_up(&pod, &world, "long");
        pod_down(&pod);
        world_done(&world);
}
