/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests that were fetched, together with those of the directory. */

#include "agent/manifest/manifest.h"
#include "agent/model/pod-source.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <unistd.h>

#define POD(name, extra)                                                       \
        "apiVersion: v1\nkind: Pod\nmetadata: {name: " name "}\nspec:\n" extra \
        "  containers: [{name: c, image: a}]\n"

typedef struct FetchedWorld {
        sd_event *event;
        ManifestDirectory *directory;
        int own_fd, fetched_fd;
        unsigned n_changes;
} FetchedWorld;

static void count_change(void *userdata) {
        ((FetchedWorld *) userdata)->n_changes++;
}

static int make_directory(const char *name) {
        cleanup_free char *path = path_join(test_directory(), name);
        int fd;

        REQUIRE(path && remove_tree_at(AT_FDCWD, path) >= 0);
        fd = open_directory_at(AT_FDCWD, path, 0700);
        REQUIRE(fd >= 0);
        return fd;
}

static void put_manifest(int dir_fd, const char *name, const char *text) {
        REQUIRE(write_file_atomic_at(dir_fd, name, text, strlen(text), 0600) >= 0);
}

static void begin_world(FetchedWorld *world) {
        cleanup_free char *own = path_join(test_directory(), "own");

        *world = (FetchedWorld){ .own_fd = make_directory("own"),
                                 .fetched_fd = make_directory("fetched") };
        REQUIRE(sd_event_new(&world->event) >= 0);
        REQUIRE(manifest_directory_new(world->event, own, "n", count_change, world,
                                       &world->directory) >= 0);
}

static void end_world(FetchedWorld *world) {
        manifest_directory_free(world->directory);
        sd_event_unref(world->event);
        close_fd(world->own_fd);
        close_fd(world->fetched_fd);
}

static void fetch(FetchedWorld *world, const char *prefix) {
        unsigned before = world->n_changes;

        REQUIRE(manifest_directory_set_fetched(world->directory, prefix, world->fetched_fd, NULL) >=
                0);
        while (world->n_changes == before && sd_event_run(world->event, 0) > 0) {
        }
}

/* "own.yaml: a; source/x.yaml: b !why". */
static const char *list_state(const FetchedWorld *world) {
        static char text[8192];
        const Manifest *const *list;
        size_t n = manifest_directory_list(world->directory, &list), length = 0;

        text[0] = '\0';
        for (size_t i = 0; i < n; i++) {
                length += (size_t) snprintf(text + length, sizeof(text) - length,
                                            "%s%s:", i > 0 ? "; " : "", list[i]->file);
                for (size_t j = 0; j < list[i]->pods.n; j++)
                        length += (size_t) snprintf(text + length, sizeof(text) - length, " %s",
                                                    list[i]->pods.items[j]->metadata.name);
                if (list[i]->error)
                        length += (size_t) snprintf(text + length, sizeof(text) - length, " !%s",
                                                    list[i]->error);
        }
        return text;
}

TEST(manifests_of_an_index_are_added_to_those_of_the_directory)
{
        FetchedWorld world;

        begin_world(&world);
        put_manifest(world.own_fd, "own.yaml", POD("a", ""));
        put_manifest(world.fetched_fd, "x.yaml", POD("b", ""));
        put_manifest(world.fetched_fd, "y.json",
                     "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                     "\"metadata\":{\"name\":\"m\"},\"data\":{}}");
        put_manifest(world.fetched_fd, "readme.txt", "no manifest");
        REQUIRE(manifest_directory_set_fetched(world.directory, POD_SOURCE_INDEX_PREFIX,
                                               world.fetched_fd, NULL) == 0);
        REQUIRE(manifest_directory_start(world.directory, NULL) == 0);
        EXPECT_STREQ(list_state(&world), "own.yaml: a-n; source/x.yaml: b-n; source/y.json:");
        EXPECT(manifest_directory_find_object(
                world.directory,
                &(ObjectKey){ OBJECT_SOURCE_INDEX, OBJECT_CONFIG_MAP, "default", "m" }));
        EXPECT(!manifest_directory_find_object(
                world.directory,
                &(ObjectKey){ OBJECT_SOURCE_FILE, OBJECT_CONFIG_MAP, "default", "m" }));
        EXPECT_EQ(unlinkat(world.fetched_fd, "x.yaml", 0), 0);
        fetch(&world, POD_SOURCE_INDEX_PREFIX);
        EXPECT_STREQ(list_state(&world), "own.yaml: a-n; source/y.json:");
        EXPECT_EQ(world.n_changes, 2);
        end_world(&world);
}

TEST(new_objects_are_visible_before_the_change_is_reported)
{
        FetchedWorld world;
        const Manifest *const *list;

        begin_world(&world);
        put_manifest(world.fetched_fd, "x.yaml", POD("b", ""));
        REQUIRE(manifest_directory_set_fetched(world.directory, POD_SOURCE_INDEX_PREFIX,
                                               world.fetched_fd, NULL) == 0);
        REQUIRE(manifest_directory_start(world.directory, NULL) == 0);
        put_manifest(world.fetched_fd, "x.yaml", POD("b", "  hostNetwork: true\n"));
        REQUIRE(manifest_directory_set_fetched(world.directory, POD_SOURCE_INDEX_PREFIX,
                                               world.fetched_fd, NULL) == 0);
        EXPECT_EQ(world.n_changes, 1);
        EXPECT_STREQ(list_state(&world), "source/x.yaml: b-n");
        REQUIRE(manifest_directory_list(world.directory, &list) == 1);
        EXPECT(list[0]->pods.items[0]->spec.host_network);
        end_world(&world);
}

TEST(sources_do_not_affect_each_other)
{
        FetchedWorld world;

        begin_world(&world);
        put_manifest(world.fetched_fd, "pods.yaml", POD("b", ""));
        REQUIRE(manifest_directory_start(world.directory, NULL) == 0);
        fetch(&world, POD_SOURCE_URL_NAME);
        fetch(&world, POD_SOURCE_INDEX_PREFIX);
        EXPECT_STREQ(list_state(&world),
                     "source/pods.yaml: !source/pods.yaml: pod default/b-n is already defined by "
                     "staticPodURL; staticPodURL: b-n");
        REQUIRE(manifest_directory_set_fetched(world.directory, POD_SOURCE_URL_NAME, -EBADF,
                                               NULL) == 0);
        fetch(&world, POD_SOURCE_INDEX_PREFIX);
        EXPECT_STREQ(list_state(&world), "source/pods.yaml: b-n");
        end_world(&world);
}

/* ConfigMap default/m and the default PriorityClass c from one source. */
#define OBJECTS(word)                                                            \
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {w: '" word \
        "'}\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"       \
        "metadata: {name: c}\nvalue: " word "\nglobalDefault: true\n"

static int64_t priority_of_default(const FetchedWorld *world, ObjectSource source,
                                   const char *name) {
        const ObjectKey key = { source, OBJECT_PRIORITY_CLASS, "", name };
        const DataObject *class = manifest_directory_find_object(world->directory, &key);

        return class ? class->priority.value.value : -1;
}

static const char *word_of_map(const FetchedWorld *world, ObjectSource source) {
        const ObjectKey key = { source, OBJECT_CONFIG_MAP, "default", "m" };
        const DataObject *map = manifest_directory_find_object(world->directory, &key);

        return map ? data_object_find(map, "w")->bytes : "none";
}

TEST(objects_with_one_name_are_separate_in_each_source)
{
        FetchedWorld world;

        begin_world(&world);
        put_manifest(world.own_fd, "own.yaml", OBJECTS("1"));
        put_manifest(world.fetched_fd, "x.yaml", OBJECTS("2"));
        REQUIRE(manifest_directory_start(world.directory, NULL) == 0);
        fetch(&world, POD_SOURCE_INDEX_PREFIX);
        put_manifest(world.fetched_fd, "x.yaml", OBJECTS("3"));
        fetch(&world, POD_SOURCE_URL_NAME);
        EXPECT_STREQ(list_state(&world), "own.yaml:; source/x.yaml:; staticPodURL:");
        EXPECT_STREQ(word_of_map(&world, OBJECT_SOURCE_FILE), "1");
        EXPECT_STREQ(word_of_map(&world, OBJECT_SOURCE_INDEX), "2");
        EXPECT_STREQ(word_of_map(&world, OBJECT_SOURCE_URL), "3");
        EXPECT_STREQ(word_of_map(&world, OBJECT_SOURCE_APISERVER), "none");
        EXPECT_STREQ(word_of_map(&world, OBJECT_SOURCE_NONE), "none");
        for (size_t i = 0; i < 2; i++) {
                const char *name = i == 0 ? "c" : NULL;

                EXPECT_EQ(priority_of_default(&world, OBJECT_SOURCE_FILE, name), 1);
                EXPECT_EQ(priority_of_default(&world, OBJECT_SOURCE_INDEX, name), 2);
                EXPECT_EQ(priority_of_default(&world, OBJECT_SOURCE_URL, name), 3);
                EXPECT_EQ(priority_of_default(&world, OBJECT_SOURCE_APISERVER, name), -1);
                EXPECT_EQ(priority_of_default(&world, OBJECT_SOURCE_NONE, name), -1);
        }
        EXPECT_EQ(unlinkat(world.own_fd, "own.yaml", 0), 0);
        end_world(&world);
}

TEST(a_file_of_the_directory_has_precedence)
{
        FetchedWorld world;

        begin_world(&world);
        put_manifest(world.fetched_fd, "pods.yaml", POD("a", ""));
        REQUIRE(manifest_directory_set_fetched(world.directory, POD_SOURCE_URL_NAME,
                                               world.fetched_fd, NULL) == 0);
        REQUIRE(manifest_directory_start(world.directory, NULL) == 0);
        EXPECT_STREQ(list_state(&world), "staticPodURL: a-n");
        put_manifest(world.own_fd, "zz.yaml", POD("a", ""));
        fetch(&world, POD_SOURCE_URL_NAME);
        EXPECT_STREQ(list_state(&world), "staticPodURL: !staticPodURL: pod default/a-n is already "
                                         "defined by zz.yaml; zz.yaml: a-n");
        end_world(&world);
}

TEST(unusable_manifests_are_found_before_they_are_used)
{
        static const struct {
                const char *text, *error;
        } cases[] = {
                { POD("a", ""), NULL },
                { POD("a", "  hostNetwork: perhaps\n"),
                  "source/x.yaml:5:16: spec.hostNetwork: must be true or false, not the string "
                  "'perhaps'" },
                { "", "source/x.yaml: holds no object" },
                { "apiVersion: v1\nkind: PodList\nitems: []\n", "source/x.yaml: holds no object" },
                { "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: c}\n"
                  "immutable: true\n",
                  "source/x.yaml: configmap default/m: is immutable; it can be removed, not "
                  "changed" },
        };
        FetchedWorld world;

        begin_world(&world);
        put_manifest(world.fetched_fd, "x.yaml",
                     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: b}\n"
                     "immutable: true\n");
        REQUIRE(manifest_directory_set_fetched(world.directory, POD_SOURCE_INDEX_PREFIX,
                                               world.fetched_fd, NULL) == 0);
        REQUIRE(manifest_directory_start(world.directory, NULL) == 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                int r;

                put_manifest(world.fetched_fd, "x.yaml", cases[i].text);
                r = manifest_directory_check_fetched(world.directory, POD_SOURCE_INDEX_PREFIX,
                                                     world.fetched_fd, &error);
                EXPECT_EQ(r < 0, cases[i].error != NULL);
                EXPECT_STREQ(strna(error.message), strna(cases[i].error));
        }
        EXPECT_STREQ(list_state(&world), "source/x.yaml:");
        end_world(&world);
}

TEST(restored_pods_stay_until_their_source_is_fetched)
{
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        FetchedWorld world;

        begin_world(&world);
        REQUIRE(manifest_parse(POD_SOURCE_URL_NAME, POD("a", ""), strlen(POD("a", "")), "n",
                               &objects, NULL) == 0);
        EXPECT_STREQ(
                string_map_get(&objects.pods.items[0]->metadata.annotations, pod_source_annotation),
                "http");
        REQUIRE(manifest_directory_restore_pod_take(world.directory, POD_SOURCE_URL_NAME,
                                                    objects.pods.items[0]) == 0);
        objects.pods.n = 0;
        REQUIRE(manifest_directory_start(world.directory, NULL) == 0);
        EXPECT_STREQ(list_state(&world), "staticPodURL: a-n");
        fetch(&world, POD_SOURCE_INDEX_PREFIX);
        EXPECT_STREQ(list_state(&world), "staticPodURL: a-n");
        fetch(&world, POD_SOURCE_URL_NAME); /* an empty directory: no pod is desired */
        EXPECT_STREQ(list_state(&world), "");
        end_world(&world);
}
