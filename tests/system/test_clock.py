# SPDX-License-Identifier: Apache-2.0
"""Somebody sets the machine's clock while the agent counts: what was to last seconds lasts seconds."""

import os
import subprocess
import time

import harness
import pytest
import specs
import world
from test_daemon_taints import LEAVE, patient
from test_daemonsets import init_of, pods_of, wait_daemon, wait_none
from test_rollouts import logs, surge, told, wait_version
from world import wait

HOUR = 3600


class ClockNode(harness.Node):
    """Its agent has a clock of its own, which set_clock() sets forward or back."""

    def __init__(self, archive, library):
        self.library = library
        super().__init__(archive, start=False)
        self.clock = os.path.join(self.directory, "clock")
        self.set_clock(0)
        self.start()

    def environment(self):
        environment = super().environment()
        return {**environment, "LD_PRELOAD": self.library, "MAINSTAY_TEST_CLOCK": self.clock,
                "ASAN_OPTIONS": environment["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}

    def cli(self, *words, **options):
        environment = harness.Node.environment(self)
        return subprocess.run([harness.program("mainstay"), "--socket", self.socket, *words], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, env=environment, **options)

    def set_clock(self, seconds):
        with open(self.clock + ".new", "w", encoding="utf-8") as file:
            file.write(f"{seconds}\n")
        os.rename(self.clock + ".new", self.clock)


@pytest.fixture(scope="module", name="library")
def fixture_library(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("clock") / "shift-clock.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shift-clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", path, source], check=True)
    return path


@pytest.fixture(name="clocked")
def fixture_clocked(archive, library):
    node = ClockNode(archive, library)
    yield node
    node.finish()


def think(node, name):
    """Makes the agent decide on all anew."""
    node.launch(specs.pod(name))


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
def test_tolerated_seconds_are_seconds(clocked, shift):
    clocked.drop(patient("patient", 8))
    pid = init_of(clocked, wait_daemon(clocked, "patient"))
    clocked.write_config(registerWithTaints=[LEAVE])
    wait(lambda: "other labels or taints" in clocked.said(), "the taint is seen")
    begun = time.monotonic()
    clocked.set_clock(shift)
    think(clocked, "think")
    stamp = time.strptime(clocked.pod("think")["status"]["startTime"], "%Y-%m-%dT%H:%M:%SZ")
    assert abs(abs(time.mktime(stamp) - time.timezone - time.time()) - HOUR) < 60, "the agent's clock is another"
    if time.monotonic() - begun < 6:
        assert world.is_alive(pid), "an hour of the clock is not an hour"
    wait_none(clocked, "patient")
    assert 6 < time.monotonic() - begun < 40


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
def test_a_surge_goes_on_in_its_time(clocked, shift):
    clocked.drop(logs("1", **surge(5)))
    pid = init_of(clocked, wait_version(clocked, "1"))
    clocked.drop(logs("2", **surge(5)))
    wait(lambda: len(pods_of(clocked, "logs")) == 2 and all(map(harness.is_running, pods_of(clocked, "logs"))),
         "both run")
    begun = time.monotonic()
    think(clocked, "before")
    clocked.set_clock(shift)
    think(clocked, "after")
    wait_version(clocked, "2")
    assert 3 < time.monotonic() - begun < 30
    assert not world.is_alive(pid)


def test_a_clock_that_goes_forward_rolls_nothing_back(clocked):
    deadline = {"metadata": {"annotations": {"mainstay.dev/progress-deadline-seconds": "600"}}}
    clocked.drop(logs("1", **deadline))
    wait_version(clocked, "1")
    wait(lambda: told(clocked, "get", "ds", "logs", "--no-headers").split()[5] == "1", "it is available")
    slow = {"readinessProbe": {"exec": {"command": ["false"]}}}
    daemonset = logs("2", **deadline)
    daemonset["spec"]["template"]["spec"]["containers"][0].update(slow)
    clocked.drop(daemonset)
    wait_version(clocked, "2")
    clocked.set_clock(HOUR)
    think(clocked, "think")
    assert "Rolled back" not in clocked.said()
    wait_version(clocked, "2")
