/* SPDX-License-Identifier: Apache-2.0 */

/* images import, export, diff, verify, repair: mainstay itself reads and writes the files of these
 * commands, so that the agent does not open paths that a user names. Import copies an archive to
 * the agent's preload directory; mainstay-image does all parsing. */

#include "agent/cli/command-images.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/image-helper-run.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/file-stamp.h"
#include "common/file.h"
#include "common/image-reference.h"
#include "common/json-text.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

enum {
        POLL_NSEC = 100 * 1000 * 1000,
        NOTICE_POLLS_MAX = 600
};

static int get_image_store_paths(const Options *options, json_t **ret, Error *reterr) {
        return client_get_json(options->socket, "/images", ret, reterr);
}

/* ---- waiting until the agent has read the archive ---- */

/* An imported archive, as opposed to earlier and later files of that name. */
typedef struct Imported {
        int dir; /* the preload directory */
        const char *preload, *name;
        const char *previous; /* name of the archive that it has replaced, until the agent has read
                               * the new one; or NULL */
        FileStamp stamp;
} Imported;

static bool is_imported(const json_t *archive, const Imported *imported) {
        return streq(strna(json_text(archive, "file")), imported->name) &&
               json_integer_value(json_object_get(archive, "inode")) ==
                       (json_int_t) imported->stamp.inode &&
               json_integer_value(json_object_get(archive, "mtimeNsec")) ==
                       imported->stamp.modified_nsec;
}

static const json_t *find_imported(const json_t *archives, const Imported *imported) {
        const json_t *archive;
        size_t i;

        json_array_foreach(archives, i, archive)
                if (is_imported(archive, imported))
                        return archive;
        return NULL;
}

/* Unless a later import has replaced the archive. */
static bool is_in_place(const Imported *imported) {
        struct stat st;

        return fstatat(imported->dir, imported->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               st.st_ino == imported->stamp.inode;
}

/* An archive that can never be used is not kept. */
static int reject_imported(const Imported *imported, const json_t *archive, Error *reterr) {
        const char *error = json_text(archive, "error");

        if (json_is_true(json_object_get(archive, "isTransient")))
                return error_setf(reterr, EAGAIN, "%s/%s: %s; the agent tries again",
                                  imported->preload, imported->name, error);
        if (is_in_place(imported) &&
            (!imported->previous ||
             renameat(imported->dir, imported->previous, imported->dir, imported->name) < 0))
                (void) unlinkat(imported->dir, imported->name, 0);
        return error_setf(reterr, EBADMSG, "%s: %s", imported->name, error);
}

/* 1: the agent has read it; 0: not yet. An agent of an earlier version does not list archives. */
static int poll_imported(const Options *options, const Imported *imported, bool *ret_is_known,
                         Error *reterr) {
        cleanup_json json_t *all = NULL;
        const json_t *archives, *archive;
        int r = client_get_json(options->socket, "/images", &all, reterr);

        if (r < 0)
                return r;
        archives = json_object_get(all, "archives");
        archive = find_imported(archives, imported);
        if (archive && json_text(archive, "error"))
                return reject_imported(imported, archive, reterr);
        *ret_is_known = archive;
        return !archives || (archive && json_is_true(json_object_get(archive, "isRead")));
}

/* Reading may take minutes, but the agent notices a new archive at once, unless there are too many
 * or another import has replaced this one. */
static int wait_until_read(const Options *options, const Imported *imported, Error *reterr) {
        bool is_known = false;
        int r;

        for (unsigned n = 0; (r = poll_imported(options, imported, &is_known, reterr)) == 0; n++) {
                if (!is_known && n >= NOTICE_POLLS_MAX)
                        return error_setf(reterr, ETIMEDOUT,
                                          "%s/%s: the agent does not read it; its log may say why",
                                          imported->preload, imported->name);
                (void) nanosleep(&(struct timespec){ .tv_nsec = POLL_NSEC }, NULL);
        }
        return r;
}

/* ---- import of archives ---- */

/* The name ".part" is not that of an archive. Nothing is left of an unnamed file if the program is
 * killed. 1: the archive that it replaces has this name now; 0: there was none, or the file system
 * cannot exchange names; or -errno. */
static int publish_archive(int dir, int fd, const char *part, const char *name) {
        struct stat st;
        char link[64];

        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
                return -EISDIR;
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        if (fsync(fd) < 0 || (unlinkat(dir, part, 0) < 0 && errno != ENOENT) ||
            linkat(AT_FDCWD, link, dir, part, AT_SYMLINK_FOLLOW) < 0)
                return -errno;
        if (renameat2(dir, part, dir, name, RENAME_EXCHANGE) >= 0)
                return 1;
        if (renameat(dir, part, dir, name) < 0) {
                int r = -errno;

                (void) unlinkat(dir, part, 0);
                return r;
        }
        return 0;
}

/* Gives the archive its name, waits until the agent has read it, and prints its path. The previous
 * archive of that name returns if the agent cannot use this one. */
static int finish_import(const Options *options, int dir, int fd, const char *preload,
                         const char *name, Error *reterr) {
        Imported imported = { .dir = dir, .preload = preload, .name = name };
        cleanup_free char *part = text_format("%s.part", name);
        struct stat st;
        int r = part ? publish_archive(dir, fd, part, name) : -ENOMEM;

        if (r > 0)
                imported.previous = part;
        if (r >= 0 && fstat(fd, &st) < 0)
                r = -errno;
        if (r < 0)
                return error_prefixf(reterr, r, "%s/%s", preload, name);
        imported.stamp = file_stamp_of(&st);
        r = wait_until_read(options, &imported, reterr);
        if (imported.previous && is_in_place(&imported))
                (void) unlinkat(dir, imported.previous, 0);
        if (r < 0)
                return r;
        printf("%s/%s\n", preload, name);
        return 0;
}

static int open_unnamed_archive(int dir, const char *preload, Error *reterr) {
        int fd = dir < 0 ? -EBADF : openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        return fd < 0 ? error_setf(reterr, errno, "%s: %s", preload, strerror(errno)) : fd;
}

static int copy_into_preload(const Options *options, const char *file, const char *preload,
                             Error *reterr) {
        cleanup_close int dir = open(preload, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int from = open(file, O_RDONLY | O_CLOEXEC), to = -EBADF;
        const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
        int r;

        if (from < 0)
                return error_setf(reterr, errno, "%s: %s", file, strerror(errno));
        to = open_unnamed_archive(dir, preload, reterr);
        if (to < 0)
                return to;
        r = copy_to_end(from, to);
        if (r < 0)
                return error_prefixf(reterr, r, "%s/%s", preload, name);
        return finish_import(options, dir, to, preload, name, reterr);
}

/* ---- import of a root file system ---- */

/* One file per name, so that an image with the same name is replaced: '+' and '=' cannot occur in a
 * reference.
 */
static char *archive_name_of_image(const char *name) {
        char *file = text_format("%s.tar", name);

        for (char *c = file; c && *c; c++)
                if (*c == '/')
                        *c = '+';
                else if (*c == ':')
                        *c = '=';
        return file;
}

static int open_rootfs(const char *file, Error *reterr) {
        int fd = streq(file, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                  : open(file, O_RDONLY | O_NOCTTY | O_CLOEXEC);

        if (fd < 0)
                return error_setf(reterr, errno, "%s: %s", file, strerror(errno));
        if (isatty(fd)) {
                close_fd(fd);
                return error_setf(reterr, EINVAL,
                                  "%s: is a terminal; pass a tar, such as 'tar c -C DIRECTORY . | "
                                  "mainstay images import - --name NAME'",
                                  file);
        }
        return fd;
}

static int make_archive(const Options *options, const char *name, const char *file,
                        const char *store, int from, int to) {
        cleanup_strv char **words = NULL;
        int r = strv_appendf(&words, "--name=%s", name);

        for (size_t i = 0; r >= 0 && i < options->config.n; i++)
                r = strv_appendf(&words, "--config=%s", options->config.values[i]);
        if (r >= 0)
                r = strv_append(&words, "--");
        if (r >= 0)
                r = strv_append(&words, streq(file, "-") ? "standard input" : file);
        return r < 0 ? r
                     : image_helper_run(&(ImageHelperRun){ .verb = "import",
                                                           .store = store,
                                                           .words = (const char *const *) words,
                                                           .n_words = strv_length(words),
                                                           .input = from,
                                                           .output = to });
}

/* 1: mainstay-image has reported an error. */
static int import_rootfs(const Options *options, const json_t *paths, const char *name,
                         const char *file, Error *reterr) {
        const char *preload = strna(json_text(paths, "preload"));
        cleanup_close int dir = open(preload, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int from = open_rootfs(file, reterr), to = -EBADF;
        cleanup_free char *archive = archive_name_of_image(name);
        int r;

        if (from < 0)
                return from;
        if (!archive)
                return -ENOMEM;
        to = open_unnamed_archive(dir, preload, reterr);
        if (to < 0)
                return to;
        r = make_archive(options, name, file, strna(json_text(paths, "store")), from, to);
        return r != 0 ? r : finish_import(options, dir, to, preload, archive, reterr);
}

static int normalise_image_name(const char *name, char **ret, Error *reterr) {
        int r = image_reference_normalise(name, ret, reterr);

        if (r >= 0 && image_reference_digest(*ret))
                return error_setf(reterr, EINVAL,
                                  "'%s': the digest of an image cannot be chosen; use a tag", name);
        return r;
}

static int images_import_rootfs(const Options *options, const char *file) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *paths = NULL;
        cleanup_free char *name = NULL;
        int r = normalise_image_name(options->name, &name, &error);

        if (r >= 0)
                r = get_image_store_paths(options, &paths, &error);
        if (r >= 0)
                r = import_rootfs(options, paths, name, file, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        return r == 0 ? STATUS_OK : STATUS_FAILED;
}

int images_import(const Options *options, char *const *names, size_t n) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *paths = NULL;
        int status = STATUS_OK, r;

        if (options->name && n > 1)
                return fail_usage("images import --name takes one root file system");
        if (options->name)
                return images_import_rootfs(options, names[0]);
        if (options->config.n > 0)
                return fail_usage("images import --config needs --name, the name of the image");
        for (size_t i = 0; i < n; i++)
                if (streq(names[i], "-"))
                        return fail_usage("images import of standard input needs --name, and takes "
                                          "a root file system");
        r = get_image_store_paths(options, &paths, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        for (size_t i = 0; i < n; i++) {
                cleanup_error Error own = ERROR_NULL;

                r = copy_into_preload(options, names[i], strna(json_text(paths, "preload")), &own);
                if (r < 0)
                        status = fail_with_error(r, &own);
        }
        return status;
}

/* ---- export ---- */

/* ---- mainstay-image ---- */

/* The exit status of mainstay-image, or -errno. Its standard error is that of mainstay. */
static int run_image_helper(const char *verb, const char *store, const char *word,
                            const char *other, int output) {
        return image_helper_run(&(ImageHelperRun){ .verb = verb,
                                                   .store = store,
                                                   .words = (const char *[]){ word, other },
                                                   .n_words = 2,
                                                   .output = output });
}

/* The file that a command writes. A regular file has another name until it is complete, so that the
 * previous one is kept if the command fails. */
typedef struct OutputFile {
        int fd;
        char *path, *part; /* NULL: standard output, a device or a pipe */
} OutputFile;

static void output_file_done(OutputFile *output) {
        close_fd(output->fd);
        free(output->path);
        free(output->part);
}

static int open_output_part(OutputFile *output, const char *name) {
        output->path = realpath(name, NULL);
        if (!output->path)
                output->path = strdup(name);
        if (output->path)
                output->part = text_format("%s.%d.part", output->path, (int) getpid());
        if (!output->part)
                return -ENOMEM;
        output->fd = open(output->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        return 0;
}

static int open_output_file(OutputFile *output, const char *name, Error *reterr) {
        struct stat st;
        int r = 0;

        if (streq(name, "-"))
                output->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        else if (stat(name, &st) >= 0 && !S_ISREG(st.st_mode))
                output->fd = open(name, O_WRONLY | O_CLOEXEC);
        else
                r = open_output_part(output, name);
        if (r >= 0 && output->fd < 0)
                r = -errno;
        return r < 0 ? error_prefixf(reterr, r, "%s", name) : 0;
}

/* 'r' is the result of the command, and is returned unless it is 0 and the file cannot be kept. */
static int finish_output_file(const OutputFile *output, int r, Error *reterr) {
        if (!output->part || output->fd < 0)
                return r;
        if (r == 0 && (fsync(output->fd) < 0 || rename(output->part, output->path) < 0))
                r = error_prefixf(reterr, -errno, "%s", output->path);
        if (r != 0)
                (void) unlink(output->part);
        return r;
}

static int export_image(const Options *options, const char *image, const char *file,
                        Error *reterr) {
        cleanup_with(output_file_done) OutputFile output = { .fd = -EBADF };
        cleanup_json json_t *all = NULL;
        int r = get_image_store_paths(options, &all, reterr);

        if (r >= 0)
                r = open_output_file(&output, file, reterr);
        if (r >= 0)
                r = run_image_helper("export", strna(json_text(all, "store")), image, NULL,
                                     output.fd);
        return finish_output_file(&output, r, reterr);
}

int images_export(const Options *options, char *const *names, size_t n) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (n != 2)
                return fail_usage(
                        "images export needs an image and a file; '-' is standard output");
        r = export_image(options, names[0], names[1], &error);
        if (r < 0)
                return fail_with_error(r, &error);
        return r == 0 ? STATUS_OK : STATUS_FAILED;
}

/* ---- diff ---- */

/* An image or an archive, as mainstay-image distinguishes them: a path starts with '/' or '.'. 1:
 * it is an archive. */
static int qualify_input(const char *word, char **ret) {
        bool is_file = access(word, F_OK) >= 0, is_plain = word[0] != '/' && word[0] != '.';

        *ret = text_format("%s%s", is_file && is_plain ? "./" : "", word);
        if (!*ret)
                return -ENOMEM;
        return is_file;
}

static int diff_with_agent(const Options *options, const char *old, const char *new, int fd,
                           Error *reterr) {
        cleanup_json json_t *all = NULL;
        int r = get_image_store_paths(options, &all, reterr);

        return r < 0 ? r : run_image_helper("diff", strna(json_text(all, "store")), old, new, fd);
}

/* Two archives need no agent, only a directory for the layers while they are compared. */
static int diff_archives(const char *old, const char *new, int fd, Error *reterr) {
        char directory[] = "/var/tmp/mainstay-diff-XXXXXX";
        int r;

        if (!mkdtemp(directory))
                return error_setf(reterr, errno, "%s: %s", directory, strerror(errno));
        r = run_image_helper("diff", directory, old, new, fd);
        (void) remove_tree_at(AT_FDCWD, directory);
        return r;
}

static int diff_images(const Options *options, char *const *names, Error *reterr) {
        cleanup_with(output_file_done) OutputFile output = { .fd = -EBADF };
        cleanup_free char *from = NULL, *to = NULL;
        int from_file = qualify_input(names[0], &from), to_file = qualify_input(names[1], &to);
        int r = from_file < 0 || to_file < 0 ? -ENOMEM : 0;

        if (r >= 0)
                r = open_output_file(&output, names[2], reterr);
        if (r >= 0)
                r = from_file && to_file ? diff_archives(from, to, output.fd, reterr)
                                         : diff_with_agent(options, from, to, output.fd, reterr);
        return finish_output_file(&output, r, reterr);
}

int images_diff(const Options *options, char *const *names, size_t n) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (n != 3)
                return fail_usage("images diff needs two images or archives and a file; '-' is "
                                  "standard output");
        r = diff_images(options, names, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        return r == 0 ? STATUS_OK : STATUS_FAILED;
}

/* ---- verify, repair ---- */

/* The blobs of the store are compared with their digests, and images from archives with their
 * archives. Each check prints its own errors. */
static int verify_images(const json_t *all, bool repairs, Error *reterr) {
        const char *store = strna(json_text(all, "store")), *repair = repairs ? "--repair" : NULL;
        cleanup_strv char **archives = NULL;
        const json_t *image;
        size_t i;
        int r = run_image_helper("verify", store, repair, NULL, STDOUT_FILENO);

        json_array_foreach(json_object_get(all, "images"), i, image) {
                const char *archive = json_text(image, "archive");
                cleanup_free char *path = NULL;
                int q;

                if (r < 0)
                        return r;
                if (!archive || strv_contains(archives, archive))
                        continue;
                path = path_join(strna(json_text(all, "preload")), archive);
                if (!path || strv_append(&archives, archive) < 0)
                        return -ENOMEM;
                q = run_image_helper("verify", store, path, repair, STDOUT_FILENO);
                r = q != 0 ? q : r;
        }
        return r;
}

static int verify_image_store(const Options *options, bool repairs) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *all = NULL;
        int r;

        r = get_image_store_paths(options, &all, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = verify_images(all, repairs, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        if (r == 0)
                puts("all images are sound");
        return r == 0 ? STATUS_OK : STATUS_FAILED;
}

int images_verify(const Options *options, char *const *names, size_t n) {
        return verify_image_store(options, false);
}

int images_repair(const Options *options, char *const *names, size_t n) {
        return verify_image_store(options, true);
}
