/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/pod-evictor.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/strv.h"
#include "tests/test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Three pods without cgroups: their usage is unknown, so that their priority decides. */
typedef struct EvictorWorld {
        const char *refuses; /* the UID of a pod that cannot fail */
        const char *failed;  /* the pod that was failed last */
        char message[256];
        int64_t grace_seconds;
        bool is_stopping;
        bool is_empty;
        bool has_storage; /* a path for each pod */
        sd_event *event;
        const char *shim_path;
} EvictorWorld;

static const struct {
        const char *uid;
        int64_t priority;
} world_pods[] = { { "high", 100 }, { "low", -5 }, { "middle", 0 } };

static int list_world_pods(EvictionCandidate **ret, size_t *ret_n, void *userdata) {
        const EvictorWorld *world = userdata;
        EvictionCandidate *candidates = calloc(N_ELEMENTS(world_pods), sizeof(*candidates));

        if (!candidates)
                return -ENOMEM;
        for (size_t i = 0; i < N_ELEMENTS(world_pods); i++) {
                candidates[i] = (EvictionCandidate){
                        .uid = strdup(world_pods[i].uid),
                        .priority = world_pods[i].priority,
                        .cgroup = strdup("/mainstay-test-does-not-exist"),
                };
                if (world->has_storage)
                        (void) strv_append(&candidates[i].storage_paths, world_pods[i].uid);
        }
        *ret = candidates;
        *ret_n = N_ELEMENTS(world_pods);
        if (world->is_empty)
                while (*ret_n > 0)
                        eviction_candidate_done(&candidates[--*ret_n]);
        return 0;
}

static bool fail_world_pod(const char *uid, NodeCondition condition, const char *message,
                           int64_t max_grace_seconds, uint64_t *ret_grace_usec, void *userdata) {
        EvictorWorld *world = userdata;

        if (world->refuses && streq(uid, world->refuses))
                return false;
        for (size_t i = 0; i < N_ELEMENTS(world_pods); i++)
                if (streq(uid, world_pods[i].uid))
                        world->failed = world_pods[i].uid;
        (void) snprintf(world->message, sizeof(world->message), "%s: %s",
                        node_conditions[condition].name, message);
        world->grace_seconds = max_grace_seconds;
        world->is_stopping = true;
        *ret_grace_usec = 0;
        return true;
}

static bool is_world_pod_stopping(const char *uid, void *userdata) {
        const EvictorWorld *world = userdata;

        return world->is_stopping && streq_ptr(uid, world->failed);
}

static PodEvictor *new_world_evictor(EvictorWorld *world) {
        static const PodEvictorCallbacks callbacks = {
                .list_candidates = list_world_pods,
                .fail_pod = fail_world_pod,
                .is_stopping = is_world_pod_stopping,
        };
        PodEvictor *evictor = NULL;

        (void) pod_evictor_new(&(PodEvictorConfig){ .event = world->event,
                                                    .shim_path = world->shim_path,
                                                    .callbacks = &callbacks,
                                                    .userdata = world },
                               &evictor);
        return evictor;
}

static const ResourceShortage pids_shortage = {
        .signal = EVICTION_PIDS, .quantity = 2000, .available = 1234, .grace_seconds = 1
};

TEST(the_pod_of_lowest_priority_is_evicted_with_the_kubelets_message)
{
        EvictorWorld world = { 0 };
        cleanup_with(pod_evictor_freep) PodEvictor *evictor = new_world_evictor(&world);

        EXPECT(!pod_evictor_is_busy(evictor, true));
        EXPECT(pod_evictor_evict(evictor, &pids_shortage));
        EXPECT_STREQ(world.failed, "low");
        EXPECT_STREQ(world.message, "PIDPressure: The node was low on resource: pids. Threshold "
                                    "quantity: 2k, available: 1234.");
        EXPECT_EQ(world.grace_seconds, 1);
        EXPECT_EQ(pod_evictor_counts(evictor)[EVICTION_PIDS], 1);
}

TEST(the_next_pod_is_evicted_when_the_last_one_has_stopped)
{
        EvictorWorld world = { 0 };
        cleanup_with(pod_evictor_freep) PodEvictor *evictor = new_world_evictor(&world);

        EXPECT(pod_evictor_evict(evictor, &pids_shortage) && pod_evictor_is_busy(evictor, true));
        EXPECT(pod_evictor_evict(evictor, &pids_shortage));
        EXPECT_EQ(pod_evictor_counts(evictor)[EVICTION_PIDS], 1);
        world.is_stopping = false;
        EXPECT(!pod_evictor_is_busy(evictor, true));
        EXPECT(pod_evictor_evict(evictor, &pids_shortage));
        EXPECT_EQ(pod_evictor_counts(evictor)[EVICTION_PIDS], 2);
}

TEST(a_pod_that_cannot_fail_is_skipped)
{
        EvictorWorld world = { .refuses = "low" };
        cleanup_with(pod_evictor_freep) PodEvictor *evictor = new_world_evictor(&world);

        EXPECT(pod_evictor_evict(evictor, &pids_shortage));
        EXPECT_STREQ(world.failed, "middle");
}

TEST(without_candidates_no_pod_is_evicted)
{
        EvictorWorld world = { .is_empty = true };
        cleanup_with(pod_evictor_freep) PodEvictor *evictor = new_world_evictor(&world);
        const ResourceShortage disk = { .signal = EVICTION_NODE_FS, .quantity = 10 };

        EXPECT(!pod_evictor_evict(evictor, &pids_shortage));
        EXPECT(!pod_evictor_evict(evictor, &disk));
        EXPECT(!world.failed && !pod_evictor_is_busy(evictor, true));
}

/* Writes a program in place of the shim that measures 4 MiB in each path. */
static char *make_measuring_shim(void) {
        char *path = path_join(test_directory(), "shim");
        FILE *file = path ? fopen(path, "we") : NULL;

        REQUIRE(file != NULL);
        (void) fprintf(file, "#!/bin/sh\nshift 2\nfor path; do echo 4194304; done\n");
        REQUIRE(fclose(file) == 0 && chmod(path, 0755) == 0);
        return path;
}

static PodEvictor *new_measuring_evictor(EvictorWorld *world, const char *shim) {
        sigset_t mask;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        REQUIRE(sigprocmask(SIG_BLOCK, &mask, NULL) >= 0);
        REQUIRE(sd_event_new(&world->event) >= 0);
        world->has_storage = true;
        world->shim_path = shim;
        return new_world_evictor(world);
}

static void run_until_idle(EvictorWorld *world, const PodEvictor *evictor) {
        uint64_t deadline = now_boottime_usec() + 60 * USEC_PER_SEC;

        while (pod_evictor_is_busy(evictor, true) && now_boottime_usec() < deadline)
                REQUIRE(sd_event_run(world->event, USEC_PER_SEC) >= 0);
        EXPECT(!pod_evictor_is_busy(evictor, true));
}

TEST(no_pod_is_evicted_after_a_measurement_until_the_disk_is_short_again)
{
        ResourceShortage disk = { .signal = EVICTION_NODE_FS, .quantity = 2 << 20 };
        cleanup_free char *shim = make_measuring_shim();
        EvictorWorld world = { 0 };
        PodEvictor *evictor = new_measuring_evictor(&world, shim);

        EXPECT(pod_evictor_evict(evictor, &disk) && pod_evictor_is_busy(evictor, true));
        run_until_idle(&world, evictor);
        EXPECT(!world.failed);
        disk.available = 1 << 20;
        EXPECT(pod_evictor_evict(evictor, &disk));
        EXPECT_STREQ(world.failed, "low");
        EXPECT(strstr(world.message, "available: 1Mi."));
        EXPECT_EQ(pod_evictor_counts(evictor)[EVICTION_NODE_FS], 1);
        world.is_stopping = false;
        EXPECT(pod_evictor_evict(evictor, &disk) &&
               pod_evictor_is_busy(evictor, true)); /* it is measuring */
        EXPECT_EQ(pod_evictor_counts(evictor)[EVICTION_NODE_FS], 1);
        pod_evictor_free(evictor);
        sd_event_unref(world.event);
}

TEST(a_measurement_of_bytes_is_not_used_for_inodes)
{
        const ResourceShortage disk = { .signal = EVICTION_NODE_FS, .quantity = 2 << 20 };
        const ResourceShortage inodes = { .signal = EVICTION_NODE_FS_INODES, .quantity = 10 };
        cleanup_free char *shim = make_measuring_shim();
        EvictorWorld world = { 0 };
        PodEvictor *evictor = new_measuring_evictor(&world, shim);

        EXPECT(pod_evictor_evict(evictor, &disk));
        run_until_idle(&world, evictor);
        EXPECT(pod_evictor_evict(evictor, &inodes) && pod_evictor_is_busy(evictor, true));
        EXPECT(!world.failed);
        pod_evictor_free(evictor);
        sd_event_unref(world.event);
}

TEST(memory_eviction_does_not_wait_for_a_disk_measurement)
{
        const ResourceShortage disk = { .signal = EVICTION_NODE_FS, .quantity = 2 << 20 };
        cleanup_free char *shim = make_measuring_shim();
        EvictorWorld world = { 0 };
        PodEvictor *evictor = new_measuring_evictor(&world, shim);

        EXPECT(pod_evictor_evict(evictor, &disk));
        EXPECT(pod_evictor_is_busy(evictor, true) && !pod_evictor_is_busy(evictor, false));
        EXPECT(pod_evictor_evict(evictor, &disk) && !world.failed);
        EXPECT(pod_evictor_evict(evictor, &pids_shortage));
        EXPECT_STREQ(world.failed, "low");
        EXPECT(pod_evictor_is_busy(evictor, false));
        pod_evictor_free(evictor);
        sd_event_unref(world.event);
}
