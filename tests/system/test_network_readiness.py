# SPDX-License-Identifier: Apache-2.0
"""A node that has joined an API server before its network plugin has written a configuration. The plugins are scripts
with the names of published ones, and have the configurations that the manifests of those write."""

import json
import os
import re
import shutil

import pytest
import specs
import world
from harness import NODE_NAME, TOP
from test_apiserver_node import condition, wait_ready
from world import wait

NOT_READY = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady " \
    "message:Network plugin returns error: cni plugin not initialized"
WAITING = f"network is not ready: {NOT_READY}"
ADDRESS = "10.244.0.7"

PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
# File name, and the plugin that makes the pod's interface.
PUBLISHED = {
    "10-flannel.conflist": {"name": "cbr0", "cniVersion": "0.3.1", "plugins": [
        {"type": "flannel", "delegate": {"hairpinMode": True, "isDefaultGateway": True}}, PORTMAP]},
    "10-calico.conflist": {"name": "k8s-pod-network", "cniVersion": "0.3.1", "plugins": [
        {"type": "calico", "log_level": "info", "datastore_type": "kubernetes", "nodename": NODE_NAME, "mtu": 0,
         "ipam": {"type": "calico-ipam"}, "policy": {"type": "k8s"},
         "kubernetes": {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"}},
        PORTMAP, {"type": "bandwidth", "capabilities": {"bandwidth": True}}]},
    "05-cilium.conflist": {"cniVersion": "0.3.1", "name": "cilium", "plugins": [
        {"type": "cilium-cni", "enable-debug": False, "log-file": "/var/run/cilium/cilium-cni.log"}]},
    "10-kindnet.conflist": {"cniVersion": "0.3.1", "name": "kindnet", "plugins": [
        {"type": "ptp", "ipMasq": False, "mtu": 1500,
         "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state", "routes": [{"dst": "0.0.0.0/0"}],
                  "ranges": [[{"subnet": "10.244.0.0/24"}]]}}, PORTMAP]},
    "10-weave.conflist": {"cniVersion": "0.3.0", "name": "weave", "plugins": [
        {"name": "weave", "type": "weave-net", "hairpinMode": True},
        {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}]},
    "00-multus.conf": {"cniVersion": "0.3.1", "name": "multus-cni-network", "type": "multus",
                       "capabilities": {"portMappings": True},
                       "kubeconfig": "/etc/cni/net.d/multus.d/multus.kubeconfig",
                       "delegates": [{"name": "cbr0", "cniVersion": "0.3.1", "plugins": [{"type": "flannel"}, PORTMAP]}]},
}
SCRIPT = """#!/bin/sh
input=$(cat)
echo "$0 $CNI_COMMAND" >> {log}
case $CNI_COMMAND in
ADD) case $input in
     *prevResult*) echo '{{"cniVersion":"0.3.1","ips":[{{"version":"4","address":"{address}/24"}}]}}';;
     *) echo '{{"cniVersion":"0.3.1","interfaces":[],"ips":[{{"version":"4","address":"{address}/24"}}]}}';;
     esac;;
esac
"""


class JoiningNode:
    """A member without a network, and the effects of a network plugin on it."""

    def __init__(self, make_member, **options):
        self.node = make_member(start=False, **options)
        self.cni, self.bin = (os.path.join(self.node.directory, name) for name in ("net.d", "cni-bin"))
        self.log = os.path.join(self.node.directory, "plugins.log")
        os.mkdir(self.bin)
        for config in PUBLISHED.values():
            for plugin in config.get("plugins", [config]):
                self.install(plugin["type"])
        self.configure()
        self.node.start()

    def configure(self, **settings):
        self.node.write_config(mainstay={"kubeconfig": self.node.kubeconfig, "cniConfDir": self.cni,
                                         "cniBinDir": self.bin, **settings})

    def install(self, name):
        with open(os.path.join(self.bin, name), "w", encoding="utf-8") as file:
            file.write(SCRIPT.format(log=self.log, address=ADDRESS))
        os.chmod(file.name, 0o755)

    def write(self, name, text=None):
        """Writes in place, like the init containers of these plugins."""
        with open(os.path.join(self.cni, name), "w", encoding="utf-8") as file:
            file.write(json.dumps(PUBLISHED[name]) if text is None else text)

    def remove(self, name):
        os.unlink(os.path.join(self.cni, name))

    def is_ready(self):
        return (condition(self.node) or {}).get("status") == "True"

    def wait_ready(self):
        wait_ready(self.node)

    def wait_not_ready(self, message=NOT_READY):
        wait(lambda: (condition(self.node) or {}).get("status") == "False", lambda: f"not ready: {condition(self.node)}")
        found = condition(self.node)
        assert (found["reason"], found["message"]) == ("KubeletNotReady", message)

    def events(self, name):
        return [(event["type"], event["message"]) for event in self.node.api.all("events")
                if event["reason"] == "NetworkNotReady" and event["involvedObject"]["name"] == name]

    def bind(self, name, **fields):
        self.node.bind(name, **{"hostNetwork": False, **fields})

    def wait_waiting(self, name):
        self.node.wait_reported(name, lambda pod: waiting_of(pod).get("message") == WAITING, "waits for the network")
        wait(lambda: self.events(name), lambda: f"an event about {name}: {self.node.api.all('events')}")
        assert set(self.events(name)) == {("Warning", WAITING)}
        pod = self.node.reported(name)
        assert pod["status"]["phase"] == "Pending" and waiting_of(pod)["reason"] == "ContainerCreating"

    def wait_running(self, name):
        return self.node.wait_reported_phase(name, "Running")


def waiting_of(pod):
    return pod["status"].get("containerStatuses", [{}])[0].get("state", {}).get("waiting", {})


@pytest.fixture(name="joining")
def fixture_joining(make_member):
    return JoiningNode(make_member)


@pytest.mark.parametrize("name", PUBLISHED)
def test_joined_node_is_ready_when_its_plugin_has_written_its_configuration(joining, name):
    joining.wait_not_ready()
    joining.bind("web")
    joining.bind("agent-of-the-plugin", hostNetwork=True)
    joining.wait_running("agent-of-the-plugin")
    joining.wait_waiting("web")
    assert not world.read(joining.log), "no plugin has run"
    text = json.dumps(PUBLISHED[name])
    joining.write(name, text[:len(text) // 2])
    wait(lambda: f"{name}: " in joining.node.said(), "the incomplete file is noticed")
    assert not joining.is_ready()
    joining.write(name, text)
    joining.wait_ready()
    assert joining.wait_running("web")["status"]["podIP"] == ADDRESS
    first = PUBLISHED[name].get("plugins", [PUBLISHED[name]])[0]["type"]
    assert world.read(joining.log).startswith(f"{joining.bin}/{first} ADD")


@pytest.mark.parametrize("copy", ["10-mainstay.conflist", "99-mainstay.conflist"])
def test_copied_package_configuration_yields_to_that_of_a_plugin(joining, copy):
    joining.install("bridge")
    joining.install("firewall")
    joining.wait_not_ready()
    shutil.copy(os.path.join(TOP, "packaging/cni/99-mainstay.conflist"), os.path.join(joining.cni, copy))
    joining.wait_ready()
    for name in PUBLISHED:
        joining.write(name)
        pod = name.split(".")[0]
        joining.bind(pod)
        joining.wait_running(pod)
        joining.remove(name)
    assert f"{joining.bin}/bridge ADD" not in world.read(joining.log)


def test_static_pods_wait_for_the_network_too(joining):
    for pod in (specs.pod("web", hostNetwork=False), specs.pod("control-plane")):
        joining.node.drop(pod)
    joining.node.wait_running("control-plane")
    joining.wait_waiting(f"web-{NODE_NAME}")
    joining.write("10-flannel.conflist")
    joining.node.wait_running("web")


def test_running_pods_keep_running_when_the_network_configuration_is_removed(joining):
    joining.write("10-flannel.conflist")
    joining.wait_ready()
    joining.bind("web")
    joining.wait_running("web")
    pid = joining.node.init("web")
    joining.remove("10-flannel.conflist")
    joining.wait_not_ready()
    joining.bind("late")
    joining.wait_waiting("late")
    joining.node.restart()
    joining.wait_not_ready()
    assert joining.node.init("web") == pid
    assert joining.wait_running("web")["status"]["podIP"] == ADDRESS
    joining.write("10-flannel.conflist")
    joining.wait_running("late")
    joining.wait_ready()
    assert joining.node.init("web") == pid


def test_network_is_found_after_the_configuration_directory_is_replaced(joining):
    joining.wait_not_ready()
    shutil.rmtree(joining.cni)
    wait(lambda: os.path.isdir(joining.cni), "the directory is created again")
    joining.write("10-flannel.conflist")
    joining.wait_ready()


def test_edited_static_pod_keeps_running_while_its_successor_cannot_have_a_network(joining):
    joining.write("10-flannel.conflist")
    joining.node.launch(specs.pod("web", hostNetwork=False))
    pid = joining.node.init("web")
    joining.remove("10-flannel.conflist")
    joining.wait_not_ready()
    joining.node.drop(specs.pod("web", hostNetwork=False, hostname="other"))
    wait(lambda: f"cannot start: {WAITING}; the pod continues unchanged" in joining.node.said(), joining.node.said)
    assert joining.node.init("web") == pid
    joining.write("10-flannel.conflist")
    wait(lambda: joining.node.find_init("web") not in (None, pid), "it is replaced")


def test_joined_node_uses_the_built_in_network_if_configured(joining):
    joining.wait_not_ready()
    joining.configure(builtInNetwork=True)
    joining.node.restart()
    joining.wait_ready()


def test_ranges_of_the_built_in_network_have_no_effect_without_it(joining):
    joining.configure(podCIDRs=["10.7.0.0/24"])
    joining.node.restart()
    joining.wait_not_ready()
    assert "mainstay.podCIDRs has no effect: " in joining.node.said()
    assert re.search(r"no effect.*mainstay\.podCIDRs", joining.node.cli("describe", "node").stdout)
    assert "mainstay.podCIDRs" in joining.node.cli("get", "events").stdout
    joining.configure(podCIDRs=["10.7.0.0/24"], builtInNetwork=True)
    joining.node.restart()
    joining.wait_ready()
    assert "no effect" not in joining.node.cli("describe", "node").stdout


def test_bootstrapping_node_waits_for_the_network_too(joining):
    os.unlink(joining.node.kubeconfig)
    bootstrap = os.path.join(joining.node.directory, "bootstrap")
    joining.node.api.kubeconfig(bootstrap, token="abcdef.0123456789abcdef")
    joining.configure(bootstrapKubeconfig=bootstrap)
    joining.node.restart()
    for pod in (specs.pod("web", hostNetwork=False), specs.pod("host")):
        joining.node.drop(pod)
    joining.node.wait_running("host")
    wait(lambda: WAITING in json.dumps(joining.node.pod("web")), "it waits for the network")
    joining.write("05-cilium.conflist")
    joining.node.wait_running("web")


def test_pods_of_a_lone_node_that_joins_keep_their_network_until_they_are_started_again(joining):
    for plugin in ("bridge", "firewall"):
        joining.install(plugin)
    joining.node.write_config(mainstay={"cniConfDir": joining.cni, "cniBinDir": joining.bin})
    joining.node.restart()
    joining.node.launch(specs.pod("web", hostNetwork=False))
    assert world.read(joining.log).startswith(f"{joining.bin}/bridge ADD")
    pid = joining.node.init("web")
    joining.configure()
    joining.node.restart()
    joining.wait_not_ready()
    joining.wait_running(f"web-{NODE_NAME}")
    assert joining.node.init("web") == pid
    joining.node.cli("delete", "pod", f"web-{NODE_NAME}")
    joining.wait_waiting(f"web-{NODE_NAME}")
    assert f"{joining.bin}/bridge DEL" in world.read(joining.log), "the built-in network is detached"
    joining.write("10-calico.conflist")
    joining.node.wait_running("web")
    assert f"{joining.bin}/calico ADD" in world.read(joining.log)


def test_lone_node_waits_for_a_network_if_configured(make_node):
    node = make_node(start=False)
    cni, plugins = os.path.join(node.directory, "net.d"), os.path.join(node.directory, "cni-bin")
    node.write_config(mainstay={"builtInNetwork": False, "cniConfDir": cni, "cniBinDir": plugins})
    node.start()
    status = json.loads(node.get("/node")[1])["status"]
    assert NOT_READY in [one["message"] for one in status["conditions"] if one["type"] == "Ready"]
    assert re.search(r"\sNotReady\b", node.cli("get", "nodes").stdout)
    with open(os.path.join(cni, "10-test.conflist"), "w", encoding="utf-8") as file:
        json.dump(PUBLISHED["10-flannel.conflist"], file)
    wait(lambda: re.search(r"\sReady\b", node.cli("get", "nodes").stdout), "it is ready")
