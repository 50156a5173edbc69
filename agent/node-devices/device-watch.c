/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-devices/device-watch.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <systemd/sd-device.h>
#include <unistd.h>

enum {
        EVENT_MAX = 8 * 1024,
        EVENTS_PER_TURN = 64,
        BUFFER_BYTES = 1024 * 1024,
        KERNEL_GROUP = 1,
        ANCESTORS_MAX = 32,
};

struct DeviceWatch {
        DeviceWatchConfig config;
        sd_device_monitor *monitor; /* udev's monitor; NULL: udev does not run */
        int fd;                     /* otherwise: the kernel's events */
        sd_event_source *source;
};

/* ---- facts ---- */

static const char *property_of(sd_device *device, const char *name) {
        const char *value;

        return sd_device_get_property_value(device, name, &value) >= 0 && value[0] ? value : NULL;
}

static const char *attribute_of(sd_device *device, const char *name) {
        const char *value;

        return device && sd_device_get_sysattr_value(device, name, &value) >= 0 && value[0] ? value
                                                                                            : NULL;
}

static sd_device *ancestor_of(sd_device *device, const char *subsystem, const char *type) {
        const char *own = NULL, *own_type = NULL;
        sd_device *parent;

        (void) sd_device_get_subsystem(device, &own);
        (void) sd_device_get_devtype(device, &own_type);
        if (streq_ptr(own, subsystem) && streq_ptr(own_type, type))
                return device;
        return sd_device_get_parent_with_subsystem_devtype(device, subsystem, type, &parent) >= 0
                       ? parent
                       : NULL;
}

static int set_first(char **text, const char *a, const char *b, const char *c) {
        const char *value = a ? a : b ? b : c;

        if (!value || *text)
                return 0;
        *text = strdup(value);
        return *text ? 0 : -ENOMEM;
}

/* udev's properties; without udev, the attributes that it would read. */
static int read_maker(sd_device *device, DeviceFacts *facts) {
        sd_device *usb = ancestor_of(device, "usb", "usb_device"),
                  *interface = ancestor_of(device, "usb", "usb_interface"),
                  *pci = usb ? NULL : ancestor_of(device, "pci", NULL), *parent = NULL;
        int r;

        (void) sd_device_get_parent(device, &parent);
        r = set_first(&facts->vendor, property_of(device, "ID_VENDOR_ID"),
                      attribute_of(usb, "idVendor"), attribute_of(pci, "vendor"));
        if (r >= 0)
                r = set_first(&facts->product, property_of(device, "ID_MODEL_ID"),
                              attribute_of(usb, "idProduct"), attribute_of(pci, "device"));
        if (r >= 0)
                r = set_first(&facts->serial, property_of(device, "ID_SERIAL_SHORT"),
                              attribute_of(usb, "serial"), attribute_of(device, "serial"));
        if (r >= 0)
                r = set_first(&facts->interface, property_of(device, "ID_USB_INTERFACE_NUM"),
                              attribute_of(interface, "bInterfaceNumber"), NULL);
        if (r >= 0)
                r = set_first(&facts->part, attribute_of(device, "partition"),
                              attribute_of(device, "index"), attribute_of(parent, "port_number"));
        return r;
}

/* The nearest ancestor whose name is that of a connector or a slot. */
static int read_place(sd_device *device, DeviceFacts *facts) {
        static const char *const buses[] = { "usb", "pci",   "platform", "virtio",
                                             "pnp", "serio", "acpi",     NULL };
        sd_device *at = device, *parent;

        for (unsigned i = 0; i < ANCESTORS_MAX && sd_device_get_parent(at, &parent) >= 0; i++) {
                const char *bus = NULL, *name = NULL;

                at = parent;
                if (sd_device_get_subsystem(at, &bus) < 0 || !text_is_one_of(bus, buses) ||
                    sd_device_get_sysname(at, &name) < 0)
                        continue;
                facts->place = text_format("%s-%s", bus, name);
                return facts->place ? 0 : -ENOMEM;
        }
        return 0;
}

static int read_properties(sd_device *device, DeviceFacts *facts) {
        const char *value;
        int r = 0;

        for (const char *key = sd_device_get_property_first(device, &value); key && r >= 0;
             key = sd_device_get_property_next(device, &value))
                r = string_map_set(&facts->properties, key, value);
        for (const char *link = sd_device_get_devlink_first(device); link && r >= 0;
             link = sd_device_get_devlink_next(device))
                r = strv_append(&facts->links, link);
        return r;
}

/* 1: it has a device node; 0: it has none; -errno. */
static int read_facts(sd_device *device, DeviceFacts *facts) {
        const char *syspath, *node, *sysname, *subsystem = NULL;
        dev_t number;
        int r;

        if (sd_device_get_devname(device, &node) < 0 || sd_device_get_devnum(device, &number) < 0 ||
            sd_device_get_syspath(device, &syspath) < 0 ||
            sd_device_get_sysname(device, &sysname) < 0)
                return 0;
        (void) sd_device_get_subsystem(device, &subsystem);
        facts->number = number;
        facts->syspath = strdup(syspath);
        facts->node = strdup(node);
        facts->sysname = strdup(sysname);
        facts->subsystem = strdup(strna(subsystem));
        if (!facts->syspath || !facts->node || !facts->sysname || !facts->subsystem)
                return -ENOMEM;
        r = read_maker(device, facts);
        if (r >= 0)
                r = read_place(device, facts);
        if (r >= 0)
                r = read_properties(device, facts);
        return r < 0 ? r : 1;
}

static int report_device(const DeviceWatch *watch, sd_device *device) {
        cleanup_with(device_facts_done) DeviceFacts facts = { 0 };
        int r = read_facts(device, &facts);

        if (r > 0) {
                watch->config.on_present(&facts, watch->config.userdata);
                facts = (DeviceFacts){ 0 };
        }
        return r;
}

/* ---- present devices ---- */

static int list_devices(const DeviceWatch *watch) {
        cleanup_with(sd_device_enumerator_unrefp) sd_device_enumerator *enumerator = NULL;
        int r = sd_device_enumerator_new(&enumerator);

        /* Devices that udev has not handled yet follow as events. */
        if (r >= 0 && !watch->monitor)
                r = sd_device_enumerator_allow_uninitialized(enumerator);
        strv_foreach(subsystem, (char **) (uintptr_t) watch->config.subsystems)
                if (r >= 0)
                        r = sd_device_enumerator_add_match_subsystem(enumerator, *subsystem, true);
        if (r < 0)
                return r;
        for (sd_device *device = sd_device_enumerator_get_device_first(enumerator);
             device && r >= 0; device = sd_device_enumerator_get_device_next(enumerator))
                r = report_device(watch, device);
        if (r >= 0)
                watch->config.on_listed(watch->config.userdata);
        return r < 0 ? r : 0;
}

static void list_again(const DeviceWatch *watch) {
        int r = list_devices(watch);

        if (r < 0)
                (void) log_warning_errno(r, "Cannot list the devices of the node");
}

/* ---- events of udev ---- */

static int on_udev_event(sd_device_monitor *monitor, sd_device *device, void *userdata) {
        const DeviceWatch *watch = userdata;
        sd_device_action_t action;
        const char *syspath;

        if (sd_device_get_action(device, &action) < 0 ||
            sd_device_get_syspath(device, &syspath) < 0)
                return 0;
        if (action == SD_DEVICE_REMOVE)
                watch->config.on_gone(syspath, watch->config.userdata);
        else if (report_device(watch, device) < 0)
                log_warning("Cannot read the device %s: out of memory", syspath);
        return 0;
}

static int watch_udev(DeviceWatch *watch) {
        int r = sd_device_monitor_new(&watch->monitor);

        if (r < 0)
                return r;
        (void) sd_device_monitor_set_receive_buffer_size(watch->monitor, BUFFER_BYTES);
        strv_foreach(subsystem, (char **) (uintptr_t) watch->config.subsystems)
                if (r >= 0)
                        r = sd_device_monitor_filter_add_match_subsystem_devtype(watch->monitor,
                                                                                 *subsystem, NULL);
        if (r >= 0)
                r = sd_device_monitor_attach_event(watch->monitor, watch->config.event);
        return r < 0 ? r : sd_device_monitor_start(watch->monitor, on_udev_event, watch);
}

/* ---- events of the kernel ---- */

/* "add@/devices/…", then "KEY=value" items, each ending with a NUL. NULL: the event has no such
 * key. */
static const char *value_in_event(const char *event, size_t length, const char *key) {
        size_t key_length = strlen(key);

        for (const char *at = event; at < event + length; at += strlen(at) + 1)
                if (strncmp(at, key, key_length) == 0 && at[key_length] == '=')
                        return at + key_length + 1;
        return NULL;
}

static void handle_kernel_event(const DeviceWatch *watch, const char *event, size_t length) {
        const char *action = value_in_event(event, length, "ACTION"),
                   *devpath = value_in_event(event, length, "DEVPATH"),
                   *subsystem = value_in_event(event, length, "SUBSYSTEM");
        cleanup_with(sd_device_unrefp) sd_device *device = NULL;
        cleanup_free char *syspath = NULL;

        if (!action || !devpath || !subsystem || !value_in_event(event, length, "DEVNAME") ||
            (watch->config.subsystems && !strv_contains(watch->config.subsystems, subsystem)))
                return;
        syspath = text_format("/sys%s", devpath);
        if (!syspath) {
                log_warning("Cannot read an event of a device: out of memory");
                return;
        }
        if (streq(action, "remove"))
                watch->config.on_gone(syspath, watch->config.userdata);
        else if (sd_device_new_from_syspath(&device, syspath) >= 0 &&
                 report_device(watch, device) < 0)
                log_warning("Cannot read the device %s: out of memory", syspath);
}

/* 1; 0: there is no event. Only the kernel sends from port 0. */
static int receive_kernel_event(const DeviceWatch *watch) {
        char event[EVENT_MAX + 1];
        struct sockaddr_nl from = { 0 };
        socklen_t from_length = sizeof(from);
        ssize_t n = recvfrom(watch->fd, event, EVENT_MAX, MSG_DONTWAIT | MSG_TRUNC,
                             (struct sockaddr *) &from, &from_length);

        if (n < 0 && errno == ENOBUFS) {
                list_again(watch);
                return 1;
        }
        if (n < 0)
                return errno == EINTR;
        if (n > EVENT_MAX || from.nl_pid != 0)
                return 1;
        event[n] = '\0';
        handle_kernel_event(watch, event, (size_t) n);
        return 1;
}

static int on_kernel_events(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        for (unsigned i = 0; i < EVENTS_PER_TURN && receive_kernel_event(userdata) > 0; i++)
                ;
        return 0;
}

static int watch_kernel(DeviceWatch *watch) {
        const struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };
        const int size = BUFFER_BYTES;

        watch->fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                           NETLINK_KOBJECT_UEVENT);
        if (watch->fd < 0)
                return -errno;
        (void) setsockopt(watch->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
        if (bind(watch->fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        return sd_event_add_io(watch->config.event, &watch->source, watch->fd, EPOLLIN,
                               on_kernel_events, watch);
}

/* ---- the watch ---- */

int device_watch_new(const DeviceWatchConfig *config, DeviceWatch **ret) {
        cleanup_with(device_watch_freep) DeviceWatch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->config = *config;
        watch->fd = -EBADF;
        r = access("/run/udev/control", F_OK) >= 0 ? watch_udev(watch) : watch_kernel(watch);
        if (r >= 0)
                r = list_devices(watch);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(watch);
        return 0;
}

DeviceWatch *device_watch_free(DeviceWatch *watch) {
        if (!watch)
                return NULL;
        sd_event_source_disable_unref(watch->source);
        sd_device_monitor_unref(watch->monitor);
        close_fd(watch->fd);
        free(watch);
        return NULL;
}
