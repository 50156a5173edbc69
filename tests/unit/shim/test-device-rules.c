/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/device-rules.h"
#include "common/json-text.h"
#include "tests/test.h"

#include <errno.h>

TEST(text_of_a_device_is_parsed_and_invalid_text_is_refused)
{
        static const char *const invalid[] = {
                "",
                "c 188:0 rw 660 0:20 /dev/ttyUSB0",
                "c 188:0 rw 660 0:20 /dev/ttyUSB0 /dev/gps more",
                "p 188:0 rw 660 0:20 /dev/ttyUSB0 /dev/gps",
                "cb 188:0 rw 660 0:20 /dev/ttyUSB0 /dev/gps",
                "c 188 rw 660 0:20 /dev/ttyUSB0 /dev/gps",
                "c 188:0 rx 660 0:20 /dev/ttyUSB0 /dev/gps",
                "c 188:0 rwmr 660 0:20 /dev/ttyUSB0 /dev/gps",
                "c 188:0 rw x 0:20 /dev/ttyUSB0 /dev/gps",
                "c 188:0 rw 660 0 /dev/ttyUSB0 /dev/gps",
                "c 188:0 rw 660 0:20 /dev/ttyUSB0 /etc/gps",
                "c 188:0 rw 660 0:20 /dev/ttyUSB0 /dev/",
        };
        char *text = strdup("c 188:3 rw 660 0:20 /dev/ttyUSB3 /dev/gps");
        LiveDevice device;

        EXPECT_EQ(live_device_parse(text, &device), 0);
        EXPECT_EQ(device.type, 'c');
        EXPECT_EQ(device.major, 188);
        EXPECT_EQ(device.minor, 3);
        EXPECT_STREQ(device.access, "rw");
        EXPECT_EQ(device.mode, 0660);
        EXPECT_EQ(device.gid, 20);
        EXPECT_STREQ(device.host_path, "/dev/ttyUSB3");
        EXPECT_STREQ(device.path, "/dev/gps");
        free(text);
        for (size_t i = 0; i < N_ELEMENTS(invalid); i++) {
                text = strdup(invalid[i]);
                EXPECT_EQ(live_device_parse(text, &device), -EBADMSG);
                free(text);
        }
}

static const char config_text[] =
        "{\"linux\": {\"resources\": {\"devices\": ["
        "{\"allow\": false, \"access\": \"rwm\"},"
        "{\"allow\": true, \"type\": \"c\", \"major\": 10, \"minor\": 229, \"access\": \"rw\"},"
        "{\"allow\": true, \"type\": \"c\", \"major\": 188, \"minor\": 0, \"access\": \"rw\"},"
        "{\"allow\": true, \"type\": \"c\", \"major\": 188, \"minor\": 0, \"access\": \"rw\"}]}}}";

static LiveDevice device_of(unsigned major, unsigned minor, const char *access) {
        LiveDevice device = { .type = 'c', .major = major, .minor = minor };

        (void) snprintf(device.access, sizeof(device.access), "%s", access);
        return device;
}

TEST(rules_of_removed_devices_are_omitted_once)
{
        cleanup_json json_t *config = json_loads(config_text, 0, NULL);
        const LiveDevice tty = device_of(188, 0, "rw"), fuse = device_of(10, 229, "rw"),
                         null = device_of(1, 3, "rwm"), mem = device_of(1, 1, "r"),
                         made = device_of(1, 1, "m");
        const LiveDevice both[] = { tty, tty };
        DeviceRules rules = { 0 };

        EXPECT_EQ(device_rules_load(config, both, 1, &rules), 0);
        EXPECT(device_rules_allow(&rules, &tty)); /* another provider also permits it */
        free(rules.items);
        rules = (DeviceRules){ 0 };
        EXPECT_EQ(device_rules_load(config, both, 2, &rules), 0);
        EXPECT(!device_rules_allow(&rules, &tty));
        EXPECT(device_rules_allow(&rules, &fuse));
        EXPECT(device_rules_allow(&rules, &null));
        EXPECT(!device_rules_allow(&rules, &mem));
        EXPECT(device_rules_allow(&rules, &made));
        EXPECT(!device_rules_allow_all(&rules));
        EXPECT_EQ(device_rules_add(&rules, &mem), 0);
        EXPECT(device_rules_allow(&rules, &mem));
        free(rules.items);
}

TEST(privileged_container_is_not_restricted)
{
        cleanup_json json_t *config = json_loads(
                "{\"linux\": {\"resources\": {\"devices\": [{\"allow\": true, \"access\": "
                "\"rwm\"}]}}}",
                0, NULL);
        DeviceRules rules = { 0 };

        EXPECT_EQ(device_rules_load(config, NULL, 0, &rules), 0);
        EXPECT(device_rules_allow_all(&rules));
        free(rules.items);
}
