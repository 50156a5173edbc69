# SPDX-License-Identifier: Apache-2.0
"""A node whose network plugin has not written its configuration yet, compared with one of the real kubelet and
containerd."""

import json
import os

import network
import pytest
import specs
from kubelet_node import KubeletNode
from node import ClusterNode
from real_kubelet import Missing
from world import wait

NAME = "10-flannel.conflist"


class WaitingNode(ClusterNode):
    def write_config(self, **fields):
        self.plugins = None
        super().write_config(**fields)

    def write_network(self):
        self.configure(network.chain(self.ipam, network.PORTMAP, network.FIREWALL), NAME)

    def remove_network(self):
        os.unlink(os.path.join(self.cni, NAME))


class WaitingKubelet(KubeletNode):
    def configure_network(self):
        self.cni = os.path.join(self.directory, "cni")
        os.mkdir(self.cni)

    def write_network(self):
        with open(os.path.join(self.cni, NAME + ".new"), "w", encoding="utf-8") as file:
            json.dump(network.chain(os.path.join(self.directory, "ipam"), network.PORTMAP, network.FIREWALL), file)
        os.rename(file.name, os.path.join(self.cni, NAME))

    def remove_network(self):
        os.unlink(os.path.join(self.cni, NAME))

    def wait_node_ready(self, deadline=60.0):
        """Returns at once if the test has not written a configuration, because the node cannot become ready then."""
        return super().wait_node_ready(deadline) if os.path.exists(os.path.join(self.cni, NAME)) else None


@pytest.fixture(name="nodes")
def fixture_nodes(plane, shared):
    nodes = []
    try:
        nodes.append(WaitingNode(plane, archive=shared["archive"], start=False))
        nodes[0].start()
        try:
            nodes.append(WaitingKubelet(plane, [shared["archive"]]))
        except Missing as missing:
            pytest.fail(str(missing))
        yield nodes
    finally:
        for node in nodes:
            node.finish()


def ready_of(node):
    found = node.condition()
    return found.get("status"), found.get("reason"), found.get("message")


def taints_of(node):
    """The taints that keep the scheduler away; the controller manager decides when others follow."""
    return sorted(taint["key"] for taint in node.node()["spec"].get("taints", []) if taint["effect"] == "NoSchedule")


def waits(pod):
    return pod["status"].get("phase") == "Pending" and pod["status"].get("containerStatuses")


def test_node_without_a_network_has_the_same_conditions_as_a_kubelet(nodes):
    for node in nodes:
        wait(lambda node=node: ready_of(node)[0] == "False" and taints_of(node) and "CSINode" not in ready_of(node)[2],
             lambda node=node: f"not ready: {node.node()}\n{node.said()[-3000:]}", 60)
        node.bind("web", hostNetwork=False, tolerations=[{"operator": "Exists"}])
        node.bind("host", hostNetwork=True, tolerations=[{"operator": "Exists"}])
        node.wait_api_running("host")
        node.wait_api("web", waits, "waits")
        wait(lambda node=node: node.events("web", "NetworkNotReady"), lambda node=node: f"an event: {node.events('web')}", 60)
    ours, kubelets = ({"ready": ready_of(node), "taints": taints_of(node),
                       "events": {(event["type"], event["reason"], event["message"]) for event in node.events("web")},
                       "reason": node.read("pods", "web")["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]}
                      for node in nodes)
    assert ours == kubelets
    for node in nodes:
        node.write_network()
        node.wait_api_running("web", 120)
        wait(lambda node=node: ready_of(node)[0] == "True" and not taints_of(node), lambda node=node: f"ready: {node.node()}", 120)
        node.remove_network()
        wait(lambda node=node: ready_of(node)[0] == "False", lambda node=node: f"not ready: {node.node()}", 120)
        assert node.read("pods", "web")["status"]["phase"] == "Running"
    assert ready_of(nodes[0]) == ready_of(nodes[1]) == kubelets["ready"]
    nodes[1].write_network()  # without one containerd does not remove pods


def test_node_becomes_ready_when_a_daemonset_installs_the_network_plugin(plane, shared):
    """The plugin is like flannel's: a DaemonSet in the host network, whose init container copies the configuration to
    the node."""
    node = WaitingNode(plane, archive=shared["archive"], start=False)
    try:
        node.start()
        chain = json.dumps(network.chain(node.ipam, network.PORTMAP, network.FIREWALL))
        node.create("ConfigMap", "cni", data={"cni-conf.json": chain})
        node.workload("Deployment", "web", specs.container())
        mounts = [specs.mount("cni", "/etc/cni/net.d"), specs.mount("config", "/etc/kube-flannel")]
        node.workload("DaemonSet", "flannel", template={
            "hostNetwork": True, "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
            "initContainers": [specs.container("install-cni", f"cp -f /etc/kube-flannel/cni-conf.json /etc/cni/net.d/{NAME}",
                                               volumeMounts=mounts)],
            "volumes": [specs.host_path("cni", node.cni), {"name": "config", "configMap": {"name": "cni"}}]})
        pod, = node.wait_pods("web", 1)
        assert pod["status"]["podIP"].startswith("10.213."), pod["status"]
        node.wait_node_ready()
    finally:
        node.finish()
