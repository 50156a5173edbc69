/* SPDX-License-Identifier: Apache-2.0 */
#include "common/array.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <stdint.h>

typedef struct Fruit {
        const char *name;
        unsigned weight;
} Fruit;

static int compare_fruit_name(const char *name, const Fruit *fruit) {
        return strcmp(name, fruit->name);
}

static void add_fruit(Fruit **fruits, size_t *n, const char *name) {
        size_t at = ARRAY_FIND_PLACE(name, *fruits, *n, compare_fruit_name);
        Fruit *fruit = ARRAY_INSERT(*fruits, *n, at);

        REQUIRE(fruit);
        EXPECT_EQ(fruit->weight, 0);
        *fruit = (Fruit){ name, (unsigned) *n };
}

TEST(appended_items_are_zeros_and_stay_in_order)
{
        cleanup_free uint16_t *numbers = NULL;
        size_t n = 0;

        for (unsigned i = 0; i < 10000; i++) {
                uint16_t *number = ARRAY_APPEND(numbers, n);

                REQUIRE(number);
                EXPECT_EQ(*number, 0);
                *number = (uint16_t) i;
        }
        EXPECT_EQ(n, 10000);
        for (unsigned i = 0; i < n; i++)
                EXPECT_EQ(numbers[i], i);
}

TEST(an_array_grows_by_reallocation)
{
        size_t n = 3;
        cleanup_free char *letters = calloc(n, 1);

        REQUIRE(letters);
        memcpy(letters, "abc", n);
        for (int c = 'd'; c <= 'z'; c++) {
                char *letter = ARRAY_APPEND(letters, n);

                REQUIRE(letter);
                *letter = (char) c;
        }
        EXPECT_EQ(memcmp(letters, "abcdefghijklmnopqrstuvwxyz", n), 0);
}

TEST(an_array_is_reallocated_only_a_few_times)
{
        cleanup_free uint64_t *numbers = NULL;
        unsigned moved = 0;

        for (size_t n = 0; n < 100000;) {
                const uint64_t *before = numbers;

                REQUIRE(ARRAY_APPEND(numbers, n));
                moved += before != numbers;
        }
        EXPECT(moved < 100);
}

TEST(sorted_items_are_inserted_found_and_removed)
{
        static const char *const names[] = { "pear", "apple", "quince", "fig", "plum", "cherry" };
        cleanup_free Fruit *fruits = NULL;
        size_t n = 0;

        EXPECT(!ARRAY_FIND("fig", fruits, n, compare_fruit_name));
        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                add_fruit(&fruits, &n, names[i]);
        for (size_t i = 1; i < n; i++)
                EXPECT(strcmp(fruits[i - 1].name, fruits[i].name) < 0);
        for (size_t i = 0; i < N_ELEMENTS(names); i++) {
                const Fruit *found = ARRAY_FIND(names[i], fruits, n, compare_fruit_name);

                REQUIRE(found);
                EXPECT_EQ(found->weight, i + 1);
        }
        EXPECT(!ARRAY_FIND("aardvark", fruits, n, compare_fruit_name));
        EXPECT(!ARRAY_FIND("grape", fruits, n, compare_fruit_name));
        EXPECT(!ARRAY_FIND("zucchini", fruits, n, compare_fruit_name));
        ARRAY_REMOVE(fruits, n, 0);
        ARRAY_REMOVE(fruits, n, n - 1);
        EXPECT_EQ(n, 4);
        EXPECT(!ARRAY_FIND("apple", fruits, n, compare_fruit_name));
        EXPECT(!ARRAY_FIND("quince", fruits, n, compare_fruit_name));
        EXPECT_EQ(ARRAY_FIND("cherry", fruits, n, compare_fruit_name) - fruits, 0);
}

TEST(the_first_of_equal_items_is_found)
{
        Fruit fruits[] = { { "fig", 1 }, { "pear", 2 }, { "pear", 3 }, { "pear", 4 } };

        EXPECT_EQ(ARRAY_FIND("pear", fruits, N_ELEMENTS(fruits), compare_fruit_name)->weight, 2);
        EXPECT_EQ(ARRAY_FIND_PLACE("pear", fruits, N_ELEMENTS(fruits), compare_fruit_name), 1);
        EXPECT_EQ(ARRAY_FIND_PLACE("rye", fruits, N_ELEMENTS(fruits), compare_fruit_name), 4);
}

TEST(sizes_beyond_the_address_space_are_refused)
{
        cleanup_free Fruit *fruits = NULL;
        size_t n = 0;
        Fruit *before;

        add_fruit(&fruits, &n, "fig");
        before = fruits;
        EXPECT(!ARRAY_RESERVE(fruits, n, SIZE_MAX));
        EXPECT(!ARRAY_RESERVE(fruits, n, SIZE_MAX - 1));
        EXPECT(!ARRAY_RESERVE(fruits, n, PTRDIFF_MAX / sizeof(Fruit)));
        EXPECT(fruits == before);
        EXPECT_STREQ(fruits[0].name, "fig");
}
