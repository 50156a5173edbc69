# SPDX-License-Identifier: Apache-2.0
"""Bare pods: placed, run, changed and deleted through the API server."""

import pytest
import specs
import world
from client import Refused
from harness import container_status
from node import condition
from world import wait


def test_placed_pod_runs_and_is_deleted(node):
    node.place("web")
    pod = node.wait_api_running("web")
    assert pod["spec"]["nodeName"] == node.node_name
    pid = node.init("web")
    node.client.delete("pods", node.namespace, "web")
    node.wait_api_gone("web")
    assert not world.is_alive(pid)


def test_status_names_the_container_the_image_and_the_addresses(node):
    node.place("web")
    status = node.wait_api_running("web")["status"]
    main = container_status({"status": status})
    assert main["ready"] and main["started"] and main["restartCount"] == 0 and "running" in main["state"]
    assert main["containerID"] == f"mainstay://{node.container_id('web')}" and main["imageID"].startswith("sha256:")
    assert status["hostIP"] == node.address_of_node and status["podIP"].startswith("10.213.0.")
    assert status["podIPs"] == [{"ip": status["podIP"]}] and status["qosClass"] == "BestEffort"
    assert {one["type"] for one in status["conditions"] if one["status"] == "True"} >= {
        "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"}


def test_pod_start_has_the_events_of_the_kubelet(node):
    node.place("web")
    node.wait_api_running("web")
    node.wait_event("web", "Started")
    # The taint controller may report that it does not delete the pod, because the node has just become ready.
    reasons = [event["reason"] for event in node.events("web") if event["reason"] != "TaintManagerEviction"]
    assert sorted(reasons) == ["Created", "Pulled", "Scheduled", "Started"], node.describe_events("web")
    started = node.events("web", "Started")[0]
    assert started["involvedObject"]["fieldPath"] == "spec.containers{main}"
    assert started["source"] == {"component": "kubelet", "host": node.node_name}


def test_pod_start_records_no_warning(node):
    for i in range(3):
        node.place(f"web{i}")
    for i in range(3):
        node.wait_api_running(f"web{i}")
        node.wait_event(f"web{i}", "Started")
        assert not [line for line in node.describe_events(f"web{i}") if line.startswith("Warning")]


def test_pod_phase_is_succeeded_after_completion(node):
    node.place("task", specs.container(script="echo done"), restartPolicy="Never")
    pod = node.wait_api_phase("task", "Succeeded")
    assert container_status(pod)["state"]["terminated"]["exitCode"] == 0
    assert condition(pod, "Ready")["reason"] == "PodCompleted"
    assert node.output("task") == ["done"]


def test_pod_phase_is_failed_with_the_message_of_its_container(node):
    script = "echo it broke > /dev/termination-log; exit 3"
    node.place("task", specs.container(script=script), restartPolicy="Never")
    ended = container_status(node.wait_api_phase("task", "Failed"))["state"]["terminated"]
    assert ended["exitCode"] == 3 and ended["reason"] == "Error" and ended["message"] == "it broke\n"


def test_failing_container_is_restarted_and_counted(node):
    node.place("task", specs.container(script="exit 1"))
    pod = node.wait_api("task", lambda pod: container_status(pod).get("restartCount", 0) >= 2, "is restarted twice")
    assert container_status(pod)["lastState"]["terminated"]["exitCode"] == 1
    node.wait_event("task", "BackOff")


def test_deletion_honours_its_grace_period(node):
    script = "trap 'sleep 1; echo ended > /data/end; exit 0' TERM; sleep 1000 & wait"
    node.place("web", specs.container(script=script, volumeMounts=[specs.mount("data", "/data")]),
               volumes=[specs.host_path("data", node.data)])
    node.wait_api_running("web")
    node.client.delete("pods", node.namespace, "web", grace=20)
    pod = node.wait_api("web", lambda pod: pod["metadata"].get("deletionTimestamp"), "is being deleted")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 20
    node.wait_api_gone("web", 15)
    assert world.read(f"{node.data}/end") == "ended\n"


def test_second_deletion_shortens_the_grace_period(node):
    node.place("web", specs.container(script="trap '' TERM; while :; do sleep 1; done"),
               terminationGracePeriodSeconds=600)
    node.wait_api_running("web")
    node.client.delete("pods", node.namespace, "web")
    node.wait_pod("web", lambda pod: pod["metadata"].get("deletionTimestamp"), "is being deleted")
    node.client.delete("pods", node.namespace, "web", grace=1)
    node.wait_api_gone("web", 30)


def test_forced_deletion_stops_the_containers(node):
    node.place("web")
    node.wait_api_running("web")
    pid = node.init("web")
    node.client.delete("pods", node.namespace, "web", grace=0)
    wait(lambda: not world.is_alive(pid), "the process has ended")
    node.wait_gone("web")


def test_eviction_honours_the_grace_period(node):
    node.place("web")
    node.wait_api_running("web")
    pid = node.init("web")
    node.client.post("pods", node.namespace, "web", "eviction", {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web", "namespace": node.namespace}})
    node.wait_api_gone("web")
    assert not world.is_alive(pid)


def test_disruption_budget_refuses_an_eviction(node):
    node.workload("Deployment", "web", replicas=1)
    pod = node.wait_pods("web", 1)[0]["metadata"]["name"]
    node.create("PodDisruptionBudget", "web", "policy/v1",
                spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": node.namespace}}
    with pytest.raises(Refused) as refused:
        node.client.post("pods", node.namespace, pod, "eviction", eviction)
    assert refused.value.code == 429
    assert node.read("pods", pod)["status"]["phase"] == "Running"


def test_init_containers_and_sidecars_start_in_order(node):
    write = "echo {} >> /data/order"
    data = [specs.mount("data", "/data")]
    node.place("web", specs.container(script=f"{write.format('main')}; {specs.IDLE}", volumeMounts=data),
               volumes=[specs.host_path("data", node.data)], initContainers=[
                   specs.container("first", write.format("first"), volumeMounts=data),
                   specs.container("side", f"{write.format('side')}; {specs.IDLE}", restartPolicy="Always",
                                   volumeMounts=data),
                   specs.container("last", write.format("last"), volumeMounts=data)])
    pod = node.wait_api_running("web")
    # A sidecar counts as started when its process runs, which may be before it has written.
    assert sorted(world.read(f"{node.data}/order").split()) == ["first", "last", "main", "side"]
    assert world.read(f"{node.data}/order").split()[0] == "first"
    assert [one["name"] for one in pod["status"]["initContainerStatuses"]] == ["first", "side", "last"]


def test_activeDeadlineSeconds_fails_the_pod(node):
    node.place("task", activeDeadlineSeconds=1)
    pod = node.wait_api_phase("task", "Failed")
    assert pod["status"]["reason"] == "DeadlineExceeded"


def test_missing_image_is_reported(node):
    node.place("web", {**specs.container(), "image": "docker.io/library/absent:1", "imagePullPolicy": "Never"})
    node.wait_api("web", lambda pod: container_status(pod).get("state", {}).get("waiting", {}).get("reason") ==
                  "ErrImageNeverPull", "waits")
    node.wait_event("web", "ErrImageNeverPull")


def test_new_image_of_a_running_pod_restarts_its_container(node):
    node.place("web", specs.container(), specs.container("other"))
    node.wait_api_running("web")
    other = node.init("web", "other")
    node.client.patch("pods", node.namespace, "web", {"spec": {"containers": [
        {"name": "main", "image": specs.IMAGE + "0"}]}})
    node.wait_event("web", "Killing")
    node.client.patch("pods", node.namespace, "web", {"spec": {"containers": [{"name": "main", "image": specs.IMAGE}]}})
    pod = node.wait_api("web", lambda pod: container_status(pod).get("restartCount") == 1 and
                        container_status(pod)["ready"], "runs again")
    assert container_status(pod, "other")["restartCount"] == 0 and node.init("web", "other") == other


def test_changed_labels_reach_the_downward_API(node):
    node.place("web", specs.container(volumeMounts=[specs.mount("info", "/info")]), metadata={"labels": {"a": "1"}},
               volumes=[{"name": "info", "downwardAPI": {"items": [
                   {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}])
    node.wait_api_running("web")
    node.client.patch("pods", node.namespace, "web", {"metadata": {"labels": {"a": "2"}}})
    wait(lambda: 'a="2"' in node.cli("exec", "-n", node.namespace, "web", "--", "cat", "/info/labels").stdout,
         "the new label in the volume")


def test_resources_of_a_running_pod_are_resized(node):
    node.place("web", specs.container(resources={"requests": {"cpu": "100m", "memory": "20Mi"},
                                                 "limits": {"cpu": "200m", "memory": "40Mi"}}))
    node.wait_api_running("web")
    pid = node.init("web")
    node.client.patch("pods", node.namespace, "web", {"spec": {"containers": [{"name": "main", "resources": {
        "requests": {"cpu": "200m"}, "limits": {"cpu": "300m"}}}]}}, "resize")
    pod = node.wait_api("web", lambda pod: container_status(pod).get("resources", {}).get("limits", {}).get("cpu") ==
                        "300m", "is resized")
    assert container_status(pod)["allocatedResources"]["cpu"] == "200m"
    assert container_status(pod)["restartCount"] == 0 and node.init("web") == pid
    if world.cgroup_version() == 1:
        assert world.cgroup_value(node.container_cgroup("web"), "cpu", "cpu.cfs_quota_us") == "30000"
    else:
        assert world.cgroup_value(node.container_cgroup("web"), "cpu", "cpu.max") == "30000 100000"


def test_completed_pod_releases_its_address(node):
    node.place("job", specs.container(script="echo done"), restartPolicy="Never")
    status = node.wait_api("job", lambda pod: pod["status"]["phase"] == "Succeeded", "has succeeded")["status"]
    assert status["podIP"].startswith("10.213.0.")
    wait(lambda: not node.reserved() and not node.veths(), lambda: f"the address is free: {node.reserved()} {node.veths()}")
    node.restart()
    node.place("web")
    node.wait_api_running("web")
    again = node.read("pods", "job")["status"]
    assert again["phase"] == "Succeeded" and again["containerStatuses"][0]["state"] == status["containerStatuses"][0]["state"]
    assert node.reserved() == [node.read("pods", "web")["status"]["podIP"]]
    assert "Cannot start pod" not in node.said() and "trying again" not in node.said()
