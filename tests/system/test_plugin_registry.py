# SPDX-License-Identifier: Apache-2.0
"""Plugins that register by a socket in plugins_registry, like node-driver-registrar and most current device plugins:
the watch, the two calls of pluginregistration v1, refusals in the kubelet's words, and restarts of each of the
participants."""

import os
import shutil
import signal
import socket

import pytest
import specs
import world
from device_plugin import HEALTHY, UNHEALTHY, DevicePlugin, Registrant
from test_device_plugins import GPU, TWO, counts, device_pod, environment, host_process, wait_counts
from world import wait

REGISTERED = (True, "")


@pytest.fixture
def registry(node):
    """Makes device plugins and registrants, and stops them."""
    return Registry(node)


class Registry:
    def __init__(self, node):
        self.node = node
        self.made = []

    def plugin(self, resource=GPU, devices=None, **options):
        plugin = DevicePlugin(self.node, resource, dict(TWO) if devices is None else devices, **options)
        self.made.append(plugin)
        return plugin

    def registrant(self, kind="DevicePlugin", name=GPU, **options):
        registrant = Registrant(self.node, kind, name, **options)
        self.made.append(registrant)
        return registrant

    def both(self, resource=GPU, devices=None, socket="plugin-reg.sock", **options):
        """A device plugin with its own endpoint, and its registrant."""
        plugin = self.plugin(resource, devices, **options)
        return plugin, self.registrant(name=resource, endpoint=os.path.join(plugin.directory, plugin.endpoint), socket=socket)

    def stop(self):
        for one in self.made:
            one.stop()


@pytest.fixture(autouse=True)
def stopped(registry):
    yield
    registry.stop()


def wait_status(registrant, status=REGISTERED):
    wait(lambda: registrant.statuses and registrant.statuses[-1] == status,
         lambda: f"{status}, not {registrant.statuses} of {registrant.questions}; {registrant.path}")


def wait_refused(registrant):
    wait(lambda: registrant.statuses and not registrant.statuses[-1][0], lambda: f"the plugin is refused, not {registrant.statuses}")
    return registrant.statuses[-1][1]


def test_device_plugin_registers_and_its_devices_reach_a_pod(node, registry):
    plugin, registrant = registry.both()
    wait_status(registrant)
    wait_counts(node, 2, 2)
    node.drop(device_pod("web"))
    node.wait_running("web")
    assert environment(node, "web")["DEVICES"] in ("a", "b") and plugin.count("Allocate") == 1
    plugin.set_devices({"a": UNHEALTHY, "b": HEALTHY})
    wait_counts(node, 2, 1)
    assert registrant.questions == 1 and registrant.statuses == [REGISTERED]


def test_plugin_without_an_endpoint_is_called_at_its_registration_socket(node, registry):
    plugin = registry.plugin(endpoint="elsewhere.sock")
    wait_status(registry.registrant(services={"v1beta1.DevicePlugin": plugin.handlers()}))
    wait_counts(node, 2, 2)


def test_socket_that_is_older_than_the_agent_is_registered(node, registry):
    node.kill9()
    plugin = registry.plugin(endpoint="elsewhere.sock")
    registrant = registry.registrant(services={"v1beta1.DevicePlugin": plugin.handlers()})
    node.start()
    wait_status(registrant)
    wait_counts(node, 2, 2)


def test_removed_socket_deregisters_and_a_new_one_registers_again(node, registry):
    plugin, registrant = registry.both()
    wait_counts(node, 2, 2)
    registrant.remove()
    wait_counts(node, 2, 0)
    registrant.serve()
    wait(lambda: registrant.statuses == [REGISTERED] * 2, lambda: registrant.statuses)
    wait_counts(node, 2, 2)
    plugin.set_devices({"x": HEALTHY})
    wait_counts(node, 1, 1)
    registrant.serve()  # replaces the old socket within a moment
    wait(lambda: registrant.statuses == [REGISTERED] * 3, lambda: registrant.statuses)
    wait_counts(node, 1, 1)


def test_dead_plugin_keeps_its_capacity_until_it_replaces_its_socket(node, registry):
    plugin, registrant = registry.both()
    wait_counts(node, 2, 2)
    plugin.end_lists()
    plugin.server.stop(0).wait()
    wait_counts(node, 2, 0)
    plugin.serve()
    registrant.serve()
    wait_counts(node, 2, 2)


@pytest.mark.parametrize("kind, name, versions, error", [
    ("DevicePlugin", GPU, ("v1alpha1", "v2"), "plugin validation failed with err: manager version, v1beta1, is not among plugin "
     "supported versions [v1alpha1 v2]"),
    ("DevicePlugin", "gpu", ("v1beta1",), "plugin validation failed with err: invalid name of device plugin socket: the ResourceName "
     "\"gpu\" is invalid"),
    ("DRAPlugin", "gpu.example.com", ("v1.DRAPlugin",), "no handler registered for plugin type: DRAPlugin at socket PATH; "
     "this node does not support dynamic resource allocation, see mainstay-differences(7)"),
    ("Unheard", GPU, ("v1beta1",), "no handler registered for plugin type: Unheard at socket PATH"),
])
def test_refusal_has_the_kubelets_message(node, registry, kind, name, versions, error):
    registrant = registry.registrant(kind, name, versions=versions)
    assert wait_refused(registrant) == "RegisterPlugin error -- " + error.replace("PATH", registrant.path)
    assert counts(node) is None
    wait(lambda: registrant.questions > 1, "it is queried again while its socket exists")
    assert node.said().count("is not registered: RegisterPlugin error") == 1


def test_refused_plugin_registers_once_the_reason_is_removed(node, registry):
    plugin, registrant = registry.both()
    plugin.errors["GetDevicePluginOptions"] = "not today"
    registrant.serve()
    error = "RegisterPlugin error -- plugin registration failed with err: failed to get device plugin options: " \
        "rpc error: code = Unknown desc = not today"
    wait(lambda: (False, error) in registrant.statuses, lambda: registrant.statuses)
    del plugin.errors["GetDevicePluginOptions"]
    wait_status(registrant)
    wait_counts(node, 2, 2)
    registrant.notify_error = "no"
    registrant.serve()
    wait_counts(node, 2, 0)
    registrant.notify_error = None
    wait_status(registrant)
    wait_counts(node, 2, 2)


def test_endpoint_outside_of_the_plugins_directories_is_refused(node, registry, tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "x.sock"))
        listener.listen()
        for endpoint in (str(tmp_path / "x.sock"), "relative.sock",
                         os.path.join(node.directory, "kubelet", "..", "x.sock")):
            assert "failed to dial device plugin" in wait_refused(registry.registrant(endpoint=endpoint))
        os.symlink(tmp_path / "x.sock", os.path.join(node.directory, "kubelet", "plugins", "link.sock"))
        link = registry.registrant(endpoint=os.path.join(node.directory, "kubelet", "plugins", "link.sock"))
        assert "failed to dial device plugin" in wait_refused(link)


def test_only_sockets_without_a_leading_dot_are_queried_even_in_new_directories(node, registry):
    directory = os.path.join(node.directory, "kubelet", "plugins_registry")
    hidden = registry.registrant(socket=".hidden.sock")
    with open(os.path.join(directory, "plain.sock"), "w", encoding="ascii"):
        pass
    os.mkdir(os.path.join(directory, "deep"))
    os.mkdir(os.path.join(directory, "deep", "er"))
    plugin, registrant = registry.both(socket="deep/er/plugin.sock")
    wait_status(registrant)
    wait_counts(node, 2, 2)
    assert hidden.questions == 0 and plugin.lists
    os.rename(os.path.join(directory, "deep"), os.path.join(node.directory, "kubelet", "away"))
    wait_counts(node, 2, 0)
    os.rename(os.path.join(node.directory, "kubelet", "away"), os.path.join(directory, "back"))
    wait_counts(node, 2, 2)
    shutil.rmtree(os.path.join(directory, "back"))
    wait_counts(node, 2, 0)


def test_plugin_that_takes_over_a_resource_stays_when_the_first_socket_is_removed(node, registry):
    first = registry.both(socket="first.sock")[1]
    wait_counts(node, 2, 2)
    registry.both(devices={"x": HEALTHY}, endpoint="second", socket="second.sock")
    wait_counts(node, 1, 1)
    first.remove()
    wait(lambda: "has deregistered: its socket first.sock is gone" in node.said(), lambda: node.said())
    wait_counts(node, 1, 1)


def test_registration_survives_kills_of_agent_and_plugin_host(node, registry):
    plugin, registrant = registry.both()
    wait_counts(node, 2, 2)
    node.drop(device_pod("web"))
    node.wait_running("web")
    pid, device = node.init("web"), environment(node, "web")["DEVICES"]
    for n, kill in enumerate((lambda: os.kill(host_process(node), signal.SIGKILL), node.restart, node.kill9), 2):
        kill()
        if kill == node.kill9:
            node.start()
        plugin.serve()  # the sockets in device-plugins are removed at each start
        wait(lambda: registrant.statuses.count(REGISTERED) >= n, lambda: registrant.statuses)
        wait_counts(node, 2, 2)
        assert node.init("web") == pid and environment(node, "web")["DEVICES"] == device
    assert plugin.count("Allocate") == 1


def test_unknown_program_in_the_registry_affects_no_other_plugin(node, registry):
    directory = os.path.join(node.directory, "kubelet", "plugins_registry")
    with socket.socket(socket.AF_UNIX) as silent, socket.socket(socket.AF_UNIX) as rude:
        silent.bind(os.path.join(directory, "silent.sock"))
        silent.listen()
        rude.bind(os.path.join(directory, "rude.sock"))
        rude.listen()
        rude.settimeout(world.DEADLINE)
        registrant = registry.both()[1]
        with rude.accept()[0] as client:
            client.sendall(bytes(range(256)) * 100)
        wait_status(registrant)
        wait_counts(node, 2, 2)
        node.drop(specs.script_pod("web", specs.IDLE))
        node.wait_running("web")


def test_registry_starts_no_process_without_plugins(node, registry):
    registrant = registry.both()[1]
    wait_counts(node, 2, 2)
    registrant.remove()
    wait_counts(node, 2, 0)
    wait(lambda: not host_process(node), "it ends")
