/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Image archives for tests, built byte by byte, so that they can be invalid in any way: tars with
 * any names, types and links, and the OCI documents around them. */

#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/strv.h"
#include "tests/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define maybe_unused __attribute__((unused))

enum {
        TAR_BLOCK = 512,
        HELPER_TEXT_MAX = 16 * 1024
};

/* A growing tar. */
typedef struct Tar {
        char *data;
        size_t length;
} Tar;

typedef struct TarEntry {
        const char *name;
        char type; /* '\0' is a regular file, as '0' */
        const char *link;
        unsigned mode; /* 0: 0644, or 0755 for directories */
        unsigned uid, gid;
        uint64_t mtime; /* 0: 1000000000 */
        const char *data;
        size_t size; /* 0: the length of 'data' */
        unsigned major, minor;
        const char *pax; /* "key=value", several with newlines between them, or NULL */
        uint64_t lie;    /* a size to claim instead */
} TarEntry;

static inline void tar_append(Tar *tar, const void *data, size_t length) {
        size_t padded = (length + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;

        tar->data = realloc(tar->data, tar->length + padded + 1);
        REQUIRE(tar->data);
        memset(tar->data + tar->length, 0, padded);
        if (length > 0)
                memcpy(tar->data + tar->length, data, length);
        tar->length += padded;
}

/* Writes an octal number of 'width' digits; the high digits of a number that does not fit are
 * cut. */
static inline void tar_octal(char *at, unsigned width, uint64_t value) {
        while (width-- > 0) {
                at[width] = (char) ('0' + (value & 7));
                value >>= 3;
        }
}

static inline void tar_header(Tar *tar, const TarEntry *entry, char type, uint64_t size) {
        char header[TAR_BLOCK] = { 0 };
        unsigned sum = 8 * ' ';
        unsigned mode = entry->mode ? entry->mode : type == '5' ? 0755 : 0644;

        memcpy(header, entry->name, MIN(strlen(entry->name), (size_t) 100));
        tar_octal(header + 100, 7, mode);
        tar_octal(header + 108, 7, entry->uid);
        tar_octal(header + 116, 7, entry->gid);
        tar_octal(header + 124, 11, size);
        tar_octal(header + 136, 11, entry->mtime ? entry->mtime : 1000000000);
        header[156] = type;
        if (entry->link)
                memcpy(header + 157, entry->link, MIN(strlen(entry->link), (size_t) 100));
        memcpy(header + 257, "ustar\00000", 8);
        tar_octal(header + 329, 7, entry->major);
        tar_octal(header + 337, 7, entry->minor);
        for (size_t i = 0; i < sizeof(header); i++)
                sum += (unsigned char) header[i];
        tar_octal(header + 148, 6, sum);
        header[154] = '\0';
        tar_append(tar, header, sizeof(header));
}

/* One record of a pax header, whose length includes its own digits. */
static inline char *pax_record(const char *record, size_t n) {
        size_t length = n + 3;
        char *text = NULL;

        for (;;) {
                int printed;

                free(text);
                printed = asprintf(&text, "%zu %.*s\n", length, (int) n, record);
                REQUIRE(printed > 0);
                if ((size_t) printed == length)
                        return text;
                length = (size_t) printed;
        }
}

/* Records with a newline between them. */
static inline void tar_pax(Tar *tar, const char *records) {
        cleanup_free char *whole = strdup("");

        for (const char *p = records; *p; p += *p == '\n') {
                cleanup_free char *record = pax_record(p, strcspn(p, "\n")), *before = whole;

                REQUIRE(asprintf(&whole, "%s%s", before, record) > 0);
                p += strcspn(p, "\n");
        }
        tar_header(tar, &(TarEntry){ .name = "PaxHeaders/x" }, 'x', strlen(whole));
        tar_append(tar, whole, strlen(whole));
}

static inline void tar_add(Tar *tar, const TarEntry *entry) {
        size_t size = entry->size ? entry->size : entry->data ? strlen(entry->data) : 0;
        char type = '0';

        if (entry->type)
                type = entry->type;
        if (entry->pax)
                tar_pax(tar, entry->pax);
        tar_header(tar, entry, type, entry->lie ? entry->lie : size);
        if (entry->data)
                tar_append(tar, entry->data, size);
}

static inline void tar_end(Tar *tar) {
        static const char zeros[2 * TAR_BLOCK];

        tar_append(tar, zeros, sizeof(zeros));
}

static inline void tar_done(Tar *tar) {
        free(tar->data);
        *tar = (Tar){ 0 };
}

/* A tar of all entries; an entry without a name ends the list. */
static inline Tar tar_of(const TarEntry *entries) {
        Tar tar = { 0 };

        for (; entries->name; entries++)
                tar_add(&tar, entries);
        tar_end(&tar);
        return tar;
}

static inline void write_file(const char *path, const void *data, size_t length) {
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        REQUIRE(fd >= 0);
        REQUIRE(write_all(fd, data, length) >= 0);
}

/* "<test directory>/<name>", in memory that is kept until the program ends. */
static inline char *in_test_directory(const char *name) {
        char *path = path_join(test_directory(), name);

        REQUIRE(path);
        return path;
}

/* Runs a program to its end and keeps its output. Returns the exit status, or 128 + signal. */
static maybe_unused int run_program(char *const *argv, char output[HELPER_TEXT_MAX],
                                    char error[HELPER_TEXT_MAX]) {
        char *const files[] = { in_test_directory("stdout"), in_test_directory("stderr") };
        char *const texts[] = { output, error };
        posix_spawn_file_actions_t actions;
        pid_t pid;
        int status;

        REQUIRE(posix_spawn_file_actions_init(&actions) == 0);
        REQUIRE(posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) == 0);
        for (int i = 0; i < 2; i++)
                REQUIRE(posix_spawn_file_actions_addopen(&actions, i + 1, files[i],
                                                         O_WRONLY | O_CREAT | O_TRUNC, 0600) == 0);
        REQUIRE(posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) == 0);
        posix_spawn_file_actions_destroy(&actions);
        REQUIRE(waitpid(pid, &status, 0) == pid);
        for (int i = 0; i < 2; i++) {
                cleanup_free char *text = NULL;

                REQUIRE(read_file_at(AT_FDCWD, files[i], MIB, &text, NULL) >= 0);
                if (texts[i])
                        (void) snprintf(texts[i], HELPER_TEXT_MAX, "%s", text);
                (void) unlink(files[i]);
                free(files[i]);
        }
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static inline char *helper_path(void) {
        static char path[] = BUILD_DIR "/agent/mainstay-image";

        return path;
}

/* An OCI layout under construction: blobs by their digests. */
typedef struct Layout {
        Tar tar;
        char last[80];      /* digest of the blob that was added last */
        size_t last_length; /* and its length */
} Layout;

static inline void digest_text(const void *data, size_t length, char ret[80]) {
        memcpy(ret, "sha256:", 7);
        sha256_hex(data, length, ret + 7);
}

static inline void layout_add(Layout *layout, const void *data, size_t length) {
        cleanup_free char *name = NULL;

        digest_text(data, length, layout->last);
        layout->last_length = length;
        REQUIRE(asprintf(&name, "blobs/sha256/%s", layout->last + 7) > 0);
        tar_add(&layout->tar, &(TarEntry){ .name = name, .data = data, .size = length });
}

/* Appends formatted text to a growing string. */
static inline void append_text(char **text, const char *format, ...) printf_like(2, 3);
static inline void append_text(char **text, const char *format, ...) {
        cleanup_free char *more = NULL;
        char *whole;
        va_list ap;

        va_start(ap, format);
        REQUIRE(vasprintf(&more, format, ap) >= 0);
        va_end(ap);
        REQUIRE(asprintf(&whole, "%s%s", *text ? *text : "", more) >= 0);
        free(*text);
        *text = whole;
}

/* The contents of an archive. */
typedef struct TestImage {
        const char *name;  /* NULL: none */
        const Tar *layers; /* lowest first */
        size_t n_layers;
        const char *process; /* the "config" of the configuration; NULL: {} */
        const char *architecture;
} TestImage;

static inline const char *test_architecture(void) {
#if defined(__x86_64__)
        return "amd64";
#elif defined(__aarch64__)
        return "arm64";
#else
        return "386";
#endif
}

static inline char *test_config(const TestImage *image) {
        char *text = NULL;

        append_text(&text,
                    "{\"os\":\"linux\",\"architecture\":\"%s\",\"config\":%s,"
                    "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[",
                    image->architecture ? image->architecture : test_architecture(),
                    image->process ? image->process : "{}");
        for (size_t i = 0; i < image->n_layers; i++) {
                char digest[80];

                digest_text(image->layers[i].data, image->layers[i].length, digest);
                append_text(&text, "%s\"%s\"", i > 0 ? "," : "", digest);
        }
        append_text(&text, "]}}");
        return text;
}

/* Adds the image's blobs; the last one is its manifest. */
static inline void layout_add_image(Layout *layout, const TestImage *image) {
        cleanup_free char *config = test_config(image), *manifest = NULL;

        layout_add(layout, config, strlen(config));
        append_text(&manifest,
                    "{\"schemaVersion\":2,"
                    "\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"config\":{"
                    "\"mediaType\":\"application/vnd.oci.image.config.v1+json\",\"digest\":\"%s\","
                    "\"size\":%zu},\"layers\":[",
                    layout->last, layout->last_length);
        for (size_t i = 0; i < image->n_layers; i++) {
                layout_add(layout, image->layers[i].data, image->layers[i].length);
                append_text(&manifest,
                            "%s{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar\","
                            "\"digest\":\"%s\",\"size\":%zu}",
                            i > 0 ? "," : "", layout->last, layout->last_length);
        }
        append_text(&manifest, "]}");
        layout_add(layout, manifest, strlen(manifest));
}

static inline void layout_end(Layout *layout, const char *index, const char *path) {
        tar_add(&layout->tar, &(TarEntry){ .name = "index.json", .data = index });
        tar_add(&layout->tar,
                &(TarEntry){ .name = "oci-layout", .data = "{\"imageLayoutVersion\":\"1.0.0\"}" });
        tar_end(&layout->tar);
        write_file(path, layout->tar.data, layout->tar.length);
        tar_done(&layout->tar);
}

/* Writes an archive of one image; 'ret_digest' is the digest of its manifest. */
static maybe_unused void write_oci_archive(const char *path, const TestImage *image,
                                           char ret_digest[80]) {
        cleanup_free char *index = NULL, *annotations = NULL;
        Layout layout = { 0 };

        layout_add_image(&layout, image);
        if (image->name)
                append_text(&annotations,
                            ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"%s\"}",
                            image->name);
        append_text(&index,
                    "{\"schemaVersion\":2,\"manifests\":[{"
                    "\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
                    "\"digest\":\"%s\",\"size\":%zu%s}]}",
                    layout.last, layout.last_length, annotations ? annotations : "");
        memcpy(ret_digest, layout.last, sizeof(layout.last));
        layout_end(&layout, index, path);
}

/* The same in the format of "docker save"; 'ret_digest' is the digest of the configuration. */
static maybe_unused void write_docker_archive(const char *path, const TestImage *image,
                                              char ret_digest[80]) {
        cleanup_free char *config = test_config(image), *manifest = NULL;
        char name[128];
        Tar tar = { 0 };

        digest_text(config, strlen(config), ret_digest);
        (void) snprintf(name, sizeof(name), "%s.json", ret_digest + 7);
        tar_add(&tar, &(TarEntry){ .name = name, .data = config });
        append_text(&manifest, "[{\"Config\":\"%s\",\"RepoTags\":[", name);
        if (image->name)
                append_text(&manifest, "\"%s\"", image->name);
        append_text(&manifest, "],\"Layers\":[");
        for (size_t i = 0; i < image->n_layers; i++) {
                (void) snprintf(name, sizeof(name), "%zu/layer.tar", i);
                tar_add(&tar, &(TarEntry){ .name = name,
                                           .data = image->layers[i].data,
                                           .size = image->layers[i].length });
                append_text(&manifest, "%s\"%s\"", i > 0 ? "," : "", name);
        }
        append_text(&manifest, "]}]");
        tar_add(&tar, &(TarEntry){ .name = "manifest.json", .data = manifest });
        tar_end(&tar);
        write_file(path, tar.data, tar.length);
        tar_done(&tar);
}
