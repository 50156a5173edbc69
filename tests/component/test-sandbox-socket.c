/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of a shim's socket, and invalid packets. */
#include "tests/component/pod-world.h"

#include <sys/socket.h>
#include <sys/un.h>

static int connect_raw(const TestPod *pod) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%.60s/shim.sock",
                        pod->directory);
        REQUIRE(connect(fd, (const struct sockaddr *) &address, sizeof(address)) >= 0);
        return fd;
}

TEST(a_closed_connection_is_restored_while_the_shim_runs)
{
        TestContainer spec = { .name = "c", .script = "sleep 3600" };
        cleanup_free char *id = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "again");
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SHIM_EVENT_STARTED, id);
        close_fd(connect_raw(&pod)); /* takes over the connection, like a second agent */
        EXPECT(pod_expect(&pod, SHIM_EVENT_STARTED, id)->replayed);
        EXPECT(pod_expect(&pod, SHIM_EVENT_SYNCED, NULL)->ready);
        EXPECT(sandbox_pid(pod.sandbox) > 0);
        for (size_t i = 0; i < pod.n_records; i++)
                EXPECT(pod.records[i].event.type != SHIM_EVENT_LOST);
        pod_down(&pod);
        world_done(&world);
}

/* Receives until a packet contains the text. False at the end of the connection. */
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

TEST(invalid_packets_are_dropped)
{
        static const char *const nonsense[] = {
                "x",
                "{",
                "[]",
                "null",
                "{\"type\":5}",
                "{\"type\":\"run\"}",
                "{\"type\":\"run\",\"id\":\"../x\",\"name\":\"\",\"bundle\":\"\",\"log\":\"\"}",
                "{\"type\":\"stop\",\"id\":\"x\",\"signal\":99999999999}",
                "{\"type\":\"stop\",\"id\":\"x\",\"grace_usec\":-1}",
                "{\"type\":\"delete\",\"id\":\"x\",\"directories\":[1]}",
        };
        cleanup_free char *large = malloc(200000);
        PodWorld world;
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
        /* Unknown members of a newer agent are accepted. */
        EXPECT(send(fd, "{\"type\":\"hello\",\"version\":7,\"new\":{}}", 38, 0) >= 0);
        close_fd(fd);
        pod_reconnect(&pod);
        EXPECT(pod_expect(&pod, SHIM_EVENT_SYNCED, NULL)->ready);
        pod_down(&pod);
        world_done(&world);
}

TEST(an_agent_that_does_not_read_is_disconnected)
{
        TestContainer spec = { .name = "c", .script = "echo alive" };
        cleanup_free char *id = NULL;
        bool hung_up = false;
        PodWorld world;
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
        EXPECT(pod_expect(&pod, SHIM_EVENT_SYNCED, NULL)->ready);
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SHIM_EVENT_EXITED, id);
        pod_down(&pod);
        world_done(&world);
}

TEST(only_root_may_connect)
{
        cleanup_free char *socket_path = NULL, *pods = NULL;
        struct stat st;
        PodWorld world;
        TestPod pod;
        int status;
        pid_t child;

        world_init(&world);
        pod_up(&pod, &world, "root");
        socket_path = path_join(pod.directory, "shim.sock");
        EXPECT(stat(socket_path, &st) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0600);
        /* The shim refuses other users even if all directories and the socket are accessible to
         * them. */
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
        PodWorld world;
        TestPod pod;

        world_init(&world);
        (void) umount2(world.run_dir, MNT_DETACH);
        deep = print_text("%s/%0150d", world.run_dir, 0);
        free(world.run_dir);
        world.run_dir = TAKE_PTR(deep);
        world.config.run_dir = world.run_dir;
        REQUIRE(sandbox_prepare(&world.config, NULL, NULL) >= 0);
        free(world.mounts_before);
        world.mounts_before = mounts_in(world.directory);
        pod_up(&pod, &world, "long");
        pod_down(&pod);
        world_done(&world);
}

/* Creates the socket of a shim that greets with this version of the protocol and does nothing
 * else. */
static int greet_as_shim(TestPod *pod, int listen_fd, const char *greeting) {
        static const char synced[] = "{\"type\":\"synced\",\"ready\":true}";
        int fd;

        EXPECT_EQ(sandbox_connect(pod->sandbox, NULL), 1);
        fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        REQUIRE(fd >= 0);
        EXPECT(send(fd, greeting, strlen(greeting), 0) >= 0);
        EXPECT(send(fd, synced, strlen(synced), 0) >= 0);
        (void) pod_expect(pod, SHIM_EVENT_SYNCED, NULL);
        return fd;
}

TEST(older_shims_get_no_requests_that_they_do_not_support)
{
        const SandboxContainerConfig with_target = {
                .id = "x", .name = "e", .bundle = "/b", .log = "/l", .target = "y"
        };
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd, null_fd;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "old");
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%.60s/shim.sock",
                        pod.directory);
        REQUIRE(bind(listen_fd, (const struct sockaddr *) &address, sizeof(address)) >= 0);
        REQUIRE(listen(listen_fd, 1) >= 0);
        null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        fd = greet_as_shim(&pod, listen_fd, "{\"type\":\"hello\",\"version\":3,\"pid\":1}");
        EXPECT(!sandbox_can_attach(pod.sandbox));
        EXPECT_EQ(sandbox_attach(pod.sandbox, &(SandboxAttach){ .container = "x" }, null_fd),
                  -ENOTSUP);
        EXPECT_EQ(sandbox_run_container(pod.sandbox, &with_target), -ENOTSUP);
        EXPECT_EQ(sandbox_request_usage(pod.sandbox), -ENOTSUP);
        pod_disconnect(&pod);
        close_fd(fd);
        REQUIRE(sandbox_new(&world.config, "old", on_pod_event, &pod, &pod.sandbox) >= 0);
        fd = greet_as_shim(&pod, listen_fd, "{\"type\":\"hello\",\"version\":4,\"pid\":1}");
        EXPECT(sandbox_can_attach(pod.sandbox));
        EXPECT_EQ(sandbox_attach(pod.sandbox, &(SandboxAttach){ .container = "x" }, null_fd), 0);
        EXPECT_EQ(sandbox_run_container(pod.sandbox, &with_target), 0);
        EXPECT(receive_until(fd, "\"attach\""));
        EXPECT(receive_until(fd, "\"target\":\"y\""));
        close_fd(fd);
        close_fd(listen_fd);
        close_fd(null_fd);
        pod_done(&pod);
        world_done(&world);
}
