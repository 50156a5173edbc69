/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The paths of the agent: its files and directories, from its options and configuration, the
 * programs that it starts, and the lock of the run directory. */

#include "agent/manifest/config-files.h"
#include "agent/model/agent-options.h"
#include "agent/model/config.h"
#include "common/error.h"

#include <stdio.h>

/* Directories are absolute. */
typedef struct AgentPaths {
        char *config;
        char *config_dir; /* of drop-ins */
        char *manifest_dir;
        char *kubeconfig;           /* NULL: the node does not join an API server */
        char *bootstrap_kubeconfig; /* NULL: none */
        char *certificate_dir;      /* NULL: the default one */
        char *shim_cgroup;

        char *state_dir;
        char *run_dir;
        char *log_dir;
        char *socket; /* of the HTTP server */
        int lock_fd;  /* -EBADF: not locked */

        char *shim;
        char *connector; /* mainstay-shim, to connect to ports in the network namespaces of pods */
        char *image_helper;
        char *secret_helper;
        char *node_api;
        char *plugin_host; /* mainstay-plugins */
} AgentPaths;

#define AGENT_PATHS_NULL ((AgentPaths){ .lock_fd = -EBADF })

void agent_paths_done(AgentPaths *paths);

/* Determines the files of the configuration from the options: the directory of drop-ins is
 * "config.d" next to the configuration, unless an option names another one, which must exist. 0 or
 * -ENOMEM. */
int agent_paths_choose_config(AgentPaths *paths, const AgentOptions *options, ConfigFiles *ret);

/* The time at which the node was created, which is that of the agent's state directory. Realtime;
 * 0: not known. */
uint64_t node_creation_time(const char *state_dir);

/* Lines for 'mainstay debug dump'. */
void agent_paths_dump(const AgentPaths *paths, FILE *out);

/* Sets the members of the first group; options have precedence over the configuration. Pure. 0,
 * -EINVAL with a message, -ENOMEM. */
int agent_paths_choose(AgentPaths *paths, const AgentOptions *options, const Config *config,
                       Error *reterr);

/* Creates the directories if they do not exist, and sets their paths. -EINVAL for a path that a
 * mount option cannot contain; with a message. */
int agent_paths_make_directories(AgentPaths *paths, const AgentOptions *options, Error *reterr);

/* Creates the kubelet directories that plugins and other daemons of a node expect; existing ones
 * are not changed. The agent itself does not use them, so errors are only logged. */
void agent_paths_make_kubelet_directories(const AgentOptions *options);

/* One agent per run directory: -EBUSY with a message if another agent holds the lock. The kernel
 * releases the lock when its holder dies. */
int agent_paths_lock(AgentPaths *paths, Error *reterr);

/* Logs an error if the file system of the state directory is unsuitable for the root file systems
 * of containers. The agent continues nevertheless, to supervise pods that are already running. */
void agent_paths_check_state(const AgentPaths *paths);

/* Finds the other programs of Mainstay: next to this one in a build directory, otherwise at the
 * installed path. If the environment names the socket of mainstay-launch, programs that need more
 * privileges than the agent has are started through it. 0 or -ENOMEM. */
int agent_paths_find_programs(AgentPaths *paths);
