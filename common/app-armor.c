/* SPDX-License-Identifier: Apache-2.0 */
#include "common/app-armor.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

const char app_armor_profiles_path[] = "/sys/kernel/security/apparmor/profiles";

/* The mode in that profile's line, without parentheses; NULL: the line is for another profile. */
static char *find_mode_in_line(char *line, const char *name, size_t name_length) {
        char *mode = line + name_length, *end;

        if (strncmp(line, name, name_length) != 0 || strncmp(mode, " (", 2) != 0)
                return NULL;
        mode += 2;
        end = strchr(mode, ')'); /* a name may contain parentheses, a mode may not */
        if (!end || end[1])
                return NULL;
        *end = '\0';
        return mode;
}

int app_armor_find_mode(const char *path, const char *name, char **ret) {
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t name_length = strlen(name);
        cleanup_free char *text = NULL;
        char *rest, *line;
        int r = fd < 0 ? -errno : read_stream(fd, MIB, &text, NULL);

        if (r < 0)
                return r == -ENOENT ? -ENOTSUP : r;
        for (rest = text; (line = strsep(&rest, "\n"));) {
                const char *mode = find_mode_in_line(line, name, name_length);

                if (!mode)
                        continue;
                *ret = strdup(mode);
                return *ret ? 0 : -ENOMEM;
        }
        return -ENOENT;
}
