/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/secrets/secret-opener.h"

#include "agent/secrets/credential.h"
#include "agent/secrets/opening-protocol.h"
#include "common/array.h"
#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/list.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/text.h"
#include "common/utf8.h"

#define OPEN_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define RETRY_USEC        (10 * USEC_PER_SEC)
#define OUTPUT_BYTES_MAX  (2 * (size_t) OPENING_BYTES_MAX)

enum {
        CHILDREN_MAX = 4
};

typedef enum SecretState {
        SECRET_WAITING, /* waits for its turn, or for the node's identities */
        SECRET_OPENING,
        SECRET_OPEN,
        SECRET_OPENABLE, /* only checked; the values have been erased */
        SECRET_FAILED,
        N_SECRET_STATES,
} SecretState;

static const char *const secret_state_names[N_SECRET_STATES] = {
        [SECRET_WAITING] = "waiting",   [SECRET_OPENING] = "opening", [SECRET_OPEN] = "open",
        [SECRET_OPENABLE] = "openable", [SECRET_FAILED] = "failed",
};

typedef struct OpenedSecret OpenedSecret;
struct OpenedSecret {
        OpenedSecret *next;
        SecretOpener *opener;
        SecretState state;
        DataObject *object; /* a copy; its values are replaced by decrypted ones */
        Child *child;       /* decrypts a credential */
        size_t value;       /* index of the credential that is being decrypted */
        bool is_check;      /* no pod needs it */
        bool is_alone; /* decrypting several Secrets together has failed, possibly because of this
                        * one */
        Error error;
        uint64_t failed_at; /* boot time */
};

typedef struct BatchEntry {
        OpenedSecret *secret; /* NULL: the manifests no longer contain it */
        size_t n_values;
} BatchEntry;

/* One process decrypts the age values of these Secrets. */
typedef struct SecretBatch SecretBatch;
struct SecretBatch {
        SecretBatch *next;
        SecretOpener *opener;
        Child *child;
        BatchEntry *entries;
        size_t n_entries;
        size_t n_values;
        Buffer values; /* values in the request */
};

struct SecretOpener {
        SecretOpenerConfig config;
        OpenedSecret *secrets;
        SecretBatch *batches;
        size_t n_children;
        sd_event_source *turn_source; /* starts pending work and reports results */
        bool has_ended; /* a Secret was opened, or has failed, since the last report */
};

/* ---- Secrets ---- */

static OpenedSecret *opened_secret_free(OpenedSecret *secret) {
        if (!secret)
                return NULL;
        list_foreach(batch, secret->opener->batches)
                for (size_t i = 0; i < batch->n_entries; i++)
                        if (batch->entries[i].secret == secret)
                                batch->entries[i].secret = NULL;
        secret->opener->n_children -= secret->child != NULL;
        child_free(secret->child);
        data_object_free(secret->object);
        error_done(&secret->error);
        free(secret);
        return NULL;
}
DEFINE_CLEANUP(OpenedSecret *, opened_secret_free)

static ObjectKey key_of(const DataObject *object) {
        return (ObjectKey){ .source = object->metadata.source,
                            .kind = OBJECT_SECRET,
                            .namespace = object->metadata.namespace,
                            .name = object->metadata.name };
}

static bool has_content_of(const OpenedSecret *secret, const DataObject *object) {
        return streq_ptr(secret->object->sealed_digest, object->sealed_digest);
}

static void remove_secret(SecretOpener *opener, OpenedSecret *secret) {
        LIST_REMOVE(opener->secrets, secret);
        opened_secret_free(secret);
}

static OpenedSecret *find_secret(const SecretOpener *opener, const DataObject *object) {
        const ObjectKey key = key_of(object);

        list_foreach(secret, opener->secrets)
                if (object_key_matches(&key, secret->object))
                        return secret;
        return NULL;
}

static int add_secret(SecretOpener *opener, const DataObject *object, OpenedSecret **ret) {
        cleanup_with(opened_secret_freep) OpenedSecret *secret = calloc(1, sizeof(*secret));
        int r;

        if (!secret)
                return -ENOMEM;
        secret->opener = opener;
        r = data_object_copy_secret(object, &secret->object);
        if (r < 0)
                return r;
        LIST_PREPEND(opener->secrets, secret);
        *ret = TAKE_PTR(secret);
        return 0;
}

/* ---- the end of an opening ---- */

static void schedule_turn(SecretOpener *opener) {
        (void) sd_event_source_set_enabled(opener->turn_source, SD_EVENT_ONESHOT);
}

static void set_waiting(OpenedSecret *secret) {
        secret->state = SECRET_WAITING;
        schedule_turn(secret->opener);
}

static void forget_opened_values(DataObject *object) {
        for (size_t i = 0; i < object->values.n; i++) {
                ObjectValue *value = &object->values.items[i];

                if (value->seal != OBJECT_VALUE_CLEAR)
                        continue;
                explicit_bzero(value->bytes, value->length);
                value->length = 0;
        }
}

/* The message is kept for every pod that needs the Secret, but is reported only once. */
static void fail_secret(OpenedSecret *secret, int r, Error *error) {
        cleanup_free char *label = data_object_label(secret->object);
        bool is_known;

        secret->state = SECRET_FAILED;
        if (secret->is_check)
                forget_opened_values(secret->object);
        schedule_turn(secret->opener);
        (void) error_setf(error, -r, "%s", strerror(-r));
        is_known = streq_ptr(secret->error.message, error->message);
        error_move(&secret->error, error);
        secret->failed_at = now_boottime_usec();
        if (is_known || secret->is_check)
                return;
        log_warning("Cannot open %s: %s", strna(label), strna(secret->error.message));
        secret->opener->has_ended = true;
}

static void succeed_secret(OpenedSecret *secret) {
        error_done(&secret->error);
        if (secret->is_check) {
                secret->state = SECRET_OPENABLE;
                forget_opened_values(secret->object);
                return;
        }
        secret->state = SECRET_OPEN;
        secret->opener->has_ended = true;
        schedule_turn(secret->opener);
}

static int replace_value(ObjectValue *value, const char *bytes, size_t length) {
        char *copy = malloc(length + 1);

        if (!copy)
                return -ENOMEM;
        memcpy(copy, bytes, length);
        copy[length] = '\0';
        free(value->bytes);
        value->bytes = copy;
        value->length = length;
        value->seal = OBJECT_VALUE_CLEAR;
        return 0;
}

/* ---- values of age ---- */

static size_t find_sealed_value(const DataObject *object, ObjectValueSeal seal, size_t i) {
        while (i < object->values.n && object->values.items[i].seal != seal)
                i++;
        return i;
}

#define object_foreach_age_value(value, object)                            \
        for (const ObjectValue *value = (object)->values.items;            \
             value < (object)->values.items + (object)->values.n; value++) \
                if (value->seal == OBJECT_VALUE_AGE)

static bool awaits_age(const OpenedSecret *secret) {
        return secret->state == SECRET_WAITING &&
               find_sealed_value(secret->object, OBJECT_VALUE_AGE, 0) < secret->object->values.n;
}

static SecretBatch *secret_batch_free(SecretBatch *batch) {
        if (!batch)
                return NULL;
        if (batch->child) {
                batch->opener->n_children--;
                child_free(batch->child);
        }
        buffer_done(&batch->values);
        free(batch->entries);
        free(batch);
        return NULL;
}
DEFINE_CLEANUP(SecretBatch *, secret_batch_free)

typedef struct OpenedValues {
        const char *at, *end;
} OpenedValues;

/* 0 with the next value, or -EKEYREJECTED with the helper's message; -EBADMSG: none is left.
 */
static int take_opened_value(OpenedValues *from, const char **ret, size_t *ret_length,
                             Error *reterr) {
        OpenedHeader header;
        char message[OPENING_MESSAGE_MAX + 1];

        if ((size_t) (from->end - from->at) < sizeof(header))
                return -EBADMSG;
        memcpy(&header, from->at, sizeof(header));
        from->at += sizeof(header);
        if (header.length > (size_t) (from->end - from->at) ||
            (header.error && header.length > OPENING_MESSAGE_MAX))
                return -EBADMSG;
        *ret = from->at;
        *ret_length = header.length;
        from->at += header.length;
        if (!header.error)
                return 0;
        memcpy(message, *ret, header.length);
        message[header.length] = '\0';
        utf8_sanitize(message);
        return error_setf(reterr, EKEYREJECTED, "%s", message);
}

/* The Secret is NULL, or gets its values. -EKEYREJECTED with a message if one cannot be decrypted;
 * -EBADMSG: the output ends early. */
static int take_secret(OpenedValues *from, const BatchEntry *entry, Error *reterr) {
        OpenedSecret *secret = entry->secret;
        size_t place = 0;
        int result = 0;

        for (size_t i = 0; i < entry->n_values; i++, place++) {
                cleanup_error Error error = ERROR_NULL;
                const char *bytes;
                size_t length;
                int r = take_opened_value(from, &bytes, &length, &error);

                if (r == -EBADMSG)
                        return r;
                if (!secret)
                        continue;
                place = find_sealed_value(secret->object, OBJECT_VALUE_AGE, place);
                if (r >= 0)
                        r = replace_value(&secret->object->values.items[place], bytes, length);
                if (r < 0 && result >= 0) {
                        result = error_prefixf(&error, r, "%s",
                                               secret->object->values.items[place].key);
                        error_move(reterr, &error);
                }
        }
        return result;
}

/* The process has crashed or was killed. One Secret of a batch must not affect the others. */
static void end_failed_batch(SecretBatch *batch, size_t first, const Error *error) {
        for (size_t i = first; i < batch->n_entries; i++) {
                OpenedSecret *secret = batch->entries[i].secret;
                cleanup_error Error copy = ERROR_NULL;

                if (!secret)
                        continue;
                secret->is_alone = true;
                if (batch->n_entries > 1) {
                        set_waiting(secret);
                        continue;
                }
                (void) error_setf(&copy, EKEYREJECTED, "%s", error_message(error, -EBADMSG));
                fail_secret(secret, -EKEYREJECTED, &copy);
        }
}

static void end_batch(SecretBatch *batch, const ChildResult *result) {
        OpenedValues values = { result->output, result->output + result->output_length };
        cleanup_error Error failure = ERROR_NULL;
        size_t i = 0;
        int r = child_explain(result, "mainstay-secret", &failure);

        for (; r >= 0 && i < batch->n_entries; i++) {
                OpenedSecret *secret = batch->entries[i].secret;
                cleanup_error Error error = ERROR_NULL;

                r = take_secret(&values, &batch->entries[i], &error);
                if (r == -EBADMSG)
                        break;
                if (secret && r < 0)
                        fail_secret(secret, r, &error);
                else if (secret)
                        set_waiting(secret); /* there may be a credential */
                r = 0;
        }
        if (r == -EBADMSG)
                (void) error_setf(&failure, EBADMSG,
                                  "the output of mainstay-secret is not complete");
        if (r < 0)
                end_failed_batch(batch, i, &failure);
}

static void on_batch_done(const ChildResult *result, void *userdata) {
        SecretBatch *batch = userdata;
        SecretOpener *opener = batch->opener;

        batch->child = NULL;
        opener->n_children--;
        LIST_REMOVE(opener->batches, batch);
        end_batch(batch, result);
        secret_batch_free(batch);
        schedule_turn(opener);
}

/* 1, or 0 if the request would be too large with this Secret. */
static int add_secret_to_batch(SecretBatch *batch, OpenedSecret *secret) {
        const DataObject *object = secret->object;
        size_t bytes = batch->values.length, n = 0;
        BatchEntry *entry;

        object_foreach_age_value(value, object) {
                bytes += sizeof(uint32_t) + value->length;
                n++;
        }
        if (batch->n_entries > 0 &&
            (secret->is_alone || batch->entries[0].secret->is_alone || bytes > OPENING_BYTES_MAX ||
             batch->n_values + n > OPENING_VALUES_MAX))
                return 0;
        object_foreach_age_value(value, object) {
                uint32_t length = (uint32_t) value->length;

                if (buffer_append(&batch->values, &length, sizeof(length), SIZE_MAX) < 0 ||
                    buffer_append(&batch->values, value->bytes, value->length, SIZE_MAX) < 0)
                        return -ENOMEM;
        }
        entry = ARRAY_APPEND(batch->entries, batch->n_entries);
        if (!entry)
                return -ENOMEM;
        *entry = (BatchEntry){ secret, n };
        batch->n_values += n;
        return 1;
}

static int open_request(const SecretBatch *batch, const AgeKey *keys, size_t n) {
        const OpeningRequest header = { .n_identities = (uint32_t) n,
                                        .n_values = (uint32_t) batch->n_values };
        cleanup_with(buffer_erase) Buffer request = { 0 };

        if (!buffer_reserve(&request, sizeof(header) + n * sizeof(*keys) + batch->values.length) ||
            buffer_append(&request, &header, sizeof(header), SIZE_MAX) < 0 ||
            buffer_append(&request, keys, n * sizeof(*keys), SIZE_MAX) < 0 ||
            buffer_append(&request, batch->values.data, batch->values.length, SIZE_MAX) < 0)
                return -ENOMEM;
        return memfd_open("secret", request.data, request.length);
}

static int start_helper(SecretBatch *batch, const AgeKey *keys, size_t n, Error *reterr) {
        const SecretOpenerConfig *config = &batch->opener->config;
        cleanup_close int request = open_request(batch, keys, n);
        cleanup_free char *helper = strdup(config->helper_path);

        if (request < 0 || !helper)
                return request < 0 ? request : -ENOMEM;
        return child_spawn(config->event,
                           &(ChildSpec){ .argv = (char *[]){ helper, NULL },
                                         .output_max = OUTPUT_BYTES_MAX,
                                         .timeout_usec = OPEN_TIMEOUT_USEC,
                                         .input_fd = request },
                           on_batch_done, batch, &batch->child, reterr);
}

static int collect_waiting_secrets(SecretOpener *opener, SecretBatch *batch) {
        int r = 0;

        list_foreach(secret, opener->secrets) {
                if (!awaits_age(secret))
                        continue;
                r = add_secret_to_batch(batch, secret);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Starts one process for all waiting Secrets. */
static int start_batch(SecretOpener *opener, const AgeKey *keys, size_t n, Error *reterr) {
        cleanup_with(secret_batch_freep) SecretBatch *batch = calloc(1, sizeof(*batch));
        int r;

        if (!batch)
                return -ENOMEM;
        batch->opener = opener;
        r = collect_waiting_secrets(opener, batch);
        if (r >= 0)
                r = start_helper(batch, keys, n, reterr);
        if (r < 0)
                return r;
        opener->n_children++;
        for (size_t i = 0; i < batch->n_entries; i++)
                batch->entries[i].secret->state = SECRET_OPENING;
        buffer_done(&batch->values);
        LIST_PREPEND(opener->batches, batch);
        TAKE_PTR(batch);
        return 0;
}

static void fail_age_values(SecretOpener *opener, int result, const Error *cause) {
        list_foreach(secret, opener->secrets) {
                const DataObject *object = secret->object;
                cleanup_error Error error = ERROR_NULL;

                if (!awaits_age(secret))
                        continue;
                (void) error_setf(
                        &error, -result, "%s: %s",
                        object->values.items[find_sealed_value(object, OBJECT_VALUE_AGE, 0)].key,
                        error_message(cause, result));
                fail_secret(secret, result, &error);
        }
}

static bool is_age_awaited(const SecretOpener *opener) {
        list_foreach(secret, opener->secrets)
                if (awaits_age(secret))
                        return true;
        return false;
}

static void open_age_values(SecretOpener *opener) {
        while (opener->n_children < CHILDREN_MAX && is_age_awaited(opener)) {
                cleanup_error Error error = ERROR_NULL;
                const AgeKey *keys;
                size_t n;
                int r = key_file_get(opener->config.identity, &keys, &n, &error);

                if (r == -EAGAIN)
                        return;
                if (r >= 0)
                        r = start_batch(opener, keys, n, &error);
                if (r < 0)
                        fail_age_values(opener, r, &error);
        }
}

/* ---- credentials of systemd ---- */

static void on_credential_opened(const ChildResult *result, void *userdata) {
        OpenedSecret *secret = userdata;
        ObjectValue *value = &secret->object->values.items[secret->value];
        cleanup_error Error error = ERROR_NULL;
        int r = credential_check_opened(result, &error);

        secret->child = NULL;
        secret->opener->n_children--;
        if (r >= 0)
                r = replace_value(value, result->output, result->output_length);
        if (r < 0)
                fail_secret(secret, error_prefixf(&error, r, "%s", value->key), &error);
        else
                set_waiting(secret); /* there may be another one */
}

static int start_credential(OpenedSecret *secret, Error *reterr) {
        const DataObject *object = secret->object;
        const ObjectValue *value = &object->values.items[secret->value];
        cleanup_free char *name = secret_credential_name(object->metadata.namespace,
                                                         object->metadata.name, value->key);
        int r = name ? credential_open_start(secret->opener->config.event, name, value->bytes,
                                             value->length, on_credential_opened, secret,
                                             &secret->child, reterr)
                     : -ENOMEM;

        return r < 0 ? error_prefixf(reterr, r, "%s", value->key) : 0;
}

/* The Secret has no age values. */
static void open_credentials(OpenedSecret *secret) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        secret->value = find_sealed_value(secret->object, OBJECT_VALUE_CREDENTIAL, 0);
        if (secret->value == secret->object->values.n) {
                succeed_secret(secret);
                return;
        }
        if (secret->opener->n_children == CHILDREN_MAX)
                return;
        r = start_credential(secret, &error);
        if (r < 0) {
                fail_secret(secret, r, &error);
                return;
        }
        secret->state = SECRET_OPENING;
        secret->opener->n_children++;
}

/* ---- turns ---- */

static int on_opener_turn(sd_event_source *source, void *userdata) {
        SecretOpener *opener = userdata;

        open_age_values(opener);
        list_foreach(secret, opener->secrets)
                if (secret->state == SECRET_WAITING && !awaits_age(secret))
                        open_credentials(secret);
        if (opener->has_ended) {
                opener->has_ended = false;
                opener->config.on_opened(opener->config.userdata);
        }
        return 0;
}

static int explain_unopened(const OpenedSecret *secret, Error *reterr) {
        return error_setf(reterr, EKEYREJECTED, "%s", strna(secret->error.message));
}

static bool is_in_progress(const OpenedSecret *secret) {
        return secret->state == SECRET_WAITING || secret->state == SECRET_OPENING;
}

/* The Secret with this content. If it is new, or was only checked, so that no values were kept that
 * a pod could use, its decryption or check starts now. */
static int get_secret(SecretOpener *opener, const DataObject *object, bool is_check,
                      OpenedSecret **ret) {
        OpenedSecret *secret = find_secret(opener, object);

        if (secret && (!has_content_of(secret, object) || (secret->is_check && !is_check))) {
                remove_secret(opener, secret);
                secret = NULL;
        }
        if (!secret) {
                int r = add_secret(opener, object, &secret);

                if (r < 0)
                        return r;
                secret->is_check = is_check;
                schedule_turn(opener);
        }
        *ret = secret;
        return 0;
}

int secret_opener_check(SecretOpener *opener, const DataObject *object, Error *reterr) {
        OpenedSecret *secret;
        int r = get_secret(opener, object, /* is_check= */ true, &secret);

        if (r < 0)
                return r;
        if (secret->error.message)
                return explain_unopened(secret, reterr);
        return is_in_progress(secret) ? error_setf(reterr, EAGAIN, "is being decrypted") : 0;
}

int secret_opener_open(SecretOpener *opener, const DataObject *object, const DataObject **ret,
                       Error *reterr) {
        OpenedSecret *secret;
        int r = get_secret(opener, object, /* is_check= */ false, &secret);

        if (r < 0)
                return r;
        if (secret->state == SECRET_FAILED && now_boottime_usec() - secret->failed_at >= RETRY_USEC)
                set_waiting(secret);
        if (secret->error.message) /* even while it is retried */
                return explain_unopened(secret, reterr);
        if (secret->state != SECRET_OPEN)
                return error_setf(reterr, EAGAIN, "is being decrypted");
        *ret = secret->object;
        return 0;
}

/* ---- the rest of the interface ---- */

void secret_opener_retry(SecretOpener *opener) {
        list_foreach_safe(secret, opener->secrets)
                if (secret->state == SECRET_OPENABLE)
                        remove_secret(opener, secret);
                else if (secret->state == SECRET_FAILED)
                        set_waiting(secret);
        schedule_turn(opener); /* for those that wait for the identity */
}

void secret_opener_sweep(SecretOpener *opener,
                         const DataObject *(*find)(const ObjectKey *key, void *userdata),
                         void *userdata) {
        list_foreach_safe(secret, opener->secrets) {
                const ObjectKey key = key_of(secret->object);
                const DataObject *object = find(&key, userdata);

                if (!object || !has_content_of(secret, object))
                        remove_secret(opener, secret);
        }
}

void secret_opener_dump(const SecretOpener *opener, FILE *out) {
        dump_section(out, "Encrypted Secrets");
        list_foreach(secret, opener->secrets) {
                dump_line(out, 0, "Secret %s/%s: %s", secret->object->metadata.namespace,
                          secret->object->metadata.name, secret_state_names[secret->state]);
                if (secret->error.message)
                        dump_line(out, 1, "error: %s", secret->error.message);
        }
}

int secret_opener_new(const SecretOpenerConfig *config, SecretOpener **ret) {
        cleanup_with(secret_opener_freep) SecretOpener *opener = calloc(1, sizeof(*opener));
        int r;

        if (!opener)
                return -ENOMEM;
        opener->config = *config;
        r = event_add_disabled_defer(config->event, &opener->turn_source, SD_EVENT_PRIORITY_NORMAL,
                                     on_opener_turn, opener);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(opener);
        return 0;
}

SecretOpener *secret_opener_free(SecretOpener *opener) {
        if (!opener)
                return NULL;
        while (opener->secrets)
                remove_secret(opener, opener->secrets);
        list_foreach_safe(batch, opener->batches)
                secret_batch_free(batch);
        sd_event_source_disable_unref(opener->turn_source);
        free(opener);
        return NULL;
}
