/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* BundleConfig: the agent's settings and the properties of the node that all bundles share. Set by
 * the wiring; read by every file of this module. */

#include "agent/model/cdi.h"
#include "agent/model/config.h"
#include "agent/model/device.h"
#include "agent/model/image.h"
#include "agent/model/node-status.h"
#include "agent/model/node.h"
#include "agent/model/object.h"
#include "agent/model/service.h"
#include "agent/model/token.h"
#include "agent/model/volume-expansion.h"
#include "common/error.h"

/* The pod contradicts its image or the objects to which it refers; reported as the kubelet's
 * CreateContainerConfigError. */
#define BUNDLE_CONFIG_ERROR EBADR

/* An object to which the pod refers has not been received from the API server yet; like
 * BUNDLE_CONFIG_ERROR, but not reported as a failure in an event. */
#define BUNDLE_AWAITED EINPROGRESS

/* A CDI device is unknown or absent; reported as CreateContainerError, and retried at once when
 * specifications change. */
#define BUNDLE_DEVICE_MISSING ENODEV

typedef struct SeccompProfile SeccompProfile;             /* agent/bundle/seccomp.h */
typedef struct SeLinuxLabelDefaults SeLinuxLabelDefaults; /* agent/bundle/selinux-labels.h */

/* Pointers are borrowed from the wiring. */
typedef struct BundleConfig {
        const char *run_dir;
        const char *state_dir;
        const char *log_dir;
        const char *shim_path;      /* the program; NULL: containers run without its hook */
        const char *hostname;       /* HOSTNAME of containers in the host network */
        const char *cluster_domain; /* "cluster.local"; NULL or "": none */
        char *const *cluster_dns;   /* the cluster's nameservers; NULL: none */
        const char *resolv_conf;    /* a file of the node; NULL: /etc/resolv.conf; "": none */
        const char *cgroup_root;    /* "/" or an absolute path, below which kubepods is */
        bool has_slices;            /* cgroups are systemd slices; see cgroups.h */
        int64_t memory_capacity;    /* bytes of the node, to compute oom_score_adj */
        int64_t swap_capacity;      /* bytes of the node */
        bool has_limited_swap;      /* swap behavior LimitedSwap: pods may use a share of the swap
                                     * space */
        bool can_limit_swap;        /* the kernel can limit swap; see swap.h */
        bool has_single_oom_kill;   /* an OOM kill ends a process, not its container */
        int64_t storage_capacity;   /* bytes of the file system that pods write to */
        int64_t cpu_capacity_milli; /* CPU capacity of the node */
        NodeResources allocatable;  /* used by the downward API for limits that are unset */
        int64_t pod_pids_limit;     /* PID limit of a pod; < 0: none */
        NodeReservation reserved;   /* resources that pods must leave unused; zero: none */
        int oom_score_adj_min;      /* the lowest value that the agent may set */
        const char *host_ips[2];    /* at most one per family; NULL: none or unknown */
        const char *pod_ips[2]; /* in the copy for one pod: its addresses; NULL: none or unknown */
        pid_t sandbox_pid;      /* likewise: its shim, whose mount namespace contains the volumes;
                                 * 0: none */
        const DeviceEdits *device_edits; /* in the copy for one container: the edits of its devices;
                                          * or NULL */
        Image *const *volume_images; /* in the copy for one container: its images, in the order of
                                        the pod's volumes; NULL for volumes that are not images or
                                        are not mounted */
        bool refuses_api_cdi; /* annotations of an API server's pods must not name CDI devices */
        CdiLookup cdi;        /* finds CDI devices */
        char **cdi_names; /* in the copy for one container: qualified names of its CDI devices in
                             addition to those that its pod names; NULL: none */
        const char *kubelet_dir; /* "/var/lib/kubelet", where CSI drivers mount volumes */
        /* Whether the CSI driver applies fsGroup itself. NULL: there are no drivers. */
        bool (*csi_sets_group)(const char *driver, void *userdata);
        void *csi_userdata;
        const NodeLabelsTaints *node; /* to check the node affinity of volumes; NULL: unknown */
        ObjectLookup objects;
        ClaimAccess claims;
        ServiceLookup services;              /* add_variables is NULL if there is no API server */
        TokenLookup tokens;                  /* find is NULL if there is no API server */
        const SeccompProfile *seccomp;       /* for RuntimeDefault; NULL: the built-in profile */
        char *const *allowed_unsafe_sysctls; /* names, and prefixes with '*' */
        uint64_t missing_capabilities;  /* capabilities that the agent does not have, as a mask */
        char *const *thermal_throttles; /* paths that are hidden from containers; see
                                         * masked-paths.h */
        unsigned huge_pages;            /* page sizes that can be limited; see huge-pages.h */
        bool has_x32;                   /* the kernel runs programs of the x32 ABI */
        bool lacks_memory_controller;   /* of cgroups; pods start without their memory limits */
        bool lacks_pids_controller;
        bool has_app_armor;                 /* the kernel enforces AppArmor */
        const char *app_armor_default;      /* the profile for RuntimeDefault; NULL: none is
                                             * loaded */
        const char *app_armor_profiles;     /* the kernel's list, see common/app-armor.h */
        bool has_se_linux;                  /* SELinux is enabled, and a policy is loaded */
        bool has_selinux_labels;            /* the policy defines the labels below */
        const SeLinuxLabelDefaults *labels; /* labels of containers; NULL: the policy defines
                                             * none */
        int (*check_selinux_label)(const char *label); /* -EINVAL: the label is not in the policy;
                                                        * may be NULL */
        bool has_old_shim; /* in the copy for one pod: its shim was started before an upgrade, and
                            * neither creates mount points in volumes nor copies content of images
                            */
        bool has_journal;  /* container logs go to the journal, unless the pod's annotation
                            * overrides it
                            */
} BundleConfig;
