# SPDX-License-Identifier: Apache-2.0
"""Processes that cannot be forked: running pods stay, and failed operations are repeated."""

import signal

import pytest
import specs
import world
from registry import DockerRegistry

pytestmark = pytest.mark.cgroup2


def limit_processes(path, limit):
    """The limit of a group and those below: clone() fails with EAGAIN if there would be more."""
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
    group = f"{node.cgroup_root}/mainstay"  # the group of all shims
    limit_processes(group, 0)
    world.kill_all([node.init("broken")])
    node.drop(specs.pod("new"))
    for name in ("broken", "new"):
        node.wait_pod(name, lambda pod: "temporarily unavailable" in str(pod["status"]), "reports the reason")
    limit_processes(group, "max")
    node.wait_running("new")
    node.wait_restarts("broken", 1)
    assert identity(node, "well") == before
    assert node.status("well")["restartCount"] == 0


@pytest.fixture(name="registry")
def fixture_registry(archive, tmp_path):
    registry = DockerRegistry(str(tmp_path))
    registry.push_larger(archive, "team/larger:1")
    yield registry
    registry.stop()


def without_leak_check(node):
    """Turns off the leak check, which forks, too."""
    given = node.environment()
    return lambda: {**given, "ASAN_OPTIONS": f"{given['ASAN_OPTIONS']}:detect_leaks=0"}


def test_a_pull_that_cannot_fork_is_reported_and_leaves_no_incomplete_files(make_node, registry):
    """mainstay-image is started, and then cannot fork a process that fetches, or one that unpacks a layer."""
    node = make_node(start=False, config={"mainstay": {"insecureRegistries": [registry.host]}})
    node.environment = without_leak_check(node)
    node.start()
    node.launch(specs.pod("well"))
    before = identity(node, "well")
    group, image = f"{node.cgroup_root}/agent", f"{registry.host}/team/larger:1"
    world.enter_cgroup(group, node.agent.pid)
    failed, processes = [], 2
    while not failed or failed[-1]:
        limit_processes(group, processes)
        failed.append(node.cli("images", "pull", image).stderr)
        processes += 1
    known = [f"error: cannot start a {what}: Resource temporarily unavailable\n" for what in ("fetcher process", "process for a layer")]
    assert len(failed) > 1 and set(failed[:-1]) <= set(known), failed
    limit_processes(group, "max")
    node.launch(specs.pod("new", specs.container(image=image)))
    assert identity(node, "well") == before
    assert [node.status(name)["restartCount"] for name in ("well", "new")] == [0, 0]
    assert node.cli("images", "verify").stdout == "all images are sound\n"
