/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay source`: creates and checks signed indexes of manifests, mainstay-source(5), and shows
 * the state of a node's sources. */

#include "agent/cli/cli.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/columns.h"
#include "agent/cli/output.h"
#include "agent/cli/sign-images.h"
#include "agent/cli/source-report.h"
#include "agent/cli/words.h"
#include "agent/manifest/manifest.h"
#include "agent/model/age.h"
#include "agent/model/node-status.h"
#include "agent/model/object-source.h"
#include "agent/model/own-values.h"
#include "agent/model/source-index.h"
#include "common/age-file.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/ed25519.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/strv.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE_FILE_BYTES_MAX (10 * MIB)
#define PEM_FILE_BYTES_MAX    (64 * KIB)
#define DAY_USEC              (24 * (3600 * USEC_PER_SEC))
#define EXPIRES_DAYS_DEFAULT  90
#define EXPIRES_DAYS_MAX      36500
#define BUSY_DELAY_USEC       (20 * USEC_PER_MSEC)

enum {
        BUSY_ASKED_MAX = 3000 /* number of requests */
};

/* ---- sign ---- */

typedef struct IndexMaker {
        const Options *options;
        int from_fd, to_fd, blobs_fd; /* the last one is negative if nothing is to be written */
        json_t *files, *images;
        SourceIndex before; /* the existing index of the directory; empty: none */
        IndexImagesMaker *images_maker;
} IndexMaker;

static void index_maker_done(IndexMaker *maker) {
        close_fd(maker->from_fd);
        close_fd(maker->to_fd);
        close_fd(maker->blobs_fd);
        json_decref(maker->files);
        json_decref(maker->images);
        index_images_maker_free(maker->images_maker);
        source_index_done(&maker->before);
}

static int open_source_argument(const char *path, bool is_made, Error *reterr) {
        int fd = is_made ? open_directory_at(AT_FDCWD, path, 0755)
                         : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (!is_made && fd < 0)
                fd = -errno;
        return fd < 0 ? error_prefixf(reterr, fd, "%s", path) : fd;
}

/* The names of the recipients in the Secret, for readers of the index. */
static void explain_recipients(const DataObject *secret, int n) {
        const char *names = own_value_as_written(&secret->metadata, OWN_KEY_ENCRYPTED_FOR);
        int n_names = names && *names ? 1 : 0;

        if (n_names == 0)
                return;
        for (const char *p = names; (p = strchr(p, ',')); p++)
                n_names++;
        fputs(": ", stdout);
        write_quoted(names, stdout);
        if (n_names != n)
                printf(" (%s names %d)", own_key_name(OWN_KEY_ENCRYPTED_FOR), n_names);
}

/* The value itself does not show which nodes can open it, only how many recipients it has. */
static int explain_encrypted_value(const DataObject *secret, const ObjectValue *value,
                                   Error *reterr) {
        int n = value->seal == OBJECT_VALUE_AGE
                        ? age_count_recipients(value->bytes, value->length, reterr)
                        : 0;

        if (n < 0)
                return error_prefixf(reterr, n, "Secret %s/%s: %s", secret->metadata.namespace,
                                     secret->metadata.name, value->key);
        if (value->seal == OBJECT_VALUE_AGE) {
                printf("Secret %s/%s: %s is encrypted for %d recipients",
                       secret->metadata.namespace, secret->metadata.name, value->key, n);
                explain_recipients(secret, n);
                putchar('\n');
        } else if (value->seal == OBJECT_VALUE_CREDENTIAL)
                printf("Secret %s/%s: %s is sealed for a single machine\n",
                       secret->metadata.namespace, secret->metadata.name, value->key);
        return 0;
}

static int explain_encrypted_secrets(const ManifestObjects *objects, Error *reterr) {
        for (size_t i = 0; i < objects->data.n; i++) {
                const DataObject *object = objects->data.items[i];

                for (size_t k = 0; k < object->values.n; k++) {
                        int r = explain_encrypted_value(object, &object->values.items[k], reterr);

                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

/* Manifests that a node would refuse are not signed. */
static int read_manifest_to_sign(const char *name, const char *data, size_t length,
                                 IndexImagesMaker *images, Error *reterr) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        int r = manifest_parse(name, data, length, "node", &objects, reterr);

        if (r >= 0)
                r = explain_encrypted_secrets(&objects, reterr);
        return r < 0 || !images ? r : index_images_maker_add(images, &objects);
}

static int add_file_to_index(const IndexMaker *maker, const char *name, Error *reterr) {
        cleanup_free char *data = NULL;
        char sha256[SHA256_HEX_SIZE];
        size_t length;
        int r = read_file_at(maker->from_fd, name, SOURCE_FILE_BYTES_MAX, &data, &length);

        if (r < 0)
                return error_prefixf(reterr, r, "%s", name);
        r = read_manifest_to_sign(name, data, length, maker->images_maker, reterr);
        if (r < 0)
                return r;
        sha256_hex(data, length, sha256);
        if (maker->blobs_fd >= 0)
                r = write_file_atomic_at(maker->blobs_fd, sha256, data, length, 0644);
        if (r < 0)
                return error_prefixf(reterr, r, "sha256/%s", sha256);
        return json_array_append_new(maker->files,
                                     json_pack("{s:s, s:I, s:s}", "name", name, "size",
                                               (json_int_t) length, "sha256", sha256)) < 0
                       ? -ENOMEM
                       : 0;
}

static int compare_directory_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* All files except hidden ones: a name that is invalid in an index is an error that names it. */
static int list_files_to_sign(int dir_fd, char ***ret) {
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_closedir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        const struct dirent *entry;
        int r;

        if (!dir) {
                close_fd(copy);
                return -errno;
        }
        while ((r = read_directory_entry(dir, &entry)) > 0)
                if (entry->d_name[0] != '.' && strv_append(ret, entry->d_name) < 0)
                        return -ENOMEM;
        if (r < 0)
                return r;
        if (*ret)
                qsort(*ret, strv_length(*ret), sizeof(**ret), compare_directory_names);
        return 0;
}

static int add_files_to_index(const IndexMaker *maker, Error *reterr) {
        cleanup_strv char **names = NULL;
        int r = list_files_to_sign(maker->from_fd, &names);

        if (r < 0)
                return error_prefixf(reterr, r, "%s", maker->options->words[1]);
        strv_foreach(name, names) {
                r = add_file_to_index(maker, *name, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads the existing index. */
static int read_index_before(IndexMaker *maker, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length = 0;
        int r = maker->to_fd < 0 ? -ENOENT
                                 : read_file_at(maker->to_fd, "index.json", SOURCE_INDEX_BYTES_MAX,
                                                &text, &length);

        if (r >= 0)
                r = source_index_parse(text, length, SOURCE_FILE_BYTES_MAX, &maker->before, reterr);
        return r < 0 && r != -ENOENT ? error_prefixf(reterr, r, "index.json") : 0;
}

/* The number after that of the existing index, if any. */
static int choose_index_number(const IndexMaker *maker, json_int_t *ret, Error *reterr) {
        char *end;

        if (maker->options->number) {
                *ret = strtoll(maker->options->number, &end, 10);
                return *end || *ret <= 0
                               ? error_setf(reterr, EINVAL, "--number: must be a number above 0")
                               : 0;
        }
        *ret = maker->before.number + 1;
        return 0;
}

/* "90d" from now, or a time. */
static int choose_expiry(const char *text, char ret[RFC3339_SIZE], Error *reterr) {
        uint64_t days = EXPIRES_DAYS_DEFAULT, time = 0;
        char *end = NULL;

        if (text && parse_rfc3339(text, &time) < 0) {
                days = strtoull(text, &end, 10);
                if (!streq(end, "d") || days == 0 || days > EXPIRES_DAYS_MAX)
                        return error_setf(reterr, EINVAL,
                                          "--expires: must be days such as 90d, or a time such as "
                                          "2027-01-31T00:00:00Z");
        }
        format_rfc3339(ret, time > 0 ? time : now_realtime_usec() + days * DAY_USEC);
        return 0;
}

/* NULL: there is none. 0 or -errno with a message. */
static int choose_deadline(const char *text, json_t **ret, Error *reterr) {
        json_int_t seconds;
        char *end;

        *ret = NULL;
        if (!text)
                return 0;
        seconds = strtoll(text, &end, 10);
        if (*end || seconds <= 0 || seconds > SOURCE_DEADLINE_SECONDS_MAX)
                return error_setf(reterr, EINVAL,
                                  "--progress-deadline-seconds: must be a number between 1 and %d",
                                  SOURCE_DEADLINE_SECONDS_MAX);
        *ret = json_integer(seconds);
        return *ret ? 0 : -ENOMEM;
}

static json_t *split_key_list(const char *text) {
        cleanup_free char *copy = text ? strdup(text) : NULL;
        json_t *array = copy ? json_array() : NULL;
        char *rest = copy, *key;

        while (array && (key = strsep(&rest, ",")))
                (void) json_array_append_new(array, json_string(key));
        return array;
}

static int make_index_text(const IndexMaker *maker, char **ret, Error *reterr) {
        cleanup_json json_t *json = NULL, *deadline = NULL, *keys = NULL;
        char expires[RFC3339_SIZE];
        json_int_t number;
        int r = choose_index_number(maker, &number, reterr);

        if (r < 0)
                return r;
        r = choose_expiry(maker->options->expires, expires, reterr);
        if (r < 0)
                return r;
        r = choose_deadline(maker->options->progress_deadline, &deadline, reterr);
        if (r < 0)
                return r;
        keys = split_key_list(maker->options->next_keys);
        if (!keys && maker->options->next_keys)
                return -ENOMEM;
        json = json_pack("{s:i, s:s, s:I, s:s, s:O, s:O*, s:O*, s:O*}", "format", 1, "fleet",
                         maker->options->fleet, "number", number, "expires", expires, "files",
                         maker->files, "images", maker->images, "keys", keys,
                         "progressDeadlineSeconds", deadline);
        *ret = json ? json_to_text(json, JSON_INDENT(1)) : NULL;
        return *ret ? 0 : -ENOMEM;
}

static int sign_index_text(const char *key_file, const char *text, char ret[],
                           uint8_t ret_key[ED25519_KEY_SIZE], Error *reterr) {
        uint8_t signature[ED25519_SIGNATURE_SIZE];
        cleanup_free char *pem = NULL;
        size_t length;
        int r = read_file_at(AT_FDCWD, key_file, PEM_FILE_BYTES_MAX, &pem, &length);

        if (r >= 0)
                r = ed25519_sign(pem, text, strlen(text), signature, ret_key, reterr);
        if (pem)
                explicit_bzero(pem, length);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", key_file);
        base64_encode(signature, sizeof(signature), ret);
        return 0;
}

/* The index is written last: until then, nothing has changed for nodes that read it. */
static int write_signed_index(const IndexMaker *maker, Error *reterr) {
        cleanup_with(source_index_done) SourceIndex index = { 0 };
        cleanup_free char *text = NULL;
        char signature[ED25519_SIGNATURE_SIZE * 2], key_text[ED25519_KEY_SIZE * 2];
        uint8_t key[ED25519_KEY_SIZE];
        int r = make_index_text(maker, &text, reterr);

        if (r < 0)
                return r;
        r = source_index_parse(text, strlen(text), SOURCE_FILE_BYTES_MAX, &index, reterr);
        if (r < 0)
                return r;
        r = sign_index_text(maker->options->key, text, signature, key, reterr);
        if (r < 0)
                return r;
        index_images_maker_explain(maker->images_maker, &index);
        if (maker->options->check) {
                printf("index %lld of the fleet %s would have %zu files and %zu images; nothing "
                       "was written\n",
                       (long long) index.number, index.fleet, index.files.n, index.images.n);
                return 0;
        }
        r = write_file_atomic_at(maker->to_fd, "index.json.sig", signature, strlen(signature),
                                 0644);
        if (r < 0)
                return error_prefixf(reterr, r, "index.json.sig");
        r = write_file_atomic_at(maker->to_fd, "index.json", text, strlen(text), 0644);
        if (r < 0)
                return error_prefixf(reterr, r, "index.json");
        base64_encode(key, sizeof(key), key_text);
        printf("index %lld of the fleet %s: %zu files, %zu images, signed with the key of %s\n",
               (long long) index.number, index.fleet, index.files.n, index.images.n, key_text);
        return index_images_maker_finish(maker->images_maker, &index, text, reterr);
}

static int make_signed_index(IndexMaker *maker, Error *reterr) {
        char *const *words = maker->options->words;
        int r;

        r = maker->from_fd = open_source_argument(words[1], false, reterr);
        if (r < 0)
                return r;
        r = maker->to_fd = open_source_argument(words[2], !maker->options->check, reterr);
        if (r == -ENOENT && maker->options->check)
                error_done(reterr);
        else if (r < 0)
                return r;
        if (!maker->options->check) {
                r = maker->blobs_fd = open_directory_at(maker->to_fd, "sha256", 0755);
                if (r < 0)
                        return error_prefixf(reterr, r, "sha256");
        }
        r = read_index_before(maker, reterr);
        if (r >= 0)
                r = index_images_maker_new(maker->options, maker->to_fd, &maker->before,
                                           &maker->images_maker, reterr);
        if (r >= 0)
                r = add_files_to_index(maker, reterr);
        if (r >= 0)
                r = index_images_maker_collect(maker->images_maker, &maker->images, reterr);
        return r < 0 ? r : write_signed_index(maker, reterr);
}

static int sign_source(const Options *options) {
        cleanup_with(index_maker_done)
                IndexMaker maker = { options, -EBADF, -EBADF, -EBADF, .files = json_array() };
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (options->n_words != 3 || !options->key || !options->fleet)
                return fail_usage("sign needs --key, --fleet, the directory of the manifests, and "
                                  "that of the index");
        r = make_signed_index(&maker, &error);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}

/* ---- verify ---- */

static int verify_index_files(int dir_fd, const SourceIndex *index, Error *reterr) {
        for (size_t i = 0; i < index->files.n; i++) {
                const SourceIndexFile *file = &index->files.items[i];
                cleanup_free char *path = path_join("sha256", file->sha256), *data = NULL;
                char sha256[SHA256_HEX_SIZE];
                size_t length = 0;
                int r = path ? read_file_at(dir_fd, path, SOURCE_FILE_BYTES_MAX, &data, &length)
                             : -ENOMEM;

                if (r < 0)
                        return error_prefixf(reterr, r, "%s", file->name);
                sha256_hex(data, length, sha256);
                if (length != file->size || !streq(sha256, file->sha256))
                        return error_setf(reterr, EBADMSG,
                                          "%s: does not match its digest in the index", file->name);
                r = read_manifest_to_sign(file->name, data, length, NULL, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int split_keys(const char *text, char ***ret, Error *reterr) {
        cleanup_json json_t *list = split_key_list(text);
        uint8_t key[ED25519_KEY_SIZE];
        json_t *item;
        size_t i;

        if (!list)
                return -ENOMEM;
        json_array_foreach(list, i, item) {
                if (ed25519_key_parse(strna(json_string_value(item)), key) < 0)
                        return error_setf(reterr, EINVAL,
                                          "--keys: must be public keys of Ed25519 in base64");
                if (strv_append(ret, json_string_value(item)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int verify_source_directory(const Options *options, int dir_fd, SourceIndex *index,
                                   Error *reterr) {
        cleanup_free char *text = NULL, *signature = NULL;
        cleanup_strv char **keys = NULL;
        const SourceIndexKnown nothing = { 0 };
        size_t length = 0, signature_length = 0;
        int r = split_keys(options->keys, &keys, reterr);

        if (r < 0)
                return r;
        r = read_file_at(dir_fd, "index.json", SOURCE_INDEX_BYTES_MAX, &text, &length);
        if (r < 0)
                return error_prefixf(reterr, r, "index.json");
        r = read_file_at(dir_fd, "index.json.sig", SOURCE_SIGNATURE_BYTES_MAX, &signature,
                         &signature_length);
        if (r < 0)
                return error_prefixf(reterr, r, "index.json.sig");
        r = source_index_verify(text, length, signature, signature_length, keys, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "the index");
        r = source_index_parse(text, length, SOURCE_FILE_BYTES_MAX, index, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "the index");
        r = source_index_check(index, "", &nothing, options->fleet ? options->fleet : index->fleet,
                               now_realtime_usec(), reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "the index");
        r = verify_index_files(dir_fd, index, reterr);
        return r < 0 ? r : index_images_verify(dir_fd, index, reterr);
}

static int verify_source(const Options *options) {
        cleanup_with(source_index_done) SourceIndex index = { 0 };
        cleanup_error Error error = ERROR_NULL;
        cleanup_close int fd = -EBADF;
        char expires[RFC3339_SIZE];
        int r;

        if (options->n_words != 2 || !options->keys)
                return fail_usage("verify needs --keys and the directory of the index");
        r = fd = open_source_argument(options->words[1], false, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = verify_source_directory(options, fd, &index, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        printf("index %lld of the fleet %s, which expires at %s: %zu files, %zu images, all as "
               "they "
               "were signed\n",
               (long long) index.number, index.fleet, format_rfc3339(expires, index.expires),
               index.files.n, index.images.n);
        return STATUS_OK;
}

/* ---- status ---- */

/* "source" or "staticPodURL" for the conditions "mainstay.io/SourceFailed" and so on; NULL: another
 * condition. */
static const char *find_condition_source(const json_t *condition) {
        static const char *const names[] = { "staticPodURL", "source", "report" };
        const char *type = strna(json_text(condition, "type"));

        if (strncmp(type, NODE_CONDITION_PREFIX, strlen(NODE_CONDITION_PREFIX)) != 0)
                return NULL;
        type += strlen(NODE_CONDITION_PREFIX);
        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                if (strncasecmp(type, names[i], strlen(names[i])) == 0 &&
                    streq(type + strlen(names[i]), "Failed"))
                        return names[i];
        return NULL;
}

static void write_source_row(const json_t *condition, FILE *out, void *userdata) {
        const char *since = json_text(condition, "lastTransitionTime");
        char age[DURATION_SIZE];

        fprintf(out, "%s\t%s\t%s\t", find_condition_source(condition),
                strna(json_text(condition, "reason")),
                since ? format_age(age, since, now_realtime_usec()) : "<none>");
        write_quoted(strna(json_text(condition, "message")), out);
        fputc('\n', out);
}

/* Polls the agent until its work is complete. */
static int wait_for_agent(const Options *options, const char *path, json_t **ret, Error *reterr) {
        for (int i = 0; i < BUSY_ASKED_MAX; i++) {
                int r = client_get_json(options->socket, path, ret, reterr);

                if (r < 0 || !json_is_true(json_object_get(*ret, "isBusy")))
                        return r;
                json_decref(*ret);
                *ret = NULL;
                (void) usleep(BUSY_DELAY_USEC);
        }
        return error_setf(reterr, ETIMEDOUT, "the agent has not answered in time");
}

static void write_secret_row(const json_t *secret, FILE *out, void *userdata) {
        const char *names = json_text(secret, "encryptedFor");
        json_t *key;
        size_t i;

        fprintf(out, "%s/%s\t", strna(json_text(secret, "namespace")),
                strna(json_text(secret, "name")));
        json_array_foreach(json_object_get(secret, "keys"), i, key)
                fprintf(out, "%s%s", i > 0 ? "," : "", strna(json_string_value(key)));
        fputc('\t', out);
        write_quoted(names && *names ? names : "<not named>", out);
        fprintf(out, "\t%s\t", json_is_true(json_object_get(secret, "canOpen")) ? "yes" : "no");
        write_quoted(strna(json_text(secret, "error")), out);
        fputc('\n', out);
}

/* Shows the encrypted Secrets of the index in use and of staticPodURL. */
static int show_encrypted_secrets(const Options *options, Error *reterr) {
        cleanup_json json_t *found = NULL, *rows = json_array();
        Columns columns = COLUMNS_TABLE;
        json_t *secret;
        size_t i;
        int r = wait_for_agent(options, "/encryptedsecrets", &found, reterr);

        if (r < 0)
                return r;
        json_array_foreach(json_object_get(found, "items"), i, secret)
                if (!streq(strna(json_text(secret, "source")),
                           object_source_names[OBJECT_SOURCE_FILE]))
                        (void) json_array_append(rows, secret);
        if (json_array_size(rows) == 0)
                return 0;
        putchar('\n');
        return print_rows(&columns, "SECRET\tENCRYPTED KEYS\tFOR\tTHIS NODE\tMESSAGE\n", rows,
                          write_secret_row, NULL);
}

static int show_source_status(const Options *options) {
        cleanup_json json_t *node = NULL, *rows = json_array();
        cleanup_error Error error = ERROR_NULL;
        Columns columns = COLUMNS_TABLE;
        json_t *condition;
        size_t i;
        int r = client_get_json(options->socket, "/node", &node, &error);

        if (r < 0)
                return fail_with_error(r, &error);
        json_array_foreach(json_at(node, "status", "conditions"), i, condition) {
                if (find_condition_source(condition))
                        (void) json_array_append(rows, condition);
        }
        if (json_array_size(rows) == 0) {
                fputs("No sources configured\n", stderr);
                return STATUS_OK;
        }
        r = print_rows(&columns, "SOURCE\tSTATUS\tSINCE\tMESSAGE\n", rows, write_source_row, NULL);
        if (r >= 0)
                r = show_encrypted_secrets(options, &error);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}

/* ---- identity ---- */

static int ignore_identity_reply(const char *data, size_t length, void *userdata) {
        return 0;
}

/* The recipient alone is on standard output, so that it can be appended to a file. */
static int print_recipients(const json_t *identity) {
        const json_t *recipients = json_object_get(identity, "recipients");
        const char *problem = json_text(identity, "error");
        json_t *recipient;
        size_t i;

        if (problem) {
                cleanup_error Error error = ERROR_NULL;

                return fail_with_error(error_setf(&error, EIO, "%s", problem), &error);
        }
        json_array_foreach(recipients, i, recipient) {
                if (i == 0)
                        puts(strna(json_string_value(recipient)));
                else
                        fprintf(stderr,
                                "%s also opens what was encrypted for it, until 'mainstay source "
                                "identity --remove-old'\n",
                                strna(json_string_value(recipient)));
        }
        if (!json_is_true(json_object_get(identity, "isSealed")))
                fputs("The identity is not sealed on disk, as secretsAtRest permits\n", stderr);
        return STATUS_OK;
}

static int show_identity(const Options *options) {
        const char *path = options->rotate       ? "/identity?action=rotate"
                           : options->remove_old ? "/identity?action=remove-old"
                                                 : "/identity?action=make";
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *identity = NULL;
        int r;

        if (options->rotate && options->remove_old)
                return fail_usage("--rotate and --remove-old exclude each other");
        r = client_request(options->socket, "POST", path, ignore_identity_reply, NULL, &error);
        if (r >= 0)
                r = wait_for_agent(options, "/identity", &identity, &error);
        return r < 0 ? fail_with_error(r, &error) : print_recipients(identity);
}

int run_source(const Options *options) {
        static const char *const verbs[] = { "sign", "verify", "status", "identity", "report" };
        const char *verb = options->n_words > 0 ? options->words[0] : "status";

        if (streq(verb, "sign"))
                return sign_source(options);
        if (streq(verb, "verify"))
                return verify_source(options);
        if (streq(verb, "report"))
                return show_reports(options);
        if (streq(verb, "identity") && options->n_words == 1)
                return show_identity(options);
        if (streq(verb, "status") && options->n_words <= 1)
                return show_source_status(options);
        return fail_unknown("command", verb, verbs, N_ELEMENTS(verbs));
}
