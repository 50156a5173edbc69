/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The machine: its name, address, capacity (CPUs, memory, swap), capabilities and security modules
 * (AppArmor, SELinux). It is read once, when the agent starts. */

#include "agent/bundle/selinux-labels.h"
#include "agent/model/node-status.h"
#include "common/error.h"

#include <stdint.h>

typedef struct MachineInfo {
        char *name;              /* lower case, a DNS subdomain */
        char *hostname;          /* of the kernel */
        char *reported_hostname; /* the name that was given for the node, else that of the kernel */
        char *address; /* of the default route's interface, or of one that is not a bridge; NULL */
        char *other_address;           /* of the other family, if the node was given both; NULL */
        int64_t memory_capacity;       /* bytes */
        int64_t swap_capacity;         /* bytes */
        int oom_score_adj_min;         /* the lowest that the agent may set */
        uint64_t missing_capabilities; /* that containers cannot get, as a mask */
        bool has_x32;                  /* the kernel runs programs of that ABI */
        bool has_landlock;             /* of a version that confines mainstay-image */
        bool has_app_armor;            /* the kernel enforces it */
        const char *app_armor_default; /* the profile for containers; NULL: it is not loaded */
        bool has_se_linux;             /* the kernel has it, and a policy is loaded */
        bool has_selinux_labels;       /* the policy has these */
        SeLinuxLabelDefaults labels;   /* for containers; NULL: none */
        unsigned n_cpus;
        char **thermal_throttles; /* of its CPUs; see agent/bundle/masked-paths.h */
} MachineInfo;

/* 'name': NULL for the host name. 'has_manager': systemd as PID 1 starts the shims. -EINVAL with a
 * message for a name that is not a DNS subdomain. */
int machine_info_discover(const char *name, bool has_manager, MachineInfo *ret, Error *reterr);

/* Sets the given addresses, "ADDRESS[,ADDRESS]", the second one of the other family. NULL or
 * 0.0.0.0: the discovered one stays; ::: it is one of IPv6, if there is one. 0, -EINVAL with a
 * message, -ENOMEM. */
int machine_info_set_address(MachineInfo *machine, const char *given, Error *reterr);

/* The resources of the machine; 'storage' and 'max_pods' are the caller's. Huge pages may
 * change. */
NodeResources machine_capacity(const MachineInfo *machine, int64_t storage, int64_t max_pods);

/* Bytes of the file system that a directory is in; 0: not known. */
int64_t machine_storage_capacity(const char *directory);

void machine_info_done(MachineInfo *machine);
