/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Seccomp profiles (system call filters) in the format of container engines, resolved for one
 * container.
 *
 * A profile is JSON: a default action and rules, some of which apply only with (or without) certain
 * capabilities, on certain architectures, or with a minimum kernel version. A resolved profile is
 * the linux.seccomp section of the OCI runtime specification. */

#include "common/error.h"

#include <jansson.h>
#include <stdint.h>

typedef struct SeccompProfile SeccompProfile;

/* Reads a profile. 0, -ENOENT if the file does not exist, or another -errno; with a message. */
int seccomp_profile_load(int dir_fd, const char *path, SeccompProfile **ret, Error *reterr);

/* The built-in profile. */
int seccomp_profile_builtin(SeccompProfile **ret);

/* The first existing profile of a list that ends with NULL; the built-in one if none exists or,
 * with a warning, if it is invalid. 0 or -ENOMEM. */
int seccomp_profile_load_first(const char *const *paths, SeccompProfile **ret);

/* The profile for RuntimeDefault: the one in 'path' ("builtin": the built-in one); if 'path' is
 * NULL, the administrator's or the distribution's at the paths of containers-common, or the
 * built-in one. 0, or -errno with a message. */
int seccomp_profile_load_default(const char *path, SeccompProfile **ret, Error *reterr);

SeccompProfile *seccomp_profile_free(SeccompProfile *profile);
DEFINE_CLEANUP(SeccompProfile *, seccomp_profile_free)

/* Resolves the profile for a process that can never have other capabilities than these. Without
 * 'x32', rules for that ABI are omitted: they would cost a runtime about 10 ms per start, for
 * programs that the kernel does not run. NULL: out of memory. */
json_t *seccomp_profile_resolve(const SeccompProfile *profile, uint64_t capabilities, bool x32);

/* The built-in profile, in the same format. NULL: out of memory. */
json_t *seccomp_builtin_profile_json(void);
