/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json-text.h"

#include "common/macros.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>

enum {
        RESERVE_BYTES = 256 * 1024,
};

/* Pages that are not used cost nothing. */
static alignas(max_align_t) char reserve[RESERVE_BYTES];
static size_t reserve_used, reserve_allocations;
static unsigned failed_allocations;

static void *allocate_from_reserve(size_t size) {
        size_t aligned = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
        void *memory = reserve + reserve_used;

        failed_allocations++;
        if (size > RESERVE_BYTES || aligned > RESERVE_BYTES - reserve_used)
                abort();
        reserve_used += aligned;
        reserve_allocations++;
        return memory;
}

static void *allocate_for_jansson(size_t size) {
        void *memory = malloc(size);

        return memory ? memory : allocate_from_reserve(size);
}

static void free_for_jansson(void *memory) {
        const char *at = memory;

        if (at < reserve || at >= reserve + RESERVE_BYTES)
                free(memory);
        else if (--reserve_allocations == 0)
                reserve_used = 0;
}

/* Before anything is allocated that jansson frees. */
__attribute__((constructor)) static void count_failures_of_jansson(void) {
        json_set_alloc_funcs(allocate_for_jansson, free_for_jansson);
}

unsigned json_failed_allocations(void) {
        return failed_allocations;
}

int json_parse_text(const char *text, size_t length, size_t flags, json_t **ret,
                    json_error_t *ret_problem) {
        unsigned before = failed_allocations;
        json_t *json = json_loadb(text, length, flags, ret_problem);

        if (failed_allocations != before) {
                json_decref(json);
                return -ENOMEM;
        }
        if (!json)
                return -EBADMSG;
        *ret = json;
        return 0;
}

/* What json_dumps() returns is freed by free(): it must not come of the reserve. */
char *json_to_text(const json_t *json, size_t flags) {
        unsigned before = failed_allocations;
        char *text = json_dumps(json, flags);

        if (failed_allocations == before)
                return text;
        free_for_jansson(text);
        return NULL;
}
