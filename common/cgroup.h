/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Control groups by files, on cgroup v2 and on v1 (and hybrid, which for us is v1).
 *
 * A path is absolute within the hierarchies, as in /proc/PID/cgroup: "/kubepods/burstable/pod…". On
 * v1 it names one directory in each mounted hierarchy; a controller says in which of them a file
 * lies. */

#include "common/error.h"

/* 2 where /sys/fs/cgroup is a cgroup2 file system, else 1. */
int cgroup_version(void);

/* Makes the group and its parents: on v2 with the controllers cpu, cpuset, memory, pids, io and
 * hugetlb (those that there are) passed down to it, on v1 in the hierarchies of cpu, memory, pids
 * and, where there is one, hugetlb. What exists
 * stays. 0 or -errno. */
int cgroup_create(const char *path, Error *reterr);

/* Writes a value into "<file>", on v1 in the hierarchy of 'controller'. A group of v1 whose memory
 * and swap are limited together has that limit follow the one of its memory. 0 or -errno. */
int cgroup_write(const char *path, const char *controller, const char *file, const char *value,
                 Error *reterr);

/* The file's place in the file system, in memory that the caller frees, or NULL. */
char *cgroup_file(const char *path, const char *controller, const char *file);

/* Moves the calling process into the group, in every hierarchy that has it. 0 or -errno. */
int cgroup_enter(const char *path, Error *reterr);

/* Sends SIGKILL to all processes in the group and below, again until none is seen or some tries are
 * over. 0 when it is empty or not there, -EBUSY when a process would not go in a second. Blocks;
 * not for the loop. */
int cgroup_kill(const char *path);

/* Removes the group and all below, in every hierarchy. 0 when it is gone, -EBUSY when somebody is
 * in it. */
int cgroup_remove(const char *path);

/* Removes the group alone, in every hierarchy in which nobody is in it and nothing below it. */
int cgroup_remove_if_empty(const char *path);
