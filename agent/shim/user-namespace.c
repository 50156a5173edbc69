/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces belong to the user namespace of their creator, so a child creates them, and the shim
 * enters them while the child is alive. */

#include "agent/shim/user-namespace.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/privileges.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const char file_name[] = "user-namespace";

enum {
        IDS = 65536,
};

int user_namespace_read(const char *pod_dir, unsigned *ret_first_id) {
        cleanup_free char *path = path_join(pod_dir, file_name), *text = NULL;
        unsigned long id;
        int r;

        if (!path)
                return -ENOMEM;
        r = read_file_at(AT_FDCWD, path, 64, &text, NULL);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        id = strtoul(text, NULL, 10);
        if (id < IDS || id > UINT32_MAX - IDS)
                return -EINVAL;
        *ret_first_id = (unsigned) id;
        return 1;
}

/* The shim's IDs are unmapped in the pod's user namespace, and so would be the owners of objects
 * that it creates, such as the roots of message queues. */
static int become_root(void) {
        if (privileges_set_ids(0, 0) < 0)
                return -1;
        /* Changing the IDs has reset this attribute. */
        return prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* In the child: waits for its ID map, creates the namespaces, reports that, and waits to be
 * killed. */
static void make_namespaces(int socket_fd, int namespaces) __attribute__((noreturn));
static void make_namespaces(int socket_fd, int namespaces) {
        int result = 0;
        char byte;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(socket_fd, &byte, 1) != 1)
                _exit(EXIT_FAILURE);
        if (become_root() < 0 || unshare(namespaces) < 0)
                result = errno;
        if (write(socket_fd, &result, sizeof(result)) != sizeof(result))
                _exit(EXIT_FAILURE);
        for (;;)
                (void) pause();
}

static int write_id_map(pid_t pid, const char *file, unsigned first_id) {
        char path[64], map[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, file);
        (void) snprintf(map, sizeof(map), "0 %u %d\n", first_id, IDS);
        return write_value_at(AT_FDCWD, path, map);
}

static int open_namespace(pid_t pid, const char *name) {
        char path[64];
        int fd;

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int) pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int enter_namespaces_of_child(pid_t pid, int namespaces) {
        static const struct {
                int flag;
                const char *name;
        } kinds[] = { { CLONE_NEWNET, "net" }, { CLONE_NEWIPC, "ipc" }, { CLONE_NEWUTS, "uts" } };

        for (size_t i = 0; i < N_ELEMENTS(kinds); i++) {
                cleanup_close int fd = -EBADF;

                if (!(namespaces & kinds[i].flag))
                        continue;
                fd = open_namespace(pid, kinds[i].name);
                if (fd < 0)
                        return fd;
                if (setns(fd, kinds[i].flag) < 0)
                        return -errno;
        }
        return 0;
}

static int take_over_namespaces(pid_t pid, int socket_fd, unsigned first_id, int namespaces,
                                int *ret_fd) {
        cleanup_close int fd = -EBADF;
        int result = 0, r;

        r = write_id_map(pid, "uid_map", first_id);
        if (r < 0)
                return r;
        r = write_id_map(pid, "gid_map", first_id);
        if (r < 0)
                return r;
        if (write(socket_fd, "", 1) != 1 ||
            read(socket_fd, &result, sizeof(result)) != sizeof(result))
                return -EPIPE;
        if (result != 0)
                return -result;
        fd = open_namespace(pid, "user");
        if (fd < 0)
                return fd;
        r = enter_namespaces_of_child(pid, namespaces);
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int user_namespace_enter(unsigned first_id, int namespaces, int *ret_fd, Error *reterr) {
        int sockets[2], r;
        long pid;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
                return -errno;
        pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid == 0) {
                close_fd(sockets[0]);
                make_namespaces(sockets[1], namespaces);
        }
        close_fd(sockets[1]);
        r = pid < 0 ? -errno
                    : take_over_namespaces((pid_t) pid, sockets[0], first_id, namespaces, ret_fd);
        close_fd(sockets[0]);
        if (pid > 0) {
                (void) kill((pid_t) pid, SIGKILL);
                while (waitpid((pid_t) pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        if (r < 0)
                return error_setf(reterr, -r, "cannot create a user namespace for the pod: %s",
                                  strerror(-r));
        return 0;
}

int user_namespace_bind(const char *pod_dir, int fd, Error *reterr) {
        cleanup_free char *path = path_join(pod_dir, file_name);
        char source[64];

        if (!path)
                return -ENOMEM;
        (void) snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
        if (mount(source, path, NULL, MS_BIND, NULL) < 0)
                return error_setf(reterr, errno, "cannot keep the pod's user namespace at '%s': %s",
                                  path, strerror(errno));
        return 0;
}
