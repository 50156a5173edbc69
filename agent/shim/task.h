/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A task: a process forked from the shim for work that may take long: mounting, calling the
 * runtime, removing trees. It shares the shim's mount namespace, so its mounts stay. It dies with
 * the shim, unless its specification says otherwise. */

#include "common/error.h"

#include <stdint.h>
#include <sys/types.h>

typedef struct Task Task;

typedef struct TaskResult {
        int status;          /* of waitpid(2) */
        int code;            /* result of the task's function, unless it has executed a program */
        bool timed_out;      /* it was killed because of its deadline */
        const char *message; /* the function's error message, "" without one */
} TaskResult;

/* The work, which runs in the child with default signals, in a separate process group. Its result
 * is reported, unless it has executed a program. */
typedef int (*task_main_t)(void *userdata, Error *reterr);

/* Called from task_reap(), after the task has been freed. */
typedef void (*task_done_t)(const TaskResult *result, void *userdata);

typedef struct TaskSpec {
        task_main_t main;
        task_done_t done;
        void *userdata;
        uint64_t deadline; /* awake time when the process group is killed; USEC_INFINITY: none */
        bool outlives_shim;
} TaskSpec;

typedef struct TaskList {
        Task *first;
} TaskList;

/* 0 or -errno (fork, pipe, memory); 'done' is not called after an error. */
int task_start(TaskList *tasks, const TaskSpec *spec);

/* True if 'pid' was a task: 'done' has been called. */
bool task_reap(TaskList *tasks, pid_t pid, int status);

/* Shortens later deadlines of all tasks to this one. */
void tasks_limit_deadline(TaskList *tasks, uint64_t deadline);

/* Kills the tasks whose deadline has passed, with their process groups; their results follow as
 * usual. Returns the next deadline by the awake clock; USEC_INFINITY: none. */
uint64_t tasks_next_deadline(const TaskList *tasks);
void tasks_expire(TaskList *tasks, uint64_t now_awake);

/* Whether everything succeeded. */
bool task_succeeded(const TaskResult *result);

/* The reason for a failure, valid as long as the result exists. */
const char *task_explanation(const TaskResult *result);
