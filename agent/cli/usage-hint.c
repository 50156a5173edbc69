/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the command line, with a suggestion for a misspelled word. */

#include "agent/cli/cli.h"

#include "common/cleanup.h"
#include "common/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
        WORD_MAX = 32 /* longer words get no suggestion */
};

static unsigned min3(unsigned a, unsigned b, unsigned c) {
        return MIN(MIN(a, b), c);
}

/* The edit distance of two short words; swapping two neighbours is one edit. */
static unsigned word_edit_distance(const char *a, const char *b) {
        unsigned d[WORD_MAX + 1][WORD_MAX + 1];
        size_t n = strlen(a), m = strlen(b);

        for (size_t i = 0; i <= n; i++)
                d[i][0] = (unsigned) i;
        for (size_t j = 0; j <= m; j++)
                d[0][j] = (unsigned) j;
        for (size_t i = 1; i <= n; i++) {
                for (size_t j = 1; j <= m; j++) {
                        unsigned differs = a[i - 1] != b[j - 1];

                        d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + differs);
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
                }
        }
        return d[n][m];
}

const char *find_suggestion(const char *word, const char *const *candidates, size_t n) {
        const char *nearest = NULL;
        unsigned best = 3; /* a word with more edits is a different word */

        if (strlen(word) > WORD_MAX)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                unsigned edits;

                if (strlen(candidates[i]) > WORD_MAX)
                        continue;
                edits = word_edit_distance(word, candidates[i]);
                if (edits < best && edits < strlen(candidates[i])) {
                        best = edits;
                        nearest = candidates[i];
                }
        }
        return nearest;
}

int fail_with_error(int r, const Error *error) {
        cleanup_free char *sentence = strdup(error_message(error, r));

        /* The message may include text from a container. */
        if (sentence)
                utf8_sanitize(sentence);
        fflush(stdout);
        fprintf(stderr, "error: %s\n", strna(sentence));
        return STATUS_FAILED;
}

int fail_usage(const char *format, ...) {
        va_list ap;

        fflush(stdout);
        fputs("error: ", stderr);
        va_start(ap, format);
        vfprintf(stderr, format, ap);
        va_end(ap);
        fputc('\n', stderr);
        return STATUS_USAGE;
}

int fail_unknown(const char *what, const char *word, const char *const *candidates, size_t n) {
        const char *hint = find_suggestion(word, candidates, n);

        if (hint)
                return fail_usage("unknown %s '%s'; did you mean '%s'?", what, word, hint);
        return fail_usage("unknown %s '%s'; see 'mainstay help'", what, word);
}
