# SPDX-License-Identifier: Apache-2.0
"""Nodes on a machine that systemd has booted and will shut down; a program of the test stands in for systemd and
logind."""

import os
import subprocess

import harness

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake-systemd.c")


class Systemd:
    def __init__(self, directory):
        self.library = os.path.join(directory, "fake-systemd.so")
        self.socket = os.path.join(directory, "bus")
        program = os.path.join(directory, "fake-systemd")
        for options, path in (["-shared", "-fPIC"], self.library), ([], program):
            subprocess.run(["cc", *options, "-O2", "-o", path, SOURCE, "-lsystemd", "-ldl"], check=True)
        self.process = subprocess.Popen([program, self.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # pylint: disable=consider-using-with
        self.boot()  # the program answers when it listens; an agent looks for the bus only once

    def say(self, letter):
        self.process.stdin.write(letter)
        self.process.stdin.flush()
        assert self.process.stdout.read(1) == letter

    def prepare_shutdown(self):
        self.say(b"p")

    def cancel_shutdown(self):
        self.say(b"c")

    def stop_units(self):
        """From now on only the shutdown of the machine stops the agent."""
        self.say(b"s")

    def boot(self):
        self.say(b"b")

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(60)


class BootedNode(harness.Node):
    def __init__(self, systemd, *arguments, start=True, **options):
        self.systemd = systemd
        super().__init__(*arguments, start=False, **options)
        if start:
            self.start()

    def environment(self):
        return {**super().environment(), "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={self.systemd.socket}"}

    def spawn(self, **options):
        environment = self.environment()
        environment = {**environment, "LD_PRELOAD": self.systemd.library,
                       "ASAN_OPTIONS": environment["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}
        with open(self.stderr, "a", encoding="utf-8") as stderr:
            return subprocess.Popen(self.command(), env=environment, cwd=self.directory,
                                    stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, **options)
