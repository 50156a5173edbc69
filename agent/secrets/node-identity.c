/* SPDX-License-Identifier: Apache-2.0 */

/* The file: recipients, a line each; then "sealed" and a credential of systemd, or "clear"; its
 * content has the identities, a line each, as age-keygen prints them. */

#include "agent/secrets/node-identity.h"

#include "agent/secrets/credential.h"
#include "common/buffer.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable-write.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/text.h"

#include <fcntl.h>

#define IDENTITY_FILE       "identity"
#define IDENTITY_CREDENTIAL "mainstay.identity"
#define SEALED_LINE         "sealed"
#define CLEAR_LINE          "clear"
#define RETRY_USEC          (10 * USEC_PER_SEC)

enum {
        IDENTITY_KEYS_MAX = 4,
        IDENTITY_FILE_BYTES_MAX = 64 * 1024,
        IDENTITY_FILE_MODE = 0400
};

const char *const identity_action_names[N_IDENTITY_ACTIONS] = {
        [IDENTITY_MAKE] = "make",
        [IDENTITY_ROTATE] = "rotate",
        [IDENTITY_REMOVE_OLD] = "remove-old",
};

typedef enum IdentityState {
        IDENTITY_MISSING,
        IDENTITY_CLOSED, /* the file was read, but not unsealed */
        IDENTITY_OPEN,
        IDENTITY_UNUSABLE,
} IdentityState;

/* Newest first. */
typedef struct IdentityKeys {
        AgeKey keys[IDENTITY_KEYS_MAX];
        size_t n;
} IdentityKeys;

struct NodeIdentity {
        NodeIdentityConfig config;
        char *directory;
        IdentityState state;
        IdentityKeys keys; /* if it is open */
        AgeKey recipients[IDENTITY_KEYS_MAX];
        size_t n_recipients;
        char *sealed;           /* the credential; NULL: it is kept in clear */
        IdentityAction pending; /* once it is open; N_IDENTITY_ACTIONS: none */
        IdentityKeys next;      /* is being written */
        Child *child;
        ForkedTask *write;
        char *error;        /* why it is unusable, or the last change failed */
        uint64_t failed_at; /* boot time */
};

static void erase_keys(IdentityKeys *keys) {
        explicit_bzero(keys->keys, sizeof(keys->keys));
        keys->n = 0;
}

/* ---- the text of the keys ---- */

static int format_keys(const IdentityKeys *keys, Buffer *ret) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < keys->n; i++) {
                char line[AGE_IDENTITY_SIZE];

                age_identity_format(&keys->keys[i], line);
                r = buffer_append(ret, line, strlen(line), SIZE_MAX);
                if (r >= 0)
                        r = buffer_append(ret, "\n", 1, SIZE_MAX);
                explicit_bzero(line, sizeof(line));
        }
        return r;
}

/* Changes 'text'. */
static int parse_keys(char *text, IdentityKeys *ret) {
        IdentityKeys keys = { 0 };
        char *line;

        while ((line = strsep(&text, "\n"))) {
                if (!*line)
                        continue;
                if (keys.n == IDENTITY_KEYS_MAX ||
                    age_identity_parse(line, &keys.keys[keys.n++]) < 0)
                        return -EBADMSG;
        }
        *ret = keys;
        explicit_bzero(&keys, sizeof(keys));
        return ret->n > 0 ? 0 : -EBADMSG;
}

static void set_recipients(NodeIdentity *identity, const IdentityKeys *keys) {
        identity->n_recipients = keys->n;
        for (size_t i = 0; i < keys->n; i++)
                age_identity_recipient(&keys->keys[i], &identity->recipients[i]);
}

/* ---- the state ---- */

static void fail_identity(NodeIdentity *identity, IdentityState state, int r, const Error *error) {
        identity->state = state;
        identity->failed_at = now_boottime_usec();
        identity->pending = N_IDENTITY_ACTIONS;
        (void) text_replace(&identity->error, error_message(error, r));
        log_error("Identity of the node: %s", error_message(error, r));
}

static void change_open_identity(NodeIdentity *identity, IdentityAction action);

static void adopt_keys(NodeIdentity *identity, const IdentityKeys *keys) {
        IdentityAction pending = identity->pending;

        identity->keys = *keys;
        set_recipients(identity, keys);
        identity->state = IDENTITY_OPEN;
        identity->pending = N_IDENTITY_ACTIONS;
        if (pending != N_IDENTITY_ACTIONS)
                change_open_identity(identity, pending);
}

/* ---- reading ---- */

static void on_identity_opened(const ChildResult *result, void *userdata) {
        NodeIdentity *identity = userdata;
        cleanup_error Error error = ERROR_NULL;
        IdentityKeys keys = { 0 };
        int r = credential_check_opened(result, &error);

        identity->child = NULL;
        if (r >= 0) {
                cleanup_free char *text = strdup(result->output);

                r = text ? parse_keys(text, &keys) : -ENOMEM;
                if (text)
                        explicit_bzero(text, result->output_length);
        }
        if (r < 0) {
                (void) error_prefixf(&error, r, "%s/" IDENTITY_FILE " cannot be unsealed",
                                     identity->directory);
                fail_identity(identity, IDENTITY_UNUSABLE, r, &error);
        } else
                adopt_keys(identity, &keys);
        explicit_bzero(&keys, sizeof(keys));
        identity->config.on_changed(identity->config.userdata);
}

static int start_opening(NodeIdentity *identity, Error *reterr) {
        int r = identity->child ? 0
                                : credential_open_start(identity->config.event, IDENTITY_CREDENTIAL,
                                                        identity->sealed, strlen(identity->sealed),
                                                        on_identity_opened, identity,
                                                        &identity->child, reterr);

        if (r >= 0)
                return error_setf(reterr, EAGAIN, "the identity of the node is being unsealed");
        (void) error_prefixf(reterr, r, "%s/" IDENTITY_FILE " cannot be unsealed",
                             identity->directory);
        fail_identity(identity, IDENTITY_UNUSABLE, r, reterr);
        return -EKEYREJECTED;
}

int node_identity_get(NodeIdentity *identity, const AgeKey **ret, size_t *ret_n, Error *reterr) {
        if (identity->state == IDENTITY_UNUSABLE && identity->sealed &&
            now_boottime_usec() - identity->failed_at >= RETRY_USEC)
                identity->state = IDENTITY_CLOSED;
        switch (identity->state) {
        case IDENTITY_MISSING:
                return error_setf(reterr, ENOKEY,
                                  "this node has no identity, which 'mainstay source identity' "
                                  "makes");
        case IDENTITY_CLOSED:
                return start_opening(identity, reterr);
        case IDENTITY_UNUSABLE:
                return error_setf(reterr, EKEYREJECTED, "%s", strna(identity->error));
        case IDENTITY_OPEN:
                break;
        }
        *ret = identity->keys.keys;
        *ret_n = identity->keys.n;
        return 0;
}

/* ---- changes ---- */

static void on_identity_written(int r, void *userdata) {
        NodeIdentity *identity = userdata;
        cleanup_error Error error = ERROR_NULL;

        identity->write = NULL;
        if (r < 0) {
                (void) error_prefixf(&error, r, "%s/" IDENTITY_FILE, identity->directory);
                fail_identity(identity, identity->state, r, &error);
        } else
                adopt_keys(identity, &identity->next);
        erase_keys(&identity->next);
        identity->config.on_changed(identity->config.userdata);
}

/* 'content' is the credential, or the identities in clear. */
static int write_identity(NodeIdentity *identity, const char *kind, const char *content) {
        cleanup_with(buffer_erase) Buffer text = { 0 };
        cleanup_free char *checked = NULL;
        size_t length;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < identity->next.n; i++) {
                char line[AGE_RECIPIENT_SIZE];
                AgeKey recipient;

                age_identity_recipient(&identity->next.keys[i], &recipient);
                age_recipient_format(&recipient, line);
                r = buffer_append(&text, line, strlen(line), SIZE_MAX);
                if (r >= 0)
                        r = buffer_append(&text, "\n", 1, SIZE_MAX);
        }
        if (r < 0 || buffer_append(&text, kind, strlen(kind), SIZE_MAX) < 0 ||
            buffer_append(&text, "\n", 1, SIZE_MAX) < 0 ||
            buffer_append(&text, content, strlen(content), SIZE_MAX) < 0)
                return -ENOMEM;
        checked = checksummed_format(text.data, &length);
        if (!checked)
                return -ENOMEM;
        r = durable_write_start(identity->config.event, identity->directory,
                                &(DurableFile){ IDENTITY_FILE, checked, IDENTITY_FILE_MODE }, 1,
                                on_identity_written, identity, &identity->write);
        explicit_bzero(checked, length);
        return r;
}

static void fail_change(NodeIdentity *identity, int r, Error *error) {
        (void) error_prefixf(error, r,
                             "cannot be sealed; with 'secretsAtRest: clear' it is kept in a file "
                             "that only root can read");
        fail_identity(identity, identity->state, r, error);
        erase_keys(&identity->next);
}

static void on_identity_sealed(const ChildResult *result, void *userdata) {
        NodeIdentity *identity = userdata;
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *sealed = NULL;
        int r = credential_check_sealed(result, &error);

        identity->child = NULL;
        if (r >= 0) {
                sealed = strdup(result->output);
                r = sealed ? write_identity(identity, SEALED_LINE, sealed) : -ENOMEM;
        }
        if (r >= 0) {
                free(identity->sealed);
                identity->sealed = TAKE_PTR(sealed);
                return;
        }
        fail_change(identity, r, &error);
        identity->config.on_changed(identity->config.userdata);
}

static int start_writing(NodeIdentity *identity, Error *reterr) {
        cleanup_with(buffer_erase) Buffer text = { 0 };
        int r = format_keys(&identity->next, &text);

        if (r < 0)
                return r;
        if (!identity->config.is_kept_clear)
                return credential_seal_start(identity->config.event, IDENTITY_CREDENTIAL, text.data,
                                             on_identity_sealed, identity, &identity->child,
                                             reterr);
        free(identity->sealed);
        identity->sealed = NULL;
        return write_identity(identity, CLEAR_LINE, text.data);
}

static int make_next_keys(NodeIdentity *identity, IdentityAction action) {
        const IdentityKeys *keys = &identity->keys;
        IdentityKeys *next = &identity->next;

        *next = (IdentityKeys){ .n = 1 };
        if (action == IDENTITY_REMOVE_OLD) {
                next->keys[0] = keys->keys[0];
                return 0;
        }
        for (size_t i = 0; i < keys->n && next->n < IDENTITY_KEYS_MAX; i++)
                next->keys[next->n++] = keys->keys[i];
        return age_identity_make(&next->keys[0]);
}

/* Nothing is to be done for the first action if there is an identity, or for the last one without
 * an old one. */
static void change_open_identity(NodeIdentity *identity, IdentityAction action) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if ((action == IDENTITY_MAKE && identity->keys.n > 0) ||
            (action == IDENTITY_REMOVE_OLD && identity->keys.n <= 1))
                return;
        r = make_next_keys(identity, action);
        if (r >= 0)
                r = start_writing(identity, &error);
        if (r < 0)
                fail_change(identity, r, &error);
}

int node_identity_change(NodeIdentity *identity, IdentityAction action, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        const AgeKey *keys;
        size_t n;
        int r;

        if (identity->write || identity->child || identity->pending != N_IDENTITY_ACTIONS)
                return error_setf(reterr, EBUSY, "the identity of the node is being changed");
        identity->error = (free(identity->error), NULL);
        r = node_identity_get(identity, &keys, &n, &error);
        if (r == -EAGAIN) {
                identity->pending = action;
                return 0;
        }
        if (r < 0 && r != -ENOKEY) {
                error_move(reterr, &error);
                return r;
        }
        change_open_identity(identity, action);
        return 0;
}

char *node_identity_to_json(const NodeIdentity *identity) {
        bool is_busy = identity->write || identity->child;
        cleanup_json json_t *recipients = json_array(), *json = NULL;

        for (size_t i = 0; i < identity->n_recipients; i++) {
                char text[AGE_RECIPIENT_SIZE];

                age_recipient_format(&identity->recipients[i], text);
                (void) json_array_append_new(recipients, json_string(text));
        }
        json = json_pack("{s:O, s:b, s:b, s:s*}", "recipients", recipients, "isBusy", is_busy,
                         "isSealed", identity->sealed != NULL, "error", identity->error);
        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}

/* ---- construction ---- */

/* Changes 'text'. */
static int parse_identity_file(NodeIdentity *identity, char *text) {
        IdentityKeys keys;
        char *line;
        int r;

        while ((line = strsep(&text, "\n")) && !streq(line, SEALED_LINE) &&
               !streq(line, CLEAR_LINE))
                if (identity->n_recipients == IDENTITY_KEYS_MAX ||
                    age_recipient_parse(line, &identity->recipients[identity->n_recipients++]) < 0)
                        return -EBADMSG;
        if (!line || !text)
                return -EBADMSG;
        if (streq(line, SEALED_LINE)) {
                identity->sealed = strdup(text);
                identity->state = IDENTITY_CLOSED;
                return identity->sealed ? 0 : -ENOMEM;
        }
        r = parse_keys(text, &keys);
        if (r >= 0)
                adopt_keys(identity, &keys);
        explicit_bzero(&keys, sizeof(keys));
        return r;
}

/* A damaged file is set aside: what was encrypted for it cannot be opened any more. */
static int load_identity(NodeIdentity *identity) {
        cleanup_close int fd = open(identity->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_free char *text = NULL;
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        r = checksummed_load_at(fd, IDENTITY_FILE, IDENTITY_FILE_BYTES_MAX,
                                "The identity of the node",
                                "Secrets that are encrypted for it cannot be opened", &text);
        if (r > 0) {
                size_t length = strlen(text);

                r = parse_identity_file(identity, text);
                explicit_bzero(text, length);
        }
        if (r != -EBADMSG)
                return r;
        checksummed_set_aside_at(fd, IDENTITY_FILE);
        identity->n_recipients = 0;
        log_error("The identity of the node in %s/" IDENTITY_FILE
                  " is of another version, setting it aside",
                  identity->directory);
        return 0;
}

int node_identity_new(const NodeIdentityConfig *config, NodeIdentity **ret) {
        cleanup_with(node_identity_freep) NodeIdentity *identity = calloc(1, sizeof(*identity));
        int r;

        if (!identity)
                return -ENOMEM;
        identity->config = *config;
        identity->pending = N_IDENTITY_ACTIONS;
        identity->directory = path_join(config->state_dir, "secrets");
        r = identity->directory ? load_identity(identity) : -ENOMEM;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(identity);
        return 0;
}

NodeIdentity *node_identity_free(NodeIdentity *identity) {
        if (!identity)
                return NULL;
        child_free(identity->child);
        forked_task_free(identity->write);
        erase_keys(&identity->keys);
        erase_keys(&identity->next);
        free(identity->sealed);
        free(identity->error);
        free(identity->directory);
        free(identity);
        return NULL;
}
