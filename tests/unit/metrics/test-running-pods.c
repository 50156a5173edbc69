/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics/running-pods.h"
#include "common/cleanup.h"
#include "tests/test.h"

TEST(running_pods_are_listed_with_their_running_containers)
{
        char name[] = "web", namespace[] = "default", uid[] = "u1";
        char init[] = "sidecar", app[] = "app", image[] = "app:1", done[] = "done";
        const Pod pod = { .metadata = { .name = name, .namespace = namespace, .uid = uid } };
        ContainerStatus inits[] = { { .name = init, .state = { .kind = STATE_RUNNING } } };
        ContainerStatus apps[] = {
                { .name = app, .image = image, .state = { .kind = STATE_RUNNING } },
                { .name = done, .state = { .kind = STATE_TERMINATED } }
        };
        const PodStatus running = { .init_containers = { inits, 1 }, .containers = { apps, 2 } };
        const PodStatus ended = { .containers = { &apps[1], 1 } };
        cleanup_with(running_pods_freep) RunningPods *pods = running_pods_new();
        cleanup_free char *text = NULL;

        EXPECT_EQ(running_pods_add(&pod, &ended, pods), 0);
        EXPECT_EQ(running_pods_add(&pod, &running, pods), 0);
        text = running_pods_format(pods);
        EXPECT_STREQ(text, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},"
                           "\"items\":[{\"metadata\":{\"name\":\"web\",\"namespace\":\"default\","
                           "\"uid\":\"u1\",\"creationTimestamp\":null},\"spec\":{\"containers\":["
                           "{\"name\":\"sidecar\",\"resources\":{}},"
                           "{\"name\":\"app\",\"image\":\"app:1\",\"resources\":{}}]},"
                           "\"status\":{}}]}");
}
