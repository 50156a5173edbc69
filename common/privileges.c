/* SPDX-License-Identifier: Apache-2.0 */
#include "common/privileges.h"

#include "common/macros.h"

#include <errno.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* On older 32-bit architectures the plain names are calls with 16-bit IDs. */
#ifdef SYS_setresuid32
#define CALL_SETGROUPS SYS_setgroups32
#define CALL_SETRESGID SYS_setresgid32
#define CALL_SETRESUID SYS_setresuid32
#else
#define CALL_SETGROUPS SYS_setgroups
#define CALL_SETRESGID SYS_setresgid
#define CALL_SETRESUID SYS_setresuid
#endif

enum {
        NOBODY = 65534,
        NO_CORE = 1, /* byte: with 0, the program in a core pattern would still get a core */
};

int privileges_set_ids(uid_t uid, gid_t gid) {
        if (syscall(CALL_SETGROUPS, 0, NULL) < 0 || syscall(CALL_SETRESGID, gid, gid, gid) < 0 ||
            syscall(CALL_SETRESUID, uid, uid, uid) < 0)
                return -errno;
        return 0;
}

int privileges_leave_root(const char *user, Error *reterr) {
        const struct passwd *entry;
        uid_t uid = NOBODY;
        gid_t gid = NOBODY;
        int r;

        if (geteuid() != 0)
                return 0;
        entry = getpwnam(user);
        if (entry && entry->pw_uid > 0) {
                uid = entry->pw_uid;
                gid = entry->pw_gid;
        }
        r = privileges_set_ids(uid, gid);
        return r < 0 ? error_setf(reterr, -r, "cannot switch to an unprivileged user: %s",
                                  strerror(-r))
                     : 0;
}

/* A unit without capabilities may not even call capset(2). */
int privileges_keep_capabilities(uint64_t keep) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3] = { 0 };
        struct __user_cap_data_struct kept[_LINUX_CAPABILITY_U32S_3] = { 0 };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capget, &header, held) < 0)
                return -errno;
        for (size_t i = 0; i < N_ELEMENTS(kept); i++)
                kept[i].permitted = kept[i].effective =
                        held[i].permitted & (uint32_t) (keep >> (32 * i));
        if (memcmp(held, kept, sizeof(held)) == 0)
                return 0;
        return syscall(SYS_capset, &header, kept) < 0 ? -errno : 0;
}

void privileges_drop_bounding_set(void) {
        for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) >= 0; capability++)
                ;
}

void privileges_forbid_cores(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_CORE, &limit) < 0)
                return;
        limit.rlim_cur = MIN(limit.rlim_max, NO_CORE);
        (void) setrlimit(RLIMIT_CORE, &limit);
}

void privileges_hide_memory(void) {
        privileges_forbid_cores();
        if (!HAS_SANITIZER)
                (void) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}
