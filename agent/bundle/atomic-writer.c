/* SPDX-License-Identifier: Apache-2.0 */
/* The atomic writer of volumes (kubelet: pkg/volume/util/atomic_writer.go). All operations are
 * relative to a descriptor of the volume and follow no links. Containers see the directory
 * read-only, so only the agent writes its content; but a container with a hostPath volume that
 * includes the state directory could write to it. */

#include "agent/bundle/atomic-writer.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>

enum {
        DIR_NAME_SIZE = 128,
        HASH_DIGITS = 16, /* length of the hash in a directory's name */
        DIRECTORY_MODE = 0755,
};

static const char data_dir_name[] = "..data";
static const char new_data_dir_name[] = "..data_tmp";

static void file_projection_done(FileProjection *file) {
        if (file->bytes)
                explicit_bzero(file->bytes, file->length);
        free(file->bytes);
        free(file->path);
        *file = (FileProjection){ 0 };
}

void volume_payload_done(VolumePayload *payload) {
        for (size_t i = 0; i < payload->files.n; i++)
                file_projection_done(&payload->files.items[i]);
        free(payload->files.items);
        strv_free(payload->hidden);
        *payload = (VolumePayload){ 0 };
}

int volume_payload_add(VolumePayload *payload, const char *path, const void *bytes, size_t length,
                       mode_t mode) {
        cleanup_free char *path_copy = strdup(path), *copy = malloc(length + 1);
        size_t n = payload->files.n;

        if (!path_copy || !copy || !ARRAY_RESERVE(payload->files.items, n, 1))
                return -ENOMEM;
        memcpy(copy, bytes, length);
        payload->files.items[n] = (FileProjection){ .path = TAKE_PTR(path_copy),
                                                    .bytes = TAKE_PTR(copy),
                                                    .length = length,
                                                    .mode = mode,
                                                    .order = n };
        payload->files.n++;
        return 0;
}

static int compare_file_projections(const void *a, const void *b) {
        const FileProjection *x = a, *y = b;
        int r = strcmp(x->path, y->path);

        return r != 0 ? r : x->order < y->order ? -1 : x->order > y->order;
}

/* Sorts by path and removes duplicates, in O(n log n): a volume may have many files. */
static void sort_file_projections(VolumePayload *payload) {
        FileProjection *files = payload->files.items;
        size_t n = 0;

        if (payload->files.n == 0)
                return;
        qsort(files, payload->files.n, sizeof(*files), compare_file_projections);
        for (size_t i = 0; i < payload->files.n; i++) {
                if (n > 0 && streq(files[n - 1].path, files[i].path))
                        file_projection_done(&files[--n]);
                files[n++] = files[i];
        }
        payload->files.n = n;
}

/* The hash of everything that a reader can see: paths, modes, contents. */
static int hash_volume_payload(const VolumePayload *payload, char ret_hex[SHA256_HEX_SIZE]) {
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();

        if (!hash)
                return -ENOMEM;
        sha256_update(hash, &payload->group, sizeof(payload->group));
        for (size_t i = 0; i < payload->files.n; i++) {
                const FileProjection *file = &payload->files.items[i];

                sha256_update(hash, file->path, strlen(file->path) + 1);
                sha256_update(hash, &file->mode, sizeof(file->mode));
                sha256_update(hash, &file->length, sizeof(file->length));
                sha256_update(hash, file->bytes, file->length);
        }
        sha256_finish(hash, ret_hex);
        return 0;
}

/* Named like the kubelet's directories, plus a hash by which a set of files is recognized. */
static void format_timestamped_dir_name(char name[DIR_NAME_SIZE], const char *hash) {
        uint64_t now = now_realtime_usec();
        char stamp[sizeof("2026_01_02_03_04_05")];
        struct tm tm;

        utc_from_seconds(now / USEC_PER_SEC, &tm);
        (void) strftime(stamp, sizeof(stamp), "%Y_%m_%d_%H_%M_%S", &tm);
        (void) snprintf(name, DIR_NAME_SIZE, "..%s.%06u-%.*s", stamp,
                        (unsigned) (now % USEC_PER_SEC), HASH_DIGITS, hash);
}

/* Sets the name of the directory. */
static bool is_data_dir_current(int dir_fd, const char *hash, char ret_set[DIR_NAME_SIZE]) {
        ssize_t n = readlinkat(dir_fd, data_dir_name, ret_set, DIR_NAME_SIZE - 1);
        struct stat st;

        if (n <= HASH_DIGITS)
                return false;
        ret_set[n] = '\0';
        return strncmp(ret_set + n - HASH_DIGITS, hash, HASH_DIGITS) == 0 &&
               fstatat(dir_fd, ret_set, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISDIR(st.st_mode);
}

static int set_group_and_mode(int fd, int64_t group, mode_t mode) {
        if (group >= 0 && fchown(fd, (uid_t) -1, (gid_t) group) < 0)
                return -errno;
        return fchmod(fd, mode) < 0 ? -errno : 0;
}

/* Opens a directory one level down; creates it if it does not exist. */
static int open_or_make_directory(int dir_fd, const char *name, int64_t group) {
        cleanup_close int fd = -EBADF;
        int r;

        if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
                return -errno;
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = set_group_and_mode(fd, group, DIRECTORY_MODE);
        return r < 0 ? r : TAKE_FD(fd);
}

static int write_file_projection(int set_fd, const FileProjection *file, int64_t group) {
        cleanup_close int dir_fd = fcntl(set_fd, F_DUPFD_CLOEXEC, 3), fd = -EBADF;
        cleanup_free char *copy = strdup(file->path);
        mode_t mode = file->mode | (group >= 0 ? 0440 : 0);
        char *rest = copy, *slash;
        int r;

        if (!copy)
                return -ENOMEM;
        if (dir_fd < 0)
                return -errno;
        for (; (slash = strchr(rest, '/')); rest = slash + 1) {
                int next;

                *slash = '\0';
                if (!*rest)
                        continue;
                next = open_or_make_directory(dir_fd, rest, group);
                if (next < 0)
                        return next;
                close_fd(dir_fd);
                dir_fd = next;
        }
        fd = openat(dir_fd, rest, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, file->bytes, file->length);
        return r < 0 ? r : set_group_and_mode(fd, group, mode);
}

static int write_timestamped_dir(int dir_fd, const char *set, const VolumePayload *payload) {
        cleanup_close int set_fd = open_or_make_directory(dir_fd, set, payload->group);

        if (set_fd < 0)
                return set_fd;
        for (size_t i = 0; i < payload->files.n; i++) {
                int r = write_file_projection(set_fd, &payload->files.items[i], payload->group);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int switch_data_link(int dir_fd, const char *set) {
        if (unlinkat(dir_fd, new_data_dir_name, 0) < 0 && errno != ENOENT)
                return -errno;
        if (symlinkat(set, dir_fd, new_data_dir_name) < 0 ||
            renameat(dir_fd, new_data_dir_name, dir_fd, data_dir_name) < 0)
                return -errno;
        return 0;
}

/* The first component of the path: the name that is visible in the volume. */
static size_t visible_name_length(const char *path) {
        return strcspn(path, "/");
}

static int compare_path_of_file(const char *path, const FileProjection *file) {
        return strcmp(path, file->path);
}

/* The first file whose path does not sort before the given one. */
static const char *find_first_path(const VolumePayload *payload, const char *path) {
        size_t i = ARRAY_FIND_PLACE(path, payload->files.items, payload->files.n,
                                    compare_path_of_file);

        return i < payload->files.n ? payload->files.items[i].path : "";
}

static bool is_user_visible(const VolumePayload *payload, const char *name) {
        char directory[NAME_MAX + 2];
        int length = snprintf(directory, sizeof(directory), "%s/", name);

        if (strv_contains(payload->hidden, name))
                return false;
        return streq(find_first_path(payload, name), name) ||
               strncmp(find_first_path(payload, directory), directory, (size_t) length) == 0;
}

static int make_user_visible_links(int dir_fd, const VolumePayload *payload) {
        for (size_t i = 0; i < payload->files.n; i++) {
                const char *path = payload->files.items[i].path;
                cleanup_free char *name = strndup(path, visible_name_length(path)), *target = NULL;

                target = name ? text_format("%s/%s", data_dir_name, name) : NULL;
                if (!target)
                        return -ENOMEM;
                if (strv_contains(payload->hidden, name))
                        continue;
                if (symlinkat(target, dir_fd, name) < 0 && errno != EEXIST)
                        return -errno;
        }
        return 0;
}

/* Created by this writer: an older set, or a link to a file that no longer exists. Directories that
 * were created for subPath mounts stay, and so do mount points. */
static bool is_stale_volume_entry(int dir_fd, const VolumePayload *payload, const char *name,
                                  const char *set) {
        char target[sizeof(data_dir_name)];
        ssize_t n;

        if (streq(name, set) || streq(name, data_dir_name) || is_user_visible(payload, name))
                return false;
        if (strncmp(name, "..", 2) == 0)
                return name[2] != '\0';
        n = readlinkat(dir_fd, name, target, sizeof(target));
        return n == (ssize_t) sizeof(target) && memcmp(target, "..data/", sizeof(target)) == 0;
}

static void remove_stale_volume_entries(int dir_fd, const VolumePayload *payload, const char *set) {
        cleanup_closedir DIR *dir = NULL;
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct dirent *entry;

        dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                close_fd(copy);
                return;
        }
        while ((entry = readdir(dir)))
                if (!streq(entry->d_name, ".") &&
                    is_stale_volume_entry(dir_fd, payload, entry->d_name, set))
                        (void) remove_tree_at(dir_fd, entry->d_name);
}

int atomic_writer_write(int dir_fd, VolumePayload *payload, bool rewrite) {
        char hash[SHA256_HEX_SIZE], set[DIR_NAME_SIZE];
        int r;

        sort_file_projections(payload);
        r = hash_volume_payload(payload, hash);
        if (r < 0)
                return r;
        /* The rest is checked as well, because an agent may have died before it created the links
         * or removed the old files, which may be secret. */
        if (!rewrite && is_data_dir_current(dir_fd, hash, set)) {
                r = make_user_visible_links(dir_fd, payload);
                remove_stale_volume_entries(dir_fd, payload, set);
                return r;
        }
        format_timestamped_dir_name(set, hash);
        r = write_timestamped_dir(dir_fd, set, payload);
        if (r >= 0)
                r = switch_data_link(dir_fd, set);
        if (r < 0) {
                (void) remove_tree_at(dir_fd, set);
                return r;
        }
        r = make_user_visible_links(dir_fd, payload);
        remove_stale_volume_entries(dir_fd, payload, set);
        return r < 0 ? r : 1;
}
