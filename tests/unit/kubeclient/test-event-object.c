/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/event-object.h"
#include "common/cleanup.h"
#include "tests/test.h"

#define EVENT(name, count)                                                                      \
        "{\"kind\":\"Event\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"default\","    \
        "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"involvedObject\":{\"uid\":\"u-1\"}," \
        "\"lastTimestamp\":\"2026-01-01T00:00:09Z\",\"message\":\"m\",\"count\":" count "}"

TEST(event_is_created_without_creation_timestamp)
{
        EventObject object = { 0 };

        REQUIRE(event_object_parse(EVENT("web.0001", "3"), &object) == 0);
        EXPECT_STREQ(object.name, "web.0001");
        EXPECT_STREQ(object.namespace, "default");
        EXPECT_STREQ(object.pod, "u-1");
        EXPECT_EQ(object.count, 3);
        EXPECT(!strstr(object.body, "creationTimestamp"));
        EXPECT(strstr(object.body, "\"involvedObject\":{\"uid\":\"u-1\"}") != NULL);
        EXPECT_STREQ(object.patch,
                     "{\"count\":3,\"lastTimestamp\":\"2026-01-01T00:00:09Z\",\"message\":\"m\"}");
        event_object_done(&object);
}

TEST(long_event_name_is_shortened_in_the_pod_name)
{
        char json[1024], name[300];
        EventObject object = { 0 };

        memset(name, 'a', sizeof(name));
        name[235] = '-';
        (void) snprintf(name + 260, sizeof(name) - 260, ".0123456789abcdef");
        (void) snprintf(json, sizeof(json),
                        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\"},\"count\":1}", name);
        REQUIRE(event_object_parse(json, &object) == 0);
        EXPECT_EQ(strlen(object.name), 235 + 17);
        EXPECT_STREQ(object.name + 235, ".0123456789abcdef");
        EXPECT(strstr(object.body, object.name) != NULL);
        event_object_done(&object);
}

TEST(json_that_is_not_an_event_is_an_error)
{
        static const char *const cases[] = {
                "",
                "7",
                "{}",
                "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}",
                "{\"metadata\":{\"name\":\"a\"},\"count\":1}",
                "{\"metadata\":{\"name\":7,\"namespace\":\"b\"},\"count\":1}",
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                EventObject object = { 0 };

                EXPECT_EQ(event_object_parse(cases[i], &object), -EBADMSG);
        }
}

TEST(event_is_retargeted_to_another_object)
{
        char *renamed = event_object_retarget(EVENT("web.0001", "3"), "u-1", "api", "u-2");
        EventObject object = { 0 };

        REQUIRE(renamed && event_object_parse(renamed, &object) == 0);
        EXPECT_STREQ(object.name, "api.0001");
        EXPECT_STREQ(object.pod, "u-2");
        EXPECT(strstr(object.body, "\"involvedObject\":{\"uid\":\"u-2\",\"name\":\"api\"}") !=
               NULL);
        event_object_done(&object);
        free(renamed);
        EXPECT(event_object_retarget(EVENT("web.0001", "3"), "u-3", "api", "u-2") == NULL);
        EXPECT(event_object_retarget("7", "u-3", "api", "u-2") == NULL);
}
