/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-devices/device-slots.h"
#include "common/strv.h"
#include "common/text.h"
#include "tests/test.h"

static char **split(const char *text) {
        char *copy = strdup(text), *rest = copy, *word, **strv = NULL;

        while ((word = strsep(&rest, " ")))
                if (word[0])
                        REQUIRE(strv_append(&strv, word) == 0);
        free(copy);
        return strv;
}

/* "a !b ?c": 'b' is unhealthy, 'c' can be allocated but does not exist; "x>a": 'x' became 'a'. */
static void expect_slots(const NodeDeviceConfig *config, const char *present, const char *held,
                         const char *expected) {
        char **there = split(present), **having = split(held), *text = strdup("");
        DeviceSlots slots;

        EXPECT_EQ(device_slots_compute(config, there, having, &slots), 0);
        for (size_t i = 0; i < slots.devices.n; i++) {
                const Device *device = &slots.devices.items[i];

                REQUIRE(text_appendf(&text, "%s%s%s", i > 0 ? " " : "",
                                     !device->is_healthy ? "!"
                                     : device->is_absent ? "?"
                                                         : "",
                                     device->id) == 0);
        }
        for (size_t i = 0; i < slots.renamed.n; i++)
                REQUIRE(text_appendf(&text, " %s>%s", slots.renamed.items[i].key,
                                     slots.renamed.items[i].value) == 0);
        EXPECT_STREQ(text, expected);
        device_slots_done(&slots);
        strv_free(there);
        strv_free(having);
        free(text);
}

TEST(each_present_device_is_a_device_of_the_resource)
{
        const NodeDeviceConfig config = { 0 };

        expect_slots(&config, "", "", "");
        expect_slots(&config, "a b", "", "a b");
        expect_slots(&config, "a b", "b", "b a");
        expect_slots(&config, "b", "a", "b !a");
        expect_slots(&config, "", "a", "!a");
}

TEST(count_limits_the_number_of_unallocated_devices)
{
        const NodeDeviceConfig config = { .count = { true, 2 } };

        expect_slots(&config, "a b c", "", "a b");
        expect_slots(&config, "a b c", "c", "c a");
        expect_slots(&config, "a b c", "a b c", "a b c");
}

TEST(optional_device_can_be_requested_before_it_exists)
{
        const NodeDeviceConfig one = { .is_optional = true },
                               two = { .is_optional = true, .count = { true, 2 } };

        expect_slots(&one, "", "", "?absent-1");
        expect_slots(&one, "a", "", "a");
        expect_slots(&one, "a b", "", "a b");
        expect_slots(&two, "a", "", "a ?absent-1");
        expect_slots(&one, "", "absent-1", "?absent-1");
        expect_slots(&one, "a", "absent-1", "a absent-1>a");
        expect_slots(&two, "a", "absent-1 absent-2", "a ?absent-2 absent-1>a");
        expect_slots(&two, "a b", "absent-1 absent-2", "a b absent-1>a absent-2>b");
}

TEST(container_keeps_its_device_while_it_is_missing)
{
        const NodeDeviceConfig config = { .is_optional = true };

        expect_slots(&config, "b", "a", "b ?a");
        expect_slots(&config, "a b", "a", "a b");
}

TEST(shared_device_has_the_configured_number_of_slots)
{
        const NodeDeviceConfig two = { .is_shared = true, .count = { true, 2 } }, optional = {
                .is_shared = true, .is_optional = true, .count = { true, 2 }
        };

        expect_slots(&two, "a", "", "a#1 a#2");
        expect_slots(&two, "", "a#2", "!a#2");
        expect_slots(&optional, "", "absent-1 absent-2", "?absent-1 ?absent-2");
        expect_slots(&optional, "a", "absent-1 absent-2", "a#1 a#2 absent-1>a#1 absent-2>a#2");
}

TEST(slot_belongs_to_only_one_device)
{
        EXPECT(device_slot_is_of("a", "a"));
        EXPECT(device_slot_is_of("a#12", "a"));
        EXPECT(!device_slot_is_of("ab", "a"));
        EXPECT(!device_slot_is_of("a", "ab"));
}
