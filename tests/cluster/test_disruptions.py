# SPDX-License-Identifier: Apache-2.0
"""Parts of the control plane stop, return, and return with an older state. Pods run."""

import os
import signal

import specs
import world
from node import condition, is_ready
from world import wait


def local_pods(node):
    return [pod for pod in node.pods() if "deletionTimestamp" not in pod["metadata"]]


def wait_local(node, predicate, what, deadline=90.0):
    """Waits for the only pod of the node."""
    def look():
        pods = local_pods(node)
        return pods[0] if len(pods) == 1 and predicate(pods[0]) else None
    return wait(look, lambda: f"{what}; there are {local_pods(node)}\nthe log of the agent:\n{node.said()[-4000:]}", deadline)


def variable(pod):
    return pod["spec"]["containers"][0].get("env", [{}])[0].get("value")


def set_variable(node, value):
    node.client.patch("daemonsets", node.namespace, "logd", node.template_patch(
        containers=[{"name": "main", "env": [{"name": "V", "value": value}]}]))


def runs_locally(pod):
    return pod["status"].get("phase") == "Running" and any(one["type"] == "Ready" and one["status"] == "True"
                                                           for one in pod["status"]["conditions"])


def test_pods_keep_running_while_the_server_is_down_and_afterwards(own_plane, make_own_node):
    node = make_own_node()
    node.place("web", specs.container(script="trap 'exit 0' TERM; while :; do sleep 1; done"))
    node.wait_api_running("web")
    pid = node.init("web")
    own_plane.stop("kube-apiserver")
    wait(lambda: "Cannot reach the API server" in node.said(), "the agent notices")
    world.kill_all([pid])
    node.wait_restarts("web", 1)
    own_plane.start("kube-apiserver")
    own_plane.wait_ready()
    node.wait_api("web", lambda pod: is_ready(pod) and pod["status"]["containerStatuses"][0]["restartCount"] == 1,
                  "the restart is reported", 120)


def test_node_starts_its_pods_while_the_server_is_down(own_plane, make_own_node):
    node = make_own_node()
    node.place("web")
    node.wait_api_running("web")
    pid = node.init("web")
    own_plane.stop("kube-apiserver")
    node.restart()
    node.drop(node.static("own"))
    node.wait_running("own")
    assert node.init("web") == pid
    own_plane.start("kube-apiserver")
    own_plane.wait_ready()
    node.wait_api_running(f"own-{node.node_name}", 120)


def test_serving_certificate_is_requested_once_the_server_is_up_again(own_plane, make_own_node):
    node = make_own_node(config={"serverTLSBootstrap": True}, start=False)
    own_plane.stop("kube-apiserver")
    node.start()
    wait(lambda: "Serving certificate: " in node.said(), lambda: f"the request fails:\n{node.said()}")
    own_plane.start("kube-apiserver")
    own_plane.wait_ready()
    wait(lambda: [one for one in own_plane.client.all("certificatesigningrequests")
                  if one["spec"]["username"] == f"system:node:{node.node_name}"], lambda: f"a request:\n{node.said()}", 90)
    node.wait_node_ready()


def test_pod_deleted_during_an_outage_of_the_node_is_stopped_afterwards(own_plane, make_own_node):
    node = make_own_node()
    node.place("web")
    node.wait_api_running("web")
    node.kill9()
    own_plane.client.delete("pods", node.namespace, "web")
    node.start()
    node.wait_api_gone("web")


def test_pods_keep_running_while_etcd_is_down(own_plane, make_own_node):
    node = make_own_node()
    node.place("web")
    node.wait_api_running("web")
    pid = node.init("web")
    own_plane.stop("etcd")
    node.drop(node.static("own"))
    node.wait_running("own")
    own_plane.start("etcd")
    own_plane.wait_ready()
    node.wait_api_running(f"own-{node.node_name}", 120)
    assert node.init("web") == pid


def test_node_reconciles_with_an_older_state_of_etcd(own_plane, make_own_node):
    """Pods that are not in the older state end, and pods that are only in it are started again."""
    node = make_own_node()
    node.place("kept")
    node.place("old")
    node.wait_api_running("kept")
    node.wait_api_running("old")
    kept = node.init("kept")
    own_plane.snapshot()
    node.client.delete("pods", node.namespace, "old")
    node.wait_api_gone("old")
    node.place("new")
    node.wait_api_running("new")
    own_plane.restore()
    node.wait_gone("new", 120)
    node.wait_api("old", is_ready, "runs again or is replaced", 120)
    node.wait_api_running("kept", 120)
    assert node.init("kept") == kept
    node.place("after")
    node.wait_api_running("after", 120)


def test_restarted_agent_reconciles_with_an_older_state_of_etcd(own_plane, make_own_node):
    node = make_own_node()
    node.place("kept")
    node.wait_api_running("kept")
    kept = node.init("kept")
    own_plane.snapshot()
    node.place("new")
    node.wait_api_running("new")
    node.kill9()
    own_plane.restore()
    node.start()
    node.wait_gone("new", 120)
    node.wait_api_running("kept", 120)
    assert node.init("kept") == kept


def test_pending_pod_runs_once_the_scheduler_is_up_again(own_plane, make_own_node):
    node = make_own_node()
    own_plane.stop("kube-scheduler")
    node.place("web")
    own_plane.start("kube-scheduler")
    node.wait_api_running("web", 120)


def test_pods_are_ready_again_after_an_outage_of_the_node(own_plane, make_own_node):
    """The node controller makes all of them unready."""
    node = make_own_node()
    names = ["web", f"own-{node.node_name}"]
    node.place("web")
    node.drop(node.static("own"))
    for name in names:
        node.wait_api_running(name)
    inits = {name: node.init(name) for name in ("web", "own")}
    os.kill(node.agent.pid, signal.SIGSTOP)
    try:
        for name in names:
            node.wait_api(name, lambda pod: condition(pod, "Ready").get("status") == "False", "is made unready", 150)
    finally:
        os.kill(node.agent.pid, signal.SIGCONT)
    node.wait_node_ready()
    for name in names:
        node.wait_api_running(name)
    assert {name: node.init(name) for name in ("web", "own")} == inits


# DaemonSets without their controller

def start_set(node, **template):
    node.workload("DaemonSet", "logd", specs.container(env=[{"name": "V", "value": "1"}]), template=template)
    return node.wait_pods("logd", 1)[0]


def wait_without_manager(node):
    """Waits until the node has noticed the absence: one query of the Lease may still find a renewal, and only the next
    one finds none."""
    wait(lambda: "This node places the DaemonSets" in node.said(),
         lambda: f"the node places DaemonSets:\n{node.said()[-3000:]}", 180)


def hand_back(own_plane, node, pid):
    """The controller manager returns, and takes over the running pod."""
    own_plane.start("kube-controller-manager")
    pods = wait(lambda: [pod for pod in node.api_pods("logd") if is_ready(pod) and
                         pod["metadata"].get("ownerReferences", [{}])[0].get("kind") == "DaemonSet"],
                lambda: f"a pod of the controller: {node.api_pods()}\n{node.said()[-4000:]}", 150)
    wait_local(node, runs_locally, "one pod")
    assert len(pods) == 1 and world.is_alive(pid)
    return pods[0]


def find_pid(node):
    return node.init(local_pods(node)[0]["metadata"]["name"])


def test_daemon_pod_runs_without_the_controller_manager(own_plane, make_own_node):
    node = make_own_node()
    start_set(node)
    pid = find_pid(node)
    own_plane.stop("kube-controller-manager")
    wait_without_manager(node)
    wait_local(node, runs_locally, "the pod runs")
    assert find_pid(node) == pid
    hand_back(own_plane, node, pid)


def test_new_daemon_set_is_placed_without_the_controller_manager_and_handed_back(own_plane, make_own_node):
    node = make_own_node(daemonSetNamespaces=["*"])
    own_plane.stop("kube-controller-manager")
    wait_without_manager(node)
    node.workload("DaemonSet", "logd", specs.container(env=[{"name": "V", "value": "1"}]))
    wait_local(node, runs_locally, "the node places it")
    hand_back(own_plane, node, find_pid(node))


def test_changed_template_is_rolled_out_without_the_controller_manager_and_handed_back(own_plane, make_own_node):
    node = make_own_node(daemonSetNamespaces=["*"])
    start_set(node)
    own_plane.stop("kube-controller-manager")
    wait_without_manager(node)
    set_variable(node, "2")
    wait_local(node, lambda pod: variable(pod) == "2" and runs_locally(pod), "the new template")
    pod = hand_back(own_plane, node, find_pid(node))
    assert variable(pod) == "2"


def test_node_label_starts_and_stops_a_daemon_without_the_controller_manager(own_plane, make_own_node):
    node = make_own_node()
    own_plane.client.patch("nodes", None, node.node_name, {"metadata": {"labels": {"disk": "ssd"}}})
    start_set(node, nodeSelector={"disk": "ssd"})
    own_plane.stop("kube-controller-manager")
    wait_without_manager(node)
    own_plane.client.patch("nodes", None, node.node_name, {"metadata": {"labels": {"disk": None}}})
    wait(lambda: not local_pods(node), lambda: f"the pod stops: {local_pods(node)}\n{node.said()[-4000:]}", 60)
    own_plane.client.patch("nodes", None, node.node_name, {"metadata": {"labels": {"disk": "ssd"}}})
    wait_local(node, runs_locally, "the pod is back")
    hand_back(own_plane, node, find_pid(node))


def test_changed_node_selector_is_applied_without_the_controller_manager(own_plane, make_own_node):
    node = make_own_node()
    start_set(node)
    own_plane.stop("kube-controller-manager")
    wait_without_manager(node)
    node.client.patch("daemonsets", node.namespace, "logd", node.template_patch(nodeSelector={"disk": "none"}))
    wait(lambda: not local_pods(node), lambda: f"the pod stops: {local_pods(node)}\n{node.said()[-4000:]}", 60)


def test_deleted_daemon_set_stops_without_the_controller_manager(own_plane, make_own_node):
    node = make_own_node(daemonSetNamespaces=["*"])
    own_plane.stop("kube-controller-manager")
    wait_without_manager(node)
    node.workload("DaemonSet", "logd")
    wait_local(node, runs_locally, "the node places it")
    node.client.delete("daemonsets", node.namespace, "logd", propagation="Background")
    wait(lambda: not node.pods(), lambda: f"the pod stops: {local_pods(node)}\n{node.said()[-4000:]}", 60)


def wait_refused(node, name, reason, text):
    """Waits until an event at the server contains the reason; no pod of the set is created."""
    event = node.wait_event(name, reason, 180)
    assert text in event["message"] and event["involvedObject"]["kind"] == "DaemonSet"
    assert not local_pods(node)


def test_new_daemon_set_of_a_user_waits_for_the_controller_manager(own_plane, make_own_node):
    node = make_own_node()
    own_plane.stop("kube-controller-manager")
    wait_without_manager(node)
    node.workload("DaemonSet", "logd")
    wait_refused(node, "logd", "AwaitsController", "daemonSetNamespaces")
    own_plane.start("kube-controller-manager")
    node.wait_pods("logd", 1, 150)


def test_daemon_set_that_its_namespace_forbids_is_not_placed_without_the_controller_manager(own_plane, make_own_node):
    """A user who may create DaemonSets, but no privileged pods, would otherwise become root on the node."""
    node = make_own_node(daemonSetNamespaces=["*"])
    own_plane.stop("kube-controller-manager")
    wait_without_manager(node)
    own_plane.client.patch("namespaces", None, node.namespace, {"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "restricted"}}})
    node.workload("DaemonSet", "evil", specs.container(securityContext={"privileged": True}), template={
        "hostPID": True, "volumes": [specs.host_path("root", "/")]})
    wait_refused(node, "evil", "PodSecurity", 'violates PodSecurity "restricted:latest": host namespaces (hostPID=true), privileged')
    own_plane.client.patch("namespaces", None, node.namespace, {"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "privileged"}}})
    wait_local(node, runs_locally, "the node places it")


# Changes for all pods

def test_pods_run_with_a_global_default_priority_class(own_plane, make_own_node):
    node = make_own_node()
    own_plane.client.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                             "metadata": {"name": "everyone"}, "value": 7, "globalDefault": True})
    try:
        def place():
            node.client.delete("pods", node.namespace, "web", grace=0)
            return node.place("web")["spec"].get("priority") == 7
        wait(place, "the server gives the default")
        node.wait_api_running("web", 30)
    finally:
        own_plane.client.delete("priorityclasses", None, "everyone")
