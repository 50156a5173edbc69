/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/pod-evictor.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>

/* A node with one pod, and a program that never has counted its files. */
typedef struct EvictorWorld {
        sd_event *event;
        char *program;
        PodEvictor *evictor;
        char *evicted; /* why; NULL: it is not */
} EvictorWorld;

static int list_one_candidate(EvictionCandidate **ret, size_t *ret_n, void *userdata) {
        cleanup_free EvictionCandidate *candidate = calloc(1, sizeof(*candidate));

        if (!candidate)
                return -ENOMEM;
        candidate->uid = strdup("one");
        candidate->cgroup = strdup("no-such-cgroup");
        if (!candidate->uid || !candidate->cgroup ||
            strv_append(&candidate->storage_paths, "/no/such/directory") < 0) {
                eviction_candidate_done(candidate);
                return -ENOMEM;
        }
        *ret = TAKE_PTR(candidate);
        *ret_n = 1;
        return 0;
}

static bool record_failed_pod(const char *uid, NodeCondition condition, const char *message,
                              int64_t max_grace_seconds, uint64_t *ret_grace_usec, void *userdata) {
        EvictorWorld *world = userdata;

        free(world->evicted);
        world->evicted = strdup(message);
        *ret_grace_usec = 0;
        return true;
}

static bool is_never_stopping(const char *uid, void *userdata) {
        return false;
}

static void evictor_world_init(EvictorWorld *world) {
        static const PodEvictorCallbacks callbacks = { .list_candidates = list_one_candidate,
                                                       .fail_pod = record_failed_pod,
                                                       .is_stopping = is_never_stopping };
        static const char text[] = "#!/bin/sh\nexec sleep 1000\n";

        sigset_t mask;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        REQUIRE(sigprocmask(SIG_BLOCK, &mask, NULL) == 0);
        *world = (EvictorWorld){ .program = path_join(test_directory(), "program") };
        REQUIRE(world->program != NULL);
        REQUIRE(write_file_atomic_at(AT_FDCWD, world->program, text, sizeof(text) - 1, 0700) == 0);
        REQUIRE(sd_event_new(&world->event) >= 0);
        REQUIRE(pod_evictor_new(&(PodEvictorConfig){ .event = world->event,
                                                     .shim_path = world->program,
                                                     .callbacks = &callbacks,
                                                     .userdata = world },
                                &world->evictor) == 0);
}

static void evictor_world_done(EvictorWorld *world) {
        pod_evictor_free(world->evictor);
        sd_event_unref(world->event);
        free(world->program);
        free(world->evicted);
}

TEST(memory_is_not_kept_short_by_a_disk_that_is_being_measured)
{
        static const ResourceShortage disk = { .signal = EVICTION_NODE_FS, .quantity = 2 },
                                      memory = { .signal = EVICTION_MEMORY, .quantity = 2 };
        EvictorWorld world;

        evictor_world_init(&world);
        EXPECT(pod_evictor_evict(world.evictor, &disk));
        EXPECT(pod_evictor_is_busy(world.evictor, true));
        EXPECT(!pod_evictor_is_busy(world.evictor, false));
        EXPECT(pod_evictor_evict(world.evictor, &disk));
        EXPECT(world.evicted == NULL);
        EXPECT(pod_evictor_evict(world.evictor, &memory));
        REQUIRE(world.evicted != NULL);
        EXPECT(strstr(world.evicted, "memory") != NULL);
        evictor_world_done(&world);
}
