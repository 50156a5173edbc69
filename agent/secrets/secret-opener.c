/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/secrets/secret-opener.h"

#include "agent/model/json-memfd.h"
#include "agent/secrets/credential.h"
#include "common/base64.h"
#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/json-text.h"
#include "common/list.h"
#include "common/log.h"
#include "common/text.h"

#define OPEN_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define RETRY_USEC        (10 * USEC_PER_SEC)
#define OUTPUT_BYTES_MAX  (2 * OBJECT_BYTES_MAX)

enum {
        OPENED_AT_ONCE_MAX = 4
};

typedef enum SecretState {
        SECRET_WAITING, /* for its turn, or for the identity of the node */
        SECRET_OPENING,
        SECRET_OPEN,
        SECRET_FAILED,
        N_SECRET_STATES,
} SecretState;

static const char *const secret_state_names[N_SECRET_STATES] = {
        [SECRET_WAITING] = "waiting",
        [SECRET_OPENING] = "opening",
        [SECRET_OPEN] = "open",
        [SECRET_FAILED] = "failed",
};

typedef struct OpenedSecret OpenedSecret;
struct OpenedSecret {
        OpenedSecret *next;
        SecretOpener *opener;
        SecretState state;
        DataObject *object; /* a copy; its values are opened one after another */
        Child *child;
        size_t value; /* of a credential: the one that is being opened */
        Error error;
        uint64_t failed_at; /* boot time */
};

struct SecretOpener {
        SecretOpenerConfig config;
        OpenedSecret *secrets;
        size_t n_opening;
        sd_event_source *turn_source; /* starts what waits, and reports what has ended */
        bool has_ended;               /* since the last report */
};

/* ---- Secrets ---- */

static OpenedSecret *opened_secret_free(OpenedSecret *secret) {
        if (!secret)
                return NULL;
        if (secret->state == SECRET_OPENING)
                secret->opener->n_opening--;
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

/* ---- opening ---- */

static void continue_secret(OpenedSecret *secret);

static void schedule_turn(SecretOpener *opener) {
        (void) sd_event_source_set_enabled(opener->turn_source, SD_EVENT_ONESHOT);
}

static void set_secret_state(OpenedSecret *secret, SecretState state) {
        SecretOpener *opener = secret->opener;

        opener->n_opening -= secret->state == SECRET_OPENING;
        opener->n_opening += state == SECRET_OPENING;
        secret->state = state;
}

static void fail_secret(OpenedSecret *secret, int r, Error *error) {
        cleanup_free char *label = data_object_label(secret->object);
        bool is_known;

        (void) error_setf(error, -r, "%s", strerror(-r));
        is_known = streq_ptr(secret->error.message, error->message);
        error_move(&secret->error, error);
        secret->failed_at = now_boottime_usec();
        if (is_known)
                return;
        log_warning("Cannot open %s: %s", strna(label), strna(secret->error.message));
        secret->opener->has_ended = true;
}

/* The message is kept for each pod that needs the Secret; the same one is reported once. */
static void end_secret(OpenedSecret *secret, int r, Error *error) {
        set_secret_state(secret, r < 0 ? SECRET_FAILED : SECRET_OPEN);
        if (r < 0)
                fail_secret(secret, r, error);
        else {
                error_done(&secret->error);
                secret->opener->has_ended = true;
        }
        schedule_turn(secret->opener);
}

static void replace_value(ObjectValue *value, char *bytes, size_t length) {
        free(value->bytes);
        value->bytes = bytes;
        value->length = length;
        value->seal = OBJECT_VALUE_CLEAR;
}

/* The next value in the output of the helper: its length, a newline, its bytes. */
static int take_value(const char **text, const char *end, ObjectValue *value) {
        const char *start = *text;
        char *number_end;
        unsigned long long length = strtoull(start, &number_end, 10);
        cleanup_free char *bytes = NULL;

        if (number_end == start || number_end >= end || *number_end != '\n' ||
            length > (size_t) (end - number_end - 1))
                return -EBADMSG;
        bytes = calloc(1, (size_t) length + 1);
        if (!bytes)
                return -ENOMEM;
        memcpy(bytes, number_end + 1, (size_t) length);
        *text = number_end + 1 + length;
        replace_value(value, TAKE_PTR(bytes), (size_t) length);
        return 0;
}

static void on_age_opened(const ChildResult *result, void *userdata) {
        OpenedSecret *secret = userdata;
        const char *text = result->output, *end = text + result->output_length;
        cleanup_error Error error = ERROR_NULL;
        int r = child_explain(result, "mainstay-image", &error);

        secret->child = NULL;
        for (size_t i = 0; r >= 0 && i < secret->object->values.n; i++)
                if (secret->object->values.items[i].seal == OBJECT_VALUE_AGE) {
                        r = take_value(&text, end, &secret->object->values.items[i]);
                        if (r < 0)
                                (void) error_setf(&error, -r,
                                                  "the output of mainstay-image is not complete");
                }
        if (r < 0)
                end_secret(secret, r == -ENOMEM ? r : -EKEYREJECTED, &error);
        else
                continue_secret(secret);
}

static json_t *encode_bytes(const void *data, size_t length) {
        cleanup_free char *text = malloc((length + 2) / 3 * 4 + 1);

        if (!text)
                return NULL;
        base64_encode(data, length, text);
        return json_string(text);
}

static int open_helper_request(const DataObject *object, const AgeKey *keys, size_t n) {
        cleanup_json json_t *identities = json_array(), *values = json_array(), *request = NULL;

        for (size_t i = 0; i < n; i++)
                if (json_array_append_new(identities, encode_bytes(keys[i].bytes, AGE_KEY_SIZE)) <
                    0)
                        return -ENOMEM;
        for (size_t i = 0; i < object->values.n; i++) {
                const ObjectValue *value = &object->values.items[i];

                if (value->seal == OBJECT_VALUE_AGE &&
                    json_array_append_new(values,
                                          json_pack("{s:s, s:o}", "name", value->key, "data",
                                                    encode_bytes(value->bytes, value->length))) < 0)
                        return -ENOMEM;
        }
        request = json_pack("{s:O, s:O}", "identities", identities, "values", values);
        return json_memfd_open(request, "secret");
}

static int start_helper(OpenedSecret *secret, const AgeKey *keys, size_t n, Error *reterr) {
        const SecretOpenerConfig *config = &secret->opener->config;
        cleanup_close int request = open_helper_request(secret->object, keys, n);
        cleanup_free char *helper = strdup(config->helper_path);
        char verb[] = "secret";

        if (request < 0 || !helper)
                return request < 0 ? request : -ENOMEM;
        return child_spawn(config->event,
                           &(ChildSpec){ .argv = (char *[]){ helper, verb, NULL },
                                         .output_max = OUTPUT_BYTES_MAX,
                                         .timeout_usec = OPEN_TIMEOUT_USEC,
                                         .input_fd = request },
                           on_age_opened, secret, &secret->child, reterr);
}

static void on_credential_opened(const ChildResult *result, void *userdata) {
        OpenedSecret *secret = userdata;
        ObjectValue *value = &secret->object->values.items[secret->value];
        cleanup_error Error error = ERROR_NULL;
        char *bytes = NULL;
        int r = credential_check_opened(result, &error);

        secret->child = NULL;
        if (r >= 0) {
                bytes = calloc(1, result->output_length + 1);
                r = bytes ? 0 : -ENOMEM;
        }
        if (r < 0) {
                end_secret(secret, error_prefixf(&error, r, "%s", value->key), &error);
                return;
        }
        memcpy(bytes, result->output, result->output_length);
        replace_value(value, bytes, result->output_length);
        continue_secret(secret);
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

static size_t find_sealed_value(const DataObject *object, ObjectValueSeal seal) {
        size_t i = 0;

        while (i < object->values.n && object->values.items[i].seal != seal)
                i++;
        return i;
}

/* 1: nothing is left to be opened; 0: a child does it; -EAGAIN: the identity is not there yet. */
static int start_next_child(OpenedSecret *secret, Error *reterr) {
        const DataObject *object = secret->object;
        size_t i = find_sealed_value(object, OBJECT_VALUE_AGE);
        const AgeKey *keys;
        size_t n;
        int r;

        if (i < object->values.n) {
                r = key_file_get(secret->opener->config.identity, &keys, &n, reterr);
                if (r == -EAGAIN)
                        return r;
                if (r < 0)
                        return error_prefixf(reterr, r, "%s", object->values.items[i].key);
                return start_helper(secret, keys, n, reterr);
        }
        secret->value = find_sealed_value(object, OBJECT_VALUE_CREDENTIAL);
        return secret->value < object->values.n ? start_credential(secret, reterr) : 1;
}

static void continue_secret(OpenedSecret *secret) {
        cleanup_error Error error = ERROR_NULL;
        int r = start_next_child(secret, &error);

        if (r == -EAGAIN)
                set_secret_state(secret, SECRET_WAITING);
        else if (r != 0)
                end_secret(secret, r, &error);
}

static int on_opener_turn(sd_event_source *source, void *userdata) {
        SecretOpener *opener = userdata;

        list_foreach(secret, opener->secrets)
                if (secret->state == SECRET_WAITING && opener->n_opening < OPENED_AT_ONCE_MAX) {
                        set_secret_state(secret, SECRET_OPENING);
                        continue_secret(secret);
                }
        if (opener->has_ended) {
                opener->has_ended = false;
                opener->config.on_opened(opener->config.userdata);
        }
        return 0;
}

static void try_again(OpenedSecret *secret) {
        set_secret_state(secret, SECRET_WAITING);
        schedule_turn(secret->opener);
}

static int explain_unopened(const OpenedSecret *secret, Error *reterr) {
        return error_setf(reterr, EKEYREJECTED, "%s", strna(secret->error.message));
}

int secret_opener_open(SecretOpener *opener, const DataObject *object, const DataObject **ret,
                       Error *reterr) {
        OpenedSecret *secret = find_secret(opener, object);
        int r;

        if (secret && !has_content_of(secret, object)) {
                remove_secret(opener, secret);
                secret = NULL;
        }
        if (!secret) {
                r = add_secret(opener, object, &secret);
                if (r < 0)
                        return r;
                schedule_turn(opener);
        }
        if (secret->state == SECRET_FAILED && now_boottime_usec() - secret->failed_at >= RETRY_USEC)
                try_again(secret);
        if (secret->error.message) /* also while it is tried again */
                return explain_unopened(secret, reterr);
        if (secret->state != SECRET_OPEN)
                return error_setf(reterr, EAGAIN, "is being decrypted");
        *ret = secret->object;
        return 0;
}

/* ---- the rest of the interface ---- */

void secret_opener_retry(SecretOpener *opener) {
        list_foreach(secret, opener->secrets)
                if (secret->state == SECRET_FAILED)
                        try_again(secret);
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
        sd_event_source_disable_unref(opener->turn_source);
        free(opener);
        return NULL;
}
