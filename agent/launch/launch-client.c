/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/launch/launch-client.h"

#include "agent/launch/launch-request.h"
#include "agent/launch/launch.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/privileges.h"
#include "common/unix-socket.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sysexits.h>

static int write_strings(int fd, char *const *strings, uint32_t *ret_n) {
        uint32_t n = 0;

        for (; strings[n]; n++) {
                int r = write_all(fd, strings[n], strlen(strings[n]) + 1);

                if (r < 0)
                        return r;
        }
        if (ret_n)
                *ret_n = n;
        return 0;
}

/* The strings are passed in a file, because arguments may be larger than a packet. */
static int make_strings_file(char *const *argv, uint32_t *ret_n_arguments) {
        cleanup_close int fd = memfd_create("launch", MFD_CLOEXEC);
        int r = fd < 0 ? -errno : write_strings(fd, argv, ret_n_arguments);

        if (r < 0)
                return r;
        r = write_strings(fd, environ, NULL);
        if (r < 0)
                return r;
        return lseek(fd, 0, SEEK_SET) < 0 ? -errno : TAKE_FD(fd);
}

static int send_own_request(int socket_fd, const char *program, char *const *argv) {
        LaunchRequest request = { .version = LAUNCH_VERSION };
        cleanup_close int strings = make_strings_file(argv, &request.n_arguments);
        cleanup_close int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        const int fds[LAUNCH_FDS] = { strings, mounts, STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };

        if (strings < 0)
                return strings;
        if (mounts < 0)
                return -errno;
        if (strlen(program) >= sizeof(request.program))
                return -ENAMETOOLONG;
        memcpy(request.program, program, strlen(program) + 1);
        return launch_request_send(socket_fd, &request, fds);
}

static int receive_result(int socket_fd, LaunchResult *ret) {
        ssize_t n;

        do
                n = recv(socket_fd, ret, sizeof(*ret), 0);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        return n == sizeof(*ret) ? 0 : -ECONNRESET;
}

/* Ends this process in the same way as the program, for the parent of this process. */
static int end_like(const LaunchResult *result) {
        if (result->code == CLD_EXITED)
                return result->status;
        privileges_forbid_cores();
        (void) signal(result->status, SIG_DFL);
        (void) raise(result->status);
        return EX_TEMPFAIL;
}

int launch_client(const char *program, char *const *argv) {
        const char *given = getenv(LAUNCH_SOCKET_VARIABLE), *path = given ? given : LAUNCH_SOCKET;
        cleanup_close int fd = -EBADF;
        LaunchResult result;
        int r;

        /* The server notices the end of this process, and kills the program. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        fd = unix_connect(path, SOCK_SEQPACKET);
        r = fd < 0 ? fd : send_own_request(fd, program, argv);
        if (r < 0) {
                (void) fprintf(stderr,
                               "cannot start %s by %s: %s; mainstay-launch.socket must be active\n",
                               program, path, strerror(-r));
                return EX_TEMPFAIL;
        }
        r = receive_result(fd, &result);
        if (r < 0) {
                (void) fprintf(stderr, "%s was stopped with mainstay-launch.service\n", program);
                return EX_TEMPFAIL;
        }
        return end_like(&result);
}
