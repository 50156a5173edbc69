# SPDX-License-Identifier: Apache-2.0
"""The source of pods and DaemonSets, as the command line shows it."""

import json

import specs
from test_apiserver_daemonsets import may_place
from world import wait

KUBECTL = "NAME READY STATUS RESTARTS AGE"
WIDE = KUBECTL + " IP NODE NOMINATED NODE READINESS GATES"
SETS = "NAME DESIRED CURRENT READY UP-TO-DATE AVAILABLE NODE SELECTOR AGE"


def columns(node, *words):
    """The heading and the rows of a table, each with single blanks."""
    return [" ".join(line.split()) for line in node.cli("get", *words).stdout.splitlines()]


def daemonset(name):
    one = specs.daemonset(name)
    one["metadata"]["namespace"] = "default"
    return one


def pod_of(node, app):
    pods = [pod for pod in node.pods() if pod["metadata"].get("labels", {}).get("app") == app]
    return pods[0] if pods else None


def wait_pod_of(node, app):
    return wait(lambda: pod_of(node, app), lambda: f"{app} has a pod\n{node.said()[-3000:]}")["metadata"]["name"]


def source(node, name):
    """The source in the table, the object and the description, which must be equal."""
    row = next(line for line in columns(node, "pods", "-o", "wide") if line.startswith(name + " "))
    pod = json.loads(node.cli("get", "pod", name, "-o", "json").stdout)
    said = pod["metadata"]["annotations"]["mainstay.dev/source"]
    assert row.endswith(f" <none> <none> {said}")
    assert f"Source: {said}" in " ".join(node.cli("describe", "pod", name).stdout.split())
    return said


def wait_source(node, name, expected):
    """Waits first for the pod, because source() sends three requests and compares the responses."""
    wait(lambda: node.pod(name)["metadata"]["annotations"]["mainstay.dev/source"] == expected, lambda: f"{name}: {node.pod(name)}")
    assert source(node, name) == expected


def set_source(node, name):
    row = next(line for line in columns(node, "daemonsets", "-o", "wide") if line.startswith(name + " "))
    document = json.loads(node.cli("get", "daemonset", name, "-o", "json").stdout)
    said = document["metadata"]["annotations"]["mainstay.dev/source"]
    assert row.endswith(f" app={name} {said}")
    assert f"Source: {said}" in " ".join(node.cli("describe", "daemonset", name).stdout.split())
    return said


def test_pods_and_sets_name_their_source(make_member):
    member = make_member(start=False, daemonSets="node")
    may_place(member.api)
    member.api.create("daemonsets", daemonset("theirs"))
    member.drop(specs.daemonset("ours"), "agents.yaml")
    member.start()
    member.bind("bound")
    member.launch(specs.pod("own"))
    names = {app: wait_pod_of(member, app) for app in ("ours", "theirs")}
    member.wait_running("bound")
    assert source(member, "bound") == "api"
    assert source(member, "own-node1") == "file own.yaml"
    assert source(member, names["ours"]) == "evaluated (file agents.yaml)"
    assert source(member, names["theirs"]) == "evaluated (api)"
    assert set_source(member, "ours") == "file agents.yaml"
    assert set_source(member, "theirs") == "api"
    kubelet = "kubernetes.io/config.source"
    assert member.pod("bound")["metadata"]["annotations"][kubelet] == "api"
    assert member.pod("own-node1")["metadata"]["annotations"][kubelet] == "file"
    member.restart()
    wait(lambda: pod_of(member, "theirs"), "the pod exists")
    assert source(member, names["theirs"]) == "evaluated (api)" and source(member, "bound") == "api"
    member.api.delete("daemonsets", "default", "theirs")
    member.wait_gone(names["theirs"])


def test_columns_match_kubectl(node):
    node.launch(specs.pod("own"))
    node.drop(specs.daemonset("ours"))
    wait_pod_of(node, "ours")
    assert columns(node, "pods")[0] == KUBECTL
    assert columns(node, "pods", "-o", "wide")[0] == WIDE + " SOURCE"
    assert columns(node, "daemonsets")[0] == SETS
    assert columns(node, "daemonsets", "-o", "wide")[0] == SETS + " CONTAINERS IMAGES SELECTOR SOURCE"


def test_a_renamed_file_changes_the_source_without_an_edit(node):
    node.launch(specs.pod("own"))
    node.wait_running("own")
    pid = node.init("own")
    node.drop(specs.pod("own"), "other.yaml")
    node.remove("own")
    wait_source(node, "own-node1", "file other.yaml")
    assert node.init("own") == pid
    said = node.cli("diff", node.path("other.yaml"))
    assert said.returncode == 0 and "unchanged" in said.stdout, said.stdout


def test_an_orphaned_daemonset_pod_is_reported(node):
    node.drop(specs.daemonset("ours"))
    name = wait_pod_of(node, "ours")
    node.wait_running(name)
    assert node.cli("delete", "daemonset", "ours", "--cascade=orphan").returncode == 0
    wait_source(node, name, "left by a DaemonSet")
    node.cli("delete", "pod", name)
    node.wait_gone(name)
