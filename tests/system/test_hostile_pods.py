# SPDX-License-Identifier: Apache-2.0
"""Containers that turn the operations that the agent performs as root against the node."""

import os
import shutil

import pytest
import specs
import world

pytestmark = pytest.mark.cgroup2

READY = "echo ready; " + specs.IDLE


def victim_directory(node):
    """A directory that no pod may change, laid out like that of a pod's logs."""
    victim = os.path.join(node.data, "victim")
    os.makedirs(os.path.join(victim, "main"))
    for name in ("0.log", "0.log.20260101-000000", "precious"):
        with open(os.path.join(victim, "main", name), "w", encoding="utf-8") as file:
            file.write("precious\n")
    return victim


def tree(directory):
    """The names and contents below a directory."""
    return {os.path.relpath(os.path.join(parent, name), directory): world.read(os.path.join(parent, name))
            for parent, directories, files in os.walk(directory) for name in directories + files}


def replace_by_link(node, path, target):
    """Lets a container that has the log directory mounted replace a directory in it with a link."""
    inside = path.replace(node.log, "/log", 1)
    script = f"mv {inside} /log/old && ln -s {target} {inside} && {READY}"
    node.launch(specs.pod("attacker", specs.container(script=script, volumeMounts=[specs.mount("logs", "/log")]),
                          volumes=[specs.host_path("logs", node.log)]))
    world.wait(lambda: os.path.islink(path), "the link exists")


def restore(node, path):
    os.unlink(path)
    os.rename(os.path.join(node.log, "old"), path)


def wait_link_reported(node, name, path):
    node.wait_pod(name, lambda pod: any(
        path in status["state"].get("waiting", {}).get("message", "") and "symbolic link" in status["state"]["waiting"]["message"]
        for status in pod["status"].get("containerStatuses", [])), "reports the link")


def test_no_log_is_written_or_removed_behind_a_link_to_another_directory(node):
    node.launch(specs.script_pod("target", READY))
    victim = victim_directory(node)
    before, path = tree(victim), node.log_directory("target")
    replace_by_link(node, path, victim)
    for _ in range(2):
        world.kill_all([pid for pid in [node.find_init("target")] if pid])
        wait_link_reported(node, "target", path)
    assert tree(victim) == before
    restore(node, path)
    world.wait(lambda: "running" in node.status("target")["state"], "the container starts when the link is gone")
    assert tree(victim) == before


@pytest.mark.parametrize("name", ["containers", "pods"])
def test_nothing_is_made_or_removed_behind_a_link_in_the_log_directory(node, name):
    victim = victim_directory(node)
    before, path = tree(victim), os.path.join(node.log, name)
    replace_by_link(node, path, victim)
    node.drop(specs.script_pod("target", READY))
    node.wait_pod("target", lambda pod: path in str(pod["status"]) + node.said(), "reports the link")
    node.remove("target")
    node.wait_gone("target")
    assert tree(victim) == before
    node.remove("attacker")
    node.wait_gone("attacker")
    assert tree(victim) == before
    os.unlink(path)
    shutil.rmtree(os.path.join(node.log, "old"))


def test_the_cleanup_of_a_pod_unmounts_and_removes_nothing_behind_a_link(node):
    node.launch(specs.script_pod("target", READY))
    victim = victim_directory(node)
    os.mkdir(victim + "/mounted")
    world.run("mount", "-t", "tmpfs", "victim", victim + "/mounted")
    try:
        before, path = tree(victim), node.log_directory("target")
        replace_by_link(node, path, victim)
        node.remove("target")
        node.wait_gone("target")
        assert os.path.ismount(victim + "/mounted")
        assert tree(victim) == before
    finally:
        world.run("umount", victim + "/mounted")


# ---- the record of a pod's control group ----

def cut_cgroup_record(node, uid):
    path = os.path.join(node.run, "pods", uid, "cgroup")
    text = world.read(path)
    assert text.endswith("/pod" + uid)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.rsplit("/", 1)[0])


@pytest.mark.parametrize("is_orphan", [False, True])
def test_a_truncated_cgroup_record_kills_no_other_pod(node, is_orphan):
    """A record that is cut at a slash names the group of all pods of the class."""
    for name in ("target", "neighbour"):
        node.launch(specs.script_pod(name, READY))
    init, neighbour, group = node.init("target"), node.init("neighbour"), node.pod_cgroup("target")
    uid = node.pod("target")["metadata"]["uid"]
    cut_cgroup_record(node, uid)
    if is_orphan:
        node.kill9()
        shutil.rmtree(os.path.join(node.state, "pods", uid))
        node.remove("target")
        node.start()
    else:
        node.remove("target")
    node.wait_gone("target")
    world.wait(lambda: not world.is_alive(init) and not world.cgroup_pids(group), "the pod's processes are gone")
    assert node.init("neighbour") == neighbour and world.is_alive(neighbour)
    assert node.status("neighbour")["restartCount"] == 0


# ---- processes that cannot be killed ----

def freeze(group, is_frozen=True):
    """On v1 a frozen process does not even react to SIGKILL, like one that waits for a disk that does not respond."""
    if world.cgroup_version() == 2:
        path, value = f"{world.CGROUP}{group}/cgroup.freeze", "1" if is_frozen else "0"
    else:
        path, value = f"{world.CGROUP}/freezer{group}/freezer.state", "FROZEN" if is_frozen else "THAWED"
    with open(path, "w", encoding="utf-8") as file:
        file.write(value)


@pytest.mark.cgroup2_quick
def test_a_frozen_container_is_stopped(node):
    node.launch(specs.script_pod("frozen", READY))
    init = node.init("frozen")
    freeze(node.container_cgroup("frozen"))
    node.remove("frozen")
    node.wait_gone("frozen")
    assert not world.is_alive(init)


@pytest.mark.parametrize("has_record", [True, False])
def test_a_pod_never_starts_while_processes_cannot_be_killed(node, has_record):
    if world.cgroup_version() == 2:
        return  # in version 2, frozen processes can be killed
    pod = specs.script_pod("stuck", READY)
    node.launch(pod)
    init, group, uid = node.init("stuck"), node.pod_cgroup("stuck"), node.pod("stuck")["metadata"]["uid"]
    record = os.path.join(node.state, "pods", uid)
    freeze(os.path.dirname(group))
    try:
        world.kill_all([node.shim("stuck")])
        node.remove("stuck")
        world.wait(lambda: group in node.complaints(), "reports that the group cannot be removed")
        assert os.path.exists(record + "/record") and os.path.isdir(os.path.join(node.run, "pods", uid))
        node.kill9()
        if not has_record:
            shutil.rmtree(record)
        node.drop(pod)
        node.start()
        seen = len(node.said())
        world.wait(lambda: group in node.said()[seen:] + str(node.pods()), "the new agent reports it as well")
        assert {pid for pid in world.pids_of_root(group) if world.is_alive(pid)} >= {init}
        assert [pid for pid in world.pids_of_root(group) if world.is_container_init(pid)] == [init]
    finally:
        freeze(os.path.dirname(group), False)
    world.wait(lambda: not world.is_alive(init), "the old process is gone")
    world.wait(lambda: node.find_init("stuck") not in (None, init), "the pod starts after that")


# ---- files of /etc ----

ETC = ("hosts", "hostname", "resolv.conf")


def test_files_of_a_container_in_etc_are_not_held_in_memory(node):
    """/run is in memory and small: when it is full, no pod starts."""
    fill = "; ".join(f"dd if=/dev/zero of=/etc/{name} bs=64k count=16 2>/dev/null" for name in ETC)
    node.launch(specs.script_pod("filler", f"{fill}; {READY}"))
    world.wait(lambda: node.logged("filler") == ["ready"], "the files are written")
    uid = node.pod("filler")["metadata"]["uid"]
    held = sum(os.lstat(os.path.join(parent, name)).st_size
               for parent, _, files in os.walk(os.path.join(node.run, "pods", uid)) for name in files)
    assert held < 256 * 1024
    for name in ETC:
        assert os.path.getsize(f"{node.state}/pods/{uid}/etc/{name}") == 1 << 20


@pytest.mark.parametrize("name", ETC)
def test_files_of_a_container_in_etc_count_as_ephemeral_storage(node, name):
    node.drop(specs.pod("filler", specs.container(
        script=f"dd if=/dev/zero of=/etc/{name} bs=64k count=64 2>/dev/null; {READY}",
        resources={"limits": {"ephemeral-storage": "2Mi"}})))
    uid = node.wait_pod("filler", lambda pod: True, "exists")["metadata"]["uid"]
    status = node.wait_phase("filler", "Failed")["status"]
    assert status["reason"] == "Evicted"
    assert status["message"] == "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi."
    world.wait(lambda: not os.path.exists(f"{node.state}/pods/{uid}/etc"), "the disk is free again")


def test_the_files_of_etc_of_a_pod_of_an_earlier_version_are_found(node):
    """The earlier version has the files in the run directory, and there it finds those of this version."""
    node.launch(specs.script_pod("old", f"cat /etc/hostname; {READY}", hostNetwork=True))
    uid = node.pod("old")["metadata"]["uid"]
    for name in ETC:
        path = os.path.join(node.run, "pods", uid, name)
        assert world.read(path) == world.read(f"{node.state}/pods/{uid}/etc/{name}")
        os.unlink(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write("earlier\n")
    node.kill9()
    shutil.rmtree(f"{node.state}/pods/{uid}/etc")
    node.start()
    world.kill_all([node.init("old")])
    node.wait_restarts("old", 1)
    world.wait(lambda: node.logged("old", attempt=1) == ["earlier", "ready"], "the next attempt has the same files")
