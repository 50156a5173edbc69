/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* System call filters: profiles in the format of container engines, resolved for one container.
 *
 * A profile is JSON: a default action and rules, some of which hold only with (or without) certain
 * capabilities, on certain architectures, from a certain kernel on. Resolved, it is the
 * linux.seccomp section of the OCI runtime specification. */

#include "common/error.h"

#include <jansson.h>
#include <stdint.h>

typedef struct SeccompProfile SeccompProfile;

/* Reads a profile. 0, -ENOENT where there is no such file, or another -errno; with the sentence. */
int seccomp_profile_load(int dir_fd, const char *path, SeccompProfile **ret, Error *reterr);

/* The one that we bring along. */
int seccomp_profile_builtin(SeccompProfile **ret);

SeccompProfile *seccomp_profile_free(SeccompProfile *profile);
DEFINE_CLEANUP(SeccompProfile *, seccomp_profile_free)

/* What it means for a process that can never have other capabilities than these. Without 'x32' the
 * rules are not made for that architecture, too: they would take a runtime some 10 ms on each
 * start, for programs that the kernel does not run. The result shares parts with the profile. NULL
 * where memory ends. */
json_t *seccomp_profile_resolve(const SeccompProfile *profile, uint64_t capabilities, bool x32);

/* Our own profile, in the same format. NULL where memory ends. */
json_t *seccomp_builtin(void);
