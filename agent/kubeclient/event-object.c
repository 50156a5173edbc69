/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a v1.Event into the request that creates or counts it. */

#include "agent/kubeclient/event-object.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"

#include <ctype.h>

enum {
        NAME_MAX_LENGTH = 253, /* of an object name */
};

/* "<pod>.<number>": the pod's name is shortened if it is too long. */
static char *shorten_event_name(const char *name) {
        size_t length = strlen(name);
        const char *number = strrchr(name, '.');
        size_t keep = number ? strlen(number) : 0, head;

        if (length <= NAME_MAX_LENGTH || !number || keep >= NAME_MAX_LENGTH)
                return strndup(name, NAME_MAX_LENGTH);
        head = NAME_MAX_LENGTH - keep;
        while (head > 0 && !isalnum((unsigned char) name[head - 1]))
                head--;
        return text_format("%.*s%s", (int) head, name, number);
}

static const char *get_event_text(const json_t *object, const char *key) {
        return json_text(object, key);
}

static char *format_event_patch(const json_t *event) {
        cleanup_json json_t *patch =
                json_pack("{s:O, s:O*, s:O*}", "count", json_object_get(event, "count"),
                          "lastTimestamp", json_object_get(event, "lastTimestamp"), "message",
                          json_object_get(event, "message"));

        return patch ? json_to_text(patch, JSON_COMPACT) : NULL;
}

static char *format_event_body(json_t *event, const char *name) {
        json_t *metadata = json_object_get(event, "metadata");

        (void) json_object_del(metadata, "creationTimestamp"); /* set by the server */
        (void) json_object_set_new(metadata, "name", json_string(name));
        return json_to_text(event, JSON_COMPACT);
}

int event_object_parse(const char *json, EventObject *ret) {
        cleanup_json json_t *event = json_loads(json, 0, NULL);
        cleanup_with(event_object_done) EventObject object = { 0 };
        const json_t *metadata = json_object_get(event, "metadata");
        const char *name = get_event_text(metadata, "name"),
                   *namespace = get_event_text(metadata, "namespace");
        const char *uid = get_event_text(json_object_get(event, "involvedObject"), "uid");

        if (!name || !namespace || !json_is_integer(json_object_get(event, "count")))
                return -EBADMSG;
        object.count = (uint64_t) json_integer_value(json_object_get(event, "count"));
        object.namespace = strdup(namespace);
        object.name = shorten_event_name(name);
        object.pod = strdup(uid ? uid : "");
        object.patch = format_event_patch(event);
        object.body = object.name ? format_event_body(event, object.name) : NULL;
        if (!object.namespace || !object.pod || !object.patch || !object.body)
                return -ENOMEM;
        *ret = object;
        object = (EventObject){ 0 };
        return 0;
}

void event_object_done(EventObject *object) {
        free(object->namespace);
        free(object->name);
        free(object->pod);
        free(object->body);
        free(object->patch);
        *object = (EventObject){ 0 };
}

char *event_object_retarget(const char *json, const char *from_uid, const char *name,
                            const char *uid) {
        cleanup_json json_t *event = json_loads(json, 0, NULL);
        json_t *metadata = json_object_get(event, "metadata");
        json_t *object = json_object_get(event, "involvedObject");
        const char *own_name = get_event_text(metadata, "name");
        const char *number = own_name ? strrchr(own_name, '.') : NULL;

        if (!streq_ptr(get_event_text(object, "uid"), from_uid) ||
            json_object_set_new(metadata, "name", json_sprintf("%s%s", name, strna(number))) < 0 ||
            json_object_set_new(object, "name", json_string(name)) < 0 ||
            json_object_set_new(object, "uid", json_string(uid)) < 0)
                return NULL;
        return json_to_text(event, JSON_COMPACT);
}
