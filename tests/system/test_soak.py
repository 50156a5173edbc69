# SPDX-License-Identifier: Apache-2.0
"""Four hours of one node on which everything happens at random: pods, images, indexes, DaemonSets and settings come and go, programs
are killed and frozen, the clock jumps, the disk is full. At each check the system matches the manifests, and no figure
grows.

MAINSTAY_SOAK_MINUTES sets the duration, MAINSTAY_SEED repeats a run; both are printed at its end."""

import collections
import os
import random
import subprocess
import time

import clocked
import network
import pytest
import soak_inputs
import soak_pods
from soak_faults import Clock, Configuration, Disk, Processes, Sessions
from soak_checks import SoakChecks, slopes
from soak_pods import SoakPod

MINUTES = float(os.environ.get("MAINSTAY_SOAK_MINUTES", "240"))
STIRRED_SECONDS = 60  # the approximate time of disturbances before each check
CHECKS_OF_A_MEASUREMENT = 4
LAST_STEPS = 40  # printed if the test fails
STEADY = {"steady-idle": {}, "steady-counter": {"kind": "counter"}, "steady-probes": {"probes": True},
          "steady-volumes": {"objects": True, "disk": True}, "steady-sides": {"init": True, "side": True},
          "steady-network": {"network": True}, "mortal-network": {"network": True, "side": True},
          "mortal-counter": {"kind": "counter"}, "mortal-idle": {"init": True, "probes": True, "objects": True}}


class SoakNode(clocked.Clocked, network.NetworkNode):
    """A node whose clock the test sets, in a network namespace, with a small file system for its state."""

    def __init__(self, archive, library):
        self.library = library
        super().__init__(archive=None, start=False)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m,nr_inodes=20000", "tmpfs", self.state], check=True)
        self.own_mounts.add(self.state)
        self.archive = archive
        self.preload(archive)

    def write_config(self, **fields):
        """Writes the configuration by rename, because an agent that starts in the meantime would refuse an empty
        file."""
        path, self.config = self.config, self.config + ".new"
        super().write_config(**fields)
        os.rename(self.config, path)
        self.config = path

    def environment(self):
        """The address sanitizer returns freed memory, so that memory can be compared. It does not look for leaks at the
        end of a program: a child does that, and a program whose child is killed during the search would wait
        forever."""
        given = super().environment()
        return {**given, "ASAN_OPTIONS": given["ASAN_OPTIONS"] + ":detect_leaks=0:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"}


class Soak:
    """Everything that happens to the node, and its required effects."""

    def __init__(self, node, seed, directory):
        self.node, self.seed, self.random = node, seed, random.Random(seed)
        self.counts = collections.Counter()
        self.story = collections.deque(maxlen=LAST_STEPS)
        self.measured, self.calm = [], []
        self.may_kill_agent = True
        self.spared, self.names = set(), {}
        self.steady = {name: SoakPod(node, name, **{"kind": "idle", **fields}) for name, fields in STEADY.items()}
        self.disk, self.clock = Disk(self), Clock(self)
        self.sessions, self.processes, self.configuration = Sessions(self), Processes(self), Configuration(self)
        self.archives, self.registry = soak_inputs.Archives(self, directory), soak_inputs.Registry(self, node.archive)
        self.source, self.objects = soak_inputs.Source(self, directory), soak_inputs.Objects(self)
        self.churn, self.daemons = soak_inputs.Churn(self), soak_inputs.Daemons(self)
        self.checks = SoakChecks(self)
        # Operations that can make others wait come first.
        self.disturbances = [self.processes, self.disk, self.clock, self.registry, self.sessions, self.archives, self.source,
                             self.objects, self.daemons, self.configuration, self.churn]

    # Requests of the disturbances

    def count(self, what, number=1):
        self.counts[what] += number

    def some_image(self):
        names = [None, None, self.archives.some_name(), self.registry.some_name()]
        return self.random.choice(names)

    def all_pods(self):
        return [*self.steady.values(), *self.churn.pods.values()]

    def spared_names(self):
        """Pods that no kill and no edit restarts."""
        return [*(name for name in self.steady if name.startswith("steady")), "daemon-steady", "indexed-steady"]

    def excuse(self, words):
        """The pod in whose directory a process worked may restart; if that pod is unknown, each pod may."""
        names = [name for uid, name in self.names.items() if any(uid in word for word in words)]
        for pod in self.all_pods():
            if not names or f"{pod.name}-{self.node.node_name}" in names:
                pod.excuse()

    def is_answering(self):
        if self.node.agent.poll() is not None or not self.node.is_ready():
            return False
        self.names = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in self.node.pods()}
        return True

    def write_config(self, **fields):
        mainstay = {"source": self.source.settings(), "insecureRegistries": [self.registry.server.host],
                    "nodeLabels": {"role": self.daemons.role}}
        self.node.write_config(**{"mainstay": mainstay, "containerLogMaxSize": "32Ki", "containerLogMaxFiles": 10,
                                  **self.configuration.fields, **fields})

    # The steps of the test

    def settle(self):
        for disturbance in self.disturbances:
            getattr(disturbance, "settle", lambda: None)()

    def clear(self):
        self.churn.remove_all()
        self.source.remove_all()

    def step(self):
        actions = [action for disturbance in self.disturbances for action in disturbance.actions()]
        (action,) = self.random.choices([action for _, action in actions], [weight for weight, _ in actions])
        self.story.append(f"{time.strftime('%T')} {action.__self__.__class__.__name__}.{action.__name__}")
        action()
        assert self.node.agent.poll() is None, self.node.describe_agent_exit()
        doubled = {key: versions for key, versions in soak_pods.find_processes(self.node).items() if len(versions) > 1}
        assert not doubled, f"containers run twice: {doubled}"

    def stir(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.step()
            time.sleep(self.random.random() * self.random.choice([0.05, 0.3, 1.5]))

    def settle_and_check(self):
        start = time.monotonic()
        self.checks.check()
        self.count("checks")
        print(f"{time.strftime('%T')} check {self.counts['checks']}: settled in {time.monotonic() - start:.0f} s", flush=True)
        if self.counts["checks"] % CHECKS_OF_A_MEASUREMENT == 1:
            self.measure()

    def measure(self):
        figures = self.checks.measure()
        self.measured.append(figures)
        if not self.may_kill_agent:
            self.calm.append(figures)
        print(figures, flush=True)

    def run(self, minutes):
        """Runs the test. In the second half the agent is not restarted, so that a leak shows."""
        start = time.monotonic()
        end = start + minutes * 60
        self.checks.check()
        self.stir(STIRRED_SECONDS)  # tables of a fixed size fill up
        self.settle_and_check()
        while time.monotonic() < end:
            if self.may_kill_agent and time.monotonic() > (start + end) / 2:
                self.may_kill_agent = False
                self.node.restart()
            self.stir(STIRRED_SECONDS)
            self.settle_and_check()
        self.measure()

    def report(self):
        print(f"MAINSTAY_SEED={self.seed} MAINSTAY_SOAK_MINUTES={MINUTES:g}: "
              f"{', '.join(f'{count} {what}' for what, count in sorted(self.counts.items()))}")
        if self.measured:
            for name, number in self.measured[0].items():
                print(f"{name}: {number} at first, {self.measured[-1][name]} at last")

    def finish(self):
        """Removes the source from the node, so that its pods stop, and finishes."""
        try:
            self.settle()
            self.node.write_config()
            self.node.restart()
        finally:
            self.registry.stop()
            self.source.stop()


@pytest.fixture(name="soak")
def fixture_soak(archive, tmp_path):
    seed = int(os.environ.get("MAINSTAY_SEED") or random.SystemRandom().randrange(1 << 32))
    node = SoakNode(archive, clocked.build(tmp_path))
    try:
        with network.entered(node.space):  # the servers are in it as well
            soak = Soak(node, seed, str(tmp_path))
            soak.settle()
            node.start()
            yield soak
            soak.finish()
    finally:
        node.finish()


@pytest.mark.long
def test_node_matches_the_manifests_while_random_faults_occur(soak):
    try:
        soak.run(MINUTES)
        grown = slopes(soak.measured, soak.calm)
        assert not grown, "\n".join(["figures grow:", *grown, "what is new:", *soak.checks.surplus()])
    except BaseException:
        print("\n".join(["the last steps:", *soak.story]))
        raise
    finally:
        soak.report()
