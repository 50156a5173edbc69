/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/sysctl.h"

#include "agent/model/names.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* pkg/kubelet/sysctl/safe_sysctls.go */
static const char *const safe[] = {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
        NULL,
};

static const struct {
        const char *prefix;
        SysctlNamespace namespace;
} namespaces[] = {
        { "kernel.sem", SYSCTL_OF_IPC }, { "kernel.shm", SYSCTL_OF_IPC },
        { "kernel.msg", SYSCTL_OF_IPC }, { "fs.mqueue.", SYSCTL_OF_IPC },
        { "net.", SYSCTL_OF_NETWORK },
};

const char *sysctl_dotted(const char *name, char buffer[SYSCTL_NAME_SIZE]) {
        bool swap = name[strcspn(name, "./")] == '/';

        (void) snprintf(buffer, SYSCTL_NAME_SIZE, "%s", name);
        for (char *c = buffer; swap && *c; c++)
                if (*c == '/')
                        *c = '.';
                else if (*c == '.')
                        *c = '/';
        return buffer;
}

SysctlNamespace sysctl_namespace(const char *name) {
        for (size_t i = 0; i < N_ELEMENTS(namespaces); i++)
                if (strncmp(name, namespaces[i].prefix, strlen(namespaces[i].prefix)) == 0)
                        return namespaces[i].namespace;
        return SYSCTL_OF_NODE;
}

bool sysctl_is_safe(const char *name) {
        return text_is_one_of(name, safe);
}

bool sysctl_is_listed(const char *name, char *const *patterns) {
        for (size_t i = 0; patterns && patterns[i]; i++) {
                char dotted[SYSCTL_NAME_SIZE];
                size_t n = strlen(sysctl_dotted(patterns[i], dotted));

                if (streq(dotted, name) ||
                    (n > 0 && dotted[n - 1] == '*' && strncmp(dotted, name, n - 1) == 0))
                        return true;
        }
        return false;
}

int check_sysctl_pattern(const char *value, Error *reterr) {
        char dotted[SYSCTL_NAME_SIZE], text[EXCERPT_SIZE];
        size_t n = strlen(value);

        if (n >= SYSCTL_NAME_SIZE ||
            sysctl_namespace(sysctl_dotted(value, dotted)) == SYSCTL_OF_NODE)
                return error_setf(reterr, EINVAL,
                                  "must be a namespaced sysctl such as kernel.msgmax or net.*, "
                                  "not '%s'",
                                  excerpt(text, value));
        return 0;
}
