/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of terminated pods: the content that the next agent reads after a reboot. */

#include "agent/apiserver/terminated-pods.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <sys/stat.h>

static ApiServerCache *open_cache(sd_event *event) {
        ApiServerCache *cache = NULL;

        REQUIRE(apiserver_cache_new(event, test_directory(), NULL, &cache) == 0);
        return cache;
}

static void reopen_cache(sd_event *event, ApiServerCache **cache) {
        *cache = apiserver_cache_free(*cache);
        *cache = open_cache(event);
}

TEST(final_status_is_found_after_a_reboot_until_it_is_removed)
{
        cleanup_with(sd_event_unrefp) sd_event *event = NULL;
        cleanup_free char *queued = NULL, *json = NULL, *none = NULL;
        ApiServerCache *cache;

        REQUIRE(sd_event_new(&event) >= 0);
        cache = open_cache(event);
        terminated_pods_add(cache, "u1", "{\"status\":{}}");
        EXPECT(terminated_pods_find(cache, "/nonexistent", "u1", &queued));
        EXPECT_STREQ(queued, "{\"status\":{}}");
        reopen_cache(event, &cache);
        EXPECT(terminated_pods_find(cache, "/nonexistent", "u1", &json));
        EXPECT_STREQ(json, "{\"status\":{}}\n");
        EXPECT(!terminated_pods_find(cache, "/nonexistent", "u2", &none));
        terminated_pods_remove(cache, "u1");
        EXPECT(!terminated_pods_find(cache, "/nonexistent", "u1", &none));
        reopen_cache(event, &cache);
        EXPECT(!terminated_pods_find(cache, "/nonexistent", "u1", &none));
        apiserver_cache_free(cache);
}

TEST(status_of_a_pod_that_has_run_since_the_boot_comes_from_its_shim)
{
        cleanup_with(sd_event_unrefp) sd_event *event = NULL;
        cleanup_free char *pods = NULL, *pod = NULL, *json = NULL;
        ApiServerCache *cache;

        REQUIRE(sd_event_new(&event) >= 0);
        REQUIRE(asprintf(&pods, "%s/pods", test_directory()) > 0);
        REQUIRE(asprintf(&pod, "%s/u1", pods) > 0);
        REQUIRE(mkdir(pods, 0700) == 0 && mkdir(pod, 0700) == 0);
        cache = open_cache(event);
        terminated_pods_add(cache, "u1", "{}");
        EXPECT(!terminated_pods_find(cache, test_directory(), "u1", &json));
        EXPECT(terminated_pods_find(cache, "/nonexistent", "u1", &json));
        apiserver_cache_free(cache);
}
