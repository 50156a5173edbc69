# SPDX-License-Identifier: Apache-2.0
"""Agents whose clocks are set by the test."""

import os
import subprocess

import harness
import world
from member import Member


def build(directory):
    """Builds the library that is preloaded into the agents; returns its path."""
    path = os.path.join(str(directory), "shift-clock.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shift-clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", path, source], check=True)
    return path


class Clocked(harness.Node):
    """A mixin for a node; its 'library' must be set before the node starts."""

    library = None
    passed = 0  # seconds

    def environment(self):
        environment = super().environment()
        return {**environment, "LD_PRELOAD": self.library, "MAINSTAY_TEST_CLOCK": os.path.join(self.directory, "clock"),
                "ASAN_OPTIONS": environment["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}

    def cli(self, *words, **options):
        environment = harness.Node.environment(self)
        return subprocess.run([harness.program("mainstay"), "--socket", self.socket, *words], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=world.DEADLINE, env=environment, **options)

    def set_clock(self, seconds):
        """Sets realtime forward or back; the other clocks are unaffected."""
        self.write_clock(seconds, 0)

    def let_pass(self, seconds):
        """Advances all clocks by this time, counted from the creation of the node."""
        assert seconds >= self.passed, f"the clock cannot go back: {self.passed} seconds have passed"
        self.passed = seconds
        self.write_clock(seconds, seconds)
        self.get("/readyz")  # a request makes the agent read the clock

    def sleep(self, seconds):
        """Lets the machine sleep for this time: all clocks except the monotonic one have advanced, and no process has
        run."""
        self.write_clock(seconds, 0, seconds)
        self.get("/readyz")

    def write_clock(self, realtime, others, slept=0):
        path = os.path.join(self.directory, "clock")
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(f"{realtime} {others} {slept}\n")
        os.rename(path + ".new", path)


class ClockNode(Clocked):
    def __init__(self, archive, library, config=None, start=True):
        self.library = library
        super().__init__(archive, config, start)


class ClockedMember(Clocked, Member):
    def __init__(self, library, *arguments, start=True, **options):
        self.library = library
        super().__init__(*arguments, start=False, **options)
        if start:
            self.start()
