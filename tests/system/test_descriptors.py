# SPDX-License-Identifier: Apache-2.0
"""An agent, a shim or mainstay-api that runs out of descriptors: running pods stay, and it continues when there are
some again."""

import contextlib
import os
import resource
import select
import signal
import socket

import pytest
import specs
import world
from harness import container_status

ENOUGH = 4096


def limit_descriptors(pid, limit):
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, hard))


def leave_descriptors(pid, n):
    """Sets the limit of the process so that it can open 'n' more descriptors."""
    used, limit = world.descriptors(pid), 0
    while n > 0 or limit in used:
        n -= limit not in used
        limit += 1
    limit_descriptors(pid, limit)


def free_descriptors(node):
    """Raises the limit again, also that of shims that have inherited it; a shim for which it was too low may end in the
    meantime."""
    limit_descriptors(node.agent.pid, ENOUGH)
    for pid in node.shims():
        with contextlib.suppress(ProcessLookupError):
            limit_descriptors(pid, ENOUGH)


def starter(node, name):
    return specs.pod(name, specs.container(script=f": > /v/{name}; {specs.IDLE}", volumeMounts=[specs.mount("v", "/v")]),
                     volumes=[specs.host_path("v", node.data)])


def live_through_shortage(node, n):
    """A pod is added while the agent can open only 'n' more descriptors, and starts when it can open enough."""
    name, before = f"new{n}", len(node.said())
    leave_descriptors(node.agent.pid, n)
    node.drop(starter(node, name))
    world.wait(lambda: "Too many open files" in node.said()[before:] or os.path.exists(f"{node.data}/{name}"),
               "it fails or runs")
    signal.sigtimedwait([], 0.5)
    assert node.agent.poll() is None, node.describe_agent_exit()
    free_descriptors(node)
    node.wait_running(name)
    node.remove(name)
    node.wait_gone(name)


@pytest.mark.parametrize("counts", [(0, 2, 5), pytest.param(range(32), marks=pytest.mark.long)], ids=["few", "many"])
def test_a_pod_starts_once_descriptors_are_available_again(node, counts):
    node.launch(specs.pod("well"))
    pid = node.init("well")
    start = world.start_time(pid)
    live_through_shortage(node, 100)
    before = len(world.descriptors(node.agent.pid))
    for n in counts:
        live_through_shortage(node, n)
    world.wait(lambda: len(world.descriptors(node.agent.pid)) <= before,
               lambda: f"{before} descriptors are open: {world.descriptors(node.agent.pid)}")
    world.wait(lambda: not world.zombies_of(node.agent.pid),
               lambda: f"no child is a zombie: {world.zombies_of(node.agent.pid)}")
    assert (node.init("well"), world.start_time(pid), node.status("well")["restartCount"]) == (pid, start, 0)


def test_a_shim_that_disconnects_while_there_are_no_descriptors_is_not_lost(node):
    node.launch(specs.pod("web"))
    pid, shim = node.init("web"), node.shim("web")
    path = f"{node.run}/pods/{node.pod('web')['metadata']['uid']}/shim.sock"
    leave_descriptors(node.agent.pid, 0)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(world.DEADLINE)
        client.connect(path)  # like a second agent, which disconnects the first one until that reconnects
        signal.sigtimedwait([], 3)
        assert world.is_alive(pid) and world.is_alive(shim)
        free_descriptors(node)
        while client.recv(1 << 16):
            pass
    world.kill_all([pid])
    assert node.wait_restarts("web", 1)["restartCount"] == 1
    assert node.shim("web") == shim


def connect(node):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(world.DEADLINE)
    client.connect(node.socket)
    return client


def test_a_client_is_refused_while_no_descriptor_is_available(node):
    node.launch(specs.pod("well"))
    pid = node.init("well")
    leave_descriptors(node.agent.pid, 10)
    held = [connect(node) for _ in range(14)]
    answered, _, _ = select.select(held, [], [], world.DEADLINE)
    answers = [client.recv(1000) for client in answered]
    assert answers and all(b" 503 " in answer and b"out of descriptors" in answer for answer in answers), answers
    before = world.cpu_ticks(node.agent.pid)
    signal.sigtimedwait([], 1)
    assert world.cpu_ticks(node.agent.pid) - before < 30
    for client in held:
        client.close()
    world.wait(node.is_ready, "it answers again")
    free_descriptors(node)
    assert node.init("well") == pid
    node.launch(specs.pod("new"))


COUNT = "i=0; while :; do echo $i; i=$((i+1)); sleep 0.1; done"


def kill_beside_shortage(node, shim, n):
    """A container dies while its shim can open only 'n' descriptors; it runs again when the shim can open more."""
    restarts = node.status("web")["restartCount"]
    leave_descriptors(shim, n)
    world.kill_all([node.init("web")])
    node.wait_pod("web", lambda pod: "running" not in container_status(pod)["state"] or
                  container_status(pod)["restartCount"] > restarts, "the exit is known")
    node.cli("exec", "web", "--", "true")  # may fail
    before = world.cpu_ticks(shim)
    signal.sigtimedwait([], 1)
    assert world.is_alive(shim) and world.cpu_ticks(shim) - before < 50
    limit_descriptors(shim, ENOUGH)
    assert node.wait_restarts("web", restarts + 1)["lastState"]["terminated"]["exitCode"] == 137
    assert node.cli("exec", "web", "--", "echo", "hello").stdout == "hello\n"


@pytest.mark.parametrize("counts", [(0, 3), pytest.param(range(24), marks=pytest.mark.long)], ids=["few", "many"])
def test_a_shim_that_runs_out_of_descriptors_loses_no_container_and_no_output(node, counts):
    node.launch(specs.pod("web", specs.container(), specs.container("counter", COUNT)))
    shim, counter = node.shim("web"), node.init("web", "counter")
    open_before = len(world.descriptors(shim))
    for n in counts:
        kill_beside_shortage(node, shim, n)
    assert (node.shim("web"), node.init("web", "counter")) == (shim, counter)
    assert node.status("web", "counter")["restartCount"] == 0
    lines = node.logged("web", "counter")
    assert lines == [str(i) for i in range(len(lines))]
    world.wait(lambda: len(world.descriptors(shim)) <= open_before, lambda: f"{open_before}: {world.descriptors(shim)}")
    world.wait(lambda: not world.zombies_of(shim), lambda: f"no child is a zombie: {world.zombies_of(shim)}")
