/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/http/listen-address.h"

#include "common/macros.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* Maps the address into IPv6; 0.0.0.0 becomes "::", all addresses of both families. */
static struct in6_addr map_ipv4_address(const struct in_addr *ipv4) {
        struct in6_addr address = IN6ADDR_ANY_INIT;

        if (ipv4->s_addr == INADDR_ANY)
                return address;
        address.s6_addr[10] = address.s6_addr[11] = 0xff;
        memcpy(&address.s6_addr[12], ipv4, sizeof(*ipv4));
        return address;
}

static struct in6_addr parse_listen_address(const char *text) {
        struct in6_addr ipv6 = IN6ADDR_ANY_INIT;
        struct in_addr ipv4;

        if (!text || inet_pton(AF_INET6, text, &ipv6) == 1)
                return ipv6;
        return inet_pton(AF_INET, text, &ipv4) == 1 ? map_ipv4_address(&ipv4) : ipv6;
}

int check_listen_address(int fd, const char *address, unsigned port, Error *reterr) {
        union {
                struct sockaddr any;
                struct sockaddr_in ipv4;
                struct sockaddr_in6 ipv6;
        } found = { .any.sa_family = AF_UNSPEC };
        socklen_t length = sizeof(found);
        struct in6_addr configured = parse_listen_address(address), actual;
        char text[INET6_ADDRSTRLEN];
        unsigned actual_port;

        if (getsockname(fd, &found.any, &length) < 0)
                return -errno;
        if (found.any.sa_family != AF_INET && found.any.sa_family != AF_INET6)
                return -EAFNOSUPPORT;
        actual = found.any.sa_family == AF_INET ? map_ipv4_address(&found.ipv4.sin_addr)
                                                : found.ipv6.sin6_addr;
        actual_port =
                ntohs(found.any.sa_family == AF_INET ? found.ipv4.sin_port : found.ipv6.sin6_port);
        if (actual_port == port && IN6_ARE_ADDR_EQUAL(&actual, &configured))
                return 0;
        return error_setf(reterr, EINVAL,
                          "the socket listens at port %u of %s, but the configuration has port %u "
                          "of %s",
                          actual_port, inet_ntop(AF_INET6, &actual, text, sizeof(text)), port,
                          address ? address : "all addresses");
}
