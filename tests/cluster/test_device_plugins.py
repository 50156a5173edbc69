# SPDX-License-Identifier: Apache-2.0
"""Device plugins of other projects, laid out as in their manifests, on a node of a real control plane, and the exporter
of node-feature-discovery, which reads the pod resources and the node's configuration. MAINSTAY_DEVICE_PLUGINS names the
directory of their programs: sampledeviceplugin (of Kubernetes' own tests), generic-device-plugin, nfd-topology-updater;
without it these tests are left out."""

import os

import pytest
import specs
import world
from node import condition
from serving_node import ServingNode, allow_everything, make_kind, preload_programs
from specs import mount
from world import wait

PROGRAMS = os.environ.get("MAINSTAY_DEVICE_PLUGINS")
SAMPLE, SAMPLE_IMAGE = "example.com/resource", "registry.k8s.io/e2e-test-images/sample-device-plugin:1.7"
FUSE, GENERIC_IMAGE = "squat.ai/fuse", "squat/generic-device-plugin"
UPDATER_IMAGE = "gcr.io/k8s-staging-nfd/node-feature-discovery:master"
PLUGINS = "/var/lib/kubelet/device-plugins"


def make_plugin_node(make_node):
    node = make_node(start=False)
    preload_programs(node, PROGRAMS, (SAMPLE_IMAGE, "sampledeviceplugin"), (GENERIC_IMAGE, "generic-device-plugin"))
    node.start()
    node.wait_node_ready()
    return node


@pytest.fixture(name="serving_node")
def fixture_serving_node(plane, shared):
    node = ServingNode(plane, shared["archive"])
    yield node
    node.finish()


def start_plugin(node, name, image, **fields):
    """The DaemonSet of a plugin: privileged, with the node's sockets and devices."""
    kubelet, cdi = os.path.join(node.directory, "kubelet"), os.path.join(node.directory, "cdi")
    node.workload("DaemonSet", name, {
        "name": "plugin", "image": image, "securityContext": {"privileged": True}, **fields,
        "volumeMounts": [mount("device-plugin", PLUGINS), mount("registry", "/var/lib/kubelet/plugins_registry"), mount("dev", "/dev"),
                         mount("cdi", "/var/run/cdi")]}, template={"volumes": [
                             specs.host_path("device-plugin", f"{kubelet}/device-plugins"),
                             specs.host_path("registry", f"{kubelet}/plugins_registry"),
                             specs.host_path("dev", "/dev"), specs.host_path("cdi", cdi)]})
    return node.wait_pods(name, 1)[0]["metadata"]["name"]


def wait_counts(node, resource, capacity, allocatable):
    def counts():
        status = node.node()["status"]
        return status["capacity"].get(resource), status["allocatable"].get(resource)
    wait(lambda: counts() == (capacity, allocatable), lambda: f"{resource}: {counts()}\n{node.said()[-4000:]}")


def user(resource, script=""):
    return specs.container(script=script + specs.IDLE, resources={"limits": {resource: 1}})


def devices(node, name):
    status = node.read("pods", name)["status"]["containerStatuses"][0]
    return [(one["name"], [(part["resourceID"], part["health"]) for part in one["resources"]])
            for one in status.get("allocatedResourcesStatus", [])]


if PROGRAMS:
    def test_sample_device_plugin_allocates_a_separate_device_to_each_pod(make_node):
        node = make_plugin_node(make_node)
        start_plugin(node, "sample", SAMPLE_IMAGE, env=[{"name": "PLUGIN_SOCK_DIR", "value": PLUGINS}])
        wait_counts(node, SAMPLE, "2", "2")
        names = ("one", "two", "three")
        for name in names[:2]:
            node.place(name, user(SAMPLE))
            node.wait_api_running(name)
        given = {name: devices(node, name) for name in names[:2]}
        assert sorted(given.values()) == [[(SAMPLE, [(f"Dev-{n}", "Healthy")])] for n in (1, 2)]
        for name in names[:2]:
            device = given[name][0][1][0][0]
            assert os.path.isdir(f"/proc/{node.init(name)}/root/tmp/{device}"), "its mount, of a path that nobody had made"
        node.place("three", user(SAMPLE))
        node.wait_api("three", lambda pod: f"Insufficient {SAMPLE}" in condition(pod, "PodScheduled").get("message", ""), "waits")

        processes = {name: node.init(name) for name in names[:2]}
        node.kill9()
        node.start()
        wait_counts(node, SAMPLE, "2", "2")
        assert {name: node.init(name) for name in names[:2]} == processes
        assert {name: devices(node, name) for name in names[:2]} == given
        node.client.delete("pods", node.namespace, "one", grace=1)
        node.wait_api_gone("one")
        node.wait_api_running("three")
        assert devices(node, "three") == given["one"]

        node.client.delete("daemonsets", node.namespace, "sample", propagation="Background")
        wait_counts(node, SAMPLE, "2", "0")
        assert node.init("two") == processes["two"] and world.is_alive(processes["two"]), "a lost plugin takes nothing away"

    def test_generic_device_plugin_allows_only_the_allocated_device(make_node):
        node = make_plugin_node(make_node)
        start_plugin(node, "generic", GENERIC_IMAGE, args=[
            "--device", "name: fuse\ngroups:\n  - count: 10\n    paths:\n      - path: /dev/fuse\n"])
        wait_counts(node, FUSE, "10", "10")
        script = "true 3<>/dev/fuse && echo opened; test -e /dev/loop-control || echo no other; "
        node.place("user", user(FUSE, script))
        node.wait_api_running("user")
        wait(lambda: node.output("user") == ["opened", "no other"], lambda: f"{node.output('user')}")
        node.place("stranger", specs.container(script="mknod /tmp/fuse c 10 229; true 3<>/tmp/fuse || echo refused; " + specs.IDLE))
        node.wait_api_running("stranger")
        wait(lambda: "refused" in node.output("stranger"), lambda: f"{node.output('stranger')}")

    def test_topology_updater_sees_the_devices_of_pods(serving_node, plane):
        node = serving_node
        node.start_with_images(PROGRAMS, (SAMPLE_IMAGE, "sampledeviceplugin"), (UPDATER_IMAGE, "nfd-topology-updater"))
        make_kind(plane.client, "NodeResourceTopology")
        allow_everything(node)
        start_plugin(node, "sample", SAMPLE_IMAGE, env=[{"name": "PLUGIN_SOCK_DIR", "value": PLUGINS}])
        node.place("one", user(SAMPLE))
        node.wait_api_running("one")
        field = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in (
            ("NODE_NAME", "spec.nodeName"), ("NODE_ADDRESS", "status.hostIP"), ("POD_NAME", "metadata.name"),
            ("KUBERNETES_NAMESPACE", "metadata.namespace"), ("POD_UID", "metadata.uid"))]
        probe = {"httpGet": {"path": "/healthz", "port": "http"}, "initialDelaySeconds": 5, "periodSeconds": 10}
        node.workload("DaemonSet", "updater", {
            "name": "updater", "image": UPDATER_IMAGE, "env": field, "ports": [{"name": "http", "containerPort": 8080}],
            "args": ["-sleep-interval=3s", "-podresources-socket=/host-var/lib/kubelet/pod-resources/kubelet.sock"],
            "readinessProbe": probe, "livenessProbe": probe,
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True,
                                "runAsUser": 0},
            "volumeMounts": [mount("host-sys", "/host-sys"), mount("state", "/host-var/lib/kubelet", readOnly=True)]},
            template={"volumes": [specs.host_path("host-sys", "/sys"),
                                  specs.host_path("state", os.path.join(node.directory, "kubelet"))]})
        updater = node.wait_pods("updater", 1)[0]["metadata"]["name"]

        def topology():
            return plane.client.get("noderesourcetopologies", None, node.node_name) or {}
        wait(lambda: [zone["name"] for zone in topology().get("zones", [])] == ["node-0"],
             lambda: f"{topology()}\n{node.output(updater, 'updater')}", 60)
        assert {"name": "topologyManagerPolicy", "value": "none"} in topology()["attributes"], "of the node's configuration"
        # The plugin names no NUMA node, so that the device is in no zone.
        wait(lambda: any(f'resourceName="{SAMPLE}" resourceID="Dev-' in line for line in node.output(updater, "updater")),
             lambda: f"{node.output(updater, 'updater')}")
        plane.client.delete("customresourcedefinitions", None, "noderesourcetopologies.topology.node.k8s.io")
        plane.client.delete("clusterrolebindings", None, node.namespace)
