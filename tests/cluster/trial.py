# SPDX-License-Identifier: Apache-2.0
"""One test on a node that the tests of its module share: its pods and objects have its name and are removed with it."""

import contextlib

import specs
from client import Refused
from harness import container_status
from node import AGNHOST
from world import wait


def agnhost(*words, **fields):
    """A container of Kubernetes' own test image."""
    return {"name": "main", "image": AGNHOST, "imagePullPolicy": "IfNotPresent", "args": list(words), **fields}


def program(*words, **fields):
    """A container that runs a program, without a shell."""
    return {**specs.container(**fields), "command": list(words)}


def value(name, text):
    return {"name": name, "value": text}


def variable(variable_name, source, **fields):
    """A variable whose value comes from another object."""
    return {"name": variable_name, "valueFrom": {source: fields}}


def field(name, path):
    return variable(name, "fieldRef", fieldPath=path)


class Trial:
    """The actions of one test; 'name' is the name of the pod and of the objects to which it refers."""

    def __init__(self, node, name):
        self.node, self.name = node, name
        self.pods, self.objects = [], []

    # Objects

    def create(self, kind, plural, name=None, **fields):
        name = name or self.name
        self.node.create(kind, name, **fields)
        self.objects.append((plural, name))
        # The node requests it by name; the server's response must not depend on which of its caches is ahead.
        wait(lambda: self.node.read(plural, name), f"{kind} {name}")

    def config_map(self, data, name=None, **fields):
        self.create("ConfigMap", "configmaps", name, data=data, **fields)

    def secret(self, data, name=None, **fields):
        self.create("Secret", "secrets", name, stringData=data, **fields)

    def patch(self, plural, patch, name=None, subresource=None):
        return self.node.client.patch(plural, self.node.namespace, name or self.name, patch, *([subresource] if subresource else []))

    # Pods

    def bind(self, *containers, name=None, **fields):
        """Creates the pod, bound to this node."""
        name = name or self.name
        self.pods.append(name)
        return self.node.bind(name, *containers, **fields)

    def refused(self, *containers, **fields):
        """The message with which the server refuses the pod."""
        try:
            self.bind(*containers, **fields)
        except Refused as refused:
            assert refused.code in (400, 403, 422), refused
            return str(refused)
        raise AssertionError("the server has accepted the pod")

    def start(self, *containers, name=None, deadline=60.0, **fields):
        """Starts a pod; returns the server's object when it runs and is ready."""
        self.bind(*containers, name=name, **fields)
        return self.node.wait_api_running(name or self.name, deadline)

    def end(self, *containers, phase="Succeeded", name=None, **fields):
        """Runs a pod that ends by itself; returns the server's object."""
        self.bind(*containers, name=name, **{"restartPolicy": "Never", **fields})
        return self.node.wait_api_phase(name or self.name, phase)

    def expect(self, lines, *containers, container="main", **fields):
        """Asserts that the pod succeeds and that its container has printed these lines, among others."""
        pod = self.end(*containers, **fields)
        lines = lines(pod) if callable(lines) else lines
        printed = self.output(container)
        missing = [line for line in lines if line not in printed]
        assert not missing, f"not printed: {missing}; printed: {printed}"
        return pod

    def output(self, container="main", name=None):
        return self.node.output(name or self.name, container)

    def wait_output(self, *lines, container="main"):
        def printed():
            with contextlib.suppress(AssertionError):
                return self.output(container)
            return []
        wait(lambda: all(line in printed() for line in lines),
             lambda: f"the lines {lines}; there are {printed()}\nthe log of the agent:\n{self.node.said()[-3000:]}")

    def exec(self, *words, container=None):
        options = ["-c", container] if container else []
        return self.node.cli("exec", "-n", self.node.namespace, *options, self.name, "--", *words).stdout

    def read(self):
        return self.node.read("pods", self.name)

    def wait(self, predicate, what, deadline=60.0):
        return self.node.wait_api(self.name, predicate, what, deadline)

    def wait_waiting(self, *reasons, container="main"):
        """Waits until the container waits for one of these reasons."""
        return self.wait(lambda pod: state(pod, container).get("waiting", {}).get("reason") in reasons, f"waits: {reasons}")

    def wait_restarts(self, count, container="main", deadline=60.0):
        return self.wait(lambda pod: status_of(pod, container).get("restartCount", 0) >= count,
                         f"{container} is restarted {count} times", deadline)

    def delete(self, name=None, grace=None):
        self.node.client.delete("pods", self.node.namespace, name or self.name, grace=grace)

    def wait_gone(self, name=None):
        self.node.wait_api_gone(name or self.name)

    # The end

    def finish(self):
        for name in self.pods:
            self.node.client.delete("pods", self.node.namespace, name, grace=0)
        for plural, name in self.objects:
            self.node.client.delete(plural, self.node.namespace, name)


def status_of(pod, container="main"):
    """The status of a container of any kind."""
    for kind in ("initContainerStatuses", "ephemeralContainerStatuses"):
        for status in pod["status"].get(kind, []):
            if status["name"] == container:
                return status
    return container_status(pod, container)


def state(pod, container="main"):
    return status_of(pod, container).get("state", {})


def terminated(pod, container="main"):
    return state(pod, container).get("terminated", {})
