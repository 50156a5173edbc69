# SPDX-License-Identifier: Apache-2.0
"""The machine's clock is set while the agent runs: delays are unaffected."""

import time

import clocked as clocked_nodes
import harness
import pytest
import specs
import world
from clocked import Clocked
from test_daemonset_taints import LEAVE, daemonset_that_tolerates
from test_daemonsets import init_of, pods_of, wait_daemon, wait_none
from test_rollouts import logs, surge, run_cli, wait_version
from world import wait

HOUR = 3600


class ClockNode(Clocked):
    def __init__(self, archive, library):
        self.library = library
        super().__init__(archive)


@pytest.fixture(scope="module", name="library")
def fixture_library(tmp_path_factory):
    return clocked_nodes.build(tmp_path_factory.mktemp("clock"))


@pytest.fixture(name="clocked")
def fixture_clocked(archive, library):
    node = ClockNode(archive, library)
    yield node
    node.finish()


def think(node, name):
    """Makes the agent evaluate all pods again."""
    node.launch(specs.pod(name))


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
def test_tolerated_seconds_are_seconds(clocked, shift):
    clocked.drop(daemonset_that_tolerates("patient", 8))
    pid = init_of(clocked, wait_daemon(clocked, "patient"))
    start = time.monotonic()
    clocked.write_config(registerWithTaints=[LEAVE])
    wait(lambda: "Labels or taints of the node changed" in clocked.said(), "the taint is seen")
    clocked.set_clock(shift)
    think(clocked, "think")
    stamp = time.strptime(clocked.pod("think")["status"]["startTime"], "%Y-%m-%dT%H:%M:%SZ")
    assert abs(abs(time.mktime(stamp) - time.timezone - time.time()) - HOUR) < 60, "the agent's clock has changed"
    is_alive = world.is_alive(pid)
    assert is_alive or time.monotonic() - start > 6, "an hour of the clock is not an hour"
    wait_none(clocked, "patient")
    assert time.monotonic() - start > 6


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
def test_a_surge_continues_on_time(clocked, shift):
    clocked.drop(logs("1", **surge(5)))
    pid = init_of(clocked, wait_version(clocked, "1"))
    start = time.monotonic()
    clocked.drop(logs("2", **surge(5)))
    wait(lambda: len(pods_of(clocked, "logs")) == 2 and all(map(harness.is_running, pods_of(clocked, "logs"))),
         "both run")
    think(clocked, "before")
    clocked.set_clock(shift)
    think(clocked, "after")
    wait_version(clocked, "2")
    assert time.monotonic() - start > 4
    assert not world.is_alive(pid)


def test_a_clock_set_forward_triggers_no_rollback(clocked):
    deadline = {"metadata": {"annotations": {"mainstay.dev/progress-deadline-seconds": "600"}}}
    clocked.drop(logs("1", **deadline))
    wait_version(clocked, "1")
    wait(lambda: run_cli(clocked, "get", "ds", "logs", "--no-headers").split()[5] == "1", "it is available")
    slow = {"readinessProbe": {"exec": {"command": ["false"]}}}
    daemonset = logs("2", **deadline)
    daemonset["spec"]["template"]["spec"]["containers"][0].update(slow)
    clocked.drop(daemonset)
    wait_version(clocked, "2")
    clocked.set_clock(HOUR)
    think(clocked, "think")
    assert "Rolled back" not in clocked.said()
    wait_version(clocked, "2")
