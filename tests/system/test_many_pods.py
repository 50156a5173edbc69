# SPDX-License-Identifier: Apache-2.0
"""Thousands of pods and containers come and go: each is reported, and nothing is left behind."""

import os
import time

import many
import pytest
import specs
import world
from network import NetworkNode
from world import wait

AT_ONCE = 20
SETTLED = 0.2  # after this part of the pods the tables of a fixed size (events, latest logs) are full
SAMPLES = 20  # of the memory
GROWTH_KIB = 1024

BROOD = 10  # pods
CLUTCH = 50  # containers of each


@pytest.fixture(name="make_any_node")
def fixture_make_any_node(archive, make_node):
    made = []

    def make(has_network):
        if not has_network:
            return many.start_without_quarantine(make_node(start=False))
        made.append(NetworkNode(archive, start=False))
        return many.start_without_quarantine(made[-1])

    yield make
    for node in made:
        node.finish()


def remains(node):
    """The objects in the kernel and on the disk that belong to this node, including those of the agent and of one pod
    that keeps running."""
    found = {"cgroups": sorted(world.cgroups_below(node.cgroup_root)),
             "mounts": sorted(mount["at"] for mount in world.mounts(node.agent.pid) if node.directory in mount["at"]),
             "files": many.files_below(node.run, node.log, f"{node.state}/pods", node.data),
             "directories": sorted(os.listdir(node.state)),
             "shims": node.shims()}
    if isinstance(node, NetworkNode):
        found["network"] = sorted(node.network_leftovers())
    return found


def differences(before, after):
    return {name: (sorted(set(before[name]) - set(after[name])), sorted(set(after[name]) - set(before[name])),
                   len(before[name]), len(after[name])) for name in before if before[name] != after[name]}


def wait_as_before(node, before):
    """Empty log directories of namespaces, unused images and the like may take a moment to disappear."""
    wait(lambda: not differences(before, remains(node)), lambda: f"all is as before: {differences(before, remains(node))}")


def short_pod(node, name, has_network):
    """A short-lived pod with volumes of three kinds, in one of which it mounts a file system."""
    mounts = [specs.mount("canary", "/canary"), specs.mount("disk", "/disk"), specs.mount("memory", "/memory")]
    script = "echo x > /disk/x; echo x > /memory/x; mkdir /disk/m; mount -t tmpfs none /disk/m; exit 0"
    return specs.pod(name, specs.container(script=script, volumeMounts=mounts, securityContext={"privileged": True}),
                     volumes=[specs.host_path("canary", node.data), {"name": "disk", "emptyDir": {}},
                              {"name": "memory", "emptyDir": {"medium": "Memory"}}],
                     restartPolicy="Never", hostNetwork=not has_network)


def run_pods(node, names, has_network):
    for name in names:
        node.drop(short_pod(node, name, has_network))
    wanted = {f"{name}-{node.node_name}" for name in names}

    def phases():
        return {pod["metadata"]["name"]: pod["status"].get("phase") for pod in node.pods()}
    wait(lambda: {name for name, phase in phases().items() if phase == "Succeeded"} >= wanted,
         lambda: f"all have ended: {phases()}; the log of the agent:\n{node.said()[-2000:]}", 300)
    for name in names:
        node.remove(name)
    wait(lambda: not wanted & set(phases()), lambda: f"all are gone: {phases()}", 300)


def check_memory(samples):
    """A leak raises the minimum of many samples."""
    samples = samples[round(len(samples) * SETTLED):]
    half = len(samples) // 2
    assert min(samples[half:]) < min(samples[:half]) + GROWTH_KIB, f"memory of the agent in KiB: {samples}"


@pytest.mark.long
@pytest.mark.parametrize("has_network, figure", [(False, 10_000), (True, 10_000)], ids=["node", "own"])
def test_many_pods_leave_the_node_as_it_was(make_any_node, has_network, figure):
    node = make_any_node(has_network)
    with open(f"{node.data}/canary", "w", encoding="utf-8") as file:
        file.write("sings")
    node.launch(specs.pod("stays", hostNetwork=not has_network))
    run_pods(node, [f"first-{i}" for i in range(AT_ONCE)], has_network)
    init = node.init("stays")
    before, descriptors, samples = remains(node), many.descriptors(node.agent.pid), []
    rounds = many.scaled(figure // AT_ONCE, SAMPLES // 2)
    for number in range(rounds):
        run_pods(node, [f"p{number}-{i}" for i in range(AT_ONCE)], has_network)
        if number % max(1, rounds // SAMPLES) == 0:
            time.sleep(0.5)
            samples.append(many.own_kib(node.agent.pid))
    wait_as_before(node, before)
    wait(lambda: len(many.descriptors(node.agent.pid)) <= len(descriptors),
         lambda: f"descriptors are closed: {descriptors}, {many.descriptors(node.agent.pid)}")
    print(f"{rounds * AT_ONCE} pods; KiB of the agent: {samples}")
    check_memory(samples)
    assert (node.init("stays"), node.status("stays")["restartCount"]) == (init, 0)
    assert world.read(f"{node.data}/canary") == "sings"


def ends_at_once(name, first):
    """A pod whose containers run only as long as a shell needs for one word. Each has a different exit code."""
    containers = [{**specs.container(f"c{i}"), "command": ["/bin/sh", "-c", f"exit {(first + i) % 256}"]}
                  for i in range(CLUTCH)]
    return specs.pod(name, *containers, restartPolicy="Never")


@pytest.mark.long
def test_each_of_many_containers_of_a_millisecond_has_its_exit_code(node):
    rounds = many.scaled(10000) // (BROOD * CLUTCH)
    seen = 0
    for number in range(max(1, rounds)):
        firsts = {f"brood-{number}-{i}": (number * BROOD + i) * CLUTCH for i in range(BROOD)}
        for name, first in firsts.items():
            node.drop(ends_at_once(name, first))
        for name, first in firsts.items():
            pod = node.wait_pod(name, lambda pod: len(pod["status"].get("containerStatuses", [])) == CLUTCH and all(
                "terminated" in status["state"] for status in pod["status"]["containerStatuses"]), "has ended", 300)
            for i in range(CLUTCH):
                status = next(one for one in pod["status"]["containerStatuses"] if one["name"] == f"c{i}")
                ended, code = status["state"]["terminated"], (first + i) % 256
                assert (ended["exitCode"], ended["reason"]) == (code, "Error" if code else "Completed"), f"{name} c{i}: {status}"
                assert status["restartCount"] == 0
                seen += 1
            node.remove(name)
        for name in firsts:
            node.wait_gone(name)
    print(f"{seen} exit codes")


@pytest.mark.long
def test_hundreds_of_manifests_appear_and_vanish_at_once(make_node):
    figure = many.scaled(500)
    node = make_node(config={"maxPods": figure + 10})
    node.launch(specs.pod("stays"))
    init, before = node.init("stays"), remains(node)
    staged = {f"p{i}": node.stage(specs.pod(f"p{i}", {**specs.container(), "command": ["/bin/sleep", "1000000"]},
                                            terminationGracePeriodSeconds=0)) for i in range(figure)}
    for name, path in staged.items():
        os.rename(path, node.path(f"{name}.yaml"))

    def states():
        return {pod["metadata"]["name"]: (pod["status"].get("phase"), sum(status["restartCount"] for status in
                                          pod["status"].get("containerStatuses", []))) for pod in node.pods()}
    wanted = {f"{name}-{node.node_name}": ("Running", 0) for name in ("stays", *staged)}
    wait(lambda: states() == wanted, lambda: f"all run: {sum(state == ('Running', 0) for state in states().values())}", 1800)
    sleeps = [pid for pid in world.pids_of_root(node.cgroup_root) if world.cmdline(pid)[:2] == ["/bin/sleep", "1000000"]]
    assert len(sleeps) == figure
    print(f"{figure} pods, {world.memory_kib(node.agent.pid, 'VmRSS')} KiB")
    for name in staged:
        node.remove(name)
    wait(lambda: len(node.pods()) == 1, lambda: f"the pods are gone: {len(node.pods())}", 1800)
    wait_as_before(node, before)
    assert (node.init("stays"), node.status("stays")["restartCount"]) == (init, 0)
