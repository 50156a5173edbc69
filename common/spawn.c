/* SPDX-License-Identifier: Apache-2.0 */
#include "common/spawn.h"

#include <errno.h>
#include <spawn.h>
#include <unistd.h>

int spawn_with_streams(char *const *argv, int input, int output, pid_t *ret) {
        posix_spawn_file_actions_t actions;
        int r;

        if (posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        r = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        if (r == 0)
                r = posix_spawnp(ret, argv[0], &actions, NULL, argv, environ);
        (void) posix_spawn_file_actions_destroy(&actions);
        return -r;
}
