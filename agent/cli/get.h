/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command get, by what is got. */

#include "agent/cli/cli.h"
#include "agent/cli/output.h"
#include "agent/cli/resources.h"

/* What the command line says; names are those after the resource. */
typedef struct GetRequest {
        const Options *options;
        ApiResource resource;
        char *const *names;
        size_t n_names;
        Format format;
        const char *namespace; /* NULL: all */
} GetRequest;

/* Each gives an exit status and has said what is wrong. */
int get_pods(const GetRequest *request);
int get_events(const GetRequest *request);
int get_images(const GetRequest *request);
int get_daemonsets(const GetRequest *request);
int get_nodes(const GetRequest *request);
int get_objects(const GetRequest *request);
