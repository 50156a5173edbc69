/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/process/landlock.h"

#include "common/cleanup.h"
#include "common/landlock-version.h"

#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Newer than the oldest kernel headers with which this is built. */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14)

#define ACCESS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_WRITE                                                      \
        (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |     \
         LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
         LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |     \
         LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |     \
         LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |   \
         LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)

enum {
        VERSION_TRUNCATE = 3
};

static int add_landlock_rule(int ruleset, int fd, uint64_t access) {
        struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = fd };

        if (fd < 0 || access == 0)
                return 0;
        return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
                       ? -errno
                       : 0;
}

static int enforce_landlock_rules(int ruleset, const LandlockRules *rules, uint64_t handled) {
        int r = add_landlock_rule(ruleset, rules->read_beneath, handled & ACCESS_READ);

        if (r < 0)
                return r;
        /* Unpacked files are never executed here. */
        r = add_landlock_rule(ruleset, rules->write_beneath,
                              handled & ~(uint64_t) LANDLOCK_ACCESS_FS_EXECUTE);
        if (r < 0)
                return r;
        return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

int landlock_restrict(const LandlockRules *rules, Error *reterr) {
        int version = landlock_version();
        uint64_t write = ACCESS_WRITE | (version >= VERSION_TRUNCATE ? ACCESS_TRUNCATE : 0);
        struct landlock_ruleset_attr attributes = {
                .handled_access_fs = write | (rules->reads_anything ? 0 : ACCESS_READ),
        };
        cleanup_close int ruleset = -EBADF;
        int r;

        if (version < LANDLOCK_VERSION_MIN)
                return 0;
        ruleset = (int) syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
        r = ruleset < 0 ? -errno
                        : enforce_landlock_rules(ruleset, rules, attributes.handled_access_fs);
        return r < 0 ? error_prefixf(reterr, r, "cannot be confined to its directory") : 0;
}
