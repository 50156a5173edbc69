/* SPDX-License-Identifier: Apache-2.0 */
#include "common/checksummed.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/text.h"

#include <unistd.h>

enum {
        CHECKSUM_LINE_LENGTH = SHA256_HEX_SIZE /* the hex digits and a newline */
};

char *checksummed_format(const char *text, size_t *ret_length) {
        size_t length = strlen(text);
        const char *newline = length > 0 && text[length - 1] == '\n' ? "" : "\n";
        char *whole = text_format("%s%s%*s\n", text, newline, SHA256_HEX_SIZE - 1, "");
        char hex[SHA256_HEX_SIZE];
        size_t n;

        if (!whole)
                return NULL;
        n = strlen(whole);
        sha256_hex(whole, n - CHECKSUM_LINE_LENGTH, hex);
        memcpy(whole + n - CHECKSUM_LINE_LENGTH, hex, SHA256_HEX_SIZE - 1);
        *ret_length = n;
        return whole;
}

int checksummed_read_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text) {
        cleanup_free char *text = NULL;
        char hex[SHA256_HEX_SIZE];
        size_t length;
        int r;

        r = read_file_at(dir_fd, path, max_bytes, &text, &length);
        if (r < 0)
                return r;
        if (length < CHECKSUM_LINE_LENGTH || text[length - 1] != '\n')
                return -EBADMSG;
        length -= CHECKSUM_LINE_LENGTH;
        sha256_hex(text, length, hex);
        if (memcmp(text + length, hex, SHA256_HEX_SIZE - 1) != 0)
                return -EBADMSG;
        text[length] = '\0';
        *ret_text = TAKE_PTR(text);
        return 0;
}

/* Reads the version that was last synced, and restores its name. 0, -EBADMSG or -ENOMEM. */
static int restore_synced_at(int dir_fd, const char *name, size_t max_bytes, char **ret_text) {
        int r;
        cleanup_free char *synced = text_format("%s" CHECKSUMMED_SYNCED_SUFFIX, name);

        if (!synced)
                return -ENOMEM;
        r = checksummed_read_at(dir_fd, synced, max_bytes, ret_text);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if (linkat(dir_fd, synced, dir_fd, name, 0) < 0)
                log_warning("Cannot restore '%s': %s", name, strerror(errno));
        return 0;
}

int checksummed_try_load_at(int dir_fd, const char *name, size_t max_bytes, const char *what,
                            const char *consequence, char **ret_text) {
        int r = checksummed_read_at(dir_fd, name, max_bytes, ret_text);

        if (r == -EBADMSG) {
                checksummed_set_aside_at(dir_fd, name);
                r = restore_synced_at(dir_fd, name, max_bytes, ret_text);
                if (r >= 0)
                        log_warning("%s is damaged, setting it aside; using the version that was "
                                    "synced before it",
                                    what);
        }
        if (r >= 0)
                return 1;
        if (r == -EBADMSG)
                log_warning("%s is damaged, setting it aside; %s", what, consequence);
        else if (is_file_damage(r))
                log_warning("%s cannot be read: %s; %s", what, strerror(-r), consequence);
        return is_file_damage(r) || r == -ENOENT ? 0 : r;
}

int checksummed_load_at(int dir_fd, const char *name, size_t max_bytes, const char *what,
                        const char *consequence, char **ret_text) {
        int r = checksummed_try_load_at(dir_fd, name, max_bytes, what, consequence, ret_text);

        if (r >= 0 || r == -ENOMEM)
                return r;
        log_warning("%s cannot be read: %s; %s", what, strerror(-r), consequence);
        return 0;
}

int checksummed_write_at(int dir_fd, const char *name, const char *text, mode_t mode) {
        size_t length = 0;
        cleanup_free char *whole = checksummed_format(text, &length);

        return whole ? write_file_atomic_at(dir_fd, name, whole, length, mode) : -ENOMEM;
}

void checksummed_set_aside_at(int dir_fd, const char *name) {
        cleanup_free char *aside = text_format("%s.damaged", name);

        if (!aside)
                return;
        (void) renameat(dir_fd, name, dir_fd, aside);
}
