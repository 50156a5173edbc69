/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of the built-in network, and where they are stored. */

#include "agent/node/built-in-ranges.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MACHINE_ID "0123456789abcdef0123456789abcdef\n"

static char *place(const char *name) {
        return path_join(test_directory(), name);
}

static void write_machine_id(const char *text) {
        cleanup_free char *path = place("machine-id");

        REQUIRE(write_file_atomic_at(AT_FDCWD, path, text, strlen(text), 0644) == 0);
}

static char *load(void) {
        cleanup_free char *path = place("machine-id");
        char *range = built_in_ranges_load_own(test_directory(), path);

        REQUIRE(range);
        EXPECT_EQ(strncmp(range, "fd", 2), 0);
        EXPECT_STREQ(range + strlen(range) - 5, "::/64");
        return range;
}

static void forget(void) {
        cleanup_free char *path = place("pod-range");

        REQUIRE(unlink(path) == 0);
}

TEST(range_is_derived_from_the_machine_id_without_showing_it)
{
        cleanup_free char *first = NULL, *again = NULL, *other = NULL;

        write_machine_id(MACHINE_ID);
        first = load();
        EXPECT(!strstr(first, "0123") && !strstr(first, "cdef"));
        forget();
        again = load();
        EXPECT_STREQ(again, first);
        forget();
        write_machine_id("ffffffffffffffffffffffffffffffff\n");
        other = load();
        EXPECT(!streq(other, first));
}

TEST(range_stays_though_the_machine_id_changes_or_vanishes)
{
        cleanup_free char *first = NULL, *second = NULL, *third = NULL, *path = place("machine-id");

        write_machine_id(MACHINE_ID);
        first = load();
        write_machine_id("ffffffffffffffffffffffffffffffff\n");
        second = load();
        EXPECT_STREQ(second, first);
        REQUIRE(unlink(path) == 0);
        third = load();
        EXPECT_STREQ(third, first);
}

TEST(node_without_a_machine_id_gets_a_random_range_and_keeps_it)
{
        static const char *const ids[] = { "", "uninitialized\n", "0123\n" };
        cleanup_free char *last = NULL;

        for (size_t i = 0; i < N_ELEMENTS(ids); i++) {
                cleanup_free char *range = NULL, *again = NULL;

                write_machine_id(ids[i]);
                range = load();
                again = load();
                EXPECT_STREQ(again, range);
                EXPECT(!last || !streq(range, last));
                free(last);
                last = TAKE_PTR(range);
                forget();
        }
}

TEST(damaged_range_is_chosen_again)
{
        cleanup_free char *first = NULL, *again = NULL, *path = place("pod-range");

        write_machine_id(MACHINE_ID);
        first = load();
        REQUIRE(truncate(path, 5) == 0);
        again = load();
        EXPECT_STREQ(again, first);
}

TEST(directory_that_cannot_be_written_leaves_the_range_of_the_machine)
{
        cleanup_free char *nowhere = place("nowhere"), *id = place("machine-id"), *range = NULL,
                          *expected = NULL;

        write_machine_id(MACHINE_ID);
        expected = load();
        range = built_in_ranges_load_own(nowhere, id);
        EXPECT_STREQ(range, expected);
}

TEST(configured_ranges_replace_both)
{
        char *v4[] = { (char[]){ "10.1.0.0/16" }, NULL };
        char *both[] = { (char[]){ "fd00::/64" }, (char[]){ "10.1.0.0/16" }, NULL };
        Config config = { 0 };
        CniBuiltInNetwork network = built_in_ranges_choose(&config, "fd01::/64");

        EXPECT_STREQ(network.ipv4, CNI_BUILT_IN_IPV4);
        EXPECT_STREQ(network.ipv6, "fd01::/64");
        EXPECT(network.is_ipv6_default);
        config.mainstay.pod_cidrs = v4;
        network = built_in_ranges_choose(&config, "fd01::/64");
        EXPECT_STREQ(network.ipv4, "10.1.0.0/16");
        EXPECT_STREQ(network.ipv6, NULL);
        config.mainstay.pod_cidrs = both;
        network = built_in_ranges_choose(&config, "fd01::/64");
        EXPECT_STREQ(network.ipv4, "10.1.0.0/16");
        EXPECT_STREQ(network.ipv6, "fd00::/64");
        EXPECT(!network.is_ipv6_default);
}

TEST(ranges_without_the_built_in_network_are_noted_as_without_effect)
{
        char *v4[] = { (char[]){ "10.1.0.0/16" }, NULL };
        char kubelet[] = "10.1.0.0/16";
        Config config = { .mainstay.pod_cidrs = v4 };

        EXPECT_EQ(built_in_ranges_note_unused(&config, false), 0);
        EXPECT_STREQ(config.without_effect, NULL);
        EXPECT_EQ(built_in_ranges_note_unused(&config, true), 0);
        EXPECT_STREQ(config.without_effect, "mainstay.podCIDRs");
        config.pod_cidr = kubelet;
        config.mainstay.built_in_network = (OptionalBool){ .is_set = true, .value = false };
        EXPECT_EQ(built_in_ranges_note_unused(&config, false), 0);
        EXPECT_STREQ(config.without_effect, "mainstay.podCIDRs, podCIDR");
        free(config.without_effect);
}
