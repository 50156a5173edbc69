# SPDX-License-Identifier: Apache-2.0
"""Resource usage of pods: 'mainstay top pods', and the kubelet's /metrics/resource."""

import re

import pytest
import specs
import world
from world import wait

pytestmark = pytest.mark.cgroup2

SPIN = "trap 'exit 0' TERM; while :; do :; done"
FILL = "head -c 33554432 /dev/zero > /dev/shm/x; echo full; " + specs.IDLE


@pytest.fixture(scope="module", name="busy")
def fixture_busy(shared_node):
    shared_node.launch(specs.pod("busy", specs.container(script=SPIN), specs.container("side")))
    shared_node.launch(specs.pod("full", specs.container(script=FILL), metadata={"labels": {"app": "full"}}))
    wait(lambda: "full" in shared_node.logged("full"), "its memory is full")
    return shared_node


def samples(node):
    status, text = node.get("/metrics/resource")
    assert status == 200
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value, *_ = line.split(" ")
            found[name] = float(value)
    return found, text


def rows(node, *words):
    answer = node.cli("top", *words)
    assert answer.returncode == 0, answer.stderr
    return [re.split(r" {2,}", line.strip()) for line in answer.stdout.splitlines()]


def millicores(row):
    return int(re.fullmatch(r"(\d+)m", row[-2]).group(1))


def mebibytes(row):
    return int(re.fullmatch(r"(\d+)Mi", row[-1]).group(1))


def test_top_pods_prints_cpu_and_memory(busy):
    table = rows(busy, "pods")
    assert table[0] == ["NAME", "CPU(cores)", "MEMORY(bytes)"]
    by_name = {row[0]: row for row in table[1:]}
    assert set(by_name) == {"busy-node1", "full-node1"}
    assert millicores(by_name["busy-node1"]) > 10 * max(millicores(by_name["full-node1"]), 1)
    assert 32 <= mebibytes(by_name["full-node1"]) < 64 and mebibytes(by_name["busy-node1"]) < 32


def test_top_containers_prints_each_container(busy):
    table = rows(busy, "pod", "busy", "--containers")
    assert table[0] == ["POD", "NAME", "CPU(cores)", "MEMORY(bytes)"]
    by_name = {row[1]: row for row in table[1:]}
    assert set(by_name) == {"main", "side"}
    assert millicores(by_name["main"]) > 10 * max(millicores(by_name["side"]), 1)


def test_top_takes_labels_and_namespaces(busy):
    assert [row[0] for row in rows(busy, "pods", "-l", "app=full", "--no-headers")] == ["full-node1"]
    assert rows(busy, "pods", "-A")[1][:2] == ["default", "busy-node1"]


def test_metrics_are_the_values_of_the_cgroups(busy):
    group = busy.container_cgroup("busy")
    usage = ("cpuacct", "cpuacct.usage") if world.cgroup_version() == 1 else ("", "cpu.stat")

    def seconds():
        text = world.cgroup_value(group, *usage)
        return int(text) / 1e9 if world.cgroup_version() == 1 else int(text.split()[1]) / 1e6
    before = seconds()
    found, text = samples(busy)
    reported = found['container_cpu_usage_seconds_total{container="main",namespace="default",pod="busy-node1"}']
    assert before <= reported <= seconds()
    assert found['pod_cpu_usage_seconds_total{namespace="default",pod="busy-node1"}'] >= before  # the pod's usage is read before that of the container
    assert found['container_memory_working_set_bytes{container="main",namespace="default",pod="full-node1"}'] >= 32 << 20
    assert found["node_cpu_usage_seconds_total"] > reported
    assert found["node_memory_working_set_bytes"] > 32 << 20
    assert found["resource_scrape_error"] == 0
    assert "# TYPE container_cpu_usage_seconds_total counter" in text


def test_samples_of_a_metric_are_adjacent(busy):
    names = [re.split(r"[ {]", line)[0] for line in samples(busy)[1].splitlines() if not line.startswith("#")]
    assert len([name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]) == len(set(names))


def test_top_of_an_unknown_pod_is_an_error(busy):
    answer = busy.cli("top", "pod", "absent")
    assert (answer.returncode, answer.stderr) == (1, 'error: pods "absent" not found\n')
