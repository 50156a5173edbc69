/* SPDX-License-Identifier: Apache-2.0 */
#include "common/landlock-version.h"

#include <linux/landlock.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

int landlock_version(void) {
        long version =
                syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

        return version > 0 ? (int) version : 0;
}
