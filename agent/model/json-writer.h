/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes model objects as API JSON according to their tables, for model/pod-json.c and
 * model/pod-status-json.c. Members are in the order of the API server's output, which is jansson's
 * insertion order.
 *
 * Any of the many small allocations may fail. They are not checked individually: every json_…_new()
 * call fails if it gets NULL for a value, and the writer records the failure. */

#include "agent/model/schema.h"

#include <jansson.h>

typedef struct JsonWriter {
        bool has_failed;
} JsonWriter;

/* These take ownership of the value; NULL: out of memory. */
void json_writer_put(JsonWriter *writer, json_t *object, const char *key, json_t *value);
void json_writer_append(JsonWriter *writer, json_t *array, json_t *value);

/* These omit the member if the value is NULL, empty or unset. */
void json_writer_put_string(JsonWriter *writer, json_t *object, const char *key,
                            const char *string);
void json_writer_put_optional_int(JsonWriter *writer, json_t *json, const char *key,
                                  const OptionalInt *number);
void json_writer_put_ints(JsonWriter *writer, json_t *json, const char *key, const IntList *list);

/* One field of an object, or all of them. */
void json_writer_put_field(JsonWriter *writer, json_t *json, const Field *field,
                           const void *object);
json_t *json_writer_object(JsonWriter *writer, const Schema *schema, const void *object);

/* Output of containers and runtimes need not be UTF-8; if it is not, each non-ASCII byte becomes
 * '?'. */
json_t *json_writer_string(const char *string);

/* As RFC 3339; null for 0. */
json_t *json_writer_timestamp(uint64_t realtime_usec);

/* The text, which the caller frees, or the tree itself; NULL if something has failed. */
char *json_writer_finish(const JsonWriter *writer, const json_t *json);
json_t *json_writer_finish_tree(const JsonWriter *writer, json_t *json);
