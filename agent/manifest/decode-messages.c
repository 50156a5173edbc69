/* SPDX-License-Identifier: Apache-2.0 */

/* Errors and warnings of decoding, with their places. */

#include "agent/manifest/decode.h"

#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* All messages that quote a value do so at their end: "must be a mapping, not the string 'x'". */
static void hide_value(Error *error) {
        char *end = error && error->message ? strstr(error->message, ", not ") : NULL;

        if (end && !TEXT_IS_ANY_OF(end, ", not a list", ", not a mapping", ", not nothing")) {
                explicit_bzero(end, strlen(end));
                *end = '\0';
        }
}

static const char *file_of_node(const Decoder *d, const YamlNode *node) {
        return d->files ? d->files[node->source] : d->file;
}

int decode_error_at(const Decoder *d, const YamlNode *node, const DecodePath *path, int r) {
        char text[DECODE_PATH_SIZE];

        if (d->hides_values)
                hide_value(d->reterr);
        decode_path_format(path, text);
        if (!d->file)
                return text[0] ? error_prefixf(d->reterr, r, "%s", text) : r;
        return error_prefixf(d->reterr, r, "%s:%" PRIu32 ":%" PRIu32 "%s%s", file_of_node(d, node),
                             node->line, node->column, text[0] ? ": " : "", text);
}

/* 0 or -ENOMEM. */
static int keep_uncounted(const Decoder *d) {
        DecodeErrors *errors = d->errors;
        int r = 0;

        if (!errors->messages || !strv_contains(errors->messages, d->reterr->message)) {
                if (strv_length(errors->messages) < DECODE_ERRORS_MAX)
                        r = strv_append(&errors->messages, d->reterr->message);
                else
                        errors->n_more++;
        }
        error_done(d->reterr);
        return r;
}

int decode_keep_error(const Decoder *d, int r) {
        DecodeErrors *errors = d->errors;

        if (r != -EINVAL || !errors)
                return r;
        if (!d->reterr->message) /* it was kept at a lower level */
                return errors->n > 0 ? 0 : r;
        errors->n++;
        return keep_uncounted(d);
}

size_t decode_count_errors(const Decoder *d) {
        return d->errors ? d->errors->n : 0;
}

bool decode_has_errors(const Decoder *d) {
        return d->errors && d->errors->messages;
}

int decode_result(const Decoder *d, size_t n_errors, int r) {
        return r >= 0 && decode_count_errors(d) > n_errors ? -EINVAL : r;
}

int decode_take_errors(const Decoder *d, char ***ret) {
        int r = 0;

        if (d->errors->n_more > 0)
                r = strv_appendf(&d->errors->messages, "%s: and %zu more", d->file,
                                 d->errors->n_more);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(d->errors->messages);
        return 0;
}

int decode_warn(Decoder *d, const YamlNode *node, const DecodePath *path, const char *sentence) {
        char text[DECODE_PATH_SIZE];

        if (++d->n_warnings > DECODE_WARNINGS_MAX)
                return 0;
        return strv_appendf(&d->warnings, "%s:%" PRIu32 ":%" PRIu32 ": %s: %s",
                            file_of_node(d, node), node->line, node->column,
                            decode_path_format(path, text), sentence);
}

int decode_warn_strictly(Decoder *d, const YamlNode *node, const DecodePath *path,
                         const char *sentence) {
        if (!d->errors)
                return decode_warn(d, node, path, sentence);
        (void) decode_error_at(d, node, path, error_setf(d->reterr, EINVAL, "%s", sentence));
        return keep_uncounted(d);
}

int decode_warn_of_file(Decoder *d, const char *sentence) {
        if (++d->n_warnings > DECODE_WARNINGS_MAX)
                return 0;
        return strv_appendf(&d->warnings, "%s: %s", d->file, sentence);
}

int decode_take_warnings(Decoder *d, char ***ret) {
        if (d->n_warnings > DECODE_WARNINGS_MAX) {
                int r = strv_appendf(&d->warnings, "%s: and %zu more", d->file,
                                     d->n_warnings - DECODE_WARNINGS_MAX);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(d->warnings);
        d->n_warnings = 0;
        return 0;
}
