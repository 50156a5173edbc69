# SPDX-License-Identifier: Apache-2.0
"""Requests and limits become values of cgroups; a process beyond its memory limit is OOM killed and reported."""

import pytest
import specs
import world

pytestmark = pytest.mark.cgroup2

V1 = world.cgroup_version() == 1
MIB = 1024 * 1024


def may_lower_oom_score():
    """Whether there is CAP_SYS_RESOURCE, which the container that runs these tests may not have."""
    return int(world.status("self", "CapEff"), 16) >> 24 & 1


def resources(requests=None, limits=None):
    return {"resources": {**({"requests": requests} if requests else {}), **({"limits": limits} if limits else {})}}


def memory_limit(path):
    return world.cgroup_value(path, "memory", "memory.limit_in_bytes" if V1 else "memory.max")


def quota(path):
    return world.cgroup_value(path, "cpu", "cpu.cfs_quota_us" if V1 else "cpu.max").split()[0]


def unlimited_quota():
    return "-1" if V1 else "max"


@pytest.mark.cgroup2_quick
@pytest.mark.quick
def test_limits_are_written_to_the_cgroups_of_container_and_pod(node):
    pod = node.launch(specs.pod("limited", specs.container(
        **resources({"cpu": "100m", "memory": "16Mi"}, {"cpu": "200m", "memory": "32Mi"}))))
    assert pod["status"]["qosClass"] == "Burstable"
    for path in (node.container_cgroup("limited"), node.pod_cgroup("limited")):
        assert memory_limit(path) == str(32 * MIB)
        assert quota(path) == "20000"
        if V1:
            assert world.cgroup_value(path, "cpu", "cpu.shares") == "102"
    if not V1:
        assert world.cgroup_value(node.pod_cgroup("limited"), "cpu", "cpu.weight") == "4"
        assert world.cgroup_value(node.container_cgroup("limited"), "cpu", "cpu.weight") == "17"


def test_a_container_with_a_memory_limit_cannot_use_swap(node):
    node.launch(specs.pod("dry", specs.container(**resources(limits={"memory": "32Mi"}))))
    group = node.container_cgroup("dry")
    file = "memory.memsw.limit_in_bytes" if V1 else "memory.swap.max"
    value = world.cgroup_value(group, "memory", file)
    assert value in (None, str(32 * MIB) if V1 else "0")
    if V1:
        assert (value is None) == (world.cgroup_value("", "memory", file) is None), "it is set if the kernel supports it"


def test_pod_level_limits_apply_to_all_containers_together(node):
    """The first has its own limits; the second has the limits of the pod."""
    pod = node.launch(specs.pod(
        "whole", specs.container("a", **resources({"cpu": "50m", "memory": "8Mi"}, {"cpu": "100m", "memory": "16Mi"})),
        specs.container("b"), **resources({"cpu": "200m"}, {"cpu": "400m", "memory": "64Mi"})))
    assert pod["status"]["qosClass"] == "Burstable"
    assert pod["spec"]["resources"]["requests"] == {"cpu": "200m", "memory": "8388608"}
    whole, a, b = node.pod_cgroup("whole"), node.container_cgroup("whole", "a"), node.container_cgroup("whole", "b")
    assert [memory_limit(path) for path in (whole, a, b)] == [str(n * MIB) for n in (64, 16, 64)]
    assert [quota(path) for path in (whole, a, b)] == ["40000", "10000", "40000"]
    if V1:
        shares = [world.cgroup_value(path, "cpu", "cpu.shares") for path in (whole, a, b)]
        assert shares == ["204", "51", "409"]


def test_a_pod_whose_own_requests_are_its_limits_is_guaranteed(node):
    pod = node.launch(specs.pod("sure", specs.container(), **resources(None, {"cpu": "100m", "memory": "32Mi"})))
    assert pod["status"]["qosClass"] == "Guaranteed"
    assert pod["spec"]["resources"]["requests"] == {"cpu": "100m", "memory": "32Mi"}
    assert memory_limit(node.pod_cgroup("sure")) == str(32 * MIB)


def test_the_pods_cgroup_has_the_sum_if_all_containers_have_limits(node):
    node.launch(specs.pod("sum", specs.container("a", **resources(None, {"cpu": "100m", "memory": "16Mi"})),
                          specs.container("b", **resources(None, {"cpu": "300m", "memory": "48Mi"}))))
    assert memory_limit(node.pod_cgroup("sum")) == str(64 * MIB)
    assert quota(node.pod_cgroup("sum")) == "40000"
    assert memory_limit(node.container_cgroup("sum", "a")) == str(16 * MIB)


def test_the_pods_cgroup_is_unlimited_if_one_container_is(node):
    node.launch(specs.pod("half", specs.container("a", **resources(None, {"cpu": "100m", "memory": "16Mi"})),
                          specs.container("b")))
    assert memory_limit(node.pod_cgroup("half")) not in (str(16 * MIB), "0")
    assert quota(node.pod_cgroup("half")) == unlimited_quota()


@pytest.mark.cgroup2_quick
@pytest.mark.parametrize("qos,fields,adjust", [
    ("BestEffort", {}, 1000),
    ("Guaranteed", resources(None, {"cpu": "100m", "memory": "32Mi"}), -997),
    ("Burstable", resources({"cpu": "100m"}), 999),
])
def test_the_qos_class_decides_group_and_oom_score(node, qos, fields, adjust):
    pod = node.launch(specs.pod("classy", specs.container(**fields)))
    assert pod["status"]["qosClass"] == qos
    pid = node.init("classy")
    assert node.pod_cgroup("classy") in world.read(f"/proc/{pid}/cgroup")
    if adjust < 0 and not may_lower_oom_score():
        adjust = int(world.read("/proc/self/oom_score_adj"))
    assert int(world.read(f"/proc/{pid}/oom_score_adj")) == adjust


def test_an_oom_score_that_cannot_be_lowered_is_logged_once(node):
    for name in ("one", "two"):
        node.launch(specs.pod(name, specs.container(**resources(None, {"cpu": "100m", "memory": "32Mi"}))))
    lines = [line for line in node.said().splitlines() if "oom_score_adj" in line or "CAP_SYS_RESOURCE" in line]
    assert len(lines) == (0 if may_lower_oom_score() else 1), lines


@pytest.mark.cgroup2_quick
def test_a_process_beyond_its_memory_limit_is_oom_killed(node):
    node.drop(specs.pod("hungry", specs.container(
        script="exec tail /dev/zero", **resources(None, {"memory": "16Mi"})), restartPolicy="Never"))
    node.wait_phase("hungry", "Failed")
    ended = node.status("hungry")["state"]["terminated"]
    assert ended["reason"] == "OOMKilled"
    assert ended["exitCode"] == 137


def test_a_sigkill_is_not_reported_as_oom_killed(node):
    node.launch(specs.pod("killed", specs.container(**resources(None, {"memory": "16Mi"})), restartPolicy="Never"))
    world.kill_all([node.init("killed")])
    node.wait_phase("killed", "Failed")
    ended = node.status("killed")["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("Error", 137)


@pytest.mark.cgroup2_quick
def test_the_number_of_processes_of_a_pod_is_limited(make_node):
    node = make_node(config={"podPidsLimit": 64})
    node.launch(specs.pod("forker"))
    assert world.cgroup_value(node.pod_cgroup("forker"), "pids", "pids.max") == "64"


def test_the_shim_is_outside_the_pods_cgroup(node):
    node.launch(specs.pod("web", specs.container(**resources(None, {"memory": "16Mi"}))))
    assert node.shim("web") not in world.cgroup_pids(node.pod_cgroup("web"))
    assert world.cgroup_pids(node.container_cgroup("web"))


@pytest.mark.cgroup2_quick
def test_the_burstable_cgroup_has_the_sum_of_requests(node):
    node.launch(specs.pod("one", specs.container(**resources({"cpu": "250m"}))))
    node.launch(specs.pod("two", specs.container(**resources({"cpu": "250m"}))))
    group = f"{node.cgroup_root}/kubepods/burstable"
    file, expected = ("cpu.shares", "512") if V1 else ("cpu.weight", "20")
    world.wait(lambda: world.cgroup_value(group, "cpu", file) == expected,
               lambda: f"{file} is {expected}, it is {world.cgroup_value(group, 'cpu', file)}")
