/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/pod-source.h"

#include "agent/model/own-keys.h"
#include "agent/model/pod-adoption.h"
#include "common/cleanup.h"
#include "tests/test.h"

static char daemonset[] = "DaemonSet", replicaset[] = "ReplicaSet", set_name[] = "logd",
            set_uid[] = "u-1", file[] = "web.yaml";

TEST(source_is_parsed_from_its_text_in_records)
{
        static const struct {
                PodSourceKind kind;
                const char *name;
                const char *text;
        } cases[] = {
                { POD_SOURCE_FILE, "web.yaml", "web.yaml" },
                { POD_SOURCE_FILE, "two\nlines.yaml", "two\nlines.yaml" },
                { POD_SOURCE_FILE, "source.yaml", "source.yaml" },
                { POD_SOURCE_URL, "staticPodURL", "staticPodURL" },
                { POD_SOURCE_INDEX, "source/web.yaml", "source/web.yaml" },
                { POD_SOURCE_APISERVER, NULL, "the API server" },
                { POD_SOURCE_APISERVER_DAEMONSET, NULL, "[API server]" },
                { POD_SOURCE_ORPHAN, NULL, "(no file)" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(pod_source_done) PodSource source = { 0 };

                REQUIRE(pod_source_parse(cases[i].text, &source) == 0);
                EXPECT_EQ(source.kind, cases[i].kind);
                EXPECT_STREQ(strna(source.name), strna(cases[i].name));
                EXPECT_STREQ(pod_source_format(&source), cases[i].text);
        }
}

TEST(every_kind_of_source_is_described)
{
        const PodSource web = pod_source_of_file("web.yaml");

        EXPECT_STREQ(pod_source_describe(&web), "web.yaml");
        for (PodSourceKind kind = 0; kind < N_POD_SOURCE_KINDS; kind++) {
                const PodSource source = { .kind = kind };

                if (!pod_source_is_manifest(&source))
                        EXPECT(strncmp(pod_source_describe(&source), "the ", 4) == 0);
        }
}

TEST(source_outranks_sources_with_lower_trust)
{
        static const PodSourceKind ranks[][3] = {
                { POD_SOURCE_APISERVER, POD_SOURCE_APISERVER_DAEMONSET, POD_SOURCE_APISERVER },
                { POD_SOURCE_URL, POD_SOURCE_INDEX, POD_SOURCE_INDEX },
                { POD_SOURCE_FILE, POD_SOURCE_ORPHAN, POD_SOURCE_FILE },
        };

        for (size_t i = 0; i < 3 * N_ELEMENTS(ranks); i++)
                for (size_t j = 0; j < 3 * N_ELEMENTS(ranks); j++) {
                        const PodSource a = { .kind = ranks[i / 3][i % 3] };
                        const PodSource b = { .kind = ranks[j / 3][j % 3] };

                        EXPECT_EQ(pod_source_outranks(&a, &b), i / 3 > j / 3);
                }
}

TEST(sources_are_equal_by_kind_and_name)
{
        const PodSource web = pod_source_of_file("web.yaml"), db = pod_source_of_file("db.yaml");
        const PodSource api = { .kind = POD_SOURCE_APISERVER }, none = { 0 };
        cleanup_with(pod_source_done) PodSource copy = { 0 };

        REQUIRE(pod_source_copy(&web, &copy) == 0);
        EXPECT(pod_sources_equal(&web, &copy));
        EXPECT(!pod_sources_equal(&web, &db));
        EXPECT(!pod_sources_equal(&web, &api));
        EXPECT(!pod_sources_equal(&web, &none));
}

static void expect_printed(PodSource source, const Pod *pod, const char *of_pod,
                           const char *of_set) {
        cleanup_free char *pod_text = print_pod_source(&source, pod);
        cleanup_free char *set_text = print_daemonset_source(&source);

        EXPECT_STREQ(pod_text, of_pod);
        if (of_set)
                EXPECT_STREQ(set_text, of_set);
}

TEST(sources_are_printed_for_users)
{
        char version[] = "apps/v1";
        OwnerReference owner = { .api_version = version,
                                 .kind = daemonset,
                                 .name = set_name,
                                 .uid = set_uid,
                                 .controller = true };
        const Pod plain = { 0 };
        Pod owned = { .metadata.owner_references = { &owner, 1 } };

        expect_printed(pod_source_of_file(file), &plain, "file web.yaml", "file web.yaml");
        expect_printed(pod_source_of_file(file), &owned, "evaluated (file web.yaml)", NULL);
        expect_printed(pod_source_of_file("staticPodURL"), &plain, "url", "url");
        expect_printed(pod_source_of_file("source/a.yaml"), &plain, "index a.yaml", "index a.yaml");
        expect_printed(pod_source_of_file("source/a.yaml"), &owned, "evaluated (index a.yaml)",
                       NULL);
        expect_printed((PodSource){ .kind = POD_SOURCE_APISERVER }, &plain, "api", "api");
        expect_printed((PodSource){ .kind = POD_SOURCE_APISERVER }, &owned, "api", "api");
        expect_printed((PodSource){ .kind = POD_SOURCE_APISERVER_DAEMONSET }, &owned,
                       "evaluated (api)", "api");
        expect_printed((PodSource){ .kind = POD_SOURCE_ORPHAN }, &plain, "left by a DaemonSet",
                       NULL);
        owner.kind = replicaset;
        expect_printed(pod_source_of_file(file), &owned, "file web.yaml", NULL);
}

TEST(an_adopted_pod_is_printed_with_the_name_of_the_api_servers_pod)
{
        char uid[] = "0123456789abcdef", source[] = "kubernetes.io/config.source", from[] = "api";
        char value[] = "logd-x2x4z/u-2", *name = strdup(own_key_name(OWN_KEY_COVERS));
        KeyValue annotations[] = { { source, from }, { name, value } };
        const Pod adopted = { .metadata = { .uid = uid, .annotations = { annotations, 2 } } };

        REQUIRE(name);
        expect_printed((PodSource){ .kind = POD_SOURCE_APISERVER }, &adopted, "api (as logd-x2x4z)",
                       NULL);
        free(name);
}
