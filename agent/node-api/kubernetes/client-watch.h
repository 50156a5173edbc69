/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A client's watch: converts the agent's data about a resource to the events that the client
 * requested. The agent sends all objects first, then a bookmark, then changes. Pure. */

#include "agent/node-api/kubernetes/object-list.h"
#include "agent/node-api/kubernetes/object-versions.h"

enum {
        WATCHED_OBJECTS_MAX = 8192, /* limit of one watch */
};

typedef struct ClientWatch {
        const ServedResource *resource; /* this and the next member are borrowed */
        ObjectVersions *versions;
        ListQuery query;
        char *namespace, *name; /* owns the strings of the query */
        ObjectForm form;
        uint64_t since;       /* the version that the client already has; 0: none */
        bool has_end_of_list; /* the client waits for a bookmark after the existing objects */
        bool has_bookmarks;   /* it also accepts other bookmarks */
        char *node_created;   /* for objects without a creation time; or NULL */

        json_t *selected;      /* versions of the objects that the client has, by key */
        json_t *namespaces;    /* for namespaces: the keys of the pods in each */
        json_t *present;       /* objects in the agent's first list, until it is complete */
        uint64_t latest;       /* latest version that was used */
        bool has_sent_columns; /* for a table */
} ClientWatch;

/* To be called after the members above 'selected' have been set. 0 or -ENOMEM. */
int client_watch_start(ClientWatch *watch);
void client_watch_done(ClientWatch *watch);

/* Takes a line from the agent: {"type":"ADDED","object":{…}}. The resulting events are written to
 * 'out', one per line. 0; -EBADMSG; -ENOBUFS: the watch must end. */
int client_watch_take_line(ClientWatch *watch, const char *line, size_t length, uint64_t now_usec,
                           FILE *out);

/* Takes a complete list of a resource that the agent cannot watch, from served_objects_parse(); the
 * next list creates events for the changes. */
int client_watch_take_list(ClientWatch *watch, const json_t *objects, uint64_t now_usec, FILE *out);

/* The watch ends, and the client may continue from its position. */
void client_watch_finish(ClientWatch *watch, FILE *out);
