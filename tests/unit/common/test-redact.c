/* SPDX-License-Identifier: Apache-2.0 */
#include "common/redact.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "tests/test.h"

#include <stdlib.h>

#define JWT "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQifQ.c2lnbmF0dXJl"

TEST(redacted_agent_log_has_no_keys_tokens_or_url_passwords)
{
        static const char *const texts[][2] = {
                { "", "" },
                { "pod 'default/web': started", "pod 'default/web': started" },
                { "GET https://user:hunter2@example.com/a?b",
                  "GET https://<masked>@example.com/a?b" },
                { "GET https://hunter2@example.com/", "GET https://<masked>@example.com/" },
                { "https://example.com/user@host", "https://example.com/user@host" },
                { "Authorization: Bearer hunter2, next", "Authorization: Bearer <masked>, next" },
                { "basic aHVudGVyMg==", "basic <masked>" },
                { "token " JWT " ends", "token <masked> ends" },
                { "\"" JWT "\"", "\"<masked>\"" },
                { "AGE-SECRET-KEY-1HUNTER2\nnext", "AGE-SECRET-KEY-1<masked>\nnext" },
                { "-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----\nnext",
                  "<masked>-----END EC PRIVATE KEY-----\nnext" },
                { "-----BEGIN PRIVATE KEY-----\nhunter2", "<masked>" },
                { "-----BEGIN CERTIFICATE-----\nabc", "-----BEGIN CERTIFICATE-----\nabc" },
                { "secret \"till\": password: is damaged",
                  "secret \"till\": password: is damaged" },
        };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
                cleanup_free char *redacted = redact_text(texts[i][0], REDACT_AGENT);

                EXPECT_STREQ(redacted, texts[i][1]);
        }
}

TEST(redacted_container_log_has_no_values_of_names_such_as_password)
{
        static const char *const texts[][2] = {
                { "DB_PASSWORD=hunter2 next", "DB_PASSWORD=<masked> next" },
                { "password: hunter2", "password: <masked>" },
                { "{\"apiKey\": \"hunter2 more\", \"a\": 1}",
                  "{\"apiKey\": \"<masked>\", \"a\": 1}" },
                { "{\\\"token\\\":\\\"hunter2\\\"}", "{\\\"token\\\":\\\"<masked>\"}" },
                { "Access-Key = 'hunter2'", "Access-Key = '<masked>'" },
                { "user=admin level=info", "user=admin level=info" },
                { "=", "=" },
                { "password=", "password=" },
                { "no tokens left: 5", "no tokens left: 5" },
        };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
                cleanup_free char *redacted = redact_text(texts[i][0], REDACT_CONTAINER);

                EXPECT_STREQ(redacted, texts[i][1]);
        }
}

static char *redact(const char *text) {
        cleanup_json json_t *json = json_loads(text, 0, NULL);

        REQUIRE(json);
        EXPECT_EQ(redact_json(json), 0);
        return json_to_text(json, JSON_COMPACT);
}

TEST(redacted_json_has_no_values_of_variables_headers_and_data)
{
        static const char *const texts[][2] = {
                { "{\"env\":[{\"name\":\"A\",\"value\":\"hunter2\"},{\"name\":\"B\"}]}",
                  "{\"env\":[{\"name\":\"A\",\"value\":\"<masked>\"},{\"name\":\"B\"}]}" },
                { "{\"httpHeaders\":[{\"name\":\"A\",\"value\":\"hunter2\"}]}",
                  "{\"httpHeaders\":[{\"name\":\"A\",\"value\":\"<masked>\"}]}" },
                { "{\"items\":[{\"data\":{\"a\":\"hunter2\"},\"stringData\":{\"b\":\"hunter2\"}}]}",
                  "{\"items\":[{\"data\":{\"a\":\"<masked>\"},\"stringData\":{\"b\":\"<masked>\"}}]"
                  "}" },
                { "{\"annotations\":{\"kubectl.kubernetes.io/last-applied-configuration\":\"x\"}}",
                  "{\"annotations\":{\"kubectl.kubernetes.io/"
                  "last-applied-configuration\":\"<masked>\"}}" },
                { "{\"annotations\":{\"example.com/api-token\":\"hunter2\"}}",
                  "{\"annotations\":{\"example.com/api-token\":\"<masked>\"}}" },
                { "{\"secret\":{\"secretName\":\"till\"}}",
                  "{\"secret\":{\"secretName\":\"till\"}}" },
                { "{\"args\":[\"--password=hunter2\"]}", "{\"args\":[\"--password=<masked>\"]}" },
                { "{\"message\":\"pull of https://a:b@c\",\"n\":1}",
                  "{\"message\":\"pull of https://<masked>@c\",\"n\":1}" },
        };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
                cleanup_free char *redacted = redact(texts[i][0]);

                EXPECT_STREQ(redacted, texts[i][1]);
        }
}
