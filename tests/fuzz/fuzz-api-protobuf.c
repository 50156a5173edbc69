/* SPDX-License-Identifier: Apache-2.0 */
/* Any input as a request body in protobuf: an accepted body is an object that can be printed as
 * JSON and used for self reviews. */

#include "tests/fuzz/fuzz.h"

#include "agent/node-api/access/self-reviews.h"
#include "agent/node-api/wire/protobuf-body.h"
#include "common/cleanup.h"
#include "common/json-text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char name[] = "admin";
        const ApiUser user = { .name = name };
        cleanup_json json_t *body = NULL, *reply = NULL;
        cleanup_free char *text = NULL;

        if (!is_protobuf_body((const char *) data, size))
                return 0;
        body = protobuf_body_parse((const char *) data, size);
        if (!body)
                return 0;
        assert(json_is_object(body));
        text = json_dumps(body, JSON_COMPACT);
        assert(text);
        reply = self_review_reply("authorization.k8s.io", "selfsubjectaccessreviews", &user, body);
        assert(reply);
        return 0;
}
