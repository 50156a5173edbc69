/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/pages.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>

static char *page_path(const char *page) {
        char *path = path_join(SOURCE_DIR "/packaging", page);

        REQUIRE(path);
        return path;
}

char *page_read(const char *page) {
        cleanup_free char *path = page_path(page);
        char *text;

        REQUIRE(read_file_at(AT_FDCWD, path, MIB, &text, NULL) >= 0);
        return text;
}

/* Returns the text after the heading line ("## FIELDS") and the blank line that follows it;
 * '*ret_end' is the start of the next heading of the same or a higher level. */
static char *page_find_section(char *text, const char *heading, char **ret_end) {
        size_t level = strspn(heading, "#");
        cleanup_free char *line = NULL;
        char *start, *end;

        REQUIRE(asprintf(&line, "\n%s\n\n", heading) >= 0);
        start = strstr(text, line);
        if (!start) {
                test_fail(__FILE__, __LINE__, heading, "is not a heading of the page");
                exit(1);
        }
        start += strlen(line);
        for (end = start; *end; end = strchr(end, '\n') + 1) {
                size_t n = strspn(end, "#");

                if (n > 0 && n <= level && end[n] == ' ')
                        break;
        }
        *ret_end = end;
        return start;
}

char *page_read_section(const char *page, const char *heading) {
        cleanup_free char *text = page_read(page);
        char *end, *start = page_find_section(text, heading, &end);

        return strndup(start, (size_t) (end - start));
}

static void page_write_section(const char *page, const char *heading, const char *expected) {
        cleanup_free char *path = page_path(page), *text = page_read(page);
        char *end, *start = page_find_section(text, heading, &end);
        FILE *file = fopen(path, "we");

        REQUIRE(file);
        fprintf(file, "%.*s%s%s%s", (int) (start - text), text, expected, *end ? "\n" : "", end);
        REQUIRE(fclose(file) == 0);
}

void page_expect_section(const char *page, const char *heading, const char *expected) {
        cleanup_free char *found = NULL;
        size_t n = 0;

        if (getenv("MAINSTAY_UPDATE_PAGES"))
                page_write_section(page, heading, expected);
        found = page_read_section(page, heading);
        while (found[n] && found[n] == expected[n])
                n++;
        if (!expected[n] && (!found[n] || streq(found + n, "\n")))
                return;
        while (n > 0 && expected[n - 1] != '\n')
                n--;
        test_fail(__FILE__, __LINE__, heading,
                  "of packaging/%s is not what the code has from '%.*s' on; run this program with "
                  "MAINSTAY_UPDATE_PAGES=1",
                  page, (int) strcspn(expected + n, "\n"), expected + n);
}
