/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A task is a process of the shim's own, forked from it, in which work is done that may take long:
 * mounting, calling the runtime, removing trees. It shares the shim's mount namespace, so what it
 * mounts stays. It dies with the shim. */

#include "common/error.h"

#include <stdint.h>
#include <sys/types.h>

typedef struct Task Task;

typedef struct TaskResult {
        int status;          /* of waitpid(2) */
        int code;            /* what the task's function returned, if it did not become a program */
        bool timed_out;      /* we ended it */
        const char *message; /* the function's sentence, "" when there is none */
} TaskResult;

/* The work. Runs in the child with default signals, in a process group of its own. What it returns
 * becomes the result, unless it has executed a program. */
typedef int (*task_main_t)(void *userdata, Error *reterr);

/* Called from tasks_reap(). The task is gone then. */
typedef void (*task_done_t)(const TaskResult *result, void *userdata);

typedef struct TaskSpec {
        task_main_t main;
        task_done_t done;
        void *userdata;
        uint64_t deadline; /* boottime; USEC_INFINITY: none. The process group is killed then */
} TaskSpec;

typedef struct TaskList {
        Task *first;
} TaskList;

/* 0 or -errno (fork, pipe, memory), and then 'done' is not called. */
int task_start(TaskList *tasks, const TaskSpec *spec);

/* True when 'pid' was a task: 'done' has been called. */
bool task_reap(TaskList *tasks, pid_t pid, int status);

/* No later deadline than this from now on. */
void tasks_limit_deadline(TaskList *tasks, uint64_t deadline);

uint64_t tasks_next_deadline(const TaskList *tasks);
void tasks_expire(TaskList *tasks, uint64_t now_boottime);

/* Everything went well. */
bool task_succeeded(const TaskResult *result);

/* Why not, for a person; as long as the result is. */
const char *task_explanation(const TaskResult *result);
