/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/target.h"

#include "agent/cli/client.h"
#include "agent/cli/session.h"
#include "agent/cli/tar.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* cp: files into a container and out of it, as kubectl does it: by a tar in the container, so that
 * every path there means what it means there. Our half is a process of its own beside the session,
 * connected by a pipe. */

/* "[NAMESPACE/]POD:PATH", or a path of ours. */
typedef struct Place {
        char *namespace; /* NULL: as the options say */
        char *pod;       /* NULL: here */
        char *path;
} Place;

static void place_done(Place *place) {
        free(place->namespace);
        free(place->pod);
        free(place->path);
}

/* A colon after a slash that begins a path belongs to the path. */
static int place_parse(const char *word, Place *ret) {
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

/* Its parent and its last component. "." and the root have none that could be named anew. */
static int split_path(const char *path, char **ret_parent, char **ret_name) {
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

typedef struct Copy {
        const Options *options;
        json_t *pod;
        const char *container;
        Error error;
} Copy;

static void copy_done(Copy *copy) {
        json_decref(copy->pod);
        error_done(&copy->error);
}

static int find_target(Copy *copy, const Place *place) {
        Options options = *copy->options;
        int r;

        if (place->namespace)
                options.namespace = place->namespace;
        r = find_pod(&options, place->pod, &copy->pod, &copy->error);
        if (r >= 0)
                copy->container = choose_container(copy->pod, copy->options->container);
        return r;
}

/* Runs a command there. An exit status, or -errno with the sentence. */
static int run_there(Copy *copy, char *const *argv, int input_fd, int output_fd, int error_fd) {
        SessionStreams streams = { .input_fd = input_fd,
                                   .output_fd = output_fd,
                                   .error_fd = error_fd };
        cleanup_error Error error = ERROR_NULL;
        int code = 0, r;

        r = session_attach(copy->options->socket, copy->pod, copy->container, argv, &streams, &code,
                           &error);
        if (r >= 0)
                return code;
        if (strstr(error_message(&error, r), "\"tar\": executable file not found"))
                return error_setf(&copy->error, ENOENT,
                                  "the image of container %s has no tar, which cp needs there",
                                  copy->container);
        error_move(&copy->error, &error);
        return r;
}

static int finish(pid_t child) {
        int status;

        while (waitpid(child, &status, 0) < 0)
                if (errno != EINTR)
                        return STATUS_FAILED;
        return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_FAILED;
}

/* What the session says goes before what became of our half because of it. */
static int conclude(Copy *copy, int code, int child_status) {
        if (code < 0)
                return fail(code, &copy->error);
        if (code > 0) {
                fprintf(stderr, "error: tar in the container ended with exit code %d\n", code);
                return STATUS_FAILED;
        }
        return child_status;
}

/* ---- into the container ---- */

static bool is_directory_there(Copy *copy, char *path) {
        char *argv[] = { (char[]){ "test" }, (char[]){ "-d" }, path, NULL };

        return run_there(copy, argv, -EBADF, STDOUT_FILENO, -EBADF) == 0;
}

static _Noreturn void pack_child(const char *path, const char *name, int fd) {
        cleanup_error Error error = ERROR_NULL;
        int r = tar_pack(path, name, fd, &error);

        if (r < 0 && r != -EPIPE)
                (void) fail(r, &error);
        _exit(r < 0 ? STATUS_FAILED : STATUS_OK);
}

static int send_tar(Copy *copy, const char *path, const char *directory, const char *name) {
        char *argv[] = { (char[]){ "tar" },
                         (char[]){ "-xmf" },
                         (char[]){ "-" },
                         (char[]){ "-C" },
                         (char *) (uintptr_t) directory,
                         NULL };
        int pipes[2], code;
        pid_t child;

        if (pipe2(pipes, O_CLOEXEC) < 0)
                return fail(-errno, &copy->error);
        child = fork();
        if (child == 0) {
                close_fd(pipes[0]);
                pack_child(path, name, pipes[1]);
        }
        close_fd(pipes[1]);
        code = child < 0 ? -errno : run_there(copy, argv, pipes[0], -EBADF, STDERR_FILENO);
        close_fd(pipes[0]);
        return conclude(copy, code, child < 0 ? STATUS_FAILED : finish(child));
}

static int copy_into(Copy *copy, const Place *from, const Place *to) {
        cleanup_free char *real = realpath(from->path, NULL), *parent = NULL, *name = NULL;
        cleanup_free char *own_parent = NULL, *own_name = NULL;
        int r;

        if (!real)
                return fail(error_setf(&copy->error, errno, "%s: %s", from->path, strerror(errno)),
                            &copy->error);
        if (split_path(real, &own_parent, &own_name) < 0)
                return fail_usage("'%s' cannot be copied as a whole", from->path);
        if (is_directory_there(copy, to->path))
                return send_tar(copy, real, to->path, own_name);
        /* Of a session that cannot be, nothing better will come. */
        error_done(&copy->error);
        copy->error = ERROR_NULL;
        r = split_path(to->path, &parent, &name);
        if (r < 0)
                return fail_usage("say what it shall be called there: 'POD:/PATH'");
        return send_tar(copy, real, parent, name);
}

/* ---- out of it ---- */

static _Noreturn void unpack_child(const char *directory, const char *name, const char *target,
                                   int fd) {
        cleanup_error Error error = ERROR_NULL;
        char rest[4096];
        int r = chdir(directory) < 0
                        ? error_setf(&error, errno, "%s: %s", directory, strerror(errno))
                        : tar_unpack(fd, name, target, &error);

        /* A tar may end in more zeros than we need to see its end; its writer shall not trip. */
        while (r >= 0 && read(fd, rest, sizeof(rest)) > 0)
                ;
        if (r < 0 && r != -ENODATA)
                (void) fail(r, &error);
        _exit(r < 0 ? STATUS_FAILED : STATUS_OK);
}

static int receive_tar(Copy *copy, const char *parent, const char *name, const char *directory,
                       const char *target) {
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
                return fail(-errno, &copy->error);
        child = fork();
        if (child == 0) {
                close_fd(pipes[1]);
                unpack_child(directory, name, target, pipes[0]);
        }
        close_fd(pipes[0]);
        code = child < 0 ? -errno : run_there(copy, argv, -EBADF, pipes[1], STDERR_FILENO);
        close_fd(pipes[1]);
        status = child < 0 ? STATUS_FAILED : finish(child);
        if (code == -EPIPE) /* our half has said why */
                return STATUS_FAILED;
        return conclude(copy, code, status);
}

static int copy_out_of(Copy *copy, const Place *from, const Place *to) {
        cleanup_free char *parent = NULL, *name = NULL, *directory = NULL, *target = NULL;
        struct stat st;

        if (split_path(from->path, &parent, &name) < 0)
                return fail_usage("'%s' cannot be copied as a whole", from->path);
        if (stat(to->path, &st) >= 0 && S_ISDIR(st.st_mode))
                return receive_tar(copy, parent, name, to->path, name);
        if (split_path(to->path, &directory, &target) < 0)
                return fail_usage("say what it shall be called here");
        return receive_tar(copy, parent, name, directory, target);
}

static int copy(const Options *options, const Place *from, const Place *to) {
        cleanup_with(copy_done) Copy state = { .options = options };
        int r;

        if (!from->pod == !to->pod)
                return fail_usage("one of the two must be in a pod: POD:/PATH");
        if (!from->path[0] || !to->path[0])
                return fail_usage("a path is missing behind the colon");
        r = find_target(&state, from->pod ? from : to);
        if (r < 0)
                return fail(r, &state.error);
        (void) signal(SIGPIPE, SIG_IGN);
        return from->pod ? copy_out_of(&state, from, to) : copy_into(&state, from, to);
}

int run_cp(const Options *options) {
        cleanup_with(place_done) Place from = { 0 }, to = { 0 };

        if (options->n_words != 2)
                return fail_usage("say what goes where: 'mainstay cp POD:/PATH HERE' or 'mainstay "
                                  "cp HERE POD:/PATH'");
        if (place_parse(options->words[0], &from) < 0 || place_parse(options->words[1], &to) < 0)
                return fail(-ENOMEM, NULL);
        return copy(options, &from, &to);
}
