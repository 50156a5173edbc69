/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>

enum {
        ID_LENGTH = 32
};

static size_t count_occurrences(const char *text, const char *what) {
        size_t n = 0;

        while ((text = strstr(text, what))) {
                n++;
                text++;
        }
        return n;
}

TEST(every_message_id_has_an_entry_in_the_catalog)
{
        cleanup_free char *header = NULL, *catalog = NULL;
        const char *define;

        REQUIRE(read_file_at(AT_FDCWD, SOURCE_DIR "/common/message-ids.h", MIB, &header, NULL) >=
                0);
        REQUIRE(read_file_at(AT_FDCWD, SOURCE_DIR "/systemd/mainstay.catalog", MIB, &catalog,
                             NULL) >= 0);
        EXPECT(count_occurrences(header, "#define MESSAGE_") > 10);
        EXPECT_EQ(count_occurrences(header, "#define MESSAGE_"),
                  count_occurrences(catalog, "\n-- "));
        for (define = header; (define = strstr(define, "#define MESSAGE_")); define++) {
                char entry[ID_LENGTH + sizeof("-- \n")];
                const char *quote = strchr(define, '"');

                REQUIRE(quote && strlen(quote) > ID_LENGTH + 1);
                (void) snprintf(entry, sizeof(entry), "-- %.*s\n", ID_LENGTH, quote + 1);
                EXPECT_EQ(count_occurrences(catalog, entry), 1);
        }
}
