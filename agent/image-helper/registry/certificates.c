/* SPDX-License-Identifier: Apache-2.0 */

/* Registry certificates: /etc/containers/certs.d/<host[:port]>/ and /etc/docker/certs.d/…, as in
 * Docker, Podman and CRI-O. Fetchers run as an unprivileged user that cannot read root's keys, so
 * the files are copied into memory files, whose descriptors are passed on. */

#include "agent/image-helper/registry/endpoint.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/registry-name.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/mman.h>

enum {
        FILE_BYTES_MAX = 1024 * 1024,
        FILES_MAX = 256
};

/* The bundles of Debian and Alpine, of Fedora, and of SUSE. */
static const char *const system_authorities[] = { "/etc/ssl/certs/ca-certificates.crt",
                                                  "/etc/pki/tls/certs/ca-bundle.crt",
                                                  "/etc/ssl/ca-bundle.pem" };

static int append_certificate_file(int dir_fd, const char *name, int to) {
        cleanup_free char *text = NULL;
        size_t length;
        int r = read_file_at(dir_fd, name, FILE_BYTES_MAX, &text, &length);

        if (r >= 0)
                r = write_all(to, text, length);
        if (r >= 0)
                r = write_all(to, "\n", 1);
        if (text)
                explicit_bzero(text, length);
        return r;
}

/* The authorities in the first file that exists. */
static int append_system_authorities(int to) {
        int r = -ENOENT;

        for (size_t i = 0; r == -ENOENT && i < N_ELEMENTS(system_authorities); i++)
                r = append_certificate_file(AT_FDCWD, system_authorities[i], to);
        return r == -ENOENT ? 0 : r;
}

static int make_memory_file(const char *name, int *fd) {
        if (*fd >= 0)
                return 0;
        *fd = memfd_create(name, MFD_CLOEXEC);
        return *fd < 0 ? -errno : 0;
}

static int add_authority(Endpoint *endpoint, int dir_fd, const char *name) {
        int r;

        if (endpoint->authorities_fd < 0) {
                r = make_memory_file("authorities", &endpoint->authorities_fd);
                if (r < 0)
                        return r;
                r = append_system_authorities(endpoint->authorities_fd);
                if (r < 0)
                        return r;
        }
        return append_certificate_file(dir_fd, name, endpoint->authorities_fd);
}

/* The key for x.cert is x.key; the first pair is used. */
static int add_certificate_pair(Endpoint *endpoint, int dir_fd, const char *name, Error *reterr) {
        cleanup_free char *key = NULL;
        int r;

        if (endpoint->certificate_fd >= 0)
                return 0;
        key = text_format("%.*s.key", (int) (strlen(name) - strlen(".cert")), name);
        if (!key)
                return -ENOMEM;
        if (faccessat(dir_fd, key, F_OK, 0) < 0)
                return error_setf(reterr, ENOENT, "'%s' is missing", key);
        r = make_memory_file("certificate", &endpoint->certificate_fd);
        if (r < 0)
                return r;
        r = append_certificate_file(dir_fd, name, endpoint->certificate_fd);
        if (r < 0)
                return r;
        r = make_memory_file("key", &endpoint->key_fd);
        if (r < 0)
                return r;
        return append_certificate_file(dir_fd, key, endpoint->key_fd);
}

static bool has_file_suffix(const char *text, const char *suffix) {
        size_t n = strlen(text), m = strlen(suffix);

        return n > m && streq(text + n - m, suffix);
}

static int read_certificate_directory(Endpoint *endpoint, int dir_fd, Error *reterr) {
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_closedir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        const struct dirent *entry;
        unsigned n = 0;
        int r;

        if (!dir) {
                close_fd(copy);
                return -errno;
        }
        while ((r = read_directory_entry(dir, &entry)) > 0 && n++ < FILES_MAX) {
                if (has_file_suffix(entry->d_name, ".crt"))
                        r = add_authority(endpoint, dir_fd, entry->d_name);
                else if (has_file_suffix(entry->d_name, ".cert"))
                        r = add_certificate_pair(endpoint, dir_fd, entry->d_name, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "%s", entry->d_name);
        }
        return MIN(r, 0);
}

/* The entry whose name is the registry in another spelling: "example.com:443", "docker.io". */
static int find_host_directory(const char *directory, const char *host, char **ret) {
        cleanup_closedir DIR *dir = opendir(directory);
        cleanup_free char *registry = NULL;
        const struct dirent *entry;
        int r = registry_name_normalise(host, &registry, NULL);

        if (r < 0)
                return r;
        if (!dir)
                return -errno;
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                if (!registry_name_equals(entry->d_name, registry))
                        continue;
                *ret = strdup(entry->d_name);
                return *ret ? 0 : -ENOMEM;
        }
        return r < 0 ? r : -ENOENT;
}

static bool is_lack_of_resources(int r) {
        return r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -EIO;
}

static int open_directory_of(const char *directory, const char *name) {
        cleanup_free char *path = path_join(directory, name);
        int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        if (!path)
                return -ENOMEM;
        return fd < 0 ? -errno : fd;
}

static int open_host_directory(const char *directory, const Endpoint *endpoint) {
        cleanup_free char *name = NULL;
        int r = open_directory_of(directory, endpoint->host);

        if (r >= 0 || is_lack_of_resources(r))
                return r;
        r = find_host_directory(directory, endpoint->host, &name);
        if (r >= 0)
                r = open_directory_of(directory, name);
        return r >= 0 || is_lack_of_resources(r) ? r : -ENOENT;
}

static int find_certificates_in(const char *directory, Endpoint *endpoint, Error *reterr) {
        cleanup_close int fd = open_host_directory(directory, endpoint);
        int r;

        if (fd == -ENOENT)
                return 0;
        r = fd < 0 ? fd : read_certificate_directory(endpoint, fd, reterr);
        return r < 0 ? error_prefixf(reterr, r, "%s/%s", directory, endpoint->host) : 0;
}

int endpoint_load_certificates(const json_t *directories, Endpoint *endpoint, Error *reterr) {
        static const char *const usual[] = { "/etc/containers/certs.d", "/etc/docker/certs.d" };
        const json_t *item;
        size_t i;
        int r;

        json_array_foreach(directories, i, item) {
                r = find_certificates_in(strna(json_string_value(item)), endpoint, reterr);
                if (r < 0)
                        return r;
        }
        for (i = 0; !directories && i < N_ELEMENTS(usual); i++) {
                r = find_certificates_in(usual[i], endpoint, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}
