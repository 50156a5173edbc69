/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Settings of pod sandboxes: those shared by all, and those for the start of one. */

#include <stdbool.h>

/* Settings that all sandboxes share. Strings are borrowed and outlive the sandboxes. */
typedef struct SandboxConfig {
        struct sd_event *event;
        const char *shim_path;         /* the mainstay-shim program */
        const char *connect_path;      /* mainstay-shim again, but permitted to enter namespaces */
        const char *runtime_path;      /* runc or crun: a path, or a name to look up in PATH */
        const char *run_dir;           /* <run-dir>; a pod's directory is <run-dir>/pods/<uid> */
        const char *shim_cgroup;       /* cgroup below which each shim has its own, named by UID */
        struct SystemdClient *systemd; /* if systemd starts the shims; NULL: the agent does */
        struct RuntimeCopy *runtime_copy; /* of the runtime, for starts; NULL: none */
        unsigned runtime_timeout_sec;     /* limit for one call of the runtime; 0: two minutes */
} SandboxConfig;

/* The settings for starting the shim of one pod. */
typedef struct SandboxStartOptions {
        const char *description;     /* for log messages; NULL: only the UID is known */
        bool host_network, host_ipc; /* the pod stays in the host's namespaces of that kind (network
                                        includes UTS, as in the kubelet) */
        bool has_systemd_cgroup;     /* systemd creates the containers' cgroups */
} SandboxStartOptions;
