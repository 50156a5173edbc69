# SPDX-License-Identifier: Apache-2.0
"""DaemonSets of an API server that this node places in the controller's absence: which sets it takes over, and which pods
the Pod Security level of their namespace admits."""

import copy
import glob
import json
import os

import pytest
import specs
import world
from harness import NODE_NAME, is_running
from test_apiserver_daemonsets import bind_as_controller, daemonset, may_place, pods_of
from test_apiserver_offline import reboot
from world import wait

ENFORCE = "pod-security.kubernetes.io/enforce"
VERSION = "pod-security.kubernetes.io/enforce-version"
EVIL = {"hostPID": True, "volumes": [{"name": "root", "hostPath": {"path": "/"}}]}


def evil_container():
    return specs.container(securityContext={"privileged": True}, volumeMounts=[specs.mount("root", "/host")])


class Cluster:
    """A node, and sets in a namespace of a user."""

    def __init__(self, make_member, **settings):
        self.settings = settings
        self.member = make_member(start=False)
        self.api = self.member.api
        may_place(self.api)
        self.configure(**settings)

    def configure(self, **settings):
        self.member.write_config(mainstay={"kubeconfig": self.member.kubeconfig, **settings})

    def make_namespace(self, name="team", **labels):
        self.api.create("namespaces", {"metadata": {"name": name, "labels": {
            {"enforce": ENFORCE, "version": VERSION}[key]: value for key, value in labels.items()}}})

    def label(self, name="team", **labels):
        self.api.patch("namespaces", None, name, {"metadata": {"labels": {
            {"enforce": ENFORCE, "version": VERSION}[key]: value for key, value in labels.items()}}})

    def make_set(self, name, *containers, namespace="team", **template):
        one = daemonset(name, *containers, **template)
        one["metadata"]["namespace"] = namespace
        return self.api.create("daemonsets", one, namespace)

    def make_evil_set(self, name="evil", **fields):
        return self.make_set(name, evil_container(), **EVIL, **fields)

    def conditions(self, name, namespace="team"):
        found = self.member.cli("get", "daemonset", name, "-n", namespace, "-o", "json")
        status = json.loads(found.stdout).get("status", {}) if found.returncode == 0 else {}
        return {one["type"]: one for one in status.get("conditions", [])}

    def wait_level_seen(self, level, name="team"):
        """Waits until the node has read the label of the namespace."""
        wait(lambda: f"namespace: {name}, enforces {level}\n" in self.member.cli("debug", "dump").stdout,
             lambda: f"the node sees the level {level}: {self.member.said()[-3000:]}")

    def find_process(self, pod):
        return min(world.cgroup_pids(self.member.cgroup_of(pod, "main")), default=None)

    def wait_runs(self, name):
        """Waits until the pod that this node has created for the set runs; returns the pod and its process."""
        pod = wait(lambda: [pod for pod in pods_of(self.member, name) if is_running(pod)],
                   lambda: f"{name} runs: {self.conditions(name)}\n{self.member.said()[-3000:]}")[0]
        return pod["metadata"]["name"], wait(lambda: self.find_process(pod), "it has a process")

    def wait_refused(self, name, reason, text, namespace="team"):
        """Waits until the condition and the event contain the reason, on the node and at the server; nothing runs."""
        def refusal():
            condition = self.conditions(name, namespace).get("Admitted", {})
            return condition if condition.get("reason") == reason and text in condition["message"] else None
        condition = wait(refusal, lambda: f"{name} is refused: {self.conditions(name, namespace)}\n{self.member.said()[-3000:]}")
        assert condition["status"] == "False"
        wait(lambda: [event for event in self.api.all("events") if event["involvedObject"]["name"] == name and
                      event["involvedObject"]["kind"] == "DaemonSet" and event["reason"] == reason and
                      text in event["message"] and event["type"] == "Warning"],
             lambda: f"the server has an event: {self.api.all('events')}")
        described = self.member.cli("describe", "daemonset", name, "-n", namespace).stdout
        assert f"no ({reason}): " in described and text in described, described
        assert text in self.member.cli("get", "daemonsets", "-n", namespace).stderr
        assert not pods_of(self.member, name)

    def finish(self):
        for one in self.api.all("daemonsets"):
            self.api.delete("daemonsets", one["metadata"]["namespace"], one["metadata"]["name"])
        for pod in self.api.all("pods"):
            if "kubernetes.io/config.mirror" not in pod["metadata"].get("annotations", {}):
                self.api.delete("pods", pod["metadata"]["namespace"], pod["metadata"]["name"], grace=1)
        wait(lambda: not self.member.pods(), lambda: f"the pods are gone: {self.member.said()[-3000:]}")


@pytest.fixture(name="make_cluster")
def fixture_make_cluster(make_member):
    made = []

    def make(**settings):
        made.append(Cluster(make_member, **settings))
        return made[-1]

    yield make
    for cluster in made:
        cluster.finish()


# Which sets

def test_daemonset_outside_of_the_configured_namespaces_waits_for_its_controller(make_cluster):
    cluster = make_cluster()
    cluster.make_namespace(enforce="privileged")
    cluster.make_set("logd")
    cluster.make_set("own", namespace="kube-system")
    cluster.member.start()
    cluster.wait_runs("own")
    cluster.wait_refused("logd", "AwaitsController", "namespace team is not in mainstay.daemonSetNamespaces")
    assert cluster.conditions("own", "kube-system")["Admitted"]["status"] == "True"
    cluster.configure(daemonSetNamespaces=["team"])
    cluster.member.restart()
    _, pid = cluster.wait_runs("logd")
    cluster.configure()
    cluster.member.restart()
    cluster.wait_runs("own")
    assert world.is_alive(pid), "a pod that was admitted keeps running"


@pytest.mark.parametrize("settings, runs", [
    ({"daemonSetNamespaces": ["team"]}, True), ({"daemonSetNamespaces": ["*"]}, True), ({"daemonSets": "node"}, True),
    ({"daemonSetNamespaces": ["other"]}, False), ({"daemonSets": "node", "daemonSetNamespaces": ["other"]}, False)])
def test_daemonset_is_placed_only_in_the_configured_namespaces(make_cluster, settings, runs):
    cluster = make_cluster(**settings)
    cluster.make_namespace()
    cluster.make_set("logd")
    cluster.member.start()
    if runs:
        cluster.wait_runs("logd")
    else:
        cluster.wait_refused("logd", "AwaitsController", "daemonSetNamespaces")


def bind(cluster, made, name="logd-abcde", **fields):
    """Binds a pod that the controller has created for the set, in the set's namespace."""
    made = {**made, "metadata": {**made["metadata"], **fields.pop("metadata", {})}}
    return bind_as_controller(cluster.member, made, name=name, namespace="team")


def run_bound_pod(make_cluster, **template):
    """Runs a pod that the controller has bound here for the set before it went away."""
    cluster = make_cluster()
    cluster.make_namespace(enforce="privileged")
    made = cluster.make_set("logd", **template)
    bind(cluster, made)
    cluster.member.start()
    wait(lambda: (cluster.api.get("pods", "team", "logd-abcde") or {}).get("status", {}).get("phase") == "Running",
         lambda: f"the bound pod runs: {cluster.member.said()[-3000:]}")
    wait(lambda: "This node places the DaemonSets" in cluster.member.said(), "the node places DaemonSets")
    return cluster, made


def delete_bound(cluster, name="logd-abcde"):
    cluster.api.delete("pods", "team", name, grace=1)
    wait(lambda: not cluster.api.get("pods", "team", name), "the bound pod is gone")


def test_daemonset_whose_pod_was_bound_here_is_taken_over(make_cluster):
    cluster, _ = run_bound_pod(make_cluster)
    delete_bound(cluster)
    name, _ = cluster.wait_runs("logd")
    assert name != "logd-abcde"
    assert cluster.conditions("logd")["Admitted"]["status"] == "True"


@pytest.mark.parametrize("boot", [False, True], ids=["restart", "boot"])
def test_daemonset_whose_pod_was_deleted_while_no_agent_ran_is_taken_over(make_cluster, boot):
    cluster, _ = run_bound_pod(make_cluster)
    if boot:
        reboot(cluster.member)
    else:
        cluster.member.kill9()
    cluster.api.delete("pods", "team", "logd-abcde", grace=0)
    cluster.member.start()
    cluster.wait_runs("logd")


def test_proof_of_admission_survives_a_restart_after_the_pod_is_removed(make_cluster):
    cluster = make_cluster(nodeLabels={"disk": "ssd"})
    cluster.make_namespace()
    bind(cluster, cluster.make_set("logd", nodeSelector={"disk": "ssd"}))
    cluster.member.start()
    wait(lambda: (cluster.api.get("pods", "team", "logd-abcde") or {}).get("status", {}).get("phase") == "Running",
         lambda: f"the bound pod runs: {cluster.member.said()[-3000:]}")
    cluster.configure(nodeLabels={"disk": "hdd"})
    cluster.member.restart()
    wait(lambda: not cluster.api.get("pods", "team", "logd-abcde"), "the bound pod is deleted: the label has changed")
    wait(lambda: glob.glob(os.path.join(cluster.member.state, "cluster", "admitted", "*")), "the proof is on the disk")
    cluster.member.kill9()
    cluster.configure(nodeLabels={"disk": "ssd"})
    cluster.member.start()
    cluster.wait_runs("logd")


@pytest.mark.parametrize("change", ["template", "label", "namespace", "owner"])
def test_pods_that_a_user_can_create_do_not_prove_admission(make_cluster, change):
    """A user may create such pods: with another spec, a label that the selector does not match, another namespace, or
    another set."""
    cluster = make_cluster()
    cluster.make_namespace()
    cluster.make_namespace("evil")
    made = cluster.make_evil_set("logd")
    template = made["spec"]["template"]
    spec = {**specs.pod("x")["spec"], "nodeName": NODE_NAME} if change == "template" else {
        **template["spec"], "nodeName": NODE_NAME, "tolerations": [], "affinity": {}}
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logd", "controller": True,
             "uid": "00000000-0000-4000-8000-000000000000" if change == "owner" else made["metadata"]["uid"]}
    labels = {"app": "other"} if change == "label" else template["metadata"]["labels"]
    namespace = "evil" if change == "namespace" else "team"
    cluster.api.create("pods", {"metadata": {"name": "forged", "namespace": namespace, "labels": labels, "ownerReferences": [owner]},
                                "spec": spec})
    cluster.member.start()
    wait(lambda: (cluster.api.get("pods", namespace, "forged") or {}).get("status", {}).get("phase") == "Running",
         lambda: f"the forged pod runs: {cluster.member.said()[-3000:]}")
    cluster.api.delete("pods", namespace, "forged", grace=1)
    wait(lambda: not cluster.api.get("pods", namespace, "forged"), "it is gone")
    cluster.wait_refused("logd", "AwaitsController", "no pod of the API server with this template")


def test_bound_pod_stays_if_the_next_template_is_not_admitted(make_cluster):
    cluster, made = run_bound_pod(make_cluster)
    made = copy.deepcopy(cluster.api.get("daemonsets", "team", "logd"))
    made["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "2"}
    made["spec"]["template"]["spec"].update(hostPID=True)
    cluster.api.replace("daemonsets", made)
    wait(lambda: [event for event in cluster.api.all("events") if event["reason"] == "AwaitsController"],
         lambda: f"an event is reported: {cluster.member.said()[-3000:]}")
    assert cluster.api.get("pods", "team", "logd-abcde")["status"]["phase"] == "Running"
    assert not cluster.api.asked("delete", "pods", "logd-abcde")


# Pod Security

@pytest.mark.parametrize("settings", [{"daemonSetNamespaces": ["team"]}, {"daemonSets": "node"}], ids=["auto", "node"])
@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_daemonset_that_violates_the_level_of_its_namespace_is_not_placed(make_cluster, level, settings):
    cluster = make_cluster(**settings)
    cluster.make_namespace(enforce=level)
    cluster.make_namespace("free")
    cluster.make_evil_set()
    cluster.member.start()
    cluster.wait_refused("evil", "PodSecurity", f'violates PodSecurity "{level}:latest": host namespaces (hostNetwork=true, hostPID=true)')
    cluster.member.restart()
    cluster.wait_refused("evil", "PodSecurity", "privileged")


def test_daemonset_for_another_system_never_starts_though_its_level_exempts_it(make_cluster):
    """The levels exempt pods for Windows, which no Linux node runs."""
    cluster = make_cluster(daemonSetNamespaces=["team"])
    cluster.make_namespace(enforce="restricted")
    user = specs.container(securityContext={"runAsNonRoot": True, "runAsUser": 1000})
    cluster.make_set("plain", user, hostNetwork=False)
    cluster.make_set("window", user, hostNetwork=False, os={"name": "windows"})
    cluster.member.start()
    cluster.wait_refused("plain", "PodSecurity", "allowPrivilegeEscalation != false")
    for _ in range(2):
        wait(lambda: "PodOSNotSupported" in cluster.member.cli("get", "events", "-n", "team").stdout,
             lambda: f"an event contains the reason: {cluster.member.cli('get', 'events').stdout}\n{cluster.member.said()[-3000:]}")
        wait(lambda: [pod for pod in pods_of(cluster.member, "window") if pod["status"].get("reason") == "PodOSNotSupported"],
             lambda: f"the pod waits: {pods_of(cluster.member, 'window')}")
        uid = pods_of(cluster.member, "window")[0]["metadata"]["uid"]
        assert not os.path.exists(os.path.join(cluster.member.run, "pods", uid, "containers")), "no container is prepared"
        cluster.member.restart()


@pytest.mark.parametrize("template", [{"priority": 2000001000}, {"priority": 1, "priorityClassName": "system-node-critical"},
                                      {"priority": 1, "priorityClassName": "unknown"}], ids=["none", "system", "other"])
def test_priority_without_a_matching_class_is_refused(make_cluster, template):
    cluster = make_cluster(daemonSetNamespaces=["team"])
    cluster.make_namespace()
    cluster.make_set("logd", **template)
    cluster.make_set("plain", priority=0)
    cluster.make_set("system", priority=2000001000, priorityClassName="system-node-critical")
    cluster.member.start()
    cluster.wait_refused("logd", "Priority", f"the integer value of priority ({template['priority']}) must not be provided in pod spec")
    cluster.wait_runs("plain")
    cluster.wait_runs("system")
    cluster.member.restart()
    cluster.wait_refused("logd", "Priority", "PriorityClass")


def test_admitted_daemonset_is_still_checked_against_its_level(make_cluster):
    cluster, _ = run_bound_pod(make_cluster)
    cluster.label(enforce="restricted")
    delete_bound(cluster)
    cluster.wait_refused("logd", "PodSecurity", "restricted:latest")
    cluster.label(enforce="privileged")
    cluster.wait_runs("logd")


def test_changed_level_applies_to_the_next_pod(make_cluster):
    cluster = make_cluster(daemonSetNamespaces=["team"])
    cluster.make_namespace(enforce="baseline", version="v1.30")
    cluster.make_evil_set()
    cluster.member.start()
    cluster.wait_refused("evil", "PodSecurity", "baseline:v1.30")
    cluster.label(enforce=None)
    name, pid = cluster.wait_runs("evil")
    cluster.label(enforce="baseline")
    cluster.wait_level_seen("baseline")
    assert world.is_alive(pid), "a pod that was admitted keeps running"
    cluster.member.cli("delete", "pod", name, "-n", "team")
    wait(lambda: not world.is_alive(pid), "it stops")
    wait(lambda: not pods_of(cluster.member, "evil"), "it is gone, and no other one has started")
    cluster.wait_refused("evil", "PodSecurity", "baseline:v1.30")


def test_next_template_that_violates_the_level_leaves_the_pod_running(make_cluster):
    cluster = make_cluster(daemonSetNamespaces=["team"])
    cluster.make_namespace()
    cluster.make_set("logd")
    cluster.member.start()
    name, pid = cluster.wait_runs("logd")
    cluster.label(enforce="baseline")
    cluster.wait_level_seen("baseline")
    made = copy.deepcopy(cluster.api.get("daemonsets", "team", "logd"))
    made["spec"]["template"]["spec"].update(hostPID=True)
    made = cluster.api.replace("daemonsets", made)
    wait(lambda: cluster.conditions("logd").get("Admitted", {}).get("reason") == "PodSecurity",
         lambda: f"it is refused: {cluster.conditions('logd')}")
    assert world.is_alive(pid) and [one["metadata"]["name"] for one in pods_of(cluster.member, "logd")] == [name]
    made["spec"]["template"]["spec"].update(hostPID=False)
    cluster.api.replace("daemonsets", made)
    wait(lambda: cluster.conditions("logd")["Admitted"]["status"] == "True",
         lambda: f"it is admitted: {cluster.conditions('logd')}\n{cluster.member.said()[-3000:]}")
    assert world.is_alive(pid)


@pytest.mark.parametrize("labels, text", [
    ({"enforce": "none"}, "the unknown level 'none'"), ({"enforce": ""}, "the unknown level ''"),
    ({"enforce": "baseline", "version": "v1.99"}, "the unknown version 'v1.99'"), ({"version": "newest"}, "the unknown version 'newest'")])
def test_daemonset_is_not_placed_if_the_level_or_version_is_unknown(make_cluster, labels, text):
    cluster = make_cluster(daemonSetNamespaces=["team"])
    cluster.make_namespace(**labels)
    cluster.make_set("logd")
    cluster.member.start()
    cluster.wait_refused("logd", "NamespaceUnknown", text)


def test_daemonset_is_not_placed_if_its_namespace_cannot_be_read(make_cluster):
    cluster = make_cluster(daemonSetNamespaces=["team"])
    cluster.make_namespace()
    cluster.make_set("logd")
    cluster.api.misbehave(verb="list", plural="namespaces", status=403)
    cluster.member.start()
    cluster.wait_refused("logd", "NamespaceUnknown", "it needs the ClusterRole mainstay-node")
    assert "namespaces: 403" in cluster.member.cli("describe", "node").stdout
    cluster.api.behave()
    cluster.member.restart()
    cluster.wait_runs("logd")


# Without the server

@pytest.mark.parametrize("boot", [False, True], ids=["restart", "boot"])
def test_cached_level_applies_while_the_server_is_unreachable(make_cluster, boot):
    names = {"daemonSetNamespaces": ["team", "locked", "unread"]}
    cluster = make_cluster(**names)
    cluster.make_namespace()
    cluster.make_namespace("locked", enforce="baseline")
    cluster.make_namespace("unread")
    cluster.make_set("first")
    cluster.make_set("logd", nodeSelector={"disk": "ssd"})
    cluster.make_set("other", namespace="unread", nodeSelector={"disk": "ssd"})
    cluster.make_evil_set(namespace="locked")
    cluster.member.start()
    cluster.wait_runs("first")
    cluster.wait_refused("evil", "PodSecurity", "baseline:latest", "locked")
    wait(lambda: cluster.conditions("other", "unread"), "the sets are known")
    if boot:
        reboot(cluster.member)
    else:
        cluster.member.kill9()
    cluster.api.stop()
    cluster.configure(**names, nodeLabels={"disk": "ssd"})
    cluster.member.start()
    cluster.wait_runs("logd")
    assert cluster.conditions("evil", "locked")["Admitted"]["reason"] == "PodSecurity"
    assert cluster.conditions("other", "unread")["Admitted"]["status"] == "False"
    assert not pods_of(cluster.member, "evil") and not pods_of(cluster.member, "other")
    cluster.api.start()
    cluster.wait_runs("other")


def test_pod_created_by_an_earlier_agent_keeps_running(make_cluster):
    """The pod was created before its namespace enforced a level, or by a version that did not check it."""
    cluster = make_cluster(daemonSetNamespaces=["team"])
    cluster.make_namespace()
    cluster.make_evil_set()
    cluster.member.start()
    _, pid = cluster.wait_runs("evil")
    cluster.member.kill9()
    cluster.label(enforce="restricted")
    cluster.configure()
    cluster.member.start()
    cluster.wait_runs("evil")
    wait(lambda: "This node places the DaemonSets" in cluster.member.said(), "the node places DaemonSets")
    assert world.is_alive(pid)
