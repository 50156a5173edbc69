/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/image-helper-run.h"

#include "agent/cli/cli.h"
#include "common/cleanup.h"
#include "common/strv.h"

#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* The program in the build directory if mainstay runs from there, otherwise the installed one. */
static void find_image_helper(char ret[static PATH_MAX]) {
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        const char *slash;

        if (n > 0) {
                self[n] = '\0';
                slash = strrchr(self, '/');
                n = snprintf(ret, PATH_MAX, "%.*s/mainstay-image", (int) (slash - self), self);
                if (n > 0 && n < PATH_MAX && access(ret, X_OK) >= 0)
                        return;
        }
        (void) snprintf(ret, PATH_MAX, "%s/mainstay-image", MAINSTAY_LIBEXEC_DIR);
}

static int make_helper_arguments(const ImageHelperRun *run, const char *helper, char ***argv) {
        int r = strv_append(argv, helper);

        if (r >= 0)
                r = strv_append(argv, run->verb);
        if (r >= 0)
                r = strv_appendf(argv, "--store=%s", run->store);
        for (size_t i = 0; r >= 0 && i < run->n_words; i++)
                if (run->words[i])
                        r = strv_append(argv, run->words[i]);
        return r;
}

static int set_helper_files(const ImageHelperRun *run, posix_spawn_file_actions_t *actions) {
        const int files[] = { run->input, run->output, run->error };
        int r = 0;

        for (int i = 0; r == 0 && i < (int) N_ELEMENTS(files); i++)
                if (files[i] > 0)
                        r = posix_spawn_file_actions_adddup2(actions, files[i], i);
        return r;
}

int image_helper_run(const ImageHelperRun *run) {
        cleanup_strv char **argv = NULL;
        posix_spawn_file_actions_t actions;
        char helper[PATH_MAX];
        int status = 0, r;
        pid_t pid = -1;

        find_image_helper(helper);
        r = make_helper_arguments(run, helper, &argv);
        if (r < 0)
                return r;
        if (posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        r = set_helper_files(run, &actions);
        if (r == 0)
                r = posix_spawn(&pid, helper, &actions, NULL, argv, environ);
        (void) posix_spawn_file_actions_destroy(&actions);
        if (r != 0)
                return -r;
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_FAILED;
}
