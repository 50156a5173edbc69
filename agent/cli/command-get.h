/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command get, by resource. */

#include "agent/cli/cli.h"
#include "agent/cli/output.h"
#include "agent/cli/resources.h"

/* The command line; 'names' are the words after the resource. */
typedef struct GetRequest {
        const Options *options;
        ApiResource resource;
        char *const *names;
        size_t n_names;
        Format format;
        const char *namespace; /* NULL: all */
} GetRequest;

/* Each returns an exit status, and prints errors. */
int get_pods(const GetRequest *request);
int get_events(const GetRequest *request);
int get_images(const GetRequest *request);
int get_daemonsets(const GetRequest *request);
int get_nodes(const GetRequest *request);
int get_objects(const GetRequest *request);
