# SPDX-License-Identifier: Apache-2.0
"""A node whose programs fail or die at failpoints (common/failpoint.h), and the loop that restarts its agent."""

import http.client
import json
import os
import struct
import subprocess
import sys

import harness
from member import Member
from network import NetworkNode

TEXT_SIZE = 4096
LINES_MAX = 64


def names():
    """'PROGRAM:NAME' of each failpoint."""
    listed = subprocess.run([sys.executable, os.path.join(harness.TOP, "tests", "failpoints"), harness.BUILD], check=True,
                            text=True, stdout=subprocess.PIPE)
    return listed.stdout.splitlines()


class Failing:
    """A mixin for a Node. Nothing fails until a failpoint is armed. An agent that has died is started again, as by
    systemd."""

    n_deaths = 0

    @property
    def failpoints(self):
        return os.path.join(self.directory, "failpoints")

    def environment(self):
        if not os.path.exists(self.failpoints):
            self.arm({})
        return {**super().environment(), "MAINSTAY_FAILPOINTS": self.failpoints}

    def arm(self, terms):
        """Sets the action of each failpoint: {"mainstayd:file.rename": "1*panic"}. The processes have the file mapped,
        so it is overwritten in place."""
        text = "".join(f"{name}={term}\n" for name, term in terms.items()).encode()
        assert len(text) < TEXT_SIZE and len(terms) <= LINES_MAX
        fd = os.open(self.failpoints, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(fd, bytes(TEXT_SIZE + 4 * LINES_MAX))
        os.pwrite(fd, text, 0)
        os.close(fd)

    def hits(self):
        """The number of times that each armed failpoint was passed."""
        with open(self.failpoints, "rb") as file:
            text = file.read(TEXT_SIZE).rstrip(b"\0").decode()
            counts = struct.unpack(f"{LINES_MAX}I", file.read(4 * LINES_MAX))
        return {line.split("=")[0]: count for line, count in zip(text.splitlines(), counts)}

    def revive(self):
        """Starts the agent again if it was killed by SIGKILL; every other death is an error."""
        status = self.agent.poll()
        if status is not None:
            assert status in (-9, 137), self.describe_agent_exit()
            self.n_deaths += 1
            self.start(ready=False)

    def is_ready(self):
        self.revive()
        try:
            return super().is_ready()
        except AssertionError:  # it has died in the meantime
            return False

    def get(self, path):
        self.revive()
        try:
            return super().get(path)
        except (OSError, AssertionError, http.client.HTTPException):
            self.revive()
            return 503, ""

    def cli(self, *words, **options):
        self.revive()
        return super().cli(*words, **options)

    def pods(self):
        """The pods of the agent; while it is not running, those of its last response."""
        status, body = self.get("/pods")
        return self.parse_pods(body) if status == 200 else [{"metadata": {"name": "", "namespace": ""}, "status": {}}]

    @staticmethod
    def parse_pods(body):
        return json.loads(body).get("items") or []


class FailingNode(Failing, harness.Node):
    pass


class FailingNetworkNode(Failing, NetworkNode):
    pass


class FailingMember(Failing, Member):
    pass
