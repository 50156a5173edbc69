/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command get, by resource. */

#include "agent/cli/cli.h"
#include "agent/cli/output.h"
#include "agent/cli/resources.h"

/* The command line; names are those after the resource. */
typedef struct GetRequest {
        const Options *options;
        ApiResource resource;
        char *const *names;
        size_t n_names;
        Format format;
        const char *namespace; /* NULL: all */
} GetRequest;

/* The end of a row and of its headings, with the labels of the object if they are to be shown. */
void end_row(const GetRequest *request, const json_t *object, FILE *out);
const char *end_of_headings(const GetRequest *request);

/* Each returns an exit status, after errors were printed. */
int get_pods(const GetRequest *request);
int get_events(const GetRequest *request);
int get_images(const GetRequest *request);
int get_daemonsets(const GetRequest *request);
int get_nodes(const GetRequest *request);
int get_objects(const GetRequest *request);
