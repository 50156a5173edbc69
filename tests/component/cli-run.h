/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs the program mainstay against a fake agent. */

#include "tests/component/fake-agent.h"

#include <signal.h>
#include <spawn.h>

typedef struct Result {
        int status;
        char *out, *err;
} Result;

static void result_done(Result *result) {
        free(result->out);
        free(result->err);
}

typedef struct Running {
        pid_t pid;
        int fds[2]; /* its standard output and error; -EBADF after the end of each */
        char *texts[2];
        size_t lengths[2];
} Running;

/* Starts "mainstay <arguments>" with 'input' as standard input. The arguments are in one string. */
static Running spawn_cli(const char *arguments, const char *input) {
        char *argv[16] = { (char[]){ "mainstay" } };
        cleanup_free char *copy = strdup(arguments);
        char *rest = copy;
        Running running = { .texts = { strdup(""), strdup("") } };
        posix_spawn_file_actions_t actions;
        size_t n = 1;
        int pipes[2][2];

        while (rest && n < 15)
                argv[n++] = strsep(&rest, " ");
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, input ? input : "/dev/null", O_RDONLY, 0);
        for (int i = 0; i < 2; i++) {
                REQUIRE(pipe2(pipes[i], O_CLOEXEC) == 0);
                posix_spawn_file_actions_adddup2(&actions, pipes[i][1], i + 1);
                running.fds[i] = pipes[i][0];
                (void) fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
        }
        setenv("MAINSTAY_SOCKET", socket_path, 1);
        setenv("TZ", "UTC", 1);
        REQUIRE(posix_spawn(&running.pid, BUILD_DIR "/agent/mainstay", &actions, NULL, argv,
                            environ) == 0);
        posix_spawn_file_actions_destroy(&actions);
        close_fd(pipes[0][1]);
        close_fd(pipes[1][1]);
        return running;
}

static void read_output(Running *running, int i) {
        ssize_t n;

        while (running->fds[i] >= 0) {
                running->texts[i] = realloc(running->texts[i], running->lengths[i] + 65537);
                REQUIRE(running->texts[i]);
                n = read(running->fds[i], running->texts[i] + running->lengths[i], 65536);
                if (n == 0)
                        running->fds[i] = close_fd(running->fds[i]);
                if (n <= 0)
                        break;
                running->lengths[i] += (size_t) n;
        }
        running->texts[i][running->lengths[i]] = '\0';
}

static void run_turn(Running *running) {
        if (event)
                run_loop_once();
        else
                (void) poll(NULL, 0, 5);
        read_output(running, 0);
        read_output(running, 1);
}

static Result wait_for_result(Running *running) {
        Result result;

        for (uint64_t end = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;
             running->fds[0] >= 0 || running->fds[1] >= 0;) {
                REQUIRE(now_boottime_usec() < end);
                run_turn(running);
        }
        REQUIRE(waitpid(running->pid, &result.status, 0) == running->pid);
        result.status = WIFEXITED(result.status) ? WEXITSTATUS(result.status) : -1;
        result.out = running->texts[0];
        result.err = running->texts[1];
        return result;
}

static bool wait_for_output(Running *running, const char *text) {
        for (uint64_t end = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;
             now_boottime_usec() < end && running->fds[0] >= 0;) {
                run_turn(running);
                if (strstr(running->texts[0], text))
                        return true;
        }
        return false;
}

static void expect_run(const char *arguments, int status, const char *out, const char *err) {
        Running running = spawn_cli(arguments, NULL);
        cleanup_with(result_done) Result result = wait_for_result(&running);

        if (result.status != status)
                printf("mainstay %s:\n", arguments);
        EXPECT_EQ(result.status, status);
        EXPECT_STREQ(result.out, out);
        EXPECT_STREQ(result.err, err);
}
