# SPDX-License-Identifier: Apache-2.0
"""The removal of a pod's state while a child of the agent syncs it."""

import fcntl
import os

import failing
import pytest
import specs
import world

SYNC = "mainstayd:sync.linked"


@pytest.fixture(name="node")
def fixture_node(make_failing):
    return make_failing(failing.FailingNode)


def expect_no_complaint(node):
    said = node.said()
    for complaint in ("FailedKillPod", "Directory not empty", "Cannot sync files"):
        assert complaint not in said + node.cli("get", "events").stdout, said


def state_of(node, name):
    return os.path.join(node.state, "pods", node.pod(name)["metadata"]["uid"])


def test_a_pod_whose_state_is_being_synced_is_removed_without_an_error(node):
    """The child is held between creating the link and renaming it."""
    node.arm({SYNC: "1*sleep(3000)"})
    node.drop(specs.script_pod("done", "exit 0", restartPolicy="Never"))
    node.wait_phase("done", "Succeeded")
    world.wait(lambda: node.hits()[SYNC] > 0, "the child has created its link")
    node.remove("done")
    node.wait_gone("done")
    node.drop(specs.script_pod("next", "exit 0", restartPolicy="Never"))
    world.wait(lambda: node.hits()[SYNC] > 1, "the next child has started: the result of the first is known")
    expect_no_complaint(node)


def test_a_sync_that_hangs_does_not_keep_a_pod_from_being_removed(node):
    node.drop(specs.script_pod("done", "exit 0", restartPolicy="Never"))
    node.wait_phase("done", "Succeeded")
    directory = state_of(node, "done")
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    node.remove("done")
    node.wait_gone("done")
    world.wait(lambda: not os.path.exists(directory), "the state is removed")
    os.close(lock)
    expect_no_complaint(node)
