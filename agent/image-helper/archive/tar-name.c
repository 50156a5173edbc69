/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/archive/tar-name.h"

#include "common/cleanup.h"

#define WHITEOUT_PREFIX ".wh."
#define AUFS_PREFIX     ".wh..wh."
#define OPAQUE_NAME     ".wh..wh..opq"

/* Removes the last component. False if there is none. */
static bool cut_last_component(char *path, size_t *length, unsigned *depth) {
        char *slash;

        if (*length == 0)
                return false;
        slash = memrchr(path, '/', *length);
        *length = slash ? (size_t) (slash - path) : 0;
        path[*length] = '\0';
        (*depth)--;
        return true;
}

int tar_name_clean(const char *raw, char **ret, Error *reterr) {
        cleanup_free char *clean = NULL;
        size_t length = 0;
        unsigned depth = 0;

        if (strlen(raw) > TAR_NAME_LENGTH_MAX)
                return error_setf(reterr, ENAMETOOLONG, "has a name of more than %d bytes",
                                  TAR_NAME_LENGTH_MAX);
        clean = calloc(1, strlen(raw) + 1);
        if (!clean)
                return -ENOMEM;
        for (const char *p = raw; *p;) {
                size_t n = strcspn(p, "/");

                if (n == 2 && p[0] == '.' && p[1] == '.') {
                        if (!cut_last_component(clean, &length, &depth))
                                return error_setf(reterr, EINVAL, "'%s' leaves the top by '..'",
                                                  raw);
                } else if (n > 0 && !(n == 1 && p[0] == '.')) {
                        if (++depth > TAR_NAME_DEPTH_MAX)
                                return error_setf(reterr, ENAMETOOLONG,
                                                  "has a name of more than %d components",
                                                  TAR_NAME_DEPTH_MAX);
                        if (length > 0)
                                clean[length++] = '/';
                        memcpy(clean + length, p, n);
                        length += n;
                        clean[length] = '\0';
                }
                p += n + (p[n] == '/');
        }
        *ret = TAKE_PTR(clean);
        return 0;
}

int tar_name_split(const char *clean, char **ret_parent, const char **ret_base) {
        const char *slash = strrchr(clean, '/');
        char *parent;

        if (!slash) {
                /* "" and the name after it, in one allocation. */
                parent = calloc(1, strlen(clean) + 2);
                if (!parent)
                        return -ENOMEM;
                memcpy(parent + 1, clean, strlen(clean));
                *ret_base = parent + 1;
        } else {
                parent = strdup(clean);
                if (!parent)
                        return -ENOMEM;
                parent[slash - clean] = '\0';
                *ret_base = parent + (slash - clean) + 1;
        }
        *ret_parent = parent;
        return 0;
}

int tar_name_classify(const char *base, TarNameKind *ret_kind, const char **ret_hidden,
                      Error *reterr) {
        const char *hidden = base + strlen(WHITEOUT_PREFIX);

        if (strncmp(base, WHITEOUT_PREFIX, strlen(WHITEOUT_PREFIX)) != 0) {
                *ret_kind = TAR_NAME_ORDINARY;
                return 0;
        }
        if (strncmp(base, AUFS_PREFIX, strlen(AUFS_PREFIX)) == 0) {
                *ret_kind = streq(base, OPAQUE_NAME) ? TAR_NAME_OPAQUE : TAR_NAME_IGNORED;
                return 0;
        }
        if (hidden[0] == '\0' || streq(hidden, ".") || streq(hidden, ".."))
                return error_setf(reterr, EINVAL, "'%s' is a whiteout without a name", base);
        *ret_kind = TAR_NAME_WHITEOUT;
        *ret_hidden = hidden;
        return 0;
}

bool tar_name_is_aufs(const char *parent) {
        return strncmp(parent, AUFS_PREFIX, strlen(AUFS_PREFIX)) == 0;
}

bool tar_name_is_below_whiteout(const char *parent) {
        for (const char *p = parent; p; p = strchr(p, '/')) {
                p += *p == '/';
                if (strncmp(p, WHITEOUT_PREFIX, strlen(WHITEOUT_PREFIX)) == 0)
                        return true;
        }
        return false;
}
