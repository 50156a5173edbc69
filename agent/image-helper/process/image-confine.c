/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/process/image-confine.h"

#include "agent/image-helper/process/landlock.h"
#include "agent/image-helper/process/priority.h"
#include "agent/image-helper/process/seccomp-filter.h"
#include "common/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* 128 MiB is the largest zstd window that decoders must support, and libarchive supports it. */
#define DATA_BYTES_MAX (320 * MIB)
#define OWN_USER       "mainstay-image"
#define FILE_BYTES_MAX (UINT64_C(256) << 30)
/* The limit of a parser: shared memory is not included in the data limit. */
#define ADDRESS_BYTES_MAX (2 * DATA_BYTES_MAX)

#define CAPABILITY(name) (UINT64_C(1) << (name))

/* CAP_MKNOD is not included: whiteouts do not need it, and a device would give access to the node's
 * disks. */
static const uint64_t unpacking_capabilities =
        CAPABILITY(CAP_CHOWN) | CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_FOWNER) |
        CAPABILITY(CAP_FSETID) | CAPABILITY(CAP_SETFCAP) |
        CAPABILITY(CAP_SYS_ADMIN); /* needed for "trusted." attributes */

static void limit_resource(int resource, rlim_t value) {
        struct rlimit now;

        if (getrlimit((__rlimit_resource_t) resource, &now) < 0 || now.rlim_cur <= value)
                return;
        now.rlim_cur = value;
        now.rlim_max = MIN(now.rlim_max, value);
        (void) setrlimit((__rlimit_resource_t) resource, &now);
}

void confine_process(void) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        lower_process_priority();
        privileges_hide_memory();
        limit_resource(RLIMIT_FSIZE, FILE_BYTES_MAX);
        if (!HAS_SANITIZER)
                limit_resource(RLIMIT_DATA, DATA_BYTES_MAX);
        /* Beyond the limit write(2) fails with an error instead of a signal. */
        (void) signal(SIGXFSZ, SIG_IGN);
        (void) signal(SIGPIPE, SIG_IGN);
}

static int drop_capabilities(uint64_t keep, Error *reterr) {
        int r = privileges_keep_capabilities(keep);

        /* Changing the user has reset this attribute. */
        privileges_hide_memory();
        return r < 0 ? error_setf(reterr, -r, "cannot drop privileges: %s", strerror(-r)) : 0;
}

/* Landlock does not restrict changes of owners, modes and attributes, which are possible through
 * absolute paths. If chroot is not permitted, the agent's unit still makes the system read-only. */
static void enter_store(int store_fd) {
        if (HAS_SANITIZER || fchdir(store_fd) < 0 || chroot(".") < 0)
                return;
}

static int confine_reader(uint64_t capabilities, int store_fd, int read_fd, Error *reterr) {
        LandlockRules rules = { .read_beneath = read_fd,
                                .write_beneath = store_fd,
                                .reads_anything = HAS_SANITIZER };
        int r;

        /* If this is not permitted, the filter still blocks network access. */
        (void) unshare(CLONE_NEWNET);
        enter_store(store_fd);
        if (!HAS_SANITIZER)
                limit_resource(RLIMIT_AS, ADDRESS_BYTES_MAX);
        r = drop_capabilities(capabilities, reterr);
        if (r < 0)
                return r;
        r = landlock_restrict(&rules, reterr);
        if (r < 0)
                return r;
        return seccomp_filter_unpacker(reterr);
}

int confine_parser(bool unpacking, int store_fd, Error *reterr) {
        return confine_reader(unpacking ? unpacking_capabilities : 0, store_fd, -EBADF, reterr);
}

int confine_source_reader(int store_fd, int stick_fd, Error *reterr) {
        return confine_reader(0, store_fd, stick_fd, reterr);
}

int confine_image_fetch(int store_fd, int stick_fd, Error *reterr) {
        return confine_reader(unpacking_capabilities, store_fd, stick_fd, reterr);
}

int confine_report_writer(int directory_fd, int log_fd, Error *reterr) {
        return confine_reader(CAPABILITY(CAP_DAC_OVERRIDE), directory_fd, log_fd, reterr);
}

int confine_layer_unpacker(int fd, int store_fd, Error *reterr) {
        LandlockRules rules = { .read_beneath = store_fd,
                                .write_beneath = fd,
                                .reads_anything = HAS_SANITIZER };

        return landlock_restrict(&rules, reterr);
}

int confine_fetcher(Error *reterr) {
        LandlockRules rules = { .read_beneath = -EBADF,
                                .write_beneath = -EBADF,
                                .reads_anything = true };
        int r = privileges_leave_root(OWN_USER, reterr);

        if (r < 0)
                return r;
        r = drop_capabilities(0, reterr);
        if (r < 0)
                return r;
        r = landlock_restrict(&rules, reterr);
        if (r < 0)
                return r;
        return seccomp_filter_fetcher(reterr);
}
