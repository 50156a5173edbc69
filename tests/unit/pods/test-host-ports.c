/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/host-ports.h"
#include "common/cleanup.h"
#include "tests/test.h"

typedef struct Sample {
        ContainerPort ports[2];
        Container container;
        PodSpec spec;
} Sample;

static void sample_init(Sample *sample, int64_t first, int64_t second, const char *ip) {
        *sample = (Sample){ .ports = { { .host_port = { true, first }, .protocol = PROTOCOL_TCP },
                                       { .host_port = { second > 0, second },
                                         .protocol = PROTOCOL_TCP,
                                         .host_ip = (char *) (uintptr_t) ip } } };
        sample->container.ports.items = sample->ports;
        sample->container.ports.n = 2;
        sample->spec.containers.items = &sample->container;
        sample->spec.containers.n = 1;
}

static void expect_conflict(const Sample *a, const Sample *b, int64_t port, const char *path) {
        cleanup_free char *found = NULL;
        const ContainerPort *conflict = find_host_port_conflict(&a->spec, &b->spec, &found);

        EXPECT_EQ(conflict ? conflict->host_port.value : 0, port);
        EXPECT_STREQ(found, path);
}

TEST(same_host_port_is_a_conflict)
{
        Sample a, b;

        sample_init(&a, 80, 443, NULL);
        sample_init(&b, 443, 0, NULL);
        expect_conflict(&a, &b, 443, "spec.containers[0].ports[1].hostPort");
        expect_conflict(&b, &a, 443, "spec.containers[0].ports[0].hostPort");
        b.ports[0].protocol = PROTOCOL_UDP;
        expect_conflict(&a, &b, 0, NULL);
}

TEST(address_conflicts_with_itself_and_with_all)
{
        Sample a, b;

        sample_init(&a, 1, 80, "127.0.0.1");
        sample_init(&b, 2, 80, "127.0.0.2");
        expect_conflict(&a, &b, 0, NULL);
        b.ports[1].host_ip = (char[]){ "0.0.0.0" };
        expect_conflict(&a, &b, 80, "spec.containers[0].ports[1].hostPort");
        b.ports[1].host_ip = (char[]){ "127.0.0.1" };
        expect_conflict(&a, &b, 80, "spec.containers[0].ports[1].hostPort");
}

TEST(container_ports_are_not_host_ports)
{
        Sample a, b;

        sample_init(&a, 0, 0, NULL);
        sample_init(&b, 0, 0, NULL);
        expect_conflict(&a, &b, 0, NULL);
        EXPECT(!pod_has_host_ports(&a.spec));
        sample_init(&b, 0, 80, NULL);
        EXPECT(pod_has_host_ports(&b.spec));
}

TEST(init_containers_hold_no_port_but_sidecars_do)
{
        Sample a, b;

        sample_init(&a, 80, 0, NULL);
        sample_init(&b, 80, 0, NULL);
        b.spec.init_containers.items = b.spec.containers.items;
        b.spec.init_containers.n = 1;
        b.spec.containers.n = 0;
        expect_conflict(&a, &b, 0, NULL);
        b.container.restart_policy = RESTART_POLICY_ALWAYS;
        expect_conflict(&a, &b, 80, "spec.containers[0].ports[0].hostPort");
        expect_conflict(&b, &a, 80, "spec.initContainers[0].ports[0].hostPort");
}
