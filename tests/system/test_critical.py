# SPDX-License-Identifier: Apache-2.0
"""mainstay wait --critical: the verdict on a boot."""

import os
import subprocess

import pytest
import harness
import specs
from test_apiserver_daemonsets import daemonset, may_place
from watch_gap import run_while_a_pod_goes
from world import DEADLINE, wait

pytestmark = pytest.mark.cgroup2


def critical(node, name, where="annotations"):
    """A critical pod that is ready once a file with its name exists."""
    probe = {"exec": {"command": ["test", "-e", f"/v/{name}"]}, "periodSeconds": 1}
    return specs.pod(name, specs.container(readinessProbe=probe, volumeMounts=[specs.mount("v", "/v")]),
                     volumes=[specs.host_path("v", node.data)], metadata={where: {"mainstay.dev/critical": "true"}})


def start_waiting(node, *words):
    return subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, "wait", "--critical", *words], text=True,
                            stderr=subprocess.PIPE)


def test_all_critical_pods_are_waited_for(node):
    for name, where in ("one", "annotations"), ("two", "labels"):
        node.drop(critical(node, name, where))
    node.drop(specs.script_pod("other", "exit 1"))
    for name in "one", "two":
        node.wait_phase(name, "Running")
    waiting = start_waiting(node)
    for name in "one", "two":
        assert waiting.poll() is None
        answer = node.cli("wait", "--critical", "--timeout", "10ms")
        assert answer.returncode == 1 and f"error: pod {name}-node1 is not ready" in answer.stderr, answer.stderr
        assert "other" not in answer.stderr
        with open(os.path.join(node.data, name), "w", encoding="utf-8"):
            pass
        node.wait_running(name)
    assert waiting.wait(DEADLINE) == 0
    waiting.stderr.close()
    assert node.cli("wait", "--critical", "--timeout", "60s").returncode == 0


def test_a_critical_pod_that_is_removed_meanwhile_is_not_waited_for(node):
    node.launch(critical(node, "goes"))
    answer = run_while_a_pod_goes(node, "goes", "wait", "--critical")
    assert answer.returncode == 0, answer


def test_wait_command_waits_for_an_agent_that_does_not_run_yet(node):
    node.kill9()
    answer = node.cli("wait", "--critical", "--timeout", "10ms")
    assert answer.returncode == 1 and "error: " in answer.stderr
    waiting = start_waiting(node)
    node.start()
    assert waiting.wait(DEADLINE) == 0
    waiting.stderr.close()


def test_wait_refuses_invalid_conditions(node):
    for words in ((), ("--bootstrap", "--critical"), ("--critical", "pod"), ("--critical", "--timeout", "soon")):
        answer = node.cli("wait", *words)
        assert answer.returncode == 2, answer.stderr
    wait(node.is_ready, "the agent runs")


def test_critical_api_server_pods_are_not_waited_for(make_member):
    """Bound pods and those that the node has created for a DaemonSet are not waited for, regardless of their fields."""
    member = make_member(start=False)
    may_place(member.api)
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, "daemonSets": "node"})
    keys = {"mainstay.dev/critical": "true", "mainstay.dev/bootstrap": "true"}
    forged = {**keys, "mainstay.dev/source": "file web.yaml", "kubernetes.io/config.source": "file"}
    one = daemonset("logd", specs.container(readinessProbe={"exec": {"command": ["false"]}}))
    one["spec"]["template"]["metadata"] = {"labels": {"app": "logd", **keys}, "annotations": forged}
    member.api.create("daemonsets", one)
    member.api.create("pods", {"metadata": {"name": "bound", "labels": keys, "annotations": forged}, "spec": {
        "nodeName": harness.NODE_NAME, "containers": [{"name": "main", "image": "missing.example/none:1"}]}})
    member.start()
    wait(lambda: {pod["metadata"]["name"].split("-")[0] for pod in member.pods()} == {"logd", "bound"}, member.said)
    answer = member.cli("wait", "--critical", "--timeout", "60s")
    assert answer.returncode == 0, answer.stderr
    member.api.delete("daemonsets", "default", "logd")
