/* SPDX-License-Identifier: Apache-2.0 */
#include "common/registry-name.h"

#include "common/cleanup.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>

enum {
        HOST_LENGTH_MAX = 255, /* longer than any DNS name */
        PORT_LENGTH_MAX = 5
};

#define HTTPS_PORT "443"

/* A host and its port while they are being normalised. */
typedef struct RegistryParts {
        char host[HOST_LENGTH_MAX + 1]; /* an IPv6 address has no brackets here */
        char port[PORT_LENGTH_MAX + 1]; /* "": none */
        bool is_ipv6;
} RegistryParts;

static void lower_host(char *host) {
        for (; *host; host++)
                *host = (char) tolower((unsigned char) *host);
}

/* Splits "host:port" and "[address]:port". The host becomes lower case. False: neither form. */
static bool split_registry_name(const char *text, RegistryParts *parts, const char **ret_port) {
        size_t n;

        parts->is_ipv6 = *text == '[';
        text += parts->is_ipv6;
        n = strcspn(text, parts->is_ipv6 ? "]" : ":");
        if (n == 0 || n > HOST_LENGTH_MAX || (parts->is_ipv6 && text[n] != ']'))
                return false;
        memcpy(parts->host, text, n);
        parts->host[n] = '\0';
        lower_host(parts->host);
        text += n + parts->is_ipv6;
        *ret_port = *text == ':' ? text + 1 : NULL;
        return *text == ':' || *text == '\0';
}

static int normalise_port(const char *port, RegistryParts *parts, Error *reterr) {
        if (!port)
                return 0;
        if (!port[0] || port[strspn(port, "0123456789")])
                return error_setf(reterr, EINVAL, "the port is not a number");
        port += strspn(port, "0");
        if (!port[0] || strlen(port) > PORT_LENGTH_MAX || strtoul(port, NULL, 10) > UINT16_MAX)
                return error_setf(reterr, EINVAL, "the port must be 1 to 65535");
        memcpy(parts->port, port, strlen(port) + 1);
        return 0;
}

/* The C library prints these addresses with a dotted part, which is not in the grammar; they refer
 * to the IPv4 address, which has its own name. */
static bool embeds_ipv4_address(const struct in6_addr *address) {
        static const struct in6_addr zeros;

        return IN6_IS_ADDR_V4MAPPED(address) ||
               (memcmp(address, &zeros, 12) == 0 && (address->s6_addr[12] || address->s6_addr[13]));
}

static int normalise_ipv6_address(RegistryParts *parts, Error *reterr) {
        struct in6_addr address;

        if (strpbrk(parts->host, ".%") || inet_pton(AF_INET6, parts->host, &address) != 1)
                return error_setf(reterr, EINVAL,
                                  "the brackets must hold an IPv6 address without a zone");
        if (embeds_ipv4_address(&address))
                return error_setf(reterr, EINVAL,
                                  "it embeds an IPv4 address, which must be written as such");
        return inet_ntop(AF_INET6, &address, parts->host, sizeof(parts->host)) ? 0 : -errno;
}

static bool host_labels_are_valid(const char *p) {
        for (;;) {
                const char *start = p;

                while (isalnum((unsigned char) *p) || *p == '-')
                        p++;
                if (p == start || *start == '-' || p[-1] == '-')
                        return false;
                if (*p == '\0')
                        return true;
                if (*p++ != '.')
                        return false;
        }
}

/* Whether libcurl and the C library may interpret the name as an IPv4 address because of its last
 * label. No DNS name ends with a number. */
static bool ends_with_number(const char *host) {
        const char *dot = strrchr(host, '.'), *label = dot ? dot + 1 : host;

        if (strncmp(label, "0x", 2) == 0)
                return strspn(label + 2, "0123456789abcdef") == strlen(label + 2);
        return strspn(label, "0123456789") == strlen(label);
}

static int check_registry_host(const char *host, Error *reterr) {
        struct in_addr address;

        if (!host_labels_are_valid(host))
                return error_setf(reterr, EINVAL,
                                  "it must be a host or an address, and optionally a port");
        if (ends_with_number(host) && inet_pton(AF_INET, host, &address) != 1)
                return error_setf(reterr, EINVAL,
                                  "an IPv4 address must be four decimal numbers, like 127.0.0.1");
        return 0;
}

static bool is_docker_hub(const RegistryParts *parts) {
        return !parts->port[0] &&
               (streq(parts->host, "docker.io") || streq(parts->host, "index.docker.io") ||
                streq(parts->host, "registry-1.docker.io"));
}

static int join_registry_name(RegistryParts *parts, char **ret) {
        bool is_bare =
                !parts->is_ipv6 && !strchr(parts->host, '.') && !streq(parts->host, "localhost");
        char *joined;

        if (streq(parts->port, HTTPS_PORT))
                parts->port[0] = '\0';
        if (is_docker_hub(parts))
                memcpy(parts->host, "docker.io", sizeof("docker.io"));
        if (is_bare && !parts->port[0])
                memcpy(parts->port, HTTPS_PORT, sizeof(HTTPS_PORT));
        joined = text_format("%s%s%s%s%s", parts->is_ipv6 ? "[" : "", parts->host,
                             parts->is_ipv6 ? "]" : "", parts->port[0] ? ":" : "", parts->port);
        if (!joined)
                return -ENOMEM;
        *ret = joined;
        return 0;
}

int registry_name_normalise(const char *text, char **ret, Error *reterr) {
        RegistryParts parts = { 0 };
        const char *port;
        int r;

        if (!split_registry_name(text, &parts, &port))
                r = error_setf(reterr, EINVAL, "it must be a host, and optionally a port");
        else if (parts.is_ipv6)
                r = normalise_ipv6_address(&parts, reterr);
        else
                r = check_registry_host(parts.host, reterr);
        if (r >= 0)
                r = normalise_port(port, &parts, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "'%.256s' is not a registry", text);
        return join_registry_name(&parts, ret);
}

bool registry_name_equals(const char *text, const char *normal) {
        cleanup_free char *name = NULL;

        return registry_name_normalise(text, &name, NULL) >= 0 && streq(name, normal);
}

bool registry_is_loopback(const char *host) {
        struct in6_addr address6;
        struct in_addr address;
        RegistryParts parts;
        const char *port;

        if (!split_registry_name(host, &parts, &port))
                return false;
        if (parts.is_ipv6)
                return inet_pton(AF_INET6, parts.host, &address6) == 1 &&
                       IN6_IS_ADDR_LOOPBACK(&address6);
        return streq(parts.host, "localhost") || (inet_pton(AF_INET, parts.host, &address) == 1 &&
                                                  ntohl(address.s_addr) >> 24 == 127);
}
