# SPDX-License-Identifier: Apache-2.0
"""Pods that an API server binds to this node, and the node's reports about them and about its own pods."""

import os
import signal
import time
import types
import uuid

import api_store
import failing
import pytest
import specs
import world
from harness import NODE_NAME, condition
from world import wait


@pytest.mark.quick
def test_bound_pod_runs_and_is_reported(make_member):
    member = make_member()
    member.bind("web")
    reported = member.wait_reported_phase("web", "Running")
    assert world.is_alive(member.init("web"))
    status = reported["status"]
    assert status["containerStatuses"][0]["ready"] is True
    assert condition(reported, "Ready")["status"] == "True"
    assert status["containerStatuses"][0]["containerID"].startswith("mainstay://")
    assert member.pod("web")["metadata"]["uid"] == reported["metadata"]["uid"]


@pytest.mark.quick
def test_deleted_pod_stops_with_its_grace_period_then_its_object_is_deleted(make_member):
    member = make_member()
    member.bind("slow", specs.container(script="trap 'echo ending; exit 7' TERM; sleep 1000 & wait"),
                terminationGracePeriodSeconds=20)
    member.wait_reported_phase("slow", "Running")
    member.wait_trap("slow")
    pid = member.init("slow")
    member.api.delete("pods", "default", "slow")
    member.wait_reported_gone("slow")
    assert not world.is_alive(pid)
    last = [request for request in member.api.asked("patch", "pods", "slow", "status")][-1].body["status"]
    assert last["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
    assert last["phase"] == "Failed"
    final = member.api.asked("delete", "pods", "slow", user=f"system:node:{NODE_NAME}")
    assert len(final) == 1 and final[0].body["gracePeriodSeconds"] == 0 and final[0].body["preconditions"]["uid"]


@pytest.mark.quick
def test_mirror_pod_is_recreated_and_removed_with_its_file(make_member):
    member = make_member()
    member.launch(specs.pod("own"))
    name = f"own-{NODE_NAME}"
    mirror = member.wait_reported_phase(name, "Running")
    annotations = mirror["metadata"]["annotations"]
    assert annotations["kubernetes.io/config.mirror"] == annotations["kubernetes.io/config.hash"]
    assert mirror["metadata"]["ownerReferences"][0]["kind"] == "Node"
    assert {"operator": "Exists", "effect": "NoExecute"} in mirror["spec"]["tolerations"]
    pid = member.init("own")

    member.api.delete("pods", "default", name, grace=0)
    again = member.wait_reported(name, lambda pod: pod["metadata"]["uid"] != mirror["metadata"]["uid"], "is a new mirror pod")
    member.api.delete("pods", "default", name)
    member.wait_reported(name, lambda pod: pod["metadata"]["uid"] != again["metadata"]["uid"] and
                     pod["status"].get("phase") == "Running", "is another new mirror pod")
    assert world.is_alive(pid)

    member.remove("own")
    member.wait_reported_gone(name)


def test_label_of_a_manifest_reaches_the_mirror_pod_and_keeps_the_container(make_member):
    member = make_member()
    pod = specs.pod("own", metadata={"labels": {"tier": "one"}})
    member.launch(pod)
    name = f"own-{NODE_NAME}"
    before = member.wait_reported_phase(name, "Running")
    pid = member.init("own")
    pod["metadata"]["labels"] = {"tier": "two"}
    pod["spec"]["terminationGracePeriodSeconds"] = 7
    member.drop(pod)
    again = member.wait_reported(
        name, lambda mirror: mirror["metadata"]["labels"] == {"tier": "two"} and
        mirror["status"].get("phase") == "Running", "has the new label")
    assert again["spec"]["terminationGracePeriodSeconds"] == 7
    mirrors, statuses = ([one["metadata"]["annotations"][f"kubernetes.io/config.{word}"] for one in (before, again)]
                         for word in ("hash", "mirror"))
    assert mirrors[0] != mirrors[1] and statuses == mirrors
    assert member.init("own") == pid and world.is_alive(pid)
    assert again["status"]["containerStatuses"][0]["restartCount"] == 0
    member.restart()
    member.wait_running("own")
    assert member.reported(name)["metadata"]["uid"] == again["metadata"]["uid"]


def test_mirror_pod_is_recreated_when_the_edited_container_runs(make_member):
    """'kubeadm upgrade' concludes from the new mirror pod that the component runs."""
    member = make_member()
    script = "trap 'touch /data/term; until test -e /data/end; do sleep 0.1; done; exit 0' TERM; touch /data/up; sleep 100000 & wait"
    mounts = {"volumeMounts": [specs.mount("data", "/data")]}
    data = {"volumes": [specs.host_path("data", member.data)], "terminationGracePeriodSeconds": 60}
    member.launch(specs.pod("own", specs.container(script=script, **mounts), **data))
    name = f"own-{NODE_NAME}"
    before, pid = member.wait_reported_phase(name, "Running"), member.init("own")
    wait(lambda: os.path.exists(f"{member.data}/up"), "the trap is set")
    edited = "trap 'exit 0' TERM; sleep 200000 & wait"
    member.drop(specs.pod("own", specs.container(script=edited, **mounts), **data))
    wait(lambda: os.path.exists(f"{member.data}/term"), "the old container gets SIGTERM")
    assert member.reported(name)["metadata"]["uid"] == before["metadata"]["uid"]
    world.run("touch", f"{member.data}/end")
    again = member.wait_reported(name, lambda pod: pod["metadata"]["uid"] != before["metadata"]["uid"] and
                                 pod["status"].get("phase") == "Running", "is a new mirror pod")
    assert again["metadata"]["annotations"]["kubernetes.io/config.hash"] != before["metadata"]["annotations"]["kubernetes.io/config.hash"]
    assert not world.is_alive(pid)
    wait(lambda: edited in world.cmdline(member.init("own")), "the edited container runs")


def test_late_response_does_not_override_the_watch(make_member):
    member = make_member()
    late = member.api.misbehave(verb="patch", plural="pods", subresource="status", delay=2, times=1,
                                when=lambda request: request.body["status"].get("phase") == "Running")
    member.launch(specs.pod("own"))
    name = f"own-{NODE_NAME}"
    mirror = member.wait_reported_phase(name, "Running")
    member.api.delete("pods", "default", name)
    member.wait_reported(name, lambda pod: pod["metadata"]["uid"] != mirror["metadata"]["uid"] and
                     pod["status"].get("phase") == "Running", "is a new mirror pod")
    assert late.struck == 1
    member.wait_running("own")


def is_reported_ready(pod):
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))


def make_unready(member, name):
    """Changes the pod like the node controller does if a node has been silent for a while; returns the server's
    object."""
    return member.api.patch("pods", "default", name, {"status": {"conditions": [
        {"type": "Ready", "status": "False", "lastTransitionTime": "2038-01-01T00:00:00Z"}]}}, subresource="status")


def test_status_that_others_have_changed_is_reported_again(make_member):
    member = make_member()
    member.bind("web")
    member.launch(specs.pod("own"))
    names = ("web", f"own-{NODE_NAME}")
    for name in names:
        member.wait_reported(name, is_reported_ready, "is ready")
        make_unready(member, name)
    for name in names:
        member.wait_reported(name, is_reported_ready, "is ready again")


def test_status_that_another_writer_keeps_changing_is_not_reported_forever(make_member):
    member = make_member()
    member.bind("web")
    member.wait_reported("web", is_reported_ready, "is ready")
    before = len(member.api.asked("patch", "pods", "web", "status"))
    start = time.monotonic()
    for _ in range(40):
        assert not is_reported_ready(make_unready(member, "web"))
        time.sleep(0.2)
    member.wait_reported("web", is_reported_ready, "becomes ready")
    sent = len(member.api.asked("patch", "pods", "web", "status", user=f"system:node:{NODE_NAME}")) - before
    assert 1 <= sent <= 2 + (time.monotonic() - start) / 10, sent


def test_status_that_the_server_itself_changes_is_not_reported_again(make_member):
    """A webhook, for example, would change the status after each write."""
    def webhook(request):
        for one in request.body["status"].get("conditions", []):
            if one["type"] == "Ready":
                one["status"] = "Unknown"
        return True

    member = make_member()
    member.api.misbehave(verb="patch", plural="pods", subresource="status", when=webhook)
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    time.sleep(3)
    before = len(member.api.asked("patch", "pods", "web", "status"))
    time.sleep(12)
    assert len(member.api.asked("patch", "pods", "web", "status")) <= before + 1
    assert condition(member.reported("web"), "Ready")["status"] == "Unknown"


def test_unreachable_server_stops_no_container(make_member):
    member = make_member()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    pid = member.init("web")
    member.api.stop()
    member.launch(specs.pod("own"))
    member.restart()
    member.wait_running("web")
    assert member.init("web") == pid
    member.api.start()
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    assert member.init("web") == pid


def test_many_bound_pods_run_and_are_reported(make_member):
    member = make_member()
    names = [f"many{i}" for i in range(80)]
    for name in names:
        member.bind(name)
    for name in names:
        member.wait_reported_phase(name, "Running")
    assert member.agent.poll() is None
    assert len({member.reported(name)["status"]["containerStatuses"][0]["containerID"] for name in names}) == len(names)


def test_pod_runs_with_the_priority_that_admission_gave_it(make_member):
    member = make_member()
    for name, value, default in (("important", 5000, False), ("usual", 7, True)):
        member.api.create("priorityclasses", {"metadata": {"name": name}, "value": value, "globalDefault": default,
                                              "preemptionPolicy": "Never"})
    member.bind("named", priorityClassName="important")
    member.bind("plain")
    for name, priority, priority_class in (("named", 5000, "important"), ("plain", 7, "usual")):
        assert member.wait_reported_phase(name, "Running")["spec"]["priority"] == priority
        spec = member.pod(name)["spec"]
        assert (spec["priority"], spec["priorityClassName"]) == (priority, priority_class)


def test_pod_keeps_its_overhead_when_its_runtime_class_changes(make_member):
    member = make_member()
    member.api.create("runtimeclasses", {"metadata": {"name": "plain"}, "handler": "runc",
                                         "overhead": {"podFixed": {"cpu": "10m", "memory": "20Mi"}}})
    member.bind("web", runtimeClassName="plain")
    member.wait_reported_phase("web", "Running")
    member.api.patch("runtimeclasses", None, "plain", {"overhead": {"podFixed": {"cpu": "50m", "memory": "90Mi"}}})
    member.restart()
    os.kill(member.init("web"), signal.SIGKILL)
    member.wait_pod("web", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] == 1, "has restarted")
    assert member.pod("web")["spec"]["overhead"] == {"cpu": "10m", "memory": "20Mi"}


def test_readiness_gate_opens_with_the_condition_of_a_controller(make_member):
    member = make_member()
    gate = "example.com/in-balancer"
    member.bind("web", readinessGates=[{"conditionType": gate}])

    def ready(pod):
        return condition(pod, "Ready")

    waiting = ready(member.wait_reported_phase("web", "Running"))
    assert (waiting["status"], waiting["reason"]) == ("False", "ReadinessGatesNotReady")
    for status, expected in (("True", "True"), ("False", "False"), ("True", "True")):
        member.api.patch("pods", "default", "web", {"status": {"conditions": [
            {"type": gate, "status": status, "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}, "status")
        pod = member.wait_reported("web", lambda pod, expected=expected: ready(pod)["status"] == expected,
                                   f"is ready: {expected}")
        assert condition(pod, gate)["status"] == status
    member.restart()
    pid = member.init("web")
    os.kill(pid, signal.SIGKILL)
    pod = member.wait_reported("web", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] == 1 and
                               ready(pod)["status"] == "True", "is ready again")
    assert condition(pod, gate)["status"] == "True"


def test_status_has_the_observed_generation(make_member):
    member = make_member()
    member.bind("web", specs.container(resources={"requests": {"cpu": "10m"}}))
    pod = member.wait_reported_phase("web", "Running")
    assert pod["metadata"]["generation"] == pod["status"]["observedGeneration"] == 1
    assert {one.get("observedGeneration") for one in pod["status"]["conditions"]} == {1}
    member.api.patch("pods", "default", "web", {"spec": {"containers": [
        {"name": "main", "resources": {"requests": {"cpu": "20m"}}}]}})
    pod = member.wait_reported("web", lambda pod: pod["status"].get("observedGeneration") == 2, "has observed the change")
    assert {one.get("observedGeneration") for one in pod["status"]["conditions"]} == {2}
    mirror = specs.pod("own")
    member.launch(mirror)
    name = f"own-{NODE_NAME}"
    assert member.wait_reported_phase(name, "Running")["status"]["observedGeneration"] == 1


def test_completed_pod_has_no_shim_and_keeps_its_log_and_its_status(make_member):
    member = make_member()
    script = "echo attempt $(cat /data/n 2>&-); [ -e /data/n ] || { echo 1 > /data/n; exit 3; }"
    member.bind("job", specs.container(script=script, volumeMounts=[specs.mount("data", "/data")],
                                       securityContext={"runAsUser": 1234}),
                restartPolicy="OnFailure", volumes=[{"name": "data", "emptyDir": {}}])
    member.wait_reported_phase("job", "Succeeded")
    wait(lambda: not member.shims(), lambda: f"the shim has ended: {member.shims()}")
    uid = member.reported("job")["metadata"]["uid"]
    wait(lambda: not os.path.exists(os.path.join(member.state, "pods", uid, "volumes")), "its volumes are removed")
    before = member.status("job")
    assert before["restartCount"] == 1 and before["lastState"]["terminated"]["exitCode"] == 3 and before["user"]["linux"]["uid"] == 1234
    for _ in range(2):
        status, log = member.get("/containerLogs/default/job/main")
        assert status == 200 and log == "attempt 1\n"
        assert member.status("job") == before
        member.restart()
        member.wait_pod("job", lambda pod: pod["status"].get("phase") == "Succeeded", "has succeeded")
    wait(lambda: not member.shims(), lambda: f"the cleanup of the new agent has ended: {member.shims()}")
    assert member.reported("job")["status"]["containerStatuses"][0]["user"] == before["user"]
    member.api.delete("pods", "default", "job")
    member.wait_reported_gone("job")


def test_pod_whose_containers_all_wait_for_their_restart_has_not_completed(make_member):
    member = make_member()
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}
    member.bind("loops", specs.container(script="exit 88", restartPolicy="Never", restartPolicyRules=[rule]))
    member.wait_pod("loops", lambda pod: pod["status"].get("containerStatuses", [{}])[0].get("restartCount", 0) >= 3, "restarts")
    member.wait_reported("loops", lambda pod: pod["status"].get("phase") == "Running" and
                         pod["status"]["containerStatuses"][0]["restartCount"] >= 1, "is Running, and has restarted")
    member.api.delete("pods", "default", "loops")
    member.wait_reported_gone("loops")


def test_agent_that_dies_when_a_completed_pod_is_cleaned_up_keeps_its_log_and_its_status(archive, api):
    member = failing.FailingMember(api, archive)
    try:
        member.arm({"mainstayd:pod.cleaned": "1*panic"})
        member.bind("job", specs.container(script="echo done"), restartPolicy="Never")
        member.wait_reported_phase("job", "Succeeded")
        wait(lambda: member.is_ready() and member.hits()["mainstayd:pod.cleaned"] > 0, "the agent has died and was restarted")
        member.wait_pod("job", lambda pod: pod["status"].get("phase") == "Succeeded", "has succeeded")
        assert member.get("/containerLogs/default/job/main") == (200, "done\n") and member.n_deaths == 1
    finally:
        member.arm({})
        member.finish()


def test_second_pod_with_the_uid_of_another_is_refused(make_member, monkeypatch):
    member = make_member()
    uid = str(uuid.uuid4())
    with monkeypatch.context() as patch:
        patch.setattr(api_store, "uuid", types.SimpleNamespace(uuid4=lambda: uid))
        member.bind("first")
        member.wait_reported_phase("first", "Running")
        init = member.init("first")
        member.bind("second")
    wait(lambda: "its UID is that of pod default/first" in member.said(), "the second pod is refused")
    assert world.is_alive(init) and member.init("first") == init
    assert member.pod("second")["status"]["phase"] == "Pending"
    member.api.delete("pods", "default", "second", grace=0)
    member.api.delete("pods", "default", "first", grace=1)
    member.wait_reported_gone("first")
