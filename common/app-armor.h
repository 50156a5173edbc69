/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The profiles loaded into the kernel's AppArmor. */

/* The kernel's list of profiles, which only root can read: one line "name (mode)" per profile. */
extern const char app_armor_profiles_path[];

/* The mode of the profile with exactly this name in the list 'path': "enforce", "complain",
 * "unconfined" or another word of the kernel; the caller frees it. 0; -ENOENT if it is not in the
 * list; another -errno if the list cannot be read. Names that have a meaning for the kernel but do
 * not belong to a profile, such as "unconfined" and "&a//&b", are never in the list. */
int app_armor_find_mode(const char *path, const char *name, char **ret);
