/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/image-user.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>

enum {
        GROUPS_MAX = 256
};

#define ID_MAX INT32_MAX

/* One line of a file of colon-separated fields; borrowed from its text. */
typedef struct AccountFileLine {
        const char *fields[7];
        size_t lengths[7];
        size_t n_fields;
} AccountFileLine;

/* Takes the next line. False at the end. */
static bool next_account_line(const char **text, AccountFileLine *ret) {
        const char *p = *text;
        size_t left;

        if (!p || *p == '\0')
                return false;
        left = strcspn(p, "\n");
        *text = p + left + (p[left] == '\n');
        ret->n_fields = 0;
        while (ret->n_fields < N_ELEMENTS(ret->fields)) {
                const char *colon = memchr(p, ':', left);
                size_t n = colon ? (size_t) (colon - p) : left;

                ret->fields[ret->n_fields] = p;
                ret->lengths[ret->n_fields++] = n;
                if (!colon)
                        break;
                p += n + 1;
                left -= n + 1;
        }
        return true;
}

static bool field_is(const AccountFileLine *line, size_t i, const char *text) {
        return i < line->n_fields && line->lengths[i] == strlen(text) &&
               memcmp(line->fields[i], text, line->lengths[i]) == 0;
}

/* 0, -EINVAL if it is not a number, -ERANGE if it cannot be an ID. */
static int parse_user_or_group_id(const char *text, size_t length, uint32_t *ret) {
        uint64_t value = 0;

        if (length == 0)
                return -EINVAL;
        for (size_t i = 0; i < length; i++)
                if (text[i] < '0' || text[i] > '9')
                        return -EINVAL;
        for (size_t i = 0; i < length; i++) {
                value = value * 10 + (uint64_t) (text[i] - '0');
                if (value > ID_MAX)
                        return -ERANGE;
        }
        *ret = (uint32_t) value;
        return 0;
}

static bool field_id(const AccountFileLine *line, size_t i, uint32_t *ret) {
        return i < line->n_fields &&
               parse_user_or_group_id(line->fields[i], line->lengths[i], ret) >= 0;
}

/* Finds the entry of a name or, if 'name' is NULL, of a number, which is the third field in both
 * files. */
static bool find_account_entry(const char *text, const char *name, uint32_t id,
                               AccountFileLine *ret) {
        while (next_account_line(&text, ret)) {
                uint32_t found;

                if (!field_id(ret, 2, &found))
                        continue;
                if (name ? field_is(ret, 0, name) : found == id)
                        return true;
        }
        return false;
}

/* The number of a name in one of the files, or the name as a number. */
static int find_id(const char *what, const char *name, const char *text, const char *file,
                   uint32_t *ret, AccountFileLine *ret_line, bool *ret_found, Error *reterr) {
        int r = parse_user_or_group_id(name, strlen(name), ret);

        if (r == -ERANGE || (r < 0 && name[0] == '-'))
                return error_setf(reterr, EINVAL, "the image's %s '%.64s' is out of range", what,
                                  name);
        /* A name is preferred over a number that looks like it, as in Docker. */
        *ret_found = find_account_entry(text, name, 0, ret_line) ||
                     (r >= 0 && find_account_entry(text, NULL, *ret, ret_line));
        if (*ret_found) {
                (void) field_id(ret_line, 2, ret);
                return 0;
        }
        if (r < 0)
                return error_setf(reterr, EINVAL, "the image's %s '%.64s' is not in its %s", what,
                                  name, file);
        return 0;
}

static bool is_group_member(const AccountFileLine *line, const char *name, size_t length) {
        const char *p, *end;

        if (line->n_fields < 4)
                return false;
        p = line->fields[3];
        end = p + line->lengths[3];
        while (p < end) {
                const char *comma = memchr(p, ',', (size_t) (end - p));
                size_t n = comma ? (size_t) (comma - p) : (size_t) (end - p);

                if (n == length && memcmp(p, name, n) == 0)
                        return true;
                p += n + 1;
        }
        return false;
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

static int find_user_groups(ImageUser *account, const AccountFileLine *entry, const char *group) {
        AccountFileLine line;
        int r = 0;

        while (next_account_line(&group, &line)) {
                uint32_t gid;

                if (field_id(&line, 2, &gid) && gid != account->gid &&
                    is_group_member(&line, entry->fields[0], entry->lengths[0]))
                        r = add_user_group(account, gid);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int find_user(const char *name, const char *group_name, const char *passwd,
                     const char *group, ImageUser *account, Error *reterr) {
        bool known = false, group_known;
        AccountFileLine entry, group_entry;
        uint32_t id = 0;
        int r;

        if (name[0]) {
                r = find_id("user", name, passwd, "/etc/passwd", &id, &entry, &known, reterr);
                if (r < 0)
                        return r;
        } else {
                known = find_account_entry(passwd, NULL, 0, &entry);
        }
        account->uid = id;
        if (known && field_id(&entry, 3, &id))
                account->gid = id;
        if (group_name) {
                r = find_id("group", group_name, group, "/etc/group", &id, &group_entry,
                            &group_known, reterr);
                account->gid = r < 0 ? account->gid : id;
                return r;
        }
        return known ? find_user_groups(account, &entry, group) : 0;
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
