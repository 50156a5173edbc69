/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/environment.h"

#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

static char *words(char *const *strv) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        for (size_t i = 0; strv && strv[i]; i++)
                fprintf(out, "%s%s", i > 0 ? "|" : "", strv[i]);
        fclose(out);
        return text;
}

TEST(command_and_args_replace_entrypoint_and_command_of_image)
{
        char *entrypoint[] = { (char[]){ "/entry" }, NULL },
             *command[] = { (char[]){ "cmd" }, NULL };
        char *a[] = { (char[]){ "a" }, NULL }, *b[] = { (char[]){ "b" }, NULL };
        const struct {
                char **entrypoint, **image_command, **command, **args;
                const char *expected;
        } cases[] = {
                { entrypoint, command, NULL, NULL, "/entry|cmd" },
                { entrypoint, command, a, NULL, "a" },
                { entrypoint, command, NULL, b, "/entry|b" },
                { entrypoint, command, a, b, "a|b" },
                { NULL, command, NULL, NULL, "cmd" },
                { NULL, NULL, NULL, b, "b" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                Image image = { .entrypoint = cases[i].entrypoint,
                                .command = cases[i].image_command };
                Container container = { .command = cases[i].command, .args = cases[i].args };
                cleanup_strv char **argv = NULL;
                cleanup_free char *text = NULL;

                EXPECT_EQ(container_argv(&container, &image, NULL, &argv, NULL), 0);
                text = words(argv);
                EXPECT_STREQ(text, cases[i].expected);
        }
}

TEST(container_without_command_is_refused)
{
        static char image_name[] = "empty:1";
        Image image = { 0 };
        Container container = { .image = image_name };
        cleanup_error Error error = ERROR_NULL;
        char **argv = NULL;

        EXPECT_EQ(container_argv(&container, &image, NULL, &argv, &error), -EINVAL);
        EXPECT_STREQ(error.message,
                     "no command specified: neither the pod nor the image 'empty:1' has one");
}

TEST(variable_references_are_expanded)
{
        static const struct {
                const char *word, *expected;
        } cases[] = {
                { "$(A)", "1" },      { "x$(A)y$(B)z", "x1y2z" },
                { "$$(A)", "$(A)" },  { "$(C)", "$(C)" },
                { "$A", "$A" },       { "$(A", "$(A" },
                { "$", "$" },         { "$$", "$" },
                { "$()", "$()" },     { "$$$(A)", "$1" },
                { "$(A)$(A)", "11" }, { "", "" },
        };
        char *env[] = { (char[]){ "A=1" }, (char[]){ "B=2" }, NULL };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *word = strdup(cases[i].word);
                char *command[] = { (char[]){ "c" }, word, NULL };
                Container container = { .command = command };
                cleanup_strv char **argv = NULL;

                EXPECT_EQ(container_argv(&container, &(Image){ 0 }, env, &argv, NULL), 0);
                EXPECT_STREQ(argv ? argv[1] : NULL, cases[i].expected);
        }
}

static const BundleConfig no_objects = { .run_dir = "/r" };

TEST(variables_refer_to_earlier_ones_and_not_to_the_images)
{
        EnvVar variables[] = {
                { .name = (char[]){ "A" }, .value = (char[]){ "pod" } },
                { .name = (char[]){ "B" }, .value = (char[]){ "$(A)-$(LATER)-$(PATH)" } },
                { .name = (char[]){ "LATER" } },
                { .name = (char[]){ "A" }, .value = (char[]){ "$(A)!" } },
        };
        Container container = { .env = { variables, N_ELEMENTS(variables) } };
        cleanup_strv char **env = NULL;
        cleanup_free char *text = NULL;

        EXPECT_EQ(container_variables(&no_objects, &(Pod){ 0 }, &container, &env, NULL), 0);
        text = words(env);
        EXPECT_STREQ(text, "A=pod!|B=pod-$(LATER)-$(PATH)|LATER=");
}

TEST(the_containers_variables_replace_the_images)
{
        char *image_env[] = { (char[]){ "PATH=/bin" }, (char[]){ "A=image" }, NULL };
        char *variables[] = { (char[]){ "A=pod" }, (char[]){ "B=a=b" }, NULL };
        cleanup_strv char **env = NULL, **bare = NULL;
        cleanup_free char *text = NULL, *bare_text = NULL;

        EXPECT_EQ(container_environment(&(Image){ .env = image_env }, "h", variables, &env), 0);
        text = words(env);
        EXPECT_STREQ(text, "PATH=/bin|A=pod|HOSTNAME=h|B=a=b");

        EXPECT_EQ(container_environment(&(Image){ 0 }, "h", NULL, &bare), 0);
        bare_text = words(bare);
        EXPECT_STREQ(
                bare_text,
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin|HOSTNAME=h");
}
