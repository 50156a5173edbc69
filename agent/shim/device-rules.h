/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rules of a container's device cgroup: those of its config.json, and those for hot-plug
 * devices. For the text form of a device, see ShimRequest.devices. */

#include "common/error.h"

#include <jansson.h>
#include <sys/types.h>

typedef struct DeviceRule {
        char type;       /* 'c', 'b', 'a': both */
        unsigned access; /* bits of DEVICE_… */
        int64_t major;   /* -1: all */
        int64_t minor;   /* -1: all */
        bool is_allowed;
} DeviceRule;

enum { /* as in the kernel's <linux/bpf.h> */
        DEVICE_MKNOD = 1,
        DEVICE_READ = 2,
        DEVICE_WRITE = 4,
        DEVICE_ALL = 7,
        DEVICE_RULES_MAX = 4096,
};

typedef struct DeviceRules {
        DeviceRule *items; /* the last matching rule applies */
        size_t n;
} DeviceRules;

/* A hot-plug device. Paths are borrowed from its text form. */
typedef struct LiveDevice {
        char type;
        unsigned major, minor;
        char access[4];
        mode_t mode;
        uid_t uid;
        gid_t gid;
        const char *host_path;
        const char *path; /* path in the container, below /dev */
} LiveDevice;

/* Splits 'text' in place. 0 or -EBADMSG. */
int live_device_parse(char *text, LiveDevice *ret);

/* The rules of config.json, plus those that every runtime adds, minus those for the devices
 * 'first', with which the container started. 0 or -errno; the caller frees 'ret->items'. */
int device_rules_load(const json_t *config, const LiveDevice *first, size_t n_first,
                      DeviceRules *ret);

/* 0 or -errno. */
int device_rules_add(DeviceRules *rules, const LiveDevice *device);

/* Whether everything is allowed, as in a privileged container. */
bool device_rules_allow_all(const DeviceRules *rules);

/* Whether the rules allow the device without a specific rule. */
bool device_rules_allow(const DeviceRules *rules, const LiveDevice *device);
