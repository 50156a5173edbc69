# SPDX-License-Identifier: Apache-2.0
"""A node that has joined the test's API server."""

import contextlib
import json
import os

import api_access
import harness
import world
from harness import NODE_NAME
from world import wait


NETWORK = {"cniVersion": "1.0.0", "name": "cluster", "plugins": [{"type": "not-installed"}]}


class Member(harness.Node):
    def __init__(self, api, archive=None, config=None, start=True, store=None, **settings):
        self.api = api
        super().__init__(archive, config, start=False, store=store)
        self.kubeconfig = os.path.join(self.directory, "kubeconfig")
        api.kubeconfig(self.kubeconfig, node=NODE_NAME)
        fields = dict(config or {})
        fields["mainstay"] = {**fields.get("mainstay", {}), "kubeconfig": self.kubeconfig, **settings}
        self.write_config(**fields)
        if start:
            self.start()

    def write_config(self, **fields):
        """A node that has joined is ready once a network plugin has written its configuration."""
        self.cni = os.path.join(self.directory, "cni")
        if not os.path.isdir(self.cni):
            os.mkdir(self.cni)
            with open(os.path.join(self.cni, "10-cluster.conflist"), "w", encoding="utf-8") as file:
                json.dump(NETWORK, file)
        super().write_config(**{**fields, "mainstay": {"cniConfDir": self.cni, **fields.get("mainstay", {})}})

    def bind(self, name, *containers, namespace="default", **spec):
        """Creates a pod that is bound to this node; returns the server's object."""
        pod = harness.specs.pod(name, *containers, **spec)
        return self.api.pod(name, NODE_NAME, harness.specs.IMAGE, namespace,
                            **{key: value for key, value in pod["spec"].items() if key != "nodeName"})

    def reported(self, name, namespace="default"):
        """The pod at the server, or None."""
        return self.api.get("pods", namespace, name)

    def wait_reported(self, name, predicate, what, deadline=world.DEADLINE, namespace="default"):
        """Waits until the pod at the server is in this state; returns it."""
        def find_reported_pod():
            pod = self.reported(name, namespace)
            return pod if pod and predicate(pod) else None
        return wait(find_reported_pod, lambda: f"the server has {name}: {what}; it has:\n{self.reported(name, namespace)}\n"
                                  f"the agent said:\n{self.said()[-4000:]}", deadline)

    def wait_reported_phase(self, name, phase, deadline=world.DEADLINE):
        return self.wait_reported(name, lambda pod: pod["status"].get("phase") == phase, f"is {phase}", deadline)

    def wait_reported_gone(self, name, deadline=world.DEADLINE):
        wait(lambda: self.reported(name) is None, lambda: f"{name} is gone from the server; it is {self.reported(name)}\n"
                                                      f"the agent said:\n{self.said()[-4000:]}", deadline)

    def remove_all(self):
        self.api.behave()
        if self.api.listener is None:
            self.api.start()
        for pod in self.api.all("pods"):
            metadata = pod["metadata"]
            if "kubernetes.io/config.mirror" not in metadata.get("annotations", {}):
                with contextlib.suppress(api_access.Refusal):  # its owner has deleted it
                    self.api.delete("pods", metadata["namespace"], metadata["name"], grace=1)
        return super().remove_all()
