/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay secret`: prints Secrets whose values are encrypted, mainstay-secrets(7). */

#include "agent/cli/cli.h"

#include "agent/cli/output.h"
#include "agent/cli/words.h"
#include "agent/model/names.h"
#include "agent/model/object.h"
#include "agent/model/own-keys.h"
#include "common/age-file.h"
#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/memfd.h"
#include "common/privileges.h"
#include "common/spawn.h"
#include "common/strv.h"
#include "common/systemd-credential.h"
#include "common/text.h"
#include "common/utf8.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECIPIENTS_BYTES_MAX (1 * MIB)

enum {
        RECIPIENT_NAME_MAX = 100,
        FIRST_VALUE = 2 /* indexes of the words; the verb and the name come first */
};

typedef struct SecretPrinter {
        const Options *options;
        const char *namespace, *name;
        bool is_sealed; /* encrypt for this machine; otherwise for recipients */
        AgeKey *recipients;
        size_t n_recipients;
        Buffer recipient_names; /* separated by ", " */
        Buffer text;            /* nothing is printed before all values are encrypted */
} SecretPrinter;

static void secret_printer_done(SecretPrinter *printer) {
        free(printer->recipients);
        buffer_done(&printer->recipient_names);
        buffer_done(&printer->text);
}

/* ---- recipients ---- */

/* The name is YAML text in quotes, and ',' separates names. */
static int append_recipient_name(SecretPrinter *printer, const char *name) {
        cleanup_free char *plain = strndup(name, RECIPIENT_NAME_MAX);

        if (!plain)
                return -ENOMEM;
        utf8_sanitize(plain);
        for (char *p = plain; *p; p++)
                if (strchr("\"\\,", *p))
                        *p = '_';
        if (printer->recipient_names.length > 0 &&
            buffer_append(&printer->recipient_names, ", ", 2, SIZE_MAX) < 0)
                return -ENOMEM;
        return buffer_append(&printer->recipient_names, plain, strlen(plain), SIZE_MAX);
}

/* If 'name' is NULL, only the recipient itself is known. */
static int add_recipient(SecretPrinter *printer, const char *text, const char *name,
                         Error *reterr) {
        if (printer->n_recipients == AGE_RECIPIENTS_MAX)
                return error_setf(reterr, EINVAL, "there are more than %d recipients",
                                  AGE_RECIPIENTS_MAX);
        if (age_recipient_parse(text, &printer->recipients[printer->n_recipients]) < 0)
                return error_setf(
                        reterr, EINVAL,
                        "'%.80s' is not an X25519 recipient of age, 'age1…', as 'mainstay "
                        "source identity' prints it",
                        text);
        printer->n_recipients++;
        return append_recipient_name(printer, name ? name : text);
}

/* The format of age: a recipient on each line, except empty lines and comments. The comment on the
 * line before a recipient is its name. */
static int add_recipients_of_file(SecretPrinter *printer, const char *path, Error *reterr) {
        cleanup_free char *text = NULL;
        const char *name = NULL;
        char *rest, *line;
        size_t length;
        int r = read_file_at(AT_FDCWD, path, RECIPIENTS_BYTES_MAX, &text, &length);

        if (r < 0)
                return error_prefixf(reterr, r, "%s", path);
        rest = text;
        while ((line = strsep(&rest, "\n"))) {
                line[strcspn(line, "\r")] = '\0';
                if (!*line || *line == '#') {
                        line += strspn(line, "# \t");
                        name = *line ? line : NULL;
                        continue;
                }
                r = add_recipient(printer, line, name, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "%s", path);
                name = NULL;
        }
        return 0;
}

static int collect_recipients(SecretPrinter *printer, Error *reterr) {
        const Options *options = printer->options;
        int r = 0;

        printer->recipients = calloc(AGE_RECIPIENTS_MAX, sizeof(AgeKey));
        if (!printer->recipients)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < options->recipients.n; i++)
                r = add_recipient(printer, options->recipients.values[i], NULL, reterr);
        for (size_t i = 0; r >= 0 && i < options->recipient_files.n; i++)
                r = add_recipients_of_file(printer, options->recipient_files.values[i], reterr);
        if (r >= 0 && printer->n_recipients == 0)
                return error_setf(reterr, EINVAL,
                                  "encrypt needs recipients: --recipient or --recipients-file");
        return r;
}

/* ---- systemd-creds ---- */

static int run_systemd_creds(const char *name, int input, int output, Error *reterr) {
        cleanup_free char *option = text_format("--name=%s", name);
        char program[] = CREDENTIAL_PROGRAM, verb[] = "encrypt", standard[] = "-";
        int r, status;
        pid_t pid = -1;

        if (!option)
                return -ENOMEM;
        r = spawn_with_streams((char *[]){ program, verb, option, standard, standard, NULL }, input,
                               output, &pid);
        if (r < 0)
                return error_setf(reterr, -r, CREDENTIAL_PROGRAM ": %s", strerror(-r));
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0
                       ? 0
                       : error_setf(reterr, EIO, CREDENTIAL_PROGRAM " failed");
}

static int seal_value(const SecretPrinter *printer, const char *key, const char *data,
                      size_t length, char **ret, Error *reterr) {
        cleanup_free char *name = secret_credential_name(printer->namespace, printer->name, key);
        cleanup_close int input = memfd_open("value", data, length),
                          output = memfd_create("sealed", MFD_CLOEXEC);
        size_t sealed_length;
        int r;

        if (input < 0)
                return input;
        if (output < 0 || !name)
                return -ENOMEM;
        if (strlen(name) > SECRET_CREDENTIAL_NAME_MAX)
                return error_setf(reterr, EINVAL,
                                  "the namespace, the name and the key are too long for the name "
                                  "of a credential");
        r = run_systemd_creds(name, input, output, reterr);
        if (r >= 0 && lseek(output, 0, SEEK_SET) < 0)
                r = -errno;
        if (r >= 0)
                r = read_stream(output, 2 * OBJECT_BYTES_MAX, ret, &sealed_length);
        return r < 0 ? r : systemd_credential_check(*ret, reterr);
}

/* ---- the manifest ---- */

static int append(SecretPrinter *printer, const char *text) {
        return buffer_append(&printer->text, text, strlen(text), SIZE_MAX);
}

/* Prints the text as a block of YAML, with its lines indented. */
static int append_block(SecretPrinter *printer, const char *key, char *text) {
        char *line;
        int r = append(printer, "  ");

        if (r >= 0)
                r = append(printer, key);
        if (r >= 0)
                r = append(printer, ": |\n");
        while (r >= 0 && (line = strsep(&text, "\n"))) {
                if (!*line)
                        continue;
                r = append(printer, "    ");
                if (r >= 0)
                        r = append(printer, line);
                if (r >= 0)
                        r = append(printer, "\n");
        }
        return r;
}

static int read_value(const char *path, char **ret, size_t *ret_length, Error *reterr) {
        int r = streq(path, "-") ? read_stream(STDIN_FILENO, OBJECT_BYTES_MAX, ret, ret_length)
                                 : read_file_at(AT_FDCWD, path, OBJECT_BYTES_MAX, ret, ret_length);

        return r < 0 ? error_prefixf(reterr, r, "%s", path) : 0;
}

/* The key of "KEY=FILE", which must differ from those of the preceding words. */
static int take_key(const SecretPrinter *printer, size_t word, char **ret, Error *reterr) {
        char *const *words = printer->options->words;
        size_t length = strcspn(words[word], "=");

        for (size_t i = FIRST_VALUE; i < word; i++)
                if (strncmp(words[i], words[word], length + 1) == 0)
                        return error_setf(reterr, EINVAL, "the key '%.*s' occurs twice",
                                          (int) length, words[word]);
        *ret = strndup(words[word], length);
        return *ret ? 0 : -ENOMEM;
}

static int append_value(SecretPrinter *printer, size_t word, Error *reterr) {
        const char *value = printer->options->words[word], *equals = strchr(value, '=');
        cleanup_free char *key = NULL, *data = NULL, *text = NULL;
        size_t length = 0;
        int r;

        if (!equals)
                return error_setf(reterr, EINVAL, "'%s' must be KEY=FILE", value);
        r = take_key(printer, word, &key, reterr);
        if (r < 0)
                return r;
        r = check_data_key(key, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "'%s'", key);
        r = read_value(equals + 1, &data, &length, reterr);
        if (r < 0)
                return r;
        r = printer->is_sealed
                    ? seal_value(printer, key, data, length, &text, reterr)
                    : age_encrypt(data, length, printer->recipients, printer->n_recipients, &text);
        explicit_bzero(data, length);
        return r < 0 ? error_prefixf(reterr, r, "%s", key) : append_block(printer, key, text);
}

/* Names are in quotes, so that a name such as "true" or "1" stays text. */
static int append_member(SecretPrinter *printer, const char *name, const char *value,
                         const char *end) {
        int r = append(printer, name);

        if (r >= 0)
                r = append(printer, ": \"");
        if (r >= 0)
                r = append(printer, value);
        return r < 0 ? r : append(printer, end);
}

static int append_head(SecretPrinter *printer) {
        const Options *options = printer->options;
        int r = append(printer, "apiVersion: v1\nkind: Secret\nmetadata:\n");

        if (r >= 0)
                r = append_member(printer, "  name", printer->name, "\"\n");
        if (r >= 0)
                r = append_member(printer, "  namespace", printer->namespace, "\"\n");
        if (r >= 0)
                r = append(printer, "  annotations:\n    ");
        if (r >= 0)
                r = append_member(printer, own_key_name(OWN_KEY_ENCRYPTED_KEYS), "", "");
        for (size_t i = FIRST_VALUE; r >= 0 && i < options->n_words; i++) {
                cleanup_free char *key =
                        strndup(options->words[i], strcspn(options->words[i], "="));

                r = key ? append(printer, i > FIRST_VALUE ? "," : "") : -ENOMEM;
                if (r >= 0)
                        r = append(printer, key);
        }
        if (r >= 0)
                r = append(printer, "\"\n");
        if (r >= 0 && printer->recipient_names.length > 0)
                r = append(printer, "    ");
        if (r >= 0 && printer->recipient_names.length > 0)
                r = append_member(printer, own_key_name(OWN_KEY_ENCRYPTED_FOR),
                                  printer->recipient_names.data, "\"\n");
        if (r >= 0)
                r = append_member(printer, "type", options->type ? options->type : "Opaque",
                                  "\"\n");
        return r < 0 ? r : append(printer, "stringData:\n");
}

static int check_names(const SecretPrinter *printer, Error *reterr) {
        const char *type = printer->options->type;
        int r = check_dns_subdomain(printer->name, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "NAME");
        r = check_dns_label(printer->namespace, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "--namespace");
        for (const char *p = type; p && *p; p++)
                if (!isalnum((unsigned char) *p) && !strchr("./-_", *p))
                        return error_setf(reterr, EINVAL, "--type: must be a type of Secrets");
        return 0;
}

static int make_secret(SecretPrinter *printer, Error *reterr) {
        const Options *options = printer->options;
        int r = check_names(printer, reterr);

        if (r >= 0 && !printer->is_sealed)
                r = collect_recipients(printer, reterr);
        if (r >= 0)
                r = append_head(printer);
        for (size_t i = FIRST_VALUE; r >= 0 && i < options->n_words; i++)
                r = append_value(printer, i, reterr);
        return r;
}

int run_secret(const Options *options) {
        static const char *const verbs[] = { "encrypt", "seal" };
        const char *verb = options->n_words > 0 ? options->words[0] : "";
        cleanup_with(secret_printer_done) SecretPrinter printer = {
                .options = options,
                .namespace = options->namespace ? options->namespace : "default",
                .is_sealed = streq(verb, "seal"),
        };
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!printer.is_sealed && !streq(verb, "encrypt"))
                return fail_unknown("command", verb, verbs, N_ELEMENTS(verbs));
        if (options->n_words <= FIRST_VALUE)
                return fail_usage("needs the name of the Secret, and its values as KEY=FILE");
        printer.name = options->words[1];
        privileges_hide_memory();
        r = make_secret(&printer, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        (void) fwrite(printer.text.data, 1, printer.text.length, stdout);
        return STATUS_OK;
}
