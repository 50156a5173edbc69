# SPDX-License-Identifier: Apache-2.0
"""Agents that are killed hundreds of times while dozens of pods run, by a signal or because memory is exhausted, also
while they recover: no container is lost, duplicated or restarted."""

import errno
import os
import statistics
import time

import harness
import many
import pytest
import specs
import world
from harness import is_running
from test_survival import identities, starter, starts
from world import wait

PODS = 60
PASSERS = 10  # pods that are added and removed in the meantime
GROWTH = 1 << 20  # bytes that an agent may still allocate
LARGE = '{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "large{0}"}}, "data": {{"text": "{1}"}}}}'


def launch_steady(node, count):
    """Starts pods that are never touched; returns their processes."""
    names = [f"steady{i}" for i in range(count)]
    for name in names:
        node.drop(starter(node, name))
    for name in names:
        node.wait_running(name, 300)
    wait(lambda: sorted(starts(node)) == sorted(names), lambda: f"each has started: {starts(node)}")
    return identities(node, names)


def wait_adopted(node, steady):
    """Waits until an agent reports the pods; returns the seconds."""
    start = time.monotonic()
    names = {f"{name}-{node.node_name}" for name in steady}

    def is_so():
        return names <= {pod["metadata"]["name"] for pod in node.pods() if is_running(pod)}
    wait(node.is_ready, "the agent is ready")
    wait(is_so, lambda: f"all run: {names}; it is {node.pods()}")
    return time.monotonic() - start


def check_untouched(node, steady):
    """Checks that no container of the pods was lost, restarted or started twice."""
    assert identities(node, steady) == steady
    lines = starts(node)
    for name in steady:
        assert lines.count(name) == 1, f"{name} was started {lines.count(name)} times"
        status = node.status(name)
        assert (status["restartCount"], status["lastState"]) == (0, {}), f"{name}: {status}"


class Passers:
    """Pods that are added, and are removed in any state."""

    def __init__(self, node, chance):
        self.node, self.chance = node, chance
        self.present, self.removed = [], []

    def add(self):
        name = f"passer{len(self.present) + len(self.removed)}"
        script, policy = self.chance.choice([(specs.IDLE, "Always"), ("exit 0", "Never")])
        self.node.drop(starter(self.node, name, script, restartPolicy=policy))
        self.present.append(name)

    def remove(self):
        name = self.present.pop(self.chance.randrange(len(self.present)))
        self.node.remove(name)
        self.removed.append(name)

    def step(self):
        if self.present and (len(self.present) >= PASSERS or self.chance.random() < 0.5):
            self.remove()
        else:
            self.add()

    def check_none_doubled(self):
        lines = starts(self.node)
        for name in set(lines) & {*self.present, *self.removed}:
            assert lines.count(name) == 1, "\n".join([f"{name} was started {lines.count(name)} times:", *(
                line for line in self.node.said().splitlines() if f"/{name}-" in line or "Started version" in line)][-200:])

    def check(self):
        for name in self.present:
            self.node.wait_pod(name, lambda pod: pod["status"].get("phase") in ("Running", "Succeeded"), "has started")
        for name in self.removed:
            self.node.wait_gone(name)
        wait(lambda: set(self.present) <= set(starts(self.node)), lambda: f"{self.present} have started: {starts(self.node)}")
        self.check_none_doubled()


@pytest.mark.long
def test_a_thousand_kills_of_the_agent_lose_no_pod_while_others_start_and_stop(make_node):
    node, chance = make_node(), many.make_random()
    steady = launch_steady(node, PODS)
    passers, recoveries = Passers(node, chance), []
    for number in range(many.scaled(1000)):
        end, change = time.monotonic() + chance.uniform(0, 5), 0.0
        while (now := time.monotonic()) < end:
            if now >= change:
                passers.step()
                change = now + 0.5
            time.sleep(0.01)
        node.kill9()
        node.start(ready=False)
        passers.check_none_doubled()
        if number % 20 == 19:
            recoveries.append(wait_adopted(node, steady))
            check_untouched(node, steady)
    wait_adopted(node, steady)
    passers.check()
    check_untouched(node, steady)
    print(f"{many.scaled(1000)} kills; {len(passers.removed) + len(passers.present)} pods came; seconds until {PODS} pods were "
          f"reported again: {statistics.median(recoveries or [0]):.2f}")


@pytest.mark.parametrize("pods,kills", [(5, 5), pytest.param(20, 500, marks=pytest.mark.long)], ids=["few", "many"])
def test_an_agent_that_is_killed_again_while_it_recovers_loses_nothing(node, pods, kills):
    chance = many.make_random()
    steady = launch_steady(node, pods)
    passers = Passers(node, chance)
    for number in range(many.scaled(kills)):
        passers.step()
        node.kill9()
        passers.step()
        node.start(ready=False)
        time.sleep(chance.uniform(0, 0.5))
        node.restart(ready=False)
        wait(node.is_ready, node.said)
        passers.check_none_doubled()
        if number % 20 == 0:
            wait_adopted(node, steady)
            check_untouched(node, steady)
    wait_adopted(node, steady)
    passers.check()
    check_untouched(node, steady)


# ---- out of memory ----

class SmallNode(harness.Node):
    """A node whose agent has a separate control group, the memory of which may be limited. Shims and containers have
    other groups."""

    @property
    def group(self):
        return f"{self.cgroup_root}/agent"

    def start(self, ready=True):
        """Starts the agent, which is in the group before it allocates anything."""
        self.agent = self.spawn(preexec_fn=lambda: world.enter_cgroup(self.group, os.getpid()))
        if ready:
            wait(self.is_ready, self.said)

    def memory_file(self, first, second):
        return f"{world.cgroup_directory(self.group, 'memory')}/{first if world.cgroup_version() == 1 else second}"

    def limit_memory(self, limit):
        """Sets the limit in bytes; None removes it."""
        with open(self.memory_file("memory.limit_in_bytes", "memory.max"), "w", encoding="ascii") as file:
            file.write(str(limit) if limit else "-1" if world.cgroup_version() == 1 else "max")

    def leave_memory(self, growth):
        """Leaves this amount of memory in addition to the memory in use. The kernel refuses a limit below the current
        usage, which may have grown since it was read."""
        def is_limited():
            try:
                self.limit_memory(self.memory() + growth)
            except OSError as error:
                assert error.errno == errno.EBUSY, error
                return False
            return True
        wait(is_limited, "the memory is limited")

    def memory(self):
        return int(world.read(self.memory_file("memory.usage_in_bytes", "memory.current")))

    def oom_kills(self):
        text = world.read(self.memory_file("memory.oom_control", "memory.events"))
        return int(next(line.split()[1] for line in text.splitlines() if line.startswith("oom_kill ")))


def exhaust_memory(node):
    """Leaves the agent almost no memory, and then gives it files to read."""
    before = node.oom_kills()
    node.leave_memory(GROWTH)
    for i in range(20):
        node.drop(LARGE.format(i, "x" * 1000_000), f"large{i}.json")
    wait(lambda: node.agent.poll() is not None, lambda: f"the agent is killed; its log:\n{node.said()}")
    assert node.agent.returncode == -9 and node.oom_kills() > before


def leave_no_large_files(node):
    for name in os.listdir(node.manifests):
        if name.startswith("large"):
            os.unlink(node.path(name))


@pytest.fixture(name="small")
def fixture_small(archive, image_store):
    node = SmallNode(archive, store=image_store)
    yield node
    node.limit_memory(None)
    node.finish()


@pytest.mark.parametrize("pods,kills", [(3, 2), pytest.param(20, 100, marks=pytest.mark.long)], ids=["few", "many"])
def test_an_agent_that_is_killed_for_lack_of_memory_loses_nothing(small, pods, kills):
    """The next agent is killed as well while it reads the same files, until there is enough memory."""
    steady = launch_steady(small, pods)
    passers = Passers(small, many.make_random())
    for _ in range(many.scaled(kills)):
        passers.step()
        exhaust_memory(small)
        passers.step()
        small.start(ready=False)
        wait(lambda: small.agent.poll() is not None, lambda: f"the next agent is killed; its log:\n{small.said()}")
        assert small.agent.returncode == -9
        assert all(world.is_alive(pid) for pid, _ in steady.values())
        leave_no_large_files(small)
        small.limit_memory(None)
        small.start()
        wait_adopted(small, steady)
        check_untouched(small, steady)
    passers.check()
    check_untouched(small, steady)
