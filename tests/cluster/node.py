# SPDX-License-Identifier: Apache-2.0
"""A node of the cluster: an agent in a network namespace that is linked with the control plane's, and the tests'
actions at the API server: in a separate namespace for each test, with pods that only this node runs."""

import json
import os

import network
import specs
from api_certs import kubeconfig
from client import Refused
from control_plane import URL
from world import wait

LABEL = "test.mainstay.dev/node"
AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.99"
WORKLOADS = ("cronjobs", "jobs", "deployments", "statefulsets", "daemonsets", "replicasets")


class ApiNode:
    """A node as the API server shows it, and a namespace with the same name for the test's objects. The subclasses
    start the agent, and return its log with said()."""

    def join(self, plane):
        self.plane, self.client = plane, plane.client
        self.number = plane.next_number()
        self.node_name = self.namespace = f"n{self.number}"

    def make_namespace(self):
        self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        wait(lambda: self.client.get("serviceaccounts", self.namespace, "default") and
             self.client.get("configmaps", self.namespace, "kube-root-ca.crt"), "the service account of the namespace")

    # The Node

    def node(self):
        return self.client.get("nodes", None, self.node_name)

    def condition(self, kind="Ready"):
        node = self.node() or {"status": {}}
        return next((one for one in node["status"].get("conditions", []) if one["type"] == kind), {})

    def is_node_ready(self):
        return self.condition().get("status") == "True"

    def wait_node_ready(self, deadline=60.0):
        """The initial taint of a Node is also removed."""
        wait(lambda: self.is_node_ready() and not self.node()["spec"].get("taints"),
             lambda: f"a Node that is ready: {self.node()}\n{self.said()[-4000:]}", deadline)
        return self.node()

    def lease(self):
        return self.client.get("leases", "kube-node-lease", self.node_name)

    # Objects of the test

    def metadata(self, name, **fields):
        return {"name": name, "namespace": self.namespace, **fields}

    def create(self, kind, name, api_version="v1", metadata=None, **fields):
        return self.client.create({"apiVersion": api_version, "kind": kind,
                                   "metadata": self.metadata(name, **(metadata or {})), **fields})

    def spec(self, *containers, **fields):
        """The spec of a pod that only this node runs."""
        return {"terminationGracePeriodSeconds": 2, "nodeSelector": {LABEL: self.node_name},
                "containers": list(containers) or [specs.container()], **fields}

    def place(self, name, *containers, metadata=None, **fields):
        """Creates a pod that the scheduler places here."""
        return self.create("Pod", name, metadata=metadata, spec=self.spec(*containers, **fields))

    def bind(self, name, *containers, metadata=None, **fields):
        """Creates a pod that names this node, so that no scheduler is involved."""
        return self.place(name, *containers, metadata=metadata, nodeName=self.node_name, **fields)

    def workload(self, kind, name, *containers, replicas=None, template=None, **fields):
        """A controller's object with a label of its name; the content of 'template' belongs to the pods' spec."""
        spec = {"selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": self.spec(*containers, **(template or {}))},
                **({} if replicas is None else {"replicas": replicas}), **fields}
        return self.create(kind, name, "apps/v1", spec=spec)

    def template_patch(self, **fields):
        """For the pods' spec of a workload."""
        return {"spec": {"template": {"spec": fields}}}

    def static(self, name, *containers, metadata=None, **fields):
        """A manifest in the test's namespace."""
        return specs.pod(name, *containers, metadata=self.metadata(name, **(metadata or {})), **fields)

    # Objects at the server

    def read(self, plural, name):
        return self.client.get(plural, self.namespace, name)

    def api_pods(self, app=None):
        """The pods of the test that are not being deleted."""
        selectors = {"labelSelector": f"app={app}"} if app else {}
        return [pod for pod in self.client.all("pods", self.namespace, **selectors)
                if "deletionTimestamp" not in pod["metadata"]]

    def wait_for(self, plural, name, predicate, what, deadline=60.0):
        """Waits until an object meets the condition; returns it."""
        def look():
            obj = self.read(plural, name)
            return obj if obj and predicate(obj) else None
        return wait(look, lambda: f"{plural} {name}: {what}; it is\n{shown(self.read(plural, name))}\n"
                                  f"events: {self.describe_events(name)}\nthe log of the agent:\n{self.said()[-4000:]}", deadline)

    def wait_api(self, name, predicate, what, deadline=60.0):
        return self.wait_for("pods", name, predicate, what, deadline)

    def wait_api_running(self, name, deadline=60.0):
        return self.wait_api(name, is_ready, "is running and ready", deadline)

    def wait_api_phase(self, name, phase, deadline=60.0):
        return self.wait_api(name, lambda pod: pod["status"].get("phase") == phase, f"is {phase}", deadline)

    def wait_api_gone(self, name, deadline=60.0):
        wait(lambda: self.read("pods", name) is None, lambda: f"{name} is gone; it is {shown(self.read('pods', name))}\n"
                                                             f"the agent said:\n{self.said()[-4000:]}", deadline)

    def wait_pods(self, app, count, deadline=90.0):
        """Waits until the workload has exactly this number of pods, all ready; returns them."""
        def look():
            pods = self.api_pods(app)
            return [pods] if len(pods) == count and all(is_ready(pod) for pod in pods) else None
        return wait(look, lambda: f"{count} ready pods of {app}; there are\n{[shown(pod) for pod in self.api_pods(app)]}\n"
                                   f"the agent said:\n{self.said()[-4000:]}", deadline)[0]

    def events(self, name, reason=None):
        """The events of the test's objects at the server."""
        return [event for event in self.client.all("events", self.namespace,
                                                   fieldSelector=f"involvedObject.name={name}")
                if reason in (None, event["reason"])]

    def describe_events(self, name):
        return [f"{event['type']} {event['reason']}: {event['message']}" for event in self.events(name)]

    def wait_event(self, name, reason, deadline=60.0):
        return wait(lambda: self.events(name, reason), lambda: f"an event {reason} of {name}; there are "
                    f"{self.describe_events(name)}\nthe log of the agent:\n{self.said()[-4000:]}", deadline)[0]

    # The end

    def delete_all(self):
        """All objects in the test's namespace that create pods, and then the namespace."""
        for plural in WORKLOADS:
            self.client.delete(plural, self.namespace, propagation="Background")
        for name in self.names_to_delete():
            self.client.delete("pods", self.namespace, name, grace=1)
        wait(lambda: not self.names_to_delete(), lambda: f"no pods are left: {self.names_to_delete()}\n"
                                                         f"the agent said:\n{self.said()[-4000:]}", 90)

    def names_to_delete(self):
        return [pod["metadata"]["name"] for pod in self.client.all("pods", self.namespace)
                if "kubernetes.io/config.mirror" not in pod["metadata"].get("annotations", {})]

    def leave(self):
        """Removes the Node and the namespace."""
        for plural, name in (("namespaces", self.namespace), ("nodes", self.node_name)):
            try:
                self.client.delete(plural, None, name)
            except (OSError, Refused):
                pass  # the control plane may be gone


class ClusterNode(ApiNode, network.NetworkNode):
    """A node that runs the agent. The namespace 'namespace' is created and removed with it. Pods of 'bind' are bound by
    name; pods of 'place' and 'template' are placed by the scheduler or a controller, using a label that only this node
    has."""

    def __init__(self, plane, archive=None, archives=(), config=None, start=True, bootstrap=None, **settings):
        self.join(plane)
        self.settings = {"nodeLabels": {LABEL: self.node_name}, **settings}
        super().__init__(archive, config=None, start=False)
        for path in archives:
            self.preload(path)
        self.kubeconfig = os.path.join(self.directory, "kubeconfig")
        self.settings["kubeconfig"] = self.kubeconfig
        if bootstrap:
            self.settings["bootstrapKubeconfig"] = os.path.join(self.directory, "bootstrap-kubeconfig")
            kubeconfig(self.settings["bootstrapKubeconfig"], URL, plane.authority.cert, token=bootstrap)
        else:
            plane.make_kubeconfig(f"node-{self.node_name}", f"/O=system:nodes/CN=system:node:{self.node_name}",
                                  self.kubeconfig)
        self.write_config(**(config or {}))
        self.make_namespace()
        if start:
            self.start()
            self.wait_node_ready()

    def connect(self):
        self.address_of_node = self.plane.link(self.holder.pid, self.number)

    def write_config(self, **fields):
        super().write_config(**{**fields, "mainstay": {**self.settings, **fields.get("mainstay", {})}})

    def output(self, name, container="main"):
        """A container's log lines, by the pod's name in the API server."""
        status, body = self.get(f"/containerLogs/{self.namespace}/{name}/{container}")
        assert status == 200, body
        return body.splitlines()

    def pod(self, name, namespace=None):
        return super().pod(name, namespace or self.namespace)

    # The end

    def remove_all(self):
        if self.agent is None or self.agent.poll() is not None:
            self.start()
        self.delete_all()
        problems = super().remove_all()
        # A control plane that nothing stops answers each request.
        if not self.plane.is_owner and "Cannot reach the API server" in self.said():
            problems.append(f"the API server did not answer:\n{self.said()[-4000:]}")
        return problems

    def clean_up(self):
        super().clean_up()
        self.client.close()
        self.leave()


def shown(obj):
    """An object for a message, without the parts that never explain a failure."""
    if obj is None:
        return "absent"
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return json.dumps({**obj, "metadata": metadata})


def is_ready(pod):
    return pod["status"].get("phase") == "Running" and condition(pod, "Ready").get("status") == "True"


def condition(pod, kind):
    return next((one for one in pod["status"].get("conditions", []) if one["type"] == kind), {})
