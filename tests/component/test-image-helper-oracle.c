/* SPDX-License-Identifier: Apache-2.0 */

/* Random layers are unpacked by umoci into one tree, and by mainstay-image into layer directories
 * that overlayfs then merges: both must look the same to a container. UNPACK_SEED selects a single
 * seed. */

#include "tests/component/image-world.h"

#include <fts.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/mount.h>

enum {
        LAYERS = 3,
        ENTRIES = 4,
        ROUNDS = 40
};

static uint64_t random_state;

static unsigned random_below(unsigned n) {
        random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (unsigned) (random_state >> 33) % n;
}

/* A path of one to three components, in memory that is kept until the test ends. */
static char *pick_path(const char *prefix, const char *base) {
        static char paths[LAYERS * ENTRIES * 4][64];
        static size_t at;
        char *path = paths[at++ % N_ELEMENTS(paths)];
        const char letters[] = { (char) ('a' + random_below(4)), '/',
                                 (char) ('a' + random_below(4)), '/', '\0' };
        char own[2] = { (char) ('a' + random_below(4)), '\0' };

        (void) snprintf(path, sizeof(paths[0]), "%s%s%s", &letters[2 * (size_t) random_below(3)],
                        prefix, base ? base : own);
        return path;
}

/* Most links refer to an existing name; otherwise nearly every image would be refused. */
static const char *files[LAYERS * ENTRIES];
static size_t n_files;

static const char *pick_file(void) {
        return n_files > 0 && random_below(8) > 0 ? files[random_below((unsigned) n_files)]
                                                  : pick_path("", NULL);
}

static TarEntry pick_entry(void) {
        static const char *const targets[] = { "d", "/d", "../d", "a/d", "/b/d", "/a", "d/.." };
        TarEntry entry = { .mode = 0600 + random_below(64),
                           .uid = random_below(3),
                           .mtime = 1000 + random_below(1000) };

        switch (random_below(11)) {
        case 0:
        case 1:
        case 2:
                entry.name = files[n_files++] = pick_path("", NULL);
                entry.data = (const char *[]){ "one", "two", "three" }[random_below(3)];
                break;
        case 3:
        case 4:
        case 9:
                entry.name = pick_path("", NULL);
                entry.type = '5';
                entry.mode |= 0100;
                break;
        case 5:
                entry.name = pick_path("", NULL);
                entry.type = '2';
                entry.link = targets[random_below(N_ELEMENTS(targets))];
                break;
        case 6:
                entry.name = pick_path("", NULL);
                entry.type = '1';
                entry.link = pick_file();
                break;
        case 7:
        case 10:
                entry.name = pick_path(".wh.", NULL);
                break;
        default:
                entry.name = pick_path("", ".wh..wh..opq");
                break;
        }
        return entry;
}

static const char *describe_file(const FTSENT *entry) {
        static char text[256];
        const struct stat *st = entry->fts_statp;
        char data[128] = "";

        if (S_ISLNK(st->st_mode)) {
                ssize_t n = readlink(entry->fts_accpath, data, sizeof(data) - 1);
                data[MAX(n, 0)] = '\0';
        } else if (S_ISREG(st->st_mode)) {
                cleanup_free char *content = NULL;

                REQUIRE(read_file_at(AT_FDCWD, entry->fts_accpath, 100, &content, NULL) >= 0);
                (void) snprintf(data, sizeof(data), "%s", content);
        }
        (void) snprintf(text, sizeof(text), "%06o %u:%u %" PRId64 " '%s'", st->st_mode, st->st_uid,
                        st->st_gid, S_ISDIR(st->st_mode) ? 0 : (int64_t) st->st_mtim.tv_sec, data);
        return text;
}

static int compare_fts_names(const FTSENT **a, const FTSENT **b) {
        return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* The contents of a tree, one line per entry. */
static char *describe_tree(const char *root) {
        char *const roots[] = { (char *) (uintptr_t) root, NULL };
        FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, compare_fts_names);
        char *text = strdup("");
        FTSENT *entry;

        REQUIRE(fts);
        while ((entry = fts_read(fts)))
                if (entry->fts_info != FTS_DP)
                        append_text(&text, "%s %s\n", entry->fts_path + strlen(root),
                                    describe_file(entry));
        fts_close(fts);
        return text;
}

static char *describe_layers(const TarEntry layers[LAYERS][ENTRIES + 1]) {
        char *text = strdup("");

        for (size_t i = 0; i < LAYERS; i++) {
                append_text(&text, "layer %zu:\n", i);
                for (const TarEntry *entry = layers[i]; entry->name; entry++)
                        append_text(&text, "  %c %s %s%s\n", entry->type ? entry->type : '0',
                                    entry->name, entry->link ? "-> " : "",
                                    entry->link ? entry->link : strna(entry->data));
        }
        return text;
}

static bool unpack_by_umoci(const char *archive, char error[HELPER_TEXT_MAX]) {
        cleanup_free char *layout = in_test_directory("layout"), *image = NULL;
        cleanup_free char *bundle = in_test_directory("bundle");
        int status;

        REQUIRE(mkdir(layout, 0755) >= 0);
        REQUIRE(asprintf(&image, "%s:test", layout) > 0);
        REQUIRE(run_program((char *[]){ (char[]){ "tar" }, (char[]){ "-C" }, layout,
                                        (char[]){ "-xf" }, (char *) (uintptr_t) archive, NULL },
                            NULL, NULL) == 0);
        status = run_program((char *[]){ (char[]){ "umoci" }, (char[]){ "unpack" },
                                         (char[]){ "--image" }, image, bundle, NULL },
                             NULL, error);
        return status == 0;
}

static char *overlay_options(const char *store, const char *digest) {
        cleanup_free char *path = NULL, *record = NULL;
        char *options = strdup("lowerdir="), *p, *end;

        REQUIRE(asprintf(&path, "%s/records/%s.json", store, digest + 7) > 0);
        REQUIRE(read_file_at(AT_FDCWD, path, MIB, &record, NULL) >= 0);
        p = strstr(record, "\"layers\":[");
        REQUIRE(p);
        end = strchr(p, ']');
        for (p = strchr(p, '[') + 1; p < end; p += 67)
                append_text(&options, "%s%s/layers/%.64s", options[9] ? ":" : "", store, p + 1);
        /* A single layer is not an overlay, so an empty directory is added at the bottom. */
        append_text(&options, ":%s/empty", test_directory());
        return options;
}

/* Whether the image could be unpacked. */
static bool compare_with_oracle(uint64_t seed) {
        cleanup_free char *archive = in_test_directory("image.tar"), *what = NULL;
        cleanup_free char *store = in_test_directory("store"),
                          *merged = in_test_directory("merged");
        cleanup_free char *rootfs = in_test_directory("bundle/rootfs");
        cleanup_free char *empty = in_test_directory("empty");
        TarEntry entries[LAYERS][ENTRIES + 1] = { 0 };
        char error[HELPER_TEXT_MAX], umoci_error[HELPER_TEXT_MAX], digest[80], option[100];
        Tar layers[LAYERS];
        bool theirs, ours;

        random_state = seed;
        n_files = 0;
        for (size_t i = 0; i < LAYERS; i++) {
                for (size_t j = 0; j < ENTRIES; j++)
                        entries[i][j] = pick_entry();
                layers[i] = tar_of(entries[i]);
        }
        what = describe_layers(entries);
        write_oci_archive(archive,
                          &(TestImage){ .name = "test", .layers = layers, .n_layers = LAYERS },
                          digest);
        for (size_t i = 0; i < LAYERS; i++)
                tar_done(&layers[i]);
        theirs = unpack_by_umoci(archive, umoci_error);
        (void) snprintf(option, sizeof(option), "--digest=%s", digest);
        ours = run_program((char *[]){ helper_path(), (char[]){ "unpack" }, (char[]){ "--store" },
                                       store, option, archive, NULL },
                           NULL, error) == 0;
        if (theirs != ours) {
                test_fail(__FILE__, __LINE__, "an image", "of seed %" PRIu64 " is %s: %s%s\n%s",
                          seed, ours ? "taken" : "refused", ours ? "" : error,
                          ours ? umoci_error : "", what);
        } else if (ours) {
                cleanup_free char *options = overlay_options(store, digest);
                cleanup_free char *our_tree = NULL, *their_tree = NULL;

                REQUIRE(mkdir(merged, 0755) >= 0 && mkdir(empty, 0755) >= 0);
                REQUIRE(mount("overlay", merged, "overlay", MS_RDONLY, options) >= 0);
                our_tree = describe_tree(merged);
                REQUIRE(umount2(merged, MNT_DETACH) >= 0);
                their_tree = describe_tree(rootfs);
                if (!streq(our_tree, their_tree))
                        test_fail(__FILE__, __LINE__, "an image",
                                  "of seed %" PRIu64 " differs\n%sours:\n%stheirs:\n%s", seed, what,
                                  our_tree, their_tree);
        }
        for (size_t i = 0; i < 6; i++) {
                static const char *const leftovers[] = { "layout", "bundle", "store",
                                                         "merged", "empty",  "image.tar" };

                cleanup_free char *path = in_test_directory(leftovers[i]);
                REQUIRE(remove_tree_at(AT_FDCWD, path) >= 0);
        }
        return ours;
}

TEST(unpacked_layers_equal_the_result_of_umoci)
{
        const char *seed = getenv("UNPACK_SEED");
        unsigned n_taken = 0;

        REQUIRE(unshare(CLONE_NEWNS) >= 0);
        REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) >= 0);
        if (seed) {
                (void) compare_with_oracle(strtoull(seed, NULL, 10));
                return;
        }
        for (uint64_t i = 0; i < ROUNDS; i++)
                n_taken += compare_with_oracle(i);
        /* Otherwise nothing was compared. */
        EXPECT(n_taken >= ROUNDS / 8);
}
