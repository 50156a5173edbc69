/* SPDX-License-Identifier: Apache-2.0 */
/* README.md's tables of supported fields agree with the schema tables. */

#include "agent/model/daemonset.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <ctype.h>
#include <fcntl.h>

static const char heading[] = "### What of the Pod is honoured\n";

/* The section of the fields, up to the next heading. */
static char *read_section(void) {
        cleanup_free char *text = NULL;
        char *start, *end;

        REQUIRE(read_file_at(AT_FDCWD, SOURCE_DIR "/README.md", MIB, &text, NULL) >= 0);
        start = strstr(text, heading);
        REQUIRE(start);
        end = strstr(start + strlen(heading), "\n#");
        REQUIRE(end);
        return strndup(start, (size_t) (end - start));
}

static bool has_word(const char *text, const char *word) {
        size_t n = strlen(word);

        for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
                if ((at == text || !isalnum((unsigned char) at[-1])) &&
                    !isalnum((unsigned char) at[n]))
                        return true;
        return false;
}

static void expect_keys(const char *text, const Schema *schema) {
        for (size_t i = 0; i < schema->n_fields; i++) {
                const Field *field = &schema->fields[i];

                if (field->type == FIELD_REFUSED || field->type == FIELD_IGNORED ||
                    field->is_api_only)
                        continue;
                if (!has_word(text, field->key))
                        test_fail(__FILE__, __LINE__, field->key, "of %s is not in README.md",
                                  schema->name);
                if (field->schema)
                        expect_keys(text, field->schema);
        }
}

TEST(every_field_that_is_honoured_stands_in_the_readme)
{
        char *text = read_section();

        expect_keys(text, &pod_schema);
        expect_keys(text, &daemonset_schema);
        free(text);
}

TEST(a_row_of_the_readme_can_be_read)
{
        char *text = read_section(), *rest = text, *line;

        while ((line = strsep(&rest, "\n")))
                if (strlen(line) > 400)
                        test_fail(__FILE__, __LINE__, line, "has %zu characters", strlen(line));
        free(text);
}
