/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The machine: its name, address, capacity (CPUs, memory, swap), capabilities and security modules
 * (AppArmor, SELinux). It is read once, when the agent starts. */

#include "agent/bundle/selinux-labels.h"
#include "agent/model/node-status.h"
#include "common/error.h"

#include <stdint.h>

typedef struct MachineInfo {
        char *name;              /* in lower case, a DNS subdomain */
        char *hostname;          /* the kernel's host name */
        char *reported_hostname; /* the name given for the node, otherwise the kernel's */
        char *address; /* of the interface of the default route, or of one that is not a bridge;
                        * NULL: none */
        char *other_address;           /* of the other family, if both were given; NULL: none */
        int64_t memory_capacity;       /* bytes */
        int64_t swap_capacity;         /* bytes */
        int oom_score_adj_min;         /* the lowest value that the agent may set */
        uint64_t missing_capabilities; /* capabilities that containers cannot get, as a mask */
        bool has_x32;                  /* the kernel runs programs of the x32 ABI */
        bool has_landlock;             /* in a version with which mainstay-image can be confined */
        bool has_app_armor;            /* the kernel enforces it */
        const char *app_armor_default; /* the profile for containers; NULL: it is not loaded */
        bool has_se_linux;             /* the kernel supports it, and a policy is loaded */
        bool has_selinux_labels;       /* the policy defines these labels */
        SeLinuxLabelDefaults labels;   /* for containers; NULL: not defined */
        unsigned n_cpus;
        char **thermal_throttles; /* of the CPUs; see agent/bundle/masked-paths.h */
} MachineInfo;

/* 'name': NULL for the host name. 'has_manager': systemd is PID 1 and starts the shims. -EINVAL
 * with a message for a name that is not a DNS subdomain. */
int machine_info_discover(const char *name, bool has_manager, MachineInfo *ret, Error *reterr);

/* Sets the given addresses, "ADDRESS[,ADDRESS]", of different families. NULL or 0.0.0.0 keeps the
 * discovered address; :: selects the IPv6 address, if there is one. 0, -EINVAL with a message,
 * -ENOMEM. */
int machine_info_set_address(MachineInfo *machine, const char *given, Error *reterr);

/* The resources of the machine; the caller provides 'storage' and 'max_pods'. Huge pages may
 * change. */
NodeResources machine_capacity(const MachineInfo *machine, int64_t storage, int64_t max_pods);

/* The size in bytes of the file system of a directory; 0: not known. */
int64_t machine_storage_capacity(const char *directory);

void machine_info_done(MachineInfo *machine);
