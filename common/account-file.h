/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The entries of an image's /etc/passwd and /etc/group, which are untrusted input. Skips lines that
 * glibc would not accept, that belong to another database ("+name:…"), or that have an ID beyond
 * INT32_MAX, which Kubernetes does not allow. */

#include "common/macros.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>

typedef struct AccountFile {
        FILE *stream; /* NULL: an empty file */
        char *strings;
        size_t size;
} AccountFile;

/* 'text' may be NULL; it is borrowed, and not modified. 0 or -ENOMEM. */
int account_file_open(AccountFile *ret, const char *text);

/* Reads the next entry, which is valid until the next call. False at the end. */
bool account_file_next_user(AccountFile *file, struct passwd *ret);
bool account_file_next_group(AccountFile *file, struct group *ret);

bool group_has_member(const struct group *group, const char *name);

/* Finds the first entry in the text of an /etc/passwd with this name or, if 'name' is NULL, with
 * this UID. 1: found, and the caller frees the name; 0: not found, and nothing is set; -ENOMEM. */
int find_account(const char *passwd, const char *name, uid_t uid, uid_t *ret_uid, gid_t *ret_gid,
                 char **ret_name);

void account_file_done(AccountFile *file);
#define cleanup_account_file cleanup_with(account_file_done)
