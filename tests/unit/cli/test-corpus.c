/* SPDX-License-Identifier: Apache-2.0 */
/* Small manifests, valid and invalid, in the themes of tests/corpus/, and the exact output of
 * `mainstay validate` for each: the lines of <theme>.verdicts, in the order of the files. With
 * MAINSTAY_UPDATE_GOLDEN in the environment the verdicts are written instead; then review the diff.
 */

#include "agent/cli/cli.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "tests/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        CASES_MIN = 300,
        PUBLISHED_MIN = 125,
        ACCEPTED_MIN = 100
};

static const char corpus[] = SOURCE_DIR "/tests/corpus";

/* Redirects both outputs of the program into a file until it is released. */
typedef struct Capture {
        int fd;
        int saved_stdout, saved_stderr;
} Capture;

static Capture capture_begin(void) {
        Capture capture = { .fd = memfd_create("output", MFD_CLOEXEC) };

        (void) fflush(stdout);
        capture.saved_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        capture.saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        REQUIRE(capture.fd >= 0 && capture.saved_stdout >= 0 && capture.saved_stderr >= 0);
        REQUIRE(dup2(capture.fd, STDOUT_FILENO) >= 0 && dup2(capture.fd, STDERR_FILENO) >= 0);
        return capture;
}

static char *capture_end(Capture *capture) {
        cleanup_close int fd = capture->fd;
        char *text = NULL;

        (void) fflush(stdout);
        REQUIRE(dup2(capture->saved_stdout, STDOUT_FILENO) >= 0 &&
                dup2(capture->saved_stderr, STDERR_FILENO) >= 0);
        close_fd(capture->saved_stdout);
        close_fd(capture->saved_stderr);
        REQUIRE(lseek(fd, 0, SEEK_SET) == 0 && read_stream(fd, MIB, &text, NULL) >= 0);
        return text;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Entries of one type in a directory, sorted. */
static char **list(const char *path, unsigned char type) {
        cleanup_closedir DIR *dir = opendir(path);
        char **names = NULL;
        struct dirent *entry;

        REQUIRE(dir);
        while ((entry = readdir(dir)))
                if (entry->d_type == type && entry->d_name[0] != '.')
                        REQUIRE(strv_append(&names, entry->d_name) >= 0);
        if (names)
                qsort(names, strv_length(names), sizeof(*names), compare_names);
        return names;
}

/* Returns the output for one file; the exit status must match it. */
static char *judge(char *file) {
        char *const words[] = { file, NULL };
        const Options options = { .socket = DEFAULT_SOCKET, .words = words, .n_words = 1 };
        Capture capture = capture_begin();
        int status = run_validate(&options);
        char *text = capture_end(&capture);
        bool is_good =
                strncmp(text, "error: ", strlen("error: ")) != 0 && !strstr(text, "\nerror: ");

        if (status != (is_good ? STATUS_OK : STATUS_FAILED))
                test_fail(__FILE__, __LINE__, file, "exits with %d, having said '%s'", status,
                          text);
        if (!strstr(text, file))
                test_fail(__FILE__, __LINE__, file, "is not named by '%s'", text);
        return text;
}

static char *judge_all(const char *theme, char **files) {
        cleanup_free char *path = NULL;
        char *verdicts = NULL;
        size_t size;
        FILE *out = open_memstream(&verdicts, &size);

        REQUIRE(out && asprintf(&path, "%s/%s", corpus, theme) > 0 && chdir(path) == 0);
        strv_foreach(file, files) {
                cleanup_free char *verdict = judge(*file);

                (void) fputs(verdict, out);
        }
        REQUIRE(fclose(out) == 0);
        return verdicts;
}

/* Compares line by line, because the whole text is long. */
static void compare(const char *theme, char *got, char *expected) {
        char *line, *wanted;

        while ((line = strsep(&got, "\n"))) {
                wanted = expected ? strsep(&expected, "\n") : NULL;
                if (!streq_ptr(line, wanted)) {
                        test_fail(__FILE__, __LINE__, theme, "has '%s', not '%s'", line,
                                  strna(wanted));
                        return;
                }
        }
        EXPECT(!expected);
}

static void check_theme(const char *theme, char **files) {
        cleanup_free char *got = judge_all(theme, files), *expected = NULL, *name = NULL;
        cleanup_close int fd = open(corpus, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        REQUIRE(fd >= 0 && asprintf(&name, "%s.verdicts", theme) > 0);
        if (getenv("MAINSTAY_UPDATE_GOLDEN")) {
                EXPECT_EQ(write_file_atomic_at(fd, name, got, strlen(got), 0644), 0);
                return;
        }
        REQUIRE(read_file_at(fd, name, MIB, &expected, NULL) == 0);
        compare(theme, got, expected);
}

TEST(corpus_manifests_get_their_exact_verdicts)
{
        cleanup_strv char **themes = list(corpus, DT_DIR);
        size_t n = 0;

        strv_foreach(theme, themes) {
                cleanup_free char *path = NULL;
                cleanup_strv char **files = NULL;

                REQUIRE(asprintf(&path, "%s/%s", corpus, *theme) > 0);
                files = list(path, DT_REG);
                n += strv_length(files);
                check_theme(*theme, files);
                printf("%s: %zu\n", *theme, strv_length(files));
        }
        printf("%zu manifests\n", n);
        EXPECT(n >= CASES_MIN);
}

TEST(every_verdicts_file_belongs_to_a_theme)
{
        cleanup_strv char **tables = list(corpus, DT_REG);

        strv_foreach(table, tables) {
                char path[256], *dot = strrchr(*table, '.');
                struct stat st;

                if (!dot || !streq(dot, ".verdicts"))
                        continue;
                (void) snprintf(path, sizeof(path), "%s/%.*s", corpus, (int) (dot - *table),
                                *table);
                EXPECT(stat(path, &st) == 0 && S_ISDIR(st.st_mode));
        }
}

/* Returns the text after a label in the comments at the top of a published manifest. */
static bool has_note(const char *text, const char *label) {
        const char *line = strstr(text, label);

        return line && strcspn(line + strlen(label), "\n") > 0;
}

TEST(published_manifests_name_their_source_and_changes)
{
        static const char directory[] = SOURCE_DIR "/tests/corpus/published";
        cleanup_strv char **files = list(directory, DT_REG);
        cleanup_close int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        REQUIRE(fd >= 0);
        EXPECT(strv_length(files) >= PUBLISHED_MIN);
        strv_foreach(file, files) {
                cleanup_free char *text = NULL;

                REQUIRE(read_file_at(fd, *file, MIB, &text, NULL) == 0);
                if (!has_note(text, "\n# source: ") || !has_note(text, "\n# changed: "))
                        test_fail(__FILE__, __LINE__, *file,
                                  "does not name its source and changes");
        }
}

/* Whether the message contains one of the phrases that introduce a remedy in messages about
 * manifests. */
static bool has_remedy(const char *message) {
        static const char *const remedies[] = { "; delete ", "; did you mean ", "; remove ",
                                                ", or use ", "; use ",          ": must be ",
                                                NULL };

        for (size_t i = 0; remedies[i]; i++)
                if (strstr(message, remedies[i]))
                        return true;
        return false;
}

/* Returns the number in the row with this start in the table of README.md. */
static size_t number_in_readme(const char *readme, const char *row) {
        const char *line = strstr(readme, row), *number;

        REQUIRE(line);
        number = strstr(line + strlen(row), " | ");
        REQUIRE(number);
        return strtoul(number + strlen(" | "), NULL, 10);
}

static void expect_counts_of_readme(size_t n_plain, size_t n_warned, size_t n_all) {
        static const char *const refused[] = {
                "| refused: a Deployment",
                "| refused: a token",
                "| refused because of an unknown",
                "| refused: a placeholder",
                NULL,
        };
        cleanup_close int fd = open(corpus, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_free char *readme = NULL;
        size_t n_refused = 0;

        REQUIRE(fd >= 0 && read_file_at(fd, "README.md", MIB, &readme, NULL) == 0);
        EXPECT_EQ(number_in_readme(readme, "| accepted"), n_plain);
        EXPECT_EQ(number_in_readme(readme, "| accepted with warnings"), n_warned);
        for (size_t i = 0; refused[i]; i++)
                n_refused += number_in_readme(readme, refused[i]);
        EXPECT_EQ(n_plain + n_warned + n_refused, n_all);
}

TEST(most_published_manifests_are_accepted_and_each_refusal_has_a_remedy)
{
        cleanup_strv char **files = list(SOURCE_DIR "/tests/corpus/published", DT_REG);
        cleanup_close int fd = open(corpus, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_free char *verdicts = NULL;
        char *rest, *line;
        size_t n_accepted = 0, n_warned = 0;
        bool has_warning = false;

        REQUIRE(fd >= 0 && read_file_at(fd, "published.verdicts", MIB, &verdicts, NULL) == 0);
        rest = verdicts;
        while ((line = strsep(&rest, "\n"))) {
                if (strstr(line, ".yaml: ok (")) {
                        n_accepted++;
                        n_warned += has_warning;
                }
                has_warning = strncmp(line, "warning: ", strlen("warning: ")) == 0;
                if (strncmp(line, "error: ", strlen("error: ")) == 0 && !has_remedy(line))
                        test_fail(__FILE__, __LINE__, line, "has no remedy");
        }
        EXPECT(n_accepted >= ACCEPTED_MIN);
        expect_counts_of_readme(n_accepted - n_warned, n_warned, strv_length(files));
}
