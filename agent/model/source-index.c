/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/source-index.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/ed25519.h"
#include "common/json-text.h"
#include "common/strv.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

enum {
        INDEX_FORMAT = 1,
        FLEET_LENGTH_MAX = 253
};

void source_index_done(SourceIndex *index) {
        for (size_t i = 0; i < index->files.n; i++)
                free(index->files.items[i].name);
        free(index->files.items);
        strv_free(index->keys);
        free(index->fleet);
        *index = (SourceIndex){ 0 };
}

/* ---- the format ---- */

/* What a name of a file, or of a fleet, may consist of: nothing that a path or a terminal reads. */
static bool is_plain_name(const char *name, size_t max) {
        for (const char *p = name; *p; p++)
                if (!isalnum((unsigned char) *p) && !strchr("._-", *p))
                        return false;
        return name[0] && name[0] != '.' && strlen(name) <= max;
}

bool source_name_is_valid(const char *name) {
        return is_plain_name(name, FLEET_LENGTH_MAX);
}

static bool is_index_file_name(const char *name) {
        static const char *const endings[] = { ".yaml", ".yml", ".json" };
        size_t n = strlen(name);

        for (size_t i = 0; i < N_ELEMENTS(endings); i++) {
                size_t n_ending = strlen(endings[i]);

                if (n > n_ending && streq(name + n - n_ending, endings[i]))
                        return is_plain_name(name, SOURCE_INDEX_NAME_MAX);
        }
        return false;
}

static bool is_sha256_hex(const char *text) {
        return strlen(text) == SHA256_HEX_SIZE - 1 &&
               strspn(text, "0123456789abcdef") == SHA256_HEX_SIZE - 1;
}

static int parse_index_file(const json_t *json, uint64_t file_max, SourceIndexFile *file,
                            Error *reterr) {
        const char *name = strna(json_string_value(json_object_get(json, "name")));
        const char *sha256 = strna(json_string_value(json_object_get(json, "sha256")));
        json_int_t size = json_integer_value(json_object_get(json, "size"));

        if (!is_index_file_name(name))
                return error_setf(reterr, EBADMSG,
                                  "name: must be the name of a manifest, at most %d letters, "
                                  "digits, '.', '_' and '-'",
                                  SOURCE_INDEX_NAME_MAX);
        if (!is_sha256_hex(sha256))
                return error_setf(reterr, EBADMSG, "sha256: must be 64 lower-case hex digits");
        if (size <= 0 || (uint64_t) size > file_max)
                return error_setf(reterr, EBADMSG, "size: must be between 1 and %llu",
                                  (unsigned long long) file_max);
        file->size = (uint64_t) size;
        memcpy(file->sha256, sha256, SHA256_HEX_SIZE);
        file->name = strdup(name);
        return file->name ? 0 : -ENOMEM;
}

static int compare_index_files(const void *a, const void *b) {
        return strcmp(((const SourceIndexFile *) a)->name, ((const SourceIndexFile *) b)->name);
}

static int check_file_list(SourceIndex *index, Error *reterr) {
        uint64_t total = 0;

        if (index->files.n > 0)
                qsort(index->files.items, index->files.n, sizeof(*index->files.items),
                      compare_index_files);
        for (size_t i = 0; i < index->files.n; i++) {
                total += index->files.items[i].size;
                if (i > 0 && streq(index->files.items[i].name, index->files.items[i - 1].name))
                        return error_setf(reterr, EBADMSG, "files: %s is in it twice",
                                          index->files.items[i].name);
        }
        if (total > SOURCE_INDEX_TOTAL_BYTES_MAX)
                return error_setf(reterr, EBADMSG, "files: are larger together than %zu MiB",
                                  SOURCE_INDEX_TOTAL_BYTES_MAX / MIB);
        return 0;
}

static int parse_file_list(const json_t *array, uint64_t file_max, SourceIndex *index,
                           Error *reterr) {
        const json_t *item;
        size_t i;

        if (!json_is_array(array) || json_array_size(array) > SOURCE_INDEX_FILES_MAX)
                return error_setf(reterr, EBADMSG, "files: must be a list of at most %d",
                                  SOURCE_INDEX_FILES_MAX);
        index->files.items = calloc(json_array_size(array) + 1, sizeof(*index->files.items));
        if (!index->files.items)
                return -ENOMEM;
        json_array_foreach(array, i, item) {
                int r = parse_index_file(item, file_max, &index->files.items[index->files.n++],
                                         reterr);

                if (r < 0)
                        return error_prefixf(reterr, r, "files[%zu]", i);
        }
        return check_file_list(index, reterr);
}

/* Keys that cannot be used, or none, would lock the node out. */
static int parse_next_keys(const json_t *array, SourceIndex *index, Error *reterr) {
        uint8_t key[ED25519_KEY_SIZE];
        const json_t *item;
        size_t i;

        if (!array)
                return 0;
        if (!json_is_array(array) || json_array_size(array) == 0 ||
            json_array_size(array) > SOURCE_INDEX_KEYS_MAX)
                return error_setf(reterr, EBADMSG, "keys: must be a list of 1 to %d keys",
                                  SOURCE_INDEX_KEYS_MAX);
        json_array_foreach(array, i, item) {
                const char *text = strna(json_string_value(item));

                int r = ed25519_key_parse(text, key);

                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        return error_setf(reterr, EBADMSG,
                                          "keys[%zu]: must be a public key of Ed25519 in base64",
                                          i);
                if (strv_append(&index->keys, text) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Within which time the pods of the index must be ready. */
static int parse_progress_deadline(const json_t *json, SourceIndex *index, Error *reterr) {
        const json_t *seconds = json_object_get(json, "progressDeadlineSeconds");

        if (!seconds)
                return 0;
        index->progress_deadline_seconds = json_integer_value(seconds);
        if (index->progress_deadline_seconds > 0 &&
            index->progress_deadline_seconds <= SOURCE_DEADLINE_SECONDS_MAX)
                return 0;
        return error_setf(reterr, EBADMSG,
                          "progressDeadlineSeconds: must be a number between 1 and %d",
                          SOURCE_DEADLINE_SECONDS_MAX);
}

static int parse_index_head(const json_t *json, SourceIndex *index, Error *reterr) {
        const char *fleet = strna(json_string_value(json_object_get(json, "fleet")));

        if (json_integer_value(json_object_get(json, "format")) != INDEX_FORMAT)
                return error_setf(reterr, EBADMSG, "format: must be %d", INDEX_FORMAT);
        index->number = json_integer_value(json_object_get(json, "number"));
        if (index->number <= 0)
                return error_setf(reterr, EBADMSG, "number: must be a number above 0");
        if (parse_rfc3339(strna(json_string_value(json_object_get(json, "expires"))),
                          &index->expires) < 0)
                return error_setf(reterr, EBADMSG,
                                  "expires: must be a time such as 2027-01-31T00:00:00Z");
        if (!source_name_is_valid(fleet))
                return error_setf(reterr, EBADMSG,
                                  "fleet: must be a name of letters, digits, '.', '_' and '-'");
        index->fleet = strdup(fleet);
        return index->fleet ? 0 : -ENOMEM;
}

int source_index_parse(const char *text, size_t length, uint64_t file_max, SourceIndex *ret,
                       Error *reterr) {
        cleanup_with(source_index_done) SourceIndex index = { 0 };
        cleanup_json json_t *json = NULL;
        json_error_t where;
        int r;

        if (length > SOURCE_INDEX_BYTES_MAX)
                return error_setf(reterr, EBADMSG, "is larger than %zu MiB",
                                  SOURCE_INDEX_BYTES_MAX / MIB);
        r = json_parse_text(text, length, JSON_REJECT_DUPLICATES, &json, &where);
        if (r == -ENOMEM)
                return r;
        if (!json_is_object(json))
                return error_setf(reterr, EBADMSG, "is not a JSON object: line %d, column %d",
                                  where.line, where.column);
        r = parse_index_head(json, &index, reterr);
        if (r < 0)
                return r;
        r = parse_file_list(json_object_get(json, "files"), file_max, &index, reterr);
        if (r < 0)
                return r;
        r = parse_next_keys(json_object_get(json, "keys"), &index, reterr);
        if (r < 0)
                return r;
        r = parse_progress_deadline(json, &index, reterr);
        if (r < 0)
                return r;
        *ret = index;
        index = (SourceIndex){ 0 };
        return 0;
}

/* ---- the rules ---- */

int source_index_check(const SourceIndex *index, const char *sha256, const SourceIndexKnown *known,
                       const char *fleet, uint64_t now_realtime_usec, Error *reterr) {
        bool is_follower = streq_ptr(known->fleet, fleet);
        char time[RFC3339_SIZE], clock[CLOCK_DESCRIPTION_SIZE];

        if (!streq(index->fleet, fleet))
                return error_setf(reterr, EBADMSG, "is of the fleet '%s', not of '%s'",
                                  index->fleet, fleet);
        if (is_follower && index->number < known->number)
                return error_setf(reterr, EBADMSG,
                                  "has the number %lld, and an index with the number %lld "
                                  "was verified before",
                                  (long long) index->number, (long long) known->number);
        if (is_follower && index->number == known->number && !streq_ptr(sha256, known->sha256))
                return error_setf(reterr, EBADMSG,
                                  "has the number of an index that was verified before, %lld, "
                                  "and other contents",
                                  (long long) index->number);
        if (index->expires <= now_realtime_usec)
                return error_setf(reterr, EBADMSG, "has expired at %s; %s; " CLOCK_RETRY_HINT,
                                  format_rfc3339(time, index->expires),
                                  clock_describe(clock, now_realtime_usec));
        return 0;
}

int source_index_verify(const char *text, size_t length, const char *signatures,
                        size_t signatures_length, char *const *keys, Error *reterr) {
        uint8_t found[ED25519_SIGNATURES_MAX][ED25519_SIGNATURE_SIZE];
        size_t n = ed25519_signatures_parse(signatures, signatures_length, found);

        if (n == 0)
                return error_setf(reterr, EBADMSG, "the file of signatures contains none");
        for (; keys && *keys; keys++) {
                uint8_t key[ED25519_KEY_SIZE];

                for (size_t i = 0; ed25519_key_parse(*keys, key) >= 0 && i < n; i++)
                        if (ed25519_verify(key, text, length, found[i]))
                                return 0;
        }
        return error_setf(reterr, EBADMSG, "is not signed by one of the known keys");
}
