/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-devices/device-facts.h"
#include "common/strv.h"
#include "tests/test.h"

#define TEXT(text) ((char *) (uintptr_t) (text))

static DeviceFacts serial_port(const char *sysname) {
        return (DeviceFacts){ .subsystem = TEXT("tty"),
                              .sysname = TEXT(sysname),
                              .node = TEXT("/dev/ttyUSB0"),
                              .vendor = TEXT("0403"),
                              .product = TEXT("6001"),
                              .serial = TEXT("A50285BI"),
                              .interface = TEXT("00"),
                              .place = TEXT("usb-1-2:1.0") };
}

static void expect_match(const DeviceFacts *facts, const DeviceMatch *match, bool expected) {
        NodeDeviceConfig config = { .match = (DeviceMatch *) (uintptr_t) match };

        EXPECT_EQ(device_facts_match(facts, &config), expected);
}

TEST(all_conditions_of_a_rule_must_hold)
{
        const DeviceFacts facts = serial_port("ttyUSB0");

        expect_match(&facts, &(DeviceMatch){ .subsystem = TEXT("tty") }, true);
        expect_match(&facts, &(DeviceMatch){ .subsystem = TEXT("usb") }, false);
        expect_match(&facts,
                     &(DeviceMatch){ .subsystem = TEXT("tty"),
                                     .vendor = TEXT("0403"),
                                     .product = TEXT("6001"),
                                     .serial = TEXT("A50285BI") },
                     true);
        expect_match(&facts, &(DeviceMatch){ .vendor = TEXT("0403"), .product = TEXT("6002") },
                     false);
        expect_match(&facts, &(DeviceMatch){ .serial = TEXT("A50285BX") }, false);
}

TEST(numbers_match_in_any_notation)
{
        DeviceFacts facts = serial_port("ttyUSB0");

        expect_match(&facts, &(DeviceMatch){ .vendor = TEXT("0x403") }, true);
        expect_match(&facts, &(DeviceMatch){ .vendor = TEXT("403") }, true);
        facts.vendor = TEXT("0x8086");
        expect_match(&facts, &(DeviceMatch){ .vendor = TEXT("8086") }, true);
        facts.product = TEXT("ABCD");
        expect_match(&facts, &(DeviceMatch){ .product = TEXT("abcd") }, true);
        facts.vendor = NULL;
        expect_match(&facts, &(DeviceMatch){ .vendor = TEXT("0000") }, false);
}

TEST(properties_are_patterns)
{
        DeviceFacts facts = serial_port("ttyUSB0");
        DeviceMatch match = { 0 };

        REQUIRE(string_map_set(&facts.properties, "ID_PATH", "pci-0000:00:14.0-usb-0:1:1.0") == 0);
        REQUIRE(string_map_set(&match.properties, "ID_PATH", "pci-*:1.0") == 0);
        expect_match(&facts, &match, true);
        REQUIRE(string_map_set(&match.properties, "ID_MODEL", "*") == 0);
        expect_match(&facts, &match, false);
        string_map_done(&facts.properties);
        string_map_done(&match.properties);
}

TEST(path_pattern_matches_the_device_node_or_a_link)
{
        DeviceFacts facts = serial_port("ttyUSB0");
        char *links[] = { TEXT("/dev/serial/by-id/usb-FTDI-if00"), NULL };
        static const struct {
                const char *path;
                bool matches;
        } cases[] = {
                { "/dev/ttyUSB*", true },        { "/dev/ttyUSB0", true },
                { "/dev/ttyUSB[0-3]", true },    { "/dev/*", true },
                { "/dev/ttyUSB", false },        { "/dev/ttyACM*", false },
                { "/dev/serial/by-id/*", true }, { "/dev/serial/*", false },
                { "/dev/seri*", false },
        };

        facts.links = links;
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                const NodeDeviceConfig config = { .path = TEXT(cases[i].path) };

                EXPECT_EQ(device_facts_match(&facts, &config), cases[i].matches);
        }
}

static void expect_identity(const DeviceFacts *facts, const char *expected) {
        char *identity = device_facts_identity(facts);

        EXPECT_STREQ(identity, expected);
        free(identity);
}

TEST(identity_is_the_same_at_another_port_and_with_another_number)
{
        DeviceFacts facts = serial_port("ttyUSB0");

        expect_identity(&facts, "ttyUSB-0403:6001-A50285BI-if00");
        facts.sysname = TEXT("ttyUSB7");
        facts.place = TEXT("usb-3-1:1.0");
        expect_identity(&facts, "ttyUSB-0403:6001-A50285BI-if00");
        facts.part = TEXT("1");
        expect_identity(&facts, "ttyUSB-0403:6001-A50285BI-if00-1");
}

TEST(identity_without_a_serial_number_names_the_connector)
{
        DeviceFacts facts = serial_port("ttyUSB0");

        facts.serial = NULL;
        expect_identity(&facts, "ttyUSB-usb-1-2:1.0");
        facts.sysname = TEXT("ttyUSB1");
        expect_identity(&facts, "ttyUSB-usb-1-2:1.0");
        facts.place = NULL;
        expect_identity(&facts, "tty-ttyUSB1");
}

TEST(identity_has_only_letters_digits_and_a_few_others)
{
        DeviceFacts facts = serial_port("ttyUSB0");

        facts.serial = TEXT("a b#c/d\"\n\xff");
        expect_identity(&facts, "ttyUSB-0403:6001-a_b_c_d___-if00");
        facts = (DeviceFacts){ .subsystem = TEXT("block"),
                               .sysname = TEXT("sda1"),
                               .serial = TEXT("S1"),
                               .part = TEXT("1") };
        expect_identity(&facts, "block-:-S1-1");
}

TEST(rule_is_described_by_its_conditions)
{
        const NodeDeviceConfig by_match = { .match = &(DeviceMatch){ .subsystem = TEXT("tty"),
                                                                     .vendor = TEXT("0403"),
                                                                     .serial = TEXT("A1") } },
                               by_path = { .path = TEXT("/dev/ttyUSB*") };
        char *text = node_device_describe(&by_match);

        EXPECT_STREQ(text, "subsystem tty, vendor 0403, serial A1");
        free(text);
        text = node_device_describe(&by_path);
        EXPECT_STREQ(text, "path /dev/ttyUSB*");
        free(text);
}
