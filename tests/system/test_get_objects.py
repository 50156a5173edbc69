# SPDX-License-Identifier: Apache-2.0
"""mainstay get configmaps and get secrets: names and keys, without values of Secrets."""

import json
import re

import pytest
import specs
import yaml

SECRET = "correct-horse-battery"


@pytest.fixture(scope="module", name="stocked")
def fixture_stocked(shared_node):
    shared_node.drop({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "labels": {"a": "b"}},
                      "data": {"color": "red\n", "size": "10"}, "binaryData": {"blob": "/wAB"}})
    shared_node.drop({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"},
                      "stringData": {"password": SECRET}})
    shared_node.drop({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "far", "namespace": "other"},
                      "data": {"x": "y"}})
    shared_node.drop({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"},
                      "value": 1000, "globalDefault": True, "description": "for what matters"})
    shared_node.drop({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "plain"},
                      "handler": "runc", "overhead": {"podFixed": {"memory": "8Mi"}}})
    shared_node.launch(specs.pod("web"))
    return shared_node


def rows(text):
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines()]


def test_configmaps_have_kubectl_s_columns(stocked):
    table = rows(stocked.cli("get", "configmaps").stdout)
    assert table[0] == ["NAME", "DATA", "AGE"]
    assert [row[:2] for row in table[1:]] == [["settings", "3"]]
    assert re.fullmatch(r"\d+[smh]", table[1][2])
    assert rows(stocked.cli("get", "cm", "-A").stdout)[1][:3] == ["default", "settings", "3"]


def test_secrets_have_kubectl_s_columns(stocked):
    table = rows(stocked.cli("get", "secrets").stdout)
    assert table[0] == ["NAME", "TYPE", "DATA", "AGE"]
    assert table[1][:3] == ["keys", "Opaque", "1"]


def test_a_configmap_is_printed_completely(stocked):
    shown = yaml.safe_load(stocked.cli("get", "configmap", "settings", "-o", "yaml").stdout)
    assert shown["kind"] == "ConfigMap"
    assert shown["data"] == {"color": "red\n", "size": "10"}
    assert shown["binaryData"] == {"blob": "/wAB"}
    assert shown["metadata"]["labels"] == {"a": "b"}


def test_values_of_secrets_are_never_printed(stocked):
    shown = json.loads(stocked.cli("get", "secret/keys", "-o", "json").stdout)
    assert shown["data"] == {"password": f"<hidden, {len(SECRET)} bytes>"}
    printed = stocked.get("/secrets")[1] + stocked.cli("get", "secrets", "-A", "-o", "yaml").stdout
    assert SECRET not in printed and "Y29ycmVjd" not in printed


def test_classes_have_kubectls_columns_and_are_cluster_scoped(stocked):
    table = rows(stocked.cli("get", "priorityclasses", "-n", "other").stdout)
    assert table[0] == ["NAME", "VALUE", "GLOBAL-DEFAULT", "AGE", "PREEMPTIONPOLICY"]
    assert (table[1][:3], table[1][4]) == (["high", "1000", "true"], "PreemptLowerPriority")
    assert rows(stocked.cli("get", "pc", "-A", "--no-headers").stdout)[0][0] == "high"
    table = rows(stocked.cli("get", "runtimeclass").stdout)
    assert (table[0], table[1][:2]) == (["NAME", "HANDLER", "AGE"], ["plain", "runc"])
    shown = json.loads(stocked.cli("get", "runtimeclass/plain", "-o", "json").stdout)
    assert (shown["apiVersion"], shown["kind"]) == ("node.k8s.io/v1", "RuntimeClass")
    assert (shown["handler"], shown["overhead"]) == ("runc", {"podFixed": {"memory": "8Mi"}})
    assert "namespace" not in shown["metadata"]
    assert stocked.cli("get", "priorityclass", "-o", "name").stdout.splitlines() == [
        f"priorityclass.scheduling.k8s.io/{name}" for name in ("high", "system-cluster-critical", "system-node-critical")]
    assert [row[:3] for row in rows(stocked.cli("get", "pc").stdout)[2:]] == [
        ["system-cluster-critical", "2000000000", "false"], ["system-node-critical", "2000001000", "false"]]
    shown = yaml.safe_load(stocked.cli("get", "pc", "system-node-critical", "-o", "yaml").stdout)
    assert (shown["kind"], shown["value"]) == ("PriorityClass", 2000001000)


@pytest.mark.parametrize("words,status,said", [
    (["priorityclasses", "low"], 1, 'priorityclasses.scheduling.k8s.io "low" not found'),
    (["events", "none"], 1, 'events "none" not found'),
    (["nodes", "none"], 1, 'nodes "none" not found'),
    (["configmaps", "nothing"], 1, 'configmaps "nothing" not found'),
    (["secrets", "-n", "empty"], 0, "No resources found in empty namespace."),
    (["secrets", "-w"], 2, "cannot be watched"),
])
def test_a_missing_object_is_an_error(stocked, words, status, said):
    answer = stocked.cli("get", *words)
    assert (answer.returncode, answer.stdout) == (status, "")
    assert said in answer.stderr
