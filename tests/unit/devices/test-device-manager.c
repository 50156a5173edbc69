/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/devices/device-manager.h"
#include "agent/model/schema.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"
#include "tests/test.h"

#include <fcntl.h>
#include <unistd.h>

#define GPU "example.com/gpu"

/* A provider that answers immediately, or when the test requests it. */
typedef struct FakeProvider {
        bool answers_later;
        uint64_t call;
        unsigned n_allocated, n_prepared, n_asked;
        char *ids;       /* IDs in the last Allocate, with commas */
        char *available; /* IDs in the last GetPreferredAllocation */
        char *included;
        size_t size;
        const char *preferred; /* one ID; NULL: none */
        const char *error;
} FakeProvider;

typedef struct World {
        DeviceManager *manager;
        FakeProvider provider;
        unsigned n_capacity, n_pods;
        char *changed_pod;
} World;

static char *join(char *const *strv) {
        char *text = strdup("");

        for (size_t i = 0; strv && strv[i]; i++) {
                char *longer = NULL;

                REQUIRE(text && asprintf(&longer, "%s%s%s", text, i > 0 ? "," : "", strv[i]) >= 0);
                free(text);
                text = longer;
        }
        return text;
}

static int fake_prefer(void *provider, uint64_t call, const char *resource, char *const *available,
                       char *const *must_include, size_t n, char ***ret_ids, Error *reterr) {
        FakeProvider *fake = provider;

        fake->n_asked++;
        free(fake->available);
        free(fake->included);
        fake->available = join(available);
        fake->included = join(must_include);
        fake->size = n;
        fake->call = call;
        if (fake->answers_later)
                return -EINPROGRESS;
        if (fake->preferred)
                REQUIRE(strv_append(ret_ids, fake->preferred) == 0);
        return 0;
}

static int fake_allocate(void *provider, uint64_t call, const char *resource, char *const *ids,
                         DeviceEdits *ret, Error *reterr) {
        FakeProvider *fake = provider;

        fake->n_allocated++;
        free(fake->ids);
        fake->ids = join(ids);
        fake->call = call;
        if (fake->answers_later)
                return -EINPROGRESS;
        if (fake->error)
                return error_setf(reterr, EREMOTEIO, "%s", fake->error);
        REQUIRE(string_map_set(&ret->env, "GPU", fake->ids) == 0);
        return 0;
}

static int fake_prepare_start(void *provider, uint64_t call, const char *resource, char *const *ids,
                              Error *reterr) {
        FakeProvider *fake = provider;

        fake->n_prepared++;
        fake->call = call;
        return fake->answers_later ? -EINPROGRESS : 0;
}

static const DeviceProviderOps fake_ops = { fake_prefer, fake_allocate, fake_prepare_start };

static void on_capacity(void *userdata) {
        ((World *) userdata)->n_capacity++;
}

static void on_pod(const char *uid, void *userdata) {
        World *world = userdata;

        world->n_pods++;
        free(world->changed_pod);
        world->changed_pod = strdup(strna(uid));
}

static void world_start_in_boot(World *world, const char *state_dir, const char *boot_id) {
        const DeviceManagerConfig config = { state_dir, boot_id, on_capacity, on_pod, world };

        REQUIRE(device_manager_new(&config, &world->manager) == 0);
}

static void world_start_in(World *world, const char *state_dir) {
        world_start_in_boot(world, state_dir, "boot");
}

static void fake_provider_done(FakeProvider *fake) {
        free(fake->ids);
        free(fake->available);
        free(fake->included);
        *fake = (FakeProvider){ 0 };
}

static void world_done(World *world) {
        device_manager_free(world->manager);
        fake_provider_done(&world->provider);
        free(world->changed_pod);
}

/* "a b !c": c is unhealthy. */
static void list_devices(World *world, FakeProvider *provider, const char *text) {
        DeviceList list = { 0 };
        char *copy = strdup(text), *rest = copy, *word;

        while ((word = strsep(&rest, " ")))
                if (word[0]) {
                        Device *device = ARRAY_APPEND(list.items, list.n);

                        REQUIRE(device);
                        device->is_healthy = word[0] != '!';
                        device->id = strdup(word + (word[0] == '!'));
                }
        free(copy);
        EXPECT_EQ(device_manager_set_devices_take(world->manager, GPU, provider, &list), 0);
        EXPECT_EQ(list.n, 0);
}

static void register_provider(World *world, FakeProvider *fake, bool prefers, bool prepares) {
        const DeviceProvider provider = { .ops = &fake_ops,
                                          .userdata = fake,
                                          .has_preferences = prefers,
                                          .prepares_start = prepares };

        EXPECT_EQ(device_manager_register(world->manager, GPU, &provider), 0);
}

static void start_with(World *world, const char *devices) {
        world_start_in(world, NULL);
        register_provider(world, &world->provider, false, false);
        list_devices(world, &world->provider, devices);
}

static void set_limit(Container *container, const char *name, int64_t n) {
        ExtendedResource *limit = ARRAY_APPEND(container->resources.limits.extended.items,
                                               container->resources.limits.extended.n);

        REQUIRE(limit);
        limit->name = strdup(name);
        limit->amount.value = n;
}

/* A pod with one container "c" that requests this number of devices. */
static Pod *make_pod(const char *uid, int64_t n) {
        Pod *pod = calloc(1, sizeof(*pod));
        Container *container;

        REQUIRE(pod);
        pod->metadata.uid = strdup(uid);
        container = ARRAY_APPEND(pod->spec.containers.items, pod->spec.containers.n);
        REQUIRE(container);
        container->name = strdup("c");
        set_limit(container, GPU, n);
        return pod;
}

static int admit(World *world, const Pod *pod, const char *expected_message) {
        cleanup_error Error error = ERROR_NULL;
        int r = device_manager_admit(world->manager, pod, false, &error);

        if (expected_message || error.message)
                EXPECT_STREQ(error.message, expected_message);
        return r;
}

static void expect_capacity(const World *world, int64_t capacity, int64_t allocatable) {
        NodeDevicesList list = { 0 };

        EXPECT_EQ(device_manager_list_resources(world->manager, &list), 0);
        REQUIRE(list.n == 1);
        EXPECT_STREQ(list.items[0].name, GPU);
        EXPECT_EQ(list.items[0].capacity, capacity);
        EXPECT_EQ(list.items[0].allocatable, allocatable);
        node_devices_list_done(&list);
}

static void note_ids(const char *resource, char *const *ids, void *userdata) {
        *(char **) userdata = join(ids);
}

static void expect_devices(const World *world, const char *uid, const char *container,
                           const char *ids) {
        cleanup_free char *got = NULL;

        device_manager_foreach_of(world->manager, uid, container, note_ids, &got);
        EXPECT_STREQ(got, ids);
}

TEST(capacity_counts_all_devices_and_allocatable_the_healthy_ones)
{
        World world = { 0 };

        start_with(&world, "a b !c d");
        expect_capacity(&world, 4, 3);
        list_devices(&world, &world.provider, "a b c d");
        expect_capacity(&world, 4, 4);
        world.n_capacity = 0;
        list_devices(&world, &world.provider, "a b c d");
        EXPECT_EQ(world.n_capacity, 0);
        world_done(&world);
}

TEST(devices_with_the_same_id_count_once)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 3);

        start_with(&world, "b a !b !a c b");
        expect_capacity(&world, 3, 2);
        EXPECT_EQ(admit(&world, pod,
                        "requested number of devices unavailable for example.com/gpu. Requested: "
                        "3, Available: 2"),
                  -ENOSPC);
        list_devices(&world, &world.provider, "a a a");
        expect_capacity(&world, 1, 1);
        pod_free(pod);
        world_done(&world);
}

TEST(provider_that_is_gone_keeps_its_capacity_for_five_minutes)
{
        World world = { 0 };

        start_with(&world, "a b");
        device_manager_unregister(world.manager, GPU, &world.provider, 1000);
        expect_capacity(&world, 2, 0);
        EXPECT_EQ(device_manager_expire(world.manager, 1001), 1000 + 300 * USEC_PER_SEC);
        expect_capacity(&world, 2, 0);
        EXPECT(device_manager_expire(world.manager, 1000 + 300 * USEC_PER_SEC) == USEC_INFINITY);
        expect_capacity(&world, 0, 0);
        world_done(&world);
}

TEST(second_provider_takes_over_and_the_end_of_the_first_changes_nothing)
{
        World world = { 0 };
        FakeProvider second = { 0 };

        start_with(&world, "a b");
        register_provider(&world, &second, false, false);
        list_devices(&world, &second, "x");
        expect_capacity(&world, 1, 1);
        list_devices(&world, &world.provider, "a b c");
        device_manager_unregister(world.manager, GPU, &world.provider, 1);
        expect_capacity(&world, 1, 1);
        fake_provider_done(&second);
        world_done(&world);
}

TEST(pod_gets_its_devices_once_and_no_other_pod_does)
{
        World world = { 0 };
        Pod *first = make_pod("one", 1), *second = make_pod("two", 1),
            *third = make_pod("three", 1);

        start_with(&world, "a b");
        EXPECT_EQ(admit(&world, first, NULL), 0);
        EXPECT_EQ(admit(&world, first, NULL), 0);
        EXPECT_EQ(world.provider.n_allocated, 1);
        EXPECT_EQ(admit(&world, second, NULL), 0);
        expect_devices(&world, "one", "c", "a");
        expect_devices(&world, "two", "c", "b");
        EXPECT_EQ(admit(&world, third,
                        "requested number of devices unavailable for example.com/gpu. Requested: "
                        "1, Available: 0"),
                  -ENOSPC);
        device_manager_release(world.manager, "one");
        EXPECT_STREQ(world.changed_pod, "");
        EXPECT_EQ(admit(&world, third, NULL), 0);
        expect_devices(&world, "three", "c", "a");
        pod_free(first);
        pod_free(second);
        pod_free(third);
        world_done(&world);
}

TEST(admission_fails_with_the_reasons_of_the_kubelet)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 3);

        start_with(&world, "a b");
        EXPECT_EQ(admit(&world, pod,
                        "requested number of devices unavailable for example.com/gpu. Requested: "
                        "3, Available: 2"),
                  -ENOSPC);
        EXPECT_EQ(world.provider.n_allocated, 0);
        list_devices(&world, &world.provider, "!a !b !c");
        EXPECT_EQ(admit(&world, pod,
                        "no healthy devices present; cannot allocate unhealthy devices "
                        "example.com/gpu"),
                  -ENXIO);
        device_manager_unregister(world.manager, GPU, &world.provider, 1);
        (void) device_manager_expire(world.manager, 1000 * USEC_PER_SEC);
        EXPECT_EQ(admit(&world, pod, "cannot allocate unregistered device example.com/gpu"),
                  -ENXIO);
        pod_free(pod);
        world_done(&world);
}

TEST(unknown_resource_is_an_error_only_if_it_must_exist)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 1);
        cleanup_error Error error = ERROR_NULL;

        world_start_in(&world, NULL);
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        EXPECT_EQ(device_manager_admit(world.manager, pod, true, &error), -ENODEV);
        EXPECT_STREQ(error.message,
                     "no device plugin has registered for the resource example.com/gpu");
        pod_free(pod);
        world_done(&world);
}

TEST(failed_allocation_rejects_the_pod_and_frees_its_devices)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 1);

        start_with(&world, "a");
        world.provider.error = "rpc error: code = Unknown desc = no";
        EXPECT_EQ(admit(&world, pod, "rpc error: code = Unknown desc = no"), -EREMOTEIO);
        world.provider.error = NULL;
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        pod_free(pod);
        world_done(&world);
}

TEST(late_response_admits_the_pod_and_reserves_the_device_meanwhile)
{
        World world = { 0 };
        Pod *first = make_pod("one", 1), *second = make_pod("two", 1);
        DeviceAnswer answer = { 0 };

        start_with(&world, "a");
        world.provider.answers_later = true;
        EXPECT_EQ(admit(&world, first, NULL), -EINPROGRESS);
        EXPECT_EQ(admit(&world, first, NULL), -EINPROGRESS);
        EXPECT_EQ(world.provider.n_allocated, 1);
        EXPECT_EQ(admit(&world, second,
                        "requested number of devices unavailable for example.com/gpu. Requested: "
                        "1, Available: 0"),
                  -ENOSPC);
        device_manager_answer_take(world.manager, world.provider.call, &answer);
        EXPECT_STREQ(world.changed_pod, "one");
        EXPECT_EQ(admit(&world, first, NULL), 0);
        /* No pod waits for this answer any more. */
        device_manager_answer_take(world.manager, world.provider.call, &answer);
        device_manager_answer_take(world.manager, 1000, &answer);
        pod_free(first);
        pod_free(second);
        world_done(&world);
}

TEST(provider_that_ends_fails_the_allocation_that_waits_for_it)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 1);

        start_with(&world, "a");
        world.provider.answers_later = true;
        EXPECT_EQ(admit(&world, pod, NULL), -EINPROGRESS);
        device_manager_unregister(world.manager, GPU, &world.provider, 1);
        EXPECT_STREQ(world.changed_pod, "one");
        EXPECT_EQ(admit(&world, pod, "the device plugin has ended its connection"), -EREMOTEIO);
        pod_free(pod);
        world_done(&world);
}

TEST(preferred_devices_are_taken_and_foreign_ones_are_not)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 2);

        world_start_in(&world, NULL);
        register_provider(&world, &world.provider, true, false);
        list_devices(&world, &world.provider, "a b !c d");
        world.provider.preferred = "d";
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        EXPECT_STREQ(world.provider.available, "a,b,d");
        EXPECT_STREQ(world.provider.included, "");
        EXPECT_EQ(world.provider.size, 2);
        expect_devices(&world, "one", "c", "d,a");
        device_manager_release(world.manager, "one");
        world.provider.preferred = "elsewhere";
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        expect_devices(&world, "one", "c", "a,b");
        pod_free(pod);
        world_done(&world);
}

TEST(late_preference_is_followed_by_the_allocation)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 1);
        DeviceAnswer answer = { 0 };

        world_start_in(&world, NULL);
        register_provider(&world, &world.provider, true, false);
        list_devices(&world, &world.provider, "a b");
        world.provider.answers_later = true;
        EXPECT_EQ(admit(&world, pod, NULL), -EINPROGRESS);
        EXPECT_EQ(world.provider.n_allocated, 0);
        REQUIRE(strv_append(&answer.ids, "b") == 0);
        device_manager_answer_take(world.manager, world.provider.call, &answer);
        EXPECT_EQ(admit(&world, pod, NULL), -EINPROGRESS);
        EXPECT_EQ(world.provider.n_asked, 1);
        EXPECT_EQ(world.provider.n_allocated, 1);
        EXPECT_STREQ(world.provider.ids, "b");
        device_manager_answer_take(world.manager, world.provider.call, &answer);
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        pod_free(pod);
        world_done(&world);
}

static Container *add_init(Pod *pod, const char *name, bool is_sidecar) {
        Container *container =
                ARRAY_APPEND(pod->spec.init_containers.items, pod->spec.init_containers.n);

        REQUIRE(container);
        container->name = strdup(name);
        if (is_sidecar)
                container->restart_policy = RESTART_POLICY_ALWAYS;
        set_limit(container, GPU, 1);
        return container;
}

TEST(sidecar_takes_the_device_of_an_init_container_and_keeps_it)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 1);

        add_init(pod, "init", false);
        add_init(pod, "sidecar", true);
        start_with(&world, "a b");
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        expect_devices(&world, "one", "init", "a");
        expect_devices(&world, "one", "sidecar", "a");
        expect_devices(&world, "one", "c", "b");
        pod_free(pod);
        world_done(&world);
}

TEST(containers_reuse_the_devices_of_init_containers_but_not_of_one_another)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 1);
        Container *second;

        add_init(pod, "init", false);
        second = ARRAY_APPEND(pod->spec.containers.items, pod->spec.containers.n);
        REQUIRE(second);
        second->name = strdup("d");
        set_limit(second, GPU, 1);
        start_with(&world, "a b");
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        expect_devices(&world, "one", "init", "a");
        expect_devices(&world, "one", "c", "a");
        expect_devices(&world, "one", "d", "b");
        pod_free(pod);
        world_done(&world);
}

TEST(each_start_is_prepared_if_the_provider_requires_it)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 2);
        cleanup_error Error error = ERROR_NULL;
        DeviceAnswer answer = { .error = "busy" };

        world_start_in(&world, NULL);
        register_provider(&world, &world.provider, false, true);
        list_devices(&world, &world.provider, "a b");
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        EXPECT_EQ(device_manager_prepare_start(world.manager, "one", "c", &error), 0);
        EXPECT_EQ(device_manager_prepare_start(world.manager, "one", "c", &error), 0);
        EXPECT_EQ(world.provider.n_prepared, 2);
        EXPECT_EQ(device_manager_prepare_start(world.manager, "one", "other", &error), 0);
        world.provider.answers_later = true;
        EXPECT_EQ(device_manager_prepare_start(world.manager, "one", "c", &error), -EINPROGRESS);
        EXPECT_EQ(device_manager_prepare_start(world.manager, "one", "c", &error), -EINPROGRESS);
        EXPECT_EQ(world.provider.n_prepared, 3);
        device_manager_answer_take(world.manager, world.provider.call, &answer);
        EXPECT_STREQ(world.changed_pod, "one");
        EXPECT_EQ(device_manager_prepare_start(world.manager, "one", "c", &error), -EREMOTEIO);
        EXPECT_STREQ(error.message, "device plugin PreStartContainer rpc failed with err: busy");
        EXPECT_EQ(device_manager_prepare_start(world.manager, "one", "c", &error), -EINPROGRESS);
        answer = (DeviceAnswer){ 0 };
        device_manager_answer_take(world.manager, world.provider.call, &answer);
        EXPECT_EQ(device_manager_prepare_start(world.manager, "one", "c", &error), 0);
        pod_free(pod);
        world_done(&world);
}

TEST(start_without_the_provider_fails_with_the_reason_of_the_kubelet)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 1);
        cleanup_error Error error = ERROR_NULL, later = ERROR_NULL;

        world_start_in(&world, NULL);
        register_provider(&world, &world.provider, false, true);
        list_devices(&world, &world.provider, "a");
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        device_manager_unregister(world.manager, GPU, &world.provider, 1);
        EXPECT_EQ(device_manager_prepare_start(world.manager, "one", "c", &error), -ENODEV);
        EXPECT_STREQ(error.message, "endpoint example.com/gpu has been stopped");
        (void) device_manager_expire(world.manager, 1000 * USEC_PER_SEC);
        EXPECT_EQ(device_manager_prepare_start(world.manager, "one", "c", &later), -ENODEV);
        EXPECT_STREQ(later.message,
                     "endpoint not found in cache for a registered resource: example.com/gpu");
        pod_free(pod);
        world_done(&world);
}

TEST(status_names_each_device_and_those_that_are_unhealthy)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 3);
        ResourceStatusList list = { 0 };

        start_with(&world, "a b c");
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        world.n_pods = 0;
        list_devices(&world, &world.provider, "a !b");
        EXPECT(world.n_pods > 0);
        EXPECT_EQ(device_manager_container_status(world.manager, "one", "c", &list), 0);
        REQUIRE(list.n == 1 && list.items[0].resources.n == 3);
        EXPECT_STREQ(list.items[0].name, GPU);
        EXPECT(!list.items[0].resources.items[0].is_unhealthy);
        EXPECT(list.items[0].resources.items[1].is_unhealthy);
        EXPECT(!list.items[0].resources.items[2].is_unhealthy);
        resource_status_list_done(&list);
        device_manager_unregister(world.manager, GPU, &world.provider, 1);
        EXPECT_EQ(device_manager_container_status(world.manager, "one", "c", &list), 0);
        REQUIRE(list.n == 1 && list.items[0].resources.n == 3);
        EXPECT(!list.items[0].resources.items[1].is_unhealthy);
        resource_status_list_done(&list);
        pod_free(pod);
        world_done(&world);
}

/* ---- the checkpoint ---- */

static void add_everything(DeviceEdits *edits) {
        DeviceMount *mount = ARRAY_APPEND(edits->mounts.items, edits->mounts.n);
        DeviceFile *file = ARRAY_APPEND(edits->files.items, edits->files.n);

        REQUIRE(mount && file && string_map_set(&edits->env, "A", "b=c") == 0 &&
                string_map_set(&edits->annotations, "example.com/x", "1") == 0 &&
                strv_append(&edits->cdi_devices, "example.com/gpu=0") == 0);
        *mount = (DeviceMount){ strdup("/c"), strdup("/h"), true };
        *file = (DeviceFile){ strdup("/dev/c"), strdup("/dev/h"), strdup("rw") };
}

TEST(allocations_survive_a_restart_of_the_agent)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 2);
        DeviceAnswer answer = { 0 };
        DeviceEdits edits = { 0 };
        const char *dir = test_directory();

        world_start_in(&world, dir);
        register_provider(&world, &world.provider, false, false);
        list_devices(&world, &world.provider, "a b c");
        world.provider.answers_later = true;
        EXPECT_EQ(admit(&world, pod, NULL), -EINPROGRESS);
        add_everything(&answer.edits);
        device_manager_answer_take(world.manager, world.provider.call, &answer);
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        device_manager_free(world.manager);

        world_start_in(&world, dir);
        expect_capacity(&world, 0, 0);
        expect_devices(&world, "one", "c", "a,b");
        EXPECT_EQ(device_manager_collect_edits(world.manager, "one", "c", &edits), 0);
        EXPECT_STREQ(string_map_get(&edits.env, "A"), "b=c");
        EXPECT_STREQ(string_map_get(&edits.annotations, "example.com/x"), "1");
        REQUIRE(edits.mounts.n == 1 && edits.files.n == 1 && edits.cdi_devices);
        EXPECT_STREQ(edits.mounts.items[0].host_path, "/h");
        EXPECT(edits.mounts.items[0].is_read_only);
        EXPECT_STREQ(edits.files.items[0].permissions, "rw");
        EXPECT_STREQ(edits.cdi_devices[0], "example.com/gpu=0");
        device_edits_done(&edits);
        /* Once the provider has registered again, the pod is admitted with the devices that it
         * already has. */
        register_provider(&world, &world.provider, false, false);
        list_devices(&world, &world.provider, "c b a");
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        EXPECT_EQ(world.provider.n_allocated, 1);
        pod_free(pod);
        world_done(&world);
}

TEST(devices_are_checked_again_after_a_reboot_but_not_within_a_boot)
{
        World world = { 0 };
        Pod *pod = make_pod("one", 2);
        const char *dir = test_directory();

        world_start_in_boot(&world, dir, "first");
        register_provider(&world, &world.provider, false, false);
        list_devices(&world, &world.provider, "a b");
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        list_devices(&world, &world.provider, "a !b");
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        device_manager_free(world.manager);
        world_start_in_boot(&world, dir, "first");
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        device_manager_free(world.manager);
        world_start_in_boot(&world, dir, "second");
        register_provider(&world, &world.provider, false, false);
        list_devices(&world, &world.provider, "a b");
        EXPECT_EQ(admit(&world, pod, NULL), 0);
        expect_devices(&world, "one", "c", "a,b");
        device_manager_free(world.manager);
        world_start_in_boot(&world, dir, "third");
        register_provider(&world, &world.provider, false, false);
        list_devices(&world, &world.provider, "a !b");
        EXPECT_EQ(admit(&world, pod,
                        "previously allocated devices are no longer healthy; cannot allocate "
                        "unhealthy devices example.com/gpu"),
                  -ENXIO);
        EXPECT_EQ(world.provider.n_allocated, 1);
        pod_free(pod);
        world_done(&world);
}

static bool is_two(const char *uid, void *userdata) {
        return streq(uid, "two");
}

TEST(devices_of_pods_removed_while_the_agent_was_down_are_released)
{
        World world = { 0 };
        Pod *first = make_pod("one", 1), *second = make_pod("two", 1);
        const char *dir = test_directory();

        world_start_in(&world, dir);
        register_provider(&world, &world.provider, false, false);
        list_devices(&world, &world.provider, "a b");
        EXPECT_EQ(admit(&world, first, NULL), 0);
        EXPECT_EQ(admit(&world, second, NULL), 0);
        device_manager_free(world.manager);
        world_start_in(&world, dir);
        device_manager_sweep(world.manager, is_two, NULL);
        expect_devices(&world, "one", "c", NULL);
        expect_devices(&world, "two", "c", "b");
        pod_free(first);
        pod_free(second);
        world_done(&world);
}

TEST(damaged_checkpoint_is_set_aside_and_the_start_continues)
{
        World world = { 0 };
        cleanup_free char *path = NULL, *aside = NULL;
        const char *dir = test_directory();
        int fd;

        REQUIRE(asprintf(&path, "%s/devices", dir) >= 0);
        REQUIRE(asprintf(&aside, "%s/devices.damaged", dir) >= 0);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        REQUIRE(fd >= 0 && write(fd, "nonsense", 8) == 8);
        close(fd);
        world_start_in(&world, dir);
        EXPECT_EQ(access(aside, F_OK), 0);
        EXPECT(access(path, F_OK) < 0);
        world_done(&world);
}

TEST(equal_edits_of_several_resources_are_applied_once)
{
        DeviceEdits edits = { 0 }, more = { 0 };

        add_everything(&edits);
        add_everything(&more);
        REQUIRE(string_map_set(&more.env, "A", "other") == 0);
        REQUIRE(string_map_set(&more.env, "B", "new") == 0);
        EXPECT_EQ(device_edits_merge(&edits, &more), 0);
        EXPECT_STREQ(string_map_get(&edits.env, "A"), "b=c");
        EXPECT_STREQ(string_map_get(&edits.env, "B"), "new");
        EXPECT_EQ(edits.mounts.n, 1);
        EXPECT_EQ(edits.files.n, 1);
        EXPECT_EQ(strv_length(edits.cdi_devices), 1);
        device_edits_done(&edits);
        device_edits_done(&more);
}
