# SPDX-License-Identifier: Apache-2.0
"""The Node, its Lease, its events, and how it joins."""

import os
import re
import subprocess
import time

import pytest
import specs
import world
from client import connect_inside
from control_plane import NOT_READY_SECONDS
from node import is_ready
from world import wait


def test_node_status_describes_the_node(node):
    status = node.node()["status"]
    assert status["nodeInfo"]["kubeletVersion"].startswith("v1.35.")
    assert status["nodeInfo"]["operatingSystem"] == "linux"
    assert {"type": "InternalIP", "address": node.address_of_node} in status["addresses"]
    assert int(status["capacity"]["pods"]) == int(status["allocatable"]["pods"]) == 110


def test_node_hostname_label_is_the_node_name(node):
    assert node.node()["metadata"]["labels"]["kubernetes.io/hostname"] == node.node_name
    assert {"type": "Hostname", "address": node.node_name} in node.node()["status"]["addresses"]


def test_pods_can_be_placed_by_the_hostname_label(node):
    node.place("web", nodeSelector={"kubernetes.io/hostname": node.node_name})
    node.wait_api_running("web", 30)


def test_node_declares_its_features(node):
    declared = node.node()["status"].get("declaredFeatures")
    assert declared and declared == sorted(set(declared))


def test_node_reports_its_features_and_runtime_handlers(node):
    status = node.node()["status"]
    assert status.get("features") == {"supplementalGroupsPolicy": True}
    handlers = {one["name"]: one["features"] for one in status["runtimeHandlers"]}
    assert set(handlers[""]) == {"recursiveReadOnlyMounts", "userNamespaces"}


def test_node_reports_swap_if_it_has_swap(node):
    total = next(int(line.split()[1]) * 1024 for line in world.read("/proc/meminfo").splitlines()
                 if line.startswith("SwapTotal:"))
    assert node.node()["status"]["nodeInfo"].get("swap") == ({"capacity": total} if total else None)


def test_node_status_has_image_sizes(node):
    def image():
        return next((one for one in node.node()["status"].get("images", []) if specs.IMAGE in one["names"]), None)

    node.place("web")
    node.wait_api_running("web")
    assert wait(image, lambda: f"the image: {node.node()['status'].get('images')}").get("sizeBytes", 0) > 500_000


def test_reported_kubelet_port_is_zero_or_answers(node):
    """The server connects to this port for logs and sessions. It reports a missing port as 0."""
    port = node.node()["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    assert port == 0 or connect_inside(node.plane.net, node.address_of_node, port, 10).fileno() >= 0


def wait_node_event(node, reason):
    def found():
        return [event for event in node.client.all("events", "default", fieldSelector=f"involvedObject.name={node.node_name}")
                if event["source"].get("component") == "kubelet"]

    return wait(lambda: next((one for one in found() if one["reason"] == reason), None),
                lambda: f"an event {reason}: {[one['reason'] for one in found()]}")


@pytest.mark.parametrize("reason", ["Starting", "NodeReady", "NodeHasSufficientMemory", "NodeHasNoDiskPressure",
                                    "NodeHasSufficientPID", "NodeAllocatableEnforced"])
def test_node_start_is_recorded_as_events(node, reason):
    event = wait_node_event(node, reason)
    assert event["type"] == "Normal" and event["involvedObject"]["kind"] == "Node"


def test_lease_is_renewed(node):
    first = wait(node.lease, "a Lease")
    assert first["spec"]["holderIdentity"] == node.node_name and first["spec"]["leaseDurationSeconds"] == 40
    assert first["metadata"]["ownerReferences"][0]["uid"] == node.node()["metadata"]["uid"]
    wait(lambda: node.lease()["spec"]["renewTime"] > first["spec"]["renewTime"], "a renewal", 25)


def test_heartbeat_keeps_a_node_ready_for_longer_than_the_grace_period(node):
    start = time.monotonic()
    while time.monotonic() - start < NOT_READY_SECONDS + 8:
        assert node.is_node_ready(), node.node()["status"]["conditions"]
        time.sleep(2)


def test_node_is_not_ready_while_no_agent_runs(node):
    node.place("web")
    node.wait_api_running("web")
    pid = node.init("web")
    node.kill9()
    wait(lambda: node.condition().get("status") == "Unknown", lambda: f"{node.condition()}", NOT_READY_SECONDS + 30)
    assert node.condition()["reason"] == "NodeStatusUnknown"
    wait(lambda: not is_ready(node.read("pods", "web")), "its pods are not ready")
    assert world.is_alive(pid)
    node.start()
    node.wait_node_ready()
    node.wait_api_running("web")
    assert node.init("web") == pid


def test_deleted_node_registers_again_and_its_pods_run(node):
    node.workload("DaemonSet", "logd")
    node.wait_pods("logd", 1)
    uid = node.node()["metadata"]["uid"]
    node.client.delete("nodes", None, node.node_name)
    wait(lambda: (node.node() or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid, "another Node")
    node.wait_node_ready()
    node.wait_pods("logd", 1)


def test_cordoned_node_gets_no_pods(node):
    node.client.patch("nodes", None, node.node_name, {"spec": {"unschedulable": True}})
    wait(lambda: any(taint["key"] == "node.kubernetes.io/unschedulable"
                     for taint in node.node()["spec"].get("taints", [])), "the taint")
    wait_node_event(node, "NodeNotSchedulable")
    node.place("web")
    node.wait_event("web", "FailedScheduling")
    node.client.patch("nodes", None, node.node_name, {"spec": {"unschedulable": None}})
    node.wait_api_running("web")
    wait_node_event(node, "NodeSchedulable")


def test_drain_leaves_daemons_and_static_pods(node):
    node.workload("DaemonSet", "logd")
    node.workload("ReplicaSet", "web", replicas=1)
    node.drop(node.static("own"))
    node.wait_pods("logd", 1)
    pod = node.wait_pods("web", 1)[0]
    node.wait_api_running(f"own-{node.node_name}")
    node.plane.kubectl("drain", node.node_name, "--ignore-daemonsets", "--timeout=60s")
    wait(lambda: pod["metadata"]["uid"] not in {one["metadata"]["uid"] for one in node.api_pods()}, "the pod is evicted")
    node.wait_pods("logd", 1)
    assert is_ready(node.read("pods", f"own-{node.node_name}"))


def test_noexecute_taint_deletes_no_mirror_pod(node):
    node.drop(node.static("own"))
    mirror = node.wait_api_running(f"own-{node.node_name}")
    node.place("web")
    node.wait_api_running("web")
    node.plane.kubectl("taint", "node", node.node_name, "upkeep=now:NoExecute")
    wait(lambda: "web" not in {pod["metadata"]["name"] for pod in node.api_pods()}, "the other pod is deleted")
    assert node.read("pods", f"own-{node.node_name}")["metadata"]["uid"] == mirror["metadata"]["uid"]
    node.plane.kubectl("taint", "node", node.node_name, "upkeep-")


def test_kubectl_describes_the_node_and_its_pods(node):
    node.place("web")
    node.wait_api_running("web")
    text = node.plane.kubectl("describe", "node", node.node_name)
    assert "KubeletReady" in text and "web" in text
    assert "Running" in node.plane.kubectl("-n", node.namespace, "get", "pod", "web", "-o", "wide")


def test_node_joins_with_a_bootstrap_token(make_node, plane):
    token_id = "abcdef"
    plane.client.delete("secrets", "kube-system", f"bootstrap-token-{token_id}")
    plane.client.create({"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token", "metadata": {
        "name": f"bootstrap-token-{token_id}", "namespace": "kube-system"}, "stringData": {
            "token-id": token_id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true", "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token"}})
    for name, role in (("bootstrap", "system:node-bootstrapper"),
                       ("approve", "system:certificates.k8s.io:certificatesigningrequests:nodeclient")):
        plane.client.delete("clusterrolebindings", None, f"test-{name}")
        plane.client.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                             "metadata": {"name": f"test-{name}"},
                             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                             "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                                           "name": "system:bootstrappers"}]})
    node = make_node(bootstrap=f"{token_id}.0123456789abcdef")
    node.place("web")
    node.wait_api_running("web")
    request = next(one for one in plane.client.all("certificatesigningrequests")
                   if one["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client-kubelet")
    assert request["status"]["conditions"][0]["type"] == "Approved"
    assert world.read(node.kubeconfig) and "token" not in world.read(node.kubeconfig)


def test_serving_certificate_is_issued_once_approved(make_node, plane):
    node = make_node(config={"serverTLSBootstrap": True})

    def requests():
        return [one for one in plane.client.all("certificatesigningrequests")
                if one["spec"]["signerName"] == "kubernetes.io/kubelet-serving"
                and one["spec"]["username"] == f"system:node:{node.node_name}"]

    request = wait(lambda: next(iter(requests()), None), lambda: f"a request\n{node.said()}")
    plane.kubectl("certificate", "approve", request["metadata"]["name"])
    path = os.path.join(node.state, "pki", "kubelet-server-current.pem")
    wait(lambda: os.path.exists(path), lambda: f"the certificate\n{requests()}\n{node.said()}", 60)
    subprocess.run(["openssl", "verify", "-purpose", "sslserver", "-verify_ip", node.address_of_node, "-verify_hostname", node.node_name,
                    "-CAfile", plane.authority.cert, path], check=True)


# An idle node

def requests_of(node):
    """The requests that were sent to the server since the agent was started, and those that are open watches now."""
    dump = node.cli("debug", "dump")
    assert dump.returncode == 0, dump.stderr
    count = int(re.search(r"requests: (\d+) since start", dump.stdout).group(1))
    return count, [line.strip() for line in dump.stdout.splitlines() if "watch=true" in line]


@pytest.mark.long
def test_idle_node_with_110_pods_sends_few_requests_and_uses_little_memory(node):
    """At most six requests a minute, four watches, and 6 MiB of memory, except during a request, when pages of
    libraries are resident as well. OpenShift's API server mounts one more ConfigMap into each pod, which is watched."""
    node.workload("Deployment", "web", replicas=110)
    node.wait_pods("web", 110, 400)
    time.sleep(90)
    before, start, sizes = requests_of(node)[0], time.monotonic(), []
    while time.monotonic() < start + 600:
        sizes.append(round(world.pss_kib(node.agent.pid) / 1024, 2))
        time.sleep(10)
    minutes = (time.monotonic() - start) / 60
    after, watches = requests_of(node)
    asked, watches = after - before, [line for line in watches if "openshift" not in line]
    print(f"{asked} requests in {minutes:.1f} minutes, {len(watches)} watches, PSS in MiB: {sizes}")
    assert asked <= 6 * minutes + 1
    assert 1 <= len(watches) <= 4, watches
    assert sum(size <= 6 for size in sizes) >= 0.8 * len(sizes), sizes
