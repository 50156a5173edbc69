/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/names.h"
#include "tests/test.h"

typedef int (*check_t)(const char *value, Error *reterr);

#define X63 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const struct {
        check_t check;
        const char *value;
        const char *message; /* NULL: accepted */
} cases[] = {
        { check_dns_label, "web", NULL },
        { check_dns_label, "a-1", NULL },
        { check_dns_label, "1", NULL },
        { check_dns_label, X63, NULL },
        { check_dns_label, X63 "x", "must be at most 63 characters, not 64" },
        { check_dns_label, "Web_1", "must be a DNS label, not 'Web_1'" },
        { check_dns_label, "", "must be a DNS label, not ''" },
        { check_dns_label, "-a", "must be a DNS label, not '-a'" },
        { check_dns_label, "a-", "must be a DNS label, not 'a-'" },
        { check_dns_label, "a.b", "must be a DNS label, not 'a.b'" },
        { check_dns_label, "../etc", "must be a DNS label, not '../etc'" },
        { check_dns_label, "a\nb", "must be a DNS label, not 'a?b'" },
        { check_dns_label, "ä", "must be a DNS label, not 'ä'" },

        { check_dns_subdomain, "web.example-1.com", NULL },
        { check_dns_subdomain, "a..b", "must be a DNS subdomain, not 'a..b'" },
        { check_dns_subdomain, ".a", "must be a DNS subdomain, not '.a'" },
        { check_dns_subdomain, "a.", "must be a DNS subdomain, not 'a.'" },
        { check_dns_subdomain, "a/b", "must be a DNS subdomain, not 'a/b'" },
        { check_dns_subdomain, X63 "." X63 "." X63 "." X63,
          "must be at most 253 characters, not 255" },

        { check_uid, "0123456789abcdef0123456789abcdef", NULL },
        { check_uid, "23c4785a-c0aa-4524-a673-1734781e1099", NULL },
        { check_uid, "../../../../../../../../../../etc",
          "must be a UID, not '../../../../../../../../../../etc'" },
        { check_uid, "abc", "must be a UID, not 'abc'" },

        { check_label_key, "app", NULL },
        { check_label_key, "app.kubernetes.io/name", NULL },
        { check_label_key, "A_b.c-d", NULL },
        { check_label_key, "Example.com/a",
          "must have a DNS subdomain before the '/', not 'Example.com/a'" },
        { check_label_key, "/a", "must have a DNS subdomain before the '/', not '/a'" },
        { check_label_key, "a/b/c",
          "must be a qualified name such as example.com/my-name, not 'a/b/c'" },
        { check_label_key, "", "must be a qualified name such as example.com/my-name, not ''" },
        { check_label_key, X63 "x", "must have a name of at most 63 characters, not 64" },
        { check_annotation_key, "Example.com/A", NULL },
        { check_annotation_key, "a b",
          "must be a qualified name such as example.com/my-name, not 'a b'" },

        { check_label_value, "", NULL },
        { check_label_value, "A.b_c-1", NULL },
        { check_label_value, "-a",
          "must be letters, digits, '-', '_' or '.' between alphanumerics, not '-a'" },
        { check_label_value, X63 "x", "must be at most 63 characters, not 64" },

        { check_env_name, "PATH", NULL },
        { check_env_name, "a.b-c d%", NULL },
        { check_env_name, "a=b", "must be printable ASCII without '=', not 'a=b'" },
        { check_env_name, "a\nb", "must be printable ASCII without '=', not 'a?b'" },
        { check_env_name, "ü", "must be printable ASCII without '=', not 'ü'" },

        { check_port_name, "http", NULL },
        { check_port_name, "a-1", NULL },
        { check_port_name, "0123456789abcde", NULL },
        { check_port_name, "0123456789abcdef", "must be at most 15 characters, not 16" },
        { check_port_name, "80", "must contain a letter, not '80'" },
        { check_port_name, "a--b",
          "must be lower-case letters, digits and single '-' between them, not 'a--b'" },
        { check_port_name, "HTTP",
          "must be lower-case letters, digits and single '-' between them, not 'HTTP'" },

        { check_ip_address, "127.0.0.1", NULL },
        { check_ip_address, "::1", NULL },
        { check_ip_address, "127.1", "must be an IP address, not '127.1'" },
        { check_ip_address, "localhost", "must be an IP address, not 'localhost'" },

        { check_optional_dns_label, "", NULL },
        { check_optional_dns_label, "a.b", "must be a DNS label, not 'a.b'" },
        { check_dns_search, ".", NULL },
        { check_dns_search, "_tcp.example.com.", NULL },
        { check_dns_search, "", "must be a DNS subdomain, not ''" },
        { check_dns_search, "a b", "must be a DNS subdomain, not 'a b'" },
        { check_dns_option, "ndots", NULL },
        { check_dns_option, "a\nnameserver 1.1.1.1",
          "must be printable ASCII without blanks, not 'a?nameserver 1.1.1.1'" },

        { check_image, "busybox:1.36", NULL },
        { check_image, " busybox", "must not have white space around it, not ' busybox'" },
        { check_image, "busybox\n", "must not have white space around it, not 'busybox?'" },

        { check_host_path, "/etc", NULL },
        { check_host_path, "/etc/..d/a..b", NULL },
        { check_host_path, "etc", "must be an absolute path, not 'etc'" },
        { check_host_path, "/etc/../root", "must not contain '..', not '/etc/../root'" },
        { check_host_path, "/etc/..", "must not contain '..', not '/etc/..'" },

        { check_mount_path, "/data", NULL },
        { check_mount_path, "data", NULL },
        { check_mount_path, "/a:/b", "must not contain ':', not '/a:/b'" },
};

TEST(name_rules_refuse_invalid_names_with_their_message)
{
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                Error error = ERROR_NULL;
                int r = cases[i].check(cases[i].value, &error);

                EXPECT_EQ(r, cases[i].message ? -22 : 0);
                EXPECT_STREQ(error.message, cases[i].message);
                error_done(&error);
        }
}

TEST(excerpt_is_cut_between_characters)
{
        char buffer[EXCERPT_SIZE], text[400];

        memset(text, 'a', sizeof(text));
        text[sizeof(text) - 1] = '\0';
        excerpt(buffer, text);
        EXPECT(strlen(buffer) < EXCERPT_SIZE);
        EXPECT(strstr(buffer, "a…") != NULL);

        for (size_t i = 0; i + 2 < sizeof(text); i += 2)
                memcpy(text + i, "ä", 2);
        text[sizeof(text) - 2] = '\0';
        excerpt(buffer, text);
        EXPECT(strstr(buffer, "ä…") != NULL);
        /* From the next byte on, a cut at the same position would split a character. */
        excerpt(buffer, text + 1);
        EXPECT(strstr(buffer, "ä…") != NULL);
        EXPECT_STREQ(excerpt(buffer, "a\tb\x7f"), "a?b?");
}
