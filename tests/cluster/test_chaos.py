# SPDX-License-Identifier: Apache-2.0
"""Two hours with 200 workloads of all kinds, while the control plane's programs and the agent are killed, etcd is
restored to an older state, and a quarter of the workloads is created, edited, scaled and deleted. Nothing is lost or
duplicated.

MAINSTAY_CHAOS_MINUTES sets the duration, MAINSTAY_SEED repeats a run; both are printed at its end."""

import collections
import os
import random
import time

from client import Refused
from control_plane import PROGRAMS
from node import LABEL, is_ready
import pytest
import specs
import world
from world import wait

MINUTES = float(os.environ.get("MAINSTAY_CHAOS_MINUTES", "120"))
CALM_SECONDS = 240  # the approximate time of disturbances before each check
SETTLED_SECONDS = 400
STEADY = {"Deployment": 60, "StatefulSet": 25, "DaemonSet": 15, "Pod": 30, "static": 20}
CHANGED = {"Deployment": 18, "StatefulSet": 8, "DaemonSet": 6, "Job": 8, "CronJob": 2, "static": 8}
PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets", "Job": "jobs", "CronJob": "cronjobs"}


def one_of(name, kind):
    return f"{kind.lower()}-{name}"


def reported_name(pod):
    """The name under which a pod is reported: a pod that this node created and the controller manager took over has the
    name of the controller's pod."""
    source = pod["metadata"]["annotations"]["mainstay.dev/source"]
    return source[len("api (as "):-1] if source.startswith("api (as ") else pod["metadata"]["name"]


def container(value="0"):
    return specs.container(env=[{"name": "V", "value": value}], resources={"requests": {"cpu": "1m"}})


def is_as_specified(kind, workload):
    spec, status = workload["spec"], workload.get("status", {})
    if kind == "CronJob":
        return True
    if kind == "Job":
        return status.get("succeeded", 0) == spec["completions"] and not status.get("failed")
    if status.get("observedGeneration") != workload["metadata"]["generation"]:
        return False
    if kind == "DaemonSet":
        return status.get("numberReady") == status.get("updatedNumberScheduled") == status["desiredNumberScheduled"] == 1
    counts = [status.get(key, 0) for key in ("replicas", "readyReplicas", "updatedReplicas")]
    return counts == [spec["replicas"]] * 3


class Chaos:
    def __init__(self, plane, node, seed):
        self.plane, self.node, self.random = plane, node, random.Random(seed)
        self.counts = collections.Counter()
        self.steady = {}
        self.has_snapshot = False

    # Workloads

    def make(self, kind, name):
        node = self.node
        if kind == "static":
            node.drop(node.static(name, container()))
        elif kind == "Pod":
            node.place(name, container())
        elif kind == "Job":
            node.create("Job", name, "batch/v1", spec={"completions": 3, "parallelism": 2, "template": {"spec": node.spec(
                specs.container(script=f"sleep {self.random.randrange(4)}"), restartPolicy="OnFailure")}})
        elif kind == "CronJob":
            node.create("CronJob", name, "batch/v1", spec={
                "schedule": "* * * * *", "successfulJobsHistoryLimit": 2, "concurrencyPolicy": "Forbid",
                "jobTemplate": {"spec": {"template": {"spec": node.spec(specs.container(script="true"), restartPolicy="OnFailure")}}}})
        else:
            extra = {"serviceName": name} if kind == "StatefulSet" else {}
            node.workload(kind, name, container(), replicas=None if kind == "DaemonSet" else 1, **extra)

    def make_all(self, kinds, prefix):
        for kind, count in kinds.items():
            for i in range(count):
                self.make(kind, one_of(f"{prefix}{i}", kind))

    def edit(self, kind, name):
        value = str(self.random.randrange(1 << 30))
        if kind == "static":
            self.node.drop(self.node.static(name, container(value)))
        elif kind in ("Job", "CronJob") or self.random.random() < 0.3:
            self.node.client.delete(PLURALS[kind], self.node.namespace, name, propagation="Background")
            self.counts["workloads deleted"] += 1
            self.make(kind, name)
        elif kind != "DaemonSet" and self.random.random() < 0.4:
            self.node.client.patch(PLURALS[kind], self.node.namespace, name, {"spec": {"replicas": self.random.randrange(3)}})
        else:
            self.node.client.patch(PLURALS[kind], self.node.namespace, name,
                                   self.node.template_patch(containers=[{"name": "main", "env": [{"name": "V", "value": value}]}]))

    # Disturbances

    def change(self):
        kind = self.random.choice(list(CHANGED))
        name = one_of(f"changed{self.random.randrange(CHANGED[kind])}", kind)
        try:
            self.edit(kind, name)
            self.counts["edits"] += 1
        except (OSError, Refused):  # the server is down, or an older state did not contain the object
            self.node.client.close()

    def kill_agent(self):
        self.node.kill9()
        time.sleep(self.random.uniform(0, 5))
        self.node.start(ready=False)
        self.counts["agent killed"] += 1

    def stop_program(self):
        name = self.random.choice(PROGRAMS)
        self.plane.stop(name, kill=self.random.random() < 0.7)
        self.counts[f"{name} killed"] += 1
        for _ in range(self.random.randrange(4)):
            self.random.choice((self.change, self.kill_agent))()
            time.sleep(self.random.uniform(0, 4))
        self.plane.start(name)

    def leave_manager_away(self):
        """Stops the controller manager for long enough that the node places the DaemonSets itself."""
        self.plane.stop("kube-controller-manager", kill=True)
        self.counts["kube-controller-manager killed"] += 1
        end = time.monotonic() + self.random.uniform(80, 150)
        while time.monotonic() < end:
            self.random.choice((self.change, self.change, self.kill_agent))()
            time.sleep(self.random.uniform(2, 8))
        self.plane.start("kube-controller-manager")

    def go_back(self):
        """etcd returns to its state of some minutes ago."""
        self.plane.start()
        self.plane.wait_ready()
        if not self.has_snapshot:
            self.plane.snapshot()
        else:
            self.plane.restore()
            self.counts["older states"] += 1
        self.has_snapshot = not self.has_snapshot

    def disturb(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            action = self.random.choices((self.change, self.kill_agent, self.stop_program, self.leave_manager_away, self.go_back),
                                         (12, 4, 4, 0.4, 0.6))[0]
            action()
            self.plane.revive()
            time.sleep(self.random.uniform(0, 3))

    # Invariants

    def find_unsettled(self):
        """The deviations that are left; empty if there are none."""
        node = self.node
        found = [f"{kind} {one['metadata']['name']}: {one.get('status')}" for kind, plural in PLURALS.items()
                 for one in node.client.all(plural, node.namespace) if not is_as_specified(kind, one)]
        pods = node.client.all("pods", node.namespace)
        found += [f"pod {pod['metadata']['name']}: {pod['status']}" for pod in pods
                  if "deletionTimestamp" in pod["metadata"] or not (is_ready(pod) or pod["status"].get("phase") == "Succeeded")]
        here = {reported_name(pod) for pod in node.pods()}
        there = {pod["metadata"]["name"] for pod in pods}
        # An older state may contain pods that have completed, and that the node no longer knows.
        completed = {pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Succeeded"}
        running = [pod for pod in node.pods() if pod["status"].get("phase") == "Running"]
        if here - there or there - here - completed:
            found.append(f"only here: {here - there}; only at the server: {there - here - completed}")
        if len(node.shims()) != len(running):
            found.append(f"{len(node.shims())} shims of {len(running)} pods that run")
        return found

    def wait_settled(self):
        self.plane.make_whole()
        if self.node.agent.poll() is not None:
            self.node.start()
        self.node.client.close()
        wait(lambda: not self.find_unsettled(),
             lambda: f"everything is as specified: {self.find_unsettled()[:10]}\nthe log of the agent:\n{self.node.said()[-6000:]}",
             SETTLED_SECONDS)

    def look_at_steady(self):
        """For each pod that the test leaves alone: its UID, and its process with the time at which it started."""
        found = {}
        for pod in self.node.pods():
            name = pod["metadata"]["name"]
            if "-steady" in name:
                pid = self.node.init(name)
                found[name] = (pod["metadata"]["uid"], pid, world.start_time(pid))
        return found

    def check(self):
        self.wait_settled()
        now = self.look_at_steady()
        assert now == self.steady, f"pods that the test left alone: {set(now.items()) ^ set(self.steady.items())}"


@pytest.mark.long
def test_no_pod_is_lost_or_duplicated_while_all_components_fail(own_plane, make_own_node):
    seed = int(os.environ.get("MAINSTAY_SEED") or random.SystemRandom().randrange(1 << 32))
    node = make_own_node(config={"maxPods": 500}, daemonSetNamespaces=["*"])
    chaos = Chaos(own_plane, node, seed)
    try:
        chaos.make_all(STEADY, "steady")
        chaos.make_all(CHANGED, "changed")
        chaos.wait_settled()
        chaos.steady = chaos.look_at_steady()
        assert len(chaos.steady) == sum(STEADY.values()), f"{LABEL} selects one node: {sorted(chaos.steady)}"
        end = time.monotonic() + MINUTES * 60
        while time.monotonic() < end:
            chaos.disturb(min(CALM_SECONDS, max(end - time.monotonic(), 1)))
            chaos.check()
            chaos.counts["looks"] += 1
    finally:
        print(f"MAINSTAY_SEED={seed} MAINSTAY_CHAOS_MINUTES={MINUTES:g}: "
              f"{', '.join(f'{count} {what}' for what, count in sorted(chaos.counts.items()))}")
