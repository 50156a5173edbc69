/* SPDX-License-Identifier: Apache-2.0 */
/* Network configuration lists, and which file of the directory is used. */

#include "agent/cni/cni.h"
#include "agent/cni/network-config.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Returns the list as compact JSON, or the error message. */
static char *verdict(const char *text) {
        Error error = ERROR_NULL;
        json_t *list = NULL;
        int r = cni_config_list_parse(text, &list, &error);
        char *answer = r < 0 ? strdup(error_message(&error, r)) : json_dumps(list, JSON_COMPACT);

        error_done(&error);
        json_decref(list);
        REQUIRE(answer);
        return answer;
}

TEST(single_plugin_configuration_becomes_a_list)
{
        static const struct {
                const char *text, *answer;
        } cases[] = {
                { "{\"cniVersion\":\"0.3.1\",\"name\":\"n\",\"type\":\"bridge\",\"x\":1}",
                  "{\"name\":\"n\",\"cniVersion\":\"0.3.1\",\"plugins\":[{\"cniVersion\":\"0.3.1\","
                  "\"name\":\"n\",\"type\":\"bridge\",\"x\":1}]}" },
                { "{\"cniVersion\":\"1.1.0\",\"name\":\"n\",\"plugins\":[{\"type\":\"a.b-c_1\"}]}",
                  "{\"cniVersion\":\"1.1.0\",\"name\":\"n\",\"plugins\":[{\"type\":\"a.b-c_1\"}]"
                  "}" },
                { "", "1:0: '[' or '{' expected near end of file" },
                { "[]", "must be an object" },
                { "{\"name\":\"n\",\"name\":\"m\"}", "1:18: duplicate object key near '\"name\"'" },
                { "{\"cniVersion\":\"0.2.0\",\"name\":\"n\",\"plugins\":[{\"type\":\"a\"}]}",
                  "cniVersion: must be one of 0.3.0, 0.3.1, 0.4.0, 1.0.0 and 1.1.0, not '0.2.0'" },
                { "{\"cniVersion\":1,\"name\":\"n\",\"plugins\":[{\"type\":\"a\"}]}",
                  "cniVersion: must be one of 0.3.0, 0.3.1, 0.4.0, 1.0.0 and 1.1.0, not ''" },
                { "{\"cniVersion\":\"1.0.0\",\"name\":\"../n\",\"plugins\":[{\"type\":\"a\"}]}",
                  "name: must be letters, digits, '_', '.' and '-', the first of them a letter or "
                  "a "
                  "digit, not '../n'" },
                { "{\"cniVersion\":\"1.0.0\",\"plugins\":[{\"type\":\"a\"}]}",
                  "name: must be letters, digits, '_', '.' and '-', the first of them a letter or "
                  "a "
                  "digit, not ''" },
                { "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[]}",
                  "plugins: must be a list of at least one plugin" },
                { "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[1]}",
                  "plugins[0]: must be an object" },
                { "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[{}]}",
                  "plugins[0].type: is missing" },
                { "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[{\"type\":\"a\"},"
                  "{\"type\":\"/bin/sh\"}]}",
                  "plugins[1].type: must be a file name of letters, digits, '_', '.' and '-', "
                  "not "
                  "'/bin/sh'" },
                { "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[{\"type\":\"..\"}]}",
                  "plugins[0].type: must be a file name of letters, digits, '_', '.' and '-', "
                  "not "
                  "'..'" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *answer = verdict(cases[i].text);

                EXPECT_STREQ(answer, cases[i].answer);
        }
}

/* "<head><unit><unit>…<tail>" */
static char *repeat(const char *head, const char *unit, unsigned n, const char *tail) {
        size_t length;
        char *text = NULL;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        fprintf(out, "%s", head);
        for (unsigned i = 0; i < n; i++)
                fprintf(out, "%s", unit);
        fprintf(out, "%s", tail);
        REQUIRE(fclose(out) == 0);
        return text;
}

TEST(too_deep_or_too_long_configuration_is_refused)
{
        cleanup_free char *deep =
                repeat("{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"a\","
                       "\"x\":",
                       "{\"x\":", 40, "1}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}");
        cleanup_free char *many =
                repeat("{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[{\"type\":\"a\"}",
                       ",{\"type\":\"a\"}", 16, "]}");
        cleanup_free char *of_deep = verdict(deep), *of_many = verdict(many);

        EXPECT_STREQ(of_deep, "is nested more than 32 levels deep");
        EXPECT_STREQ(of_many, "plugins: must be at most 16 plugins, not 17");
}

static void write_config_file(const char *name, const char *text) {
        cleanup_close int fd = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        REQUIRE(fd >= 0 && write_file_atomic_at(fd, name, text, strlen(text), 0644) >= 0);
}

static void remove_config_file(const char *name) {
        cleanup_free char *path = path_join(test_directory(), name);

        REQUIRE(unlink(path) == 0);
}

#define CONFIG "{\"cniVersion\":\"0.3.1\",\"name\":\"n\",\"plugins\":[{\"type\":\"bridge\"}]}"

/* Checks which file is used; NULL: the default. */
static void expect_used(const char *expected_name) {
        const CniSettings settings = { .config_dir = test_directory(), .has_default = true };
        cleanup_free char *text = NULL, *file = NULL, *expected = NULL;
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(cni_config_load(&settings, &text, &file, &error), 0);
        if (expected_name)
                EXPECT_STREQ(text, CONFIG);
        else
                EXPECT(text && strstr(text, "\"mainstay0\""));
        if (expected_name)
                expected = path_join(test_directory(), expected_name);
        EXPECT_STREQ(file, expected);
}

TEST(first_file_by_name_is_used_or_else_the_default)
{
        cleanup_free char *text = NULL, *file = NULL, *nowhere = path_join(test_directory(), "no");
        CniSettings settings = { .config_dir = nowhere, .has_default = true };
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(cni_config_load(&settings, &text, &file, NULL), 0);
        EXPECT(text && strstr(text, "\"mainstay0\""));
        EXPECT(!file);
        settings.has_default = false;
        EXPECT_EQ(cni_config_load(&settings, &text, &file, &error), -ENOENT);
        EXPECT(error.message && strstr(error.message, "there is no network configuration in "));
        write_config_file("README", CONFIG);
        write_config_file(".05-hidden.conf", CONFIG);
        write_config_file("05-old.conf.bak", CONFIG);
        write_config_file("05-cilium.conflist.cilium_bak", CONFIG);
        expect_used(NULL);
        write_config_file("87-last.conflist", CONFIG);
        write_config_file("20-middle.json", CONFIG);
        expect_used("20-middle.json");
        write_config_file("10-first.conf", CONFIG);
        expect_used("10-first.conf");
}

TEST(copied_package_configuration_yields_to_that_of_any_plugin)
{
        static const char *const plugins[] = {
                "10-flannel.conflist",       "10-calico.conflist", "05-cilium.conflist",
                "10-kindnet.conflist",       "10-weave.conflist",  "00-multus.conf",
                "10-canal.conflist",         "10-aws.conflist",    "10-kuberouter.conflist",
                "80-openshift-network.conf", "10-ovn.conflist",    "cni.conflist",
        };
        static const char *const copies[] = { "10-mainstay.conflist", "99-mainstay.conflist",
                                              "00-mainstay.conflist", "mainstay.conflist" };

        for (size_t i = 0; i < N_ELEMENTS(copies); i++) {
                write_config_file(copies[i], CONFIG);
                expect_used(copies[i]);
                for (size_t k = 0; k < N_ELEMENTS(plugins); k++) {
                        write_config_file(plugins[k], CONFIG);
                        expect_used(plugins[k]);
                        remove_config_file(plugins[k]);
                }
                remove_config_file(copies[i]);
        }
}

TEST(file_that_is_not_valid_is_skipped)
{
        write_config_file("00-multus.conf", "");
        write_config_file("05-half.conflist", "{\"cniVersion\":\"0.3.1\",\"name\":\"n\",\"plug");
        write_config_file("10-flannel.conflist", CONFIG);
        expect_used("10-flannel.conflist");
}

TEST(error_names_the_first_configuration_if_none_is_valid)
{
        cleanup_free char *text = NULL, *file = NULL, *path = path_join(test_directory(), "1.conf");
        const CniSettings settings = { .config_dir = test_directory(), .has_default = true };
        cleanup_error Error error = ERROR_NULL;

        REQUIRE(mkfifo(path, 0600) == 0);
        write_config_file("2.conf", "{}");
        EXPECT(cni_config_load(&settings, &text, &file, &error) < 0);
        EXPECT(error.message && strstr(error.message, "/1.conf: "));
}
