# SPDX-License-Identifier: Apache-2.0
"""A node without an API server, and mainstay-api in front of it, for clients with an administrator's certificate."""

import base64
import json
import os
import re
import subprocess

import harness
import node_api
import specs
import world


class LoneApi:
    """mainstay-api in front of a node, and the output of `mainstay kubeconfig`."""

    def __init__(self, node):
        self.node = node
        self.api = node_api.NodeApi(node)
        self.admin = os.path.join(node.directory, "admin.crt")
        self.authority = os.path.join(node.directory, "authority.crt")
        self.save_kubeconfig()

    def kubeconfig(self, *arguments):
        return subprocess.run([harness.program("mainstay"), "--socket", self.node.socket, "kubeconfig", *arguments],
                              env=self.node.environment(), capture_output=True, text=True, check=True, timeout=world.DEADLINE).stdout

    def save_kubeconfig(self):
        text = self.kubeconfig()
        for member, path in (("certificate-authority-data", self.authority), ("client-certificate-data", self.admin),
                             ("client-key-data", self.admin.replace(".crt", ".key"))):
            with open(path, "wb") as file:
                file.write(base64.b64decode(re.search(member + ": (.*)", text)[1]))

    def ask(self, path, body=None, **options):
        """Sends a request and returns status and object; 'body' is an object or bytes."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        status, answer = self.api.request(path, certificate=self.admin, body=body, **options)
        return status, json.loads(answer)

    def get(self, path, **options):
        status, found = self.ask(path, **options)
        assert status == 200, found
        return found

    def names(self, path):
        return [item["metadata"]["name"] for item in self.get(path)["items"]]


class LoneNode(LoneApi):
    """A node with two pods."""

    def __init__(self, archive):
        super().__init__(harness.Node(archive))
        self.node.launch(specs.pod("web", specs.container(script="echo one; echo two; " + specs.IDLE),
                                   specs.container("second", script=specs.IDLE)))
        self.node.launch(specs.pod("solo", specs.container(script="echo alone; " + specs.IDLE)))
        self.pods = {name: self.node.pod(name)["metadata"]["name"] for name in ("solo", "web")}

    def finish(self):
        try:
            self.api.stop()
        finally:
            self.node.finish()
