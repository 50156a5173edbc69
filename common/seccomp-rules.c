/* SPDX-License-Identifier: Apache-2.0 */
#include "common/seccomp-rules.h"

#include <errno.h>
#include <sys/mman.h>

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

int seccomp_add_data_calls(scmp_filter_ctx filter) {
        static const char *const calls[] = { "mmap", "mmap2", "mprotect" };
        int r = 0;

        if (HAS_SANITIZER)
                return seccomp_add_calls(filter, SCMP_ACT_ALLOW, calls, N_ELEMENTS(calls));
        for (size_t i = 0; r >= 0 && i < N_ELEMENTS(calls); i++) {
                int call = seccomp_syscall_resolve_name(calls[i]);

                if (call == __NR_SCMP_ERROR)
                        continue;
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1,
                                     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
                r = r == -EDOM ? 0 : r; /* it does not exist on this architecture */
        }
        return r;
}

/* libseccomp (2.5.4) omits rules for which memory is insufficient, and reports success. */
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
