/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/capability.h"

#include "agent/model/names.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

/* clang-format off */
const char *const capability_names[N_CAPABILITIES] = {
        [CAP_CHOWN]              = "CAP_CHOWN",
        [CAP_DAC_OVERRIDE]       = "CAP_DAC_OVERRIDE",
        [CAP_DAC_READ_SEARCH]    = "CAP_DAC_READ_SEARCH",
        [CAP_FOWNER]             = "CAP_FOWNER",
        [CAP_FSETID]             = "CAP_FSETID",
        [CAP_KILL]               = "CAP_KILL",
        [CAP_SETGID]             = "CAP_SETGID",
        [CAP_SETUID]             = "CAP_SETUID",
        [CAP_SETPCAP]            = "CAP_SETPCAP",
        [CAP_LINUX_IMMUTABLE]    = "CAP_LINUX_IMMUTABLE",
        [CAP_NET_BIND_SERVICE]   = "CAP_NET_BIND_SERVICE",
        [CAP_NET_BROADCAST]      = "CAP_NET_BROADCAST",
        [CAP_NET_ADMIN]          = "CAP_NET_ADMIN",
        [CAP_NET_RAW]            = "CAP_NET_RAW",
        [CAP_IPC_LOCK]           = "CAP_IPC_LOCK",
        [CAP_IPC_OWNER]          = "CAP_IPC_OWNER",
        [CAP_SYS_MODULE]         = "CAP_SYS_MODULE",
        [CAP_SYS_RAWIO]          = "CAP_SYS_RAWIO",
        [CAP_SYS_CHROOT]         = "CAP_SYS_CHROOT",
        [CAP_SYS_PTRACE]         = "CAP_SYS_PTRACE",
        [CAP_SYS_PACCT]          = "CAP_SYS_PACCT",
        [CAP_SYS_ADMIN]          = "CAP_SYS_ADMIN",
        [CAP_SYS_BOOT]           = "CAP_SYS_BOOT",
        [CAP_SYS_NICE]           = "CAP_SYS_NICE",
        [CAP_SYS_RESOURCE]       = "CAP_SYS_RESOURCE",
        [CAP_SYS_TIME]           = "CAP_SYS_TIME",
        [CAP_SYS_TTY_CONFIG]     = "CAP_SYS_TTY_CONFIG",
        [CAP_MKNOD]              = "CAP_MKNOD",
        [CAP_LEASE]              = "CAP_LEASE",
        [CAP_AUDIT_WRITE]        = "CAP_AUDIT_WRITE",
        [CAP_AUDIT_CONTROL]      = "CAP_AUDIT_CONTROL",
        [CAP_SETFCAP]            = "CAP_SETFCAP",
        [CAP_MAC_OVERRIDE]       = "CAP_MAC_OVERRIDE",
        [CAP_MAC_ADMIN]          = "CAP_MAC_ADMIN",
        [CAP_SYSLOG]             = "CAP_SYSLOG",
        [CAP_WAKE_ALARM]         = "CAP_WAKE_ALARM",
        [CAP_BLOCK_SUSPEND]      = "CAP_BLOCK_SUSPEND",
        [CAP_AUDIT_READ]         = "CAP_AUDIT_READ",
        [CAP_PERFMON]            = "CAP_PERFMON",
        [CAP_BPF]                = "CAP_BPF",
        [CAP_CHECKPOINT_RESTORE] = "CAP_CHECKPOINT_RESTORE",
};
/* clang-format on */
_Static_assert(N_CAPABILITIES == CAP_LAST_CAP + 1,
               "the kernel's headers define a different number");

int capability_from_name(const char *name) {
        size_t prefix = strncasecmp(name, "CAP_", 4) == 0 ? 0 : 4;

        for (int i = 0; i < N_CAPABILITIES; i++)
                if (strcasecmp(capability_names[i] + prefix, name) == 0)
                        return i;
        return -EINVAL;
}

bool capability_is_all(const char *name) {
        return strcasecmp(name, "ALL") == 0;
}

int check_capability(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (capability_is_all(value) || capability_from_name(value) >= 0)
                return 0;
        return error_setf(reterr, EINVAL,
                          "must be a capability such as NET_ADMIN, or ALL, not '%s'",
                          excerpt(text, value));
}
