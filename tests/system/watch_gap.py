# SPDX-License-Identifier: Apache-2.0
"""A change that comes between a command's list of the pods and its watch."""

import contextlib
import os
import shutil
import socket
import subprocess
import threading

import harness
import world


class WatchGap:
    """A proxy between the command line and the agent, which calls 'meanwhile' before it forwards the first watch."""

    def __init__(self, node, meanwhile):
        self.node, self.meanwhile, self.n_watches = node, meanwhile, 0
        self.path = os.path.join(node.directory, "gap.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        request = b""
        while b"\r\n\r\n" not in request:
            request += client.recv(4096) or b"\r\n\r\n"
        if b"watch=1" in request:
            self.n_watches += 1
            if self.n_watches == 1:
                self.meanwhile()
        with client, socket.socket(socket.AF_UNIX) as agent, contextlib.suppress(BrokenPipeError):  # it has read enough
            agent.connect(self.node.socket)
            agent.sendall(request)
            with agent.makefile("rb", 0) as source, client.makefile("wb", 0) as target:
                shutil.copyfileobj(source, target)

    def cli(self, *words):
        answer = subprocess.run([harness.program("mainstay"), "--socket", self.path, *words], check=False, text=True,
                                capture_output=True, timeout=world.DEADLINE)
        assert self.n_watches > 0, answer
        return answer


def run_while_a_pod_goes(node, name, *words):
    """Runs a command, during which a pod is removed after it has been listed; returns its output."""
    def remove():
        node.remove(name)
        node.wait_gone(name)
    return WatchGap(node, remove).cli(*words)
