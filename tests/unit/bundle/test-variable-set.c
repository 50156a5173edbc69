/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/variable-set.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>

enum {
        MANY = 20000
};

static void put_numbered(VariableSet *set, size_t i, const char *value) {
        char name[32];

        (void) snprintf(name, sizeof(name), "NAME_%zu", i);
        REQUIRE(variable_set_put(set, name, value) == 0);
}

TEST(repeated_variable_keeps_its_first_position_and_last_value)
{
        cleanup_with(variable_set_done) VariableSet set = VARIABLE_SET_NULL;
        size_t right = 0;

        for (size_t i = 0; i < MANY; i++)
                put_numbered(&set, (i * 7919) % MANY, "first");
        for (size_t i = 0; i < MANY; i += 2)
                put_numbered(&set, i, "second=x");
        EXPECT_EQ(set.n, MANY);
        for (size_t i = 0; i < set.n; i++) {
                size_t number = (i * 7919) % MANY;
                char entry[64];

                (void) snprintf(entry, sizeof(entry), "NAME_%zu=%s", number,
                                number % 2 == 0 ? "second=x" : "first");
                right += strcmp(set.strv[i], entry) == 0;
        }
        EXPECT_EQ(right, MANY);
        EXPECT(!set.strv[set.n]);
        EXPECT_STREQ(variable_set_find(&set, "NAME_12", strlen("NAME_12")), "second=x");
        EXPECT_STREQ(variable_set_find(&set, "NAME_123", strlen("NAME_12")), "second=x");
        EXPECT(!variable_set_find(&set, "NAME_", strlen("NAME_")));
}

TEST(default_does_not_replace_an_existing_variable)
{
        cleanup_with(variable_set_done) VariableSet set = VARIABLE_SET_NULL;

        EXPECT_EQ(variable_set_put_entries(&set, (char *[]){ (char[]){ "A=b=c" }, NULL }), 0);
        EXPECT_EQ(variable_set_put_entries(&set, (char *[]){ (char[]){ "without" }, NULL }), 0);
        EXPECT_EQ(variable_set_put_default(&set, "A", "default"), 0);
        EXPECT_EQ(variable_set_put_default(&set, "B", "default"), 0);
        EXPECT_EQ(set.n, 2);
        EXPECT_STREQ(set.strv[0], "A=b=c");
        EXPECT_STREQ(set.strv[1], "B=default");
        EXPECT(!variable_set_find(&set, "A=b", strlen("A=b")));
}

/* Returns a value with which the variable A takes this number of bytes. */
static char *value_of_bytes(size_t bytes) {
        size_t length = bytes - strlen("A=") - 1 - sizeof(char *);
        char *value = malloc(length + 1);

        REQUIRE(value);
        memset(value, 'x', length);
        value[length] = '\0';
        return value;
}

TEST(variables_that_execve_does_not_take_are_refused)
{
        cleanup_with(variable_set_done) VariableSet set = VARIABLE_SET_NULL;
        const size_t rest = strlen("B=1") + 1 + sizeof(char *);
        cleanup_free char *largest = value_of_bytes(EXEC_BYTES_MAX - rest);
        cleanup_free char *too_large = value_of_bytes(EXEC_BYTES_MAX - rest + 1);

        EXPECT_EQ(variable_set_put(&set, "B", "1"), 0);
        EXPECT_EQ(variable_set_put(&set, "A", too_large), -E2BIG);
        EXPECT_EQ(variable_set_put(&set, "A", largest), 0);
        EXPECT_EQ(variable_set_put(&set, "A", too_large), -E2BIG);
        EXPECT_EQ(variable_set_put(&set, "B", "12"), -E2BIG);
        EXPECT_EQ(variable_set_put(&set, "C", ""), -E2BIG);
        EXPECT_EQ(set.n, 2);
        EXPECT_EQ(set.bytes, EXEC_BYTES_MAX);
        EXPECT_STREQ(set.strv[0], "B=1");

        EXPECT_EQ(variable_set_put(&set, "A", ""), 0);
        EXPECT_EQ(variable_set_put(&set, "C", ""), 0);
        EXPECT_STREQ(set.strv[1], "A=");
}
