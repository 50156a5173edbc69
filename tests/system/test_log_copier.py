# SPDX-License-Identifier: Apache-2.0
"""The log copier of a pod: its permissions, and output that does not wait for a log copier that has died or hangs."""

import os
import re
import signal

import log_copier
import pytest
import specs
import world
from harness import is_running


def log_text(node, name):
    return node.cli("logs", name).stdout


def said(node, name, text):
    world.wait(lambda: text in log_text(node, name), lambda: f"{text} is in the log: {log_text(node, name)[-500:]}")


def test_log_copier_has_no_privilege_and_no_file_but_the_log(node):
    node.launch(specs.pod("web", specs.container(script="echo hello; exec sleep 3600")))
    said(node, "web", "hello")
    pid = log_copier.find(node, "web")
    for field in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert world.status(pid, field) == "0" * 16, field
    ids = {int(number) for field in ("Uid", "Gid") for number in world.status(pid, field).split()}
    assert 0 not in ids
    assert re.search("^Groups:[ \t]*$", world.read(f"/proc/{pid}/status"), re.M)
    files = {path for path in world.descriptors(pid).values() if path.startswith("/")}
    stderr = world.descriptors(node.shim("web"))[2]
    assert files - {stderr} <= {"/dev/null", f"{node.log_directory('web')}/main/0.log"}


def test_output_is_complete_although_log_copiers_die(node):
    node.launch(specs.pod("web", specs.container(script="for i in $(seq 1 2000); do echo line $i; usleep 500; done; echo end; exec sleep 3600")))
    for _ in range(5):
        log_copier.kill(node, "web")
    said(node, "web", "end")
    numbers = [int(number) for number in re.findall("^line ([0-9]+)$", log_text(node, "web"), re.M)]
    assert numbers == sorted(set(numbers)) and len(numbers) >= 1990, "lines are lost that no copier held when it died"
    assert is_running(node.pod("web"))


def test_unread_output_is_not_lost_when_a_log_copier_dies(node):
    node.launch(specs.pod("web", specs.container(script="read x </data/go; seq 1 20000; echo end; exec sleep 3600",
                                                 volumeMounts=[specs.mount("data", "/data")]),
                          volumes=[specs.host_path("data", node.data)]))
    os.kill(log_copier.find(node, "web"), signal.SIGSTOP)
    with open(f"{node.data}/go", "w", encoding="utf-8") as go:
        go.write("\n")
    log_copier.kill(node, "web")
    said(node, "web", "end")
    assert [line for line in log_text(node, "web").split("\n") if line.isdigit()] == [str(i) for i in range(1, 20001)]


@pytest.mark.slow
def test_end_of_a_container_is_reported_when_its_log_copier_hangs(node):
    node.launch(specs.pod("web", specs.container(script="trap 'echo bye; exit 7' TERM; while true; do sleep 0.1; done"), restartPolicy="Never"))
    hanging = log_copier.find(node, "web")
    os.kill(hanging, signal.SIGSTOP)
    os.kill(node.init("web"), signal.SIGTERM)
    ended = node.wait_phase("web", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 7
    assert not world.is_alive(hanging)
    said(node, "web", "bye")


def test_probes_and_hooks_do_not_depend_on_one_log_copier(node):
    probe = {"exec": {"command": ["sh", "-c", "echo probed; exit 0"]}, "periodSeconds": 1}
    node.launch(specs.pod("web", specs.container(script="exec sleep 3600", readinessProbe=probe)))
    for _ in range(3):
        log_copier.kill(node, "web")
    world.wait(lambda: any(c["type"] == "Ready" and c["status"] == "True" for c in node.pod("web")["status"]["conditions"]),
               "the pod is ready")
    assert node.status("web")["restartCount"] == 0


def test_log_copier_ends_with_its_shim(node):
    node.launch(specs.pod("web"))
    pid = log_copier.find(node, "web")
    world.kill_all([node.shim("web")])
    world.wait(lambda: not world.is_alive(pid), "it has ended")
