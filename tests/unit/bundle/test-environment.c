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

static const VariableSet no_variables;

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

                EXPECT_EQ(container_argv(&container, &image, &no_variables, &argv, NULL), 0);
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

        EXPECT_EQ(container_argv(&container, &image, &no_variables, &argv, &error), -EINVAL);
        EXPECT_STREQ(error.message,
                     "no command specified: neither the pod nor the image 'empty:1' has one");
}

TEST(variable_references_are_expanded)
{
        static const struct {
                const char *word, *expected;
        } cases[] = {
                { "$(A)", "1" },
                { "x$(A)y$(B)z", "x1y2z" },
                { "$$(A)", "$(A)" },
                { "$(C)", "$(C)" },
                { "$A", "$A" },
                { "$(A", "$(A" },
                { "$", "$" },
                { "$$", "$" },
                { "$()", "$()" },
                { "$$$(A)", "$1" },
                { "$(A)$(A)", "11" },
                { "", "" },
                { "$(A=1)", "$(A=1)" },
                { "$($(A))", "$($(A))" },
                { "$($$A)$(B)", "$($$A)2" },
        };
        cleanup_with(variable_set_done) VariableSet env = VARIABLE_SET_NULL;

        REQUIRE(variable_set_put(&env, "A", "1") == 0 && variable_set_put(&env, "B", "2") == 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *word = strdup(cases[i].word);
                char *command[] = { (char[]){ "c" }, word, NULL };
                Container container = { .command = command };
                cleanup_strv char **argv = NULL;

                EXPECT_EQ(container_argv(&container, &(Image){ 0 }, &env, &argv, NULL), 0);
                EXPECT_STREQ(argv ? argv[1] : NULL, cases[i].expected);
        }
}

static const BundleConfig no_objects = { .run_dir = "/r" };

TEST(variables_refer_only_to_earlier_variables_of_the_pod)
{
        EnvVar variables[] = {
                { .name = (char[]){ "A" }, .value = (char[]){ "pod" } },
                { .name = (char[]){ "B" }, .value = (char[]){ "$(A)-$(LATER)-$(PATH)" } },
                { .name = (char[]){ "LATER" } },
                { .name = (char[]){ "A" }, .value = (char[]){ "$(A)!" } },
        };
        Container container = { .env = { variables, N_ELEMENTS(variables) } };
        cleanup_with(variable_set_done) VariableSet env = VARIABLE_SET_NULL;
        cleanup_free char *text = NULL;

        EXPECT_EQ(container_variables(&no_objects, &(Pod){ 0 }, &container, &env, NULL), 0);
        text = words(env.strv);
        EXPECT_STREQ(text, "A=pod!|B=pod-$(LATER)-$(PATH)|LATER=");
}

TEST(the_containers_variables_replace_the_images)
{
        char *image_env[] = { (char[]){ "PATH=/bin" }, (char[]){ "A=image" }, NULL };
        cleanup_with(variable_set_done) VariableSet variables = VARIABLE_SET_NULL;
        cleanup_with(variable_set_done) VariableSet env = VARIABLE_SET_NULL;
        cleanup_with(variable_set_done) VariableSet bare = VARIABLE_SET_NULL;
        cleanup_free char *text = NULL, *bare_text = NULL;

        REQUIRE(variable_set_put(&variables, "A", "pod") == 0);
        REQUIRE(variable_set_put(&variables, "B", "a=b") == 0);
        EXPECT_EQ(container_environment(&(Image){ .env = image_env }, "h", &variables, &env, NULL),
                  0);
        text = words(env.strv);
        EXPECT_STREQ(text, "PATH=/bin|A=pod|HOSTNAME=h|B=a=b");

        EXPECT_EQ(container_environment(&(Image){ 0 }, "h", &no_variables, &bare, NULL), 0);
        bare_text = words(bare.strv);
        EXPECT_STREQ(
                bare_text,
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin|HOSTNAME=h");
}

/* ---- limits ---- */

static char *repeat(const char *text, size_t n) {
        size_t length = strlen(text);
        char *result = malloc(n * length + 1);

        REQUIRE(result);
        for (size_t i = 0; i < n; i++)
                memcpy(result + i * length, text, length);
        result[n * length] = '\0';
        return result;
}

TEST(an_expansion_is_limited_to_the_maximum_size_for_execve)
{
        cleanup_with(variable_set_done) VariableSet set = VARIABLE_SET_NULL;
        cleanup_free char *largest = repeat("x", EXPANSION_MAX), *result = NULL, *one_more = NULL;

        REQUIRE(variable_set_put(&set, "A", largest) == 0);
        REQUIRE(variable_set_put(&set, "EMPTY", "") == 0);
        EXPECT_EQ(expand_variables("$(A)$(EMPTY)", &set, &result, NULL), 0);
        EXPECT_STREQ(result, largest);
        EXPECT_EQ(expand_variables("$(A)y", &set, &one_more, NULL), -E2BIG);
        EXPECT_EQ(expand_variables("y$(A)", &set, &one_more, NULL), -E2BIG);
        EXPECT_EQ(expand_variables("$(A)$(A)", &set, &one_more, NULL), -E2BIG);
        EXPECT(!one_more);
}

TEST(a_long_text_without_a_known_reference_is_not_limited)
{
        static const char *const pieces[] = { "x", "$(", "$(UNKNOWN)", "$", ")" };

        for (size_t i = 0; i < N_ELEMENTS(pieces); i++) {
                cleanup_free char *text = repeat(pieces[i], EXPANSION_MAX + 1), *result = NULL;
                cleanup_free char *missing = NULL;

                EXPECT_EQ(expand_variables(text, &no_variables, &result, &missing), 0);
                if (pieces[i][0] == '$' && !pieces[i][1]) /* "$$" is one */
                        text[strlen(text) / 2] = '\0';
                EXPECT(result && strcmp(result, text) == 0);
        }
}

TEST(nested_references_are_one_unknown_reference)
{
        cleanup_with(variable_set_done) VariableSet set = VARIABLE_SET_NULL;
        cleanup_free char *open = repeat("$(", EXPANSION_MAX), *text = NULL, *result = NULL;

        REQUIRE(variable_set_put(&set, "A", "1") == 0);
        REQUIRE(asprintf(&text, "%sA)", open) > 0);
        EXPECT_EQ(expand_variables(text, &set, &result, NULL), 0);
        EXPECT(result && strcmp(result, text) == 0);
}

/* V0 is the secret, and each further variable contains the previous one twice. */
TEST(variables_that_grow_exponentially_are_refused_without_their_values)
{
        EnvVar variables[33] = { { .name = strdup("V0"), .value = strdup("secret--") } };
        Container container = { .env = { variables, N_ELEMENTS(variables) } };
        cleanup_with(variable_set_done) VariableSet set = VARIABLE_SET_NULL;
        cleanup_error Error error = ERROR_NULL;

        for (int i = 1; i < (int) N_ELEMENTS(variables); i++) {
                REQUIRE(asprintf(&variables[i].name, "V%d", i) > 0);
                REQUIRE(asprintf(&variables[i].value, "$(V%d)$(V%d)", i - 1, i - 1) > 0);
        }
        EXPECT_EQ(container_variables(&no_objects, &(Pod){ 0 }, &container, &set, &error),
                  -BUNDLE_CONFIG_ERROR);
        EXPECT_STREQ(error.message, "the variable V14 is longer than 131071 bytes when its "
                                    "references are expanded");
        EXPECT(!set.strv);
        for (size_t i = 0; i < N_ELEMENTS(variables); i++) {
                free(variables[i].name);
                free(variables[i].value);
        }
}

TEST(arguments_that_are_too_long_are_refused_with_their_place)
{
        cleanup_with(variable_set_done) VariableSet set = VARIABLE_SET_NULL;
        cleanup_free char *largest = repeat("x", EXPANSION_MAX);
        char *twice[] = { (char[]){ "c" }, (char[]){ "$(A)$(A)" }, NULL };
        char reference[] = "$(A)", *many[32] = { NULL };
        cleanup_error Error error = ERROR_NULL, total = ERROR_NULL;
        char **argv = NULL;

        REQUIRE(variable_set_put(&set, "A", largest) == 0);
        EXPECT_EQ(container_argv(&(Container){ .command = twice }, &(Image){ 0 }, &set, &argv,
                                 &error),
                  -BUNDLE_CONFIG_ERROR);
        EXPECT_STREQ(error.message,
                     "command[1]: is longer than 131071 bytes when its variables are expanded");

        for (size_t i = 0; i + 1 < N_ELEMENTS(many); i++)
                many[i] = reference;
        EXPECT_EQ(container_argv(&(Container){ .args = many }, &(Image){ 0 }, &set, &argv, &total),
                  -BUNDLE_CONFIG_ERROR);
        EXPECT_STREQ(total.message, "args[15]: with those before it takes more than 2097152 bytes, "
                                    "which no process can have");
        EXPECT(!argv);
}

static const DataObject *find_object(const ObjectKey *key, void *userdata) {
        return userdata;
}

/* The keys of one object under many prefixes. */
TEST(an_environment_that_is_too_large_is_refused)
{
        cleanup_free char *bytes = repeat("x", MIB / 2);
        ObjectValue value = { .key = (char[]){ "KEY" }, .bytes = bytes, .length = MIB / 2 };
        DataObject object = { .kind = OBJECT_CONFIG_MAP, .values = { &value, 1 } };
        const BundleConfig config = { .objects = { .find = find_object, .userdata = &object } };
        EnvSource source = { .name = (char[]){ "map" } };
        EnvFromSource sources[] = {
                { .config_map_ref = &source, .prefix = (char[]){ "A" } },
                { .config_map_ref = &source, .prefix = (char[]){ "B" } },
                { .config_map_ref = &source, .prefix = (char[]){ "C" } },
                { .config_map_ref = &source, .prefix = (char[]){ "D" } },
        };
        Container container = { .env_from = { sources, 3 } };
        cleanup_with(variable_set_done) VariableSet set = VARIABLE_SET_NULL, again = set;
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(container_variables(&config, &(Pod){ 0 }, &container, &set, NULL), 0);
        EXPECT_EQ(set.n, 3);
        container.env_from.n = 4;
        EXPECT_EQ(container_variables(&config, &(Pod){ 0 }, &container, &again, &error),
                  -BUNDLE_CONFIG_ERROR);
        EXPECT_STREQ(error.message, "the environment takes more than 2097152 bytes, which no "
                                    "process can have");
}
