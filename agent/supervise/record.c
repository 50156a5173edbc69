/* SPDX-License-Identifier: Apache-2.0 */
/* The form: one line "mainstay-record 1 <sha256 of what follows>", one line with the file's name,
 * then the pod as JSON. A higher version than ours is not ours to read. */

#include "agent/supervise/record.h"

#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"

#include <fcntl.h>
#include <sys/stat.h>

static const char magic[] = "mainstay-record 1 ";
enum {
        HEADER_LENGTH = sizeof(magic) - 1 + 64 + 1,
        RECORD_MAX = 16 * 1024 * 1024
};

static int open_pod_directory(const char *state_dir, const char *uid, bool make) {
        cleanup_free char *path = NULL;
        int fd;

        if (asprintf(&path, "%s/pods/%s", state_dir, uid) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        if (make)
                return open_directory_at(AT_FDCWD, path, 0711);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int record_store(const char *state_dir, const char *file, const Pod *pod, Error *reterr) {
        cleanup_free char *json = pod_to_json(pod, NULL), *body = NULL, *text = NULL;
        cleanup_close int fd = -EBADF;
        char hash[SHA256_HEX_SIZE];
        int length, r;

        if (!json)
                return -ENOMEM;
        length = asprintf(&body, "%s\n%s\n", file, json);
        if (length < 0) {
                body = NULL;
                return -ENOMEM;
        }
        sha256_hex(body, (size_t) length, hash);
        length = asprintf(&text, "%s%s\n%s", magic, hash, body);
        if (length < 0) {
                text = NULL;
                return -ENOMEM;
        }
        fd = open_pod_directory(state_dir, pod->metadata.uid, /* make= */ true);
        r = fd < 0 ? fd : write_file_atomic_at(fd, "record", text, (size_t) length, 0600);
        if (r < 0)
                return error_setf(reterr, -r, "cannot write the record of pod %s in %s: %s",
                                  pod->metadata.name, state_dir, strerror(-r));
        return 0;
}

/* Checks the first line and gives what follows it. */
static const char *verify(const char *text, size_t length, Error *reterr) {
        char hash[SHA256_HEX_SIZE];

        if (length < HEADER_LENGTH || strncmp(text, "mainstay-record ", 16) != 0) {
                (void) error_setf(reterr, EBADMSG, "is no record");
                return NULL;
        }
        if (strncmp(text, magic, strlen(magic)) != 0) {
                (void) error_setf(reterr, EBADMSG, "was written by a newer version");
                return NULL;
        }
        sha256_hex(text + HEADER_LENGTH, length - HEADER_LENGTH, hash);
        if (strncmp(text + strlen(magic), hash, 64) != 0 || text[HEADER_LENGTH - 1] != '\n') {
                (void) error_setf(reterr, EBADMSG, "does not match its checksum");
                return NULL;
        }
        return text + HEADER_LENGTH;
}

static int parse_record(const char *text, size_t length, const char *uid, char **ret_file,
                        Pod **ret_pod, Error *reterr) {
        cleanup_with(pod_freep) Pod *pod = NULL;
        cleanup_free char *file = NULL;
        const char *body = verify(text, length, reterr), *json;
        int r;

        if (!body)
                return -EBADMSG;
        /* The pod is one line; a file's name may be several. */
        json = length >= HEADER_LENGTH + 1 ? memrchr(body, '\n', length - HEADER_LENGTH - 1) : NULL;
        if (!json)
                return error_setf(reterr, EBADMSG, "is cut short");
        file = strndup(body, (size_t) (json - body));
        if (!file)
                return -ENOMEM;
        json++;
        r = manifest_parse_record(json, length - (size_t) (json - text), &pod, reterr);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return -EBADMSG;
        if (!streq_ptr(pod->metadata.uid, uid))
                return error_setf(reterr, EBADMSG, "is of another pod");
        *ret_file = TAKE_PTR(file);
        *ret_pod = TAKE_PTR(pod);
        return 0;
}

int record_load(const char *state_dir, const char *uid, char **ret_file, Pod **ret_pod,
                Error *reterr) {
        cleanup_close int fd = open_pod_directory(state_dir, uid, /* make= */ false);
        cleanup_free char *text = NULL;
        size_t length = 0;
        int r;

        r = fd < 0 ? fd : read_file_at(fd, "record", RECORD_MAX, &text, &length);
        if (r == -ENOENT || r == -ENOMEM)
                return r;
        if (r < 0)
                (void) error_setf(reterr, -r, "cannot be read: %s", strerror(-r));
        else
                r = parse_record(text, length, uid, ret_file, ret_pod, reterr);
        if (r < 0 && r != -ENOMEM)
                r = error_prefixf(reterr, -EBADMSG, "%s/pods/%s/record", state_dir, uid);
        return r;
}

int record_set_aside(const char *state_dir, const char *uid, Error *reterr) {
        cleanup_close int pod_fd = open_pod_directory(state_dir, uid, /* make= */ false);
        cleanup_close int corrupt_fd = -EBADF;
        cleanup_free char *corrupt = path_join(state_dir, "corrupt");

        if (pod_fd < 0)
                return pod_fd;
        if (!corrupt)
                return -ENOMEM;
        corrupt_fd = open_directory_at(AT_FDCWD, corrupt, 0700);
        if (corrupt_fd < 0)
                return corrupt_fd;
        for (unsigned n = 0; n < 100; n++) {
                char name[128];

                (void) snprintf(name, sizeof(name), "%s.%u", uid, n);
                if (renameat2(pod_fd, "record", corrupt_fd, name, RENAME_NOREPLACE) >= 0)
                        return 0;
                if (errno != EEXIST)
                        break;
        }
        return error_setf(reterr, errno, "cannot set aside %s/pods/%s/record: %s", state_dir, uid,
                          strerror(errno));
}
