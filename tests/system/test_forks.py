# SPDX-License-Identifier: Apache-2.0
"""Processes that cannot be forked: what runs stays, and what failed is repeated."""

import signal

import specs
import world


def limit_processes(path, limit):
    """Of a group and those below: clone() fails with EAGAIN where there would be more."""
    with open(f"{world.cgroup_directory(path)}/pids.max", "w", encoding="ascii") as file:
        file.write(str(limit))


def identity(node, name):
    pid = node.init(name)
    return pid, world.start_time(pid)


def test_an_agent_that_cannot_fork_starts_and_removes_pods_when_it_can(make_node, archive):
    node = make_node()
    for name in ("well", "old"):
        node.launch(specs.pod(name))
    before = identity(node, "well")
    group = f"{node.cgroup_root}/agent"
    world.enter_cgroup(group, node.agent.pid)
    limit_processes(group, 1)
    node.drop(specs.pod("new"))
    node.remove("old")
    node.preload(archive, "again.tar")
    for name in ("new", "old"):
        world.wait(lambda name=name: f"Pod 'default/{name}-node1': cannot start" in node.said(), node.said)
    ticks = world.cpu_ticks(node.agent.pid)
    signal.sigtimedwait([], 1)
    assert world.cpu_ticks(node.agent.pid) - ticks < 50
    limit_processes(group, "max")
    node.wait_running("new")
    node.wait_gone("old")
    assert identity(node, "well") == before
    assert [node.status(name)["restartCount"] for name in ("well", "new")] == [0, 0]


def test_shims_that_cannot_fork_start_containers_when_they_can(node):
    for name in ("well", "broken"):
        node.launch(specs.pod(name))
    before = identity(node, "well")
    group = f"{node.cgroup_root}/mainstay"  # of all shims
    limit_processes(group, 0)
    world.kill_all([node.init("broken")])
    node.drop(specs.pod("new"))
    for name in ("broken", "new"):
        node.wait_pod(name, lambda pod: "temporarily unavailable" in str(pod["status"]), "says why")
    limit_processes(group, "max")
    node.wait_running("new")
    node.wait_restarts("broken", 1)
    assert identity(node, "well") == before
    assert node.status("well")["restartCount"] == 0
