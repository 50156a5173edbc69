# SPDX-License-Identifier: Apache-2.0
"""DaemonSets of an API server, evaluated by this node if no controller manager does."""

import copy
import time

import pytest
import specs
import world
from harness import NODE_NAME
from world import wait

LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
         "metadata": {"name": "kube-controller-manager", "namespace": "kube-system"},
         "spec": {"holderIdentity": "master_1", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}}


CHOSEN = {"daemonSetNamespaces": ["default"]}


def daemonset(name, *containers, **fields):
    one = specs.daemonset(name, *containers, **fields)
    one["metadata"]["namespace"] = "default"
    return one


def pods_of(member, name):
    return [pod for pod in member.pods() if pod["metadata"].get("labels", {}).get("app") == name]


def wait_pod_of(member, name):
    """Waits for the pod that this node has created for the set, and returns it once it runs."""
    pod = wait(lambda: pods_of(member, name), lambda: f"{name} has a pod; the log of the agent:\n{member.said()[-3000:]}")[0]
    member.wait_running(pod["metadata"]["name"])
    return pods_of(member, name)[0]


def may_place(api):
    """Grants the permissions of the package's ClusterRole."""
    for plural in ("daemonsets", "leases", "namespaces"):
        api.api.grant("system:nodes", plural, "get", "list", "watch")


def test_evaluated_daemonset_runs_and_has_a_mirror_pod(make_member):
    member = make_member(start=False)
    may_place(member.api)
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, "daemonSets": "node"})
    member.api.create("daemonsets", daemonset("logd"))
    member.api.create("daemonsets", daemonset("elsewhere", nodeSelector={"there": "not"}))
    member.start()
    pod = wait_pod_of(member, "logd")
    member.wait_reported_phase(pod["metadata"]["name"], "Running")
    assert not pods_of(member, "elsewhere")
    assert "elsewhere" in member.cli("get", "daemonsets").stdout
    pid = member.init(pod["metadata"]["name"])
    member.restart()
    wait(lambda: pods_of(member, "logd"), "the pod exists")
    assert world.is_alive(pid)
    member.api.delete("daemonsets", "default", "logd")
    member.api.delete("daemonsets", "default", "elsewhere")
    wait(lambda: not world.is_alive(pid), "the pod of the deleted set ends")
    member.wait_reported_gone(pod["metadata"]["name"])


def test_missing_permission_for_daemonsets_is_reported(make_member):
    member = make_member(start=False)
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, "daemonSets": "node"})
    member.start()
    member.launch(specs.pod("own"))
    wait(lambda: "ClusterRole" in member.said(), "it reports what it needs")
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")


def test_node_evaluates_daemonsets_without_a_lease_until_a_controller_binds_a_pod(make_member):
    member = make_member(start=False, **CHOSEN)
    may_place(member.api)
    made = member.api.create("daemonsets", daemonset("logd"))
    member.start()
    ours = wait_pod_of(member, "logd")
    pid = member.init(ours["metadata"]["name"])
    member.api.create("pods", {
        "metadata": {"name": "logd-abcde", "namespace": "default", "labels": {"app": "logd"}, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logd", "uid": made["metadata"]["uid"],
             "controller": True, "blockOwnerDeletion": True}]},
        "spec": {**specs.pod("x", specs.container(env=[{"name": "OF", "value": "another"}]))["spec"], "nodeName": NODE_NAME}})
    member.wait_reported_phase("logd-abcde", "Running")
    wait(lambda: not world.is_alive(pid), "the node's pod ends")
    member.wait_reported_gone(ours["metadata"]["name"])
    member.api.delete("pods", "default", "logd-abcde", grace=1)
    wait(lambda: [pod for pod in pods_of(member, "logd") if pod["metadata"]["name"] != "logd-abcde"],
         "this node evaluates it again")
    member.api.delete("daemonsets", "default", "logd")
    wait(lambda: not pods_of(member, "logd"), "the pod goes")


def test_renewed_lease_leaves_daemonsets_to_the_controller(make_member):
    member = make_member(start=False)
    may_place(member.api)
    lease = member.api.create("leases", copy.deepcopy(LEASE), "kube-system")
    member.api.create("daemonsets", daemonset("logd"))
    member.start()
    for second in range(60):
        lease["spec"]["renewTime"] = f"2026-01-01T00:00:{second:02}.000000Z"
        lease = member.api.replace("leases", lease)
        if "The controller manager places the DaemonSets" in member.said():
            break
        time.sleep(1)
    assert "The controller manager places the DaemonSets" in member.said()
    member.launch(specs.pod("own"))
    assert not pods_of(member, "logd")
    assert not member.api.asked("list", "daemonsets")


def test_daemonset_deleted_while_the_controller_is_active_loses_its_pod_on_this_node(make_member):
    """The controller has bound no pod here, so the pod that this node has created still runs."""
    member = make_member(start=False)
    may_place(member.api)
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, "daemonSets": "node"})
    member.api.create("daemonsets", daemonset("logd"))
    member.start()
    pid = member.init(wait_pod_of(member, "logd")["metadata"]["name"])
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, "daemonSets": "controller"})
    member.restart()
    wait(lambda: "The controller manager places the DaemonSets" in member.said(), "it is reported")
    member.api.create("daemonsets", daemonset("later"))
    member.launch(specs.pod("own"))
    assert world.is_alive(pid) and pods_of(member, "logd") and not pods_of(member, "later")
    member.api.delete("daemonsets", "default", "logd")
    wait(lambda: not world.is_alive(pid), "the pod of the deleted set ends")
    wait(lambda: not pods_of(member, "logd"), "it is gone")
    assert not pods_of(member, "later")
    member.api.delete("daemonsets", "default", "later")


@pytest.mark.parametrize("spec", [7, {"selector": {"matchLabels": {"a": "b"}}, "template": {}}])
def test_invalid_daemonset_does_not_affect_others(make_member, spec):
    member = make_member(start=False)
    may_place(member.api)
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, "daemonSets": "node"})
    bad = daemonset("bad")
    bad["spec"] = spec
    member.api.create("daemonsets", bad)
    member.api.create("daemonsets", daemonset("good"))
    member.start()
    wait_pod_of(member, "good")
    assert "bad" in member.said()
    member.api.delete("daemonsets", "default", "good")
    wait(lambda: not pods_of(member, "good"), "the pod goes")


# Pods that the controller has bound before it went away

TOLERATED = [("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule"),
             ("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule"), ("unschedulable", "NoSchedule"),
             ("network-unavailable", "NoSchedule")]
GENERATION = "deprecated.daemonset.template.generation"


def bind_as_controller(member, made, generation=1, name="logd-abcde", namespace="default"):
    """Creates the pod that the controller creates for the set and the scheduler binds."""
    template = made["spec"]["template"]
    tolerations = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect} for key, effect in TOLERATED]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE_NAME]}]}]}}}
    return member.api.create("pods", {
        "metadata": {"name": name, "namespace": namespace,
                     "labels": {**template["metadata"]["labels"], "pod-template-generation": str(generation)},
                     "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logd",
                                          "uid": made["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}]},
        "spec": {**template["spec"], "nodeName": NODE_NAME, "tolerations": tolerations, "affinity": affinity, "priority": 0}})


def make_bound_set(make_member, **template):
    """A node with a set whose pod was created by the controller, which is gone."""
    member = make_member(start=False, **CHOSEN)
    may_place(member.api)
    one = daemonset("logd", specs.container(env=[{"name": "V", "value": "1"}]), **template)
    one["metadata"]["annotations"] = {GENERATION: "1"}
    made = member.api.create("daemonsets", one)
    bind_as_controller(member, made)
    member.start()
    member.wait_reported_phase("logd-abcde", "Running")
    wait(lambda: "This node places the DaemonSets" in member.said(), "the node places DaemonSets")
    return member, made


def set_template(member, made, value, generation):
    made = copy.deepcopy(member.api.get("daemonsets", "default", "logd"))
    made["metadata"]["annotations"] = {GENERATION: str(generation)}
    made["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "V", "value": value}]
    return member.api.replace("daemonsets", made)


def delete_sets(member):
    for one in member.api.all("daemonsets"):
        member.api.delete("daemonsets", "default", one["metadata"]["name"])
    for pod in member.api.all("pods"):
        if "kubernetes.io/config.mirror" not in pod["metadata"].get("annotations", {}):
            member.api.delete("pods", "default", pod["metadata"]["name"], grace=1)
    wait(lambda: not member.pods(), lambda: f"the pods are gone: {member.said()[-3000:]}")


def ours_of(member):
    return [pod for pod in pods_of(member, "logd") if pod["metadata"]["name"] != "logd-abcde"]


def variables_of(member, name):
    return world.read(f"/proc/{member.init(name)}/environ").split("\0")


def test_node_places_no_daemonset_before_it_knows_its_bound_pods(make_member):
    member = make_member(start=False, **CHOSEN)
    may_place(member.api)
    bind_as_controller(member, member.api.create("daemonsets", daemonset("logd")))
    fault = member.api.misbehave(verb="list", plural="pods", latency=3, times=1)
    member.start()
    member.wait_reported_phase("logd-abcde", "Running")
    wait(lambda: "This node places the DaemonSets" in member.said(), "the node places DaemonSets")
    assert fault.struck == 1
    assert [line for line in member.said().splitlines() if "Starting pod" in line] == [
        "mainstayd: Starting pod default/logd-abcde of the API server"]
    delete_sets(member)


def test_node_that_may_not_list_pods_places_daemonsets(make_member):
    member = make_member(start=False, **CHOSEN)
    may_place(member.api)
    member.api.create("daemonsets", daemonset("logd"))
    member.api.misbehave(verb="list", plural="pods", status=403)
    member.start()
    wait(lambda: pods_of(member, "logd"), lambda: f"the DaemonSet has a pod: {member.said()}")
    member.api.behave()
    delete_sets(member)


@pytest.mark.quick
def test_changed_template_replaces_the_controllers_pod_until_the_controller_takes_over_again(make_member):
    member, made = make_bound_set(make_member)
    pid = member.init("logd-abcde")
    made = set_template(member, made, "2", 2)
    member.wait_reported_gone("logd-abcde")
    assert not world.is_alive(pid)
    ours = wait(lambda: ours_of(member), lambda: f"the node has created a pod: {member.said()[-3000:]}")[0]["metadata"]["name"]
    member.wait_running(ours)
    assert "V=2" in variables_of(member, ours)
    (deletion,) = [one for one in member.api.asked("delete", "pods", "logd-abcde") if "gracePeriodSeconds" not in str(one.body)] or [None]
    assert deletion
    pid = member.init(ours)
    bind_as_controller(member, made, 2, "logd-fghij")
    member.wait_reported_phase("logd-fghij", "Running")
    assert world.is_alive(pid) and member.find_init(ours, "main") == pid, "the controller's pod adopts the node's"
    delete_sets(member)


def test_template_that_was_changed_back_replaces_no_pod(make_member):
    member, made = make_bound_set(make_member)
    pid = member.init("logd-abcde")
    set_template(member, made, "1", 3)
    member.api.create("daemonsets", daemonset("other"))
    wait_pod_of(member, "other")
    assert world.is_alive(pid) and not member.api.asked("delete", "pods", "logd-abcde")
    delete_sets(member)


def test_node_label_stops_and_starts_the_controllers_pod(make_member):
    member, _ = make_bound_set(make_member)
    pid = member.init("logd-abcde")
    made = copy.deepcopy(member.api.get("daemonsets", "default", "logd"))
    made["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    made["metadata"]["annotations"] = {GENERATION: "2"}
    member.api.replace("daemonsets", made)
    member.wait_reported_gone("logd-abcde")
    assert not world.is_alive(pid) and not pods_of(member, "logd")
    assert "no longer selects this node" in member.said()
    member.api.patch("nodes", None, NODE_NAME, {"metadata": {"labels": {"disk": "ssd"}}})
    wait_pod_of(member, "logd")
    delete_sets(member)
