/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/resolvers.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <fcntl.h>
#include <unistd.h>

/* An API server that has one object of each kind, and an empty manifest directory. Objects from
 * files are tested in test-fetched-manifests.c. */
typedef struct Server {
        DataObject objects[N_OBJECT_KINDS];
        unsigned n_tokens;
} Server;

static const DataObject *find_of_server(const ObjectKey *key, void *userdata) {
        Server *server = userdata;

        return key->source == OBJECT_SOURCE_APISERVER && key->name ? &server->objects[key->kind]
                                                                   : NULL;
}

static bool is_awaited_of_server(const ObjectKey *key, void *userdata) {
        return key->source == OBJECT_SOURCE_APISERVER;
}

static int find_token(const Pod *pod, const TokenProjection *projection, IssuedToken *ret,
                      Error *reterr, void *userdata) {
        Server *server = userdata;

        server->n_tokens++;
        ret->text = "token";
        return 0;
}

static void on_changed(void *userdata) {
}

typedef struct World {
        Server server;
        ManifestDirectory *manifests;
        sd_event *event;
        Resolvers resolvers;
        BundleConfig bundle;
} World;

static void begin_world(World *world, const SharedObjects *shared) {
        *world = (World){ 0 };
        REQUIRE(sd_event_new(&world->event) >= 0);
        REQUIRE(manifest_directory_new(world->event, "/nonexistent", "n", on_changed, NULL,
                                       &world->manifests) == 0);
        world->resolvers = (Resolvers){
                .shared = shared,
                .manifests = world->manifests,
                .apiserver_objects = { .find = find_of_server,
                                       .is_awaited = is_awaited_of_server,
                                       .userdata = &world->server },
                .apiserver_tokens = { find_token, &world->server },
        };
        set_bundle_resolvers(&world->resolvers, &world->bundle);
}

static void end_world(World *world) {
        manifest_directory_free(world->manifests);
        sd_event_unref(world->event);
}

static int look_up(const World *world, ObjectSource source, ObjectKind kind, const char *name) {
        const Pod pod = { .metadata = { .namespace = (char[]){ "default" }, .source = source } };
        const DataObject *object;

        return object_lookup(&world->bundle.objects, &pod.metadata, kind, name, &object, NULL);
}

TEST(only_api_server_pods_see_api_server_objects_or_wait_for_them)
{
        World world;

        begin_world(&world, NULL);
        for (ObjectKind kind = 0; kind < N_OBJECT_KINDS; kind++)
                for (ObjectSource source = 0; source < N_OBJECT_SOURCES; source++)
                        EXPECT_EQ(look_up(&world, source, kind, "a"),
                                  source == OBJECT_SOURCE_APISERVER ? 0 : -ENOENT);
        end_world(&world);
}

TEST(a_shared_object_is_seen_by_pods_of_one_source)
{
        SharedObject one = { .kind = OBJECT_SECRET,
                             .namespace = (char[]){ "default" },
                             .name = (char[]){ "a" },
                             .from = OBJECT_SOURCE_APISERVER,
                             .to = OBJECT_SOURCE_FILE };
        const SharedObjects shared = { &one, 1 };
        World world;

        begin_world(&world, &shared);
        EXPECT_EQ(look_up(&world, OBJECT_SOURCE_FILE, OBJECT_SECRET, "a"), 0);
        EXPECT_EQ(look_up(&world, OBJECT_SOURCE_FILE, OBJECT_SECRET, "b"), -ENOENT);
        EXPECT_EQ(look_up(&world, OBJECT_SOURCE_FILE, OBJECT_CONFIG_MAP, "a"), -ENOENT);
        EXPECT_EQ(look_up(&world, OBJECT_SOURCE_INDEX, OBJECT_SECRET, "a"), -ENOENT);
        EXPECT_EQ(look_up(&world, OBJECT_SOURCE_URL, OBJECT_SECRET, "a"), -ENOENT);
        one.namespace[0] = 'D';
        EXPECT_EQ(look_up(&world, OBJECT_SOURCE_FILE, OBJECT_SECRET, "a"), -ENOENT);
        /* In the opposite direction, the shared object replaces the server's. */
        one = (SharedObject){ .kind = OBJECT_RUNTIME_CLASS,
                              .name = one.name,
                              .from = OBJECT_SOURCE_INDEX,
                              .to = OBJECT_SOURCE_APISERVER };
        EXPECT_EQ(look_up(&world, OBJECT_SOURCE_APISERVER, OBJECT_RUNTIME_CLASS, "a"), -ENOENT);
        EXPECT_EQ(look_up(&world, OBJECT_SOURCE_APISERVER, OBJECT_RUNTIME_CLASS, "b"), 0);
        end_world(&world);
}

TEST(only_api_server_pods_get_tokens)
{
        World world;

        begin_world(&world, NULL);
        for (ObjectSource source = 0; source < N_OBJECT_SOURCES; source++) {
                const Pod pod = { .metadata = { .source = source } };
                const TokenLookup *tokens = &world.bundle.tokens;
                IssuedToken token = { 0 };

                EXPECT_EQ(
                        tokens->find(&pod, &(TokenProjection){ 0 }, &token, NULL, tokens->userdata),
                        source == OBJECT_SOURCE_APISERVER ? 0 : -EACCES);
        }
        EXPECT_EQ(world.server.n_tokens, 1);
        end_world(&world);
}
