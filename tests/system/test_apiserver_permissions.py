# SPDX-License-Identifier: Apache-2.0
"""The state of the connection to the API server, as shown to the administrator and in the Node."""

import json

import specs
from harness import NODE_NAME
from world import wait

UNREACHABLE = "onnect to server"  # "Couldn't connect" or "Could not connect", by the version of libcurl
REFUSED, REACHED = "mainstay.io/Refused", "mainstay.io/APIServerReached"


def described(member):
    return " ".join(member.cli("describe", "node").stdout.split())


def wait_described(member, *parts):
    wait(lambda: all(part in described(member) for part in parts),
         lambda: f"{parts} in\n{member.cli('describe', 'node').stdout}\n{member.said()[-3000:]}")


def local(member, kind):
    node = json.loads(member.cli("get", "nodes", NODE_NAME, "-o", "json").stdout)
    return next(item for item in node["status"]["conditions"] if item["type"] == kind)


def remote_condition(member, kind):
    """The condition in the server's Node, or None."""
    node = member.api.get("nodes", None, NODE_NAME) or {"status": {}}
    return next((item for item in node["status"].get("conditions", []) if item["type"] == kind), None)


def test_describe_node_shows_since_when_the_server_is_reachable(make_member):
    member = make_member(daemonSets="controller")
    wait_described(member, f"API Server: {member.api.url}", "Reached: yes, since ", "Last Error: <none>", "Refused: <nothing>")
    assert member.cli("get", "nodes").stdout.split("\n")[1].split()[:2] == [NODE_NAME, "Ready"]
    assert member.api.url in member.cli("get", "nodes", "-o", "wide").stdout
    since = local(member, REACHED)["lastTransitionTime"]
    assert since and local(member, REACHED)["status"] == "True"
    member.api.stop()
    wait_described(member, "Reached: no, since ", UNREACHABLE)
    assert "Ready,APIServerNotReached" in member.cli("get", "nodes").stdout
    member.api.start()
    wait_described(member, "Reached: yes, since ", UNREACHABLE)
    assert "APIServerNotReached" not in member.cli("get", "nodes").stdout


def test_invalid_kubeconfig_is_shown(make_member):
    member = make_member(start=False)
    with open(member.kubeconfig, "w", encoding="utf-8") as file:
        file.write("apiVersion: v1\nkind: Config\ncurrent-context: nowhere\n")
    member.start()
    wait_described(member, "API Server: <unknown> Reached: not asked yet", "nowhere")
    member.launch(specs.pod("own"))
    member.wait_phase("own", "Running")


def test_without_a_kubeconfig_no_server_is_shown(node):
    assert "API Server: <none>" in described(node)
    assert "<none>" in node.cli("get", "nodes", "-o", "wide").stdout
    document = json.loads(node.cli("get", "nodes", NODE_NAME, "-o", "json").stdout)
    assert list(document["metadata"]["annotations"]) == ["mainstay.dev/secrets-at-rest"]
    assert not [item for item in document["status"]["conditions"] if "/" in item["type"]]


def test_missing_daemonset_permission_is_shown_until_it_is_granted(make_member):
    member = make_member(daemonSets="node")
    wait_described(member, "Refused: DaemonSets: 403 Forbidden (this node may not list daemonsets.apps; it needs the ClusterRole "
                   "mainstay-node")
    assert "Ready,APIServerRefuses" in member.cli("get", "nodes").stdout
    assert local(member, REFUSED)["status"] == "True"
    condition = wait(lambda: remote_condition(member, REFUSED), "a condition of the Node")
    assert condition["status"] == "True" and condition["reason"] == "Forbidden" and "mainstay-node" in condition["message"]
    assert remote_condition(member, "Ready")["status"] == "True"
    for plural in ("daemonsets", "leases"):
        member.api.api.grant("system:nodes", plural, "get", "list", "watch")
    wait(lambda: remote_condition(member, REFUSED)["status"] == "False", lambda: f"{remote_condition(member, REFUSED)}")
    wait_described(member, "Refused: <nothing>", "placed by this node")


def test_refused_registration_is_shown(make_member):
    member = make_member(start=False, daemonSets="controller")
    member.api.misbehave(verb="create", plural="nodes", status=403)
    member.start()
    wait_described(member, "Refused: the Node: 403 Forbidden: the test wants 403")
    member.launch(specs.pod("own"))
    member.wait_phase("own", "Running")
    member.api.behave()
    wait_described(member, "Refused: <nothing>", "placed by the controller manager")


def test_refused_mirror_pod_is_shown(make_member):
    member = make_member(daemonSets="controller")
    fault = member.api.misbehave(verb="create", plural="pods", status=403)
    member.launch(specs.pod("own"))
    wait_described(member, f"create mirror pod default/own-{NODE_NAME}: 403 Forbidden: the test wants 403")
    member.wait_phase("own", "Running")
    assert fault.struck and remote_condition(member, REFUSED) is None, "one pod does not concern the Node"
    member.api.behave()
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    wait_described(member, "Refused: <nothing>")
