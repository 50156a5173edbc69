/* SPDX-License-Identifier: Apache-2.0 */

/* challenge = scheme [ 1*SP ( token68 / #( name BWS "=" BWS ( token / quoted-string ) ) ) ]. Commas
 * separate both parameters and challenges, so a word that is not followed by '=' starts the next
 * challenge. */

#include "agent/image-helper/registry/challenge.h"

#include "common/cleanup.h"

enum {
        VALUE_LENGTH_MAX = 2048
};

static bool is_token_character(char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (c && strchr("!#$%&'*+-.^_`|~", c));
}

static size_t token_length(const char *p) {
        size_t n = 0;

        while (is_token_character(p[n]))
                n++;
        return n;
}

/* Takes a token or a quoted string. -EINVAL if it is neither, or too long. */
static int read_challenge_value(const char **at, char **ret) {
        cleanup_free char *value = NULL;
        const char *p = *at;
        size_t n = 0;

        if (*p != '"') {
                n = token_length(p);
                if (n == 0 || n > VALUE_LENGTH_MAX)
                        return -EINVAL;
                *at = p + n;
                *ret = strndup(p, n);
                return *ret ? 0 : -ENOMEM;
        }
        value = calloc(1, VALUE_LENGTH_MAX + 1);
        if (!value)
                return -ENOMEM;
        for (p++; *p != '"'; p++) {
                if (*p == '\\')
                        p++;
                if (*p == '\0' || n == VALUE_LENGTH_MAX)
                        return -EINVAL;
                value[n++] = *p;
        }
        *at = p + 1;
        *ret = TAKE_PTR(value);
        return 0;
}

static int keep_challenge_parameter(Challenge *challenge, const char *name, size_t length,
                                    char **value) {
        const struct {
                const char *name;
                char **member;
        } members[] = {
                { "realm", &challenge->realm },
                { "service", &challenge->service },
                { "scope", &challenge->scope },
                { "error", &challenge->error },
        };

        for (size_t i = 0; i < N_ELEMENTS(members); i++) {
                if (strlen(members[i].name) != length ||
                    strncasecmp(members[i].name, name, length) != 0 || *members[i].member)
                        continue;
                *members[i].member = TAKE_PTR(*value);
        }
        return 0;
}

/* The parameters of one challenge, up to the next one or the end. */
static int read_parameters(Challenge *challenge, const char **at) {
        for (;;) {
                const char *p = *at + strspn(*at, " \t,");
                cleanup_free char *value = NULL;
                size_t n = token_length(p);
                const char *equals = p + n + strspn(p + n, " \t");
                int r;

                if (n == 0 || *equals != '=') {
                        *at = p;
                        return 0;
                }
                equals += 1 + strspn(equals + 1, " \t");
                r = read_challenge_value(&equals, &value);
                if (r < 0)
                        return r;
                *at = equals;
                (void) keep_challenge_parameter(challenge, p, n, &value);
        }
}

static ChallengeScheme scheme_of(const char *p, size_t n) {
        if (n == 6 && strncasecmp(p, "Bearer", n) == 0)
                return CHALLENGE_BEARER;
        return n == 5 && strncasecmp(p, "Basic", n) == 0 ? CHALLENGE_BASIC : CHALLENGE_NONE;
}

int challenge_read(Challenge *challenge, const char *value) {
        for (const char *p = value + strspn(value, " \t,"); *p;) {
                size_t n = token_length(p);
                Challenge one = { .scheme = scheme_of(p, n) };
                int r;

                if (n == 0)
                        return 0;
                p += n;
                r = read_parameters(&one, &p);
                if (r < 0 || one.scheme <= challenge->scheme ||
                    (one.scheme == CHALLENGE_BEARER && !one.realm)) {
                        challenge_done(&one);
                        if (r < 0)
                                return r == -ENOMEM ? r : 0;
                        continue;
                }
                challenge_done(challenge);
                *challenge = one;
        }
        return 0;
}

void challenge_done(Challenge *challenge) {
        free(challenge->realm);
        free(challenge->service);
        free(challenge->scope);
        free(challenge->error);
        *challenge = (Challenge){ 0 };
}
