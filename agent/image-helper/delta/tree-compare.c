/* SPDX-License-Identifier: Apache-2.0 */

/* The trees are compared level by level, with four open descriptors per level. No other process
 * writes to either tree, but the stored one may be damaged in any way: it is treated like untrusted
 * data. */

#include "agent/image-helper/delta/tree-compare.h"

#include "agent/image-helper/archive/tar-name.h"
#include "agent/image-helper/process/safe-message.h"
#include "common/cleanup.h"
#include "common/file-copy.h"
#include "common/file.h"
#include "common/layer-view.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum {
        BLOCK_BYTES = 64 * 1024,
        LIST_BYTES = 64 * 1024
};

/* One name in both trees. */
typedef struct ComparedPair {
        int sound_fd, fd; /* directories that contain it */
        const char *name;
        const char *path; /* for messages */
        struct stat sound, here;
} ComparedPair;

static int compare_directories(TreeComparison *comparison, int sound_fd, int fd, const char *path,
                               unsigned depth);

static int add_tree_fault(TreeComparison *comparison, const char *path, const char *what) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *message = NULL;

        if (comparison->n_faults++ >= COMPARE_FAULTS_MAX)
                return 0;
        (void) error_setf(&error, EBADMSG, "'%s' %s", path, what);
        message = format_safe_message(&error, -EBADMSG);
        return message ? strv_append(&comparison->faults, message) : -ENOMEM;
}

/* ---- comparing ---- */

/* 1: the same bytes; 0; or -errno. */
static int compare_contents(const ComparedPair *pair) {
        cleanup_close int one =
                open_without_symlinks(pair->sound_fd, pair->name, O_RDONLY | O_NONBLOCK);
        cleanup_close int other =
                open_without_symlinks(pair->fd, pair->name, O_RDONLY | O_NONBLOCK);
        off_t offset = 0;

        if (one < 0 || other < 0)
                return one < 0 ? one : other;
        for (;;) {
                static char a[BLOCK_BYTES], b[BLOCK_BYTES];
                ssize_t n = pread(one, a, sizeof(a), offset);
                ssize_t m = pread(other, b, sizeof(b), offset);

                if (n < 0)
                        return -errno;
                /* Bytes that cannot be read from the disk also count as damaged. */
                if (m != n || memcmp(a, b, (size_t) n) != 0)
                        return 0;
                if (n == 0)
                        return 1;
                offset += n;
        }
}

static bool same_target(const ComparedPair *pair) {
        char a[PATH_MAX], b[PATH_MAX];
        ssize_t n = readlinkat(pair->sound_fd, pair->name, a, sizeof(a));
        ssize_t m = readlinkat(pair->fd, pair->name, b, sizeof(b));

        return n >= 0 && n == m && memcmp(a, b, (size_t) n) == 0;
}

static bool is_compared(const char *attribute) {
        return xattr_is_allowed(attribute) || streq(attribute, XATTR_OPAQUE);
}

static size_t count_attributes(int fd, char *list, ssize_t *ret_length) {
        size_t n = 0;

        *ret_length = flistxattr(fd, list, LIST_BYTES);
        for (const char *name = list; name < list + *ret_length; name += strlen(name) + 1)
                n += is_compared(name);
        return n;
}

static bool same_attributes(int one, int other) {
        static char list[LIST_BYTES], a[BLOCK_BYTES], b[BLOCK_BYTES];
        ssize_t length;
        size_t n = count_attributes(other, list, &length);

        if (count_attributes(one, list, &length) != n)
                return false;
        for (const char *name = list; name < list + length; name += strlen(name) + 1) {
                ssize_t size = fgetxattr(one, name, a, sizeof(a));

                if (is_compared(name) &&
                    (size < 0 || fgetxattr(other, name, b, sizeof(b)) != size ||
                     memcmp(a, b, (size_t) size) != 0))
                        return false;
        }
        return true;
}

static bool same_time(const struct stat *a, const struct stat *b) {
        return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The time of a whiteout is not compared, because it is the time when the whiteout was created. */
static bool same_metadata(const ComparedPair *pair) {
        const struct stat *a = &pair->sound, *b = &pair->here;

        if (a->st_mode != b->st_mode || a->st_uid != b->st_uid || a->st_gid != b->st_gid)
                return false;
        if (S_ISCHR(a->st_mode))
                return a->st_rdev == b->st_rdev;
        return S_ISDIR(a->st_mode) || same_time(a, b);
}

/* NULL if it is correct. */
static int find_fault(const ComparedPair *pair, const char **ret_what) {
        cleanup_close int one = -EBADF, other = -EBADF;
        int r = 1;

        *ret_what = NULL;
        if (S_ISREG(pair->sound.st_mode))
                r = pair->sound.st_size == pair->here.st_size ? compare_contents(pair) : 0;
        else if (S_ISLNK(pair->sound.st_mode))
                r = same_target(pair);
        if (r < 0)
                return r;
        if (r == 0) {
                *ret_what = "differs in contents";
                return 0;
        }
        if (!same_metadata(pair))
                *ret_what = "differs in owner, mode or time";
        if (!S_ISREG(pair->sound.st_mode) && !S_ISDIR(pair->sound.st_mode))
                return 0;
        one = open_without_symlinks(pair->sound_fd, pair->name, O_RDONLY | O_NONBLOCK);
        other = open_without_symlinks(pair->fd, pair->name, O_RDONLY | O_NONBLOCK);
        if (one < 0 || other < 0)
                return one < 0 ? one : other;
        if (!*ret_what && !same_attributes(one, other))
                *ret_what = "differs in attributes";
        return 0;
}

/* A file with several names is read and reported once. */
static ComparedLink *compared_link_of(TreeComparison *comparison, const ComparedPair *pair) {
        if (!S_ISREG(pair->sound.st_mode) || pair->sound.st_nlink < 2)
                return NULL;
        return &comparison->links[pair->sound.st_ino % COMPARE_LINKS];
}

static int find_new_fault(TreeComparison *comparison, const ComparedPair *pair,
                          const char **ret_what, bool *ret_is_told) {
        ComparedLink *link = compared_link_of(comparison, pair);
        int r;

        if (link && link->sound == pair->sound.st_ino && link->here == pair->here.st_ino) {
                *ret_is_told = true;
                *ret_what = link->is_faulty ? "is damaged under a different name" : NULL;
                return 0;
        }
        r = find_fault(pair, ret_what);
        if (r < 0)
                return r;
        if (link)
                *link = (ComparedLink){ pair->sound.st_ino, pair->here.st_ino, *ret_what };
        return 0;
}

/* ---- repairing ---- */

static int put_in_place(const ComparedPair *pair, bool makes_room) {
        int r = makes_room ? remove_tree_at(pair->fd, pair->name) : 0;

        if (r < 0)
                return r;
        if (renameat(pair->sound_fd, pair->name, pair->fd, pair->name) < 0)
                return -errno;
        return 0;
}

/* A directory stays in place, because its contents are compared separately. */
static int repair_directory(const ComparedPair *pair) {
        cleanup_close int one =
                open_without_symlinks(pair->sound_fd, pair->name, O_RDONLY | O_DIRECTORY);
        cleanup_close int other =
                open_without_symlinks(pair->fd, pair->name, O_RDONLY | O_DIRECTORY);
        FileMetadata metadata = file_metadata_of(&pair->sound);
        int r;

        if (one < 0 || other < 0)
                return one < 0 ? one : other;
        r = file_metadata_apply(other, &metadata);
        if (r < 0)
                return r;
        r = xattr_copy(one, other);
        if (r < 0)
                return r;
        if (directory_is_opaque(one))
                return fsetxattr(other, XATTR_OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
        return fremovexattr(other, XATTR_OPAQUE) < 0 && errno != ENODATA ? -errno : 0;
}

static int compare_subdirectories(TreeComparison *comparison, const ComparedPair *pair,
                                  unsigned depth) {
        cleanup_close int one =
                open_without_symlinks(pair->sound_fd, pair->name, O_RDONLY | O_DIRECTORY);
        cleanup_close int other =
                open_without_symlinks(pair->fd, pair->name, O_RDONLY | O_DIRECTORY);

        if (one < 0 || other < 0)
                return one < 0 ? one : other;
        return compare_directories(comparison, one, other, pair->path, depth + 1);
}

static int compare_pair(TreeComparison *comparison, ComparedPair *pair, unsigned depth) {
        const char *what = NULL;
        bool is_there, is_directory, is_told = false;
        int r = 0;

        if (fstatat(pair->sound_fd, pair->name, &pair->sound, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        is_there = fstatat(pair->fd, pair->name, &pair->here, AT_SYMLINK_NOFOLLOW) >= 0;
        is_directory = is_there && S_ISDIR(pair->sound.st_mode) && S_ISDIR(pair->here.st_mode);
        if (!is_there)
                what = "is missing";
        else if ((pair->sound.st_mode & S_IFMT) != (pair->here.st_mode & S_IFMT))
                what = "differs in type";
        else
                r = find_new_fault(comparison, pair, &what, &is_told);
        if (r < 0)
                return r;
        if (what && !is_told)
                r = add_tree_fault(comparison, pair->path, what);
        if (r < 0)
                return r;
        if (what && comparison->repairs)
                r = is_directory ? repair_directory(pair)
                                 : put_in_place(pair, is_there && S_ISDIR(pair->here.st_mode));
        if (r < 0 || !is_directory)
                return r;
        return compare_subdirectories(comparison, pair, depth);
}

/* ---- directories ---- */

static DIR *open_list(int fd) {
        int copy = open_without_symlinks(fd, "", O_RDONLY | O_DIRECTORY);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);

        if (!dir)
                close_fd(copy);
        return dir;
}

static int compare_name(TreeComparison *comparison, int sound_fd, int fd, const char *path,
                        const char *name, unsigned depth) {
        cleanup_free char *child = NULL;
        ComparedPair pair = { .sound_fd = sound_fd, .fd = fd, .name = name };

        child = text_format("%s%s%s", path, path[0] ? "/" : "", name);
        if (!child)
                return -ENOMEM;
        pair.path = child;
        return compare_pair(comparison, &pair, depth);
}

static int compare_surplus(TreeComparison *comparison, int sound_fd, int fd, const char *path,
                           const char *name) {
        cleanup_free char *child = NULL;
        int r;

        if (faccessat(sound_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) >= 0)
                return 0;
        child = text_format("%s%s%s", path, path[0] ? "/" : "", name);
        if (!child)
                return -ENOMEM;
        r = add_tree_fault(comparison, child, "is not part of the image");
        if (r < 0 || !comparison->repairs)
                return r;
        return remove_tree_at(fd, name);
}

/* Surplus entries are searched for first, because a repair moves entries out of the sound tree. */
static int compare_directories(TreeComparison *comparison, int sound_fd, int fd, const char *path,
                               unsigned depth) {
        cleanup_closedir DIR *own = open_list(fd), *sound = open_list(sound_fd);
        const struct dirent *entry;
        struct stat st;
        int r;

        if (depth > TAR_NAME_DEPTH_MAX)
                return -ENAMETOOLONG;
        if (!own || !sound || fstat(sound_fd, &st) < 0)
                return -errno;
        while ((r = read_directory_entry(own, &entry)) > 0) {
                r = compare_surplus(comparison, sound_fd, fd, path, entry->d_name);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        while ((r = read_directory_entry(sound, &entry)) > 0) {
                r = compare_name(comparison, sound_fd, fd, path, entry->d_name, depth);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        if (comparison->repairs)
                (void) futimens(fd, (struct timespec[]){ st.st_atim, st.st_mtim });
        return 0;
}

/* The top directory, without a name. */
static int compare_top_directories(TreeComparison *comparison, int sound_fd, int fd) {
        ComparedPair pair = { .sound_fd = sound_fd, .fd = fd, .name = "", .path = "/" };
        const char *what = NULL;
        int r = 0;

        if (fstat(sound_fd, &pair.sound) < 0 || fstat(fd, &pair.here) < 0)
                return -errno;
        r = find_fault(&pair, &what);
        if (r < 0 || !what)
                return r;
        r = add_tree_fault(comparison, pair.path, what);
        if (r < 0 || !comparison->repairs)
                return r;
        return repair_directory(&pair);
}

int compare_trees(TreeComparison *comparison, int sound_fd, int fd) {
        int r = compare_top_directories(comparison, sound_fd, fd);

        return r < 0 ? r : compare_directories(comparison, sound_fd, fd, "", 0);
}

void tree_comparison_done(TreeComparison *comparison) {
        comparison->faults = strv_free(comparison->faults);
}
