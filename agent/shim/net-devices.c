/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel removes the addresses of an interface that leaves its namespace, so they are read
 * before the move and added again after it. */

#include "agent/shim/net-devices.h"

#include "agent/shim/hook-state.h"
#include "common/cleanup.h"

#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
        ADDRESSES_MAX = 64,
        ADDRESS_BYTES = 16,
        REPLY_MAX = 32 * 1024,
};

/* A message to the kernel, with room for its attributes. */
typedef struct NetlinkRequest {
        struct nlmsghdr header;
        union {
                struct ifinfomsg link;
                struct ifaddrmsg address;
        };
        char attributes[256];
} NetlinkRequest;

typedef struct InterfaceAddress {
        struct ifaddrmsg header;
        char local[ADDRESS_BYTES];
        size_t length;
} InterfaceAddress;

typedef struct InterfaceAddresses {
        unsigned index;
        InterfaceAddress items[ADDRESSES_MAX];
        size_t n;
} InterfaceAddresses;

/* ---- netlink ---- */

static NetlinkRequest make_request(uint16_t type, uint16_t flags, size_t body) {
        return (NetlinkRequest){ .header = { .nlmsg_len = (uint32_t) NLMSG_LENGTH(body),
                                             .nlmsg_type = type,
                                             .nlmsg_flags = (uint16_t) (NLM_F_REQUEST | flags) } };
}

static void add_attribute(NetlinkRequest *request, uint16_t type, const void *data, size_t length) {
        char *end = (char *) request + NLMSG_ALIGN(request->header.nlmsg_len);
        struct rtattr attribute = { .rta_len = (uint16_t) RTA_LENGTH(length), .rta_type = type };

        memcpy(end, &attribute, sizeof(attribute));
        memcpy(end + RTA_LENGTH(0), data, length);
        request->header.nlmsg_len =
                (uint32_t) (NLMSG_ALIGN(request->header.nlmsg_len) + RTA_SPACE(length));
}

/* Acts in the process's current network namespace. */
static int send_request(const NetlinkRequest *request) {
        cleanup_close int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

        if (fd < 0 || send(fd, request, request->header.nlmsg_len, 0) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* 0, or the error in the kernel's answer. */
static int perform_request(NetlinkRequest *request) {
        struct {
                struct nlmsghdr header;
                struct nlmsgerr error;
                char rest[512];
        } reply;
        cleanup_close int fd = -EBADF;

        request->header.nlmsg_flags |= NLM_F_ACK;
        fd = send_request(request);
        if (fd < 0)
                return fd;
        if (recv(fd, &reply, sizeof(reply), 0) < (ssize_t) NLMSG_LENGTH(sizeof(reply.error)))
                return errno > 0 ? -errno : -EBADMSG;
        return reply.header.nlmsg_type == NLMSG_ERROR ? reply.error.error : -EBADMSG;
}

/* ---- addresses ---- */

static void read_address(struct nlmsghdr *message, InterfaceAddresses *addresses) {
        struct ifaddrmsg *header = NLMSG_DATA(message);
        InterfaceAddress *address = &addresses->items[addresses->n];
        int length = (int) IFA_PAYLOAD(message);

        if (message->nlmsg_type != RTM_NEWADDR || addresses->n == ADDRESSES_MAX ||
            header->ifa_index != addresses->index || header->ifa_scope != RT_SCOPE_UNIVERSE ||
            !(header->ifa_flags & IFA_F_PERMANENT))
                return;
        *address = (InterfaceAddress){ .header = *header };
        for (struct rtattr *at = IFA_RTA(header); RTA_OK(at, length); at = RTA_NEXT(at, length))
                /* IFA_ADDRESS contains the address of a peer, and IFA_LOCAL that of the interface.
                 */
                if ((at->rta_type == IFA_LOCAL ||
                     (at->rta_type == IFA_ADDRESS && address->length == 0)) &&
                    RTA_PAYLOAD(at) <= ADDRESS_BYTES) {
                        address->length = RTA_PAYLOAD(at);
                        memcpy(address->local, RTA_DATA(at), address->length);
                }
        addresses->n += address->length > 0;
}

/* 1: more follows. */
static int read_addresses(int fd, InterfaceAddresses *addresses) {
        _Alignas(struct nlmsghdr) char buffer[REPLY_MAX];
        ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
        size_t length = n > 0 ? (size_t) n : 0;

        if (n <= 0)
                return n < 0 ? -errno : -EBADMSG;
        for (struct nlmsghdr *message = (struct nlmsghdr *) (void *) buffer;
             NLMSG_OK(message, length); message = NLMSG_NEXT(message, length)) {
                if (message->nlmsg_type == NLMSG_DONE)
                        return 0;
                if (message->nlmsg_type == NLMSG_ERROR)
                        return -EBADMSG;
                read_address(message, addresses);
        }
        return 1;
}

static int list_addresses(InterfaceAddresses *addresses) {
        NetlinkRequest request = make_request(RTM_GETADDR, NLM_F_DUMP, sizeof(struct ifaddrmsg));
        cleanup_close int fd = send_request(&request);
        int r = fd < 0 ? fd : 1;

        while (r > 0)
                r = read_addresses(fd, addresses);
        return r;
}

static int add_address(const InterfaceAddress *address, unsigned index) {
        NetlinkRequest request =
                make_request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, sizeof(struct ifaddrmsg));

        request.address = address->header;
        request.address.ifa_index = index;
        add_attribute(&request, IFA_LOCAL, address->local, address->length);
        add_attribute(&request, IFA_ADDRESS, address->local, address->length);
        return perform_request(&request);
}

/* ---- interfaces ---- */

static int move_link(unsigned index, const char *name, int space_fd) {
        NetlinkRequest request = make_request(RTM_NEWLINK, 0, sizeof(struct ifinfomsg));

        request.link = (struct ifinfomsg){ .ifi_family = AF_UNSPEC, .ifi_index = (int) index };
        add_attribute(&request, IFLA_NET_NS_FD, &space_fd, sizeof(space_fd));
        add_attribute(&request, IFLA_IFNAME, name, strlen(name) + 1);
        return perform_request(&request);
}

static int set_link_up(unsigned index) {
        NetlinkRequest request = make_request(RTM_NEWLINK, 0, sizeof(struct ifinfomsg));

        request.link = (struct ifinfomsg){ .ifi_family = AF_UNSPEC,
                                           .ifi_index = (int) index,
                                           .ifi_flags = IFF_UP,
                                           .ifi_change = IFF_UP };
        return perform_request(&request);
}

static int configure_moved(const char *name, const InterfaceAddresses *addresses) {
        unsigned index = if_nametoindex(name);
        int r = index > 0 ? 0 : -errno;

        for (size_t i = 0; i < addresses->n && r >= 0; i++)
                r = add_address(&addresses->items[i], index);
        return r < 0 ? r : set_link_up(index);
}

static int enter_network(int fd) {
        return setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
}

/* The process is in the container's network namespace before and after it. */
static int move_interface(const char *host_name, const char *name, int host_fd, int space_fd) {
        InterfaceAddresses addresses = { 0 };
        int r;

        if (if_nametoindex(name) > 0)
                return 0;
        r = enter_network(host_fd);
        if (r < 0)
                return r;
        addresses.index = if_nametoindex(host_name);
        r = addresses.index > 0 ? list_addresses(&addresses) : -errno;
        if (r >= 0)
                r = move_link(addresses.index, name, space_fd);
        if (enter_network(space_fd) < 0)
                return -EIO;
        return r < 0 ? r : configure_moved(name, &addresses);
}

static int move_all(const HookState *hook, int host_fd, int space_fd, Error *reterr) {
        json_t *own = json_object_get(hook->config, "mainstay"), *name;
        const char *host_name;

        json_object_foreach(json_object_get(own, "netDevices"), host_name, name) {
                const char *text = json_string_value(name);
                int r = text ? move_interface(host_name, text, host_fd, space_fd) : -EBADMSG;

                if (r < 0)
                        return error_setf(reterr, -r,
                                          "cannot move the network device %s into the container "
                                          "as %s: %s",
                                          host_name, text ? text : "", strerror(-r));
        }
        return 0;
}

int net_devices_move(int state_fd, Error *reterr) {
        cleanup_with(hook_state_done) HookState hook = { 0 };
        cleanup_close int host_fd = -EBADF, space_fd = -EBADF;
        const char *host;
        int r = hook_state_load(state_fd, &hook, reterr);

        if (r < 0)
                return r;
        host = json_string_value(
                json_object_get(json_object_get(hook.config, "mainstay"), "hostNetwork"));
        host_fd = open(host ? host : "", O_RDONLY | O_CLOEXEC);
        if (host_fd < 0)
                return error_setf(reterr, errno, "cannot open the network of the node: %s",
                                  strerror(errno));
        r = space_fd = hook_state_open_namespace(&hook, "net");
        if (r >= 0)
                r = enter_network(space_fd);
        if (r < 0)
                return error_setf(reterr, -r, "cannot enter the network of the container: %s",
                                  strerror(-r));
        return move_all(&hook, host_fd, space_fd, reterr);
}
