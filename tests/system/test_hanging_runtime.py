# SPDX-License-Identifier: Apache-2.0
"""Each call of the runtime hangs once: it is killed after its timeout, its error names it, and other pods are
unaffected. The calls are run, delete and exec; create, start, kill and state of the runtime are not used."""

import os
import shutil
import signal
import subprocess

import harness
import pytest
import specs
import world
from harness import is_running, program
from test_shims import first_processes, hold_runtime
from world import wait

RUNTIME_SECONDS = 3


@pytest.fixture(name="hanging")
def fixture_hanging(make_node, tmp_path):
    """A node whose shims wait only some seconds for a call of the runtime."""
    for name in ("mainstayd", "mainstay-image"):
        shutil.copy(program(name), tmp_path)
    with open(tmp_path / "mainstay-shim", "w", encoding="utf-8") as shim:
        shim.write(f'#!/bin/sh\n[ "$1" != sandbox ] || set -- "$@" --runtime-timeout={RUNTIME_SECONDS}\n'
                   f'exec {program("mainstay-shim")} "$@"\n')
    os.chmod(tmp_path / "mainstay-shim", 0o755)
    node = make_node(start=False)
    command = node.command
    node.command = lambda: [str(tmp_path / "mainstayd"), *command()[1:]]
    node.write_config(mainstay={"runtime": f"{node.directory}/runtime"})
    os.symlink(shutil.which("runc", path="/usr/sbin:/usr/bin"), f"{node.directory}/runtime")
    node.start()
    node.launch(specs.pod("other"))
    yield node
    assert node.status("other")["restartCount"] == 0


def hang(node, word, do):
    """Makes the next such call hang while another pod starts."""
    held = hold_runtime(node, word, "before")
    do()
    wait(lambda: os.path.exists(held), "the runtime hangs")
    before = node.init("other")
    node.launch(specs.pod("meanwhile"))
    assert node.init("other") == before
    node.remove("meanwhile")
    return held


def held_processes(node):
    """The programs that hang in place of the runtime, recognized by the directory in the environment that they have
    inherited."""
    return [pid for pid in world.pids() if world.cmdline(pid) == ["sleep", "1000"] and
            any(node.directory in value for value in world.environ(pid).values())]


@pytest.mark.long
def test_a_hanging_runtime_run_is_killed_reported_and_repeated(hanging):
    hang(hanging, "run", lambda: hanging.drop(specs.pod("web")))
    wait(lambda: f"runtime run' did not end within {RUNTIME_SECONDS} s" in hanging.get("/events")[1],
         lambda: f"an event names it: {hanging.get('/events')[1]}")
    hanging.wait_running("web")
    assert first_processes(hanging).count(hanging.init("web")) == 1


@pytest.mark.long
def test_a_hanging_runtime_delete_is_killed_reported_and_delays_nothing(hanging):
    hanging.launch(specs.pod("web"))
    hang(hanging, "delete", lambda: world.kill_all([hanging.init("web")]))
    hanging.wait_restarts("web", 1)
    wait(lambda: f"runtime delete' did not end within {RUNTIME_SECONDS} s" in hanging.said(), "it is named")
    hold_runtime(hanging, "delete", "before")
    hanging.remove("web")
    hanging.wait_gone("web")


@pytest.mark.long
def test_a_hanging_runtime_exec_fails_its_probe_or_ends_with_its_client(hanging):
    probe = {"exec": {"command": ["/bin/true"]}, "periodSeconds": 1, "timeoutSeconds": 1, "failureThreshold": 1}
    hang(hanging, "exec", lambda: hanging.drop(specs.pod("web", specs.container(readinessProbe=probe))))
    wait(lambda: "Readiness probe failed: command timed out" in hanging.get("/events")[1],
         lambda: f"an event names it: {hanging.get('/events')[1]}")
    hanging.wait_pod("web", lambda pod: is_running(pod) and pod["status"]["containerStatuses"][0]["ready"], "is ready")
    hanging.launch(specs.pod("plain"))
    held = hold_runtime(hanging, "exec", "before")
    os.unlink(held)
    with subprocess.Popen([harness.program("mainstay"), "--socket", hanging.socket, "exec", "plain", "--", "true"],
                          env=hanging.environment(), stderr=subprocess.DEVNULL) as client:
        wait(lambda: os.path.exists(held), "the runtime hangs")
        client.send_signal(signal.SIGTERM)
    wait(lambda: not held_processes(hanging), lambda: f"hanging processes are killed: {held_processes(hanging)}")
    hanging.wait_running("plain")


@pytest.mark.long
def test_a_command_that_a_hanging_runtime_has_started_ends_with_its_client(hanging):
    hanging.launch(specs.pod("plain"))
    held = hold_runtime(hanging, "exec", "after")
    with subprocess.Popen([harness.program("mainstay"), "--socket", hanging.socket, "exec", "plain", "--", "sleep", "54321"],
                          env=hanging.environment(), stderr=subprocess.DEVNULL) as client:
        wait(lambda: os.path.exists(held), "the runtime hangs")
        started = [pid for pid in world.cgroup_pids(hanging.container_cgroup("plain"))
                   if world.cmdline(pid) == ["sleep", "54321"]]
        assert started
        client.send_signal(signal.SIGTERM)
    wait(lambda: not any(map(world.is_alive, started)), "the command is killed")
    wait(lambda: not held_processes(hanging), lambda: f"hanging processes are killed: {held_processes(hanging)}")
