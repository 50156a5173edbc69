# SPDX-License-Identifier: Apache-2.0
"""Devices of the node without a plugin: loop devices that come and go while containers have them."""

import fcntl
import os
import stat
import subprocess
import time

import harness
import pytest
import specs
import world
from world import wait

CONTROL = "/dev/loop-control"
LOOP_CTL_ADD, LOOP_CTL_REMOVE = 0x4C80, 0x4C81
DISK = "mainstay.dev/disk"


class Loops:
    """Loop devices with numbers that no other test uses."""

    def __init__(self, base):
        self.base, self.added = base, set()

    def path(self, i=0):
        return f"/dev/loop{self.base + i}"

    @staticmethod
    def control(request, number):
        with open(CONTROL, "rb") as file:
            fcntl.ioctl(file, request, number)

    def plug(self, i=0):
        self.control(LOOP_CTL_ADD, self.base + i)
        self.added.add(i)
        assert stat.S_ISBLK(os.stat(self.path(i)).st_mode)

    def unplug(self, i=0):
        self.control(LOOP_CTL_REMOVE, self.base + i)
        self.added.discard(i)

    def finish(self):
        for i in list(self.added):
            self.unplug(i)

    def match(self, i=0):
        """A rule for one of them."""
        return {"subsystem": "block", "properties": {"DEVNAME": self.path(i)}}


@pytest.fixture(name="loops")
def fixture_loops():
    # Each worker and process has ten numbers.
    loops = Loops(20000 + os.getpid() % 10000 * 10)
    yield loops
    loops.finish()


@pytest.fixture(name="make_node")
def fixture_make_node(archive, image_store):
    nodes = []

    def make(*devices):
        node = harness.Node(archive, store=image_store, start=False)
        nodes.append(node)
        node.write_config(mainstay={"devices": list(devices)})
        node.start()
        return node
    yield make
    for node in nodes:
        node.finish()


def device(**fields):
    return {"name": "disk", **fields}


def container(name="main", n=1, resource=DISK, **fields):
    return specs.container(name, resources={"limits": {resource: n}}, **fields)


def counts(node, resource=DISK):
    status = node.node_object()["status"]
    return status["capacity"].get(resource), status["allocatable"].get(resource)


def wait_counts(node, capacity, allocatable, resource=DISK):
    wait(lambda: counts(node, resource) == (str(capacity), str(allocatable)),
         lambda: f"{capacity}/{allocatable}, not {counts(node, resource)}; its log:\n{node.said()}")


def run_in(node, pod, script, name="main"):
    done = node.cli("exec", pod, "-c", name, "--", "sh", "-c", script)
    return done.stdout + done.stderr


def opens(node, pod, path, name="main"):
    """The result when a process of the container opens it: "opened", "missing" or the error."""
    said = run_in(node, pod, f"exec 3<{path} && echo opened", name)
    return "opened" if said == "opened\n" else "missing" if "no such file" in said else said


def wait_opens(node, pod, path, result="opened", name="main"):
    wait(lambda: opens(node, pod, path, name) == result,
         lambda: f"{path}: {result}, not {opens(node, pod, path, name)}; its log:\n{node.said()}")


def own_node(node, pod, path, number):
    """Opens a device node with that number that the container creates itself."""
    return run_in(node, pod, f"rm -f {path}; mknod {path} b {os.major(number)} {os.minor(number)}; exec 3<{path} && echo opened")


def health(node, pod, name="main"):
    status = node.status(pod, name).get("allocatedResourcesStatus", [])
    return [(device["resourceID"], device["health"]) for resource in status for device in resource["resources"]]


def wait_health(node, pod, *wanted):
    wait(lambda: [item[1] for item in health(node, pod)] == list(wanted), lambda: f"{wanted}, not {health(node, pod)}; {node.said()}")


def test_device_of_the_node_is_in_the_container_and_others_are_refused(make_node, loops):
    loops.plug()
    loops.plug(1)
    node = make_node(device(match=loops.match()))
    wait_counts(node, 1, 1)
    node.launch(specs.pod("web", container(), specs.container("other")))
    assert opens(node, "web", loops.path()) == "opened"
    assert "No such file" in run_in(node, "web", f"ls {loops.path()}", "other")
    for name, number in ("main", os.stat(loops.path(1)).st_rdev), ("other", os.stat(loops.path()).st_rdev):
        assert "Operation not permitted" in run_in(
            node, "web", f"mknod /tmp/n b {os.major(number)} {os.minor(number)}; exec 3</tmp/n", name)
    assert health(node, "web") == [(f"block-loop{loops.base}", "Healthy")] and not health(node, "web", "other")
    assert counts(node) == ("1", "1")


def test_device_that_comes_and_goes_reaches_the_running_container(make_node, loops):
    node = make_node(device(match=loops.match(), optional=True))
    wait_counts(node, 1, 1)
    node.launch(specs.pod("web", container(), specs.container("other")))
    init, path = node.init("web"), f"/proc/{node.init('web')}/root{loops.path()}"
    wait_health(node, "web", "Unhealthy")
    slowest = 0
    for _ in range(5):
        loops.plug()
        number, started = os.stat(loops.path()).st_rdev, time.monotonic()
        wait(lambda: os.path.exists(path) and os.stat(path).st_rdev == number, lambda: f"the device node exists; its log:\n{node.said()}")
        slowest = max(slowest, time.monotonic() - started)
        wait_opens(node, "web", loops.path())
        assert "No such file" in run_in(node, "web", f"ls {loops.path()}", "other")
        wait_health(node, "web", "Healthy")
        assert own_node(node, "web", "/tmp/own", number) == "opened\n"
        wait(lambda: not is_open(number), "nobody has it open")
        loops.unplug()
        wait(lambda: not os.path.exists(path), lambda: f"the device node is gone; its log:\n{node.said()}")
        wait(lambda: "Operation not permitted" in own_node(node, "web", "/tmp/own", number), "the cgroup refuses it")
        wait_health(node, "web", "Unhealthy")
    print(f"the node is there {slowest * 1000:.0f} ms after the event")
    assert node.init("web") == init and node.status("web")["restartCount"] == 0


def is_open(number):
    """Whether a process of a test still has the device open, for example an exec that is about to end."""
    for pid in world.pids():
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if os.stat(f"/proc/{pid}/fd/{fd}").st_rdev == number:
                    return True
        except OSError:
            continue
    return False


def test_pod_waits_for_a_device_that_is_missing_and_names_the_remedy(make_node, loops):
    node = make_node(device(match=loops.match()))
    wait_counts(node, 0, 0)
    node.drop(specs.pod("web", container()))
    node.wait_pod("web", lambda pod: pod["status"].get("reason") == "UnexpectedAdmissionError", "it waits")
    message = node.pod("web")["status"]["message"]
    assert f"the node has no device with subsystem block, DEVNAME {loops.path()}: plug it in, or set 'optional: true' for " \
        "'disk' in mainstay.devices" in message
    loops.plug()
    node.wait_running("web")
    assert opens(node, "web", loops.path()) == "opened"
    # A restarted container waits for its own device.
    loops.unplug()
    wait_health(node, "web", "Unhealthy")
    wait_counts(node, 1, 0)
    os.kill(node.init("web"), 9)
    text = node.wait_waiting("web", "CreateContainerConfigError")
    assert f"the device block-loop{loops.base} of {DISK} is not present: plug it in" in text
    loops.plug()
    node.wait_running("web")
    wait_opens(node, "web", loops.path())
    node.drop(specs.pod("more", container(resource="mainstay.dev/none")))
    node.wait_pod("more", lambda pod: "mainstay.devices of the configuration does not have 'none'" in
                  pod["status"].get("message", ""), "it names the place")


def test_changes_while_the_agent_is_down_are_applied_when_it_starts(make_node, loops):
    loops.plug()
    node = make_node(device(path=f"/dev/loop{loops.base // 10}?", optional=True))
    node.launch(specs.pod("web", container()))
    identity = health(node, "web")
    init = node.init("web")
    assert opens(node, "web", loops.path()) == "opened"
    node.kill9()
    loops.unplug()
    node.start()
    wait_health(node, "web", "Unhealthy")
    wait(lambda: not os.path.exists(f"/proc/{init}/root{loops.path()}"), lambda: f"the device node is gone; its log:\n{node.said()}")
    node.kill9()
    loops.plug()
    loops.plug(1)
    node.start()
    wait_opens(node, "web", loops.path())
    wait_health(node, "web", "Healthy")
    assert health(node, "web") == identity and node.init("web") == init
    assert not os.path.exists(f"/proc/{init}/root{loops.path(1)}")
    node.launch(specs.pod("second", container()))
    assert opens(node, "second", loops.path(1)) == "opened"


def test_shared_device_belongs_to_as_many_containers_as_configured(make_node, loops):
    loops.plug()
    node = make_node(device(match=loops.match(), shared=True, count=2))
    wait_counts(node, 2, 2)
    node.launch(specs.pod("a", container()))
    node.launch(specs.pod("b", container()))
    for name in "a", "b":
        assert opens(node, name, loops.path()) == "opened"
    node.drop(specs.pod("c", container()))
    node.wait_pod("c", lambda pod: "plug in another one, or set 'shared: true'" in pod["status"].get("message", ""), "it waits")
    loops.unplug()
    for name in "a", "b":
        wait_opens(node, name, loops.path(), "missing")
    loops.plug()
    for name in "a", "b":
        wait_opens(node, name, loops.path())
    node.remove("a")
    node.wait_running("c")


def test_device_has_mode_path_and_owner_of_the_node(make_node, loops):
    loops.plug()
    node = make_node(device(match=loops.match(), mode="r", containerPath="/dev/own/disk", optional=True))
    node.launch(specs.pod("web", container(securityContext={"runAsUser": 1234, "runAsGroup": 2345})))
    said = "stat -c '%u:%g' /dev/own/disk; exec 3</dev/own/disk && echo read; sh -c 'exec 3<>/dev/own/disk'"

    def check():
        lines = run_in(node, "web", said).splitlines()
        return lines[:2] == ["1234:2345", "read"] and lines[2].endswith("Operation not permitted")
    assert check(), run_in(node, "web", said)
    loops.unplug()
    wait_opens(node, "web", "/dev/own/disk", "missing")
    loops.plug()
    wait(check, lambda: run_in(node, "web", said) + node.said())


def test_group_of_devices_is_one_device_with_all_nodes(make_node, loops):
    loops.plug()
    loops.plug(1)
    node = make_node(device(path=f"/dev/loop{loops.base // 10}?", grouped=True))
    wait_counts(node, 1, 1)
    node.launch(specs.pod("web", container()))
    for i in range(2):
        assert opens(node, "web", loops.path(i)) == "opened"
    loops.plug(2)
    wait_opens(node, "web", loops.path(2))
    loops.unplug(1)
    wait_opens(node, "web", loops.path(1), "missing")
    assert health(node, "web") == [("all", "Healthy")]
    assert counts(node) == ("1", "1")


def test_device_reaches_a_container_in_a_user_namespace(make_node, loops):
    node = make_node(device(match=loops.match(), optional=True))
    node.launch(specs.pod("web", container(), hostUsers=False, hostNetwork=False))
    for _ in range(2):
        loops.plug()
        os.chmod(loops.path(), 0o666)
        wait_opens(node, "web", loops.path())
        loops.unplug()
        wait_opens(node, "web", loops.path(), "missing")


def test_links_of_a_container_are_not_followed(make_node, loops):
    node = make_node(device(match=loops.match(), optional=True, containerPath="/dev/links/disk"),
                     {"name": "plain", "match": loops.match(1), "optional": True})
    target = os.path.join(node.data, "target")
    os.makedirs(target)
    pod = specs.pod("web", specs.container(resources={"limits": {DISK: 1, "mainstay.dev/plain": 1}},
                                           volumeMounts=[specs.mount("target", "/target")]),
                    volumes=[specs.host_path("target", target)])
    node.launch(pod)
    run_in(node, "web", f"ln -s /target /dev/links; ln -s /target/file {loops.path(1)}")
    loops.plug()
    loops.plug(1)
    wait(lambda: "cannot create /dev/links/disk" in node.said() or f"cannot create {loops.path(1)}" in node.said(),
         lambda: node.said())
    assert os.listdir(target) == []
    run_in(node, "web", f"rm /dev/links {loops.path(1)}")
    loops.unplug()
    loops.plug()
    wait_opens(node, "web", "/dev/links/disk")
    wait_opens(node, "web", loops.path(1))


def test_invalid_configuration_names_its_place(archive, image_store):
    node = harness.Node(archive, store=image_store, start=False)
    try:
        for fields, message in (
                ({"name": "a"}, "mainstay.devices[0]: must have either path or match"),
                ({"name": "a", "path": "/tmp/x"}, "mainstay.devices[0].path: must be a path below /dev"),
                ({"name": "A", "path": "/dev/x"}, "mainstay.devices[0].name: must be a DNS label"),
                ({"name": "a", "match": {}}, "mainstay.devices[0]: must have a condition in match"),
                ({"name": "a", "match": {"vendor": "ftdi"}}, "match.vendor: must be hexadecimal digits such as 0403"),
                ({"name": "a", "path": "/dev/x", "mode": "rx"}, "mainstay.devices[0].mode: must consist of r, w and m"),
                ({"name": "a", "path": "/dev/x", "count": 0}, "mainstay.devices[0].count: ")):
            node.write_config(mainstay={"devices": [fields]})
            done = subprocess.run(node.command(), env=node.environment(), check=False, timeout=world.DEADLINE,
                                  capture_output=True, text=True)
            assert done.returncode != 0 and message in done.stderr, done.stderr
    finally:
        node.write_config()
        node.finish()
