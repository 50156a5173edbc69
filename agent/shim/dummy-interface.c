/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/dummy-interface.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/macros.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ipv6.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static const char netns_variable[] = "CNI_NETNS=";
static const char own_namespace[] = "/proc/self/ns/net";

static char **find_netns_variable(char **environment) {
        for (; environment && *environment; environment++)
                if (strncmp(*environment, netns_variable, strlen(netns_variable)) == 0)
                        return environment;
        return NULL;
}

/* Enters the namespace to check. */
static bool namespace_has_interface(const char *netns, const char *interface) {
        cleanup_close int fd = open(netns, O_RDONLY | O_CLOEXEC);

        return fd >= 0 && setns(fd, CLONE_NEWNET) >= 0 && if_nametoindex(interface) > 0;
}

static int add_dummy_address(const char *interface, const char *address) {
        struct sockaddr_in v4 = { .sin_family = AF_INET };
        struct ifreq request = { 0 };
        struct in6_ifreq request6 = { .ifr6_prefixlen = 128 };
        bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
        cleanup_close int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return -errno;
        if (is_v4) {
                (void) snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
                memcpy(&request.ifr_addr, &v4, sizeof(v4));
                return ioctl(fd, SIOCSIFADDR, &request) < 0 ? -errno : 0;
        }
        request6.ifr6_ifindex = (int) if_nametoindex(interface);
        if (inet_pton(AF_INET6, address, &request6.ifr6_addr) != 1)
                return -EINVAL;
        return ioctl(fd, SIOCSIFADDR, &request6) < 0 ? -errno : 0;
}

/* The interface is a bridge, because one call creates it and it can be deleted like any other
 * interface. */
static int add_dummy_bridge(const char *interface) {
        cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        return fd < 0 || ioctl(fd, SIOCBRADDBR, interface) < 0 ? -errno : 0;
}

/* The current network namespace, as a descriptor that survives execve(2). */
static int open_inheritable_netns(void) {
        cleanup_close int fd = open(own_namespace, O_RDONLY | O_CLOEXEC);

        return fd < 0 || fcntl(fd, F_SETFD, 0) < 0 ? -errno : TAKE_FD(fd);
}

static int set_netns_variable(int fd, char **variable) {
        char *text = NULL;

        text = text_format("%s/proc/%d/fd/%d", netns_variable, (int) getpid(), fd);
        if (!text)
                return -ENOMEM;
        free(*variable);
        *variable = text;
        return 0;
}

/* Leaves the process in the new namespace. If a node cannot create such an interface, the deletion
 * runs anyway. */
static int make_dummy_interface(const char *interface, const char *address, char **variable) {
        int fd, r;

        if (unshare(CLONE_NEWNET) < 0)
                return -errno;
        r = add_dummy_bridge(interface);
        if (r >= 0)
                r = add_dummy_address(interface, address);
        if (r < 0) {
                log_warning("Cannot create a dummy interface '%s' with the address %s: %s; the "
                            "network plugin runs without it",
                            interface, address, strerror(-r));
                return 0;
        }
        fd = open_inheritable_netns();
        r = fd < 0 ? fd : set_netns_variable(fd, variable);
        return r < 0 ? r : 1;
}

int dummy_interface_create(const char *interface, const char *address, char **environment,
                           Error *reterr) {
        char **variable = find_netns_variable(environment);
        cleanup_close int home = open(own_namespace, O_RDONLY | O_CLOEXEC);
        int r = 0;

        if (home < 0)
                return -errno;
        if (!variable)
                return -EINVAL;
        if (!namespace_has_interface(*variable + strlen(netns_variable), interface))
                r = make_dummy_interface(interface, address, variable);
        if (r >= 0 && setns(home, CLONE_NEWNET) < 0)
                r = -errno;
        return r < 0 ? error_setf(reterr, -r, "cannot create a dummy interface for '%s': %s",
                                  interface, strerror(-r))
                     : r;
}
