# SPDX-License-Identifier: Apache-2.0
"""/stats/summary and /metrics/cadvisor, compared with control groups, /proc and directories."""

import json
import os
import re
import time

import harness
import pytest
import specs
import world
from world import wait

pytestmark = [pytest.mark.xdist_group("usage"), pytest.mark.cgroup2]

LISTEN = "nc -ll -p {} -e cat"


@pytest.fixture(scope="module", name="node")
def fixture_node(archive):
    """A node whose agent is in a separate control group, with a pod."""
    node = harness.Node(archive)
    world.enter_cgroup(agent_cgroup(node), node.agent.pid)
    node.launch(specs.pod("web", specs.container(script="echo one\n" + specs.IDLE),
                          specs.container("echo", script=LISTEN.format(world.free_port()))))
    node.init("web", "echo")  # returns when the runtime, which has threads, has executed the program
    yield node
    node.finish()


def agent_cgroup(node):
    return f"{node.cgroup_root}/agent"


def ask(node, path):
    status, text = node.get(path)
    assert status == 200, text
    return text


def summary_of_pod(node, query=""):
    """The summary, and its part about the pod."""
    summary = json.loads(ask(node, "/stats/summary" + query))
    return summary, next(pod for pod in summary["pods"] if pod["podRef"]["uid"] == node.pod("web")["metadata"]["uid"])


def count_inodes(top):
    """The number of inodes of the directory and of everything below it."""
    return 1 + sum(len(directories) + len(files) for _, directories, files in os.walk(top))


def cpu_nsec(group):
    if world.cgroup_version() == 1:
        return int(world.cgroup_value(group, "cpuacct", "cpuacct.usage"))
    return int(re.search(r"^usage_usec ([0-9]+)$", world.cgroup_value(group, "", "cpu.stat"), re.MULTILINE)[1]) * 1000


def test_the_summary_counts_the_processes_of_a_pod(node):
    """Its containers start and end processes: the comparison is repeated until the number does not change during it."""
    def count():
        return len(world.cgroup_pids(node.pod_cgroup("web")))

    def is_so():
        before, said, after = count(), summary_of_pod(node)[1]["process_stats"]["process_count"], count()
        return before == said == after and said >= 2
    wait(is_so, lambda: f"the pod's {count()} processes: {summary_of_pod(node)[1]['process_stats']}")


def test_the_memory_of_the_node_and_of_all_pods_is_limited_by_the_machine(node):
    total = int(re.search(r"^MemTotal: +([0-9]+) kB$", world.read("/proc/meminfo"), re.MULTILINE)[1]) * 1024
    node = summary_of_pod(node)[0]["node"]
    pods = next(container for container in node["systemContainers"] if container["name"] == "pods")
    for part in (node, pods):
        assert part["memory"]["availableBytes"] == total - part["memory"]["workingSetBytes"]


@pytest.mark.parametrize("query", ["", "?only_cpu_and_memory=true"])
def test_the_summary_has_the_agent_the_shims_and_all_pods(node, query):
    """Each is a control group, whose counters only grow."""
    groups = {"kubelet": agent_cgroup(node), "runtime": f"{node.cgroup_root}/mainstay",
              "pods": f"{node.cgroup_root}/kubepods"}
    before = {name: cpu_nsec(group) for name, group in groups.items()}
    containers = {container["name"]: container for container in summary_of_pod(node, query)[0]["node"]["systemContainers"]}
    assert set(containers) == set(groups)
    for name, group in groups.items():
        found = containers[name]
        assert before[name] <= found["cpu"]["usageCoreNanoSeconds"] <= cpu_nsec(group), name
        assert found["startTime"] <= found["cpu"]["time"]
        assert found["memory"]["usageBytes"] >= found["memory"]["workingSetBytes"] > 0
        assert found["memory"]["rssBytes"] > 0 and found["memory"]["pageFaults"] > 0
        assert ("availableBytes" in found["memory"]) == (name == "pods")
        assert found["swap"]["swapUsageBytes"] >= 0
        assert not {"rootfs", "logs", "network"} & set(found)


def test_the_summary_has_the_inodes_that_containers_use(node):
    """A file in the writable layer is measured a minute later; files that exist from the start are compared with a
    walk."""
    def measured():
        found = summary_of_pod(node)[1]
        return found if "inodesUsed" in found["ephemeral-storage"] else None

    pod = wait(measured, "the disk usage was measured")
    directory = os.path.join(node.state, "pods", pod["podRef"]["uid"], "containers")
    logs = node.log_directory("web")
    total = 0
    for container in pod["containers"]:
        assert container["rootfs"]["inodesUsed"] == count_inodes(f"{directory}/{container['name']}"), container["name"]
        assert container["logs"]["inodesUsed"] == count_inodes(f"{logs}/{container['name']}"), container["name"]
        total += container["rootfs"]["inodesUsed"] + container["logs"]["inodesUsed"]
    etc = os.path.join(node.state, "pods", pod["podRef"]["uid"], "etc")
    assert pod["ephemeral-storage"]["inodesUsed"] == total + count_inodes(etc)


def rows(node, name, **labels):
    """The values of a metric by their labels, of the rows that have the given labels."""
    found = {}
    for line in ask(node, "/metrics/cadvisor").splitlines():
        row = re.fullmatch(rf"{name}{{(.*)}} (\S+)( [0-9]+)?", line)
        own = dict(re.findall(r'(\w+)="([^"]*)"', row[1])) if row else None
        if row and all(own[key] == value for key, value in labels.items()):
            rest = {key: value for key, value in own.items()
                    if key not in ("container", "id", "image", "name", "namespace", "pod")}
            found[tuple(sorted(rest.items()))] = float(row[2])
    return found


def value(node, name, **labels):
    found = rows(node, name, **labels)
    assert list(found) == [()], (name, found)
    return found[()]


def limit_of(group, controller, file):
    """The limit in the form of cAdvisor, where zero means no limit."""
    text = world.cgroup_value(group, controller, file) or "0"
    return 0 if text == "max" or int(text) >= 1 << 62 else int(text)


def test_cadvisors_metrics_have_the_limits_of_a_container(node):
    group = node.container_cgroup("web", "main")
    is_v1 = world.cgroup_version() == 1
    expected = {
        "container_spec_memory_limit_bytes": limit_of(group, "memory", "memory.limit_in_bytes" if is_v1 else "memory.max"),
        "container_spec_memory_reservation_limit_bytes":
            limit_of(group, "memory", "memory.soft_limit_in_bytes" if is_v1 else "memory.min"),
        "container_spec_memory_swap_limit_bytes":
            limit_of(group, "memory", "memory.memsw.limit_in_bytes" if is_v1 else "memory.swap.max"),
        "container_threads_max": limit_of(group, "pids", "pids.max"),
        "container_spec_cpu_shares": 2, "container_spec_cpu_period": 100000, "container_oom_events_total": 0,
        "container_memory_failcnt": 0,
    }
    assert {name: value(node, name, container="main") for name in expected} == expected
    assert rows(node, "container_spec_cpu_quota", container="main") == {}
    init = node.init("web", "main")
    soft = re.search(r"^Max open files +(\S+) ", world.read(f"/proc/{init}/limits"), re.MULTILINE)[1]
    key = (("ulimit", "max_open_files"),)
    wait(lambda: rows(node, "container_ulimits_soft", container="main").get(key) == (-1 if soft == "unlimited" else int(soft)),
         lambda: f"the limit {soft}: {rows(node, 'container_ulimits_soft', container='main')}")


def test_cadvisors_metrics_have_the_usage_of_a_container(node):
    group = node.container_cgroup("web", "echo")
    pids = world.cgroup_pids(group)
    assert value(node, "container_processes", container="echo") == len(pids)
    assert value(node, "container_threads", container="echo") == int(world.cgroup_value(group, "pids", "pids.current"))
    peak = value(node, "container_memory_max_usage_bytes", container="echo")
    name = "memory.max_usage_in_bytes" if world.cgroup_version() == 1 else "memory.peak"
    assert 0 <= peak <= int(world.cgroup_value(group, "memory", name) or 0)
    failures = rows(node, "container_memory_failures_total", container="echo")
    assert {(dict(key)["failure_type"], dict(key)["scope"]) for key in failures} == \
        {(kind, scope) for kind in ("pgfault", "pgmajfault") for scope in ("container", "hierarchy")}
    assert failures[(("failure_type", "pgfault"), ("scope", "container"))] > 0
    times = [value(node, f"container_cpu_{kind}_seconds_total", container="echo") for kind in ("user", "system")]
    assert 0 <= sum(times) <= cpu_nsec(group) / 1e9 + 0.05, "the kernel splits the time by ticks"
    assert value(node, "container_memory_mapped_file", container="echo") >= 0
    assert abs(value(node, "container_last_seen", container="echo") - time.time()) < 60
    operations = rows(node, "container_blkio_device_usage_total", container="echo")
    assert {dict(key)["operation"] for key in operations} == {"Read", "Write"}


def test_cadvisors_metrics_have_the_open_descriptors_of_a_container(node):
    """The shim counts the descriptors for the next request."""
    def count():
        targets = []
        for pid in world.cgroup_pids(node.container_cgroup("web", "echo")):
            targets += [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
        return {(): len(targets)}, {(): sum(target.startswith("socket:") for target in targets)}

    def shown():
        return rows(node, "container_file_descriptors", container="echo"), rows(node, "container_sockets", container="echo")
    wait(lambda: count() == shown(), lambda: f"{count()} descriptors and sockets: {shown()}")
    assert count()[1][()] > 0, "it listens"


def test_cadvisors_metrics_have_the_size_of_a_writable_layer(node):
    wait(lambda: rows(node, "container_fs_usage_bytes", container="main"), "the layer was measured")
    (used,), (limit,) = [rows(node, f"container_fs_{kind}_bytes", container="main").values() for kind in ("usage", "limit")]
    assert 0 < used < limit
    assert rows(node, "container_fs_inodes_total", container="main") == {}


def test_cadvisors_metrics_have_rows_of_system_containers(node):
    root = node.cgroup_root
    for group in (agent_cgroup(node), f"{root}/mainstay", f"{root}/kubepods", f"{root}/kubepods/besteffort"):
        used = value(node, "container_memory_working_set_bytes", id=group, pod="", namespace="", container="", image="")
        assert used > 0, group
    text = ask(node, "/metrics/cadvisor").splitlines()
    names = [line.rpartition("} ")[0] for line in text if line[:1] != "#" and "} " in line]
    assert len(names) == len(set(names)), "no row is repeated"
    heads = [line for line in text if line.startswith("# TYPE ")]
    assert len(heads) == len(set(heads))
