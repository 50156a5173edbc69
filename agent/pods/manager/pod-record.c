/* SPDX-License-Identifier: Apache-2.0 */
/* The format: a line "mainstay-record 2", the pod as JSON, a line of outdated attempts, the source,
 * and the checksum. Version 1 has no outdated attempts. Higher versions are not read. */

#include "agent/pods/manager/pod-record.h"

#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "agent/model/object-identity.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char record_header_v1[] = "mainstay-record 1\n";
static const char record_header_v2[] = "mainstay-record 2\n";

enum {
        POD_RECORD_MAX = 16 * 1024 * 1024
};

/* Returns memory that the caller frees, or NULL. */
static char *pod_record_dir(const char *state_dir, const char *uid) {
        return text_format("%s/pods/%s", state_dir, uid);
}

static int open_pod_record_dir(const char *state_dir, const char *uid, bool make) {
        cleanup_free char *path = pod_record_dir(state_dir, uid);
        int fd;

        if (!path)
                return -ENOMEM;
        if (make)
                return open_directory_at(AT_FDCWD, path, 0711);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Removes the directory of a pod that never had a record: a later pod with its name has another
 * UID. */
static void remove_empty_record_dir(const char *state_dir, const char *uid) {
        cleanup_free char *path = pod_record_dir(state_dir, uid);

        if (path)
                (void) rmdir(path);
}

void pod_record_done(PodRecord *record) {
        pod_source_done(&record->source);
        pod_free(record->pod);
        free(record->outdated);
        *record = (PodRecord){ 0 };
}

int pod_record_store(const char *state_dir, const PodRecord *record, Error *reterr) {
        const Pod *pod = record->pod;
        cleanup_free char *json = pod_to_json(pod, NULL), *text = NULL;
        cleanup_close int fd = -EBADF;
        int r;

        if (!json)
                return -ENOMEM;
        text = text_format("%s%s\n%s\n%s\n", record_header_v2, json, strna(record->outdated),
                           pod_source_format(&record->source));
        if (!text)
                return -ENOMEM;
        if (strlen(text) + SHA256_HEX_SIZE > POD_RECORD_MAX)
                return error_setf(reterr, E2BIG, "the record of pod %s would be larger than %d MiB",
                                  pod->metadata.name, POD_RECORD_MAX / (int) MIB);
        fd = open_pod_record_dir(state_dir, pod->metadata.uid, /* make= */ true);
        r = fd < 0 ? fd : checksummed_write_at(fd, "record", text, 0600);
        if (r < 0) {
                remove_empty_record_dir(state_dir, pod->metadata.uid);
                return error_setf(reterr, -r, "cannot write the record of pod %s in %s: %s",
                                  pod->metadata.name, state_dir, strerror(-r));
        }
        return 0;
}

/* Takes the text up to the next newline. */
static int take_record_line(const char **text, char **ret, Error *reterr) {
        const char *end = strchr(*text, '\n');

        if (!end)
                return error_setf(reterr, EBADMSG, "is cut short");
        *ret = strndup(*text, (size_t) (end - *text));
        *text = end + 1;
        return *ret ? 0 : -ENOMEM;
}

static int parse_pod_record(const char *text, const char *uid, PodRecord *ret, Error *reterr) {
        cleanup_with(pod_record_done) PodRecord record = { 0 };
        bool is_first = strncmp(text, record_header_v1, strlen(record_header_v1)) == 0;
        cleanup_free char *json = NULL, *source = NULL;
        size_t length;
        int r;

        if (!is_first && strncmp(text, record_header_v2, strlen(record_header_v2)) != 0)
                return error_setf(reterr, ENOTSUP, "was written by a later version");
        text += strlen(record_header_v2);
        r = take_record_line(&text, &json, reterr);
        if (r < 0)
                return r;
        if (!is_first)
                r = take_record_line(&text, &record.outdated, reterr);
        if (r < 0)
                return r;
        length = strlen(text);
        if (length < 2) /* a file name may contain newlines; the last newline ends the record */
                return error_setf(reterr, EBADMSG, "is cut short");
        source = strndup(text, length - 1);
        r = source ? pod_source_parse(source, &record.source) : -ENOMEM;
        if (r < 0)
                return r;
        r = manifest_parse_record(json, strlen(json), &record.pod, reterr);
        if (r < 0) /* its checksum matches, so it is complete, but this version does not support its
                    * data */
                return r == -ENOMEM ? r : -ENOTSUP;
        if (!object_has_uid(&record.pod->metadata, uid))
                return error_setf(reterr, EBADMSG, "is of another pod");
        r = pod_set_source(record.pod, &record.source);
        if (r < 0)
                return r;
        *ret = record;
        record = (PodRecord){ 0 };
        return 0;
}

int pod_record_load(const char *state_dir, const char *uid, PodRecord *ret, Error *reterr) {
        cleanup_close int fd = open_pod_record_dir(state_dir, uid, /* make= */ false);
        cleanup_free char *text = NULL;
        int r;

        r = fd < 0 ? fd : checksummed_read_at(fd, "record", POD_RECORD_MAX, &text);
        if (r == -ENOENT || r == -ENOMEM)
                return r;
        if (r == -EBADMSG)
                (void) error_setf(reterr, EBADMSG, "is damaged: its checksum does not match");
        else if (r < 0)
                (void) error_setf(reterr, -r, "cannot be read: %s", strerror(-r));
        else
                r = parse_pod_record(text, uid, ret, reterr);
        if (r >= 0 || r == -ENOMEM)
                return r;
        return error_prefixf(reterr, r != -ENOTSUP && is_content_damage(text, r) ? -EBADMSG : r,
                             "%s/pods/%s/record", state_dir, uid);
}

bool pod_record_has_companions(const char *state_dir, const char *uid) {
        static const char *const names[] = { "failure", "ends", "deletion" };
        cleanup_close int fd = open_pod_record_dir(state_dir, uid, /* make= */ false);

        for (size_t i = 0; fd >= 0 && i < N_ELEMENTS(names); i++)
                if (faccessat(fd, names[i], F_OK, AT_SYMLINK_NOFOLLOW) >= 0)
                        return true;
        return false;
}

int pod_record_set_aside(const char *state_dir, const char *uid, Error *reterr) {
        cleanup_close int pod_fd = open_pod_record_dir(state_dir, uid, /* make= */ false);
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
