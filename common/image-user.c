/* SPDX-License-Identifier: Apache-2.0 */
#include "common/image-user.h"

#include "common/account-file.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"

#include <fcntl.h>
#include <stdint.h>

enum {
        GROUPS_MAX = 4096,
        LOOKUPS_MAX = 100000, /* a few links through 256 layers take 10,000 */
};

/* 0, -EINVAL if 'text' is not a number, -ERANGE if it is out of range for an ID. */
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

static int find_group_entry(const char *group, const char *name, gid_t *ret_gid) {
        cleanup_account_file AccountFile file = { 0 };
        struct group entry;
        int r;

        r = account_file_open(&file, group);
        if (r < 0)
                return r;
        while (account_file_next_group(&file, &entry))
                if (streq(entry.gr_name, name)) {
                        *ret_gid = entry.gr_gid;
                        return 1;
                }
        return 0;
}

static int add_user_group(ImageUser *account, gid_t gid, Error *reterr) {
        for (size_t i = 0; i < account->n_groups; i++)
                if (account->groups[i] == gid)
                        return 0;
        if (account->n_groups >= GROUPS_MAX)
                return error_setf(reterr, E2BIG, "the image's user is in more than %d groups",
                                  GROUPS_MAX);
        if (!ARRAY_RESERVE(account->groups, account->n_groups, 1))
                return -ENOMEM;
        account->groups[account->n_groups++] = gid;
        return 0;
}

static int find_user_groups(ImageUser *account, const char *name, const char *group,
                            Error *reterr) {
        cleanup_account_file AccountFile file = { 0 };
        struct group entry;
        int r;

        r = account_file_open(&file, group);
        while (r >= 0 && account_file_next_group(&file, &entry))
                if (entry.gr_gid != account->gid && !streq(entry.gr_name, name) &&
                    group_has_member(&entry, name))
                        r = add_user_group(account, entry.gr_gid, reterr);
        return r;
}

/* 1: the text is an ID. 0: it is a name. -EINVAL: it is a number that cannot be an ID. */
static int find_id(const char *what, const char *text, uint32_t *ret, Error *reterr) {
        int r = parse_user_or_group_id(text, ret);

        if (r == -ERANGE || (r < 0 && text[0] == '-'))
                return error_setf(reterr, EINVAL, "the image's %s '%.64s' is out of range", what,
                                  text);
        return r >= 0;
}

static int find_group(const char *name, const char *group, gid_t *ret, Error *reterr) {
        int r = find_id("group", name, ret, reterr);

        if (r != 0)
                return r;
        r = find_group_entry(group, name, ret);
        if (r == 0)
                return error_setf(reterr, EINVAL,
                                  "the image's group '%.64s' is not in its /etc/group", name);
        return r;
}

static int find_user(const char *name, const char *group_name, const char *passwd,
                     const char *group, ImageUser *account, Error *reterr) {
        cleanup_free char *found = NULL;
        bool is_id = !name[0];
        int r = 0;

        if (name[0]) {
                r = find_id("user", name, &account->uid, reterr);
                is_id = r > 0;
        }
        if (r >= 0)
                r = find_account(passwd, is_id ? NULL : name, account->uid, &account->uid,
                                 &account->gid, &found);
        if (r == 0 && !is_id)
                return error_setf(reterr, EINVAL,
                                  "the image's user '%.64s' is not in its /etc/passwd", name);
        if (r >= 0 && group_name)
                r = find_group(group_name, group, &account->gid, reterr);
        if (r >= 0 && found)
                r = find_user_groups(account, found, group, reterr);
        return r;
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

/* A descriptor, -ENOENT, or another -errno; -EINVAL if it is not a regular file. */
static int open_image_file(const LayerView *view, const char *path) {
        char resolved[PATH_MAX];
        struct stat st;
        int r = layer_view_resolve_file(view, path, resolved);

        if (r >= 0)
                r = layer_view_find(view, resolved, &st);
        if (r < 0)
                return r;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        return layer_view_open_in(view, (size_t) r, resolved, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

static int read_image_file(const LayerView *view, const char *path, char **ret, Error *reterr) {
        cleanup_close int fd = open_image_file(view, path);
        int r = fd < 0 ? fd : read_stream(fd, MIB, ret, NULL);

        if (r >= 0 || r == -ENOENT)
                return 0;
        if (r == -EFBIG)
                return error_setf(reterr, EINVAL, "the image's /%s is larger than 1 MiB", path);
        if (r == -EINVAL)
                return error_setf(reterr, EINVAL, "the image's /%s is not a regular file", path);
        if (r == -ELOOP || r == -ENOTDIR || r == -ENAMETOOLONG)
                return error_setf(reterr, EINVAL, "the image's /%s cannot be resolved: %s", path,
                                  strerror(-r));
        return error_prefixf(reterr, r, "the image's /%s", path);
}

int image_user_find_in_layers(const char *user, const LayerView *view, ImageUser *ret,
                              Error *reterr) {
        cleanup_free char *passwd = NULL, *group = NULL;
        _Atomic int64_t lookups = LOOKUPS_MAX;
        LayerView bounded = *view;
        int r;

        bounded.lookups = &lookups;
        r = read_image_file(&bounded, "etc/passwd", &passwd, reterr);
        if (r >= 0)
                r = read_image_file(&bounded, "etc/group", &group, reterr);
        return r < 0 ? r : image_user_find(user, passwd, group, ret, reterr);
}

/* All layers must be present, because without one of them the result could be another user. */
int image_user_find_in_directories(const char *user, char *const *layers, ImageUser *ret,
                                   Error *reterr) {
        cleanup_with(layer_directories_done) LayerDirectories directories = { 0 };
        int r = layer_directories_open(layers, &directories);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return error_setf(reterr, -r, "cannot open the layer '%s': %s",
                                  layers[directories.n], strerror(-r));
        return image_user_find_in_layers(
                user, &(LayerView){ .layers = directories.fds, .n_layers = directories.n }, ret,
                reterr);
}

void image_user_done(ImageUser *account) {
        free(account->groups);
        *account = (ImageUser){ 0 };
}
