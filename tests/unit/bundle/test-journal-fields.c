/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/log-paths.h"
#include "common/strv.h"
#include "tests/test.h"

static const char id[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static char **fields_of(bool node_has, ObjectSource source, const char *annotation) {
        KeyValue items[] = { { .key = (char *) (uintptr_t) "mainstay.dev/journal-logs",
                               .value = (char *) (uintptr_t) annotation } };
        const Pod pod = { .metadata = { .name = (char *) (uintptr_t) "shop-node1",
                                        .namespace = (char *) (uintptr_t) "trade",
                                        .uid = (char *) (uintptr_t) "u-1",
                                        .annotations = { items, annotation != NULL },
                                        .source = source } };
        const Container container = { .name = (char *) (uintptr_t) "web" };
        const BundleConfig config = { .has_journal = node_has };
        char **fields = NULL;

        EXPECT_EQ(bundle_journal_fields(&config, &pod, &container, id, &fields), 0);
        return fields;
}

TEST(pod_annotation_overrides_the_nodes_journal_setting)
{
        static const struct {
                bool node_has;
                const char *annotation;
                bool goes;
        } cases[] = {
                { false, NULL, false }, { true, NULL, true },     { false, "true", true },
                { true, "true", true }, { true, "false", false }, { false, "false", false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_strv char **fields =
                        fields_of(cases[i].node_has, OBJECT_SOURCE_FILE, cases[i].annotation);

                EXPECT_EQ(fields != NULL, cases[i].goes);
        }
}

TEST(annotation_of_an_api_servers_pod_leaves_the_nodes_journal_setting)
{
        cleanup_strv char **off = fields_of(false, OBJECT_SOURCE_APISERVER, "true");
        cleanup_strv char **on = fields_of(true, OBJECT_SOURCE_APISERVER, "false");

        EXPECT(!off);
        EXPECT(on);
}

TEST(journal_fields_name_pod_and_container)
{
        cleanup_strv char **fields = fields_of(true, OBJECT_SOURCE_FILE, NULL);

        EXPECT(strv_contains(fields, "CONTAINER_NAME=web"));
        EXPECT(strv_contains(fields, "CONTAINER_ID=0123456789ab"));
        EXPECT(strv_contains(fields, "CONTAINER_ID_FULL=0123456789abcdef0123456789abcdef"
                                     "0123456789abcdef0123456789abcdef"));
        EXPECT(strv_contains(fields, "POD_NAME=shop-node1"));
        EXPECT(strv_contains(fields, "POD_NAMESPACE=trade"));
        EXPECT(strv_contains(fields, "POD_UID=u-1"));
        EXPECT(strv_contains(fields, "SYSLOG_IDENTIFIER=web"));
}
