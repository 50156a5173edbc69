# SPDX-License-Identifier: Apache-2.0
"""Restart policy, restart counts, last states, crash back-off and phases."""

import re
import os

import pytest
import specs
import world
from harness import condition, container_status, waiting_state


def ends_with(code, policy):
    return specs.script_pod("ender", f"exit {code}", restartPolicy=policy)


@pytest.mark.parametrize("policy,code,phase,reason", [
    ("Never", 0, "Succeeded", "Completed"),
    ("Never", 3, "Failed", "Error"),
    ("OnFailure", 0, "Succeeded", "Completed"),
])
def test_a_terminated_container_reports_exit_code_and_reason(node, policy, code, phase, reason):
    node.drop(ends_with(code, policy))
    pod = node.wait_phase("ender", phase)
    status = node.status("ender")
    ended = status["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (code, reason)
    assert ended["startedAt"] <= ended["finishedAt"]
    assert ended["containerID"] == status["containerID"]
    assert status["restartCount"] == 0
    assert not status["ready"]
    assert condition(pod, "Ready")["status"] == "False"
    assert condition(pod, "Ready")["reason"] == ("PodCompleted" if code == 0 else "PodFailed")


@pytest.mark.quick
@pytest.mark.parametrize("policy,code", [("Always", 0), ("Always", 4), ("OnFailure", 4)])
def test_a_restarted_container_has_restart_count_and_last_state(node, policy, code):
    node.drop(specs.pod("again", specs.container(
        script=f"[ -e /v/tried ] || {{ touch /v/tried; exit {code}; }}; " + specs.IDLE,
        volumeMounts=[specs.mount("v", "/v")]), volumes=[{"name": "v", "emptyDir": {}}], restartPolicy=policy))
    status = node.wait_restarts("again", 1)
    ended = status["lastState"]["terminated"]
    assert status["restartCount"] == 1
    assert ended["exitCode"] == code
    assert ended["reason"] == ("Completed" if code == 0 else "Error")
    assert ended["containerID"] != status["containerID"]
    assert status["ready"]


@pytest.mark.parametrize("code", [1, 127, 143, 255])
def test_an_exit_code_is_reported_unchanged(node, code):
    node.drop(ends_with(code, "Never"))
    node.wait_phase("ender", "Failed")
    assert node.status("ender")["state"]["terminated"]["exitCode"] == code


def test_a_killed_container_has_exit_code_137(node):
    node.launch(specs.script_pod("victim", specs.IDLE, restartPolicy="Never"))
    world.kill_all([node.init("victim")])
    node.wait_phase("victim", "Failed")
    assert node.status("victim")["state"]["terminated"]["exitCode"] == 137


@pytest.mark.quick
def test_a_container_that_always_fails_is_in_crash_loop_back_off(node):
    node.drop(ends_with(5, "Always"))
    pod = node.wait_pod("ender", lambda pod: waiting_state(pod).get("reason") == "CrashLoopBackOff", "waits to be restarted")
    status = container_status(pod)
    assert re.fullmatch(r"back-off 1s restarting failed container=main pod=[a-z]+-node1_default\([0-9a-f]{32}\)",
                        waiting_state(pod)["message"])
    assert status["lastState"]["terminated"]["exitCode"] == 5
    assert status["restartCount"] >= 1, "the first restart is immediate"
    assert not status["ready"]
    assert pod["status"]["phase"] == "Running"
    node.wait_pod("ender", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] >= 3, "is restarted again")


def test_back_off_applies_to_exit_code_0_too(node):
    node.drop(ends_with(0, "Always"))
    node.wait_waiting("ender", "CrashLoopBackOff")
    assert node.status("ender")["lastState"]["terminated"]["reason"] == "Completed"


def test_each_restart_waits_for_its_back_off(make_node):
    node = make_node(config={"crashLoopBackOff": {"maxContainerRestartPeriod": "3s"}})
    node.drop(ends_with(1, "Always"))
    assert "back-off 3s" in node.wait_waiting("ender", "CrashLoopBackOff")


def test_an_exit_of_one_container_does_not_affect_the_other(node):
    node.launch(specs.pod("two", specs.container("dies"), specs.container("runs")))
    pid = node.init("two", "runs")
    world.kill_all([node.init("two", "dies")])
    node.wait_restarts("two", 1, "dies")
    assert node.init("two", "runs") == pid
    assert node.status("two", "runs")["restartCount"] == 0


@pytest.mark.parametrize("codes,phase", [((0, 0), "Succeeded"), ((0, 1), "Failed")])
def test_the_phase_depends_on_all_containers(node, codes, phase):
    node.drop(specs.pod("both", specs.container("a", f"exit {codes[0]}"), specs.container("b", f"exit {codes[1]}"),
                        restartPolicy="Never"))
    node.wait_phase("both", phase)


def test_a_pod_is_running_while_one_container_is(node):
    node.drop(specs.pod("both", specs.container("done", "exit 0"), specs.container("on"), restartPolicy="Never"))
    pod = node.wait_pod("both", lambda pod: any("terminated" in status["state"]
                                                for status in pod["status"].get("containerStatuses", [])) and
                        any("running" in status["state"] for status in pod["status"]["containerStatuses"]),
                        "has one ended and one running container")
    assert pod["status"]["phase"] == "Running"
    assert condition(pod, "ContainersReady")["reason"] == "ContainersNotReady"


def test_a_restarted_container_has_a_fresh_root_file_system(node):
    node.launch(specs.script_pod("fresh", "[ -e /mark ] && exit 9; touch /mark\n" + specs.IDLE))
    world.kill_all([node.init("fresh")])
    node.wait_restarts("fresh", 1)
    node.wait_trap("fresh")  # its script has checked the mark
    status = node.status("fresh")
    assert status["restartCount"] == 1 and "running" in status["state"]
    assert status["lastState"]["terminated"]["exitCode"] == 137


def test_only_the_last_log_of_ended_attempts_is_kept(node):
    node.launch(specs.script_pod("tidy", "echo up; " + specs.IDLE))
    for count in range(1, 4):
        world.kill_all([node.init("tidy")])
        node.wait_restarts("tidy", count)
    group = node.pod_cgroup("tidy")
    world.wait(lambda: len({os.path.basename(path) for path in world.cgroups_below(group)}) == 1,
               lambda: f"one cgroup is left: {world.cgroups_below(group)}")
    uid = node.pod("tidy")["metadata"]["uid"]
    for directory in (f"{node.run}/pods/{uid}/containers/main", f"{node.state}/pods/{uid}/containers/main"):
        world.wait(lambda path=directory: os.listdir(path) == ["3"], "one attempt's directory is left")
