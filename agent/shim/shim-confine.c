/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/shim-confine.h"

#include "common/account-file.h"
#include "common/call-filter.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/privileges.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define OWN_USER   "mainstay-log"
#define MEMORY_MAX (64 * MIB) /* for the address space, including libraries */

enum {
        NOBODY = 65534,
        PASSWD_MAX = 1024 * 1024,
};

static int compare_descriptors(const void *a, const void *b) {
        int x = *(const int *) a, y = *(const int *) b;

        return (x > y) - (x < y);
}

int confine_descriptors(int *kept, size_t n) {
        unsigned first = STDERR_FILENO + 1;

        if (dup2(STDIN_FILENO, STDOUT_FILENO) < 0 ||
            (!HAS_SANITIZER && dup2(STDIN_FILENO, STDERR_FILENO) < 0))
                return -errno;
        qsort(kept, n, sizeof(kept[0]), compare_descriptors);
        for (size_t i = 0; i < n; i++) {
                if (kept[i] < (int) first)
                        continue;
                if ((unsigned) kept[i] > first && close_range(first, (unsigned) kept[i] - 1, 0) < 0)
                        return -errno;
                first = (unsigned) kept[i] + 1;
        }
        return close_range(first, UINT_MAX, 0) < 0 ? -errno : 0;
}

static void find_own_user(uid_t *ret_uid, gid_t *ret_gid) {
        cleanup_free char *passwd = NULL, *name = NULL;

        if (read_file_at(AT_FDCWD, "/etc/passwd", PASSWD_MAX, &passwd, NULL) < 0 ||
            find_account(passwd, OWN_USER, 0, ret_uid, ret_gid, &name) <= 0 || *ret_uid == 0)
                *ret_uid = *ret_gid = NOBODY;
}

static int drop_copier_privileges(void) {
        uid_t uid = 0;
        gid_t gid = 0;
        int r;

        find_own_user(&uid, &gid);
        privileges_drop_bounding_set();
        r = privileges_set_ids(uid, gid);
        if (r < 0 && r != -EINVAL)
                return r;
        return privileges_keep_capabilities(0);
}

static void limit_resources(void) {
        static const struct rlimit none = { 0, 0 }, memory = { MEMORY_MAX, MEMORY_MAX };

        (void) setrlimit(RLIMIT_NPROC, &none);
        (void) setrlimit(RLIMIT_MEMLOCK, &none);
        (void) setrlimit(RLIMIT_MSGQUEUE, &none);
        if (!HAS_SANITIZER)
                (void) setrlimit(RLIMIT_AS, &memory);
}

/* The manager of the pod's unit sends SIGTERM to all processes in it, but the last lines are copied
 * while the shim ends the pod. */
static void ignore_signals(void) {
        static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ };
        sigset_t none;

        for (size_t i = 0; i < N_ELEMENTS(ignored); i++)
                (void) signal(ignored[i], SIG_IGN);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

int confine_streams(pid_t parent) {
        int r;

        ignore_signals();
        limit_resources();
        r = drop_copier_privileges();
        if (r < 0)
                return r;
        /* Changing the IDs has reset both attributes. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return -errno;
        privileges_hide_memory();
        return getppid() == parent ? call_filter_install() : -ESRCH;
}
