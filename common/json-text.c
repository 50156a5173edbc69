/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json-text.h"

#include "common/failpoint.h"
#include "common/strv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static unsigned failed_allocations, refused_allocations;

static void *allocate_for_jansson(size_t size) {
        void *memory = malloc(size);

        failed_allocations += !memory;
        return memory;
}

/* Must run before jansson allocates anything. */
__attribute__((constructor)) static void count_failures_of_jansson(void) {
        json_set_alloc_funcs(allocate_for_jansson, free);
}

unsigned json_failed_allocations(void) {
        return failed_allocations;
}

int json_parse_text(const char *text, size_t length, size_t flags, json_t **ret,
                    json_error_t *ret_problem) {
        unsigned before = failed_allocations;
        json_t *json = json_loadb(text, length, flags, ret_problem);

        if (failed_allocations != before) {
                failed_allocations = before; /* this failure affects no other text */
                json_decref(json);
                return -ENOMEM;
        }
        if (!json)
                return -EBADMSG;
        *ret = json;
        return 0;
}

char *json_to_text(const json_t *json, size_t flags) {
        char *text = json_dumps(json, flags);

        if (failed_allocations == refused_allocations)
                return text;
        refused_allocations = failed_allocations;
        free(text);
        return NULL;
}

json_t *json_walk(const json_t *object, const char *const *keys) {
        json_t *value = NULL;

        for (; *keys; keys++) {
                value = json_object_get(object, *keys);
                object = value;
        }
        return value;
}

int json_copy_text(const json_t *object, const char *key, char **ret) {
        const char *text = json_text(object, key);
        char *copy = text ? strdup(text) : NULL;

        if (!copy)
                return text ? -ENOMEM : 0;
        *ret = copy;
        return 0;
}

#ifdef MAINSTAY_FAILPOINTS

/* If a token's buffer cannot grow, jansson (2.14 to 2.15) omits its content, including the closing
 * quotation mark, and reads beyond the buffer: lex_save() ignores the result of
 * strbuffer_append_byte(), and lex_scan_string() looks for the mark. So a failpoint makes the
 * parsing of a text fail as a whole. Without a failpoint, such an allocation rarely fails unless a
 * resource limit or strict overcommit applies. The linker substitutes these
 * functions for jansson's. */
json_t *__real_json_loadb(const char *text, size_t length, size_t flags, json_error_t *ret_problem);
json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *ret_problem);
json_t *__wrap_json_loads(const char *text, size_t flags, json_error_t *ret_problem);

json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags,
                          json_error_t *ret_problem) {
        json_t *json;

        failpoint_hold_allocations();
        json = __real_json_loadb(text, length, flags, ret_problem);
        if (!failpoint_release_allocations())
                return json;
        failed_allocations++;
        json_decref(json);
        return NULL;
}

json_t *__wrap_json_loads(const char *text, size_t flags, json_error_t *ret_problem) {
        return __wrap_json_loadb(text, strlen(text), flags, ret_problem);
}

#endif

int json_append_texts(const json_t *array, char ***strv) {
        const json_t *item;
        size_t i;

        json_array_foreach(array, i, item) {
                if (!json_is_string(item))
                        return -EBADMSG;
                if (strv_append(strv, json_string_value(item)) < 0)
                        return -ENOMEM;
        }
        return 0;
}
