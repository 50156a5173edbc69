# SPDX-License-Identifier: Apache-2.0
"""Containers that turn what the agent does as root against the node."""

import os
import shutil

import pytest
import specs
import world

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
    """Has a container to which the log directory is mounted put a link in the place of a directory in it."""
    inside = path.replace(node.log, "/log", 1)
    script = f"mv {inside} /log/old && ln -s {target} {inside} && {READY}"
    node.launch(specs.pod("attacker", specs.container(script=script, volumeMounts=[specs.mount("logs", "/log")]),
                          volumes=[specs.host_path("logs", node.log)]))
    world.wait(lambda: os.path.islink(path), "the link is there")


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
