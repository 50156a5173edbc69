/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/json-memfd.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"

#include <sys/mman.h>

int json_memfd_open(const json_t *json, const char *name) {
        cleanup_close int fd = memfd_create(name, MFD_CLOEXEC);
        char *text = json ? json_to_text(json, JSON_COMPACT) : NULL;
        int r;

        if (fd < 0 || !text) {
                free(text);
                return fd < 0 ? -errno : -ENOMEM;
        }
        r = write_all(fd, text, strlen(text));
        if (r >= 0 && lseek(fd, 0, SEEK_SET) < 0)
                r = -errno;
        explicit_bzero(text, strlen(text));
        free(text);
        return r < 0 ? r : TAKE_FD(fd);
}
