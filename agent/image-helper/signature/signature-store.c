/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/signature/signature-store.h"

#include "agent/image-helper/pull/document.h"
#include "common/base64.h"
#include "common/checksummed.h"
#include "common/file.h"
#include "common/json-text.h"

#include <fcntl.h>
#include <sys/file.h>

enum {
        /* The limit for reading, and for writing without the checksum. */
        SIGNATURES_BYTES_MAX = 8 * 1024 * 1024,
        SIGNATURES_TEXT_MAX = SIGNATURES_BYTES_MAX - 1024,
        VERIFIED_BYTES_MAX = 64 * 1024,
        VERIFIED_TEXT_MAX = 63 * 1024,
        FINGERPRINTS_MAX = 32, /* number of policies that an image has passed; the oldest is
                                * dropped */
        SECRETS_MAX = 100,     /* for one repository; the oldest is dropped */
        PATH_SIZE = 96
};

static void signature_path(const char *directory, const char *digest, char ret[static PATH_SIZE]) {
        (void) snprintf(ret, PATH_SIZE, "%s/%s.json", directory, digest_hex(digest));
}

static int read_stored_json(const Store *store, const char *path, size_t max_bytes, json_t **ret) {
        cleanup_free char *text = NULL;
        int r = checksummed_read_at(store_fd(store), path, max_bytes, &text);

        if (r >= 0)
                r = document_parse(text, strlen(text), ret, NULL);
        return r == -ENOMEM || r >= 0 ? r : -ENOENT;
}

/* ---- signatures ---- */

static json_t *base64_to_json(const void *data, size_t length) {
        cleanup_free char *text = malloc((length + 2) / 3 * 4 + 1);

        if (!text)
                return NULL;
        base64_encode(data, length, text);
        return json_string(text);
}

static json_t *signature_to_json(const SigstoreSignature *signature) {
        json_t *document = base64_to_json(signature->document, signature->length);

        return signature->signature ? json_pack("{s:o, s:s}", "payload", document, "signature",
                                                signature->signature)
                                    : json_pack("{s:o}", "bundle", document);
}

static bool json_array_has(const json_t *array, const json_t *value) {
        const json_t *item;
        size_t i;

        json_array_foreach(array, i, item)
                if (json_equal(item, value))
                        return true;
        return false;
}

/* Signatures of the index, and those for another name, remain valid for the image when a pull from
 * elsewhere finds others. */
static int append_stored_signatures(const Store *store, const char *path, json_t *items) {
        cleanup_json json_t *json = NULL;
        json_t *item;
        size_t i;
        int r = read_stored_json(store, path, SIGNATURES_BYTES_MAX, &json);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        json_array_foreach(json_object_get(json, "signatures"), i, item) {
                if (json_array_size(items) >= SIGSTORE_SIGNATURES_MAX)
                        break;
                if (!json_array_has(items, item) && json_array_append(items, item) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* The text must remain readable: signatures are dropped from the end. NULL: out of memory. */
static char *format_signatures(const json_t *json) {
        json_t *items = json_object_get(json, "signatures");
        char *text = json_to_text(json, JSON_COMPACT);

        while (text && strlen(text) > SIGNATURES_TEXT_MAX && json_array_size(items) > 0) {
                (void) json_array_remove(items, json_array_size(items) - 1);
                free(text);
                text = json_to_text(json, JSON_COMPACT);
        }
        return text;
}

int signature_store_write(Store *store, const char *digest, const char *index_digest,
                          const SignatureSet *set, Error *reterr) {
        cleanup_json json_t *items = json_array(), *json = NULL;
        cleanup_free char *text = NULL;
        char path[PATH_SIZE];
        int r;

        for (size_t i = 0; i < set->n; i++)
                if (json_array_append_new(items, signature_to_json(&set->items[i])) < 0)
                        return -ENOMEM;
        signature_path("signatures", digest, path);
        r = append_stored_signatures(store, path, items);
        if (r < 0)
                return r;
        json = json_pack("{s:i, s:s*, s:O}", "version", 1, "indexDigest", index_digest,
                         "signatures", items);
        text = json ? format_signatures(json) : NULL;
        return text ? store_write_record(store, path, text, reterr) : -ENOMEM;
}

static int read_stored_signature(const json_t *item, SignatureSet *set) {
        const char *signature = json_text(item, "signature");
        const char *text = json_text(item, signature ? "payload" : "bundle");
        cleanup_free char *document = NULL;
        size_t length = 0;
        int r = text ? base64_decode(text, &document, &length) : -EBADMSG;

        return r < 0 ? r : signature_set_add(set, document, length, signature);
}

int signature_store_read(const Store *store, const char *digest, SignatureSet *ret) {
        cleanup_json json_t *json = NULL;
        const json_t *item;
        char path[PATH_SIZE];
        size_t i;
        int r;

        signature_path("signatures", digest, path);
        r = read_stored_json(store, path, SIGNATURES_BYTES_MAX, &json);
        if (r < 0)
                return r;
        json_array_foreach(json_object_get(json, "signatures"), i, item) {
                r = read_stored_signature(item, ret);
                if (r == -ENOMEM)
                        return r;
        }
        return 0;
}

/* ---- the index ---- */

static int read_recorded_index(const Store *store, const char *directory, const char *digest,
                               size_t max_bytes, char ret[DIGEST_SIZE]) {
        cleanup_json json_t *json = NULL;
        const char *index_digest;
        char path[PATH_SIZE];
        int r;

        signature_path(directory, digest, path);
        r = read_stored_json(store, path, max_bytes, &json);
        if (r < 0)
                return r;
        index_digest = json_text(json, "indexDigest");
        return index_digest && digest_parse(index_digest, ret) >= 0 ? 0 : -ENOENT;
}

/* The index to which the stored signatures belong comes first, because it needs no network. */
int signature_store_read_index(const Store *store, const char *digest, char ret[DIGEST_SIZE]) {
        int r = read_recorded_index(store, "signatures", digest, SIGNATURES_BYTES_MAX, ret);

        return r == -ENOENT
                       ? read_recorded_index(store, "verified", digest, VERIFIED_BYTES_MAX, ret)
                       : r;
}

/* ---- verified images ---- */

/* The newest is the last. */
static json_t *add_fingerprint(const json_t *before, const char *fingerprint) {
        json_t *passed = json_array();
        const json_t *item;
        size_t i;

        json_array_foreach(before, i, item)
                if (json_is_string(item) && !streq_ptr(json_string_value(item), fingerprint))
                        (void) json_array_append(passed, (json_t *) (uintptr_t) item);
        if (fingerprint)
                (void) json_array_append_new(passed, json_string(fingerprint));
        while (json_array_size(passed) > FINGERPRINTS_MAX)
                (void) json_array_remove(passed, 0);
        return passed;
}

/* The repositories from which it was pulled: {"node": true}, or {"secrets": ["<hash>", …]}. */
static int add_access(json_t *access, const VerifiedUpdate *update) {
        json_t *entry = json_object_get(access, update->repository), *secrets;
        const json_t *item;
        size_t i;

        if (json_is_true(json_object_get(entry, "node")))
                return 0;
        if (!update->secret_hash)
                return json_object_set_new(access, update->repository,
                                           json_pack("{s:b}", "node", 1));
        if (!json_is_array(json_object_get(entry, "secrets")) &&
            json_object_set_new(access, update->repository, json_pack("{s:[]}", "secrets")) < 0)
                return -1;
        secrets = json_object_get(json_object_get(access, update->repository), "secrets");
        json_array_foreach(secrets, i, item)
                if (streq_ptr(json_string_value(item), update->secret_hash))
                        return 0;
        while (json_array_size(secrets) >= SECRETS_MAX)
                (void) json_array_remove(secrets, 0);
        return json_array_append_new(secrets, json_string(update->secret_hash));
}

/* Without an access list the image would count as not pulled, and be open to all. */
static json_t *update_verified(const json_t *before, bool was_damaged,
                               const VerifiedUpdate *update) {
        const json_t *known = json_object_get(before, "access");
        cleanup_json json_t *access = known ? json_deep_copy(known) : NULL;
        const char *index_digest =
                update->index_digest ? update->index_digest : json_text(before, "indexDigest");

        if (!access && (update->repository || was_damaged))
                access = json_object();
        if (update->repository && (!access || add_access(access, update) < 0))
                return NULL;
        return json_pack("{s:i, s:O*, s:s*, s:O*, s:o}", "version", 1, "origin", update->origin,
                         "indexDigest", index_digest, "access", access, "passed",
                         add_fingerprint(json_object_get(before, "passed"), update->fingerprint));
}

/* The text must remain readable: repositories are dropped from the beginning, and their users must
 * present their credentials again. NULL: out of memory. */
static char *format_verified(json_t *verified) {
        json_t *access = json_object_get(verified, "access");
        char *text = json_to_text(verified, JSON_COMPACT);

        while (text && strlen(text) > VERIFIED_TEXT_MAX && json_object_size(access) > 1) {
                (void) json_object_del(access, json_object_iter_key(json_object_iter(access)));
                free(text);
                text = json_to_text(verified, JSON_COMPACT);
        }
        return text;
}

/* 1: the recorded data; 0: nothing was recorded, or the record is damaged. */
static int read_verified(const Store *store, const char *path, json_t **ret,
                         bool *ret_was_damaged) {
        cleanup_free char *text = NULL;
        int r = checksummed_read_at(store_fd(store), path, VERIFIED_BYTES_MAX, &text);

        if (r >= 0)
                r = document_parse(text, strlen(text), ret, NULL);
        *ret_was_damaged = is_file_damage(r);
        return r == -ENOENT || is_file_damage(r) ? 0 : r;
}

/* Returns a descriptor that releases the lock when it is closed. */
static int lock_verified(const Store *store) {
        cleanup_close int lock =
                openat(store_fd(store), "verified", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return lock < 0 || flock(lock, LOCK_EX) < 0 ? -errno : TAKE_FD(lock);
}

/* Several pulls may add to the record of one image. */
int verified_write(Store *store, const char *digest, const VerifiedUpdate *update, Error *reterr) {
        cleanup_close int lock = lock_verified(store);
        cleanup_json json_t *before = NULL, *after = NULL;
        cleanup_free char *text = NULL;
        bool was_damaged = false;
        char path[PATH_SIZE];
        int r;

        signature_path("verified", digest, path);
        r = lock < 0 ? lock : read_verified(store, path, &before, &was_damaged);
        if (r < 0)
                return error_prefixf(reterr, r, "image store: %s", path);
        after = update_verified(before, was_damaged, update);
        if (!after)
                return -ENOMEM;
        if (json_equal(before, after))
                return 0;
        text = format_verified(after);
        return text ? store_write_record(store, path, text, reterr) : -ENOMEM;
}
