/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay cp`: copies files to and from a container with tar. */

#include "agent/cli/target.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/tar.h"
#include "agent/cli/terminal-session.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* mainstay cp: copies files into and out of a container, as kubectl does, by running tar in the
 * container, so that paths are those of the container. The local half is a child process next to
 * the session, connected by a pipe. */

/* "[NAMESPACE/]POD:PATH", or a local path. */
typedef struct CpFileSpec {
        char *namespace; /* NULL: from the options */
        char *pod;       /* NULL: local */
        char *path;
} CpFileSpec;

static void cp_file_spec_done(CpFileSpec *file_spec) {
        free(file_spec->namespace);
        free(file_spec->pod);
        free(file_spec->path);
}

/* A colon after the first slash belongs to the path. */
static int cp_file_spec_parse(const char *word, CpFileSpec *ret) {
        const char *colon = strchr(word, ':'), *slash = strchr(word, '/');
        bool is_here = !colon || word[0] == '/' || word[0] == '.' ||
                       (slash && slash < colon && memchr(slash + 1, '/', (size_t) (colon - slash)));

        if (is_here) {
                ret->path = strdup(word);
                return ret->path ? 0 : -ENOMEM;
        }
        if (slash && slash < colon) {
                ret->namespace = strndup(word, (size_t) (slash - word));
                word = slash + 1;
        }
        ret->pod = strndup(word, (size_t) (colon - word));
        ret->path = strdup(colon + 1);
        return ret->pod && ret->path ? 0 : -ENOMEM;
}

/* Splits a path into its parent and its last component. "." and "/" have no component that can be
 * renamed. */
static int split_local_path(const char *path, char **ret_parent, char **ret_name) {
        cleanup_free char *for_parent = strdup(path), *for_name = strdup(path);
        const char *name;

        if (!for_parent || !for_name)
                return -ENOMEM;
        name = basename(for_name);
        if (streq(name, "/") || streq(name, ".") || streq(name, ".."))
                return -EINVAL;
        *ret_parent = strdup(dirname(for_parent));
        *ret_name = strdup(name);
        return *ret_parent && *ret_name ? 0 : -ENOMEM;
}

typedef struct CpTransfer {
        const Options *options;
        json_t *pod;
        const char *container;
        Error error;
} CpTransfer;

static void cp_transfer_done(CpTransfer *transfer) {
        json_decref(transfer->pod);
        error_done(&transfer->error);
}

static int find_cp_target(CpTransfer *transfer, const CpFileSpec *file_spec) {
        Options options = *transfer->options;
        int r;

        if (file_spec->namespace)
                options.namespace = file_spec->namespace;
        r = find_pod(&options, file_spec->pod, &transfer->pod, &transfer->error);
        if (r < 0)
                return r;
        transfer->container = choose_container(transfer->pod, transfer->options->container);
        return 0;
}

/* Runs a command in the container. An exit status, or -errno with a message. */
static int run_in_container(CpTransfer *transfer, char *const *argv, int input_fd, int output_fd,
                            int error_fd) {
        SessionStreams streams = { .input_fd = input_fd,
                                   .output_fd = output_fd,
                                   .error_fd = error_fd,
                                   .is_error_untrusted = true };
        cleanup_error Error error = ERROR_NULL;
        int code = 0, r;

        r = session_exec(transfer->options->socket, transfer->pod, transfer->container, argv,
                         &streams, &code, &error);
        if (r >= 0)
                return code;
        if (strstr(error_message(&error, r), "\"tar\": executable file not found"))
                return error_setf(&transfer->error, ENOENT,
                                  "the image of container %s has no program tar, which cp needs",
                                  transfer->container);
        error_move(&transfer->error, &error);
        return r;
}

static int wait_for_tar_child(pid_t child) {
        int status;

        while (waitpid(child, &status, 0) < 0)
                if (errno != EINTR)
                        return STATUS_FAILED;
        return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_FAILED;
}

/* Errors of the session are reported before the failure of the local half that they caused. */
static int report_cp_result(CpTransfer *transfer, int code, int child_status) {
        if (code < 0)
                return fail_with_error(code, &transfer->error);
        if (code > 0) {
                fprintf(stderr, "error: tar in the container ended with exit code %d\n", code);
                return STATUS_FAILED;
        }
        return child_status;
}

/* ---- into the container ---- */

static bool is_directory_in_container(CpTransfer *transfer, char *path) {
        char *argv[] = { (char[]){ "test" }, (char[]){ "-d" }, path, NULL };
        /* A session has at least one stream. */
        cleanup_close int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

        return run_in_container(transfer, argv, -EBADF, null_fd, -EBADF) == 0;
}

static _Noreturn void pack_child(const char *path, const char *name, int fd) {
        cleanup_error Error error = ERROR_NULL;
        int r = tar_pack(path, name, fd, &error);

        if (r < 0 && r != -EPIPE)
                (void) fail_with_error(r, &error);
        _exit(r < 0 ? STATUS_FAILED : STATUS_OK);
}

static int send_tar(CpTransfer *transfer, const char *path, const char *directory,
                    const char *name) {
        char *argv[] = { (char[]){ "tar" },
                         (char[]){ "-xmf" },
                         (char[]){ "-" },
                         (char[]){ "-C" },
                         (char *) (uintptr_t) directory,
                         NULL };
        int pipes[2], code;
        pid_t child;

        if (pipe2(pipes, O_CLOEXEC) < 0)
                return fail_with_error(-errno, &transfer->error);
        child = fork();
        if (child == 0) {
                close_fd(pipes[0]);
                pack_child(path, name, pipes[1]);
        }
        close_fd(pipes[1]);
        code = child < 0 ? -errno
                         : run_in_container(transfer, argv, pipes[0], -EBADF, STDERR_FILENO);
        close_fd(pipes[0]);
        return report_cp_result(transfer, code,
                                child < 0 ? STATUS_FAILED : wait_for_tar_child(child));
}

static int copy_into_container(CpTransfer *transfer, const CpFileSpec *from, const CpFileSpec *to) {
        cleanup_free char *real = realpath(from->path, NULL), *parent = NULL, *name = NULL;
        cleanup_free char *own_parent = NULL, *own_name = NULL;
        int r;

        if (!real)
                return fail_with_error(
                        error_setf(&transfer->error, errno, "%s: %s", from->path, strerror(errno)),
                        &transfer->error);
        if (split_local_path(real, &own_parent, &own_name) < 0)
                return fail_usage("'%s' cannot be copied as a whole", from->path);
        if (is_directory_in_container(transfer, to->path))
                return send_tar(transfer, real, to->path, own_name);
        /* A session that could not be started will not start later either. */
        error_done(&transfer->error);
        transfer->error = ERROR_NULL;
        r = split_local_path(to->path, &parent, &name);
        if (r < 0)
                return fail_usage("a name in the container is required: 'POD:/PATH'");
        return send_tar(transfer, real, parent, name);
}

/* ---- out of the container ---- */

static _Noreturn void unpack_child(const char *directory, const char *name, const char *target,
                                   int fd) {
        cleanup_error Error error = ERROR_NULL;
        char rest[4096];
        int r = chdir(directory) < 0
                        ? error_setf(&error, errno, "%s: %s", directory, strerror(errno))
                        : tar_unpack(fd, name, target, &error);

        /* A tar may end with more zeros than its reader needs, and its writer must not fail because
         * of that. */
        while (r >= 0 && read(fd, rest, sizeof(rest)) > 0)
                ;
        if (r < 0 && r != -ENODATA)
                (void) fail_with_error(r, &error);
        _exit(r < 0 ? STATUS_FAILED : STATUS_OK);
}

static int receive_tar(CpTransfer *transfer, const char *parent, const char *name,
                       const char *directory, const char *target) {
        cleanup_free char *word = path_join(".", name);
        char *argv[] = { (char[]){ "tar" },
                         (char[]){ "-cf" },
                         (char[]){ "-" },
                         (char[]){ "-C" },
                         (char *) (uintptr_t) parent,
                         word,
                         NULL };
        int pipes[2], code, status;
        pid_t child;

        if (pipe2(pipes, O_CLOEXEC) < 0 || !word)
                return fail_with_error(-errno, &transfer->error);
        child = fork();
        if (child == 0) {
                close_fd(pipes[1]);
                unpack_child(directory, name, target, pipes[0]);
        }
        close_fd(pipes[0]);
        code = child < 0 ? -errno
                         : run_in_container(transfer, argv, -EBADF, pipes[1], STDERR_FILENO);
        close_fd(pipes[1]);
        status = child < 0 ? STATUS_FAILED : wait_for_tar_child(child);
        if (code == -EPIPE) /* the local half has printed the error */
                return STATUS_FAILED;
        return report_cp_result(transfer, code, status);
}

static int copy_from_container(CpTransfer *transfer, const CpFileSpec *from, const CpFileSpec *to) {
        cleanup_free char *parent = NULL, *name = NULL, *directory = NULL, *target = NULL;
        struct stat st;

        if (split_local_path(from->path, &parent, &name) < 0)
                return fail_usage("'%s' cannot be copied as a whole", from->path);
        if (stat(to->path, &st) >= 0 && S_ISDIR(st.st_mode))
                return receive_tar(transfer, parent, name, to->path, name);
        if (split_local_path(to->path, &directory, &target) < 0)
                return fail_usage("a local name is required");
        return receive_tar(transfer, parent, name, directory, target);
}

static int transfer(const Options *options, const CpFileSpec *from, const CpFileSpec *to) {
        cleanup_with(cp_transfer_done) CpTransfer state = { .options = options };
        int r;

        if (!from->pod == !to->pod)
                return fail_usage("one of source and destination must be in a pod: POD:/PATH");
        if (!from->path[0] || !to->path[0])
                return fail_usage("a path is missing after the colon");
        r = find_cp_target(&state, from->pod ? from : to);
        if (r < 0)
                return fail_with_error(r, &state.error);
        (void) signal(SIGPIPE, SIG_IGN);
        return from->pod ? copy_from_container(&state, from, to)
                         : copy_into_container(&state, from, to);
}

int run_cp(const Options *options) {
        cleanup_with(cp_file_spec_done) CpFileSpec from = { 0 }, to = { 0 };

        if (options->n_words != 2)
                return fail_usage("source and destination are required: 'mainstay cp POD:/PATH "
                                  "LOCAL' or 'mainstay "
                                  "cp LOCAL POD:/PATH'");
        if (cp_file_spec_parse(options->words[0], &from) < 0 ||
            cp_file_spec_parse(options->words[1], &to) < 0)
                return fail_with_error(-ENOMEM, NULL);
        return transfer(options, &from, &to);
}
