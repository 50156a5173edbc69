# SPDX-License-Identifier: Apache-2.0
"""Hundreds of shims, agents and containers die: afterwards the runtime, the kernel and the agent agree, nothing runs
twice, and no exit code is lost."""

import calendar
import json
import os
import shutil
import signal
import subprocess
import time

import many
import pytest
import specs
import world
from harness import container_id, is_running
from test_survival import starter, starts
from world import wait

PODS = 10
KILLED_AT_ONCE = 5

DYING_PODS = 5
DYING_CONTAINERS = 10
CODES = [0, 1, 137, 255]

GROWTH_KIB = 512


def known_to_runtime(node, uid):
    """The containers of a pod by the runtime's own list: the ID, the state and the first process of each."""
    listed = subprocess.run([shutil.which("runc", path="/usr/sbin:/usr/bin"), "--root", f"{node.run}/pods/{uid}/runtime",
                             "list", "--format", "json"], check=True, text=True, stdout=subprocess.PIPE).stdout
    return [(one["id"], one["status"], one["pid"]) for one in json.loads(listed) or []]


def disagreements(node, names):
    """The differences between the desired pods (with one container each), the agent's reports, the runtime's list, and
    the processes and control groups of the kernel."""
    found = []
    reported = {pod["metadata"]["name"]: pod for pod in node.pods()}
    if sorted(reported) != sorted(f"{name}-{node.node_name}" for name in names):
        found.append(f"the agent reports {sorted(reported)}")
    expected = set()
    for name, pod in reported.items():
        if not is_running(pod):
            found.append(f"{name} is {pod['status']}")
            continue
        inits = [pid for pid in world.cgroup_pids(node.cgroup_of(pod)) if world.is_container_init(pid)]
        group = node.cgroup_of(pod, "main")
        if len(inits) != 1 or inits[0] not in world.cgroup_pids(group):
            found.append(f"{name} has {inits} in its control group")
        expected.update(inits)
        listed = known_to_runtime(node, pod["metadata"]["uid"])
        if listed != [(container_id(pod), "running", *inits)]:
            found.append(f"{name} has {inits}, and by the runtime {listed}")
        groups = {path.rsplit("/", 1)[1] for path in world.cgroups_below(node.cgroup_of(pod))}
        if groups != {container_id(pod)}:
            found.append(f"{name} has the control groups {groups}")
        shims = [pid for pid in node.shims() if any(pod["metadata"]["uid"] in word for word in world.cmdline(pid))]
        if len(shims) != 1:
            found.append(f"{name} has the shims {shims}")
    alive = {pid for pid in world.pids_of_root(node.cgroup_root) if world.is_alive(pid) and world.is_container_init(pid)}
    if alive != expected:
        found.append(f"first processes: {alive}, of pods: {expected}")
    if len(node.shims()) != len(names):
        found.append(f"{len(node.shims())} shims")
    return found


def wait_agreement(node, names):
    wait(lambda: not disagreements(node, names), lambda: "\n".join(disagreements(node, names)) + node.said()[-2000:])


def launch_starters(node):
    names = [f"p{i}" for i in range(PODS)]
    for name in names:
        node.drop(starter(node, name))
    for name in names:
        node.wait_running(name)
    wait_started(node, dict.fromkeys(names, 1))
    return names


def count_starts(node, names):
    lines = starts(node)
    return {name: lines.count(name) for name in names}


def wait_started(node, expected):
    """Waits until there was exactly one start for each death."""
    wait(lambda: count_starts(node, expected) == expected,
         lambda: f"each has started this many times: {expected}; it is {count_starts(node, expected)}")


@pytest.mark.long
def test_each_killed_shim_causes_one_restart_with_an_unknown_exit_code(node):
    names = launch_starters(node)
    expected, kills, chance = dict.fromkeys(names, 1), 0, many.make_random()
    for _ in range(many.scaled(200 // KILLED_AT_ONCE)):
        victims = chance.sample(names, KILLED_AT_ONCE)
        world.kill_all([node.shim(name) for name in victims])
        kills += len(victims)
        for name in victims:
            expected[name] += 1
            ended = node.wait_restarts(name, expected[name] - 1)["lastState"]["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")
        wait_started(node, expected)
        wait_agreement(node, names)
        assert {name: node.status(name)["restartCount"] + 1 for name in names} == expected
    print(f"{kills} kills")


@pytest.mark.long
def test_agent_and_all_shims_are_killed_together_again_and_again(node):
    names = launch_starters(node)
    rounds, chance = many.scaled(50), many.make_random()
    for number in range(rounds):
        victims = [*node.shims(), node.agent.pid]
        chance.shuffle(victims)
        world.kill_all(victims)
        node.agent.wait()
        node.start()
        wait_started(node, dict.fromkeys(names, number + 2))
        wait_agreement(node, names)
        assert {node.status(name)["restartCount"] for name in names} == {number + 1}
    print(f"{rounds} rounds of {PODS} pods")


def dying_pod(name, codes):
    return specs.pod(name, *[specs.container(f"c{i}", f"trap 'exit {code}' TERM; sleep 100000 & wait")
                             for i, code in enumerate(codes)], restartPolicy="Never")


def end_containers(node, pods):
    """Ends containers by SIGTERM, or those with code 137 by SIGKILL; returns the times between which they ended."""
    inits = {(name, i): node.init(name, f"c{i}") for name, codes in pods.items() for i in range(len(codes))}
    node.kill9()
    earliest = int(time.time())
    for (name, i), pid in inits.items():
        os.kill(pid, signal.SIGKILL if pods[name][i] == 137 else signal.SIGTERM)
    wait(lambda: not [pid for pid in inits.values() if world.start_time(pid) == pid.started], "the shims have noticed that all have ended")
    return earliest, time.time()


@pytest.mark.long
def test_each_exit_while_the_agent_is_dead_is_reported_with_its_code(node):
    right, chance = 0, many.make_random()
    for number in range(many.scaled(1000 // (DYING_PODS * DYING_CONTAINERS))):
        pods = {f"r{number}-{i}": chance.choices(CODES, k=DYING_CONTAINERS) for i in range(DYING_PODS)}
        for name, codes in pods.items():
            node.drop(dying_pod(name, codes))
        for name, codes in pods.items():
            node.wait_running(name)
            node.wait_traps(dying_pod(name, codes))
        earliest, latest = end_containers(node, pods)
        node.start()
        for name, codes in pods.items():
            pod = node.wait_pod(name, lambda pod: all("terminated" in status["state"] for status in
                                                      pod["status"]["containerStatuses"]), "has ended")
            ends = {status["name"]: status["state"]["terminated"] for status in pod["status"]["containerStatuses"]}
            for i, code in enumerate(codes):
                ended = ends[f"c{i}"]
                assert (ended["exitCode"], ended["reason"]) == (code, "Error" if code else "Completed"), f"{name} c{i}"
                finished = calendar.timegm(time.strptime(ended["finishedAt"], "%Y-%m-%dT%H:%M:%SZ"))
                assert earliest <= finished <= latest, f"{name} c{i}: {ended}"
                right += 1
            node.remove(name)
        for name in pods:
            node.wait_gone(name)
    print(f"{right} exits")


def is_adopted(node, shim):
    """Whether the orphan that stays is a child of the shim, or of the first process of the pod's namespace."""
    found = [pid for pid in world.pids_of_root(node.cgroup_root) if world.cmdline(pid) == ["sleep", "4712"]]
    parent = int(world.status(found[0], "PPid") or 0) if found else 0
    return parent == shim or world.status(parent, "Name") == "mainstay-pause"


@pytest.mark.long
@pytest.mark.parametrize("where", ["hostPID", "shareProcessNamespace"])
def test_many_orphans_are_reaped(make_node, where):
    """Orphans are reaped by the shim or by the first process of the pod's namespace, never by the agent."""
    node = many.start_without_quarantine(make_node(start=False))
    orphans = many.scaled(10000)
    script = "parents() { i=0; while [ $i -lt $1 ]; do (: &); i=$((i + 1)); done; }; " \
             f"parents 200; (sleep 4712 &); echo some; until [ -e /v/go ]; do sleep 0.1; done; parents {orphans}; echo all; " + specs.IDLE
    node.launch(specs.pod("parents", specs.container(script=script, volumeMounts=[specs.mount("v", "/v")]),
                          volumes=[specs.host_path("v", node.data)], **{where: True}))
    wait(lambda: node.logged("parents") == ["some"], "it has orphans")
    shim = node.shim("parents")
    wait(lambda: is_adopted(node, shim), "the remaining orphan has its new parent")
    wait(lambda: not world.zombies_of(shim), "the first are reaped")
    before, memory = many.descriptors(shim), many.own_kib(shim)
    with open(f"{node.data}/go", "w", encoding="utf-8"):
        pass
    wait(lambda: node.logged("parents") == ["some", "all"], "all have been orphaned", 300)
    pids = world.pids_of_root(node.cgroup_root)
    wait(lambda: not [pid for pid in [*pids, shim, node.agent.pid] if world.zombies_of(pid)],
         lambda: f"no zombie is left: {[(pid, world.zombies_of(pid)) for pid in pids if world.zombies_of(pid)]}")
    print(f"{orphans} orphans; KiB of the shim: {memory}, {many.own_kib(shim)}")
    assert many.descriptors(shim) == before
    assert many.own_kib(shim) < memory + GROWTH_KIB
    assert node.status("parents")["restartCount"] == 0
