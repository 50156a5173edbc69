/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/image-config.h"
#include "agent/image-helper/pull/platform.h"
#include "common/architecture.h"
#include "common/cleanup.h"
#include "common/file-copy.h"
#include "common/strv.h"
#include "tests/test.h"

#define DIFF_ID "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ROOTFS  "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"" DIFF_ID "\"]}"

static ImageConfig *parse_test_image_config(const char *process, Error *error) {
        cleanup_free char *text = NULL;
        ImageConfig *config = NULL;

        REQUIRE(asprintf(&text,
                         "{\"os\":\"linux\",\"architecture\":\"amd64\",\"config\":%s," ROOTFS "}",
                         process) > 0);
        (void) image_config_parse(text, strlen(text), &config, error);
        return config;
}

TEST(a_configuration_is_parsed)
{
        ImageConfig *config = parse_test_image_config(
                "{\"Entrypoint\":[\"/a\",\"b c\"],\"Cmd\":null,\"Env\":[\"A=1\"],"
                "\"WorkingDir\":\"/x//y/./z\",\"User\":\"app:app\","
                "\"StopSignal\":\"quit\",\"Labels\":{\"l\":\"v\"}}",
                NULL);

        REQUIRE(config);
        EXPECT_STREQ(config->os, "linux");
        EXPECT_STREQ(config->architecture, "amd64");
        EXPECT_STREQ(config->variant, NULL);
        EXPECT_EQ(strv_length(config->entrypoint), 2);
        EXPECT_STREQ(config->entrypoint[1], "b c");
        EXPECT_EQ(strv_length(config->command), 0);
        EXPECT_STREQ(config->env[0], "A=1");
        EXPECT_STREQ(config->working_dir, "/x/y/z");
        EXPECT_STREQ(config->user, "app:app");
        EXPECT_STREQ(config->stop_signal, "SIGQUIT");
        EXPECT_EQ(config->n_diff_ids, 1);
        EXPECT_STREQ(config->diff_ids[0], DIFF_ID);
        image_config_free(config);
}

TEST(volumes_are_absolute_plain_and_each_once)
{
        static const char *const expected[] = { "/data", "/rel/x", "/up", NULL };
        ImageConfig *config = parse_test_image_config(
                "{\"Volumes\":{\"/data\":{},\"rel//x/\":null,\"/data/\":{},\"/\":{},\"\":{},"
                "\"../a/../up\":{}}}",
                NULL);

        REQUIRE(config);
        EXPECT(strv_equal(config->volumes, (char *const *) (uintptr_t) expected));
        image_config_free(config);
        config = parse_test_image_config("{\"Volumes\":null}", NULL);
        REQUIRE(config);
        EXPECT_EQ(strv_length(config->volumes), 0);
        image_config_free(config);
}

TEST(unusable_environment_variables_are_dropped)
{
        static const char *const expected[] = { "A=3", "B=two\nlines", "C=", "D==", NULL };
        ImageConfig *config =
                parse_test_image_config("{\"Env\":[\"A=1\",\"NOVALUE\",\"=x\",\"N\\nL=1\",\"A=3\","
                                        "\"B=two\\nlines\",\"C=\",\"D==\",\"\"]}",
                                        NULL);

        REQUIRE(config);
        EXPECT_EQ(strv_length(config->env), 4);
        for (size_t i = 0; i < 4 && i < strv_length(config->env); i++)
                EXPECT_STREQ(config->env[i], expected[i]);
        image_config_free(config);
}

TEST(invalid_configurations_are_refused)
{
        static const struct {
                const char *process, *message;
        } cases[] = {
                { "{\"WorkingDir\":\"/proc/self/fd/7\"}",
                  "the working directory '/proc/self/fd/7' is refused" },
                { "{\"WorkingDir\":\"proc\"}", "the working directory 'proc' is refused" },
                { "{\"WorkingDir\":\"/x/../proc/1\"}",
                  "the working directory '/x/../proc/1' is refused" },
                { "{\"WorkingDir\":\"/../..\"}", "the working directory '/../..' is refused" },
                { "{\"Volumes\":[\"/data\"]}", "'Volumes' is not an object" },
                { "{\"WorkingDir\":7}", "'WorkingDir' is not a string" },
                { "{\"Cmd\":\"sh\"}", "'Cmd' is not a list" },
                { "{\"Cmd\":[1]}", "'Cmd' has an item that is not a string" },
                { "{\"User\":[]}", "'User' is not a string" },
                { "[]", "'config' is not an object" },
                { "{\"User\":\"a\",\"User\":\"root\"}", "line 1: duplicate object key" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                ImageConfig *config = parse_test_image_config(cases[i].process, &error);

                EXPECT(!config);
                EXPECT(error.message && strstr(error.message, cases[i].message));
        }
}

TEST(commands_and_environments_are_limited)
{
        static const char start[] = "{\"Cmd\":[\"a\"", item[] = ",\"a\"";
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *process = NULL;
        size_t length = 0;
        FILE *file = open_memstream(&process, &length);

        REQUIRE(file);
        (void) fputs(start, file);
        for (unsigned i = 0; i < 5000; i++)
                (void) fputs(item, file);
        (void) fputs("]}", file);
        REQUIRE(fclose(file) == 0);
        EXPECT(!parse_test_image_config(process, &error));
        EXPECT_STREQ(error.message, "'Cmd' is too long");
}

TEST(users_and_directories_are_limited)
{
        static const char *const keys[] = { "User", "WorkingDir", "StopSignal" };

        for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *text = NULL;
                char value[5000];

                memset(value, 'a', sizeof(value) - 1);
                value[sizeof(value) - 1] = '\0';
                REQUIRE(asprintf(&text, "{\"%s\":\"%s\"}", keys[i], value) > 0);
                EXPECT(!parse_test_image_config(text, &error));
                EXPECT(error.message && strstr(error.message, "is too long"));
        }
}

TEST(documents_without_valid_layers_are_refused)
{
        static const char *const texts[] = {
                "",
                "{",
                "[]",
                "{}",
                "{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[]}}",
                "{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:../../x\"]}}",
                "{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[7]}}",
                "{\"rootfs\":{\"type\":\"other\",\"diff_ids\":[]}}",
        };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
                cleanup_error Error error = ERROR_NULL;
                ImageConfig *config = NULL;

                EXPECT_EQ(image_config_parse(texts[i], strlen(texts[i]), &config, &error),
                          -EBADMSG);
                EXPECT(error.message);
        }
}

TEST(signals_are_normalised)
{
        static const struct {
                const char *text, *normal;
        } cases[] = {
                { "SIGTERM", "SIGTERM" },
                { "TERM", "SIGTERM" },
                { "term", "SIGTERM" },
                { "15", "SIGTERM" },
                { "SIGRTMIN+3", "SIGRTMIN+3" },
                { "RTMIN", "SIGRTMIN" },
                { "37", "SIGRTMIN+3" },
                { "SIGRTMAX-30", "SIGRTMIN" },
                { "SIGRTMAX", "SIGRTMIN+30" },
                { "0", NULL },
                { "65", NULL },
                { "SIGNOTHING", NULL },
                { "", NULL },
                { "15x", NULL },
                { "-9", NULL },
                { "RTMIN-9223372036854775808", NULL },
                { "SIGRTMIN+99", NULL },
                { "RTMIN+", NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *normal = NULL;

                EXPECT_EQ(normalize_signal_name(cases[i].text, &normal),
                          cases[i].normal ? 0 : -EINVAL);
                EXPECT_STREQ(normal, cases[i].normal);
        }
}

TEST(attributes_with_a_meaning_on_the_host_are_dropped)
{
        static const struct {
                const char *name;
                bool kept;
        } cases[] = {
                { "user.mime_type", true },
                { "security.capability", true },
                { "system.posix_acl_access", true },
                { "user.overlay.opaque", false },
                { "trusted.overlay.opaque", false },
                { "trusted.anything", false },
                { "security.selinux", false },
                { "security.ima", false },
                { "security.capabilityx", false },
                { "system.other", false },
                { "", false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ(xattr_is_allowed(cases[i].name), cases[i].kept);
}

TEST(images_for_other_platforms_do_not_fit)
{
        const char *here = machine_architecture();
        cleanup_error Error error = ERROR_NULL;

        EXPECT(platform_match_score("linux", here, NULL) > 0);
        EXPECT_EQ(platform_match_score("linux", "pdp11", NULL), 0);
        EXPECT_EQ(platform_match_score("windows", here, NULL), 0);
        EXPECT_EQ(platform_match_score(NULL, here, NULL), 0);
        EXPECT_EQ(platform_match_score("linux", NULL, NULL), 0);
        EXPECT_EQ(platform_match_score("linux", "x86_64", NULL),
                  platform_match_score("linux", "amd64", NULL));
        EXPECT_EQ(platform_match_score("Linux", "AArch64", NULL),
                  platform_match_score("linux", "arm64", NULL));
        EXPECT_EQ(platform_set_mismatch_error("linux", "pdp11", "v7", &error), -ENOEXEC);
        EXPECT(strstr(error.message, "the image is for linux/pdp11/v7, this machine is linux/"));
}
