/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/spelling.h"

#include <strings.h>

enum {
        KEY_LENGTH_MAX = 48, /* longer than any field's name */
        DISTANCE_MAX = 2,
        PREFIX_LENGTH_MIN = 8, /* as in "signaturePolicy" for "signaturePolicyFile" */
};

/* The edit distance: letters to insert, delete, replace or swap with a neighbour. */
static size_t key_edit_distance(const char *a, const char *b) {
        size_t rows[3][KEY_LENGTH_MAX + 1];
        size_t n_a = strlen(a), n_b = strlen(b);

        if (n_a > KEY_LENGTH_MAX || n_b > KEY_LENGTH_MAX)
                return KEY_LENGTH_MAX;
        for (size_t j = 0; j <= n_b; j++)
                rows[0][j] = j;
        for (size_t i = 1; i <= n_a; i++) {
                size_t *now = rows[i % 3], *above = rows[(i + 2) % 3],
                       *two_above = rows[(i + 1) % 3];

                now[0] = i;
                for (size_t j = 1; j <= n_b; j++) {
                        now[j] = MIN(MIN(above[j], now[j - 1]) + 1,
                                     above[j - 1] + (a[i - 1] != b[j - 1]));
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                now[j] = MIN(now[j], two_above[j - 2] + 1);
                }
        }
        return rows[n_a % 3][n_b];
}

static size_t key_difference(const char *key, const char *field) {
        size_t n = strlen(key), distance;

        if (strcasecmp(key, field) == 0)
                return 0;
        distance = key_edit_distance(key, field);
        return n >= PREFIX_LENGTH_MIN && strncasecmp(key, field, n) == 0
                       ? MIN(distance, DISTANCE_MAX)
                       : distance;
}

const char *suggest_field_key(const Schema *schema, const char *key) {
        size_t best = MIN((size_t) DISTANCE_MAX, strlen(key) / 2);
        const char *hint = NULL;

        for (size_t i = 0; i < schema->n_fields; i++) {
                size_t d = key_difference(key, schema->fields[i].key);

                if (d <= best && (!hint || d < best)) {
                        best = d;
                        hint = schema->fields[i].key;
                }
        }
        return hint;
}
