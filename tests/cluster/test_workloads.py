# SPDX-License-Identifier: Apache-2.0
"""Every kind of workload with its own controller: started, scaled, updated, deleted."""

import specs
import world
from harness import container_status
from node import LABEL, is_ready
from world import wait


def by_uid(pods):
    return {pod["metadata"]["uid"] for pod in pods}


def variable(pod):
    return pod["spec"]["containers"][0].get("env", [{}])[0].get("value")


def set_variable(value):
    return {"containers": [{"name": "main", "env": [{"name": "V", "value": value}]}]}


# Deployment, ReplicaSet

def test_deployment_can_be_created_scaled_and_deleted(node):
    node.workload("Deployment", "web", replicas=2)
    pods = node.wait_pods("web", 2)
    node.wait_for("deployments", "web", lambda obj: obj["status"].get("availableReplicas") == 2, "is available")
    node.client.patch("deployments", node.namespace, "web", {"spec": {"replicas": 4}})
    assert by_uid(node.wait_pods("web", 4)) > by_uid(pods)
    node.client.patch("deployments", node.namespace, "web", {"spec": {"replicas": 1}})
    node.wait_pods("web", 1)
    node.client.delete("deployments", node.namespace, "web", propagation="Background")
    node.wait_pods("web", 0)
    wait(lambda: not node.pods(), "no pod is left at the node")


def test_deployment_can_be_rolled_out_and_rolled_back(node):
    node.workload("Deployment", "web", specs.container(env=[{"name": "V", "value": "1"}]), replicas=2)
    first = node.wait_pods("web", 2)
    node.client.patch("deployments", node.namespace, "web", node.template_patch(**set_variable("2")))
    node.plane.kubectl("-n", node.namespace, "rollout", "status", "deployment/web", "--timeout=60s")
    second = node.wait_pods("web", 2)
    assert not by_uid(first) & by_uid(second) and {variable(pod) for pod in second} == {"2"}
    node.plane.kubectl("-n", node.namespace, "rollout", "undo", "deployment/web")
    node.plane.kubectl("-n", node.namespace, "rollout", "status", "deployment/web", "--timeout=60s")
    assert {variable(pod) for pod in node.wait_pods("web", 2)} == {"1"}


def test_rollout_keeps_the_old_pods_while_the_new_ones_are_not_ready(node):
    node.workload("Deployment", "web", replicas=1)
    first = node.wait_pods("web", 1)
    node.client.patch("deployments", node.namespace, "web", node.template_patch(containers=[
        {"name": "main", "readinessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1}}]))
    wait(lambda: len(node.api_pods("web")) == 2, "a second pod")
    second = next(pod for pod in node.api_pods("web") if pod["metadata"]["uid"] not in by_uid(first))
    node.wait_event(second["metadata"]["name"], "Unhealthy")
    assert is_ready(node.read("pods", first[0]["metadata"]["name"]))


def test_replica_set_replaces_a_deleted_pod(node):
    node.workload("ReplicaSet", "web", replicas=2)
    pods = node.wait_pods("web", 2)
    node.client.delete("pods", node.namespace, pods[0]["metadata"]["name"])
    wait(lambda: pods[0]["metadata"]["uid"] not in by_uid(node.api_pods("web")), "the pod is gone")
    now = node.wait_pods("web", 2)
    assert pods[1]["metadata"]["uid"] in by_uid(now)


# StatefulSet

def test_stateful_set_starts_in_order_and_keeps_names(node):
    node.create("Service", "db", spec={"clusterIP": "None", "selector": {"app": "db"}, "ports": [{"port": 80}]})
    node.workload("StatefulSet", "db", specs.container(script=f"hostname; hostname -f; {specs.IDLE}"), replicas=3,
                  serviceName="db")
    pods = sorted(node.wait_pods("db", 3), key=lambda pod: pod["metadata"]["name"])
    assert [pod["metadata"]["name"] for pod in pods] == ["db-0", "db-1", "db-2"]
    starts = [container_status(pod)["state"]["running"]["startedAt"] for pod in pods]
    assert starts == sorted(starts)
    assert node.output("db-1") == ["db-1", f"db-1.db.{node.namespace}.svc.cluster.local"]
    node.client.delete("pods", node.namespace, "db-1")
    wait(lambda: by_uid(pods) != by_uid(node.api_pods("db")), "the pod is gone")
    node.wait_pods("db", 3)
    node.client.patch("statefulsets", node.namespace, "db", {"spec": {"replicas": 1}})
    assert node.wait_pods("db", 1)[0]["metadata"]["name"] == "db-0"


def test_stateful_set_is_updated_from_the_last_to_the_first(node):
    node.workload("StatefulSet", "db", specs.container(env=[{"name": "V", "value": "1"}]), replicas=2)
    node.wait_pods("db", 2)
    node.client.patch("statefulsets", node.namespace, "db", node.template_patch(**set_variable("2")))
    wait(lambda: {variable(pod) for pod in node.wait_pods("db", 2)} == {"2"}, "both are new")
    starts = {pod["metadata"]["name"]: container_status(pod)["state"]["running"]["startedAt"]
              for pod in node.wait_pods("db", 2)}
    assert starts["db-1"] <= starts["db-0"]


# DaemonSet

def test_daemon_set_runs_and_is_updated(node):
    node.workload("DaemonSet", "logd", specs.container(env=[{"name": "V", "value": "1"}]))
    first = node.wait_pods("logd", 1)
    node.wait_for("daemonsets", "logd", lambda obj: obj["status"].get("numberAvailable") == 1, "is available")
    node.client.patch("daemonsets", node.namespace, "logd", node.template_patch(**set_variable("2")))
    node.plane.kubectl("-n", node.namespace, "rollout", "status", "daemonset/logd", "--timeout=60s")
    second = node.wait_pods("logd", 1)
    assert not by_uid(first) & by_uid(second) and variable(second[0]) == "2"
    node.client.delete("daemonsets", node.namespace, "logd", propagation="Background")
    wait(lambda: not node.pods(), "no pod is left at the node")


def test_daemon_set_follows_a_node_label(node):
    node.workload("DaemonSet", "logd", template={"nodeSelector": {LABEL: node.node_name, "disk": "ssd"}})
    node.wait_for("daemonsets", "logd", lambda obj: obj["status"].get("observedGeneration") == 1, "is seen")
    assert not node.api_pods("logd")
    node.client.patch("nodes", None, node.node_name, {"metadata": {"labels": {"disk": "ssd"}}})
    node.wait_pods("logd", 1)
    node.client.patch("nodes", None, node.node_name, {"metadata": {"labels": {"disk": None}}})
    node.wait_pods("logd", 0)
    wait(lambda: not node.pods(), "no pod is left at the node")


def test_daemon_set_follows_a_node_taint(node):
    node.workload("DaemonSet", "logd")
    node.wait_pods("logd", 1)
    node.client.patch("nodes", None, node.node_name, {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
    node.wait_pods("logd", 0)
    node.client.patch("nodes", None, node.node_name, {"spec": {"taints": None}})
    node.wait_pods("logd", 1)


def test_daemon_set_with_maxSurge_starts_the_new_pod_first(node):
    node.workload("DaemonSet", "logd", updateStrategy={
        "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    first = node.wait_pods("logd", 1)[0]
    node.client.patch("daemonsets", node.namespace, "logd", node.template_patch(**set_variable("2")))
    wait(lambda: by_uid(node.api_pods("logd")) - by_uid([first]), "a second pod")
    node.plane.kubectl("-n", node.namespace, "rollout", "status", "daemonset/logd", "--timeout=60s")
    second = node.wait_pods("logd", 1)[0]
    assert variable(second) == "2" and second["metadata"]["uid"] != first["metadata"]["uid"]


# Job, CronJob

def job_spec(node, script, **fields):
    return {"template": {"spec": node.spec(specs.container(script=script), restartPolicy="Never")}, **fields}


def test_job_completes(node):
    node.create("Job", "sum", "batch/v1", spec=job_spec(node, "echo $((1 + 1))", completions=3, parallelism=2))
    job = node.wait_for("jobs", "sum", lambda job: job["status"].get("succeeded") == 3, "is complete")
    node.wait_for("jobs", "sum", lambda job: any(one["type"] == "Complete" and one["status"] == "True"
                                                 for one in job["status"].get("conditions", [])), "is complete")
    assert job["status"].get("failed", 0) == 0
    pods = node.client.all("pods", node.namespace, labelSelector="job-name=sum")
    assert [node.output(pod["metadata"]["name"]) for pod in pods] == [["2"]] * 3


def test_failing_job_is_retried_up_to_its_back_off_limit(node):
    node.create("Job", "fail", "batch/v1", spec=job_spec(node, "exit 1", backoffLimit=0))
    job = node.wait_for("jobs", "fail", lambda job: any(one["type"] == "Failed" for one in
                                                        job["status"].get("conditions", [])), "has failed")
    assert job["status"]["failed"] == 1
    assert any(one.get("reason") == "BackoffLimitExceeded" for one in job["status"]["conditions"])


def test_suspended_job_stops_its_pods(node):
    node.create("Job", "wait", "batch/v1", spec=job_spec(node, specs.IDLE))
    node.wait_for("jobs", "wait", lambda job: job["status"].get("ready") == 1, "runs")
    node.client.patch("jobs", node.namespace, "wait", {"spec": {"suspend": True}})
    wait(lambda: not node.pods(), "no pod is left at the node")


def test_cron_job_starts_a_job(node):
    node.create("CronJob", "tick", "batch/v1", spec={
        "schedule": "* * * * *", "jobTemplate": {"spec": job_spec(node, "echo tick")}})
    node.wait_for("cronjobs", "tick", lambda obj: obj["status"].get("lastSuccessfulTime"), "has succeeded", 100)


# Pods of files

def test_static_pod_has_a_mirror_pod(node):
    node.drop(node.static("own", metadata={"labels": {"app": "own"}}))
    name = f"own-{node.node_name}"
    pod = node.wait_api_running(name)
    annotations = pod["metadata"]["annotations"]
    assert annotations["kubernetes.io/config.source"] == "file"
    assert annotations["kubernetes.io/config.mirror"] == annotations["kubernetes.io/config.hash"]
    owner = pod["metadata"]["ownerReferences"][0]
    assert owner["kind"] == "Node" and owner["uid"] == node.node()["metadata"]["uid"] and owner["controller"]
    assert pod["metadata"]["labels"] == {"app": "own"} and pod["spec"]["nodeName"] == node.node_name
    node.remove("own")
    node.wait_api_gone(name)


def test_deleted_mirror_pod_is_created_again_and_the_container_runs(node):
    node.drop(node.static("own"))
    name = f"own-{node.node_name}"
    before = node.wait_api_running(name)
    pid = node.init("own")
    node.client.delete("pods", node.namespace, name, grace=0)
    node.wait_api(name, lambda pod: pod["metadata"]["uid"] != before["metadata"]["uid"] and is_ready(pod), "is there")
    assert node.init("own") == pid and world.is_alive(pid)


def test_mirror_pod_follows_labels_and_the_container_runs(node):
    node.drop(node.static("own", metadata={"labels": {"version": "1"}}))
    name = f"own-{node.node_name}"
    before = node.wait_api_running(name)
    pid = node.init("own")
    node.drop(node.static("own", metadata={"labels": {"version": "2"}}))
    after = node.wait_api(name, lambda pod: pod["metadata"]["labels"].get("version") == "2" and is_ready(pod),
                          "has the new label")
    hashes = [pod["metadata"]["annotations"]["kubernetes.io/config.hash"] for pod in (before, after)]
    assert hashes[0] != hashes[1]
    assert node.init("own") == pid and container_status(after)["restartCount"] == 0


def test_mirror_pod_follows_an_edited_container(node):
    node.drop(node.static("own", specs.container(env=[{"name": "V", "value": "1"}])))
    name = f"own-{node.node_name}"
    before = node.wait_api_running(name)
    node.drop(node.static("own", specs.container(env=[{"name": "V", "value": "2"}])))
    after = node.wait_api(name, lambda pod: variable(pod) == "2" and is_ready(pod) and
                          container_status(pod).get("containerID") not in (None, container_status(before)["containerID"]),
                          "has the new variable and container")
    hashes = [pod["metadata"]["annotations"]["kubernetes.io/config.hash"] for pod in (before, after)]
    assert hashes[0] != hashes[1]
    assert container_status(after)["containerID"].endswith(node.container_id("own"))
