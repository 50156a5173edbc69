# SPDX-License-Identifier: Apache-2.0
"""External labels and taints: set on the Node by other writers, cached while the server is unreachable, never changed."""

import pytest
import specs
import world
from harness import NODE_NAME
from test_apiserver_daemonsets import daemonset, may_place, pods_of, wait_pod_of
from world import wait

SERVER = {"daemonSets": "node"}


@pytest.fixture(name="member")
def fixture_member(make_member):
    member = make_member(start=False, **SERVER)
    may_place(member.api)
    return member


def wait_no_pod_of(member, name):
    wait(lambda: not pods_of(member, name), lambda: f"{name} has no pod; the agent logged:\n{member.said()[-3000:]}")


def label(member, **labels):
    """Sets a label like kubectl label; None removes it."""
    member.api.patch("nodes", None, NODE_NAME, {"metadata": {"labels": labels}})


def taint(member, *taints):
    """Replaces all taints by these, which are written as for kubectl taint: 'key:effect'."""
    rows = [dict(zip(("key", "effect"), item.split(":"))) for item in taints]
    member.api.patch("nodes", None, NODE_NAME, {"spec": {"taints": rows}}, strategy=False)


def node_of(member):
    return member.api.get("nodes", None, NODE_NAME)


def labels_of(member):
    return (node_of(member) or {"metadata": {}})["metadata"].get("labels", {})


def wait_registered(member):
    wait(lambda: labels_of(member).get("kubernetes.io/os") == "linux", lambda: f"the Node is registered\n{member.said()[-3000:]}")


def configure(member, **settings):
    top = {key: settings.pop(key) for key in list(settings) if key == "registerWithTaints"}
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, **SERVER, **settings}, **top)


def test_external_label_starts_matching_daemonset(member):
    member.api.create("daemonsets", daemonset("theirs", nodeSelector={"role": "db"}))
    member.drop(specs.daemonset("ours", nodeSelector={"role": "db"}))
    member.start()
    wait_registered(member)
    assert not pods_of(member, "theirs") and not pods_of(member, "ours")
    label(member, role="db")
    for name in ("theirs", "ours"):
        wait_pod_of(member, name)
    assert "role=db" in member.cli("get", "nodes", "--show-labels").stdout
    label(member, role=None)
    for name in ("theirs", "ours"):
        wait_no_pod_of(member, name)


def test_external_labels_are_known_while_the_server_is_unreachable(member):
    member.drop(specs.daemonset("ours", nodeSelector={"role": "db"}))
    member.start()
    wait_registered(member)
    label(member, role="db")
    pid = member.init(wait_pod_of(member, "ours")["metadata"]["name"])
    member.api.stop()
    member.restart()
    member.drop(specs.daemonset("late", nodeSelector={"role": "db"}))
    wait_pod_of(member, "late")
    assert world.is_alive(pid)
    assert "role=db" in member.cli("get", "nodes", "--show-labels").stdout
    member.api.start()
    before = len(member.api.requests)
    wait(lambda: len(member.api.requests) > before + 3, "the server is queried again")
    assert world.is_alive(pid) and labels_of(member)["role"] == "db"
    label(member, role=None)
    wait(lambda: not world.is_alive(pid), "it ends when the label is gone")


def test_local_and_external_labels_do_not_interfere(member):
    configure(member, nodeLabels={"disk": "ssd"})
    member.drop(specs.daemonset("ours", nodeSelector={"disk": "ssd"}))
    member.start()
    wait_registered(member)
    pid = member.init(wait_pod_of(member, "ours")["metadata"]["name"])
    label(member, disk="hdd", team="red")
    wait(lambda: labels_of(member).get("disk") == "ssd", lambda: f"the node's own label comes back: {node_of(member)}")
    assert world.is_alive(pid) and labels_of(member)["team"] == "red"
    configure(member)
    wait_no_pod_of(member, "ours")
    wait(lambda: "disk" not in labels_of(member), lambda: f"the label was removed: {node_of(member)}")
    member.restart()
    wait(lambda: "team=red" in member.cli("get", "nodes", "--show-labels").stdout, "the external label is known")
    assert "disk=" not in member.cli("get", "nodes", "--show-labels").stdout
    assert labels_of(member)["team"] == "red"


def test_changed_label_stays_when_it_leaves_the_configuration(member):
    configure(member, nodeLabels={"disk": "ssd"})
    member.start()
    wait_registered(member)
    wait(lambda: labels_of(member).get("disk") == "ssd", "the label is set")
    member.stop()
    label(member, disk="hdd")
    configure(member)
    member.start()
    wait(lambda: "disk=hdd" in member.cli("get", "nodes", "--show-labels").stdout, lambda: member.cli("get", "nodes", "--show-labels").stdout)
    wait(lambda: "disk" not in (node_of(member)["metadata"]["annotations"] or {}).get("mainstay.dev/own-labels", "disk"),
         lambda: f"it is no longer local: {node_of(member)}")
    assert labels_of(member)["disk"] == "hdd"


def test_external_taint_keeps_pods_out_and_noexecute_stops_them(member):
    member.drop(specs.daemonset("ours"))
    member.start()
    wait_registered(member)
    pid = member.init(wait_pod_of(member, "ours")["metadata"]["name"])
    taint(member, "dedicated:NoSchedule")
    wait(lambda: "dedicated" in member.cli("describe", "node").stdout, "the taint is known")
    member.drop(specs.daemonset("late"))
    wait(lambda: "late" in member.cli("get", "daemonsets").stdout, "the set is known")
    assert world.is_alive(pid) and not pods_of(member, "late")
    taint(member, "dedicated:NoExecute")
    wait_no_pod_of(member, "ours")
    member.restart()
    assert not pods_of(member, "ours")
    taint(member)
    for name in ("ours", "late"):
        wait_pod_of(member, name)


def test_taints_are_removed_only_by_their_writer(member):
    configure(member, registerWithTaints=[{"key": "edge", "effect": "NoSchedule"}])
    member.drop(specs.daemonset("ours"))
    member.start()
    wait_registered(member)
    assert "edge" in [row["key"] for row in node_of(member)["spec"]["taints"]]
    taint(member, "edge:NoSchedule", "theirs:NoSchedule")
    wait(lambda: "theirs" in member.cli("describe", "node").stdout, "the taint is known")
    configure(member)
    wait(lambda: "edge" not in member.cli("describe", "node").stdout, "the label is removed with its configuration")
    assert not pods_of(member, "ours")
    assert {"edge", "theirs"} <= {row["key"] for row in node_of(member)["spec"]["taints"]}
    taint(member, "edge:NoSchedule")
    wait_pod_of(member, "ours")


def test_refused_labels_do_not_affect_the_node_status(member):
    configure(member, daemonSets="controller")
    member.start()
    wait_registered(member)
    wait(lambda: "mainstay.dev/own-labels" in node_of(member)["metadata"]["annotations"], "the labels have been reported")
    fault = member.api.misbehave(verb="patch", plural="nodes", status=403, when=lambda request: "metadata" in request.body)
    configure(member, daemonSets="controller", nodeLabels={"disk": "ssd"})
    wait(lambda: fault.struck, "setting the label is refused")
    wait(lambda: "Refused: the Node: 403 Forbidden" in " ".join(member.cli("describe", "node").stdout.split()),
         lambda: member.cli("describe", "node").stdout)

    def reported():
        return next((item for item in node_of(member)["status"]["conditions"] if item["type"] == "mainstay.io/Refused"), {})
    wait(lambda: reported().get("status") == "True", lambda: f"the status is reported: {node_of(member)}")
    assert "disk" not in labels_of(member) and "disk=ssd" in member.cli("get", "nodes", "--show-labels").stdout


def test_external_labels_are_dropped_without_a_kubeconfig(member):
    member.drop(specs.daemonset("ours", nodeSelector={"role": "db"}))
    member.start()
    wait_registered(member)
    label(member, role="db")
    wait_pod_of(member, "ours")
    member.stop()
    member.write_config()
    member.start()
    wait_no_pod_of(member, "ours")
    assert "role=db" not in member.cli("get", "nodes", "--show-labels").stdout
