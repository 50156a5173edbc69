/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Access to cgroups through their files, on cgroup v2 and on v1 (and hybrid, which is treated like
 * v1).
 *
 * A path is absolute within the hierarchies, as in /proc/PID/cgroup: "/kubepods/burstable/pod…". On
 * v1 it refers to one directory in each mounted hierarchy; a controller selects the hierarchy of a
 * file. */

#include "common/error.h"

#include <stdbool.h>

/* 2 if /sys/fs/cgroup is a cgroup2 file system, otherwise 1. */
int cgroup_version(void);

/* Whether hierarchies are mounted at all: cgroup v2, or the memory hierarchy of v1. 0, or -ENOENT
 * with a message. */
int cgroup_check_hierarchies(Error *reterr);

/* Whether the controller is available: supported by the kernel, not disabled on its command line
 * (cgroup_disable=) and, in a cgroup namespace, available in that namespace. */
bool cgroup_has_controller(const char *controller);

/* The reason why a limit cannot be set, with the name of the controller. */
#define CGROUP_CONTROLLER_MISSING                                                                \
        "the cgroup controller '%s' is missing: the kernel does not support it, or its command " \
        "line disables it"

/* Creates the cgroup and its parents: on v2 with those of the controllers cpu, cpuset, memory,
 * pids, io and hugetlb that are available; on v1 in the hierarchies of cpu, memory, pids and, if
 * they exist, cpuacct and hugetlb. Existing ones are not changed. 0 or -errno. */
int cgroup_create(const char *path, Error *reterr);

/* Writes a value into "<file>", on v1 in the hierarchy of 'controller'. On v1, a combined limit of
 * memory and swap is changed together with the memory limit. 0 or -errno; the message of -ENOENT
 * names the controller if it is missing. */
int cgroup_write(const char *path, const char *controller, const char *file, const char *value,
                 Error *reterr);

/* The path of the file in the file system, which the caller frees, or NULL. */
char *cgroup_file(const char *path, const char *controller, const char *file);

/* The cgroup of the calling process, which the caller frees. With version 1 it must be the same in
 * the hierarchies of memory and cpuacct. 0; -EXDEV if it is not; or another -errno. */
int cgroup_of_self(char **ret);

/* The same from the text of /proc/PID/cgroup. Pure. */
int cgroup_membership_parse(const char *text, int version, char **ret);

/* Moves the calling process into the cgroup, in every hierarchy that has it. 0 or -errno. */
int cgroup_enter(const char *path, Error *reterr);

/* Sends SIGKILL to all processes in the cgroup and below, including frozen ones, repeatedly until
 * none is left or the attempts are used up. 0 if it is empty or does not exist, -EBUSY if a process
 * did not exit within a second. Blocks, so it must not be called from an event loop. */
int cgroup_kill(const char *path);

/* Removes the cgroup and everything below it, in every hierarchy. 0 if it is gone, -EBUSY if it
 * contains a process. */
int cgroup_remove(const char *path);

/* Removes only the cgroup itself, in every hierarchy in which it is empty. */
int cgroup_remove_if_empty(const char *path);

/* Whether a process is in the cgroup or below it, in any hierarchy. */
bool cgroup_has_processes(const char *path);
