# SPDX-License-Identifier: Apache-2.0
"""The configuration of an image, and how a pod spec overrides it."""

import importlib.machinery
import importlib.util
import json
import os
import signal

import harness
import pytest
import specs
import world

NAME = "docker.io/library/told:1"
LOOP = "trap 'exit 0' TERM; trap 'echo usr1; exit 0' USR1; while :; do sleep 0.05; done"
CONFIG = {"Entrypoint": ["/bin/sh", "-c"], "Cmd": [LOOP], "WorkingDir": "/var/log", "User": "app",
          "Env": ["PATH=/bin:/usr/bin", "FROM_IMAGE=yes", "BOTH=image"], "StopSignal": "SIGUSR1"}


@pytest.fixture(scope="module", name="configured")
def fixture_configured(tmp_path_factory):
    """An archive of the common test image, with a larger configuration."""
    loader = importlib.machinery.SourceFileLoader("make_image", os.path.join(harness.TOP, "tests", "make-image"))
    make = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_image", loader))
    loader.exec_module(make)
    plain = make.image_config
    make.image_config = lambda *words: json.dumps({**json.loads(plain(*words)), "config": CONFIG}).encode()
    path = str(tmp_path_factory.mktemp("images") / "configured.tar")
    make.write_atomically(path, make.docker_archive(NAME, specs.ARCHITECTURE, make.layer("/bin/busybox"), "none"))
    return path


@pytest.fixture(name="stocked")
def fixture_stocked(node, configured):
    node.preload(configured)
    return node


def launch(node, name, **fields):
    node.launch(specs.pod(name, {"name": "main", "image": NAME, **fields}, terminationGracePeriodSeconds=2,
                          os={"name": "linux"}))
    return node.init(name)


def cwd(pid):
    return os.readlink(f"/proc/{pid}/cwd")


def identity(pid):
    return world.status(pid, "Uid").split()[0], world.status(pid, "Gid").split()[0], \
        sorted(world.status(pid, "Groups").split())


def test_a_pod_without_command_runs_that_of_its_image(stocked):
    pid = launch(stocked, "plain")
    log = os.path.join(stocked.log_directory("plain"), "main", "0.log")
    assert world.cmdline(pid) == ["/bin/sh", "-c", LOOP]
    assert cwd(pid) == "/var/log"
    assert identity(pid) == ("1000", "1000", ["1000", "29"]), "it has the groups of its user in the image's files"
    assert {"FROM_IMAGE": "yes", "BOTH": "image", "PATH": "/bin:/usr/bin"}.items() <= world.environ(pid).items()
    assert stocked.status("plain")["stopSignal"] == "SIGUSR1"
    world.wait(lambda: world.handles(pid, signal.SIGUSR1), "it has set its traps")
    with open(log, encoding="utf-8") as file:
        stocked.remove("plain")
        stocked.wait_gone("plain")
        assert file.read().endswith(" usr1\n")


@pytest.mark.parametrize("fields,expected", [
    ({"args": ["exec sleep 1000"]}, ["sleep", "1000"]),
    ({"command": ["/bin/sleep", "1000"]}, ["/bin/sleep", "1000"]),
    ({"command": ["/bin/sleep"], "args": ["1000"]}, ["/bin/sleep", "1000"]),
], ids=["args", "command", "both"])
def test_args_follow_the_entrypoint_and_a_command_replaces_both(stocked, fields, expected):
    pid = launch(stocked, "other", **fields)
    world.wait(lambda: world.cmdline(pid) == expected, lambda: f"it runs the image's command: {world.cmdline(pid)}")


def test_the_pod_spec_overrides_the_image_configuration(stocked):
    pid = launch(stocked, "own", workingDir="/tmp", env=[{"name": "BOTH", "value": "pod $(BOTH)"}],
                 securityContext={"runAsUser": 65534, "runAsGroup": 7}, lifecycle={"stopSignal": "SIGTERM"})
    assert cwd(pid) == "/tmp"
    assert identity(pid)[:2] == ("65534", "7")
    assert world.environ(pid)["BOTH"] == "pod $(BOTH)", "the pod cannot refer to the image's variables"
    assert world.environ(pid)["FROM_IMAGE"] == "yes"
    assert stocked.status("own")["stopSignal"] == "SIGTERM"
    with open(os.path.join(stocked.log_directory("own"), "main", "0.log"), encoding="utf-8") as file:
        stocked.remove("own")
        stocked.wait_gone("own")
        assert file.read() == "", "it was not stopped by the image's signal"
