# SPDX-License-Identifier: Apache-2.0
"""Edits of every kind, deletions and deaths in any order: at no time does a container run twice, and in the end the
last manifest runs."""

import os
import random
import time

import pytest
import specs
import world
from harness import is_running
from network import NetworkNode

PODS = ["a", "b", "c"]
CONTAINERS = ["first", "side", "main", "other"]
STEPS = 60


def mark(node, pod, container):
    """A mark that is in the command line of the container's first process, and in no other."""
    return f"{os.path.basename(node.directory)}/{pod}/{container}/"


def words_of(pid, ours):
    """The text after the mark, or None."""
    words = world.cmdline(pid) or []
    return words[-1].split(ours)[1].split(";")[0] if words[0:1] == ["/bin/sh"] and ours in words[-1] else None


def running(node, pod, container):
    """The words of all first processes of the container that run at one time; their forked children have the same
    command line until they execute a program."""
    ours = mark(node, pod, container)
    found = {pid: words for pid in world.pids() if (words := words_of(pid, ours))}
    firsts = [pid for pid in found if int(world.status(pid, "PPid") or 0) not in found]
    # One may have ended, and the next started, during the scan.
    return [found[pid] for pid in firsts if words_of(pid, ours)]


class Storm:
    """Three pods that are edited continuously, and the last words of their files."""

    def __init__(self, node, seed, has_network):
        self.node, self.random, self.has_network = node, random.Random(seed), has_network
        self.number = 0
        self.states = {pod: self.default_settings() for pod in PODS}
        self.story = []

    @staticmethod
    def default_settings():
        return {"words": dict.fromkeys(CONTAINERS, 0), "label": 0, "memory": "64Mi", "ipc": False, "image": None,
                "deaf": False, "volume": None, "hook": False, "probe": False, "ends": False}

    def container(self, pod, name, state):
        end = "exit 0" if name == "first" else "sleep 0.3; exit 1" if state["ends"] and name == "other" else \
            "trap '' TERM; sleep 100000 & wait" if state["deaf"] else specs.IDLE
        fields = {"resources": {"requests": {"memory": "8Mi"}, "limits": {"memory": state["memory"]}}}
        if state["image"] and name == "main":
            fields["image"] = state["image"]
        if state["volume"] and name == "main":
            fields["volumeMounts"] = [specs.mount("v", "/v")]
        if state["hook"] and name in ("main", "side"):
            fields["lifecycle"] = {"preStop": {"exec": {"command": ["/bin/sleep", "0.3"]}},
                                   "postStart": {"exec": {"command": ["/bin/true"]}}}
        if state["probe"] and name == "main":
            fields["livenessProbe"] = {"exec": {"command": ["/bin/false"]}, "periodSeconds": 1, "failureThreshold": 2,
                                       "terminationGracePeriodSeconds": 1}
        if name == "side":
            fields["restartPolicy"] = "Always"
        return specs.container(name, f": {mark(self.node, pod, name)}{state['words'][name]}; {end}", **fields)

    def manifest(self, pod):
        state = self.states[pod]
        made = [self.container(pod, name, state) for name in CONTAINERS]
        volumes = {"volumes": [{"name": "v", "configMap": {"name": state["volume"]}}]} if state["volume"] else {}
        return specs.pod(pod, *made[2:], initContainers=made[:2], hostIPC=state["ipc"],
                         hostNetwork=not self.has_network, terminationGracePeriodSeconds=1,
                         metadata={"labels": {"l": str(state["label"])}}, **volumes)

    def write(self, pod):
        self.node.drop(self.manifest(pod), f"{pod}.yaml")

    def change(self, pod):
        self.number += 1
        state = self.states[pod]
        choices = {
            "words": lambda: state["words"].update({self.random.choice(CONTAINERS): self.number}),
            "label": lambda: state.update(label=self.number),
            "memory": lambda: state.update(memory=self.random.choice(["48Mi", "64Mi", "96Mi"])),
            "ipc": lambda: state.update(ipc=not state["ipc"]),
            "image": lambda: state.update(image=self.random.choice([None, None, "docker.io/library/none:1"])),
            "deaf": lambda: state.update(deaf=not state["deaf"]),
            "volume": lambda: state.update(volume=self.random.choice([None, "settings", "absent"])),
            "hook": lambda: state.update(hook=not state["hook"]),
            "probe": lambda: state.update(probe=not state["probe"]),
            "ends": lambda: state.update(ends=not state["ends"]),
        }
        what = self.random.choice(list(choices))
        choices[what]()
        self.write(pod)
        return f"{what} of {pod}"

    def kill_one(self, pod):
        inits = [pid for pid in world.pids() if mark(self.node, pod, "")[:-1] in (world.cmdline(pid) or [""])[-1]]
        if inits:
            world.kill_all([self.random.choice(inits)])

    def kill_shim(self):
        shims = self.node.shims()
        if shims:
            world.kill_all([self.random.choice(shims)])

    def kill_everybody(self):
        world.kill_all([*self.node.shims(), self.node.agent.pid])
        self.restart()

    def remove(self, pod):
        if os.path.exists(self.node.path(f"{pod}.yaml")):
            self.node.remove(f"{pod}.yaml")

    def step(self):
        pod = self.random.choice(PODS)
        actions = [
            (10, lambda: self.change(pod)),
            (2, lambda: self.node.write("spec: [", f"{pod}.yaml")),
            (2, lambda: self.remove(pod)),
            (2, lambda: self.write(pod)),
            (2, lambda: self.node.cli("delete", "pod", pod, *self.random.choice([[], ["--now"]]))),
            (4, self.restart),
            (1, self.kill_shim),
            (1, self.kill_everybody),
            (2, lambda: self.kill_one(pod)),
            (1, lambda: self.node.drop(self.settings(), "settings.yaml")),
            (1, lambda: self.remove("settings")),
        ]
        weights = [weight for weight, _ in actions]
        action = self.random.choices(range(len(actions)), weights)[0]
        said = actions[action][1]()
        self.story.append(f"{action} {pod} {said if isinstance(said, str) else ''}")

    def restart(self):
        self.node.kill9()
        if self.random.random() < 0.5:
            self.change(self.random.choice(PODS))
        self.node.start(ready=False)
        world.wait(self.node.is_ready, "the agent is ready")

    def settings(self):
        self.number += 1
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"k": str(self.number)}}

    def check_pods(self):
        for pod in PODS:
            for container in CONTAINERS:
                found = running(self.node, pod, container)
                assert len(found) <= 1, f"{pod}/{container} runs more than once: {found}; {self.story[-10:]}"


@pytest.fixture(name="make_any_node")
def fixture_make_any_node(archive, make_node):
    made = []

    def make(has_network, **options):
        if not has_network:
            return make_node(**options)
        made.append(NetworkNode(archive, **options))
        return made[-1]

    yield make
    for node in made:
        node.finish()


@pytest.mark.slow
@pytest.mark.parametrize("has_network", [False, True], ids=["node", "own"])
def test_edits_and_kills_converge_on_the_last_manifest(make_any_node, has_network):
    seed = int(os.environ.get("MAINSTAY_SEED", random.randrange(2**32)))
    print(f"MAINSTAY_SEED={seed}")
    node = make_any_node(has_network, config={"crashLoopBackOff": {"maxContainerRestartPeriod": "1s"}})
    storm = Storm(node, seed, has_network)
    for pod in PODS:
        storm.write(pod)
    for _ in range(STEPS):
        storm.step()
        end = time.monotonic() + storm.random.random() * storm.random.choice([0.05, 0.3, 1])
        while time.monotonic() < end:
            storm.check_pods()
            time.sleep(0.02)
    node.drop(storm.settings(), "settings.yaml")
    for pod in PODS:
        storm.states[pod] = {**storm.default_settings(), "words": dict.fromkeys(CONTAINERS, "last"),
                             "ipc": storm.states[pod]["ipc"], "volume": "settings"}
        storm.write(pod)
    print("\n".join(storm.story))
    for pod in PODS:
        node.wait_pod(pod, is_running, "runs")
        for container in ("side", "main", "other"):
            world.wait(lambda: running(node, pod, container) == ["last"],
                       lambda: f"{pod}/{container} is the last one: {running(node, pod, container)}")
        node.wait_pod(pod, lambda it: all(status["ready"] for status in it["status"]["containerStatuses"]), "is ready")
    storm.check_pods()
    if has_network:
        world.wait(lambda: node.reserved() == sorted(node.address(pod) for pod in PODS),
                   lambda: f"only addresses of these pods are reserved: {node.reserved()}")
        world.wait(lambda: len(node.chains()) == len(PODS), lambda: f"no other rule is left: {node.network_leftovers()}")
