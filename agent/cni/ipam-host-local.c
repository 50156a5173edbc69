/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the allocations of the IPAM plugin host-local. Only the plugin writes them. */

#include "agent/cni/ipam-host-local.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"

#include <arpa/inet.h>
#include <dirent.h>

enum {
        FILE_MAX = 1024, /* bytes: an ID and the name of an interface */
};

static const char default_data_dir[] = "/var/lib/cni/networks";

static bool is_ip_address_name(const char *text) {
        struct in6_addr address;

        return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

static bool is_allocated_to(int dir_fd, const char *name, const char *id) {
        cleanup_free char *text = NULL;
        size_t length;

        return read_file_at(dir_fd, name, FILE_MAX, &text, &length) >= 0 &&
               strcspn(text, "\r\n") == strlen(id) && strncmp(text, id, strlen(id)) == 0;
}

int host_local_list_addresses(const char *data_dir, const char *name, const char *id, char ***ret) {
        cleanup_free char *path = path_join(data_dir[0] ? data_dir : default_data_dir, name);
        cleanup_closedir DIR *dir = path ? opendir(path) : NULL;
        const struct dirent *entry;

        if (!path)
                return -ENOMEM;
        while (dir && (entry = readdir(dir)))
                if (is_ip_address_name(entry->d_name) &&
                    is_allocated_to(dirfd(dir), entry->d_name, id) &&
                    strv_append(ret, entry->d_name) < 0)
                        return -ENOMEM;
        return 0;
}
