# SPDX-License-Identifier: Apache-2.0
"""The runtime is removed, damaged or upgraded under running pods: they keep running, and operations that needed it are
performed with the next one."""

import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess

import pytest
import specs
import world
from test_survival import identities, starter, wait_starts
from world import wait

RUNC = shutil.which("runc", path="/usr/sbin:/usr/bin")
ELF = 4 + 14  # the machine type in the header of a program


def runtime_of(node):
    return os.path.join(node.directory, "runtime")


def install(node, content, mode=0o755):
    """Installs a runtime by rename, like a package."""
    path = runtime_of(node)
    with open(path + ".new", "wb") as file:
        file.write(content)
    os.chmod(path + ".new", mode)
    os.rename(path + ".new", path)


def installed():
    with open(RUNC, "rb") as file:
        return file.read()


def version_of_others(node):
    """A runtime that records each call and then runs runc."""
    return f'#!/bin/sh\necho "$@" >> {node.data}/calls\nexec {RUNC} "$@"\n'.encode()


def foreign():
    """A program for a machine that does not exist."""
    program = bytearray(installed())
    program[ELF:ELF + 2] = b"\xff\xfe"
    return bytes(program)


DAMAGES = {
    "missing": (lambda node: os.unlink(runtime_of(node)), "No such file or directory"),
    "not executable": (lambda node: install(node, installed(), 0o644), "Permission denied"),
    "of another machine": (lambda node: install(node, foreign()), "Exec format error"),
    "empty": (lambda node: install(node, b""), "Exec format error"),
    "cut": (lambda node: install(node, installed()[:100_000]), "runtime"),
}


@pytest.fixture(name="own")
def fixture_own(make_node):
    """A node with its own runtime."""
    node = make_node(start=False)
    install(node, installed())
    node.write_config(mainstay={"runtime": runtime_of(node)})
    node.start()
    return node


@pytest.mark.parametrize("damage", DAMAGES)
def test_pods_keep_running_without_a_usable_runtime_and_a_usable_one_catches_up(own, damage):
    names = ["web", "dies", "gone"]
    for name in names:
        own.launch(starter(own, name))
    wait_starts(own, *names)
    before = identities(own, ["web"])
    dies, gone = own.init("dies"), own.init("gone")
    break_runtime, words = DAMAGES[damage]
    break_runtime(own)
    world.kill_all([dies])
    own.remove("gone")
    own.drop(starter(own, "new"))
    for name in ("dies", "new"):
        own.wait_pod(name, lambda pod: runtime_of(own) in str(pod["status"]) and words in str(pod["status"]), f"reports: {words}")
    wait(lambda: not world.is_alive(gone), "a removed pod stops")
    done = own.cli("exec", "web", "--", "true")
    assert done.returncode == 1 and done.stderr.startswith("error: error executing command in container: "), done
    assert runtime_of(own) in done.stderr and words in done.stderr, done
    own.restart()
    assert identities(own, ["web"]) == before
    install(own, version_of_others(own))
    own.wait_running("new")
    assert own.wait_restarts("dies", 1)["lastState"]
    own.wait_gone("gone")
    assert own.cli("exec", "web", "--", "echo", "hello").stdout == "hello\n"
    assert identities(own, ["web"]) == before and own.status("web")["restartCount"] == 0


def test_a_runtime_that_is_upgraded_under_running_pods_serves_them(own):
    names = ["web", "dies", "gone"]
    for name in names:
        own.launch(starter(own, name))
    wait_starts(own, *names)
    before = identities(own, ["web"])
    install(own, version_of_others(own))
    assert own.cli("exec", "web", "--", "echo", "hello").stdout == "hello\n"
    world.kill_all([own.init("dies")])
    assert own.wait_restarts("dies", 1)["restartCount"] == 1
    own.remove("gone")
    own.wait_gone("gone")
    own.drop(starter(own, "new"))
    own.wait_running("new")
    wait_starts(own, *names, "dies", "new")
    calls = world.read(f"{own.data}/calls")
    for verb in (" exec ", " run ", " delete "):
        assert verb in calls, calls
    assert identities(own, ["web"]) == before and own.status("web")["restartCount"] == 0


def holds_copy(pid):
    """Whether the process has a descriptor of the copy."""
    for descriptor in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(descriptor).startswith("/memfd:runtime "):
                return True
    return False


def test_a_container_starts_from_a_sealed_copy_of_the_runtime(node):
    """Otherwise the runtime copies itself for each container, or mounts itself."""
    node.launch(specs.pod("web"))
    shim, trace = str(node.shim("web")), os.path.join(node.directory, "trace")
    with subprocess.Popen(["strace", "-qq", "-f", "-e", "trace=execve,execveat,memfd_create", "-o", trace, "-p", shim]) as tracer:
        try:
            wait(lambda: world.status(shim, "TracerPid") == str(tracer.pid), "the shim is traced")
            os.kill(node.init("web"), signal.SIGKILL)
            wait(lambda: node.status("web")["restartCount"] == 1 and "running" in node.status("web")["state"], "it was restarted")
        finally:
            tracer.terminate()
    calls = world.read(trace)
    assert re.search(r'execveat\(\d+, "", \["runc", .*"run", .* = 0', calls), calls
    assert "memfd_create(" not in calls
    wait(lambda: not holds_copy(node.agent.pid), "the agent has released the copy")
