/* SPDX-License-Identifier: Apache-2.0 */

/* mainstay-image: reads image archives and communicates with registries and sources of manifests on
 * behalf of the agent, which must not parse untrusted bytes. Runs for one command and exits. Errors
 * are one message on standard error and exit status 1, or EX_TEMPFAIL if a retry may succeed. */

#include "agent/image-helper/delta/delta-make.h"
#include "agent/image-helper/import/rootfs-import.h"
#include "agent/image-helper/process/image-confine.h"
#include "agent/image-helper/process/safe-message.h"
#include "agent/image-helper/pull/platform.h"
#include "agent/image-helper/pull/pull.h"
#include "agent/image-helper/signature/signature-gate.h"
#include "agent/image-helper/source/image-collect.h"
#include "agent/image-helper/source/image-fetch.h"
#include "agent/image-helper/source/report-sender.h"
#include "agent/image-helper/source/source-update.h"
#include "agent/image-helper/store/complete-records.h"
#include "agent/image-helper/store/store-export.h"
#include "agent/image-helper/store/store-remove.h"
#include "agent/image-helper/unpack/layer-verify.h"
#include "agent/image-helper/unpack/unpack.h"
#include "common/cleanup.h"
#include "common/strv.h"

#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <sys/stat.h>
#include <sysexits.h>

static const char usage[] =
        "Usage: mainstay-image VERB [OPTION]…\n"
        "\n"
        "  index --store DIR ARCHIVE     list the images of an archive as JSON\n"
        "  unpack --store DIR --digest sha256:… [--name REFERENCE]… ARCHIVE\n"
        "                                unpack one image of an archive into the store; the\n"
        "                                signature policy is read from standard input\n"
        "  pull --store DIR REFERENCE    pull an image; settings are read from standard input\n"
        "  fetch --store DIR --digest sha256:… REFERENCE\n"
        "                                fetch an image that a signed index names; settings are "
        "read "
        "from\n"
        "                                standard input\n"
        "  collect --store DIR [--platform PLATFORM] REFERENCE [ARCHIVE | DIRECTORY]\n"
        "                                copy an image for a signed index into the store, from a\n"
        "                                registry or an OCI layout; settings are read from "
        "standard\n"
        "                                input\n"
        "  delta --store DIR [--platform PLATFORM] OLD NEW\n"
        "                                add a delta between two images of such a store to it\n"
        "  signatures --store DIR --digest sha256:… REFERENCE\n"
        "                                check the signatures of an image in the store; settings "
        "are\n"
        "                                read from standard input\n"
        "  remove --store DIR [--name DIGEST]…\n"
        "                                remove images, and layers that no image needs\n"
        "  import --store DIR --name NAME [--config CHANGE]… INPUT\n"
        "                                make an image archive, which is written to standard "
        "output, of the\n"
        "                                root file system in the tar on standard input, which "
        "messages call\n"
        "                                INPUT\n"
        "  export --store DIR NAME       write an image to standard output, as an OCI archive\n"
        "  diff --store DIR OLD NEW      write a delta between two images to standard output; each "
        "is an\n"
        "                                image of the store, or a path that starts with '/' or "
        "'.'\n"
        "  verify --store DIR [--repair] [ARCHIVE]\n"
        "                                compare images with the store's blobs, or with ARCHIVE;\n"
        "                                --repair restores damaged files\n"
        "  sweep --store DIR             remove unfinished downloads and layers, and complete the\n"
        "                                records of earlier versions\n"
        "  source --store DIR            fetch new manifests of a source; settings are read from\n"
        "                                standard input\n"
        "  report                        send a report, which is read from standard input with its "
        "settings\n"
        "\n"
        "  --help  --version\n";

static const char *arg_store, *arg_digest, *arg_archive, *arg_other, *arg_platform;
static char **arg_names, **arg_changes;
static bool arg_repair;

/* A link is followed, but only a regular file is read. */
static int open_archive(const char *path, Error *reterr) {
        cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return error_setf(reterr, errno, "cannot be opened: %s", strerror(errno));
        if (!S_ISREG(st.st_mode))
                return error_setf(reterr, EINVAL, "is not a regular file");
        return TAKE_FD(fd);
}

static int open_named_archive(const char *path, Error *reterr) {
        int fd = open_archive(path, reterr);

        return fd < 0 ? error_prefixf(reterr, fd, "%s", path) : fd;
}

static int open_catalog(int fd, Store *store, ImageArchive **ret_source, Catalog **ret,
                        Error *reterr) {
        int r = image_archive_open(fd, store_tmp_fd(store), ret_source, reterr);

        return r < 0 ? r : catalog_read(*ret_source, store, ret, reterr);
}

static int unpack_chosen(const ImageArchive *archive, Catalog *catalog,
                         const PullSettings *settings, Store *store, Error *reterr) {
        const CatalogImage *image = catalog_find(catalog, arg_digest);
        ImageProvider source = catalog_image_provider(catalog);
        int r;

        if (!image)
                return error_setf(reterr, ENOENT, "does not contain image %s", arg_digest);
        if (image->refusal)
                return error_setf(reterr, ENOEXEC, "%s", image->refusal);
        r = signature_gate_pass_archived(settings, image, archive, store, reterr);
        if (r < 0)
                return r;
        catalog->chosen = image;
        return unpack_image(image, &source, NULL, store, arg_names, reterr);
}

/* Unpacks the requested archive, with settings; or lists all. */
static int read_archive(Store *store, const PullSettings *unpacking, Error *reterr) {
        cleanup_with(image_archive_freep) ImageArchive *source = NULL;
        cleanup_with(catalog_freep) Catalog *catalog = NULL;
        cleanup_close int fd = open_archive(arg_archive, reterr);
        int r;

        if (fd < 0)
                return fd;
        r = confine_parser(unpacking != NULL, store_fd(store), reterr);
        if (r < 0)
                return r;
        r = open_catalog(fd, store, &source, &catalog, reterr);
        if (r < 0)
                return r;
        return unpacking ? unpack_chosen(source, catalog, unpacking, store, reterr)
                         : catalog_print(catalog, reterr);
}

static int verb_index(Store *store, Error *reterr) {
        return read_archive(store, NULL, reterr);
}

static int verb_unpack(Store *store, Error *reterr) {
        cleanup_with(pull_settings_done) PullSettings settings = { 0 };
        int r = pull_settings_read(STDIN_FILENO, &settings, reterr);

        return r < 0 ? r : read_archive(store, &settings, reterr);
}

static int verb_signatures(Store *store, Error *reterr) {
        cleanup_with(pull_settings_done) PullSettings settings = { 0 };
        int r = pull_settings_read(STDIN_FILENO, &settings, reterr);

        return r < 0 ? r
                     : signature_gate_check_stored(arg_archive, arg_digest, &settings, store,
                                                   reterr);
}

static int verb_pull(Store *store, Error *reterr) {
        cleanup_with(pull_settings_done) PullSettings settings = { 0 };
        int r = pull_settings_read(STDIN_FILENO, &settings, reterr);

        return r < 0 ? r : pull_image(arg_archive, &settings, store, reterr);
}

static int verb_fetch(Store *store, Error *reterr) {
        cleanup_with(pull_settings_done) PullSettings settings = { 0 };
        int r = pull_settings_read(STDIN_FILENO, &settings, reterr);

        return r < 0 ? r : fetch_image(arg_archive, arg_digest, &settings, store, reterr);
}

static int open_collection(const char *path, Error *reterr) {
        cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return error_setf(reterr, errno == ENOENT ? ENOTDIR : errno, "%s: %s", path,
                                  strerror(errno));
        if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
                return error_setf(reterr, EINVAL, "%s is neither an archive nor a directory", path);
        return TAKE_FD(fd);
}

static int verb_collect(Store *store, Error *reterr) {
        cleanup_with(pull_settings_done) PullSettings settings = { 0 };
        cleanup_close int from = -EBADF;
        int r = pull_settings_read(STDIN_FILENO, &settings, reterr);

        if (r >= 0 && arg_other)
                r = from = open_collection(arg_other, reterr);
        return r < 0 ? r : collect_image(arg_archive, from, &settings, store, reterr);
}

static int verb_delta(Store *store, Error *reterr) {
        return collect_delta(arg_archive, arg_other, store, reterr);
}

/* The images are selected by digest, each with --name. */
static int verb_remove(Store *store, Error *reterr) {
        int r;

        strv_foreach(digest, arg_names)
                if (!digest_is_valid(*digest))
                        return error_setf(reterr, EINVAL, "'%s' is not a digest", *digest);
        r = confine_parser(true, store_fd(store), reterr);
        return r < 0 ? r : store_remove_images(store, arg_names, reterr);
}

static int verb_export(Store *store, Error *reterr) {
        int r = confine_parser(false, store_fd(store), reterr);

        return r < 0 ? r : store_export(store, arg_archive, STDOUT_FILENO, reterr);
}

static int verb_import(Store *store, Error *reterr) {
        RootfsImport import = { .name = arg_names ? arg_names[0] : NULL,
                                .changes = arg_changes,
                                .from = STDIN_FILENO,
                                .to = STDOUT_FILENO };
        int r;

        if (!import.name)
                return error_setf(reterr, EINVAL, "--name is required");
        r = confine_parser(false, store_fd(store), reterr);
        if (r >= 0)
                r = rootfs_import(&import, reterr);
        return r < 0 ? error_prefixf(reterr, r, "%s", arg_archive) : 0;
}

static bool is_archive_path(const char *word) {
        return word[0] == '/' || word[0] == '.';
}

static int verb_diff(Store *store, Error *reterr) {
        cleanup_close int old = -EBADF, new = -EBADF;
        int r;

        if (is_archive_path(arg_archive)) {
                old = open_named_archive(arg_archive, reterr);
                if (old < 0)
                        return old;
        }
        if (is_archive_path(arg_other)) {
                new = open_named_archive(arg_other, reterr);
                if (new < 0)
                        return new;
        }
        r = confine_parser(false, store_fd(store), reterr);
        if (r < 0)
                return r;
        return delta_make(store, &(DeltaInput){ arg_archive, old }, &(DeltaInput){ arg_other, new },
                          STDOUT_FILENO, reterr);
}

static int check_archive(LayerVerification *check, int fd, Store *store, Error *reterr) {
        cleanup_with(image_archive_freep) ImageArchive *source = NULL;
        cleanup_with(catalog_freep) Catalog *catalog = NULL;
        ImageProvider images;
        int r = open_catalog(fd, store, &source, &catalog, reterr);

        if (r < 0)
                return r;
        images = catalog_image_provider(catalog);
        for (size_t i = 0; i < catalog->n_images; i++) {
                catalog->chosen = &catalog->images[i];
                r = verify_image_layers(check, catalog->chosen, &images, store, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int check_blobs(LayerVerification *check, Store *store, Error *reterr) {
        int r = store_verify_blobs(store, reterr);

        if (r < 0)
                return r;
        check->faults += (unsigned) r;
        return verify_store_layers(check, store, reterr);
}

static int verb_verify(Store *store, Error *reterr) {
        cleanup_with(layer_verification_done) LayerVerification check = { .repairs = arg_repair };
        cleanup_close int fd = arg_archive ? open_archive(arg_archive, reterr) : -EBADF;
        int r = arg_archive && fd < 0 ? fd : confine_parser(true, store_fd(store), reterr);

        if (r < 0)
                return r;
        r = arg_archive ? check_archive(&check, fd, store, reterr)
                        : check_blobs(&check, store, reterr);
        if (r < 0)
                return r;
        if (check.faults > 0)
                return error_setf(reterr, EBADMSG, "%u faults", check.faults);
        return 0;
}

static int verb_sweep(Store *store, Error *reterr) {
        int r = confine_parser(true, store_fd(store), reterr);

        if (r < 0)
                return r;
        r = complete_records(store, reterr);
        if (r < 0)
                return r;
        store_remove_stale_work(store);
        r = store_sweep_downloads(store);
        return r < 0 ? error_prefixf(reterr, r, "image store") : 0;
}

static const struct {
        const char *name;
        int (*run)(Store *store, Error *reterr);
        int words_min, words_max;
        bool needs_digest;
} verbs[] = {
        { "index", verb_index, 1, 1 },
        { "unpack", verb_unpack, 1, 1, true },
        { "pull", verb_pull, 1, 1 },
        { "fetch", verb_fetch, 1, 1, true },
        { "collect", verb_collect, 1, 2 },
        { "delta", verb_delta, 2, 2 },
        { "remove", verb_remove, 0, 0 },
        { "import", verb_import, 1, 1 },
        { "export", verb_export, 1, 1 },
        { "diff", verb_diff, 2, 2 },
        { "verify", verb_verify, 0, 1 },
        { "sweep", verb_sweep, 0, 0 },
        { "signatures", verb_signatures, 1, 1, true },
};

static int usage_error(const char *what) {
        (void) fprintf(stderr, "mainstay-image: %s\nTry 'mainstay-image --help'\n", what);
        return 2;
}

/* Returns the exit status, or -1 to continue. */
static int parse_image_arguments(int argc, char **argv) {
        static const struct option options[] = {
                { "store", required_argument, NULL, 's' },
                { "digest", required_argument, NULL, 'd' },
                { "name", required_argument, NULL, 'n' },
                { "config", required_argument, NULL, 'c' },
                { "platform", required_argument, NULL, 'p' },
                { "repair", no_argument, NULL, 'r' },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'V' },
                { NULL },
        };
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (c) {
                case 's':
                        arg_store = optarg;
                        break;
                case 'd':
                        arg_digest = optarg;
                        break;
                case 'n':
                        if (strv_append(&arg_names, optarg) < 0)
                                return 1;
                        break;
                case 'c':
                        if (strv_append(&arg_changes, optarg) < 0)
                                return 1;
                        break;
                case 'p':
                        arg_platform = optarg;
                        break;
                case 'r':
                        arg_repair = true;
                        break;
                case 'h':
                        (void) fputs(usage, stdout);
                        return 0;
                case 'V':
                        (void) puts("mainstay-image " MAINSTAY_VERSION);
                        return 0;
                default:
                        return 2;
                }
        return -1;
}

/* EX_TEMPFAIL if the error is caused by the machine, so that a retry may succeed. */
static int exit_status_of_error(int r) {
        static const int passing[] = { ENOMEM, ENOSPC, EDQUOT, EMFILE, ENFILE, EIO, EROFS };

        for (size_t i = 0; i < N_ELEMENTS(passing); i++)
                if (r == -passing[i])
                        return EX_TEMPFAIL;
        return r < 0;
}

/* The exit status. */
static int report_outcome(int r, const Error *error) {
        if (r < 0) {
                cleanup_free char *message = format_safe_message(error, r);

                (void) fprintf(stderr, "%s\n", message ? message : strerror(-r));
        }
        return exit_status_of_error(r);
}

/* The directory belongs to a source, not to an image store. Returns the exit status. */
static int verb_source(void) {
        cleanup_with(source_settings_done) SourceSettings settings = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = source_settings_read(STDIN_FILENO, &settings, &error), status;

        if (r >= 0)
                r = update_source(arg_store, &settings, &error);
        status = report_outcome(r, &error);
        if (r == -ENOMEDIUM)
                return EX_NOINPUT;
        return r == -EAGAIN ? EX_TEMPFAIL : status;
}

static int run_report(void) {
        cleanup_with(source_settings_done) SourceSettings settings = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = source_settings_read(STDIN_FILENO, &settings, &error), status;

        if (r >= 0)
                r = deliver_report(&settings, &error);
        status = report_outcome(r, &error);
        return r == -ENOMEDIUM ? EX_NOINPUT : status;
}

/* The process is confined now, and the exit handlers of libraries may not be permitted. */
static _Noreturn void verb_report(void) {
        _exit(run_report());
}

static int run_image_verb(int argc, char **argv) {
        cleanup_with(store_freep) Store *store = NULL;
        cleanup_error Error error = ERROR_NULL;
        const char *verb = optind < argc ? argv[optind++] : "";
        size_t i = 0;
        int n, r;

        if (streq(verb, "source") && arg_store && optind == argc)
                return verb_source();
        if (streq(verb, "report") && optind == argc)
                verb_report();
        while (i < N_ELEMENTS(verbs) && !streq(verb, verbs[i].name))
                i++;
        if (i == N_ELEMENTS(verbs))
                return usage_error("unknown verb; see --help");
        n = argc - optind;
        if (!arg_store || n < verbs[i].words_min || n > verbs[i].words_max)
                return usage_error("--store and the arguments of the verb are required");
        if (verbs[i].needs_digest && (!arg_digest || !digest_is_valid(arg_digest)))
                return usage_error("--digest must be 'sha256:' and 64 lower-case hex digits");
        arg_archive = argv[optind];
        arg_other = n > 1 ? argv[optind + 1] : NULL;

        r = arg_platform ? platform_choose(arg_platform, &error) : 0;
        if (r >= 0)
                r = store_open(arg_store, &store, &error);
        if (r >= 0)
                r = verbs[i].run(store, &error);
        n = report_outcome(r, &error);
        if (r == -ENOENT && streq(verb, "collect"))
                return EX_NOINPUT;
        /* The next run creates another store. */
        return r < 0 && store_is_removed(store) ? EX_TEMPFAIL : n;
}

int main(int argc, char **argv) {
        int status;

        confine_process();
        (void) umask(0);
        /* Names are plain bytes here, and libarchive returns them unchanged only in this locale. */
        (void) setlocale(LC_CTYPE, "C.UTF-8");
        status = parse_image_arguments(argc, argv);
        if (status < 0)
                status = run_image_verb(argc, argv);
        arg_names = strv_free(arg_names);
        arg_changes = strv_free(arg_changes);
        return status;
}
