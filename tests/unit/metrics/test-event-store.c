/* SPDX-License-Identifier: Apache-2.0 */
/* Which events are kept, and which ones a reader gets. */

#include "tests/test.h"

#include "agent/metrics/event-store.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <jansson.h>

static char pod_name[] = "web-n1", namespace[] = "default", container_name[] = "web";
static Container containers[] = { { .name = container_name } };

static Pod make_pod(char *uid) {
        return (Pod){
                .metadata = { .name = pod_name, .namespace = namespace, .uid = uid },
                .spec = { .containers = { containers, 1 } },
        };
}

static void add_event(EventStore *events, const Pod *pod, const char *message, uint64_t second) {
        event_store_add(events,
                        &(PodEvent){ .pod = pod,
                                     .container = "web",
                                     .kind = POD_EVENT_WARNING,
                                     .reason = "BackOff",
                                     .message = message },
                        second * USEC_PER_SEC);
}

/* The event after the one with this number. */
static json_t *next_event(const EventStore *events, uint64_t *number) {
        cleanup_free char *text = NULL;
        json_t *json;

        if (event_store_next(events, *number, number, &text) <= 0)
                return NULL;
        json = json_loads(text, 0, NULL);
        REQUIRE(json);
        return json;
}

static size_t count_events(const EventStore *events) {
        uint64_t number = 0;
        size_t n = 0;

        for (json_t *json = next_event(events, &number); json; json = next_event(events, &number)) {
                json_decref(json);
                n++;
        }
        return n;
}

TEST(repeated_event_is_counted_and_becomes_the_latest)
{
        cleanup_with(event_store_freep) EventStore *events = event_store_new("n1");
        char uid[] = "u1";
        Pod pod = make_pod(uid);
        uint64_t number = 0;
        json_t *json;

        add_event(events, &pod, "a", 1);
        add_event(events, &pod, "b", 2);
        add_event(events, &pod, "a", 5);
        json = next_event(events, &number);
        EXPECT_STREQ(json_string_value(json_object_get(json, "message")), "b");
        json_decref(json);
        json = next_event(events, &number);
        EXPECT_STREQ(json_string_value(json_object_get(json, "message")), "a");
        EXPECT_EQ(json_integer_value(json_object_get(json, "count")), 2);
        EXPECT_STREQ(json_string_value(json_object_get(json, "firstTimestamp")),
                     "1970-01-01T00:00:01Z");
        EXPECT_STREQ(json_string_value(json_object_get(json, "lastTimestamp")),
                     "1970-01-01T00:00:05Z");
        json_decref(json);
        EXPECT(!next_event(events, &number));
        /* A reader that has already received all events gets the repeated ones. */
        add_event(events, &pod, "b", 6);
        json = next_event(events, &number);
        EXPECT_STREQ(json_string_value(json_object_get(json, "message")), "b");
        json_decref(json);
}

TEST(event_has_its_involved_object)
{
        cleanup_with(event_store_freep) EventStore *events = event_store_new("n1");
        cleanup_free char *text = NULL;
        char uid[] = "u1";
        Pod pod = make_pod(uid);
        uint64_t number;

        add_event(events, &pod, "x", 1);
        REQUIRE(event_store_next(events, 0, &number, &text) == 1);
        EXPECT_STREQ(text,
                     "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                     "\"web-n1.00000000000f4241\",\"namespace\":\"default\","
                     "\"creationTimestamp\":\"1970-01-01T00:00:01Z\"},\"involvedObject\":{"
                     "\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"web-n1\",\"uid\":"
                     "\"u1\",\"apiVersion\":\"v1\",\"fieldPath\":\"spec.containers{web}\"},"
                     "\"reason\":\"BackOff\",\"message\":\"x\",\"source\":{\"component\":"
                     "\"kubelet\",\"host\":\"n1\"},\"firstTimestamp\":\"1970-01-01T00:00:01Z\","
                     "\"lastTimestamp\":\"1970-01-01T00:00:01Z\",\"count\":1,\"type\":\"Warning\","
                     "\"eventTime\":null,\"reportingComponent\":\"kubelet\","
                     "\"reportingInstance\":\"n1\"}");
}

TEST(pod_with_many_events_loses_its_own_oldest_only)
{
        cleanup_with(event_store_freep) EventStore *events = event_store_new("n1");
        char quiet_uid[] = "quiet", loud_uid[] = "loud", message[16];
        Pod quiet = make_pod(quiet_uid), loud = make_pod(loud_uid);
        uint64_t number = 0;
        json_t *json;

        add_event(events, &quiet, "x", 1);
        for (unsigned i = 0; i < 100; i++) {
                (void) snprintf(message, sizeof(message), "%u", i);
                add_event(events, &loud, message, 2);
        }
        EXPECT_EQ(count_events(events), STORED_EVENTS_OF_POD_MAX + 1);
        json = next_event(events, &number);
        EXPECT_STREQ(json_string_value(json_object_get(json, "message")), "x");
        json_decref(json);
        json = next_event(events, &number);
        EXPECT_STREQ(json_string_value(json_object_get(json, "message")), "80");
        json_decref(json);
}

TEST(number_of_events_is_limited)
{
        cleanup_with(event_store_freep) EventStore *events = event_store_new("n1");
        char uid[16];
        Pod pod = make_pod(uid);

        for (unsigned i = 0; i < STORED_EVENTS_MAX + 50; i++) {
                (void) snprintf(uid, sizeof(uid), "%u", i);
                add_event(events, &pod, "x", 1);
        }
        EXPECT_EQ(count_events(events), STORED_EVENTS_MAX);
}

TEST(message_is_truncated_between_characters_and_invalid_bytes_are_replaced)
{
        cleanup_with(event_store_freep) EventStore *events = event_store_new("n1");
        char uid[] = "u1", message[EVENT_MESSAGE_MAX + 8];
        Pod pod = make_pod(uid);
        uint64_t number = 0;
        json_t *json;

        memset(message, 'a', sizeof(message));
        memcpy(message + EVENT_MESSAGE_MAX - 1, "\xc3\xa4", 3);
        message[0] = '\xff';
        add_event(events, &pod, message, 1);
        json = next_event(events, &number);
        EXPECT_EQ(json_string_length(json_object_get(json, "message")), EVENT_MESSAGE_MAX - 1);
        EXPECT(json_string_value(json_object_get(json, "message"))[0] == '?');
        json_decref(json);
}
