# SPDX-License-Identifier: Apache-2.0
"""Less trusted pods that occupy a resource of a more trusted pod: its name, a host port, a device, pulls."""

import random
import threading

import pytest
import specs
import world
from harness import NODE_NAME
from manifest_server import Answer, ManifestServer
from registry import Blobs
from test_apiserver_daemonsets import daemonset, may_place, pods_of
from world import wait

NAME = f"web-{NODE_NAME}"
YEAR = 31536000
STUBBORN = "trap '' TERM; while :; do sleep 1; done"
HANGING = {"preStop": {"exec": {"command": ["sleep", "100000"]}}}


def stubborn(**fields):
    """A container that ignores SIGTERM, and whose preStop hook hangs."""
    return specs.container(script=STUBBORN, lifecycle=HANGING, **fields)


def source_of(pod):
    return pod["metadata"]["annotations"]["mainstay.dev/source"]


def wait_own(node, name="web"):
    """Waits until the pod of the file runs."""
    return node.wait_pod(name, lambda pod: source_of(pod) == f"file {name}.yaml" and pod["status"].get("phase") == "Running",
                         "is the pod of the file, and runs")


def is_mirror(pod):
    return "kubernetes.io/config.mirror" in pod["metadata"].get("annotations", {})


def wait_failed(member, reason="NameConflict", name=NAME):
    pod = member.wait_reported(name, lambda pod: pod["status"].get("phase") == "Failed", "has failed")
    assert pod["status"]["reason"] == reason and not is_mirror(pod), pod["status"]
    return pod


def wait_replaced(member):
    """Waits until the squatter has failed; when it is deleted, the mirror pod takes its place."""
    wait_failed(member)
    member.api.delete("pods", "default", NAME)
    member.wait_reported(NAME, lambda pod: is_mirror(pod) and pod["status"].get("phase") == "Running", "is a mirror pod")


def wait_unmirrored(member):
    """Waits until the node reports that it cannot create the mirror pod."""
    wait(lambda: f"create mirror pod default/{NAME}: " in member.cli("describe", "node").stdout,
         lambda: f"the mirror pod is reported as missing: {member.cli('describe', 'node').stdout}\n{member.said()[-3000:]}", 60)


def squat(member, *containers, **spec):
    member.bind(NAME, *containers or [stubborn()], terminationGracePeriodSeconds=YEAR, **spec)
    member.wait_reported_phase(NAME, "Running")
    return member.init(NAME)


@pytest.mark.parametrize("restart", ("Always", "Never"))
def test_static_pod_takes_its_name_from_an_api_server_pod(make_member, restart):
    member = make_member()
    pid = squat(member, restartPolicy=restart)
    member.drop(specs.pod("web"))
    wait_own(member)
    assert not world.is_alive(pid)
    reported = wait_failed(member)
    assert "of that name" in reported["status"]["message"]
    assert [one["status"] for one in reported["status"]["conditions"] if one["type"] == "DisruptionTarget"] == ["True"]
    assert "NameConflict" in [event["reason"] for event in member.api.all("events")]
    wait_replaced(member)


def test_terminating_api_server_pod_is_not_waited_for_either(make_member):
    member = make_member()
    member.bind(NAME, stubborn(), terminationGracePeriodSeconds=5)
    member.wait_reported_phase(NAME, "Running")
    pid = member.init(NAME)
    member.api.delete("pods", "default", NAME, grace=YEAR)
    wait(lambda: "Killing" in [event["reason"] for event in member.api.all("events")], "it is being stopped")
    assert world.is_alive(pid)
    member.drop(specs.pod("web"))
    wait_own(member)
    assert not world.is_alive(pid)
    member.wait_reported(NAME, is_mirror, "is the mirror pod")


def test_api_server_pod_cannot_take_the_name_of_a_running_static_pod(make_member):
    member = make_member(start=False)
    member.bind(NAME, stubborn(), terminationGracePeriodSeconds=YEAR)
    member.drop(specs.pod("web"))
    member.start()
    pid = member.init("web")
    wait_replaced(member)
    assert member.init("web") == pid and world.is_alive(pid)


def test_deletion_of_a_squatter_with_a_finalizer_ends_with_the_finalizer(make_member):
    member = make_member()
    pid = squat(member)
    member.api.patch("pods", "default", NAME, {"metadata": {"finalizers": ["test/one"]}}, strategy=False)
    member.drop(specs.pod("web"))
    wait_own(member)
    assert not world.is_alive(pid)
    wait_failed(member)
    member.api.delete("pods", "default", NAME)
    member.wait_reported(NAME, lambda pod: "deletionTimestamp" in pod["metadata"], "is being deleted")
    wait(lambda: member.api.asked("delete", "pods", NAME, user=f"system:node:{NODE_NAME}"), "the node has released it")
    member.api.patch("pods", "default", NAME, {"metadata": {"finalizers": None}}, strategy=False)
    member.wait_reported(NAME, is_mirror, "is the mirror pod")


def test_squatter_is_stopped_although_the_agent_dies_meanwhile(make_member):
    member = make_member()
    pid = squat(member)
    member.drop(specs.pod("web"))
    wait(lambda: "NameConflict" in member.said(), "the squatter is being stopped")
    member.kill9()
    assert world.is_alive(pid)
    member.start()
    wait_own(member)
    assert not world.is_alive(pid)
    wait_replaced(member)


def test_agent_that_finds_a_squatter_being_deleted_shortens_its_grace_period(make_member):
    member = make_member()
    pid = squat(member)
    member.api.delete("pods", "default", NAME)
    wait(lambda: "Killing" in [event["reason"] for event in member.api.all("events")], "it is being stopped")
    member.kill9()
    member.api.stop()
    member.drop(specs.pod("web"))
    member.start()
    wait_own(member)
    assert not world.is_alive(pid)
    member.api.start()
    member.wait_reported(NAME, is_mirror, "is the mirror pod")


def test_squatter_stops_without_the_server(make_member):
    member = make_member()
    pid = squat(member)
    member.api.stop()
    member.drop(specs.pod("web"))
    wait_own(member)
    assert not world.is_alive(pid)
    member.restart()
    wait_own(member)
    member.api.start()
    wait_replaced(member)


def test_static_pod_takes_its_name_from_a_pod_of_a_url(make_node):
    server = ManifestServer()
    pod = specs.pod("web", stubborn(), terminationGracePeriodSeconds=YEAR, hostIPC=True)
    server.paths["/pods"] = Answer(specs.text(pod).encode())
    node = make_node(config={"staticPodURL": f"http://127.0.0.1:{server.port}/pods", "httpCheckFrequency": "1s"})
    node.wait_running("web")
    pid = node.init("web")
    node.drop(specs.pod("web"))
    wait_own(node)
    assert not world.is_alive(pid)
    assert "NameConflict" in node.said()
    node.write_config()
    node.restart()
    wait_own(node)
    server.stop()


def test_api_server_pod_with_a_forged_mirror_annotation_never_runs(make_member):
    member = make_member()
    member.launch(specs.pod("own"))
    for name, value in ("forged", "x"), ("empty", ""):
        member.api.create("pods", {"metadata": {"name": name, "annotations": {"kubernetes.io/config.mirror": value,
                                                                              "kubernetes.io/config.source": "file"}},
                                   "spec": {"nodeName": NODE_NAME, "containers": [{"name": "c", "image": specs.IMAGE}]}})
        member.wait_reported_gone(name)
        assert not member.pod(name)


def test_mirror_pod_name_in_use_by_another_node_is_reported(make_member):
    member = make_member()
    member.api.pod(NAME, "node2", specs.IMAGE)
    member.drop(specs.pod("web"))
    wait_own(member)
    wait_unmirrored(member)
    member.api.delete("pods", "default", NAME, grace=0)
    member.wait_reported(NAME, is_mirror, "is the mirror pod")


def with_port(port, **fields):
    return specs.container(ports=[{"containerPort": port, "hostPort": port}], **fields)


def test_host_port_is_taken_from_an_api_server_pod(make_member):
    member = make_member()
    port = world.free_port()
    member.bind("squatter", with_port(port, script=STUBBORN), terminationGracePeriodSeconds=YEAR)
    member.wait_reported_phase("squatter", "Running")
    pid = member.init("squatter")
    member.bind("other", with_port(port))
    wait_failed(member, "NodePorts", "other")
    assert world.is_alive(pid)
    member.drop(specs.pod("web", with_port(port)))
    wait_own(member)
    assert not world.is_alive(pid)
    reported = wait_failed(member, "Preempting", "squatter")
    assert f"{port}/TCP" in reported["status"]["message"] and NAME in reported["status"]["message"]
    member.bind("third", with_port(port))
    wait_failed(member, "NodePorts", "third")


def test_host_port_is_taken_from_a_daemonset_pod_created_by_the_node(make_member):
    member = make_member(start=False)
    may_place(member.api)
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, "daemonSets": "node"})
    port = world.free_port()
    member.api.create("daemonsets", daemonset("squatter", with_port(port)))
    member.start()
    member.init(wait(lambda: pods_of(member, "squatter"), "the node creates its pod")[0]["metadata"]["name"])
    member.drop(specs.pod("web", with_port(port)))
    wait_own(member)
    member.api.delete("daemonsets", "default", "squatter")
    wait(lambda: not pods_of(member, "squatter"), lambda: f"its pod is gone: {member.said()[-3000:]}")


def test_static_daemonset_takes_its_pod_name_from_an_api_server_pod(make_member):
    member = make_member()
    manifest = specs.text(specs.daemonset("logd"))
    member.drop(manifest, "logd.yaml")
    name = wait(lambda: pods_of(member, "logd"), "it has a pod, whose name is always the same")[0]["metadata"]["name"]
    member.remove("logd")
    wait(lambda: not member.pods(), lambda: f"its pod is gone: {member.said()[-3000:]}")
    member.bind(name, stubborn(), terminationGracePeriodSeconds=YEAR)
    member.wait_reported_phase(name, "Running")
    member.drop(manifest, "logd.yaml")
    wait(lambda: [pod for pod in pods_of(member, "logd") if source_of(pod) == "evaluated (file logd.yaml)" and
                  pod["status"].get("phase") == "Running"], lambda: f"it has its pod: {member.said()[-3000:]}")
    wait_failed(member, name=name)


# Devices

DEVICES = [{"name": "zero", "path": "/dev/zero"}]


def with_device(**fields):
    return specs.container(resources={"limits": {"mainstay.dev/zero": 1}}, **fields)


@pytest.mark.parametrize("deleted", [False, True], ids=["running", "deleted"])
def test_device_is_taken_from_an_api_server_pod(make_member, deleted):
    member = make_member(devices=DEVICES)
    member.bind("squatter", with_device(script=STUBBORN, lifecycle=HANGING), terminationGracePeriodSeconds=YEAR)
    member.wait_reported_phase("squatter", "Running")
    pid = member.init("squatter")
    member.bind("other", with_device())
    wait_failed(member, "UnexpectedAdmissionError", "other")
    if deleted:
        member.api.delete("pods", "default", "squatter", grace=YEAR)
        wait(lambda: "Killing" in [event["reason"] for event in member.api.all("events")], "it is being stopped")
    assert world.is_alive(pid)
    member.drop(specs.pod("web", with_device()))
    wait_own(member)
    assert not world.is_alive(pid)
    if not deleted:
        reported = wait_failed(member, "Preempting", "squatter")
        assert f"default/{NAME}, which needs a device" in reported["status"]["message"]
    member.bind("third", with_device())
    wait_failed(member, "UnexpectedAdmissionError", "third")
    pid = member.init("web")
    member.drop(specs.pod("second", with_device()))
    member.wait_pod("second", lambda pod: pod["status"].get("reason") == "UnexpectedAdmissionError", "waits for the file's pod")
    member.restart()
    assert member.init("web") == pid and world.is_alive(pid)


def test_device_is_taken_although_the_agent_dies_meanwhile(make_member):
    member = make_member(devices=DEVICES)
    member.bind("squatter", with_device(script=STUBBORN, lifecycle=HANGING), terminationGracePeriodSeconds=YEAR)
    member.wait_reported_phase("squatter", "Running")
    pid = member.init("squatter")
    member.drop(specs.pod("web", with_device()))
    wait(lambda: "needs a device" in member.said(), "the squatter is being stopped")
    member.kill9()
    assert world.is_alive(pid)
    member.start()
    wait_own(member)
    assert not world.is_alive(pid)
    wait_failed(member, "Preempting", "squatter")


def test_device_is_taken_from_a_pod_of_a_url_and_not_from_a_static_pod(make_node):
    server = ManifestServer()
    server.paths["/pods"] = Answer(specs.text(specs.pod("guest", with_device(script=STUBBORN, lifecycle=HANGING),
                                                        terminationGracePeriodSeconds=YEAR)).encode())
    node = make_node(config={"staticPodURL": f"http://127.0.0.1:{server.port}/pods", "httpCheckFrequency": "1s",
                             "mainstay": {"devices": DEVICES}})
    node.wait_running("guest")
    pid = node.init("guest")
    node.drop(specs.pod("web", with_device()))
    wait_own(node)
    assert not world.is_alive(pid)
    pid = node.init("web")
    server.paths["/pods"] = Answer(specs.text(specs.pod("later", with_device())).encode())
    node.wait_pod("later", lambda pod: pod["status"].get("reason") == "UnexpectedAdmissionError", "waits for the file's pod")
    assert world.is_alive(pid)
    node.write_config()
    node.restart()
    server.stop()


# Pulls

class Drip:
    """A registry that sends some bytes of each layer from time to time, without end."""

    def __init__(self, serve):
        self.ended = threading.Event()
        self.registry = serve(Blobs([{"x": random.Random(1).randbytes(10_000_000)}]), self.behave)

    def behave(self, handler):
        blob = self.registry.image.layers[0]
        if self.ended.is_set() or blob not in handler.path:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(self.registry.image.blobs[blob])))
        handler.end_headers()
        while not self.ended.wait(0.5):
            handler.wfile.write(bytes(1000))
        handler.close_connection = True
        return True

    def names(self):
        """The repositories whose layer was requested."""
        return {path.split("/")[2] for _, path, _ in self.registry.seen if self.registry.image.layers[0] in path}


@pytest.fixture(name="drip")
def fixture_drip(serve):
    drip = Drip(serve)
    yield drip
    drip.ended.set()


def test_pull_for_a_static_pod_does_not_wait_for_pulls_of_api_server_pods(make_member, serve, drip):
    fast = serve()
    member = make_member(maxParallelPulls=2, insecureRegistries=[drip.registry.host, fast.host])
    for name in ("one", "two", "three"):
        member.bind(name, specs.container(image=f"{drip.registry.host}/{name}:latest"))
    wait(lambda: len(drip.names()) == 2, lambda: f"two layers are requested: {drip.names()}")
    member.drop(specs.pod("web", specs.container(image=f"{fast.host}/web:latest")))
    wait(lambda: any("/blobs/" in path for _, path, _ in fast.seen), lambda: f"the file's image is pulled: {member.said()[-3000:]}")
    wait(lambda: f"{fast.host}/web" in member.cli("images").stdout, "the image is present")
    assert len(drip.names()) == 2, "pods of the server wait for one another"
    for name in ("one", "two", "three"):
        member.api.delete("pods", "default", name, grace=0)


def test_endless_pull_does_not_prevent_the_removal_of_images(make_clocked_node, serve, drip):
    fast = serve()
    node = make_clocked_node(config={"mainstay": {"insecureRegistries": [drip.registry.host, fast.host]}})
    assert node.cli("images", "pull", f"{fast.host}/old:latest").returncode == 0
    node.drop(specs.pod("web", specs.container(image=f"{drip.registry.host}/app:latest")))
    wait(drip.names, "the layer is requested")
    assert node.cli("images", "rm", f"{fast.host}/old:latest").returncode == 0
    assert f"{fast.host}/old" in node.cli("images").stdout, "a pull is not interrupted at once"
    node.let_pass(700)
    drip.registry.seen.clear()
    node.cli("images", "rm", f"{fast.host}/old:latest")
    wait(lambda: f"{fast.host}/old" not in node.cli("images").stdout, lambda: f"it is removed: {node.said()[-3000:]}")
    wait(drip.names, "the layer is requested")
    node.remove("web")
