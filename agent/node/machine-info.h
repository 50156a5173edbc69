/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this machine is and what we may do on it: asked once, when the agent starts. */

#include "agent/bundle/selinux-labels.h"
#include "common/error.h"

#include <stdint.h>

typedef struct MachineInfo {
        char *name;              /* lower case, a DNS subdomain */
        char *hostname;          /* what the kernel says */
        char *address;           /* of the first interface that is up and no loopback; NULL: none */
        int64_t memory_capacity; /* bytes */
        int64_t swap_capacity;   /* bytes */
        int oom_score_adj_min;   /* the least that we may set */
        uint64_t missing_capabilities; /* those that we do not have, as a mask */
        bool has_x32;                  /* the kernel runs programs of that ABI */
        bool has_app_armor;            /* the kernel enforces it */
        const char *app_armor_default; /* our profile for containers; NULL: it is not loaded */
        bool has_se_linux;             /* the kernel has it, and a policy is loaded */
        bool has_selinux_labels;       /* which knows these */
        SeLinuxLabelDefaults labels;   /* for containers; NULLs where it has none */
        unsigned n_cpus;
} MachineInfo;

/* 'name' is NULL for the host name. 'has_manager': it is systemd as PID 1 that starts shims, not
 * we. -EINVAL with the sentence for a name that is none. */
int machine_info_discover(const char *name, bool has_manager, MachineInfo *ret, Error *reterr);
/* Bytes of the file system that a directory is in; 0 where nobody knows. */
int64_t machine_storage_capacity(const char *directory);
void machine_info_done(MachineInfo *machine);
