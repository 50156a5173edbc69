/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/router-advertisements.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"
#include "common/macros.h"
#include "common/text.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

static bool has_sysctl_value(int dir_fd, const char *interface, const char *name, char value) {
        cleanup_free char *path = text_format("%s/%s", interface, name), *text = NULL;

        return path && read_file_at(dir_fd, path, 16, &text, NULL) >= 0 && text[0] == value;
}

static void accept_while_forwarding(int dir_fd, const char *interface) {
        cleanup_free char *path = text_format("%s/accept_ra", interface);
        int r = path ? write_value_at(dir_fd, path, "2") : -ENOMEM;

        if (r < 0)
                log_warning("Cannot set net.ipv6.conf.%s.accept_ra=2 before IPv6 is forwarded: %s; "
                            "the node may lose its default route",
                            interface, strerror(-r));
}

void keep_router_advertisements(const char *directory) {
        cleanup_closedir DIR *dir = opendir(directory);
        const struct dirent *entry;

        if (!dir || !has_sysctl_value(dirfd(dir), "all", "forwarding", '0'))
                return;
        while ((entry = readdir(dir)))
                if (entry->d_name[0] != '.' && !streq(entry->d_name, "all") &&
                    has_sysctl_value(dirfd(dir), entry->d_name, "forwarding", '0') &&
                    has_sysctl_value(dirfd(dir), entry->d_name, "accept_ra", '1'))
                        accept_while_forwarding(dirfd(dir), entry->d_name);
}
