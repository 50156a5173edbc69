# SPDX-License-Identifier: Apache-2.0
"""Adoption: a controller manager returns, and its pods adopt those that run here if the template is the same."""

import os
import random
import re
import threading
import time

import pytest
import specs
import world
from api_store import KINDS
from harness import NODE_NAME
from registry import BadRegistry, Blobs
from test_apiserver_daemonsets import CHOSEN, daemonset, may_place, pods_of, wait_pod_of
from test_apiserver_offline import reboot
from world import wait

TOLERATIONS = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect} for key, effect in (
    ("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule"), ("unschedulable", "NoSchedule"))]
HERE = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE_NAME]}]}]}}}
ORDER = "trap 'sleep 1; echo $POD stops >> /data/order; exit 0' TERM; echo $POD starts >> /data/order; sleep 1000 & wait"


class Handover:
    """A DaemonSet whose pod this node has created because there was no controller manager."""

    def __init__(self, member, *containers, **template):
        self.member, self.api = member, member.api
        may_place(self.api)
        self.set = self.api.create("daemonsets", daemonset("logd", *containers, **template))
        member.start()
        self.name = wait_pod_of(member, "logd")["metadata"]["name"]
        member.wait_reported_phase(self.name, "Running")
        member.wait_trap(self.name)
        self.pid = member.init(self.name)

    def bind(self, **changes):
        """Creates a pod like the controller does for the set; returns the server's object."""
        template = self.set["spec"]["template"]
        name = "logd-" + "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
        return self.api.create("pods", {
            "metadata": {"name": name, "generateName": "logd-", "namespace": "default",
                         "labels": {**template["metadata"]["labels"], "controller-revision-hash": "b5d476d4f",
                                    "pod-template-generation": "1"},
                         "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logd",
                                              "uid": self.set["metadata"]["uid"], "controller": True,
                                              "blockOwnerDeletion": True}]},
            "spec": {**template["spec"], "nodeName": NODE_NAME, "affinity": HERE, "tolerations": TOLERATIONS, **changes}})

    def forge(self, namespace="default", owner=None, labels=None):
        """Creates a pod in which a user has named the set as the owner. It runs as a separate pod and reads its own
        files."""
        template = self.set["spec"]["template"]
        if namespace != "default":
            self.api.create("namespaces", {"metadata": {"name": namespace}})
        reference = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logd", "uid": self.set["metadata"]["uid"],
                     "controller": True, **(owner or {})}
        return self.api.create("pods", {
            "metadata": {"name": "forged", "namespace": namespace, "ownerReferences": [reference],
                         "labels": labels or {**template["metadata"]["labels"], "controller-revision-hash": "b5d476d4f"}},
            "spec": {**template["spec"], "nodeName": NODE_NAME, "tolerations": TOLERATIONS}})

    def wait_adopted(self, pod, restarts=0):
        """Waits until the API pod is reported, the adopted pod keeps running, and its mirror pod is gone."""
        name = pod["metadata"]["name"]
        reported = self.member.wait_reported(name, lambda reported: reported["status"].get("phase") == "Running" and
                                     reported["status"]["containerStatuses"][0]["restartCount"] >= restarts and
                                     reported["status"]["containerStatuses"][0]["ready"], "is Running")
        self.member.wait_reported_gone(self.name)
        assert reported["metadata"]["uid"] == pod["metadata"]["uid"]
        status = reported["status"]["containerStatuses"][0]
        assert status["restartCount"] == restarts, status
        assert status["containerID"].endswith(self.member.container_id(self.name))
        assert [one["metadata"]["name"] for one in pods_of(self.member, "logd")] == [self.name]
        assert self.source() == f"api (as {name})"

    def wait_ready(self):
        self.member.wait_pod(self.name, lambda pod: pod["status"]["containerStatuses"][0]["ready"], "is ready")

    def source(self):
        return self.member.pod(self.name)["metadata"]["annotations"]["mainstay.dev/source"]

    def is_adopted(self):
        return self.member.pod(self.name) and self.source().startswith("api (as ")

    def continues(self):
        return world.is_alive(self.pid) and self.member.init(self.name) == self.pid

    def delete_daemonset(self):
        """Deletes the set with its pods."""
        self.api.delete("daemonsets", "default", "logd")
        for pod in self.api.all("pods"):
            if pod["metadata"].get("labels", {}).get("app") == "logd" and "annotations" not in pod["metadata"]:
                self.api.delete("pods", "default", pod["metadata"]["name"], grace=1)
        wait(lambda: "logd" not in self.member.cli("get", "daemonsets").stdout, "the agent has seen it")
        wait(lambda: not pods_of(self.member, "logd"), "the pods are gone")


@pytest.fixture(name="make_handover")
def fixture_make_handover(make_member):
    made = []

    def make(*containers, settings=None, **template):
        made.append(Handover(make_member(start=False, **CHOSEN, **(settings or {})), *containers, **template))
        return made[-1]

    yield make
    for handover in made:
        handover.delete_daemonset()


@pytest.mark.parametrize("template", [{}, {"automountServiceAccountToken": False}, {"serviceAccountName": "default"}])
def test_pod_of_the_same_template_is_adopted(make_handover, template):
    handover = make_handover(**template)
    member = handover.member
    pod = handover.bind()
    has_token = any(one["name"].startswith("kube-api-access-") for one in pod["spec"].get("volumes", []))
    assert has_token != ("automountServiceAccountToken" in template)
    handover.wait_adopted(pod)
    assert handover.continues()
    assert member.cli("logs", handover.name).returncode == 0
    assert member.get(f"/containerLogs/default/{pod['metadata']['name']}/main")[0] == 200
    assert member.cli("exec", handover.name, "--", "true").returncode == 0
    named = [request.body["metadata"]["uid"] for request in member.api.asked("patch", "pods", pod["metadata"]["name"], "status")]
    assert set(named) == {pod["metadata"]["uid"]}


@pytest.mark.parametrize("forged", [
    {"namespace": "evil"}, {"owner": {"kind": "ReplicaSet"}}, {"owner": {"apiVersion": "evil.example/v1"}},
    {"labels": {"app": "other"}}], ids=["namespace", "kind", "group", "selector"])
def test_pod_with_a_forged_owner_adopts_no_pod_and_stops_no_pod(make_handover, forged):
    handover = make_handover()
    member, uid = handover.member, handover.member.pod(handover.name)["metadata"]["uid"]
    pod = handover.forge(**forged)
    reported = member.wait_reported("forged", lambda reported: reported["status"].get("phase") == "Running", "runs",
                                    namespace=pod["metadata"]["namespace"])
    assert not reported["status"]["containerStatuses"][0]["containerID"].endswith(member.container_id(handover.name))
    member.restart()
    member.wait_running(handover.name)
    assert handover.continues() and not handover.is_adopted()
    assert member.pod(handover.name)["metadata"]["uid"] == uid
    namespace = pod["metadata"]["namespace"]
    member.api.delete("pods", namespace, "forged", grace=1)
    wait(lambda: not member.reported("forged", namespace), "the forged pod goes")
    handover.wait_adopted(handover.bind())
    assert handover.continues()


def test_restart_of_an_adopted_pod_is_reported_under_the_api_name(make_handover):
    handover = make_handover()
    pod = handover.bind()
    handover.wait_adopted(pod)
    world.kill_all([handover.pid])
    handover.wait_adopted(pod, restarts=1)
    wait(lambda: [event for event in handover.api.all("events") if event["reason"] == "Started" and
                  event["involvedObject"]["uid"] == pod["metadata"]["uid"] and
                  event["involvedObject"]["name"] == pod["metadata"]["name"]], "the events name it")


def test_adopted_pod_deleted_on_the_node_starts_again(make_handover):
    handover = make_handover()
    pod = handover.bind()
    handover.wait_adopted(pod)
    assert handover.member.cli("delete", "pod", handover.name).returncode == 0
    wait(lambda: not world.is_alive(handover.pid), "it ends")
    handover.pid = handover.member.init(handover.name)  # the process of the next instance
    handover.wait_adopted(pod)
    assert handover.continues()


def test_edit_of_the_api_pod_restarts_only_the_edited_container(make_handover):
    handover = make_handover()
    pod = handover.bind()
    handover.wait_adopted(pod)
    shim = handover.member.shim(handover.name)
    handover.api.patch("pods", "default", pod["metadata"]["name"],
                       {"spec": {"containers": [{"name": "main", "image": "docker.io/busybox:1"}]}})
    handover.wait_adopted(pod, restarts=1)
    assert not world.is_alive(handover.pid) and handover.member.shim(handover.name) == shim


@pytest.mark.parametrize("container", [{}, {"readinessProbe": {"exec": {"command": ["sleep", "1"]}, "timeoutSeconds": 60, "periodSeconds": 3600}}])
def test_adoption_completes_after_the_agent_is_killed_before_it(make_handover, container):
    handover = make_handover(specs.container(**container))
    handover.wait_ready()
    handover.member.kill9()
    pod = handover.bind()
    handover.member.start()
    handover.wait_adopted(pod)
    assert handover.continues()


def test_adoption_completes_after_the_agent_is_killed_before_the_status_report(make_handover):
    handover = make_handover()
    handover.api.misbehave(verb="patch", plural="pods", subresource="status", status=500)
    pod = handover.bind()
    wait(handover.is_adopted, lambda: f"it is adopted\n{handover.member.said()[-3000:]}")
    handover.member.restart()
    assert handover.continues() and handover.is_adopted()
    handover.api.behave()
    handover.wait_adopted(pod)
    handover.member.restart()
    handover.wait_adopted(pod)
    assert handover.continues()


def test_adoption_completes_after_the_agent_is_killed_repeatedly(make_handover):
    handover = make_handover()
    pod = handover.bind()
    for milliseconds in (0, 5, 10, 20, 40, 80, 160, 320):
        handover.member.restart(ready=False)
        time.sleep(milliseconds / 1000)
    handover.member.restart()
    handover.wait_adopted(pod)
    assert handover.continues()


def test_unreachable_server_after_the_adoption_stops_no_pod(make_handover):
    handover = make_handover()
    member = handover.member
    pod = handover.bind()
    handover.wait_adopted(pod)
    member.api.stop()
    member.restart()
    member.wait_running(handover.name)
    assert handover.continues() and handover.is_adopted()
    member.api.start()
    member.launch(specs.pod("own"))
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    handover.wait_adopted(pod)
    assert handover.continues()


def test_adopted_pod_starts_after_a_boot_without_the_server(make_handover):
    handover = make_handover()
    member = handover.member
    pod = handover.bind()
    handover.wait_adopted(pod)
    wait(lambda: os.path.exists(os.path.join(member.state, "cluster", "services")), "the services are kept")
    member.api.stop()
    reboot(member)
    member.start()
    member.wait_running(handover.name)
    pid = member.init(handover.name)
    member.api.start()
    member.launch(specs.pod("own"))
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    member.wait_reported(pod["metadata"]["name"], lambda reported: reported["status"]["containerStatuses"][0]["containerID"].endswith(
        member.container_id(handover.name)), "is the container that runs")
    assert member.init(handover.name) == pid and handover.is_adopted()


def test_deleted_api_pod_stops_the_adopted_pod_with_its_grace_period(make_handover):
    handover = make_handover(specs.container(script="trap 'exit 7' TERM; sleep 1000 & wait"), terminationGracePeriodSeconds=20)
    member = handover.member
    pod = handover.bind()
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    handover.wait_adopted(pod)
    member.api.delete("pods", "default", name)
    member.wait_reported_gone(name)
    assert not world.is_alive(handover.pid)
    last = [request for request in member.api.asked("patch", "pods", name, "status")][-1].body
    assert last["metadata"]["uid"] == uid and last["status"]["phase"] == "Failed"
    assert last["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
    final = member.api.asked("delete", "pods", name, user=f"system:node:{NODE_NAME}")
    assert [request.body["preconditions"]["uid"] for request in final] == [uid]
    # The controller has no pod at that time, so the node creates its own, and the next agent finds it.
    member.wait_reported_phase(handover.name, "Running")
    handover.pid = member.init(handover.name)
    handover.wait_adopted(handover.bind())
    assert handover.continues()


def test_api_pod_missing_in_the_list_stops_the_adopted_pod(make_handover):
    handover = make_handover()
    member = handover.member
    pod = handover.bind()
    handover.wait_adopted(pod)
    member.kill9()
    member.api.delete("pods", "default", pod["metadata"]["name"], grace=0)
    member.start()
    wait(lambda: not world.is_alive(handover.pid), lambda: f"it stops\n{member.said()[-3000:]}")
    member.wait_reported_phase(handover.name, "Running")
    assert handover.source() == "evaluated (api)"


@pytest.fixture(name="order")
def fixture_order(tmp_path):
    """A container that writes to a file when its pod starts and stops, its volume, and the file."""
    path = tmp_path / "order"
    path.write_text("")

    def container(pod):
        return specs.container(script=ORDER, volumeMounts=[specs.mount("d", "/data")], env=[{"name": "POD", "value": pod}])

    return container, specs.host_path("d", tmp_path), path.read_text


def wait_exchanged(handover, pod, read, again=""):
    """Waits until the controller's pod runs separately because the node's own pod has ended."""
    name = pod["metadata"]["name"]
    wait(lambda: re.fullmatch(f"ours starts\nours stops\n{again}theirs starts\n", read()), read)
    handover.member.wait_reported_phase(name, "Running")
    handover.member.wait_reported_gone(handover.name)
    assert [one["metadata"]["name"] for one in pods_of(handover.member, "logd")] == [name]
    assert handover.member.pod(name)["metadata"]["uid"] == pod["metadata"]["uid"]
    assert handover.member.reported(name)["status"]["containerStatuses"][0]["restartCount"] == 0


def test_pod_of_another_template_starts_after_the_old_one_has_stopped(make_handover, order):
    container, volume, read = order
    handover = make_handover(container("ours"), volumes=[volume], terminationGracePeriodSeconds=20)
    pod = handover.bind(containers=[container("theirs")])
    wait_exchanged(handover, pod, read)


def test_pod_of_another_template_starts_in_order_whenever_the_agent_is_killed(make_handover, order):
    container, volume, read = order
    handover = make_handover(container("ours"), volumes=[volume], terminationGracePeriodSeconds=20)
    pod = handover.bind(containers=[container("theirs")])
    for milliseconds in (0, 20, 100, 300, 600):
        handover.member.restart(ready=False)
        time.sleep(milliseconds / 1000)
    handover.member.restart()
    # An agent that starts while the pod is stopped does not know yet that it is replaced. Containers that it starts
    # then may have to stop before they have set their trap.
    wait_exchanged(handover, pod, read, again="(ours starts\n(ours stops\n)?)*")


def test_adopted_pod_stops_when_its_api_pod_changes_beyond_an_edit(make_handover, order):
    container, volume, read = order
    handover = make_handover(container("ours"), volumes=[volume], terminationGracePeriodSeconds=20)
    pod = handover.bind()
    handover.wait_adopted(pod)
    # An API server does not allow this edit, but a restored backup may contain it.
    stored = handover.api.get("pods", "default", pod["metadata"]["name"])
    stored["spec"]["hostPID"] = True
    stored["spec"]["containers"][0]["env"][0]["value"] = "theirs"
    handover.api.store.replace(KINDS["pods"], stored)
    wait_exchanged(handover, pod, read)


def test_pod_that_is_not_ready_is_replaced_by_the_api_pod(make_handover):
    probe = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1}
    handover = make_handover(specs.container(readinessProbe=probe))
    pod = handover.bind()
    handover.member.wait_reported_phase(pod["metadata"]["name"], "Running")
    handover.member.wait_reported_gone(handover.name)
    assert not world.is_alive(handover.pid)
    assert handover.member.pod(pod["metadata"]["name"])["metadata"]["uid"] == pod["metadata"]["uid"]


def test_old_pod_serves_until_the_new_image_is_pulled(make_handover):
    released = threading.Event()
    registry = BadRegistry(Blobs([{"etc/hello": b"hello\n"}]), lambda handler: released.wait(600) and False)
    try:
        handover = make_handover(settings={"insecureRegistries": [registry.host]})
        pod = handover.bind(containers=[{**specs.container(), "image": f"{registry.host}/team/app:latest"}])
        wait(lambda: registry.seen, lambda: f"the image is requested\n{handover.member.said()[-3000:]}")
        assert handover.continues() and not handover.member.pod(pod["metadata"]["name"])
        released.set()
        wait(lambda: not world.is_alive(handover.pid), "the node's pod ends")
        wait(lambda: handover.member.pod(pod["metadata"]["name"]), "the API pod starts")
    finally:
        released.set()
        registry.stop()


def test_only_one_of_two_api_pods_adopts(make_handover):
    handover = make_handover()
    pods = [handover.bind(), handover.bind()]
    for pod in pods:
        handover.member.wait_reported_phase(pod["metadata"]["name"], "Running")
    handover.member.wait_reported_gone(handover.name)
    assert handover.continues() and handover.is_adopted()
    ids = {handover.member.reported(pod["metadata"]["name"])["status"]["containerStatuses"][0]["containerID"] for pod in pods}
    assert len(ids) == 2 and len(pods_of(handover.member, "logd")) == 2
