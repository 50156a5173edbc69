/* SPDX-License-Identifier: Apache-2.0 */
#include "common/file.h"

#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/failpoint.h"
#include "common/text.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define COPY_BYTES (16 * MIB)

static int open_resolving(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve) {
        struct open_how how = {
                .flags = (uint64_t) (flags | O_CLOEXEC),
                .mode = flags & (O_CREAT | O_TMPFILE) ? mode : 0,
                .resolve = RESOLVE_NO_MAGICLINKS | resolve,
        };
        long fd;

        /* EAGAIN: a concurrent rename raced with "..". The kernel requires a retry. */
        for (unsigned i = 0; i < 32; i++) {
                fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
                if (fd >= 0)
                        return (int) fd;
                if (errno != EAGAIN && errno != EINTR)
                        break;
        }
        return -errno;
}

int open_beneath(int dir_fd, const char *path, int flags, mode_t mode) {
        return open_resolving(dir_fd, path, flags, mode, RESOLVE_BENEATH);
}

int open_no_symlinks(int dir_fd, const char *path, int flags, mode_t mode) {
        return open_resolving(dir_fd, path, flags, mode,
                              RESOLVE_NO_SYMLINKS | (dir_fd >= 0 ? RESOLVE_BENEATH : 0U));
}

int open_in_root(int root_fd, const char *path, int flags) {
        return open_resolving(root_fd, path, flags, 0, RESOLVE_IN_ROOT | RESOLVE_NO_XDEV);
}

int open_in_container(int root_fd, const char *path, int flags) {
        return open_resolving(root_fd, path, flags, 0, RESOLVE_IN_ROOT);
}

static int open_parent_at(int dir_fd, const char *path, const char **ret_name) {
        const char *slash = strrchr(path, '/');
        cleanup_free char *parent = NULL;

        if (!slash || slash[1] == '\0')
                return -EINVAL;
        parent = strndup(path, MAX((size_t) (slash - path), (size_t) 1));
        if (!parent)
                return -ENOMEM;
        *ret_name = slash + 1;
        return open_no_symlinks(dir_fd, parent, O_RDONLY | O_DIRECTORY, 0);
}

int open_parent_no_symlinks(const char *path, const char **ret_name) {
        return open_parent_at(AT_FDCWD, path, ret_name);
}

DIR *opendir_no_symlinks(const char *path) {
        int fd = open_no_symlinks(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
        DIR *dir;

        if (fd < 0) {
                errno = -fd;
                return NULL;
        }
        dir = fdopendir(fd);
        if (!dir)
                close_fd(fd);
        return dir;
}

/* Sets the mode regardless of the umask, because a later chmod() could change a file that was put
 * in its place. */
static int mkdir_exactly(int dir_fd, const char *path, mode_t mode) {
        mode_t mask = umask(0);
        int r = mkdirat(dir_fd, path, mode) < 0 ? -errno : 0;

        (void) umask(mask);
        return r;
}

/* Likewise for a new file. Returns a descriptor for writing. */
static int create_exactly(int dir_fd, const char *name, mode_t mode) {
        mode_t mask = umask(0);
        int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        int r = fd < 0 ? -errno : fd;

        (void) umask(mask);
        return r;
}

/* Handles one component. 'name' is neither "." nor "..". */
static int open_or_make_component(int dir_fd, const char *name, bool directory, mode_t mode) {
        cleanup_close int made = -EBADF;
        int fd, why;

        if (directory)
                why = mkdir_exactly(dir_fd, name, mode);
        else
                why = made = create_exactly(dir_fd, name, mode);
        fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | (directory ? O_DIRECTORY : 0));
        if (fd < 0)
                return errno == ENOENT && why < 0 && why != -EEXIST ? why : -errno;
        return fd;
}

int make_path_at(int dir_fd, const char *path, bool directory, mode_t mode) {
        cleanup_free char *copy = strdup(path);
        cleanup_close int at = openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        char *rest = copy, *name;

        if (!copy)
                return -ENOMEM;
        if (at < 0)
                return -errno;
        while ((name = strsep(&rest, "/"))) {
                bool last = !rest || rest[strspn(rest, "/")] == '\0';
                int next;

                if (name[0] == '\0' || streq(name, "."))
                        continue;
                if (streq(name, ".."))
                        return -EXDEV;
                next = open_or_make_component(at, name, directory || !last,
                                              last ? mode : mode | 0111);
                if (next < 0)
                        return next;
                close_fd(at);
                at = next;
        }
        return TAKE_FD(at);
}

/* Opens the deepest existing directory on the way to 'path'. '*ret_rest' is the remaining part of
 * 'path'. */
static int open_deepest_directory(const char *path, const char **ret_rest) {
        cleanup_free char *prefix = strdup(path);
        char *slash;

        if (!prefix)
                return -ENOMEM;
        while ((slash = strrchr(prefix, '/'))) {
                int fd;

                slash[slash == prefix] = '\0'; /* keeps "/" */
                fd = open_no_symlinks(AT_FDCWD, prefix, O_PATH | O_DIRECTORY, 0);
                if (fd >= 0)
                        *ret_rest = path + (slash - prefix) + 1;
                if (fd != -ENOENT || slash == prefix)
                        return fd;
        }
        return -EINVAL;
}

int make_directory_no_symlinks(const char *path, mode_t mode) {
        cleanup_close int parent = -EBADF;
        cleanup_close int fd = open_no_symlinks(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
        const char *rest;

        if (fd != -ENOENT) /* usually it exists */
                return MIN(fd, 0);
        parent = open_deepest_directory(path, &rest);
        if (parent < 0)
                return parent;
        fd = make_path_at(parent, rest, true, mode);
        return MIN(fd, 0);
}

static int mkdir_if_missing(int dir_fd, const char *path, mode_t mode) {
        int r = mkdir_exactly(dir_fd, path, mode);

        return r == -EEXIST ? 0 : r;
}

int mkdir_parents_at(int dir_fd, const char *path, mode_t mode) {
        cleanup_free char *parent = NULL;
        const char *slash;
        int r;

        /* Usually the whole path exists, or most of it. */
        r = mkdir_if_missing(dir_fd, path, mode);
        slash = strrchr(path, '/');
        if (r != -ENOENT || !slash || slash == path)
                return r;

        parent = strndup(path, (size_t) (slash - path));
        if (!parent)
                return -ENOMEM;
        r = mkdir_parents_at(dir_fd, parent, mode);
        if (r < 0)
                return r;
        return mkdir_if_missing(dir_fd, path, mode);
}

int open_directory_at(int dir_fd, const char *path, mode_t mode) {
        int r = mkdir_parents_at(dir_fd, path, mode);
        int fd;

        if (r < 0)
                return r;
        fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int read_stream(int fd, size_t max_bytes, char **ret_data, size_t *ret_length) {
        cleanup_buffer Buffer content = { 0 };
        size_t room = 0; /* including the NUL */

        for (;;) {
                ssize_t n;

                if (room - content.length < 2) {
                        room = room ? room * 2 : 4 * KIB;
                        if (!buffer_reserve(&content, room - content.length - 1))
                                return -ENOMEM;
                }
                n = read(fd, content.data + content.length, room - content.length - 1);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                content.length += (size_t) n;
                if (content.length > max_bytes)
                        return -EFBIG;
        }
        content.data[content.length] = '\0';
        if (ret_length)
                *ret_length = content.length;
        *ret_data = buffer_take(&content);
        return 0;
}

void keep_access_time(int fd) {
        (void) fcntl(fd, F_SETFL, O_NOATIME);
}

int read_file_at(int dir_fd, const char *path, size_t max_bytes, char **ret_data,
                 size_t *ret_length) {
        cleanup_close int fd = openat(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        if ((uint64_t) st.st_size > max_bytes)
                return -EFBIG;
        keep_access_time(fd);
        return read_stream(fd, max_bytes, ret_data, ret_length);
}

bool is_file_damage(int r) {
        return r == -EBADMSG || r == -EFBIG || r == -EINVAL || r == -EISDIR || r == -ELOOP ||
               r == -ENXIO;
}

bool is_content_damage(const char *text, int r) {
        return text ? r < 0 && r != -ENOMEM : is_file_damage(r);
}

int read_directory_entry(DIR *dir, const struct dirent **ret) {
        const struct dirent *entry;

        do {
                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return -errno;
        } while (streq(entry->d_name, ".") || streq(entry->d_name, ".."));
        *ret = entry;
        return 1;
}

int write_all(int fd, const void *data, size_t length) {
        const char *p = data;

        while (length > 0) {
                ssize_t n = write(fd, p, length);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                p += n;
                length -= (size_t) n;
        }
        return 0;
}

int copy_to_end(int from, int to) {
        for (;;) {
                ssize_t n = sendfile(to, from, NULL, COPY_BYTES);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
        }
}

int pwrite_all(int fd, const void *data, size_t length, uint64_t position) {
        const char *p = data;

        while (length > 0) {
                ssize_t n = pwrite(fd, p, length, (off_t) position);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                p += n;
                position += (uint64_t) n;
                length -= (size_t) n;
        }
        return 0;
}

int write_file_atomic_at(int dir_fd, const char *name, const void *data, size_t length,
                         mode_t mode) {
        cleanup_free char *temporary = NULL;
        cleanup_close int fd = -EBADF;
        int r;

        temporary = text_format("%s.tmp", name);
        if (!temporary)
                return -ENOMEM;
        /* Each file has one writer, so an existing temporary file was left by a dead process. */
        fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0)
                return -errno;
        FAIL_AT("file.write");
        r = fchmod(fd, mode) < 0 ? -errno : write_all(fd, data, length);
        FAIL_AT("file.rename");
        if (r >= 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
                r = -errno;
        DIE_AT("file.renamed");
        if (r < 0)
                (void) unlinkat(dir_fd, temporary, 0);
        return r;
}

int write_value_at(int dir_fd, const char *path, const char *value) {
        cleanup_close int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);
        size_t length = strlen(value);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = write(fd, value, length);
        if (n < 0)
                return -errno;
        return (size_t) n == length ? 0 : -EIO;
}

/* The state of a removal, and the number of deep directories that were moved to the top. */
typedef struct TreeRemoval {
        int top_fd;
        unsigned n_moved;
} TreeRemoval;

static int remove_below(TreeRemoval *removal, int dir_fd, unsigned depth);

/* Deeper trees are malicious; each level costs two descriptors. */
enum {
        REMOVE_DEPTH_MAX = 128
};

/* Directories that are too deep are moved to the top, for the next round. */
static int move_subtree_up(TreeRemoval *removal, int dir_fd, const char *name) {
        for (;;) {
                char above[sizeof("..4294967295")];

                (void) snprintf(above, sizeof(above), "..%u", removal->n_moved++);
                if (renameat2(dir_fd, name, removal->top_fd, above, RENAME_NOREPLACE) >= 0)
                        return 0;
                if (errno != EEXIST)
                        return -errno;
        }
}

static int remove_below_top(TreeRemoval *removal, int top_fd) {
        unsigned n_moved;
        int r;

        removal->top_fd = top_fd;
        do {
                n_moved = removal->n_moved;
                r = remove_below(removal, top_fd, 1);
        } while (r >= 0 && removal->n_moved != n_moved);
        return r;
}

static int remove_entry(TreeRemoval *removal, int dir_fd, const char *name, unsigned depth) {
        cleanup_close int fd = -EBADF;
        int r;

        FAIL_AT("tree.remove-entry");
        if (unlinkat(dir_fd, name, 0) >= 0 || errno == ENOENT)
                return 0;
        r = -errno;
        if (r != -EISDIR && r != -EPERM)
                return r;
        if (depth >= REMOVE_DEPTH_MAX)
                return move_subtree_up(removal, dir_fd, name);

        fd = open_resolving(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
                            RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS);
        if (fd < 0)
                return fd == -ENOTDIR ? r : fd; /* an immutable file */
        r = depth == 0 ? remove_below_top(removal, fd) : remove_below(removal, fd, depth + 1);
        if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT && r >= 0)
                r = -errno;
        return r;
}

/* Removes all entries. The caller keeps the descriptor: fdopendir() gets a duplicate. */
static int remove_below(TreeRemoval *removal, int dir_fd, unsigned depth) {
        cleanup_closedir DIR *dir = NULL;
        int result = 0, copy;

        copy = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
        if (copy < 0)
                return -errno;
        dir = fdopendir(copy);
        if (!dir) {
                int r = -errno;
                close_fd(copy);
                return r;
        }
        rewinddir(dir); /* the duplicate shares the position of an earlier round */
        for (;;) {
                struct dirent *entry;
                int r;

                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return result < 0 ? result : -errno;
                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                r = remove_entry(removal, dir_fd, entry->d_name, depth);
                if (r < 0 && result >= 0)
                        result = r;
        }
}

int unlink_if_present_at(int dir_fd, const char *path) {
        return unlinkat(dir_fd, path, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int remove_tree_at(int dir_fd, const char *path) {
        TreeRemoval removal = { .top_fd = -EBADF };
        cleanup_close int parent_fd = -EBADF;
        const char *name;

        if (!strchr(path, '/'))
                return remove_entry(&removal, dir_fd, path, 0);
        parent_fd = open_parent_at(dir_fd, path, &name);
        if (parent_fd < 0)
                return parent_fd == -ENOENT || parent_fd == -ENOTDIR ? 0 : parent_fd;
        return remove_entry(&removal, parent_fd, name, 0);
}

int remove_contents_at(int dir_fd, const char *path) {
        TreeRemoval removal = { .top_fd = -EBADF };
        cleanup_close int fd = open_no_symlinks(dir_fd, path, O_RDONLY | O_DIRECTORY, 0);

        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        return remove_below_top(&removal, fd);
}

char *memstream_finish(FILE *stream, char **text) {
        bool failed = ferror(stream) != 0;

        if (fclose(stream) != 0 || failed) {
                free(*text);
                return NULL;
        }
        return *text;
}

char *path_join(const char *a, const char *b) {
        return text_format("%s/%s", a, b);
}

/* Removes the last component, if there is one. */
static char *remove_last_component(char *start, char *end) {
        while (end > start && *--end != '/')
                ;
        return end;
}

char *path_clean(const char *path) {
        char *clean = malloc(strlen(path) + 2), *end = clean;

        if (!clean)
                return NULL;
        for (size_t length; *path; path += length) {
                path += strspn(path, "/");
                length = strcspn(path, "/");
                if (length == 0 || (length == 1 && path[0] == '.'))
                        continue;
                if (length == 2 && strncmp(path, "..", 2) == 0) {
                        end = remove_last_component(clean, end);
                        continue;
                }
                *end++ = '/';
                end = mempcpy(end, path, length);
        }
        if (end == clean)
                *end++ = '/';
        *end = '\0';
        return clean;
}

const char *path_below(const char *path, const char *directory) {
        size_t length = strlen(directory);

        return strncmp(path, directory, length) == 0 && path[length] == '/' ? path + length + 1
                                                                            : NULL;
}
