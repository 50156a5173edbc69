/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/event-object.h"
#include "common/cleanup.h"
#include "tests/test.h"

#define EVENT(name, count)                                                                      \
        "{\"kind\":\"Event\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"default\","    \
        "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"involvedObject\":{\"uid\":\"u-1\"}," \
        "\"lastTimestamp\":\"2026-01-01T00:00:09Z\",\"message\":\"m\",\"count\":" count "}"

TEST(an_event_is_created_without_the_time_that_the_server_gives)
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

TEST(a_long_name_gives_where_it_is_the_pods)
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

TEST(what_is_no_event_is_refused)
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

TEST(an_event_of_one_object_becomes_one_of_another)
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
