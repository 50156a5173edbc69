# SPDX-License-Identifier: Apache-2.0
"""mainstay delete pod: the pod terminates, and starts again as a new instance."""

import os
import subprocess

import pytest
import specs
import world
from watch_gap import run_while_a_pod_goes
from world import wait

DEAF = "trap '' TERM; echo deaf; while :; do sleep 1; done"


@pytest.mark.quick
def test_a_deleted_pod_starts_as_a_new_instance(node):
    node.drop(specs.pod("web", specs.container(
        script="date >> /v/starts; " + specs.IDLE, volumeMounts=[specs.mount("v", "/v")]),
        volumes=[{"name": "v", "emptyDir": {}}]))
    before = node.wait_running("web")
    init, shim = node.init("web"), node.shim("web")
    answer = node.cli("delete", "pod", "web", "--wait")
    assert (answer.returncode, answer.stdout) == (0, 'pod "web-node1" deleted from default namespace\n'), answer.stderr
    wait(lambda: not world.is_alive(init) and not world.is_alive(shim), "the old processes are gone")
    after = node.wait_running("web")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["startTime"] >= before["status"]["startTime"]
    assert node.status("web")["restartCount"] == 0
    assert "lastState" not in node.status("web") or not node.status("web")["lastState"]
    init = node.init("web")
    starts = wait(lambda: world.read(f"/proc/{init}/root/v/starts"), "it recorded its start")
    assert len(starts.splitlines()) == 1, "its emptyDir is new"


@pytest.mark.slow
def test_a_deletion_ends_the_back_off(make_clocked_node):
    node = make_clocked_node({"crashLoopBackOff": {"maxContainerRestartPeriod": "300s"}})
    gate = os.path.join(node.data, "gate")
    node.drop(specs.pod("crash", specs.container(
        script=f"[ -e {gate} ] || exit 1; " + specs.IDLE, volumeMounts=[specs.mount("d", node.data)]),
        volumes=[specs.host_path("d", node.data)]))
    waits = ["10s", "20s", "40s", "1m20s"]
    for i, passed in enumerate([10, 30, 70, None]):
        wait(lambda later=waits[i:]: any(f"back-off {one} " in node.wait_waiting("crash", "CrashLoopBackOff") for one in later),
             f"it waits for {waits[i]}")
        if passed:
            node.let_pass(passed)
    os.close(os.open(gate, os.O_CREAT))
    assert node.cli("delete", "pod", "crash").returncode == 0
    node.wait_running("crash", deadline=75)
    assert node.status("crash")["restartCount"] == 0


def test_a_deletion_has_the_requested_grace_period(node):
    node.launch(specs.pod("deaf", specs.container(script=DEAF), terminationGracePeriodSeconds=600))
    init = node.init("deaf")
    wait(lambda: node.logged("deaf") == ["deaf"], "it ignores the signal")
    assert node.cli("delete", "pod", "deaf").returncode == 0
    node.wait_pod("deaf", lambda pod: "deletionTimestamp" in pod["metadata"], "is being stopped")
    assert world.is_alive(init), "the grace period of ten minutes is not over"
    assert node.cli("delete", "pod", "deaf", "--now").returncode == 0
    wait(lambda: not world.is_alive(init), "the shorter grace period applies")
    node.wait_pod("deaf", lambda pod: "deletionTimestamp" not in pod["metadata"], "starts again")
    node.wait_running("deaf")
    node.wait_trap("deaf")
    node.remove("deaf")
    node.wait_pod("deaf", lambda pod: "deletionTimestamp" in pod["metadata"], "is being stopped")
    assert node.cli("delete", "pod", "deaf", "--now", "--wait").returncode == 0


def test_a_restarted_agent_completes_a_deletion_and_starts_the_pod_again(node):
    node.launch(specs.pod("web", specs.container(
        script="trap '' TERM; echo started >> /v/log; while [ ! -e /v/go ]; do sleep 0.05; done",
        volumeMounts=[specs.mount("v", "/v")]), volumes=[specs.host_path("v", node.data)], restartPolicy="Never",
        terminationGracePeriodSeconds=600))
    init = node.init("web")
    assert node.cli("delete", "pod", "web").returncode == 0
    node.wait_pod("web", lambda pod: "deletionTimestamp" in pod["metadata"], "is being stopped")
    node.restart()
    node.wait_pod("web", lambda pod: "deletionTimestamp" in pod["metadata"], "is still being stopped")
    assert world.is_alive(init), "the grace period of ten minutes is not over"
    node.kill9()
    os.close(os.open(f"{node.data}/go", os.O_CREAT))
    wait(lambda: not world.is_alive(init), "it has ended")
    node.start()
    wait(lambda: world.read(f"{node.data}/log") == "started\nstarted\n", "it has started again")
    node.wait_phase("web", "Succeeded")
    assert node.status("web")["restartCount"] == 0


def test_a_deletion_shortens_the_grace_period_of_a_failed_pod(node):
    late = specs.pod("late", specs.container(script=DEAF), terminationGracePeriodSeconds=600)
    node.launch(late)
    init = node.init("late")
    node.drop({**late, "spec": {**late["spec"], "activeDeadlineSeconds": 1}})
    wait(lambda: "has failed, stopping it: DeadlineExceeded" in node.said(), "it is being stopped")
    assert world.is_alive(init) and node.pod("late")["status"]["phase"] == "Running", "the grace period of ten minutes is not over"
    node.drop(late)  # the next instance has no deadline
    assert node.cli("delete", "pod", "late", "--now").returncode == 0
    wait(lambda: not world.is_alive(init), "the shorter grace period applies")
    node.wait_pod("late", lambda pod: "deletionTimestamp" not in pod["metadata"], "starts again")
    node.wait_running("late")
    node.wait_trap("late")
    node.remove("late")
    node.wait_pod("late", lambda pod: "deletionTimestamp" in pod["metadata"], "is being stopped")
    assert node.cli("delete", "pod", "late", "--now", "--wait").returncode == 0


def test_a_deleted_pod_without_its_manifest_does_not_start_again(node):
    node.drop(specs.pod("deaf", specs.container(script=DEAF), terminationGracePeriodSeconds=2))
    node.wait_running("deaf")
    assert node.cli("delete", "pod", "deaf").returncode == 0
    node.remove("deaf")
    node.wait_gone("deaf")


def test_a_pod_that_is_removed_before_its_deletion_is_not_waited_for(node):
    node.launch(specs.pod("goes", metadata={"labels": {"app": "web"}}))
    node.launch(specs.pod("stays", metadata={"labels": {"app": "web"}}))
    answer = run_while_a_pod_goes(node, "goes", "delete", "pod", "-l", "app=web", "--wait")
    assert answer.returncode == 0 and answer.stdout.splitlines() == ['pod "stays-node1" deleted from default namespace'], answer


def test_a_deletion_does_not_affect_other_pods(node):
    node.launch(specs.pod("other"))
    node.launch(specs.pod("web", metadata={"labels": {"app": "web"}}))
    other = node.init("other")
    assert node.cli("delete", "pod", "-l", "app=web", "--wait").returncode == 0
    node.wait_running("web")
    assert node.init("other") == other


@pytest.mark.parametrize("words,status,said", [
    (["pod"], 2, "is required"),
    (["pod", "missing"], 1, 'pods "missing" not found'),
    (["pod", "x", "--grace-period", "soon"], 2, "must be a number of seconds"),
    (["events", "x"], 2, "unknown resource 'events'"),
])
def test_a_refused_deletion_has_a_message(shared_node, words, status, said):
    answer = shared_node.cli("delete", *words)
    assert (answer.returncode, answer.stdout) == (status, "")
    assert said in answer.stderr


def test_only_root_may_delete(node):
    node.launch(specs.pod("web"))
    init = node.init("web")
    os.chmod(node.directory, 0o755)
    os.chmod(node.run, 0o755)
    os.chown(node.socket, -1, 65534)
    asker = ("import http.client, socket, sys\n"
             "c = http.client.HTTPConnection('x'); c.sock = socket.socket(socket.AF_UNIX); c.sock.connect(sys.argv[1])\n"
             "c.request(sys.argv[2], sys.argv[3]); print(c.getresponse().status)\n")

    def request_as_nobody(method, path):
        return subprocess.run(["/usr/bin/python3", "-c", asker, node.socket, method, path], check=True, text=True,
                              stdout=subprocess.PIPE, user=65534, group=65534, extra_groups=[], timeout=world.DEADLINE).stdout.strip()
    assert request_as_nobody("GET", "/healthz") == "200"
    assert request_as_nobody("DELETE", "/api/v1/namespaces/default/pods/web-node1") == "403"
    assert node.init("web") == init
