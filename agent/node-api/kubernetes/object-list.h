/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parameters of a list of objects, and the reply created from the agent's data. Pure. */

#include "agent/model/system-class.h"
#include "agent/node-api/kubernetes/field-terms.h"
#include "agent/node-api/kubernetes/label-terms.h"
#include "agent/node-api/kubernetes/served-resources.h"

typedef struct ListQuery {
        const char *namespace; /* NULL: all; borrowed, like the following */
        const char *name;      /* NULL: all */
        const char *after;     /* "<namespace>/<name>" where the previous chunk ended, or NULL */
        size_t limit;          /* 0: none */
        LabelTerms labels;
        FieldTerms fields;
} ListQuery;

void list_query_done(ListQuery *query);

/* The form of a reply, from the Accept header. */
typedef struct ObjectForm {
        const char *table_version; /* "v1" or "v1beta1"; NULL: not a table */
        TableObject included;
} ObjectForm;

/* Whether the Accept header, which may be NULL, has a media range with both parameters: "as=Table",
 * "v=v1". */
bool accepts_form(const char *accept, const char *as, const char *version);

/* 'accept' and 'include_object' may be NULL. */
ObjectForm object_form_negotiate(const char *accept, const char *include_object);

/* The objects of the agent's reply as an array, sorted by namespace and name, each with kind and
 * apiVersion. 0; -EBADMSG, -ENOMEM. */
int served_objects_parse(const ServedResource *resource, const char *body, json_t **ret);

/* A namespace, still without kind and apiVersion. NULL: out of memory. */
json_t *make_namespace_object(const char *name);

/* The namespaces that always exist, terminated by NULL. */
extern const char *const permanent_namespaces[];

/* A PriorityClass that no manifest defines, also without kind and apiVersion. NULL: out of memory.
 */
json_t *make_system_class_object(const SystemClass *class);

/* Sets the creation time of an object that has none to that of the node: an RFC 3339 time, or
 * NULL. */
void set_creation_time(json_t *object, const char *node_created);
void set_creation_times(json_t *objects, const char *node_created);

/* Adds the fields that an API server would have to an object of the agent: kind, apiVersion, a UID
 * and a default; the hidden values of a Secret become base64. */
void complete_served_object(const ServedResource *resource, json_t *object);

bool list_query_matches(const ListQuery *query, const json_t *object);

/* The same if only the metadata is known. */
bool list_query_may_match(const ListQuery *query, const json_t *object);

/* A list, or a table, of the matching objects; 'list_version' is its resourceVersion. NULL: out of
 * memory. */
json_t *object_list_format(const ServedResource *resource, const json_t *objects,
                           const ListQuery *query, const ObjectForm *form, uint64_t list_version,
                           uint64_t now_usec);

/* One object, or a table with it; 'object' is borrowed. */
json_t *object_format(const ServedResource *resource, json_t *object, const ObjectForm *form,
                      uint64_t now_usec);
