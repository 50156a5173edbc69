/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/list.h"
#include "tests/test.h"

typedef struct Bead {
        char name;
        struct Bead *next;
} Bead;

static Bead a = { 'a', NULL }, b = { 'b', NULL }, c = { 'c', NULL };

static const char *names_of_beads(const Bead *first) {
        static char names[8];
        size_t n = 0;

        list_foreach(bead, first)
                names[n++] = bead->name;
        names[n] = '\0';
        return names;
}

TEST(items_are_put_at_both_ends)
{
        Bead *first = NULL;

        EXPECT_STREQ(names_of_beads(first), "");
        LIST_APPEND(first, &b);
        LIST_APPEND(first, &c);
        LIST_PREPEND(first, &a);
        EXPECT_STREQ(names_of_beads(first), "abc");
}

TEST(an_item_is_taken_out_anywhere)
{
        Bead *first = NULL;

        LIST_APPEND(first, &a);
        LIST_APPEND(first, &b);
        LIST_APPEND(first, &c);
        LIST_REMOVE(first, &b);
        EXPECT_STREQ(names_of_beads(first), "ac");
        LIST_REMOVE(first, &b);
        EXPECT_STREQ(names_of_beads(first), "ac");
        LIST_REMOVE(first, &c);
        LIST_REMOVE(first, &a);
        EXPECT(!first);
}

TEST(items_are_freed_while_they_are_visited)
{
        Bead *first = NULL;
        unsigned seen = 0;

        for (unsigned i = 0; i < 3; i++) {
                Bead *bead = calloc(1, sizeof(*bead));

                REQUIRE(bead);
                LIST_PREPEND(first, bead);
        }
        list_foreach_safe(bead, first) {
                LIST_REMOVE(first, bead);
                free(bead);
                seen++;
        }
        EXPECT_EQ(seen, 3);
        EXPECT(!first);
}
