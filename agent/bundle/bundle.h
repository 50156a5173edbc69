/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pod + image -> what the shim and the OCI runtime need: directories, fstab, config.json, cgroup
 * values.
 *
 * Everything is computed first, by pure functions of the headers beside this one; the two functions
 * here write it. Written twice it is the same, so an agent that died in between just writes again.
 */

#include "agent/model/image.h"
#include "agent/model/object.h"
#include "agent/model/service.h"
#include "agent/model/token.h"
#include "common/error.h"

/* What the pod asks for contradicts its image or what it refers to: the kubelet's
 * CreateContainerConfigError. */
#define BUNDLE_CONFIG_ERROR EBADR

typedef struct SeccompProfile SeccompProfile;             /* agent/bundle/seccomp.h */
typedef struct SeLinuxLabelDefaults SeLinuxLabelDefaults; /* agent/bundle/selinux-labels.h */

/* What all bundles of an agent share. All that is pointed to is borrowed. */
typedef struct BundleConfig {
        const char *run_dir;
        const char *state_dir;
        const char *log_dir;
        const char *hostname;       /* what containers in the host's network see as HOSTNAME */
        const char *cluster_domain; /* "cluster.local"; NULL or "": none */
        char *const *cluster_dns;   /* the cluster's nameservers; NULL: none */
        const char *resolv_conf;    /* the node's file; NULL: /etc/resolv.conf; "": none */
        const char *cgroup_root;    /* "/" or an absolute path: kubepods lies below it */
        bool has_slices;            /* groups are systemd's slices; see groups.h */
        int64_t memory_capacity;    /* bytes of the node, for oom_score_adj */
        int64_t swap_capacity;      /* bytes of the node */
        bool has_limited_swap;      /* pods may have a share of it */
        bool can_limit_swap;        /* the kernel can; see swap.h */
        int64_t storage_capacity;   /* bytes of the file system that pods write to */
        int64_t cpu_capacity_milli; /* of the node, for what asks for its limit and has none */
        int64_t pids_limit;         /* of a pod; < 0: none */
        int oom_score_adj_min;      /* the least that we may set */
        const char *host_ip;        /* NULL: unknown */
        const char *pod_ips[2];     /* in a copy for one pod: its own addresses, NULL: none (yet) */
        pid_t sandbox_pid;          /* likewise: who has its volumes mounted; 0: nobody yet */
        Image *const *volume_images; /* in a copy for one container: by the pod's volumes, NULL for
                                      * what is none that it mounts */
        ObjectLookup objects;
        ServiceLookup services;        /* add_variables is NULL where there is no API server */
        TokenLookup tokens;            /* find is NULL where there is no API server */
        const SeccompProfile *seccomp; /* RuntimeDefault; NULL: the one that we bring along */
        char *const *allowed_sysctls;  /* besides the safe ones: names, and prefixes with '*' */
        uint64_t missing_capabilities; /* those that we do not have ourselves, as a mask */
        unsigned huge_pages;           /* sizes that can be limited; see huge-pages.h */
        bool has_x32;                  /* the kernel runs programs of that ABI */
        bool has_app_armor;            /* the kernel enforces it */
        const char *app_armor_default; /* RuntimeDefault: a profile; NULL: none is loaded */
        bool has_se_linux;             /* the kernel has it, and a policy is loaded */
        bool has_selinux_labels;       /* that policy knows those below */
        const SeLinuxLabelDefaults *labels; /* for containers; NULL: none are known */
        int (*check_selinux_label)(
                const char *label); /* -EINVAL: the kernel does not know it; or NULL */
        bool has_journal;           /* logs of containers go to the journal, unless a pod says */
} BundleConfig;

/* Makes the pod's directories, cgroup (with the QoS group above it), volumes of ours, files and
 * fstab. /etc/hosts only in the node's network; see bundle_write_hosts(). */
int bundle_prepare_pod(const BundleConfig *config, const Pod *pod, Error *reterr);

/* Writes the pod's /etc/hosts, now that it has addresses of its own; or, with none, as the node's.
 */
int bundle_write_hosts(const BundleConfig *config, const Pod *pod, const char *const *addresses,
                       size_t n_addresses, Error *reterr);

/* Brings the volumes that are made of objects and fields up to date, under the eyes of running
 * containers: what has changed is exchanged at once, what is not there any more stays as it was. 0
 * or the first failure. */
int bundle_update_volumes(const BundleConfig *config, const Pod *pod, Error *reterr);

/* What sandbox_run_container() wants to know of a container's bundle. */
typedef struct Bundle {
        char id[65];
        char *directory;
        char *log;
        char *events_file;
        char **remains; /* directories to remove with the attempt */
} Bundle;

/* Writes the bundle of one attempt. 'sandbox_pid' is the shim, whose namespaces the container
 * joins. -BUNDLE_CONFIG_ERROR, or another -errno. */
int bundle_prepare_container(const BundleConfig *config, const Pod *pod, const Container *container,
                             unsigned attempt, const Image *image, pid_t sandbox_pid, Bundle *ret,
                             Error *reterr);

/* The last words of an attempt that ended, as core/v1 has them: the end of what it wrote to its
 * terminationMessagePath, or, where the policy says so and it failed, of its log. NULL: none. The
 * caller frees it. */
char *bundle_termination_message(const BundleConfig *config, const Pod *pod,
                                 const Container *container, unsigned attempt, bool has_failed);

/* The paths of an attempt, computed again; writes nothing. 0 or -ENOMEM. */
int bundle_attempt_paths(const BundleConfig *config, const Pod *pod, const char *container,
                         unsigned attempt, Bundle *ret);
void bundle_done(Bundle *bundle);

/* Sets the weight of the QoS group of Burstable pods: the sum of their CPU requests. 0 or -errno.
 */
int bundle_update_qos(const BundleConfig *config, int64_t burstable_milli_cpu, Error *reterr);
