/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/source-answer.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

int source_answer_parse(const char *text, size_t length, SourceAnswer *ret, Error *reterr) {
        cleanup_json json_t *json = json_loadb(text, length, 0, NULL);
        const char *result = strna(json_text(json, "result"));

        if (!streq(result, "new") && !streq(result, "unchanged"))
                return error_setf(reterr, EBADMSG, "mainstay-image reported no result");
        *ret = (SourceAnswer){ .is_new = streq(result, "new") };
        return 0;
}

static char *copy_member(const json_t *json, const char *key) {
        const char *text = json_text(json, key);

        return text ? strdup(text) : NULL;
}

void source_in_use_parse(const char *text, size_t length, SourceInUse *ret) {
        cleanup_json json_t *json = json_loadb(text, length, 0, NULL);
        int64_t deadline = json_integer_value(json_object_get(json, "progressDeadlineSeconds"));
        const char *fetched = json_text(json, "fetched");

        *ret = (SourceInUse){ .is_there = true,
                              .summary = copy_member(json, "summary"),
                              .number = json_integer_value(json_object_get(json, "number")),
                              .sha256 = copy_member(json, "sha256"),
                              .fleet = copy_member(json, "fleet"),
                              .deadline_usec = (uint64_t) MAX(deadline, 0) * USEC_PER_SEC };
        (void) parse_rfc3339(strna(fetched), &ret->fetched);
}

void source_in_use_done(SourceInUse *in_use) {
        free(in_use->summary);
        free(in_use->sha256);
        free(in_use->fleet);
        *in_use = (SourceInUse){ 0 };
}
