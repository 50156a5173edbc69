# SPDX-License-Identifier: Apache-2.0
"""Manifests in the forms in which they are published: together with objects that a node does not run, with older names
of fields, and with fields that an API server accepts and a manifest may not have."""

import base64
import json
import re

import harness
import pytest
import specs
import world
from member import NODE_NAME
from test_apiserver_volumes import events_of
from test_ephemeral import add_ephemeral, ephemeral
from test_rollouts import run_cli
from world import wait

CLUSTER_KINDS = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "collector"}},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "collector"}},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "collector"}},
    {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "collector"}}]},
    {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
     "spec": {"group": "example.com", "names": {"kind": "Widget"}}},
    {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}},
    {"apiVersion": "config/v1", "kind": "ConfigMap", "metadata": {"name": "other"}},
    {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "collector-windows"}, "spec": {"template": {"spec": {
        "nodeSelector": {"kubernetes.io/os": "windows"}, "volumes": [{"name": "logs", "hostPath": {"path": "C:\\logs"}}]}}}},
]


def test_a_published_daemonset_runs_although_kinds_of_a_cluster_accompany_it(node):
    container = specs.container(volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}], env=[
        {"name": "ACCOUNT", "valueFrom": {"fieldRef": {"fieldPath": "spec.serviceAccountName"}}}])
    published = specs.daemonset("collector", container, serviceAccount="collector", volumes=[{"name": "scratch"}])
    published["spec"]["template"]["metadata"]["annotations"] = {
        "container.apparmor.security.beta.kubernetes.io/main": "unconfined"}
    text = specs.text(*CLUSTER_KINDS, published)
    node.drop(text, file="collector.yaml")
    pod = wait(lambda: next((pod for pod in node.pods() if pod["status"].get("phase") == "Running"), None),
               lambda: f"the DaemonSet runs; the log of the agent:\n{node.said()[-3000:]}")
    profile = pod["spec"]["containers"][0]["securityContext"]["appArmorProfile"]
    assert profile == {"type": "Unconfined"}
    pid = node.init(pod["metadata"]["name"], "main")
    assert world.environ(pid)["ACCOUNT"] == "collector"
    with open(f"/proc/{pid}/root/scratch/file", "w", encoding="utf-8") as file:
        file.write("x")
    said = node.said()
    assert said.count("which a node does not run") == 1
    assert "skips Namespace, ServiceAccount, ClusterRole, ClusterRoleBinding, Service, CustomResourceDefinition, Widget, " \
        "ConfigMap of config/v1 and DaemonSet for Windows" in said
    answer = node.cli("validate", node.path("collector.yaml"))
    assert answer.returncode == 0 and "ok (daemonset default/collector)" in answer.stdout
    assert "gets no token" in answer.stderr and "it is an emptyDir" in answer.stderr


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job", "CronJob", "ReplicaSet", "Prod"])
def test_a_workload_in_the_file_is_an_error_and_the_pod_of_the_file_stays(node, kind):
    pod = node.launch(specs.pod("web"))
    other = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "other"}}
    node.drop(specs.text(specs.pod("web"), other), file="web.yaml")
    error = rf"web\.yaml:\d+:\d+: kind: is {kind}, .*runs Pod, DaemonSet, ConfigMap, Secret, PriorityClass, RuntimeClass and List"
    wait(lambda: re.search(error, run_cli(node, "get", "events")), lambda: run_cli(node, "get", "events"))
    assert re.search(error, node.cli("get", "pods").stderr)
    assert node.pod("web")["metadata"]["uid"] == pod["metadata"]["uid"]
    assert node.pod("web")["status"]["phase"] == "Running"


def test_a_file_of_skipped_kinds_runs_nothing_and_has_no_error(node):
    node.launch(specs.pod("web"))
    node.drop(specs.text(*CLUSTER_KINDS), file="web.yaml")
    wait(lambda: not node.pods(), lambda: f"the pod is stopped; there is {node.pods()}")
    assert "skips Namespace" in node.said()
    listed, = json.loads(node.get("/manifests")[1])["items"]
    assert not listed.get("error") and len(listed["warnings"]) == 1


def test_the_error_of_a_file_that_never_had_a_pod_is_an_event_of_the_node(node):
    node.drop("kind: Pod\n", file="broken.yaml")
    wait(lambda: re.search(rf"Warning +FailedValidation +node/{harness.NODE_NAME} +.*broken\.yaml:1:1: apiVersion: is required",
                           run_cli(node, "get", "events")), lambda: run_cli(node, "get", "events"))


def test_get_nodes_has_the_columns_of_kubectl(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"node-role.kubernetes.io/edge": ""}}})
    headings, row = run_cli(node, "get", "nodes").splitlines()
    assert headings.split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert re.fullmatch(rf"{harness.NODE_NAME} +Ready\S* +edge +\S+ +v1\.\d+\.\d+\S*", row)
    wide = run_cli(node, "get", "nodes", "-o", "wide").splitlines()[0]
    assert re.split(" {2,}", wide)[5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME",
                                           "API SERVER"]
    headings, row = run_cli(node, "get", "nodes", "--show-labels").splitlines()
    assert headings.split()[-1] == "LABELS" and "node-role.kubernetes.io/edge=" in row
    node.launch(specs.pod("web", metadata={"labels": {"app": "web"}}))
    assert run_cli(node, "get", "pods", "--show-labels", "--no-headers").split()[-1] == "app=web"


def test_a_container_may_have_more_than_a_thousand_variables(node):
    variables = [{"name": f"V{number}", "value": str(number)} for number in range(5000)]
    node.launch(specs.pod("web", specs.container(env=variables)))
    assert world.environ(node.init("web"))["V4999"] == "4999"


def test_a_variable_from_a_value_with_a_nul_byte_is_reported(node):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
              "data": {"key": base64.b64encode(b"a\0b").decode()}}
    variable = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}}
    node.drop(specs.text(secret, specs.pod("web", specs.container(env=[variable]))), file="web.yaml")
    assert node.wait_waiting("web", "CreateContainerConfigError") == \
        "the value of key in Secret default/s contains a NUL byte and cannot be a variable"


# ---- pods of an API server ----

def test_validation_rules_of_manifests_do_not_reject_api_server_pods(make_member):
    member = make_member()
    member.bind("capable", specs.container(securityContext={
        "allowPrivilegeEscalation": False, "capabilities": {"add": ["SYS_ADMIN", "FLY"], "drop": ["CHOWN"]}}))
    member.bind("colon", specs.container(volumeMounts=[{"name": "v", "mountPath": "/a:b"}]), volumes=[{"name": "v"}])
    for name in ("capable", "colon"):
        member.wait_reported_phase(name, "Running")
    member.bind("relative", volumes=[{"name": "v", "hostPath": {"path": "relative"}}])
    member.bind("absent", specs.container(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {
        "containerName": "none", "resource": "limits.cpu"}}}]))
    wait(lambda: [event for event in events_of(member, "relative", "FailedMount")
                  if "hostPath 'relative' is not an absolute path" in event["message"]], "the volume fails")

    def waits(pod):
        waiting = [one["state"].get("waiting", {}) for one in pod["status"].get("containerStatuses", [])]
        return [(one.get("reason"), one.get("message")) for one in waiting] == \
            [("CreateContainerConfigError", "container none not found")]
    member.wait_reported("absent", waits, "waits for a container that does not exist")
    assert member.reported("relative")["status"]["phase"] == member.reported("absent")["status"]["phase"] == "Pending"


def create_pod_with_device(member):
    pod = specs.pod("gpu", metadata={"namespace": "default", "annotations": {"cdi.k8s.io/gpu": "example.com/gpu=0"}})
    member.api.create("pods", {**pod, "spec": {**pod["spec"], "nodeName": NODE_NAME}})


def test_a_pod_of_an_api_server_with_an_annotation_for_an_unknown_device_waits(make_member):
    member = make_member(config={"mainstay": {"cdiForApiPods": True}})
    create_pod_with_device(member)
    event = wait(lambda: events_of(member, "gpu", "Failed"), "it is reported")[0]
    assert "Error: CDI device injection failed: unresolvable CDI devices example.com/gpu=0" in event["message"]
    assert member.reported("gpu")["status"]["phase"] == "Pending"


def test_devices_are_refused_to_pods_of_an_api_server_by_default(make_member):
    member = make_member()
    create_pod_with_device(member)
    event = wait(lambda: events_of(member, "gpu", "FailedPrepareDynamicResources"), "it is reported")[0]
    assert "provides no devices for the annotation 'cdi.k8s.io/gpu' of a pod of an API server" in event["message"]
    assert member.reported("gpu")["status"]["phase"] == "Pending"


@pytest.mark.parametrize("permitted", [False, True], ids=["by default", "permitted"])
def test_annotation_added_to_a_running_pod_is_handled_in_the_same_way(make_member, tmp_path, permitted):
    (tmp_path / "gpu.json").write_text(json.dumps({"cdiVersion": "0.5.0", "kind": "example.com/gpu", "devices": [
        {"name": "0", "containerEdits": {"env": ["GPU=of the node"]}}]}))
    member = make_member(cdiSpecDirs=[str(tmp_path)], cdiForApiPods=permitted)
    member.bind("gpu")
    member.wait_running("gpu")
    pid = member.init("gpu")
    member.api.patch("pods", "default", "gpu", {"metadata": {"annotations": {"cdi.k8s.io/gpu": "example.com/gpu=0"}}})
    wait(lambda: "cdi.k8s.io/gpu" in member.pod("gpu")["metadata"].get("annotations", {}), "the node has the annotation")
    assert member.init("gpu") == pid and "GPU" not in world.environ(pid)
    add_ephemeral(member, "gpu", ephemeral())
    world.kill_all([pid])
    if permitted:
        assert "GPU" in world.environ(wait(lambda: member.find_init("gpu") not in (None, pid) and member.find_init("gpu"), "it has restarted"))
        return
    for container in ("main", "dbg"):
        wait(lambda container=container: "provides no devices for the annotation 'cdi.k8s.io/gpu'" in json.dumps(
            [one for key, several in member.pod("gpu")["status"].items() if key.lower().endswith("containerstatuses")
             for one in several if one["name"] == container]), lambda: f"it is refused: {member.pod('gpu')}")
        assert not member.find_init("gpu", container)
