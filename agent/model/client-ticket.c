/* SPDX-License-Identifier: Apache-2.0 */

/* "<base64 of JSON>.<HMAC-SHA256 of that text in hex>" */

#include "agent/model/client-ticket.h"

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/json-text.h"

#include <stdio.h>

static char *print_ticket_json(const ApiUser *user, uint64_t expires, const char *authorities) {
        cleanup_json json_t *object = api_user_to_json(user);

        if (!object || json_object_set_new(object, "expires", json_integer((json_int_t) expires)) ||
            json_object_set_new(object, "authorities", json_string(authorities)))
                return NULL;
        return json_to_text(object, JSON_COMPACT);
}

int client_ticket_format(const ApiUser *user, uint64_t expires, const char *authorities,
                         const uint8_t key[TICKET_KEY_SIZE], char **ret) {
        cleanup_free char *json = print_ticket_json(user, expires, authorities), *text = NULL;
        size_t length = json ? strlen(json) : 0, size = (length + 2) / 3 * 4;

        if (!json)
                return -ENOMEM;
        if (size + SHA256_HEX_SIZE + 1 > TICKET_SIZE_MAX)
                return -E2BIG;
        text = malloc(size + SHA256_HEX_SIZE + 1);
        if (!text)
                return -ENOMEM;
        base64_encode(json, length, text);
        text[size] = '.';
        hmac_sha256_hex(key, TICKET_KEY_SIZE, text, size, text + size + 1);
        *ret = TAKE_PTR(text);
        return 0;
}

/* Compares in constant time, so that the duration does not reveal how much of the MAC is correct.
 */
static bool is_same_code(const char *a, const char *b) {
        unsigned char difference = 0;

        if (strlen(a) != strlen(b))
                return false;
        for (; *a; a++, b++)
                difference |= (unsigned char) (*a ^ *b);
        return difference == 0;
}

static int read_ticket_json(const char *json, uint64_t now, const char *authorities, ApiUser *ret) {
        cleanup_json json_t *object = json_loads(json, 0, NULL);
        const char *named = json_text(object, "authorities");

        if ((uint64_t) json_integer_value(json_object_get(object, "expires")) <= now)
                return -EACCES;
        if (authorities && !streq_ptr(named, authorities))
                return -EACCES;
        return api_user_from_json(object, ret);
}

int client_ticket_parse(const char *text, uint64_t now, const char *authorities,
                        const uint8_t key[TICKET_KEY_SIZE], ApiUser *ret) {
        const char *code = strchr(text, '.');
        cleanup_free char *digits = NULL, *json = NULL;
        char expected[SHA256_HEX_SIZE];
        size_t length;

        if (!code)
                return -EACCES;
        hmac_sha256_hex(key, TICKET_KEY_SIZE, text, (size_t) (code - text), expected);
        if (!is_same_code(expected, code + 1))
                return -EACCES;
        digits = strndup(text, (size_t) (code - text));
        if (!digits)
                return -ENOMEM;
        if (base64_decode(digits, &json, &length) < 0 || strlen(json) != length)
                return -EACCES;
        return read_ticket_json(json, now, authorities, ret);
}
