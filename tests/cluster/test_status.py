# SPDX-License-Identifier: Apache-2.0
"""The status of a pod: generations, gates, resources, probes, and pods that the node does not admit."""

import pytest
import specs
from harness import container_status
from node import condition
from trial import agnhost
from world import wait

# Generations

def test_observed_generation_is_reported(node):
    node.place("web")
    pod = node.wait_api_running("web")
    assert pod["status"].get("observedGeneration") == pod["metadata"]["generation"] == 1
    assert {one["type"]: one.get("observedGeneration") for one in pod["status"]["conditions"]} == {
        "PodReadyToStartContainers": 1, "Initialized": 1, "Ready": 1, "ContainersReady": 1, "PodScheduled": 1}


def test_observed_generation_follows_a_change_of_the_spec(node):
    node.place("web", activeDeadlineSeconds=3000)
    node.wait_api_running("web")
    node.client.patch("pods", node.namespace, "web", {"spec": {"activeDeadlineSeconds": 2000}})
    node.wait_api("web", lambda pod: pod["metadata"]["generation"] == 2 and
                  pod["status"].get("observedGeneration") == 2, "its second generation is reported")


# Readiness gates

def test_readiness_gate_keeps_a_pod_from_being_ready(node):
    node.place("web", readinessGates=[{"conditionType": "example.com/gate"}])
    pod = node.wait_api("web", lambda pod: condition(pod, "ContainersReady").get("status") == "True", "has its containers")
    ready = condition(pod, "Ready")
    assert ready["status"] == "False" and ready["reason"] == "ReadinessGatesNotReady"

    def set_gate(value):
        node.client.patch("pods", node.namespace, "web", {"status": {"conditions": [
            {"type": "example.com/gate", "status": value}]}}, "status")

    set_gate("True")
    node.wait_api_running("web")
    set_gate("False")
    pod = node.wait_api("web", lambda pod: condition(pod, "Ready").get("status") == "False", "is not ready")
    assert condition(pod, "example.com/gate")["status"] == "False"
    assert condition(pod, "ContainersReady")["status"] == "True"


# Resources

def test_resources_of_a_pod_are_reported(node):
    node.place("web", resources={"requests": {"cpu": "100m", "memory": "32Mi"},
                                 "limits": {"cpu": "200m", "memory": "64Mi"}})
    status = node.wait_api_running("web")["status"]
    assert status.get("resources") == {"requests": {"cpu": "100m", "memory": "32Mi"},
                                       "limits": {"cpu": "200m", "memory": "64Mi"}}
    assert status.get("allocatedResources") == {"cpu": "100m", "memory": "32Mi"}


def test_resources_of_containers_are_reported(node):
    node.place("web", specs.container(resources={"requests": {"cpu": "100m", "memory": "32Mi"},
                                                 "limits": {"memory": "64Mi"}}))
    status = container_status(node.wait_api_running("web"))
    assert status["resources"] == {"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}}
    assert status["allocatedResources"] == {"cpu": "100m", "memory": "32Mi"}


# Pods that the node does not admit

def check_refused(node, reason, *words, **fields):
    node.bind("web", **fields)
    pod = node.wait_api_phase("web", "Failed", 30)
    assert pod["status"].get("reason") == reason, pod["status"]
    assert all(word in pod["status"]["message"] for word in words), pod["status"]["message"]
    event = node.wait_event("web", reason, 10)
    assert event["type"] == "Warning"
    assert not pod["status"].get("containerStatuses", [{}])[0].get("containerID")


def test_pod_for_another_operating_system_is_rejected(node):
    check_refused(node, "PodOSNotSupported", os={"name": "windows"})


def test_pod_with_an_unsafe_sysctl_is_rejected(node):
    check_refused(node, "SysctlForbidden", "kernel.msgmax",
                  securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]})


@pytest.mark.parametrize("resource, amount", [("cpu", "1k"), ("memory", "1Pi")])
def test_pod_that_exceeds_the_resources_of_the_node_is_rejected(node, resource, amount):
    check_refused(node, f"OutOf{resource}", "Node didn't have enough resource", resource,
                  containers=[specs.container(resources={"requests": {resource: amount}})])


def test_pod_with_a_node_selector_that_does_not_match_is_rejected(node):
    check_refused(node, "NodeAffinity", nodeSelector={"kubernetes.io/hostname": "elsewhere"})


@pytest.mark.long
def test_pod_beyond_the_maximum_number_of_pods_is_rejected(node):
    limit = int(node.node()["status"]["allocatable"]["pods"])
    for i in range(limit):
        node.bind(f"many{i}", hostNetwork=True, automountServiceAccountToken=False)
    for i in range(limit):
        node.wait_api_running(f"many{i}", 300)
    check_refused(node, "OutOfpods", "Node didn't have enough resource: pods")


# Pods that the server accepts and that can run, although some of their fields have strange values

PREFERRED = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {
    "matchExpressions": [{"key": "disk", "operator": "Gt", "values": ["1Gi"]}]}}]}}
ACCEPTED = {
    "a preference that is not a number": {"affinity": PREFERRED},
    "resizePolicy of an init container": {"initContainers": [specs.container("init", "true", resizePolicy=[
        {"resourceName": "cpu", "restartPolicy": "NotRequired"}])]},
    "a probe of a port that the container has not got": {"containers": [specs.container(
        livenessProbe={"tcpSocket": {"port": "http"}, "failureThreshold": 1000})]},
    "a grace period of more than 32 bits": {"terminationGracePeriodSeconds": 2**32},
    "a grace period that is negative": {"terminationGracePeriodSeconds": -1},
    "an optional object with the name of none": {"volumes": [{"name": "none", "configMap": {
        "name": "$(X)", "optional": True}}]},
    "a volume without a source": {"volumes": [{"name": "none"}]},
}


@pytest.mark.parametrize("what", list(ACCEPTED))
def test_pod_runs_if_the_server_accepts_it(node, what):
    node.bind("web", **ACCEPTED[what])
    pod = node.wait_api("web", lambda pod: pod["status"].get("phase") not in (None, "Pending"), "runs", 30)
    assert pod["status"]["phase"] == "Running", pod["status"]
    node.client.delete("pods", node.namespace, "web", grace=1)
    node.wait_api_gone("web")


# Probes

def test_readiness_probe_sets_the_ready_condition(node):
    probe = {"exec": {"command": ["cat", "/data/ready"]}, "periodSeconds": 1}
    node.place("web", specs.container(readinessProbe=probe, volumeMounts=[specs.mount("data", "/data")]),
               volumes=[specs.host_path("data", node.data)])
    node.wait_event("web", "Unhealthy")
    assert condition(node.read("pods", "web"), "Ready")["reason"] == "ContainersNotReady"
    with open(f"{node.data}/ready", "w", encoding="utf-8"):
        pass
    node.wait_api_running("web")


def test_liveness_probe_restarts_a_container(node):
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    node.place("web", specs.container(livenessProbe=probe))
    node.wait_api("web", lambda pod: container_status(pod).get("restartCount", 0) >= 1, "is restarted")
    event = node.wait_event("web", "Killing")
    assert event["message"] == "Container main failed liveness probe, will be restarted"


def test_http_liveness_probe_restarts_an_unhealthy_server(agnhost_node):
    """'liveness' answers with 500 after ten seconds."""
    node = agnhost_node
    node.place("web", agnhost("liveness", livenessProbe={"httpGet": {"path": "/healthz", "port": 8080},
                                                         "initialDelaySeconds": 3, "failureThreshold": 1,
                                                         "periodSeconds": 1}))
    node.wait_api("web", lambda pod: container_status(pod).get("restartCount", 0) >= 1, "is restarted")


def test_http_probe_follows_a_redirect_to_the_same_host(agnhost_node):
    node = agnhost_node
    node.place("web", agnhost("netexec", livenessProbe={
        "httpGet": {"path": "/redirect?location=/healthz", "port": 8080}, "failureThreshold": 1,
        "initialDelaySeconds": 1, "periodSeconds": 1}))
    node.wait_api_running("web")
    wait(lambda: len([line for line in node.output("web") if "/redirect" in line]) >= 2, "two probes")
    assert not node.events("web", "Unhealthy") and not node.events("web", "ProbeWarning")


def test_http_probe_reports_a_warning_if_it_is_redirected_to_another_host(agnhost_node):
    node = agnhost_node
    node.place("web", agnhost("netexec", livenessProbe={
        "httpGet": {"path": "/redirect?location=http%3A%2F%2F203.0.113.1%2F", "port": 8080}, "failureThreshold": 1,
        "initialDelaySeconds": 1, "periodSeconds": 1}))
    event = node.wait_event("web", "ProbeWarning")
    assert event["type"] == "Warning" and event["message"].startswith("Liveness probe warning: "), event
    assert container_status(node.read("pods", "web"))["restartCount"] == 0


def test_gRPC_probe_names_the_service(agnhost_node):
    node = agnhost_node
    node.place("web", agnhost("grpc-health-checking", readinessProbe={
        "grpc": {"port": 5000, "service": ""}, "periodSeconds": 1}))
    node.wait_api_running("web")


# Priority

@pytest.fixture(name="priority")
def fixture_priority(node):
    """A PriorityClass of the cluster's own."""
    name = f"{node.namespace}-high"
    node.client.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                        "value": 1000})
    yield name
    node.client.delete("priorityclasses", None, name)


def test_pod_with_a_priority_class_runs(node, priority):
    # The server's cache of classes may be a moment behind.
    wait(lambda: node.client.get("priorityclasses", None, priority), "the class")
    node.place("web", priorityClassName=priority)
    pod = node.wait_api_running("web")
    assert pod["spec"]["priority"] == 1000


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical"])
def test_pod_with_a_system_priority_class_runs(node, name):
    node.place("web", priorityClassName=name)
    assert node.wait_api_running("web")["spec"]["priority"] >= 2000000000


# Classes of service

@pytest.mark.parametrize("resources, quality", [
    ({}, "BestEffort"), ({"requests": {"cpu": "10m"}}, "Burstable"),
    ({"limits": {"cpu": "100m", "memory": "32Mi"}}, "Guaranteed")])
def test_qos_class_is_that_of_the_api_server(node, resources, quality):
    node.place("web", specs.container(resources=resources))
    assert node.wait_api_running("web")["status"]["qosClass"] == quality
    assert node.init("web"), "in the control group of its class"
