/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/object-poll.h"

#include "agent/node-api/kubernetes/metrics-objects.h"
#include "agent/node-api/kubernetes/object-list.h"
#include "agent/node-api/process/agent-request.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/json-text.h"

#define POLL_USEC (15 * USEC_PER_SEC)

struct ObjectPoll {
        ObjectPollSpec spec;
        char *credential;
        AgentRequest *request;
        sd_event_source *timer;
        json_t *labels; /* while the objects are being requested */
};

static int request_polled_objects(ObjectPoll *poll);

static void take_polled_objects(ObjectPoll *poll, const char *body) {
        cleanup_json json_t *objects = NULL;
        int r = served_objects_parse(poll->spec.resource, body, &objects);

        set_labels(objects, poll->labels);
        json_decref(TAKE_PTR(poll->labels));
        if (r >= 0)
                r = event_timer_arm(poll->timer, POLL_USEC);
        poll->spec.on_objects(r < 0 ? NULL : objects, poll->spec.userdata);
}

/* The state of a list or of a single object. */
static int take_polled_labels(ObjectPoll *poll, const char *body) {
        cleanup_json json_t *reply = json_loads(body, 0, NULL);
        cleanup_json json_t *objects = json_incref(json_object_get(reply, "items"));

        if (!objects)
                objects = json_pack("[O*]", reply);
        poll->labels = list_labels(objects);
        return poll->labels ? request_polled_objects(poll) : -ENOMEM;
}

static void on_poll_reply(const AgentReply *reply, void *userdata) {
        ObjectPoll *poll = userdata;
        int r = reply->error;

        poll->request = NULL;
        if (r >= 0 && reply->status != 200)
                r = -EIO;
        if (r >= 0 && poll->labels) {
                take_polled_objects(poll, reply->body);
                return;
        }
        if (r >= 0)
                r = take_polled_labels(poll, reply->body);
        if (r < 0)
                poll->spec.on_objects(NULL, poll->spec.userdata);
}

/* The objects if the labels are known, otherwise the source of the labels. */
static int request_polled_objects(ObjectPoll *poll) {
        const ServedResource *resource = poll->spec.resource;
        const AgentRequestSpec spec = { .socket_path = poll->spec.agent_socket,
                                        .kind = AGENT_COLLECT,
                                        .path = poll->labels ? resource->agent_path
                                                             : resource->labels_path,
                                        .credential = poll->credential,
                                        .body_max = poll->spec.body_max };

        return agent_request_start(poll->spec.event, &spec, on_poll_reply, poll, &poll->request);
}

static int on_poll_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        ObjectPoll *poll = userdata;

        if (request_polled_objects(poll) < 0)
                poll->spec.on_objects(NULL, poll->spec.userdata);
        return 0;
}

int object_poll_new(const ObjectPollSpec *spec, ObjectPoll **ret) {
        ObjectPoll *poll = calloc(1, sizeof(*poll));
        int r;

        if (!poll)
                return -ENOMEM;
        poll->spec = *spec;
        poll->credential = strdup(strna(spec->credential));
        if (!poll->credential) {
                free(poll);
                return -ENOMEM;
        }
        r = sd_event_add_time_relative(spec->event, &poll->timer, CLOCK_MONOTONIC, 0, 0,
                                       on_poll_timer, poll);
        if (r < 0) {
                free(poll->credential);
                free(poll);
                return r;
        }
        *ret = poll;
        return 0;
}

ObjectPoll *object_poll_free(ObjectPoll *poll) {
        if (!poll)
                return NULL;
        agent_request_cancel(poll->request);
        sd_event_source_disable_unref(poll->timer);
        json_decref(poll->labels);
        free(poll->credential);
        free(poll);
        return NULL;
}
