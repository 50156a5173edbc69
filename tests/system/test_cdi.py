# SPDX-License-Identifier: Apache-2.0
"""Devices of the Container Device Interface: real device nodes, mounts and hooks in real containers."""

import json
import os
import stat
import subprocess

import harness
import pytest
import specs
import world
from network import NetworkNode
from world import wait

NULL = os.makedev(1, 3)


def edits(**fields):
    return {"containerEdits": fields}


def spec(devices, version="1.1.0", kind="example.com/dev", **fields):
    return {"cdiVersion": version, "kind": kind, "devices": [{"name": name, **device} for name, device in devices.items()],
            **fields}


class CdiNode(harness.Node):
    """A node with its own specification directories: 'etc', and 'run', which has precedence and does not exist yet."""

    def __init__(self, archive, config=None, **options):
        super().__init__(archive, start=False, **options)
        self.etc = os.path.join(self.directory, "cdi-etc")
        self.dynamic = os.path.join(self.directory, "var", "cdi")
        os.mkdir(self.etc)
        self.write_config(mainstay={"cdiSpecDirs": [self.etc, self.dynamic], **(config or {})})

    def put(self, document, name="a.json", directory=None):
        directory = directory or self.etc
        os.makedirs(directory, exist_ok=True)
        os.rename(self.stage(json.dumps(document)), os.path.join(directory, name))


@pytest.fixture(name="make_cdi_node")
def fixture_make_cdi_node(archive, image_store):
    nodes = []

    def make(**options):
        nodes.append(CdiNode(archive, store=image_store, **options))
        return nodes[-1]
    yield make
    for node in nodes:
        node.finish()


@pytest.fixture(name="cdi")
def fixture_cdi(make_cdi_node):
    node = make_cdi_node()
    node.start()
    return node


def device_pod(name, *containers, devices="example.com/dev=one", **fields):
    return specs.pod(name, *containers, metadata={"annotations": {"cdi.k8s.io/test": devices}}, **fields)


def lines(node, name, count, container="main"):
    wait(lambda: len(node.logged(name, container)) >= count, lambda: f"{name}/{container} has written: {node.logged(name, container)}")
    return node.logged(name, container)


def test_a_container_gets_all_edits_of_a_specification(cdi):
    library = os.path.join(cdi.data, "library")
    with open(library, "w", encoding="ascii") as file:
        file.write("of the node\n")
    hook = os.path.join(cdi.directory, "hook")
    with open(hook, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\ncat > {cdi.data}/state\necho \"$1 $V\" > {cdi.data}/hooked\n")
    os.chmod(hook, 0o755)
    cdi.put(spec({"one": edits(
        env=["A=from-cdi", "NEW=1"],
        deviceNodes=[{"path": "/dev/net/tun", "uid": 11, "gid": 12, "fileMode": 0o640},
                     {"path": "/dev/sink", "hostPath": "/dev/null", "permissions": "rw"}],
        mounts=[{"hostPath": library, "containerPath": "/opt/library", "options": ["ro", "nosuid", "nodev", "bind"]}],
        hooks=[{"hookName": "createContainer", "path": hook, "args": ["hook", "said"], "env": ["V=so"]}],
        additionalGids=[4321])}, containerEdits={"env": ["FILE=1"]}))
    script = ("echo $A $NEW $FILE; stat -c '%t:%T %u:%g %a' /dev/net/tun /dev/sink; cat /opt/library; id -G; "
              "echo x > /dev/sink && echo written; dd if=/dev/net/tun count=0 2>/dev/null && echo opened; "
              "touch /opt/library 2>/dev/null || echo read-only; mknod /tmp/kmsg c 1 11 && cat /tmp/kmsg 2>&1 | sed 's/.*: //'; "
              + specs.IDLE)
    cdi.launch(device_pod("all", specs.container(script=script, env=[{"name": "A", "value": "from-pod"}])))
    said = lines(cdi, "all", 9)
    assert said[:4] == ["from-cdi 1 1", "a:c8 11:12 640", "1:3 0:0 666", "of the node"] and "4321" in said[4].split()
    assert said[5:] == ["written", "opened", "read-only", "Operation not permitted"]
    assert world.read(f"{cdi.data}/hooked") == "said so\n"
    assert json.loads(world.read(f"{cdi.data}/state"))["status"]


def test_init_containers_sidecars_and_ephemeral_containers_get_the_devices(cdi):
    cdi.put(spec({"one": edits(deviceNodes=[{"path": "/dev/sink", "hostPath": "/dev/null"}])}))
    script = "test -c /dev/sink && echo has; " + specs.IDLE
    cdi.launch(device_pod("kinds", specs.container(script=script), initContainers=[
        specs.container("init", script="test -c /dev/sink && echo has"),
        specs.container("sidecar", script=script, restartPolicy="Always")]))
    for name in ("init", "sidecar", "main"):
        assert lines(cdi, "kinds", 1, name) == ["has"]
    done = cdi.cli("debug", "kinds", "--image", specs.IMAGE, "-c", "late", "--", "sh", "-c", "test -c /dev/sink && echo has")
    assert done.returncode == 0, done.stderr
    wait(lambda: cdi.status("kinds", "late").get("state", {}).get("terminated"), "the ephemeral container has ended")
    assert lines(cdi, "kinds", 1, "late") == ["has"]


def test_a_device_node_made_by_mknod_can_be_opened_and_others_are_refused(cdi):
    path = os.path.join(cdi.data, "own-null")
    os.mknod(path, stat.S_IFCHR | 0o600, NULL)
    fifo = os.path.join(cdi.data, "own-fifo")
    os.mkfifo(fifo, 0o600)
    cdi.put(spec({"one": edits(deviceNodes=[{"path": "/dev/own", "hostPath": path, "permissions": "r"},
                                            {"path": "/dev/pipe", "hostPath": fifo}])}))
    script = "stat -c '%F %t:%T %a' /dev/own /dev/pipe; cat /dev/own && echo read; " + specs.IDLE
    cdi.launch(device_pod("own", specs.container(script=script)))
    assert lines(cdi, "own", 3) == ["character special file 1:3 600", "fifo 0:0 600", "read"]


def test_an_unknown_device_waits_until_a_driver_writes_it(cdi):
    cdi.drop(device_pod("late"))
    message = cdi.wait_waiting("late", "CreateContainerError")
    assert message == ("CDI device injection failed: unresolvable CDI devices example.com/dev=one: "
                       f"no valid file in {cdi.etc} and {cdi.dynamic} defines it")
    cdi.put({"cdiVersion": "0.3.0", "kind": "example.com/dev", "devices": []}, "bad.json", cdi.dynamic)
    place = f"{cdi.dynamic}/bad.json:1:63: devices: is required"
    cdi.wait_waiting("late", "CreateContainerError", says=place)
    assert f"{place}; its devices are not available" in cdi.said()
    cdi.put(spec({"one": edits(env=["A=b"])}), "good.json", cdi.dynamic)
    cdi.wait_running("late")
    events = cdi.cli("get", "events").stdout
    assert "InvalidCDISpec" in events and "unresolvable CDI devices example.com/dev=one" in events


def test_two_files_with_one_device_are_a_conflict_and_a_later_directory_wins(cdi):
    cdi.put(spec({"one": edits(env=["A=1"])}), "a.json")
    cdi.put(spec({"one": edits(env=["A=2"])}), "b.json")
    cdi.drop(device_pod("conflict", specs.container(script="echo $A; " + specs.IDLE)))
    message = cdi.wait_waiting("conflict", "CreateContainerError")
    dump = cdi.get("/debug/dump")[1]
    assert f"directory: {cdi.etc}, watched" in dump and f"directory: {cdi.dynamic}, not there" in dump
    assert "device: example.com/dev=one" in dump
    assert f"both {cdi.etc}/a.json:1:" in message and f"and {cdi.etc}/b.json:1:" in message and "remove one" in message
    cdi.put(spec({"one": edits(env=["A=3"])}), "c.json", cdi.dynamic)
    cdi.wait_running("conflict")
    assert lines(cdi, "conflict", 1) == ["3"]


def test_a_removed_device_is_reported_only_at_the_next_start(cdi):
    path = os.path.join(cdi.data, "own-null")
    os.mknod(path, stat.S_IFCHR | 0o600, NULL)
    cdi.put(spec({"one": edits(deviceNodes=[{"path": "/dev/own", "hostPath": path}])}))
    cdi.launch(device_pod("gone"))
    os.unlink(path)
    os.unlink(os.path.join(cdi.etc, "a.json"))
    assert "running" in cdi.status("gone")["state"]
    os.kill(cdi.init("gone"), 9)
    cdi.wait_waiting("gone", "CreateContainerError", says="unresolvable CDI devices")
    cdi.put(spec({"one": edits(deviceNodes=[{"path": "/dev/own", "hostPath": path}])}))
    cdi.wait_waiting("gone", "CreateContainerError", says=f'failed to stat CDI host device "{path}"')


def test_a_changed_annotation_replaces_the_pod(cdi):
    cdi.put(spec({"one": edits(env=["A=1"]), "two": edits(env=["A=2"])}))
    container = specs.container(script="echo $A; " + specs.IDLE)
    cdi.launch(device_pod("changed", container))
    uid = cdi.pod("changed")["metadata"]["uid"]
    cdi.drop(device_pod("changed", container, devices="example.com/dev=two"))
    cdi.wait_pod("changed", lambda pod: pod["metadata"]["uid"] != uid and harness.is_running(pod), "is replaced")
    assert lines(cdi, "changed", 1) == ["2"]


def test_a_limit_gives_one_container_a_device(cdi):
    cdi.put(spec({"one": edits(deviceNodes=[{"path": "/dev/sink", "hostPath": "/dev/null"}]), "two": edits(env=["A=2"])}))
    script = "test -c /dev/sink && echo has || echo has not; " + specs.IDLE
    pod = specs.pod("limits", specs.container("with", script, resources={"limits": {"example.com/dev=one": 1}}),
                    specs.container("without", script))
    cdi.launch(pod)
    uid = cdi.pod("limits")["metadata"]["uid"]
    assert lines(cdi, "limits", 1, "with") == ["has"] and lines(cdi, "limits", 1, "without") == ["has not"]
    cdi.restart()
    assert cdi.wait_running("limits")["metadata"]["uid"] == uid
    described = cdi.cli("describe", "pod", "limits").stdout
    assert "example.com/dev=one" in described, described
    pod["spec"]["containers"][0]["resources"]["limits"] = {"example.com/dev=two": 1}
    cdi.drop(pod)
    cdi.wait_pod("limits", lambda pod: pod["metadata"]["uid"] != uid and harness.is_running(pod), "is replaced")
    assert lines(cdi, "limits", 1, "with") == ["has not"]


def test_an_agent_that_restarts_leaves_the_container_and_finds_the_devices(cdi):
    cdi.put(spec({"one": edits(deviceNodes=[{"path": "/dev/sink", "hostPath": "/dev/null"}])}))
    cdi.launch(device_pod("kept", specs.container(script="test -c /dev/sink && echo has; " + specs.IDLE)))
    init = cdi.init("kept")
    cdi.restart()
    assert cdi.wait_running("kept") and cdi.init("kept") == init
    os.kill(init, 9)
    cdi.wait_restarts("kept", 1)
    wait(lambda: cdi.logged("kept", attempt=1) == ["has"], "it has the device again")


def start_with_spec(node, document):
    """Starts the agent of a node that has its own network and one specification."""
    directory = os.path.join(node.directory, "cdi")
    os.makedirs(directory, exist_ok=True)
    with open(f"{directory}/a.json", "w", encoding="ascii") as file:
        json.dump(document, file)
    node.stop()
    node.write_config(mainstay={"cdiSpecDirs": [directory]})
    node.start()


@pytest.fixture(name="net")
def fixture_net(archive):
    node = NetworkNode(archive)
    yield node
    node.finish()


@pytest.mark.parametrize("fields", [{}, {"hostUsers": False}], ids=["plain", "user-namespace"])
def test_network_devices_move_into_the_network_of_the_pod(net, fields):
    net.run_inside("busybox", "ip", "link", "add", "card0", "type", "veth", "peer", "name", "card1")
    net.run_inside("busybox", "ip", "address", "add", "192.0.2.9/24", "dev", "card0")
    start_with_spec(net, spec({"one": edits(netDevices=[{"hostInterfaceName": "card0", "name": "net7"}])}))
    script = "ip -o address show dev net7 | grep -o '192[^ ]*'; ip link show net7 | grep -o '[<,]UP' | grep -o UP; " + specs.IDLE
    net.launch(device_pod("card", specs.container(script=script), hostNetwork=False, **fields))
    assert lines(net, "card", 2) == ["192.0.2.9/24", "UP"]
    assert "card0" not in net.run_inside("busybox", "ip", "link", "show")
    os.kill(net.init("card"), 9)
    net.wait_restarts("card", 1)
    wait(lambda: net.logged("card", attempt=1) == ["192.0.2.9/24", "UP"], "it still has the interface")


def test_a_network_device_that_is_missing_or_requested_in_the_host_network_is_an_error(net):
    start_with_spec(net, spec({"one": edits(netDevices=[{"hostInterfaceName": "card0", "name": "net7"}])}))
    net.drop(device_pod("host"))
    net.wait_waiting("host", "CreateContainerError", says="the network device card0 cannot be moved into a pod of the host network")
    net.drop(device_pod("absent", hostNetwork=False))
    net.wait_pod("absent", lambda pod: "cannot move the network device card0 into the container as net7: No such device" in
                 json.dumps(pod["status"]), "reports it")


def test_a_pod_with_its_own_users_gets_devices_and_mounts(net):
    with open(f"{net.data}/file", "w", encoding="ascii") as file:
        file.write("of the node\n")
    os.chown(f"{net.data}/file", 1000, 1000)
    start_with_spec(net, spec({"one": edits(
        deviceNodes=[{"path": "/dev/sink", "hostPath": "/dev/null"}, {"path": "/dev/full"}],
        mounts=[{"hostPath": f"{net.data}/file", "containerPath": "/mapped", "options": ["rbind", "ro"]}])}))
    script = ("stat -c '%t:%T' /dev/sink /dev/full; echo x > /dev/sink && echo written; stat -c %u:%g /mapped; cat /mapped; "
              + specs.IDLE)
    net.launch(device_pod("users", specs.container(script=script), hostNetwork=False, hostUsers=False))
    assert lines(net, "users", 5) == ["1:3", "1:7", "written", "1000:1000", "of the node"]


def test_validate_names_the_devices_of_a_file_and_the_place_of_an_error(cdi):
    good, bad = os.path.join(cdi.staging, "good.yaml"), os.path.join(cdi.staging, "bad.yaml")
    with open(good, "w", encoding="ascii") as file:
        file.write(specs.text(spec({"one": edits(env=["A=b"]), "all": edits(env=["A=b"])})))
    with open(bad, "w", encoding="ascii") as file:
        file.write("cdiVersion: 0.3.0\nkind: v/c\ndevices:\n- name: d\n  containerEdits:\n    deviceNodes:\n"
                   "    - path: /dev/null\n      hostPath: /dev/zero\n")
    done = cdi.cli("validate", good)
    assert (done.returncode, done.stdout) == (0, f"{good}: ok (CDI devices example.com/dev=one, example.com/dev=all)\n")
    done = cdi.cli("validate", bad)
    assert (done.returncode, done.stderr) == (1, (
        f"error: {bad}:8:17: devices[0].containerEdits.deviceNodes[0].hostPath: needs cdiVersion 0.5.0 or later; "
        "this file has 0.3.0\n"))


def test_an_annotation_that_names_no_device_is_an_error_of_its_file(cdi):
    cdi.drop(device_pod("bad", devices="gpu"))
    wait(lambda: "metadata.annotations[cdi.k8s.io/test]: must be the name of a CDI device, vendor.com/class=name, not 'gpu'"
         in cdi.complaints(), lambda: cdi.complaints())


def test_a_file_that_is_being_written_is_read_when_it_is_complete(cdi):
    cdi.drop(device_pod("slow"))
    cdi.wait_waiting("slow", "CreateContainerError")
    text = json.dumps(spec({"one": edits(env=["A=b"])}))
    with open(os.path.join(cdi.etc, "slow.json"), "w", encoding="ascii") as file:
        file.write(text[:20])
        file.flush()
        subprocess.run(["sync", "-d", file.name], check=False)
        file.write(text[20:])
    cdi.wait_running("slow")
    assert "slow.json" not in cdi.said()
