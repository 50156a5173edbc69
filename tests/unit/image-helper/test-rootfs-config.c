/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/import/rootfs-config.h"
#include "tests/test.h"

/* Applies the changes one after another to an empty configuration; NULL: one of them is refused. */
static char *apply_changes(const char *const *changes, Error *reterr) {
        cleanup_json json_t *config = json_object();

        for (size_t i = 0; changes[i]; i++)
                if (rootfs_config_apply(config, changes[i], reterr) < 0)
                        return NULL;
        return json_to_text(config, JSON_COMPACT | JSON_SORT_KEYS);
}

#define EXPECT_CONFIG(expected, ...)                                                       \
        do {                                                                               \
                cleanup_error Error error = ERROR_NULL;                                    \
                cleanup_free char *text =                                                  \
                        apply_changes((const char *const[]){ __VA_ARGS__, NULL }, &error); \
                                                                                           \
                EXPECT_STREQ(strna(text), expected);                                       \
        } while (0)

TEST(commands_are_arrays_or_run_by_the_shell)
{
        EXPECT_CONFIG("{\"Cmd\":[\"/bin/app\",\"-x\"]}", "CMD [\"/bin/app\", \"-x\"]");
        EXPECT_CONFIG("{\"Entrypoint\":[\"/bin/sh\",\"-c\",\"app -x\"]}", "ENTRYPOINT app -x");
        EXPECT_CONFIG("{\"Cmd\":[\"/bin/sh\",\"-c\",\"/bin/bash\"]}", "CMD=/bin/bash");
        EXPECT_CONFIG("{\"Cmd\":[]}", "CMD []");
        EXPECT_CONFIG("{\"Cmd\":[\"b\"]}", "CMD [\"a\"]", "cmd [\"b\"]");
}

TEST(variables_are_split_like_words_of_a_shell)
{
        EXPECT_CONFIG("{\"Env\":[\"A=b\"]}", "ENV A=b");
        EXPECT_CONFIG("{\"Env\":[\"A=b\"]}", "ENV=A=b");
        EXPECT_CONFIG("{\"Env\":[\"A=b c\"]}", "ENV A b c");
        EXPECT_CONFIG("{\"Env\":[\"A=b c\",\"D=e\"]}", "env A='b c' D=\"e\"");
        EXPECT_CONFIG("{\"Env\":[\"A=\",\"B=x y\"]}", "ENV\tA= B=x\\ y");
        EXPECT_CONFIG("{\"Env\":[\"AB=1\",\"A=3\"]}", "ENV AB=1 A=2", "Env A=3");
}

TEST(ports_volumes_and_labels_are_collected)
{
        EXPECT_CONFIG("{\"ExposedPorts\":{\"53/udp\":{},\"80/tcp\":{}}}", "EXPOSE 80",
                      "EXPOSE 53/udp");
        EXPECT_CONFIG("{\"Volumes\":{\"/a\":{},\"/b\":{}}}", "VOLUME /a /b");
        EXPECT_CONFIG("{\"Volumes\":{\"/a b\":{}}}", "VOLUME [\"/a b\"]");
        EXPECT_CONFIG("{\"Labels\":{\"a\":\"b\",\"c\":\"d=e\"}}", "LABEL a=b", "LABEL=c=d=e");
}

TEST(instructions_and_json_objects_are_accepted)
{
        EXPECT_CONFIG("{\"StopSignal\":\"9\",\"User\":\"a:b\",\"WorkingDir\":\"/w\"}", "USER a:b",
                      "WORKDIR /w", "STOPSIGNAL=9");
        EXPECT_CONFIG("{\"Cmd\":[\"x\"],\"WorkingDir\":\"/y\"}", " {\"Cmd\":[\"x\"]}",
                      "WorkingDir=/y");
}

TEST(an_invalid_change_is_refused)
{
        static const char *const changes[] = {
                "",           "FROM x",        "CMDS x",       "CMD",        "CMD ",
                "ENV",        "ENV =b",        "LABEL x",      "ENV A=\"b",  "EXPOSE x",
                "EXPOSE 1/x", "EXPOSE 123456", "VOLUME a",     "VOLUME [1]", "WORKDIR w",
                "CMD [",      "[\"Cmd\"]",     "{\"cmd\":[]}", "{",
        };

        for (size_t i = 0; i < N_ELEMENTS(changes); i++) {
                cleanup_error Error error = ERROR_NULL;
                cleanup_json json_t *config = json_object();
                int r = rootfs_config_apply(config, changes[i], &error);

                if (r >= 0)
                        test_fail(__FILE__, __LINE__, changes[i], "is accepted");
                EXPECT(error.message);
        }
}
