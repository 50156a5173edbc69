/* SPDX-License-Identifier: Apache-2.0 */
#include "common/seccomp-rules.h"

#include <errno.h>

int seccomp_add_calls(scmp_filter_ctx filter, uint32_t action, const char *const *names, size_t n) {
        for (size_t i = 0; i < n; i++) {
                int call = seccomp_syscall_resolve_name(names[i]), r;

                if (call == __NR_SCMP_ERROR)
                        continue;
                r = seccomp_rule_add(filter, action, call, 0);
                if (r < 0 && r != -EDOM)
                        return r;
        }
        return 0;
}

/* libseccomp (2.5.4) leaves out the rules that it finds no memory for, and reports success. */
static int load_whole_filter(scmp_filter_ctx filter) {
        int r;

        errno = 0;
        r = seccomp_load(filter);
        return r >= 0 && errno == ENOMEM ? -ENOMEM : r;
}

int seccomp_load_filter(scmp_filter_ctx filter, int r, Error *reterr) {
        if (r >= 0)
                r = load_whole_filter(filter);
        return r < 0 ? error_prefixf(reterr, r, "cannot install the system call filter") : 0;
}
