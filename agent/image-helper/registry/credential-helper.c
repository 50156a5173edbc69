/* SPDX-License-Identifier: Apache-2.0 */

/* Docker credential helpers: programs installed by the administrator that read a server's name and
 * print {"Username": …, "Secret": …}. A helper runs without a shell, and its name is checked
 * strictly because it comes from a document. */

#include "agent/image-helper/registry/registry-credentials.h"

#include "agent/image-helper/pull/document.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

enum {
        ANSWER_BYTES_MAX = 64 * 1024,
        HELPER_TIMEOUT_MSEC = 30 * 1000,
        NAME_LENGTH_MAX_OF_HELPER = 64
};

#define TOKEN_USER "<token>"

static bool name_is_valid(const char *name) {
        size_t n = strlen(name);

        return n > 0 && n <= NAME_LENGTH_MAX_OF_HELPER &&
               strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
                       n;
}

static int spawn_credential_helper(const char *program, int input, int output, pid_t *ret) {
        char *argv[] = { (char *) (uintptr_t) program, (char[]){ "get" }, NULL };

        return spawn_with_streams(argv, input, output, ret);
}

/* Reads until the end or the deadline. */
static ssize_t read_helper_output(int fd, uint64_t deadline,
                                  char answer[static ANSWER_BYTES_MAX + 1]) {
        size_t length = 0;

        for (;;) {
                struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
                uint64_t now = now_boottime_usec();
                ssize_t n;

                if (now >= deadline || length == ANSWER_BYTES_MAX)
                        return now >= deadline ? -ETIMEDOUT : -E2BIG;
                if (poll(&poll_fd, 1, (int) ((deadline - now) / USEC_PER_MSEC) + 1) <= 0)
                        continue;
                n = read(fd, answer + length, ANSWER_BYTES_MAX - length);
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0) {
                        answer[length] = '\0';
                        return (ssize_t) length;
                }
                length += n > 0 ? (size_t) n : 0;
        }
}

/* Waits for the exit of the helper. Returns its status, or -ETIMEDOUT if it was killed at the
 * deadline. */
static int reap_helper(pid_t pid, uint64_t deadline) {
        cleanup_close int fd = pidfd_open(pid, 0);
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        uint64_t now = now_boottime_usec();
        bool is_late = fd < 0 || now >= deadline ||
                       poll(&poll_fd, 1, (int) ((deadline - now) / USEC_PER_MSEC) + 1) <= 0;
        int status = 0;

        if (is_late)
                (void) kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return is_late ? -ETIMEDOUT : status;
}

static int run_credential_helper(const char *program, const char *server, char *answer,
                                 Error *reterr) {
        uint64_t deadline = now_boottime_usec() + HELPER_TIMEOUT_MSEC * USEC_PER_MSEC;
        int input[2] = { -EBADF, -EBADF }, output[2] = { -EBADF, -EBADF }, status = 0;
        ssize_t n = -EIO;
        pid_t pid = -1;
        int r;

        if (pipe2(input, O_CLOEXEC) < 0 || pipe2(output, O_CLOEXEC) < 0)
                r = -errno;
        else
                r = spawn_credential_helper(program, input[0], output[1], &pid);
        close_fd(input[0]);
        close_fd(output[1]);
        if (r >= 0 && pid > 0) {
                /* If a helper does not read its input, its output will show the problem. */
                (void) write_all(input[1], server, strlen(server));
                input[1] = close_fd(input[1]);
                n = read_helper_output(output[0], deadline, answer);
                status = reap_helper(pid, n < 0 ? 0 : deadline);
                if (n >= 0 && status < 0)
                        n = status;
        }
        close_fd(input[1]);
        close_fd(output[0]);
        if (r < 0)
                return error_setf(reterr, -r, "cannot be started: %s", strerror(-r));
        if (n < 0)
                return error_setf(reterr, (int) -n, "%s", strerror((int) -n));
        /* On failure, a helper prints an arbitrary message for humans on standard output. */
        if (status != 0)
                return strstr(answer, "not found") ? -ENOENT : error_setf(reterr, EIO, "failed");
        return 0;
}

static int parse_helper_output(const json_t *answer, Credential *ret, Error *reterr) {
        const char *user = json_text(answer, "Username");
        const char *secret = json_text(answer, "Secret");
        bool is_token = user && streq(user, TOKEN_USER);
        Credential one = { 0 };

        if (!user || !secret)
                return error_setf(reterr, EBADMSG, "the output has no user or no secret");
        if (is_token)
                one.identity_token = strdup(secret);
        else {
                one.user = strdup(user);
                one.password = strdup(secret);
        }
        if (is_token ? !one.identity_token : !one.user || !one.password) {
                credential_done(&one);
                return -ENOMEM;
        }
        *ret = one;
        return 0;
}

int credential_ask_helper(const char *name, const char *server, Credential *ret, Error *reterr) {
        cleanup_free char *answer = calloc(1, ANSWER_BYTES_MAX + 1);
        cleanup_json json_t *json = NULL;
        char program[NAME_LENGTH_MAX_OF_HELPER + sizeof("docker-credential-")];
        int r;

        if (!answer)
                return -ENOMEM;
        if (!name_is_valid(name))
                return error_setf(reterr, EINVAL, "is not a valid name of a helper");
        (void) snprintf(program, sizeof(program), "docker-credential-%s", name);
        r = run_credential_helper(program, server, answer, reterr);
        if (r >= 0)
                r = document_parse(answer, strlen(answer), &json, reterr);
        if (r >= 0)
                r = parse_helper_output(json, ret, reterr);
        explicit_bzero(answer, ANSWER_BYTES_MAX);
        return r;
}
