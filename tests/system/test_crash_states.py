# SPDX-License-Identifier: Apache-2.0
"""A power cut between any two writes of the agent, in any order that the disk may choose: from every such state of its directory
a new agent runs all pods, repeats no pod that was reported as ended, removes those whose manifests are gone, and goes back from
a revision that is not ready in time."""

import glob
import os
import pathlib
import random
import signal

import crash_states
import harness
import pytest
import specs
import world
from test_pod_rollouts import run_good, wait_version, web


class Recorded:
    """The writes of an agent that ran pods, the images that it stored, and what was there at each line of the trace: the
    manifests, and what was synced by then."""

    def __init__(self, run, archive, directory):
        self.archive, self.images = archive, os.path.join(directory, "images")
        self.shared = os.path.join(directory, "shared")
        os.mkdir(self.shared)
        self.node, self.trace = harness.Node(archive, start=False), os.path.join(directory, "trace")
        words, environment = self.node.command(), self.node.environment()
        self.node.command = lambda: crash_states.command(self.trace, *words)
        # The search for leaks cannot be traced.
        self.node.environment = lambda: {**environment, "ASAN_OPTIONS": environment["ASAN_OPTIONS"] + ":detect_leaks=0"}
        self.marks = []
        try:
            self.node.start()
            run(self)
            harness.copy_tree(os.path.join(self.node.state, "images"), self.images)
            self.log = crash_states.Recording(self.node.state).read(self.trace)
        finally:
            self.end_recorder()
            self.node.finish()

    def end_recorder(self):
        """What it records continues without it."""
        for pid in world.pids():
            if world.cmdline(pid)[:1] == ["strace"] and self.trace in world.cmdline(pid):
                os.kill(pid, signal.SIGKILL)
                world.wait(lambda pid=pid: not world.is_alive(pid), "the recorder has ended")

    def mark(self, *manifests, synced=""):
        self.marks.append((crash_states.count_lines(self.trace), manifests, synced))

    def wait_synced(self, directory, file):
        """Until the last file of that name is on the disk."""
        def is_synced():
            calls = [call for _, call in crash_states.finished_calls(self.trace)]
            last = max((i for i, call in enumerate(calls) if " rename" in call and f'"{file}")' in call), default=len(calls))
            return any("fsync(" in call and f"/{directory}>" in call for call in calls[last:])
        world.wait(is_synced, lambda: f"{file} is synced")

    def facts(self, end):
        """What holds after so many operations."""
        line = self.log.lines[end - 1] if end else -1
        return next((row[1:] for row in reversed(self.marks) if row[0] <= line), self.marks[0][1:])

    def states(self, samples):
        """Those that differ: the tree, the manifests, and what was synced."""
        chance, seen = random.Random(1), set()
        for end in range(len(self.log.operations) + 1):
            for chosen in self.log.choices(end, chance, samples):
                tree = {path: data for path, data in self.log.state(end, chosen).items()
                        if not path.startswith(("images", "preload"))}
                facts = self.facts(end)
                key = repr((sorted(tree.items()), facts))
                if key not in seen:
                    seen.add(key)
                    yield tree, *facts


# What is recorded

def run_pods(recorded):
    """Pods come, end, go and are edited."""
    node = recorded.node
    steady, gone = specs.pod("steady"), specs.pod("gone")
    edited = specs.script_pod("steady", f"echo new; {specs.IDLE}")
    once = specs.pod("once", specs.container(script="exit 3"),
                     specs.container("second", "until test -e /shared/end; do sleep 0.1; done",
                                     volumeMounts=[specs.mount("shared", "/shared")]),
                     volumes=[specs.host_path("shared", recorded.shared)], restartPolicy="Never")
    recorded.mark(steady)
    node.launch(steady)
    recorded.mark(steady, once)
    node.drop(once)
    world.wait(lambda: "terminated" in node.status("once").get("state", ()), "the first container has ended")
    recorded.wait_synced("pods", "ends")
    recorded.mark(steady, once, synced="end")
    pathlib.Path(recorded.shared, "end").touch()
    node.wait_phase("once", "Failed")
    recorded.wait_synced("pods", "ends")
    recorded.mark(steady, once, synced="both")
    recorded.mark(steady, once, gone, synced="both")
    node.launch(gone)
    recorded.mark(steady, once, synced="both")
    node.remove("gone")
    node.wait_gone("gone")
    recorded.mark(edited, once, synced="both")
    node.drop(edited)
    world.wait(lambda: "new" in node.logged("steady", attempt=1), "the edited pod runs")


def run_rollback(recorded):
    """An edit whose pod does not become ready in time."""
    node, good, bad = recorded.node, web("1"), web("2", "echo bad; exit 1")
    recorded.mark(good)
    run_good(node, good)
    recorded.wait_synced("rollouts", "record")
    recorded.mark(bad, synced="good")
    node.drop(bad)
    wait_version(node, "1", rolled_back=True)
    recorded.wait_synced("rollouts", "record")
    recorded.mark(bad, synced="rollback")


@pytest.fixture(scope="module", name="record")
def fixture_record(archive, tmp_path_factory):
    made = {}

    def record(run):
        if run not in made:
            made[run] = Recorded(run, archive, str(tmp_path_factory.mktemp("recorded")))
        return made[run]
    return record


# What a machine does that starts with such a disk

def expect_pods(node, manifests, synced):
    for manifest in manifests:
        name = manifest["metadata"]["name"]
        if name != "once":
            node.wait_running(name)
            words = manifest["spec"]["containers"][0]["command"]
            assert world.cmdline(node.init(name))[:3] == words, f"{name} is of another manifest"
            continue
        node.wait_phase(name, "Failed")
        assert node.status(name)["state"]["terminated"]["exitCode"] == 3
        ran = {os.path.basename(os.path.dirname(path)) for path in glob.glob(f"{node.log_directory(name)}/*/*")}
        assert not ran & {"end": {"main"}, "both": {"main", "second"}}.get(synced, set()), "a container that had ended ran again"
    assert len(node.pods()) == len(manifests)
    left = {pod["metadata"]["uid"] for pod in node.pods()}
    world.wait(lambda: set(os.listdir(f"{node.state}/pods")) <= left, "what belonged to no pod is removed")


def expect_rollback(node, manifests, synced):
    wait_version(node, "1", rolled_back=bool(synced))
    text = [world.read(path) for path in glob.glob(f"{node.log}/pods/*/main/*.log")]
    assert synced != "rollback" or not any("bad" in lines for lines in text), "it was tried again"


def boot(recorded, expect, tree, manifests, synced):
    node = harness.Node(recorded.archive, store=recorded.images, start=False)
    try:
        crash_states.write(tree, node.state)
        for manifest in manifests:
            node.drop(manifest)
        node.start()
        expect(node, manifests, synced)
    finally:
        node.finish()


def try_states(recorded, expect, samples, part):
    """The first part is a small one."""
    states = list(recorded.states(samples))
    print(f"{len(recorded.log.operations)} operations, {len(states)} states")
    assert len(states) > 100
    mine = states[::len(states) // 10] if part == 0 else states[part - 1::7]
    for i, (tree, manifests, synced) in enumerate(mine):
        try:
            boot(recorded, expect, tree, manifests, synced)
        except AssertionError as error:
            raise AssertionError(f"state {i} of {len(mine)}, with {manifests}: {error}\n" +
                                 "\n".join(f"{path}: {data!r}" for path, data in tree.items())) from error


PARTS = [pytest.param(i, marks=[] if i == 0 else pytest.mark.long) for i in range(8)]


@pytest.mark.parametrize("part", PARTS)
def test_pods_run_as_they_should_from_each_state_that_a_power_cut_leaves(record, part):
    try_states(record(run_pods), expect_pods, 6, part)


@pytest.mark.parametrize("part", PARTS)
def test_a_power_cut_does_not_prevent_a_rollback_and_repeats_none(record, part):
    try_states(record(run_rollback), expect_rollback, 3, part)
