/* SPDX-License-Identifier: Apache-2.0 */
#include "common/account-file.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

int account_file_open(AccountFile *ret, const char *text) {
        size_t length = strlen(strna(text));
        /* The size of the strings of a line and, in /etc/group, of a pointer for each member; "a,b"
         * has two. */
        AccountFile file = { .size = 6 * length + 256 };

        if (length > 0) {
                file.stream = fmemopen((char *) (uintptr_t) text, length, "re");
                file.strings = malloc(file.size);
                if (!file.stream || !file.strings) {
                        account_file_done(&file);
                        return -ENOMEM;
                }
        }
        *ret = file;
        return 0;
}

static bool is_valid_entry(const char *name, uint32_t id) {
        return name[0] != '+' && name[0] != '-' && id <= INT32_MAX;
}

bool account_file_next_user(AccountFile *file, struct passwd *ret) {
        struct passwd *found;

        while (file->stream &&
               fgetpwent_r(file->stream, ret, file->strings, file->size, &found) == 0)
                if (is_valid_entry(ret->pw_name, ret->pw_uid) && ret->pw_gid <= INT32_MAX)
                        return true;
        return false;
}

bool account_file_next_group(AccountFile *file, struct group *ret) {
        struct group *found;

        while (file->stream &&
               fgetgrent_r(file->stream, ret, file->strings, file->size, &found) == 0)
                if (is_valid_entry(ret->gr_name, ret->gr_gid))
                        return true;
        return false;
}

bool group_has_member(const struct group *group, const char *name) {
        for (char **member = group->gr_mem; *member; member++)
                if (streq(*member, name))
                        return true;
        return false;
}

int find_account(const char *passwd, const char *name, uid_t uid, uid_t *ret_uid, gid_t *ret_gid,
                 char **ret_name) {
        cleanup_account_file AccountFile file = { 0 };
        struct passwd entry;
        int r;

        r = account_file_open(&file, passwd);
        if (r < 0)
                return r;
        while (account_file_next_user(&file, &entry))
                if (name ? streq(entry.pw_name, name) : entry.pw_uid == uid) {
                        *ret_name = strdup(entry.pw_name);
                        if (!*ret_name)
                                return -ENOMEM;
                        *ret_uid = entry.pw_uid;
                        *ret_gid = entry.pw_gid;
                        return 1;
                }
        return 0;
}

void account_file_done(AccountFile *file) {
        if (file->stream)
                fclose(file->stream);
        free(file->strings);
        *file = (AccountFile){ 0 };
}
