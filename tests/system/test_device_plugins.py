# SPDX-License-Identifier: Apache-2.0
"""Device plugins of the kubelet, based on the reference implementation of gRPC: registration, devices of pods, restarts
of the plugin, the agent and mainstay-plugins, and the pod resources API."""

import os
import signal
import socket

import device_plugin
import grpc
import pytest
import specs
import world
from device_plugin import HEALTHY, UNHEALTHY, DevicePlugin, PodResources, field
from world import wait

GPU = "example.com/gpu"
TWO = {"a": HEALTHY, "b": HEALTHY}


@pytest.fixture
def make_plugin(node):
    plugins = []

    def make(resource=GPU, devices=None, register=True, **options):
        plugin = DevicePlugin(node, resource, dict(TWO) if devices is None else devices, **options)
        plugins.append(plugin)
        if register:
            assert plugin.register() is None
        return plugin

    yield make
    for plugin in plugins:
        plugin.stop()


def counts(node, resource=GPU):
    """The capacity and the allocatable number of the resource in the Node, or None."""
    status = node.node_object()["status"]
    if resource not in status["capacity"]:
        return None
    return status["capacity"][resource], status["allocatable"][resource]


def wait_counts(node, capacity, allocatable, resource=GPU):
    wait(lambda: counts(node, resource) == (str(capacity), str(allocatable)),
         lambda: f"{resource}: {capacity}/{allocatable}, not {counts(node, resource)}; its log:\n{node.said()}")


def device_container(name="main", n=1, resource=GPU, script=specs.IDLE, **fields):
    return specs.container(name, script, resources={"limits": {resource: n}}, **fields)


def device_pod(name, *containers, **spec):
    return specs.pod(name, *(containers or [device_container()]), **spec)


def environment(node, name, container="main"):
    return world.environ(node.init(name, container))


def host_process(node):
    """mainstay-plugins of this node, or None."""
    return next((pid for pid in world.pids() if (world.cmdline(pid) or [""])[0].endswith("/mainstay-plugins")
                 and is_child_of(pid, node.agent.pid)), None)


def is_child_of(pid, parent):
    return int(world.status(pid, "PPid") or 0) == parent


def rejection(pod):
    return pod["status"].get("reason"), pod["status"].get("message", "")


def test_capacity_has_all_devices_and_allocatable_the_healthy_ones(node, make_plugin):
    plugin = make_plugin(devices={**TWO, "c": HEALTHY, "d": HEALTHY})
    wait_counts(node, 4, 4)
    plugin.set_devices({**TWO, "c": UNHEALTHY, "d": HEALTHY})
    wait_counts(node, 4, 3)
    plugin.set_devices({**TWO, "c": HEALTHY, "d": HEALTHY})
    wait_counts(node, 4, 4)
    plugin.stop()
    wait_counts(node, 4, 0)


def test_registration_is_refused_with_the_message_of_the_kubelet(node, make_plugin):
    plugin = make_plugin(register=False)
    error = plugin.register(version="v9")
    assert error.code() == grpc.StatusCode.UNKNOWN
    assert error.details() == \
        'requested API version "v9" is not supported by kubelet. Supported version is ["v1beta1"]'
    for name in ("gpu", "kubernetes.io/gpu", "requests.example.com/gpu", "Example.com/gpu"):
        assert plugin.register(resource=name).details() == f'the ResourceName "{name}" is invalid'
    plugin.errors["GetDevicePluginOptions"] = "not today"
    assert plugin.register().details() == \
        "failed to get device plugin options: rpc error: code = Unknown desc = not today"
    assert not plugin.lists and counts(node) is None
    assert plugin.register(endpoint="../kubelet.sock").details().startswith("failed to dial device plugin: ")
    del plugin.errors["GetDevicePluginOptions"]
    assert plugin.register() is None
    wait_counts(node, 2, 2)


def test_plugin_that_takes_over_stays_when_the_first_one_ends(node, make_plugin):
    first = make_plugin()
    wait_counts(node, 2, 2)
    make_plugin(devices={"x": HEALTHY}, endpoint="second.sock")
    wait_counts(node, 1, 1)
    first.stop()
    world.wait(lambda: "is gone" in node.said() or not first.lists, "the first one is gone")
    wait_counts(node, 1, 1)


def test_allocation_of_a_plugin_reaches_the_container(node, make_plugin, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "library").write_text("driver", encoding="ascii")
    mount = field(1, "/opt/driver") + field(2, str(tmp_path)) + field(3, True)
    device = field(1, "/dev/gadget") + field(2, "/dev/zero") + field(3, "rw")
    plugin = make_plugin()
    plugin.answer = lambda ids: field(1, field(1, field(1, "DEVICES") + field(2, ",".join(ids))) +
                                      field(1, field(1, "OWN") + field(2, "plugin")) + field(2, mount) + field(3, device) +
                                      field(4, field(1, "example.com/note") + field(2, "yes")))
    wait_counts(node, 2, 2)
    script = "head -c 3 /dev/gadget | od -An -tx1; cat /opt/driver/library; touch /opt/driver/x || echo; echo; echo read only; " \
        "head -c 1 /dev/mem || echo no other device; " + specs.IDLE
    node.drop(device_pod("web", device_container(n=2, script=script, env=[{"name": "OWN", "value": "pod"}])))
    node.wait_running("web")
    wait(lambda: any("no other device" in line for line in node.logged("web")), lambda: node.logged("web"))
    log = "\n".join(node.logged("web"))
    assert "00 00 00" in log and "driver" in log and "read only" in log
    found = environment(node, "web")
    assert found["DEVICES"] == "a,b" and found["OWN"] == "pod"
    assert node.status("web")["allocatedResourcesStatus"] == \
        [{"name": GPU, "resources": [{"resourceID": "a", "health": HEALTHY}, {"resourceID": "b", "health": HEALTHY}]}]


def test_mount_of_a_plugin_may_be_a_new_directory_a_link_or_a_file(node, make_plugin, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "file").write_text("config", encoding="ascii")
    (tmp_path / "link").symlink_to("file")
    plugin = make_plugin()
    plugin.answer = lambda ids: field(1, b"".join(
        field(2, field(1, f"/opt/{name}") + field(2, str(tmp_path / name))) for name in ("new/one here", "file", "link")))
    wait_counts(node, 2, 2)
    node.drop(device_pod("web", device_container(script="touch '/opt/new/one here/x'; cat /opt/file /opt/link; echo; " + specs.IDLE)))
    node.wait_running("web")
    wait(lambda: "configconfig" in node.logged("web"), lambda: node.logged("web"))
    assert os.listdir(tmp_path / "new" / "one here") == ["x"]
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o755
    node.remove("web")
    node.wait_gone("web")
    assert os.listdir(tmp_path / "new" / "one here") == ["x"], "the volume is only unmounted"


def test_static_pod_waits_until_devices_are_available(node, make_plugin):
    node.drop(device_pod("web", device_container(n=2)))
    pod = node.wait_pod("web", lambda pod: rejection(pod)[0] == "UnexpectedAdmissionError", "waits")
    assert f"no device plugin has registered for the resource {GPU}" in rejection(pod)[1]
    plugin = make_plugin(devices={"a": HEALTHY})
    node.wait_pod("web", lambda pod: f"requested number of devices unavailable for {GPU}. Requested: 2, Available: 1" in
                  rejection(pod)[1], "waits for the second one")
    plugin.set_devices(TWO)
    node.wait_running("web")
    node.drop(device_pod("late"))
    node.wait_pod("late", lambda pod: "Requested: 1, Available: 0" in rejection(pod)[1], "waits")
    node.remove("web")
    node.wait_running("late")
    assert plugin.count("Allocate") == 2


def test_restarted_container_keeps_its_device_without_a_call(node, make_plugin):
    plugin = make_plugin()
    wait_counts(node, 2, 2)
    node.drop(device_pod("web"))
    node.wait_running("web")
    devices = environment(node, "web")["DEVICES"]
    os.kill(node.init("web"), signal.SIGKILL)
    node.wait_restarts("web", 1)
    node.wait_running("web")
    assert environment(node, "web")["DEVICES"] == devices
    assert plugin.count("Allocate") == 1


def test_init_container_passes_its_device_on_to_the_sidecar_but_not_to_others(node, make_plugin):
    make_plugin()
    wait_counts(node, 2, 2)
    sidecar = device_container("sidecar", restartPolicy="Always")
    node.drop(device_pod("web", initContainers=[device_container("init", script="true"), sidecar]))
    node.wait_running("web")
    assert {environment(node, "web", "sidecar")["DEVICES"], environment(node, "web")["DEVICES"]} == {"a", "b"}
    assert "allocatedResourcesStatus" not in node.pod("web")["status"]["initContainerStatuses"][0]


def test_preferred_devices_are_requested_and_used(node, make_plugin):
    plugin = make_plugin(devices={**TWO, "c": HEALTHY}, preferred=["c", "foreign"])
    wait_counts(node, 3, 3)
    node.drop(device_pod("web", device_container(n=2)))
    node.wait_running("web")
    assert ("GetPreferredAllocation", ["a", "b", "c"], [], 2) in plugin.calls
    assert sorted(environment(node, "web")["DEVICES"].split(",")) == ["a", "c"]


def test_each_start_is_prepared_and_a_refusal_stops_it(node, make_plugin):
    plugin = make_plugin(pre_start=True)
    wait_counts(node, 2, 2)
    plugin.errors["PreStartContainer"] = "cannot reset"
    node.drop(device_pod("web", device_container(n=2)))
    node.wait_waiting("web", "CreateContainerConfigError", says="cannot reset")
    del plugin.errors["PreStartContainer"]
    node.wait_running("web")
    count = plugin.count("PreStartContainer")
    assert plugin.calls[-1] == ("PreStartContainer", ["a", "b"])
    os.kill(node.init("web"), signal.SIGKILL)
    node.wait_restarts("web", 1)
    node.wait_running("web")
    assert plugin.count("PreStartContainer") > count and plugin.count("Allocate") == 1


def test_refused_allocation_keeps_the_pod_waiting(node, make_plugin):
    plugin = make_plugin()
    wait_counts(node, 2, 2)
    plugin.errors["Allocate"] = "out of order"
    node.drop(device_pod("web"))
    node.wait_pod("web", lambda pod: rejection(pod)[1].endswith(
        "Allocate failed due to rpc error: code = Unknown desc = out of order, which is unexpected"), "waits")
    del plugin.errors["Allocate"]
    plugin.set_devices({**TWO, "c": HEALTHY})
    node.wait_running("web")


def test_device_health_is_reported_in_the_status_while_the_pod_keeps_running(node, make_plugin):
    plugin = make_plugin(devices={"a": HEALTHY})
    wait_counts(node, 1, 1)
    node.drop(device_pod("web"))
    node.wait_running("web")
    pid = node.init("web")
    plugin.set_devices({"a": UNHEALTHY})
    node.wait_pod("web", lambda pod: node.status("web")["allocatedResourcesStatus"][0]["resources"] ==
                  [{"resourceID": "a", "health": UNHEALTHY}], "is reported")
    wait_counts(node, 1, 0)
    assert node.init("web") == pid


def test_devices_survive_kills_of_agent_and_plugin_host(node, make_plugin):
    plugin = make_plugin()
    wait_counts(node, 2, 2)
    node.drop(device_pod("web"))
    node.wait_running("web")
    pid, device = node.init("web"), environment(node, "web")["DEVICES"]
    for kill in (node.restart, lambda: os.kill(host_process(node), signal.SIGKILL)):
        kill()
        wait(lambda: not os.path.exists(os.path.join(plugin.directory, plugin.endpoint)) or counts(node)[1] == "0",
             lambda: f"the plugin registers again: {counts(node)}")
        plugin.server.stop(0).wait()
        plugin.serve()
        wait(lambda: plugin.register() is None, "the plugin registers again")
        wait_counts(node, 2, 2)
        assert node.init("web") == pid
        node.drop(device_pod("other"))
        node.wait_running("other")
        assert {environment(node, "other")["DEVICES"], device} == {"a", "b"}
        node.remove("other")
        node.wait_gone("other")
    assert plugin.count("Allocate") == 3


def test_devices_of_a_pod_removed_while_the_agent_was_down_are_free(node, make_plugin):
    plugin = make_plugin(devices={"a": HEALTHY})
    wait_counts(node, 1, 1)
    node.drop(device_pod("web"))
    node.wait_running("web")
    node.kill9()
    node.remove("web")
    node.start()
    plugin.server.stop(0).wait()
    plugin.serve()
    assert plugin.register() is None
    node.drop(device_pod("next"))
    node.wait_running("next")
    assert environment(node, "next")["DEVICES"] == "a"


def test_device_is_allocated_once_if_the_agent_dies_during_the_allocation(node, make_plugin):
    plugin = make_plugin(devices={"a": HEALTHY})
    wait_counts(node, 1, 1)
    plugin.hold = device_plugin.event()
    node.drop(device_pod("web"))
    wait(lambda: plugin.count("Allocate") == 1, "it allocates")
    node.kill9()
    plugin.hold.set()
    node.start()
    plugin.server.stop(0).wait()
    plugin.serve()
    assert plugin.register() is None
    node.wait_running("web")
    assert environment(node, "web")["DEVICES"] == "a"


def test_plugin_process_runs_only_while_it_is_needed(node, make_plugin):
    assert not host_process(node)
    assert PodResources(node).list() == {}
    pid = host_process(node)
    if pid:
        assert world.status(pid, "Uid").split()[0] != "0" and world.status(pid, "CapEff") == "0" * 16
    wait(lambda: not host_process(node), "it ends", deadline=world.DEADLINE)
    plugin = make_plugin()
    wait_counts(node, 2, 2)
    plugin.stop()
    wait(lambda: not host_process(node), "it ends")


def test_pod_resources_list_devices_of_active_pods(node, make_plugin):
    resources = PodResources(node)
    make_plugin(devices={"a": (HEALTHY, 1), "b": HEALTHY, "c": UNHEALTHY})
    wait_counts(node, 3, 2)
    node.drop(device_pod("web", device_container("main", 2), specs.container("plain"),
                         initContainers=[specs.container("init", "true")]))
    node.drop(specs.script_pod("done", "true", restartPolicy="Never"))
    node.wait_running("web")
    node.wait_phase("done", "Succeeded")
    name = node.pod("web")["metadata"]["name"]
    containers = {"main": [(GPU, "a", 1), (GPU, "b")], "plain": []}
    assert resources.list() == {f"default/{name}": containers}
    assert resources.list("v1alpha1") == resources.list()
    assert resources.get(name) == containers
    assert resources.allocatable() == [(GPU, "a", 1), (GPU, "b")]
    gone = node.pod("done")["metadata"]["name"]
    error = resources.get(gone)
    assert error.code() == grpc.StatusCode.UNKNOWN
    assert error.details() == f"pod {gone} in namespace default not found"
    codes = resources.storm(200)
    assert grpc.StatusCode.RESOURCE_EXHAUSTED in codes


def test_invalid_clients_of_the_registration_socket_affect_no_plugin(node, make_plugin):
    make_plugin()
    wait_counts(node, 2, 2)
    path = os.path.join(node.directory, "kubelet", "device-plugins", "kubelet.sock")
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(range(256)) * 40, b""):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(path)
            stranger.sendall(data)
    answer, error = device_plugin.call(path, "/v1beta1.Registration/Nothing")
    assert not answer and error.code() == grpc.StatusCode.UNIMPLEMENTED
    answer, error = device_plugin.call(path, "/v1beta1.Registration/Register", b"\xff\xff\xff")
    assert not answer and error.code() == grpc.StatusCode.INTERNAL
    wait_counts(node, 2, 2)
