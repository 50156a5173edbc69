/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/pull-secret.h"

#include "common/array.h"
#include "common/hash.h"

#include <errno.h>

static void pull_secret_done(PullSecret *secret) {
        if (secret->document)
                explicit_bzero(secret->document, strlen(secret->document));
        free(secret->document);
        free(secret->name);
}

int pull_secret_list_add(PullSecretList *list, const PullSecret *secret) {
        PullSecret copy = { strdup(secret->name), strdup(secret->document), secret->has_auths };

        if (!copy.name || !copy.document || !ARRAY_RESERVE(list->items, list->n, 1)) {
                pull_secret_done(&copy);
                return -ENOMEM;
        }
        list->items[list->n++] = copy;
        return 0;
}

int pull_secret_list_extend(PullSecretList *list, const PullSecretList *from) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < from->n; i++)
                r = pull_secret_list_add(list, &from->items[i]);
        return r;
}

bool pull_secret_list_equal(const PullSecretList *a, const PullSecretList *b) {
        if (a->n != b->n)
                return false;
        for (size_t i = 0; i < a->n; i++)
                if (a->items[i].has_auths != b->items[i].has_auths ||
                    !streq(a->items[i].document, b->items[i].document))
                        return false;
        return true;
}

void pull_secret_list_done(PullSecretList *list) {
        for (size_t i = 0; i < list->n; i++)
                pull_secret_done(&list->items[i]);
        free(list->items);
        *list = (PullSecretList){ 0 };
}

json_t *pull_secret_list_to_json(const PullSecretList *list) {
        json_t *array = json_array();

        for (size_t i = 0; array && i < list->n; i++) {
                json_t *text = json_string(list->items[i].document);

                /* The value is not UTF-8, so it is not JSON either. */
                if (!text)
                        text = json_string("");
                (void) json_array_append_new(array,
                                             json_pack("{s:o, s:b}", "document", text, "hasAuths",
                                                       list->items[i].has_auths));
        }
        return array;
}

json_t *pull_secret_list_hashes(const PullSecretList *list) {
        json_t *array = json_array();

        for (size_t i = 0; array && i < list->n; i++) {
                char hash[SHA256_HEX_SIZE];

                sha256_hex(list->items[i].document, strlen(list->items[i].document), hash);
                (void) json_array_append_new(array, json_string(hash));
        }
        return array;
}
