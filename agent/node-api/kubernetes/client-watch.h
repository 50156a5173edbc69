/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A client's watch: the agent's data about a resource becomes the events that the client requested.
 * The agent sends all objects first, then a bookmark, then changes. Pure. */

#include "agent/node-api/kubernetes/object-list.h"
#include "agent/node-api/kubernetes/object-versions.h"

enum {
        WATCHED_OBJECTS_MAX = 8192, /* of one watch */
};

typedef struct ClientWatch {
        const ServedResource *resource; /* this and the next are borrowed */
        ObjectVersions *versions;
        ListQuery query;
        char *namespace, *name; /* memory to which the query points */
        ObjectForm form;
        uint64_t since;       /* the version that the client has; 0: none */
        bool has_end_of_list; /* the client waits for a bookmark after the existing objects */
        bool has_bookmarks;   /* it takes others, too */
        char *node_created;   /* for objects without a time of creation; or NULL */

        json_t *selected;      /* the versions of the objects that the client has, by key */
        json_t *namespaces;    /* of namespaces: the keys of the pods in each */
        json_t *present;       /* the agent's first list, until it is complete */
        uint64_t latest;       /* version that was taken */
        bool has_sent_columns; /* of a table */
} ClientWatch;

/* After the members above 'selected' were set. 0 or -ENOMEM. */
int client_watch_start(ClientWatch *watch);
void client_watch_done(ClientWatch *watch);

/* A line of the agent: {"type":"ADDED","object":{…}}. The events that it makes are written to
 * 'out', a line each. 0; -EBADMSG; -ENOBUFS: the watch must end. */
int client_watch_take_line(ClientWatch *watch, const char *line, size_t length, uint64_t now_usec,
                           FILE *out);

/* A complete list of a resource that the agent cannot watch, by served_objects_parse(); the next
 * one creates events for the changes. */
int client_watch_take_list(ClientWatch *watch, const json_t *objects, uint64_t now_usec, FILE *out);

/* The watch ends, and the client may continue from its position. */
void client_watch_finish(ClientWatch *watch, FILE *out);
