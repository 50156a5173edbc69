/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/image-user.h"

#include "common/account-file.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <stdint.h>

enum {
        GROUPS_MAX = 256
};

/* 0, -EINVAL if it is not a number, -ERANGE if it cannot be an ID. */
static int parse_user_or_group_id(const char *text, uint32_t *ret) {
        uint64_t value = 0;

        if (!text[0] || text[strspn(text, "0123456789")])
                return -EINVAL;
        for (; *text; text++) {
                value = value * 10 + (uint64_t) (*text - '0');
                if (value > INT32_MAX)
                        return -ERANGE;
        }
        *ret = (uint32_t) value;
        return 0;
}

static int find_group_entry(const char *group, const char *name, gid_t gid, gid_t *ret_gid) {
        cleanup_account_file AccountFile file = { 0 };
        struct group entry;
        int r;

        r = account_file_open(&file, group);
        if (r < 0)
                return r;
        while (account_file_next_group(&file, &entry))
                if (name ? streq(entry.gr_name, name) : entry.gr_gid == gid) {
                        *ret_gid = entry.gr_gid;
                        return 1;
                }
        return 0;
}

static int add_user_group(ImageUser *account, gid_t gid) {
        gid_t *larger;

        for (size_t i = 0; i < account->n_groups; i++)
                if (account->groups[i] == gid)
                        return 0;
        if (account->n_groups >= GROUPS_MAX)
                return -E2BIG;
        larger = reallocarray(account->groups, account->n_groups + 1, sizeof(gid_t));
        if (!larger)
                return -ENOMEM;
        account->groups = larger;
        larger[account->n_groups++] = gid;
        return 0;
}

static int find_user_groups(ImageUser *account, const char *name, const char *group) {
        cleanup_account_file AccountFile file = { 0 };
        struct group entry;
        int r;

        r = account_file_open(&file, group);
        while (r >= 0 && account_file_next_group(&file, &entry))
                if (entry.gr_gid != account->gid && group_has_member(&entry, name))
                        r = add_user_group(account, entry.gr_gid);
        return r;
}

/* The name as a number, which need not be in the file; -EINVAL if it is neither. */
static int find_id(const char *what, const char *name, const char *file, uint32_t *ret,
                   Error *reterr) {
        int r = parse_user_or_group_id(name, ret);

        if (r == -ERANGE || (r < 0 && name[0] == '-'))
                return error_setf(reterr, EINVAL, "the image's %s '%.64s' is out of range", what,
                                  name);
        if (r < 0)
                return error_setf(reterr, EINVAL, "the image's %s '%.64s' is not in its %s", what,
                                  name, file);
        return 0;
}

/* A name is preferred over a number that looks like it, as in Docker. */
static int find_group(const char *name, const char *group, gid_t *ret, Error *reterr) {
        int r = find_group_entry(group, name, 0, ret);

        if (r != 0)
                return r;
        r = find_id("group", name, "/etc/group", ret, reterr);
        if (r < 0)
                return r;
        return find_group_entry(group, NULL, *ret, ret);
}

static int find_user(const char *name, const char *group_name, const char *passwd,
                     const char *group, ImageUser *account, Error *reterr) {
        cleanup_free char *found = NULL;
        int r = 0;

        if (name[0])
                r = find_account(passwd, name, 0, &account->uid, &account->gid, &found);
        if (r == 0 && name[0])
                r = find_id("user", name, "/etc/passwd", &account->uid, reterr);
        if (r >= 0 && !found)
                r = find_account(passwd, NULL, account->uid, &account->uid, &account->gid, &found);
        if (r < 0)
                return r;
        if (group_name)
                return find_group(group_name, group, &account->gid, reterr);
        return found ? find_user_groups(account, found, group) : 0;
}

int image_user_find(const char *user, const char *passwd, const char *group, ImageUser *ret,
                    Error *reterr) {
        cleanup_free char *name = strdup(strna(user));
        ImageUser account = { 0 };
        char *colon;
        int r;

        if (!name)
                return -ENOMEM;
        colon = strchr(name, ':');
        if (colon)
                *colon++ = '\0';
        if (colon && *colon == '\0')
                colon = NULL;
        r = find_user(name, colon, passwd, group, &account, reterr);
        if (r < 0) {
                image_user_done(&account);
                return r;
        }
        *ret = account;
        return 0;
}

/* NULL if it cannot be read. O_NONBLOCK: it may be a FIFO without a writer. */
static char *read_image_file(const LayerView *view, const char *path) {
        cleanup_close int fd = layer_view_open(view, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        char *text = NULL;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return NULL;
        return read_stream(fd, MIB, &text, NULL) < 0 ? NULL : text;
}

int image_user_find_in_layers(const char *user, const LayerView *view, ImageUser *ret,
                              Error *reterr) {
        cleanup_free char *passwd = read_image_file(view, "etc/passwd");
        cleanup_free char *group = read_image_file(view, "etc/group");

        return image_user_find(user, passwd, group, ret, reterr);
}

void image_user_done(ImageUser *account) {
        free(account->groups);
        *account = (ImageUser){ 0 };
}
