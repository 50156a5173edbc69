/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the headers WWW-Authenticate and Location of a registry, one per line; each line is
 * read as both. No value results in a challenge that is incomplete, or in a URL that is not https.
 */

#include "tests/fuzz/fuzz.h"

#include "agent/image-helper/registry/challenge.h"
#include "agent/image-helper/registry/http-transport.h"
#include "common/cleanup.h"

#include <errno.h>

enum {
        VALUE_LENGTH_MAX = 2048 /* maximum of a challenge's parameters */
};

static void check_parsed_challenge(const Challenge *challenge) {
        const char *const values[] = { challenge->realm, challenge->service, challenge->scope,
                                       challenge->error };
        bool has_any = false;

        for (size_t i = 0; i < N_ELEMENTS(values); i++) {
                assert(!values[i] || strlen(values[i]) <= VALUE_LENGTH_MAX);
                has_any = has_any || values[i];
        }
        assert(challenge->scheme != CHALLENGE_BEARER || challenge->realm);
        assert(challenge->scheme != CHALLENGE_NONE || !has_any);
}

static void check_resolved_location(const char *line) {
        static const char base[] = "https://registry.example.com:5000/v2/a/blobs/x";
        cleanup_free char *url = NULL, *again = NULL, *host = url_get_host(line);
        cleanup_error Error error = ERROR_NULL;

        if (url_resolve_location(base, line, false, &url, &error) < 0) {
                assert(error.message);
                return;
        }
        assert(strncmp(url, "https://", strlen("https://")) == 0);
        assert(!strchr(url, '#'));
        assert(url_same_origin(url, url));
        assert(!host || host[0]);
        assert(url_resolve_location(base, url, false, &again, NULL) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *text = strndup((const char *) data, size);
        Challenge challenge = { 0 };
        char *rest = text;

        assert(text);
        for (char *line; (line = strsep(&rest, "\n"));) {
                assert(challenge_read(&challenge, line) == 0);
                check_parsed_challenge(&challenge);
                check_resolved_location(line);
        }
        challenge_done(&challenge);
        return 0;
}
