/* SPDX-License-Identifier: Apache-2.0 */

/* The format of the file: the recipients of the keys, one per line; then "sealed" and a systemd
 * credential, or "clear" and the content itself. The content consists of the keys, one per line, as
 * age-keygen prints them. */

#include "agent/secrets/key-file.h"

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

#define SEALED_LINE "sealed"
#define CLEAR_LINE  "clear"
#define RETRY_USEC  (10 * USEC_PER_SEC)

enum {
        KEYS_MAX = 4,
        KEY_FILE_BYTES_MAX = 64 * 1024,
        KEY_FILE_MODE = 0400
};

const char *const key_file_action_names[N_KEY_FILE_ACTIONS] = {
        [KEY_FILE_MAKE] = "make",
        [KEY_FILE_ROTATE] = "rotate",
        [KEY_FILE_REMOVE_OLD] = "remove-old",
};

const KeyFileRole node_identity_role = {
        .what = "Identity of the node",
        .file = "identity",
        .credential = "mainstay.identity",
        .missing = "this node has no identity, which 'mainstay source identity' makes",
        .if_damaged = "Secrets that are encrypted for it cannot be opened",
        .if_not_sealed = "cannot be sealed; with 'secretsAtRest: clear' it is kept in a file that "
                         "only root can read",
};

const KeyFileRole storage_key_role = {
        .what = "Key of kept Secrets",
        .file = "storage-key",
        .credential = "mainstay.storage-key",
        .missing = "there is no key of kept Secrets yet",
        .if_damaged = "kept Secrets and tokens are fetched from the API server again",
        .if_not_sealed = "cannot be sealed, so that Secrets and tokens of the API server are not "
                         "kept for starts without it; with 'secretsAtRest: clear' they are kept "
                         "in files that only root can read",
};

typedef enum KeyFileState {
        KEY_FILE_MISSING,
        KEY_FILE_CLOSED, /* the file was read, but not unsealed */
        KEY_FILE_OPEN,
        KEY_FILE_UNUSABLE,
} KeyFileState;

/* Newest first. */
typedef struct KeyList {
        AgeKey keys[KEYS_MAX];
        size_t n;
} KeyList;

struct KeyFile {
        KeyFileConfig config;
        char *directory;
        KeyFileState state;
        KeyList keys; /* if the file is open */
        AgeKey recipients[KEYS_MAX];
        size_t n_recipients;
        char *sealed;          /* the credential; NULL: stored unencrypted */
        KeyFileAction pending; /* action that follows once the file is open; N_KEY_FILE_ACTIONS:
                                * none */
        KeyList next;          /* keys that are being written */
        Child *child;
        ForkedTask *write;
        char *error;        /* why the file is unusable, or why the last change failed */
        uint64_t failed_at; /* boot time */
};

static void erase_keys(KeyList *keys) {
        explicit_bzero(keys->keys, sizeof(keys->keys));
        keys->n = 0;
}

/* ---- the text of the keys ---- */

static int format_keys(const KeyList *keys, Buffer *ret) {
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
static int parse_keys(char *text, KeyList *ret) {
        KeyList keys = { 0 };
        char *line;

        while ((line = strsep(&text, "\n"))) {
                if (!*line)
                        continue;
                if (keys.n == KEYS_MAX || age_identity_parse(line, &keys.keys[keys.n++]) < 0)
                        return -EBADMSG;
        }
        *ret = keys;
        explicit_bzero(&keys, sizeof(keys));
        return ret->n > 0 ? 0 : -EBADMSG;
}

static void set_recipients(KeyFile *file, const KeyList *keys) {
        file->n_recipients = keys->n;
        for (size_t i = 0; i < keys->n; i++)
                age_identity_recipient(&keys->keys[i], &file->recipients[i]);
}

/* ---- the state ---- */

static void fail_key_file(KeyFile *file, KeyFileState state, int r, const Error *error) {
        file->state = state;
        file->failed_at = now_boottime_usec();
        file->pending = N_KEY_FILE_ACTIONS;
        (void) text_replace(&file->error, error_message(error, r));
        log_error("%s: %s", file->config.role->what, error_message(error, r));
}

static void change_open_file(KeyFile *file, KeyFileAction action);

static void adopt_keys(KeyFile *file, const KeyList *keys) {
        KeyFileAction pending = file->pending;

        file->keys = *keys;
        set_recipients(file, keys);
        file->state = KEY_FILE_OPEN;
        file->pending = N_KEY_FILE_ACTIONS;
        file->error = (free(file->error), NULL);
        if (pending != N_KEY_FILE_ACTIONS)
                change_open_file(file, pending);
}

/* ---- reading ---- */

static void on_keys_opened(const ChildResult *result, void *userdata) {
        KeyFile *file = userdata;
        cleanup_error Error error = ERROR_NULL;
        KeyList keys = { 0 };
        int r = credential_check_opened(result, &error);

        file->child = NULL;
        if (r >= 0) {
                cleanup_free char *text = strdup(result->output);

                r = text ? parse_keys(text, &keys) : -ENOMEM;
                if (text)
                        explicit_bzero(text, result->output_length);
        }
        if (r < 0) {
                (void) error_prefixf(&error, r, "%s/%s cannot be unsealed", file->directory,
                                     file->config.role->file);
                fail_key_file(file, KEY_FILE_UNUSABLE, r, &error);
        } else
                adopt_keys(file, &keys);
        explicit_bzero(&keys, sizeof(keys));
        file->config.on_changed(file->config.userdata);
}

static int start_opening(KeyFile *file, Error *reterr) {
        int r = file->child
                        ? 0
                        : credential_open_start(file->config.event, file->config.role->credential,
                                                file->sealed, strlen(file->sealed), on_keys_opened,
                                                file, &file->child, reterr);

        if (r >= 0)
                return error_setf(reterr, EAGAIN, "%s: is being unsealed", file->config.role->what);
        (void) error_prefixf(reterr, r, "%s/%s cannot be unsealed", file->directory,
                             file->config.role->file);
        fail_key_file(file, KEY_FILE_UNUSABLE, r, reterr);
        return -EKEYREJECTED;
}

int key_file_get(KeyFile *file, const AgeKey **ret, size_t *ret_n, Error *reterr) {
        if (file->state == KEY_FILE_UNUSABLE && file->sealed &&
            now_boottime_usec() - file->failed_at >= RETRY_USEC)
                file->state = KEY_FILE_CLOSED;
        switch (file->state) {
        case KEY_FILE_MISSING:
                return error_setf(reterr, ENOKEY, "%s", file->config.role->missing);
        case KEY_FILE_CLOSED:
                return start_opening(file, reterr);
        case KEY_FILE_UNUSABLE:
                return error_setf(reterr, EKEYREJECTED, "%s", strna(file->error));
        case KEY_FILE_OPEN:
                break;
        }
        *ret = file->keys.keys;
        *ret_n = file->keys.n;
        return 0;
}

/* ---- changes ---- */

static void on_keys_written(int r, void *userdata) {
        KeyFile *file = userdata;
        cleanup_error Error error = ERROR_NULL;

        file->write = NULL;
        if (r < 0) {
                (void) error_prefixf(&error, r, "%s/%s", file->directory, file->config.role->file);
                fail_key_file(file, file->state, r, &error);
        } else
                adopt_keys(file, &file->next);
        erase_keys(&file->next);
        file->config.on_changed(file->config.userdata);
}

/* 'content' is the credential, or the unencrypted identities. */
static int write_keys(KeyFile *file, const char *kind, const char *content) {
        cleanup_with(buffer_erase) Buffer text = { 0 };
        cleanup_free char *checked = NULL;
        size_t length;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < file->next.n; i++) {
                char line[AGE_RECIPIENT_SIZE];
                AgeKey recipient;

                age_identity_recipient(&file->next.keys[i], &recipient);
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
        r = durable_write_start(file->config.event, file->directory,
                                &(DurableFile){ file->config.role->file, checked, KEY_FILE_MODE },
                                1, on_keys_written, file, &file->write);
        explicit_bzero(checked, length);
        return r;
}

static void fail_change(KeyFile *file, int r, Error *error) {
        (void) error_prefixf(error, r, "%s", file->config.role->if_not_sealed);
        fail_key_file(file, file->state, r, error);
        erase_keys(&file->next);
}

static void on_keys_sealed(const ChildResult *result, void *userdata) {
        KeyFile *file = userdata;
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *sealed = NULL;
        int r = credential_check_sealed(result, &error);

        file->child = NULL;
        if (r >= 0) {
                sealed = strdup(result->output);
                r = sealed ? write_keys(file, SEALED_LINE, sealed) : -ENOMEM;
        }
        if (r >= 0) {
                free(file->sealed);
                file->sealed = TAKE_PTR(sealed);
                return;
        }
        fail_change(file, r, &error);
        file->config.on_changed(file->config.userdata);
}

static int start_writing(KeyFile *file, Error *reterr) {
        cleanup_with(buffer_erase) Buffer text = { 0 };
        int r = format_keys(&file->next, &text);

        if (r < 0 || !text.data)
                return r < 0 ? r : -ENOKEY;
        if (!file->config.is_kept_clear)
                return credential_seal_start(file->config.event, file->config.role->credential,
                                             text.data, on_keys_sealed, file, &file->child, reterr);
        free(file->sealed);
        file->sealed = NULL;
        return write_keys(file, CLEAR_LINE, text.data);
}

static int make_next_keys(KeyFile *file, KeyFileAction action) {
        const KeyList *keys = &file->keys;
        KeyList *next = &file->next;

        *next = (KeyList){ .n = 1 };
        if (action == KEY_FILE_REMOVE_OLD) {
                next->keys[0] = keys->keys[0];
                return 0;
        }
        for (size_t i = 0; i < keys->n && next->n < KEYS_MAX; i++)
                next->keys[next->n++] = keys->keys[i];
        return age_identity_make(&next->keys[0]);
}

/* The first action needs no change if there is already an identity, and the last one needs none if
 * there is no old identity. */
static void change_open_file(KeyFile *file, KeyFileAction action) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if ((action == KEY_FILE_MAKE && file->keys.n > 0) ||
            (action == KEY_FILE_REMOVE_OLD && file->keys.n <= 1))
                return;
        r = make_next_keys(file, action);
        if (r >= 0)
                r = start_writing(file, &error);
        if (r < 0)
                fail_change(file, r, &error);
}

int key_file_change(KeyFile *file, KeyFileAction action, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        const AgeKey *keys;
        size_t n;
        int r;

        if (file->write || file->child || file->pending != N_KEY_FILE_ACTIONS)
                return error_setf(reterr, EBUSY, "%s: is being changed", file->config.role->what);
        file->error = (free(file->error), NULL);
        r = key_file_get(file, &keys, &n, &error);
        if (r == -EAGAIN) {
                file->pending = action;
                return 0;
        }
        if (r < 0 && r != -ENOKEY) {
                error_move(reterr, &error);
                return r;
        }
        change_open_file(file, action);
        return 0;
}

const char *key_file_error(const KeyFile *file) {
        return file->error;
}

void key_file_discard(KeyFile *file) {
        cleanup_close int fd = open(file->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (file->state != KEY_FILE_UNUSABLE)
                return;
        if (fd >= 0)
                checksummed_set_aside_at(fd, file->config.role->file);
        file->n_recipients = 0;
        file->sealed = (free(file->sealed), NULL);
        file->state = KEY_FILE_MISSING;
        log_warning("%s: the file that cannot be unsealed was set aside, a new one is made",
                    file->config.role->what);
}

char *key_file_to_json(const KeyFile *file) {
        bool is_busy = file->write || file->child;
        cleanup_json json_t *recipients = json_array(), *json = NULL;

        for (size_t i = 0; i < file->n_recipients; i++) {
                char text[AGE_RECIPIENT_SIZE];

                age_recipient_format(&file->recipients[i], text);
                (void) json_array_append_new(recipients, json_string(text));
        }
        json = json_pack("{s:O, s:b, s:b, s:s*}", "recipients", recipients, "isBusy", is_busy,
                         "isSealed", file->sealed != NULL, "error", file->error);
        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}

/* ---- construction ---- */

/* Changes 'text'. */
static int parse_key_file(KeyFile *file, char *text) {
        KeyList keys;
        char *line;
        int r;

        while ((line = strsep(&text, "\n")) && !streq(line, SEALED_LINE) &&
               !streq(line, CLEAR_LINE))
                if (file->n_recipients == KEYS_MAX ||
                    age_recipient_parse(line, &file->recipients[file->n_recipients++]) < 0)
                        return -EBADMSG;
        if (!line || !text)
                return -EBADMSG;
        if (streq(line, SEALED_LINE)) {
                file->sealed = strdup(text);
                file->state = KEY_FILE_CLOSED;
                return file->sealed ? 0 : -ENOMEM;
        }
        r = parse_keys(text, &keys);
        if (r >= 0)
                adopt_keys(file, &keys);
        explicit_bzero(&keys, sizeof(keys));
        return r;
}

/* A damaged file is set aside: Secrets that were encrypted for it can no longer be decrypted. */
static int load_key_file(KeyFile *file) {
        const KeyFileRole *role = file->config.role;
        cleanup_close int fd = open(file->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_free char *text = NULL;
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        r = checksummed_load_at(fd, role->file, KEY_FILE_BYTES_MAX, role->what, role->if_damaged,
                                &text);
        if (r > 0) {
                size_t length = strlen(text);

                r = parse_key_file(file, text);
                explicit_bzero(text, length);
        }
        if (r != -EBADMSG)
                return r;
        checksummed_set_aside_at(fd, role->file);
        file->n_recipients = 0;
        log_error("%s in %s/%s is of another version, setting it aside; %s", role->what,
                  file->directory, role->file, role->if_damaged);
        return 0;
}

int key_file_new(const KeyFileConfig *config, KeyFile **ret) {
        cleanup_with(key_file_freep) KeyFile *file = calloc(1, sizeof(*file));
        int r;

        if (!file)
                return -ENOMEM;
        file->config = *config;
        file->pending = N_KEY_FILE_ACTIONS;
        file->directory = path_join(config->state_dir, "secrets");
        r = file->directory ? load_key_file(file) : -ENOMEM;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(file);
        return 0;
}

KeyFile *key_file_free(KeyFile *file) {
        if (!file)
                return NULL;
        child_free(file->child);
        forked_task_free(file->write);
        erase_keys(&file->keys);
        erase_keys(&file->next);
        free(file->sealed);
        free(file->error);
        free(file->directory);
        free(file);
        return NULL;
}
