/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/fetch/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A zstd window of 128 MiB is the largest that the format's readers must take, and libarchive does.
 */
#define DATA_BYTES_MAX (320 * MIB)
#define FILE_BYTES_MAX (UINT64_C(256) << 30)

#define CAPABILITY(name) (UINT64_C(1) << (name))

static const uint64_t unpacking_capabilities =
        CAPABILITY(CAP_CHOWN) | CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_FOWNER) |
        CAPABILITY(CAP_FSETID) | CAPABILITY(CAP_MKNOD) | CAPABILITY(CAP_SETFCAP) |
        CAPABILITY(CAP_SYS_ADMIN); /* "trusted." attributes ask for this one */

/* Sanitizers reserve more address space than any limit. */
#if defined(__SANITIZE_ADDRESS__)
#define LIMIT_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LIMIT_MEMORY 0
#endif
#endif
#ifndef LIMIT_MEMORY
#define LIMIT_MEMORY 1
#endif

static void limit(int resource, rlim_t value) {
        struct rlimit now;

        if (getrlimit((__rlimit_resource_t) resource, &now) < 0 || now.rlim_cur <= value)
                return;
        now.rlim_cur = value;
        now.rlim_max = MIN(now.rlim_max, value);
        (void) setrlimit((__rlimit_resource_t) resource, &now);
}

void confine_process(void) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        limit(RLIMIT_CORE, 0);
        limit(RLIMIT_FSIZE, FILE_BYTES_MAX);
        if (LIMIT_MEMORY)
                limit(RLIMIT_DATA, DATA_BYTES_MAX);
        /* Beyond the limit write(2) fails with a sentence rather than with a signal. */
        (void) signal(SIGXFSZ, SIG_IGN);
}

int confine_privileges(bool unpacking, Error *reterr) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
        uint64_t keep = unpacking ? unpacking_capabilities : 0;

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return error_setf(reterr, errno, "cannot give up privileges: %s", strerror(errno));
        if (syscall(SYS_capget, &header, data) < 0)
                return error_setf(reterr, errno, "cannot read capabilities: %s", strerror(errno));
        for (size_t i = 0; i < N_ELEMENTS(data); i++) {
                uint32_t part = (uint32_t) (keep >> (32 * i));

                data[i].permitted &= part;
                data[i].effective = data[i].permitted;
                data[i].inheritable = 0;
        }
        if (syscall(SYS_capset, &header, data) < 0)
                return error_setf(reterr, errno, "cannot give up capabilities: %s",
                                  strerror(errno));
        return 0;
}
