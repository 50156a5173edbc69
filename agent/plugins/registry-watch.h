/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Watches plugins_registry and the directories below it for sockets (kubelet: pluginwatcher). Names
 * that begin with a dot, links, and everything that is not a socket are ignored. */

#include "common/error.h"

#include <sys/types.h>
#include <systemd/sd-event.h>
#include <time.h>

typedef struct RegistryWatch RegistryWatch;

/* Distinguishes a recreated socket from the known one. */
typedef struct SocketIdentity {
        dev_t device;
        ino_t inode;
        struct timespec changed;
} SocketIdentity;

bool socket_identity_equals(const SocketIdentity *a, const SocketIdentity *b);

/* Whether 'path' is 'root', or below it. */
bool registry_path_is_within(const char *path, const char *root);

/* Paths are relative to the directory, and borrowed. */
typedef struct RegistryWatchHandlers {
        /* A socket exists; it may already be known. */
        void (*on_socket)(const char *path, const SocketIdentity *identity, void *userdata);
        /* Nothing with this name, or below it, exists any more. */
        void (*on_gone)(const char *path, void *userdata);
        /* Events were lost: on_socket() follows for everything that exists. */
        void (*on_lost)(void *userdata);
        void *userdata;
} RegistryWatchHandlers;

/* 'dir_fd' is borrowed while the watch exists. Also reports the existing sockets. 0 or -errno.
 */
int registry_watch_new(sd_event *event, int dir_fd, const RegistryWatchHandlers *handlers,
                       RegistryWatch **ret);
RegistryWatch *registry_watch_free(RegistryWatch *watch);
