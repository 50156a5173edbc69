/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/names.h"

#include "common/clock.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
        PORT_NAME_MAX = 15,
        APP_ARMOR_NAME_MAX = 4095,
        LABEL_VALUE_MAX = 63,
};

static bool is_lower_alnum(char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c) {
        return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

const char *excerpt(char buffer[EXCERPT_SIZE], const char *text) {
        static const char more[] = "…";
        size_t room = EXCERPT_SIZE - sizeof(more), n = 0;

        for (; n < room && text[n]; n++) {
                buffer[n] = text[n];
                if ((unsigned char) text[n] < ' ' || text[n] == 0x7f)
                        buffer[n] = '?';
        }
        if (text[n]) {
                /* The truncation must not split a UTF-8 sequence. */
                while (n > 0 && ((unsigned char) text[n] & 0xc0) == 0x80)
                        n--;
                memcpy(buffer + n, more, sizeof(more));
        } else
                buffer[n] = '\0';
        return buffer;
}

static int refuse_name_value(const char *value, const char *rule, Error *reterr) {
        char text[EXCERPT_SIZE];

        return error_setf(reterr, EINVAL, "must %s, not '%s'", rule, excerpt(text, value));
}

static int refuse_name_length(const char *value, size_t max, Error *reterr) {
        return error_setf(reterr, EINVAL, "must be at most %zu characters, not %zu", max,
                          strlen(value));
}

/* Checks the characters only; the caller checks the length. */
static bool has_label_characters(const char *text, size_t n) {
        if (n == 0 || !is_lower_alnum(text[0]) || !is_lower_alnum(text[n - 1]))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!is_lower_alnum(text[i]) && text[i] != '-')
                        return false;
        return true;
}

static bool has_subdomain_characters(const char *text, size_t n) {
        const char *end = text + n;

        for (;;) {
                const char *dot = memchr(text, '.', (size_t) (end - text));
                size_t length = (size_t) ((dot ? dot : end) - text);

                if (!has_label_characters(text, length))
                        return false;
                if (!dot)
                        return true;
                text = dot + 1;
        }
}

bool is_dns_label(const char *text) {
        size_t n = strlen(text);

        return n <= DNS_LABEL_MAX && has_label_characters(text, n);
}

bool is_dns_subdomain(const char *text) {
        size_t n = strlen(text);

        return n <= DNS_SUBDOMAIN_MAX && has_subdomain_characters(text, n);
}

int check_dns_label(const char *value, Error *reterr) {
        if (strlen(value) > DNS_LABEL_MAX)
                return refuse_name_length(value, DNS_LABEL_MAX, reterr);
        return is_dns_label(value) ? 0 : refuse_name_value(value, "be a DNS label", reterr);
}

int check_dns_subdomain(const char *value, Error *reterr) {
        if (strlen(value) > DNS_SUBDOMAIN_MAX)
                return refuse_name_length(value, DNS_SUBDOMAIN_MAX, reterr);
        return is_dns_subdomain(value) ? 0 : refuse_name_value(value, "be a DNS subdomain", reterr);
}

int check_host_name(const char *value, Error *reterr) {
        if (strlen(value) > KERNEL_HOST_NAME_MAX)
                return refuse_name_length(value, KERNEL_HOST_NAME_MAX, reterr);
        return check_dns_subdomain(value, reterr);
}

int check_uid(const char *value, Error *reterr) {
        size_t n = strlen(value), digits = strspn(value, "0123456789abcdef-");

        if (digits != n || (n != 32 && n != 36))
                return refuse_name_value(value, "be a UID", reterr);
        return 0;
}

/* ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9] */
static bool has_name_characters(const char *text) {
        size_t n = strlen(text);

        if (n == 0 || !is_alnum(text[0]) || !is_alnum(text[n - 1]))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!is_alnum(text[i]) && !strchr("-_.", text[i]))
                        return false;
        return true;
}

int check_label_key(const char *value, Error *reterr) {
        const char *slash = strchr(value, '/');
        const char *name = slash ? slash + 1 : value;
        size_t n_prefix = slash ? (size_t) (slash - value) : 0;

        if (slash && (n_prefix > DNS_SUBDOMAIN_MAX || !has_subdomain_characters(value, n_prefix)))
                return refuse_name_value(value, "have a DNS subdomain before the '/'", reterr);
        if (strlen(name) > LABEL_VALUE_MAX)
                return error_setf(reterr, EINVAL,
                                  "must have a name of at most %d characters, not %zu",
                                  LABEL_VALUE_MAX, strlen(name));
        if (!has_name_characters(name))
                return refuse_name_value(value, "be a qualified name such as example.com/my-name",
                                         reterr);
        return 0;
}

int check_extended_resource(const char *value, Error *reterr) {
        static const char quota_prefix[] = "requests.", native_domain[] = "kubernetes.io/";
        char quota[DNS_SUBDOMAIN_MAX + LABEL_VALUE_MAX + sizeof(quota_prefix) + 1];

        if (!strchr(value, '/') || strstr(value, native_domain) ||
            strncmp(value, quota_prefix, strlen(quota_prefix)) == 0)
                return refuse_name_value(
                        value, "be the name of a resource with a domain, such as example.com/gpu",
                        reterr);
        if ((size_t) snprintf(quota, sizeof(quota), "%s%s", quota_prefix, value) >= sizeof(quota))
                return refuse_name_length(value, sizeof(quota) - sizeof(quota_prefix), reterr);
        if (check_label_key(value, reterr) < 0)
                return -EINVAL;
        return check_label_key(quota, NULL) < 0
                       ? refuse_name_length(value, DNS_SUBDOMAIN_MAX, reterr)
                       : 0;
}

int check_annotation_key(const char *value, Error *reterr) {
        char lower[DNS_SUBDOMAIN_MAX + LABEL_VALUE_MAX + 2];
        size_t n = strlen(value);

        if (n >= sizeof(lower))
                return refuse_name_length(value, sizeof(lower) - 1, reterr);
        for (size_t i = 0; i <= n; i++)
                lower[i] = (char) tolower((unsigned char) value[i]);
        return check_label_key(lower, reterr);
}

int check_label_value(const char *value, Error *reterr) {
        if (strlen(value) > LABEL_VALUE_MAX)
                return refuse_name_length(value, LABEL_VALUE_MAX, reterr);
        if (value[0] && !has_name_characters(value))
                return refuse_name_value(
                        value, "be letters, digits, '-', '_' or '.' between alphanumerics", reterr);
        return 0;
}

int check_env_name(const char *value, Error *reterr) {
        for (const char *p = value; *p; p++)
                if (*p < ' ' || *p > '~' || *p == '=')
                        return refuse_name_value(value, "be printable ASCII without '='", reterr);
        return 0;
}

int check_port_name(const char *value, Error *reterr) {
        size_t n = strlen(value);

        if (n > PORT_NAME_MAX)
                return refuse_name_length(value, PORT_NAME_MAX, reterr);
        if (!has_label_characters(value, n) || strstr(value, "--"))
                return refuse_name_value(
                        value, "be lower-case letters, digits and single '-' between them", reterr);
        if (strcspn(value, "abcdefghijklmnopqrstuvwxyz") == n)
                return refuse_name_value(value, "contain a letter", reterr);
        return 0;
}

/* A token according to RFC 9110. */
int check_header_name(const char *value, Error *reterr) {
        for (const char *p = value; *p; p++)
                if (!is_alnum(*p) && *p != '-')
                        return refuse_name_value(value, "be a valid HTTP header name", reterr);
        return 0;
}

static bool has_control_character(const char *value) {
        for (const char *p = value; *p; p++)
                if ((unsigned char) *p < ' ' || *p == 0x7f)
                        return true;
        return false;
}

int check_header_value(const char *value, Error *reterr) {
        return has_control_character(value)
                       ? refuse_name_value(value, "be one line of text", reterr)
                       : 0;
}

int check_url_path(const char *value, Error *reterr) {
        return has_control_character(value) ? refuse_name_value(value, "be a path of a URL", reterr)
                                            : 0;
}

int check_host(const char *value, Error *reterr) {
        struct in6_addr address;
        const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

        if (inet_pton(AF_INET6, value, &address) == 1)
                return 0;
        if (strlen(value) > DNS_SUBDOMAIN_MAX)
                return refuse_name_length(value, DNS_SUBDOMAIN_MAX, reterr);
        if (value[strspn(value, allowed)])
                return refuse_name_value(value, "be the name or the address of a host", reterr);
        return 0;
}

int check_ip_address(const char *value, Error *reterr) {
        struct in6_addr address;

        if (inet_pton(AF_INET, value, &address) == 1 || inet_pton(AF_INET6, value, &address) == 1)
                return 0;
        return refuse_name_value(value, "be an IP address", reterr);
}

int check_optional_dns_label(const char *value, Error *reterr) {
        return value[0] ? check_dns_label(value, reterr) : 0;
}

/* Kubernetes allows '_' here (RelaxedDNSSearchValidation). */
int check_dns_search(const char *value, Error *reterr) {
        char copy[DNS_SUBDOMAIN_MAX + 2];
        size_t n = strlen(value);

        if (streq(value, "."))
                return 0;
        if (n > 0 && value[n - 1] == '.')
                n--;
        if (n > DNS_SUBDOMAIN_MAX)
                return refuse_name_length(value, DNS_SUBDOMAIN_MAX, reterr);
        for (size_t i = 0; i < n; i++)
                copy[i] = value[i];
        copy[n] = '\0';
        for (char *c = copy; *c; c++)
                if (*c == '_')
                        *c = 'a';
        return is_dns_subdomain(copy) ? 0 : refuse_name_value(value, "be a DNS subdomain", reterr);
}

int check_dns_option(const char *value, Error *reterr) {
        for (const char *c = value; *c; c++)
                if (*c <= ' ' || *c > '~')
                        return refuse_name_value(value, "be printable ASCII without blanks",
                                                 reterr);
        return 0;
}

int check_image(const char *value, Error *reterr) {
        size_t n = strlen(value);

        if (n > 0 && (isspace((unsigned char) value[0]) || isspace((unsigned char) value[n - 1])))
                return refuse_name_value(value, "not have white space around it", reterr);
        return 0;
}

static bool has_dot_dot(const char *path) {
        while (*path) {
                size_t n = strcspn(path, "/");

                if (n == 2 && strncmp(path, "..", 2) == 0)
                        return true;
                path += n;
                path += strspn(path, "/");
        }
        return false;
}

int check_absolute_path(const char *value, Error *reterr) {
        return value[0] == '/' ? 0 : refuse_name_value(value, "be an absolute path", reterr);
}

int check_host_path(const char *value, Error *reterr) {
        int r = check_absolute_path(value, reterr);

        if (r < 0)
                return r;
        if (has_dot_dot(value))
                return refuse_name_value(value, "not contain '..'", reterr);
        return 0;
}

/* Printable, without blanks, quotes and backslashes. */
static bool is_plain_word(const char *value) {
        for (const char *p = value; *p; p++)
                if (*p <= ' ' || *p >= 127 || strchr("\"'\\", *p))
                        return false;
        return value[0] && value[0] != '-';
}

int check_nfs_server(const char *value, Error *reterr) {
        return is_plain_word(value) && !strpbrk(value, "/,")
                       ? 0
                       : refuse_name_value(value, "be a host name or an address", reterr);
}

int check_nfs_option(const char *value, Error *reterr) {
        return is_plain_word(value)
                       ? 0
                       : refuse_name_value(value,
                                           "be an option of mount.nfs, without blanks or "
                                           "quotes",
                                           reterr);
}

int check_csi_driver(const char *value, Error *reterr) {
        bool is_valid = is_alnum(value[0]) && strlen(value) <= DNS_LABEL_MAX;

        for (const char *p = value; *p; p++)
                is_valid = is_valid && (is_alnum(*p) || *p == '-' || *p == '.');
        return is_valid ? 0
                        : refuse_name_value(value,
                                            "consist of at most 63 letters, digits, '-' and '.'",
                                            reterr);
}

int check_mount_path(const char *value, Error *reterr) {
        return strchr(value, ':') ? refuse_name_value(value, "not contain ':'", reterr) : 0;
}

int check_data_key(const char *value, Error *reterr) {
        if (strlen(value) > DNS_SUBDOMAIN_MAX)
                return refuse_name_length(value, DNS_SUBDOMAIN_MAX, reterr);
        for (const char *p = value; *p; p++)
                if (!is_alnum(*p) && !strchr("-_.", *p))
                        return refuse_name_value(
                                value, "consist of letters, digits, '-', '_' and '.'", reterr);
        if (streq(value, ".") || strncmp(value, "..", 2) == 0)
                return refuse_name_value(value, "be neither '.' nor start with '..'", reterr);
        return 0;
}

int check_descending_path(const char *value, Error *reterr) {
        if (value[0] == '/')
                return refuse_name_value(value, "be a relative path", reterr);
        if (has_dot_dot(value))
                return refuse_name_value(value, "not contain '..'", reterr);
        return 0;
}

int check_file_path(const char *value, Error *reterr) {
        if (strncmp(value, "..", 2) == 0)
                return refuse_name_value(value, "not start with '..'", reterr);
        return check_descending_path(value, reterr);
}

int check_app_armor_name(const char *value, Error *reterr) {
        size_t n = strlen(value);

        if (n > APP_ARMOR_NAME_MAX)
                return refuse_name_length(value, APP_ARMOR_NAME_MAX, reterr);
        if (n > 0 && (isspace((unsigned char) value[0]) || isspace((unsigned char) value[n - 1])))
                return refuse_name_value(value, "not be padded with whitespace", reterr);
        return 0;
}

/* Parts of a-z, 0-9, '-' and '_' that start and end alphanumerically, separated by '.' or '/'. */
int check_sysctl_name(const char *value, Error *reterr) {
        const char *part = value;
        size_t n;

        if (strlen(value) > DNS_SUBDOMAIN_MAX)
                return refuse_name_length(value, DNS_SUBDOMAIN_MAX, reterr);
        for (;; part += n + 1) {
                n = strspn(part, "abcdefghijklmnopqrstuvwxyz0123456789-_");
                if (n == 0 || strchr("-_", part[0]) || strchr("-_", part[n - 1]) ||
                    !strchr("./", part[n]))
                        return refuse_name_value(
                                value, "be the name of a sysctl, such as kernel.shmmax", reterr);
                if (!part[n])
                        return 0;
        }
}

int check_time(const char *value, Error *reterr) {
        uint64_t usec;

        return parse_rfc3339(value, &usec) < 0
                       ? refuse_name_value(value, "be a time such as 2026-01-02T03:04:05Z", reterr)
                       : 0;
}

int check_percentage(const char *value, Error *reterr) {
        size_t n = strspn(value, "0123456789");

        if (n == 0 || n > 3 || !streq(value + n, "%") || strtol(value, NULL, 10) > 100)
                return refuse_name_value(value, "be a number or a percentage up to 100%", reterr);
        return 0;
}
