# SPDX-License-Identifier: Apache-2.0
"""A power cut between any two writes of the agent, in any order that the disk may choose: from every such state of its directory
a new agent runs all pods, repeats no pod that was reported as ended, and removes those whose manifests are gone."""

import glob
import os
import random
import signal

import crash_states
import harness
import pytest
import specs
import world


class Recorded:
    """The writes of an agent that ran a few pods, the images that it stored, and the manifests that were there at each line of the
    trace, with the pods whose end was synced."""

    def __init__(self, archive, directory):
        self.archive, self.images = archive, os.path.join(directory, "images")
        self.node, self.trace = harness.Node(archive, start=False), os.path.join(directory, "trace")
        words = self.node.command()
        self.node.command = lambda: crash_states.command(self.trace, *words)
        self.marks = []
        try:
            self.run()
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

    def mark(self, *manifests, ended=False):
        self.marks.append((crash_states.count_lines(self.trace), manifests, ended))

    def run(self):
        node = self.node
        steady, gone = specs.pod("steady"), specs.pod("gone")
        edited = specs.script_pod("steady", f"echo new; {specs.IDLE}")
        once = specs.script_pod("once", "exit 3", restartPolicy="Never")
        node.start()
        self.mark(steady)
        node.launch(steady)
        self.mark(steady, once)
        node.drop(once)
        node.wait_phase("once", "Failed")
        world.wait(self.is_end_synced, "the end is synced")
        self.mark(steady, once, ended=True)
        self.mark(steady, once, gone, ended=True)
        node.launch(gone)
        self.mark(steady, once, ended=True)
        node.remove("gone")
        node.wait_gone("gone")
        self.mark(edited, once, ended=True)
        node.drop(edited)
        world.wait(lambda: "new" in node.logged("steady", attempt=1), "the edited pod runs")

    def is_end_synced(self):
        calls = [call for _, call in crash_states.finished_calls(self.trace) if "fsync(" in call]
        ends = [i for i, call in enumerate(calls) if "/ends>" in call]
        return ends and any("/pods>" in call for call in calls[ends[-1]:])

    def facts(self, end):
        """What holds after so many operations."""
        line = self.log.lines[end - 1] if end else -1
        return next((row[1:] for row in reversed(self.marks) if row[0] <= line), self.marks[0][1:])

    def states(self, samples):
        """Those that differ: the tree, the manifests, and whether the end is known."""
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


@pytest.fixture(scope="module", name="recorded")
def fixture_recorded(archive, tmp_path_factory):
    return Recorded(archive, str(tmp_path_factory.mktemp("recorded")))


def boot(recorded, tree, manifests, ended):
    """A machine that starts with that disk."""
    node = harness.Node(recorded.archive, store=recorded.images, start=False)
    try:
        crash_states.write(tree, node.state)
        for manifest in manifests:
            node.drop(manifest)
        node.start()
        for manifest in manifests:
            name = manifest["metadata"]["name"]
            if name != "once":
                node.wait_running(name)
                words = manifest["spec"]["containers"][0]["command"]
                assert world.cmdline(node.init(name))[:3] == words, f"{name} is of another manifest"
                continue
            node.wait_phase(name, "Failed")
            assert node.status(name)["state"]["terminated"]["exitCode"] == 3
            assert not (ended and glob.glob(f"{node.log_directory(name)}/main/*")), "a pod that had ended ran again"
        assert len(node.pods()) == len(manifests)
        left = {pod["metadata"]["uid"] for pod in node.pods()}
        world.wait(lambda: set(os.listdir(f"{node.state}/pods")) <= left, "what belonged to no pod is removed")
    finally:
        node.finish()


@pytest.mark.parametrize("part", [pytest.param(i, marks=[] if i == 0 else pytest.mark.long) for i in range(8)])
def test_pods_run_as_they_should_from_each_state_that_a_power_cut_leaves(recorded, part):
    """The first part is a small one."""
    states = list(recorded.states(6))
    print(f"{len(recorded.log.operations)} operations, {len(states)} states")
    assert len(states) > 200
    mine = states[::len(states) // 10] if part == 0 else states[part - 1::7]
    for i, (tree, manifests, ended) in enumerate(mine):
        try:
            boot(recorded, tree, manifests, ended)
        except AssertionError as error:
            raise AssertionError(f"state {i} of {len(mine)}, with {[row['metadata']['name'] for row in manifests]}: {error}\n" +
                                 "\n".join(f"{path}: {data!r}" for path, data in tree.items())) from error
