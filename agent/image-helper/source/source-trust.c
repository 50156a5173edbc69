/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/source-trust.h"

#include "common/checksummed.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/strv.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
        TRUST_BYTES_MAX = 64 * 1024
};

static const char directory_name[] = "trust";
/* No fleet has this name: names of fleets start with a letter or a digit. */
static const char temporary_name[] = ".new";

void source_trust_done(SourceTrust *trust) {
        strv_free(trust->keys);
        *trust = (SourceTrust){ 0 };
}

static void hash_keys(char *const *keys, char ret[SHA256_HEX_SIZE]) {
        Sha256 *hash = sha256_new();

        if (!hash) {
                ret[0] = '\0';
                return;
        }
        for (; keys && *keys; keys++)
                sha256_update(hash, *keys, strlen(*keys) + 1);
        sha256_finish(hash, ret);
        sha256_free(hash);
}

/* Takes over the number, and the keys unless those in the configuration have changed since then. */
static int take_trust(SourceTrust *trust, const SourceSettings *settings, const json_t *record,
                      Error *reterr) {
        trust->number = json_integer_value(json_object_get(record, "number"));
        (void) snprintf(trust->sha256, sizeof(trust->sha256), "%s",
                        strna(json_text(record, "sha256")));
        if (streq_ptr(json_text(record, "configuredKeys"), trust->configured))
                return document_strv(record, "keys", &trust->keys, reterr);
        trust->is_recorded = false;
        return strv_extend(&trust->keys, settings->keys);
}

static int refuse_damage(const SourceSettings *settings, const char *what, Error *reterr) {
        return error_setf(reterr, EBADMSG,
                          "the record of the keys and of the highest number of the fleet, "
                          "trust/%s, %s: no index is accepted; make sure that the source offers "
                          "the latest one, and remove the directory of the source with the agent "
                          "stopped",
                          settings->fleet, what);
}

/* 1 with the record; 0 if there is none. */
static int read_record(const SourceStore *store, const SourceSettings *settings, json_t **ret,
                       Error *reterr) {
        cleanup_close int dir_fd =
                openat(store->fd, directory_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        cleanup_free char *text = NULL;
        int r = dir_fd < 0 ? -errno
                           : checksummed_read_at(dir_fd, settings->fleet, TRUST_BYTES_MAX, &text);

        if (r == -ENOENT)
                return 0;
        if (r == -ENOMEM)
                return r;
        if (r < 0 && !is_content_damage(text, r))
                return error_prefixf(reterr, r, "trust/%s", settings->fleet);
        if (r < 0 || document_parse(text, strlen(text), ret, NULL) < 0)
                return refuse_damage(settings, "is damaged", reterr);
        return 1;
}

int source_trust_load(const SourceStore *store, const SourceSettings *settings,
                      const json_t *current, SourceTrust *ret, Error *reterr) {
        cleanup_json json_t *record = NULL;
        bool is_of_fleet = streq_ptr(json_text(current, "fleet"), settings->fleet);
        int r = read_record(store, settings, &record, reterr);

        if (r < 0)
                return r;
        hash_keys(settings->keys, ret->configured);
        ret->is_recorded = r > 0;
        if (r > 0)
                return take_trust(ret, settings, record, reterr);
        if (is_of_fleet && json_is_true(json_object_get(current, "hasTrust")))
                return refuse_damage(settings, "has gone", reterr);
        if (is_of_fleet)
                return take_trust(ret, settings, current, reterr);
        return strv_extend(&ret->keys, settings->keys);
}

static int write_synced(int dir_fd, const char *name, const char *text) {
        size_t length;
        cleanup_free char *whole = checksummed_format(text, &length);
        cleanup_close int fd = -EBADF;
        int r;

        if (!whole)
                return -ENOMEM;
        if (unlinkat(dir_fd, temporary_name, 0) < 0 && errno != ENOENT)
                return -errno;
        fd = openat(dir_fd, temporary_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, whole, length);
        if (r < 0)
                return r;
        if (fsync(fd) < 0 || renameat(dir_fd, temporary_name, dir_fd, name) < 0 ||
            fsync(dir_fd) < 0)
                return -errno;
        return 0;
}

static int write_record(const SourceTrust *trust, const SourceStore *store, const char *fleet) {
        cleanup_json json_t *record =
                json_pack("{s:I, s:s, s:s, s:o}", "number", (json_int_t) trust->number, "sha256",
                          trust->sha256, "configuredKeys", trust->configured, "keys",
                          document_string_array(trust->keys));
        char *text = record ? json_to_text(record, JSON_COMPACT) : NULL;
        int dir_fd = open_directory_at(store->fd, directory_name, 0700);
        int r = dir_fd < 0 ? dir_fd : -ENOMEM;

        if (text && dir_fd >= 0)
                r = write_synced(dir_fd, fleet, text);
        if (r >= 0 && fsync(store->fd) < 0)
                r = -errno;
        close_fd(dir_fd);
        free(text);
        return r;
}

int source_trust_advance(SourceTrust *trust, const SourceStore *store, const SourceIndex *index,
                         const char *sha256, Error *reterr) {
        bool is_known = trust->number == index->number && streq(trust->sha256, sha256);
        int r = 0;

        if (trust->is_recorded && is_known)
                return 0;
        FAIL_AT("source.trust");
        trust->number = index->number;
        (void) snprintf(trust->sha256, sizeof(trust->sha256), "%s", sha256);
        if (index->keys) {
                strv_free(trust->keys);
                trust->keys = NULL;
                r = strv_extend(&trust->keys, index->keys);
        }
        if (r >= 0)
                r = write_record(trust, store, index->fleet);
        if (r < 0)
                return error_prefixf(reterr, r, "trust/%s", index->fleet);
        trust->is_recorded = true;
        return 0;
}
