# SPDX-License-Identifier: Apache-2.0
"""A file system of the agent runs out of inodes: running pods stay, and failed operations are repeated."""

import os
import shutil
import subprocess

import harness
import pytest
import specs
import world


@pytest.fixture(name="node_on_tmpfs")
def fixture_node_on_tmpfs(make_node, request):
    """A node that has one of the agent's directories on a separate file system; returns the node and the directory."""
    node = make_node(start=False)
    directory = getattr(node, request.param)
    staged = f"{node.directory}/staged"
    os.rename(directory, staged)
    os.mkdir(directory)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=3000", "none", directory], check=True)
    subprocess.run(["cp", "-a", f"{staged}/.", directory], check=True)
    node.own_mounts.add(directory)
    node.start()
    yield node, directory


def use_up_inodes(directory, n_left):
    """Uses up all but this number of inodes; returns the directory with the files that use them."""
    filler, i = f"{directory}/filler", 0
    os.mkdir(filler)
    try:
        while True:
            os.close(os.open(f"{filler}/{i}", os.O_CREAT | os.O_WRONLY))
            i += 1
    except OSError:
        pass
    for k in range(n_left):
        os.unlink(f"{filler}/{i - 1 - k}")
    return filler


def live_through_shortage(node, directory, n):
    """A pod is added and a container exits while few inodes are left; both run when there are more."""
    name, said = f"new{n}", len(node.said())
    restarts = node.status("broken")["restartCount"]
    filler = use_up_inodes(directory, n)
    node.drop(specs.pod(name))
    world.kill_all([node.init("broken")])
    if n == 0:
        world.wait(lambda: "No space left on device" in node.said()[said:], node.said)
    else:
        world.wait(lambda: node.pod(name), "the file exists")
    node.wait_pod("broken", lambda pod: harness.container_status(pod)["restartCount"] > restarts, "was started again")
    shutil.rmtree(filler)
    node.wait_running(name)
    node.wait_running("broken")
    node.remove(name)
    node.wait_gone(name)


@pytest.mark.parametrize("counts", [(0, 3), pytest.param(range(16), marks=pytest.mark.long)], ids=["few", "many"])
@pytest.mark.parametrize("node_on_tmpfs", ["state", "run", "log"], indirect=True)
def test_failed_operations_are_repeated_once_inodes_are_available(node_on_tmpfs, counts):
    node, directory = node_on_tmpfs
    for name in ("well", "broken"):
        node.launch(specs.pod(name))
    pid = node.init("well")
    start = world.start_time(pid)
    for n in counts:
        live_through_shortage(node, directory, n)
    assert (node.init("well"), world.start_time(pid), node.status("well")["restartCount"]) == (pid, start, 0)
