# SPDX-License-Identifier: Apache-2.0
"""A power cut between any two writes of the agent, in any order that the disk may choose: from every such state of its directory
a new agent runs all pods, repeats no pod that was reported as ended, removes pods whose manifests are gone, and rolls
back a revision that is not ready in time."""

import glob
import os
import pathlib

import crash_states
import harness
import pytest
import specs
import world
from sampling import some
from test_pod_rollouts import run_good, wait_version, web


# Recorded operations

def run_pods(recorded):
    """Records pods that are added, end, are removed and are edited."""
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
    """Records an edit whose pod does not become ready in time."""
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
            made[run] = crash_states.Recorded(run, archive, str(tmp_path_factory.mktemp("recorded")))
        return made[run]
    return record


# The machine that starts with such a disk

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
    world.wait(lambda: len(node.pods()) == len(manifests), lambda: f"other pods are gone: {node.pods()}")
    left = {pod["metadata"]["uid"] for pod in node.pods()}
    world.wait(lambda: set(os.listdir(f"{node.state}/pods")) <= left, "leftovers without a pod are removed")


def expect_rollback(node, manifests, synced):
    wait_version(node, "1", rolled_back=bool(synced))
    text = [world.read(path) for path in glob.glob(f"{node.log}/pods/*/main/*.log")]
    assert synced != "rollback" or not any("bad" in lines for lines in text), "the rejected revision was tried again"


def boot(expect):
    def boot_it(recorded, tree, manifests, synced):
        node = harness.Node(recorded.archive, store=recorded.images, start=False)
        try:
            crash_states.write(tree, node.state)
            for manifest in manifests:
                node.drop(manifest)
            node.start()
            expect(node, manifests, synced)
        finally:
            node.finish()
    return boot_it


PARTS = some(range(8), 8)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.slow
def test_desired_pods_run_from_each_state_that_a_power_cut_can_leave(record, part):
    record(run_pods).try_states(6, part, boot(expect_pods))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.slow
def test_a_power_cut_neither_prevents_nor_repeats_a_rollback(record, part):
    record(run_rollback).try_states(3, part, boot(expect_rollback))
