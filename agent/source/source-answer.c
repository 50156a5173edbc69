/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/source-answer.h"

#include "common/cleanup.h"

#include <jansson.h>

int source_answer_parse(const char *text, size_t length, SourceAnswer *ret, Error *reterr) {
        cleanup_with(json_decrefp) json_t *json = json_loadb(text, length, 0, NULL);
        const char *result = strna(json_string_value(json_object_get(json, "result")));

        if (!streq(result, "new") && !streq(result, "unchanged"))
                return error_setf(reterr, EBADMSG, "mainstay-image reported no result");
        *ret = (SourceAnswer){ .is_new = streq(result, "new") };
        return 0;
}

void source_in_use_parse(const char *text, size_t length, SourceInUse *ret) {
        cleanup_with(json_decrefp) json_t *json = json_loadb(text, length, 0, NULL);
        const char *summary = json_string_value(json_object_get(json, "summary"));

        *ret = (SourceInUse){ .is_there = true,
                              .summary = summary ? strdup(summary) : NULL,
                              .number = json_integer_value(json_object_get(json, "number")) };
}

void source_in_use_done(SourceInUse *in_use) {
        free(in_use->summary);
        *in_use = (SourceInUse){ 0 };
}
