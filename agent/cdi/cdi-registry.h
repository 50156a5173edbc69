/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The CDI specifications of the node, by device name. Files are read when inotify reports a change;
 * no timer runs except while a file is being written. */

#include "agent/model/cdi.h"

#include <stdio.h>
#include <systemd/sd-event.h>

typedef struct CdiRegistry CdiRegistry;

typedef struct CdiRegistryConfig {
        sd_event *event;
        char *const *directories; /* later ones have precedence; borrowed */
        /* Called from the loop: a device may have appeared or disappeared. */
        void (*on_changed)(void *userdata);
        /* A file cannot be used. Called once for each new message. */
        void (*on_invalid)(const char *message, void *userdata);
        void *userdata;
} CdiRegistryConfig;

/* Reads all files before it returns, and reports the invalid ones. 0 or -ENOMEM, -errno. */
int cdi_registry_new(const CdiRegistryConfig *config, CdiRegistry **ret);
CdiRegistry *cdi_registry_free(CdiRegistry *registry);
DEFINE_CLEANUP(CdiRegistry *, cdi_registry_free)

/* The directories, their files and devices, for `mainstay debug dump`. */
void cdi_registry_dump(const CdiRegistry *registry, FILE *out);

/* For bundle/; borrows the registry. */
CdiLookup cdi_registry_lookup(CdiRegistry *registry);
