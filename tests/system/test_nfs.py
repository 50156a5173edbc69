# SPDX-License-Identifier: Apache-2.0
"""NFS volumes of files and of an API server. mount.nfs is a stand-in that mounts a tmpfs and records its arguments: a
real server would need the kernel's client, which belongs to the distribution."""

import json
import os
import stat

import pytest
import specs
import world
from test_apiserver_volumes import claim, events_of, volume
from test_apiserver_volumes import bind as bind_volume
from world import wait

MOUNT = "/data"
HELPER = """#!/usr/bin/python3
import json, os, subprocess, sys, time
directory = os.path.dirname(os.path.abspath(__file__))
with open(directory + "/calls", "a", encoding="utf-8") as calls:
    print(json.dumps({"argv": sys.argv[1:], "net": os.readlink("/proc/self/ns/net")}), file=calls)
if os.path.exists(directory + "/hangs"):
    time.sleep(600)
if os.path.exists(directory + "/fails"):
    sys.exit("mount.nfs: timeout set\\nmount.nfs: Connection refused")
subprocess.run(["mount", "-t", "tmpfs", "-o", "ro" if "ro" in sys.argv[-1].split(",") else "rw", "nfs", sys.argv[2]], check=True)
"""


class Helper:
    """The stand-in, in a directory of the search path."""

    def __init__(self, directory):
        self.directory = directory
        path = os.path.join(directory, "mount.nfs")
        with open(path, "w", encoding="utf-8") as file:
            file.write(HELPER)
        os.chmod(path, stat.S_IRWXU)

    def use(self, node):
        environment = node.environment
        node.environment = lambda: {**environment(), "PATH": f"{self.directory}:{environment()['PATH']}"}
        return node

    def set(self, word, value=True):
        path = os.path.join(self.directory, word)
        if value:
            with open(path, "w", encoding="ascii"):
                pass
        else:
            os.unlink(path)

    def calls(self):
        return [json.loads(line) for line in (world.read(os.path.join(self.directory, "calls")) or "").splitlines()]


@pytest.fixture(name="helper")
def fixture_helper(tmp_path):
    return Helper(str(tmp_path))


@pytest.fixture(name="nfs_node")
def fixture_nfs_node(make_node, helper):
    node = helper.use(make_node(start=False))
    node.start()
    return node


def nfs_pod(name, script=specs.IDLE, **source):
    return specs.pod(name, specs.container("main", script, volumeMounts=[specs.mount("v", MOUNT)]),
                     volumes=[{"name": "v", "nfs": {"server": "192.0.2.7", "path": "/export", **source}}])


def mounts_of(name):
    return [line for line in (world.read("/proc/self/mountinfo") or "").splitlines() if name in line]


def failed_mount(node, name):
    """The message of the event of a failed mount; "" if there is none yet."""
    pod = node.pod(name)
    text = node.cli("describe", "pod", pod["metadata"]["name"]).stdout if pod else ""
    return next((line for line in text.splitlines() if "FailedMount" in line), "")


def test_export_is_mounted_in_the_nodes_network_and_gone_with_the_pod(nfs_node, helper):
    node = nfs_node
    node.drop(nfs_pod("web", "echo kept > /data/word; " + specs.IDLE))
    node.wait_running("web")
    call = helper.calls()[0]
    assert call["argv"][0] == "192.0.2.7:/export" and len(call["argv"]) == 2
    assert call["net"] == os.readlink("/proc/self/ns/net")
    wait(lambda: world.read(f"/proc/{node.init('web')}/root{MOUNT}/word") == "kept\n", "it writes")
    pid = node.init("web")
    node.restart()
    node.wait_running("web")
    assert node.init("web") == pid and len(helper.calls()) == 1
    os.kill(pid, 9)
    node.wait_restarts("web", 1)
    wait(lambda: node.find_init("web", "main") and len(helper.calls()) == 1, "its next container has the same mount")
    assert not mounts_of(node.directory + "/run/pods"), "the mount is the pod's own"
    node.remove("web")
    node.wait_gone("web")


def test_export_is_mounted_read_only_from_an_IPv6_server(nfs_node, helper):
    nfs_node.drop(nfs_pod("web", "touch /data/x || echo read only; " + specs.IDLE, server="2001:db8::7", readOnly=True))
    nfs_node.wait_running("web")
    assert helper.calls()[0]["argv"][0] == "[2001:db8::7]:/export" and helper.calls()[0]["argv"][2:] == ["-o", "ro"]
    wait(lambda: any("read only" in line for line in nfs_node.logged("web")), lambda: nfs_node.logged("web"))


def test_failed_mount_is_an_event_and_retried(nfs_node, helper):
    helper.set("fails")
    nfs_node.drop(nfs_pod("web"))
    wait(lambda: failed_mount(nfs_node, "web"), lambda: nfs_node.said())
    assert 'MountVolume.SetUp failed for volume "v" : mount failed: exit status 1: mounting 192.0.2.7:/export: ' \
        "mount.nfs: Connection refused" in failed_mount(nfs_node, "web")
    assert nfs_node.status("web")["state"]["waiting"]["reason"] == "ContainerCreating"
    helper.set("fails", False)
    nfs_node.wait_running("web")


def test_missing_mount_helper_is_reported_with_its_package(make_node, tmp_path):
    node = make_node(start=False)
    environment = node.environment
    path = ":".join(one for one in environment()["PATH"].split(":") if not os.path.exists(os.path.join(one, "mount.nfs")))
    node.environment = lambda: {**environment(), "PATH": path}
    node.start()
    node.drop(nfs_pod("web"))
    wait(lambda: "install the package nfs-common (Debian, Ubuntu)" in failed_mount(node, "web"), lambda: node.said())
    node.remove("web")
    node.wait_gone("web")


def test_pod_whose_server_hangs_can_be_deleted_and_affects_no_other(nfs_node, helper):
    helper.set("hangs")
    nfs_node.drop(nfs_pod("web"))
    wait(helper.calls, "it mounts")
    nfs_node.drop(specs.script_pod("other", specs.IDLE))
    nfs_node.wait_running("other")
    nfs_node.restart()
    nfs_node.remove("web")
    nfs_node.wait_gone("web")
    assert nfs_node.init("other")


def test_volumes_that_name_no_server_are_refused(nfs_node):
    for source, word in (({"server": "-o"}, "host name or an address"), ({"path": "export"}, "absolute path"),
                         ({"server": "a b"}, "host name or an address")):
        nfs_node.drop(nfs_pod("web", **source), "web.yaml")
        wait(lambda word=word: word in nfs_node.complaints(), lambda word=word: f"it reports '{word}': {nfs_node.complaints()}")
    nfs_node.drop(nfs_pod("web"), "web.yaml")
    nfs_node.wait_running("web")


def test_volume_and_claim_of_an_API_server_are_mounted(make_member, helper):
    member = helper.use(make_member(start=False))
    member.start()
    bind_volume(member, "direct", {"nfs": {"server": "192.0.2.8", "path": "/a"}})
    bound = claim(member, "c", "pv")
    volume(member, "pv", bound, nfs={"server": "192.0.2.9", "path": "/b c"}, mountOptions=["nfsvers=4.1", "hard"])
    bind_volume(member, "claimed", {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
                securityContext={"fsGroup": 2000})
    for name in ("direct", "claimed"):
        member.wait_reported_phase(name, "Running")
    calls = {call["argv"][0]: call["argv"][2:] for call in helper.calls()}
    assert calls == {"192.0.2.8:/a": [], "192.0.2.9:/b c": ["-o", "nfsvers=4.1,hard,ro"]}
    for name in ("direct", "claimed"):
        assert f" {MOUNT} " in world.read(f"/proc/{member.init(name)}/mountinfo")


def test_mount_options_of_a_volume_cannot_name_others_of_the_agent(make_member, helper):
    member = helper.use(make_member(start=False))
    member.start()
    bound = claim(member, "c", "pv")
    volume(member, "pv", bound, nfs={"server": "192.0.2.9", "path": "/b"}, mountOptions=['a",x-mainstay.hostpath="'])
    bind_volume(member, "web", {"persistentVolumeClaim": {"claimName": "c"}})
    event = wait(lambda: events_of(member, "web", "FailedMount"), lambda: member.said())[0]
    assert event["message"].startswith('MountVolume.SetUp failed for volume "v" : nfs 192.0.2.9:/b: ')
    assert "without blanks or quotes" in event["message"] and not helper.calls()
    member.api.delete("pods", "default", "web")
    member.wait_reported_gone("web")
