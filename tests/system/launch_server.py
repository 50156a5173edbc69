# SPDX-License-Identifier: Apache-2.0
"""mainstay-launch as its socket unit starts it, for an agent that has its programs started there."""

import os
import socket
import subprocess
import tempfile

import harness


class LaunchServer:
    """mainstay-launch with a socket in its own directory; a connection waits at the socket until the program runs."""

    def __init__(self, *options):
        self.options = options
        self.directory = tempfile.mkdtemp(prefix="mainstay-launch-")
        self.path = os.path.join(self.directory, "launch.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen([harness.program("mainstay-launch"), *self.options], stdin=self.listener)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def finish(self):
        if self.process.poll() is None:
            self.stop()
        self.listener.close()
        os.unlink(self.path)
        os.rmdir(self.directory)

    def environment(self):
        return {**os.environ, "MAINSTAY_LAUNCH_SOCKET": self.path}

    def client(self, *words, **options):
        """Starts the launch client in place of the program of that name; see subprocess.Popen."""
        return subprocess.Popen([harness.program(f"launch/{words[0]}"), *words[1:]], env={**self.environment(), **options.pop("env", {})},
                                **options)


class LaunchingNode(harness.Node):
    def __init__(self, server, *words, **options):
        self.server = server
        super().__init__(*words, **options)

    def environment(self):
        return {**super().environment(), "MAINSTAY_LAUNCH_SOCKET": self.server.path}
