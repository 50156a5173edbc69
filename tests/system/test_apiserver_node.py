# SPDX-License-Identifier: Apache-2.0
"""The Node, its Lease and the events of pods, as they are stored at the API server."""

import os
import platform
import signal
import socket
import time

import pytest
import specs
import world
from harness import NODE_NAME
from world import wait

HEARTBEAT = {"$setElementOrder/conditions", "conditions"}
LEASE_PERIOD = 15  # seconds, after which the Lease has certainly been renewed


def node_of(member):
    return member.api.get("nodes", None, NODE_NAME)


def condition(member, kind="Ready"):
    node = node_of(member)
    return next((item for item in node["status"]["conditions"] if item["type"] == kind), None) if node else None


def is_ready(member):
    return (condition(member) or {}).get("status") == "True"


def wait_ready(member):
    wait(lambda: is_ready(member), lambda: f"the Node is ready: {node_of(member)}\n{member.said()[-4000:]}")
    return node_of(member)


def lease_of(member):
    return member.api.get("leases", "kube-node-lease", NODE_NAME)


def memory_of_the_machine():
    return int(world.read("/proc/meminfo").split()[1])


def test_kubelet_port_is_reported_while_a_process_listens_on_it(make_member):
    def endpoint(member):
        return node_of(member)["status"].get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port")
    port = world.free_port()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        member = make_member(config={"port": port}, daemonSets="controller")
        wait_ready(member)
        assert not endpoint(member), "the socket is bound, but does not listen"
        listener.listen()
        member.restart()
        wait(lambda: endpoint(member) == port, lambda: f"the port is reported: {node_of(member)['status']}")
    member.restart()
    wait(lambda: not endpoint(member), "the port is no longer reported")


@pytest.mark.quick
def test_node_status_describes_the_machine(make_member):
    member = make_member(daemonSets="controller")
    node = wait_ready(member)
    labels, status = node["metadata"]["labels"], node["status"]
    assert labels["kubernetes.io/os"] == "linux" and labels["kubernetes.io/hostname"] == NODE_NAME
    assert status["capacity"]["cpu"] == str(os.cpu_count())
    assert status["capacity"]["memory"] == f"{memory_of_the_machine()}Ki" or memory_of_the_machine() % 1024 == 0
    assert status["capacity"]["pods"] == status["allocatable"]["pods"] == "110"
    assert status["allocatable"]["memory"] != status["capacity"]["memory"], "memory reserved for evictions is not allocatable"
    info = status["nodeInfo"]
    assert info["kernelVersion"] == platform.release() and info["operatingSystem"] == "linux"
    assert info["bootID"] == world.read("/proc/sys/kernel/random/boot_id").strip()
    assert info["kubeletVersion"].startswith("v1.") and info["containerRuntimeVersion"].startswith("mainstay://")
    types = [item["type"] for item in status["conditions"]]
    assert types == ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
    assert condition(member)["reason"] == "KubeletReady"
    assert {"type": "Hostname", "address": NODE_NAME} in status["addresses"]
    assert status["declaredFeatures"] == ["ExtendWebSocketsToKubelet", "InPlacePodLevelResourcesVerticalScaling",
                                          "RestartAllContainersOnContainerExits"]
    assert status["features"] == {"supplementalGroupsPolicy": True}
    swap = int(next(line for line in world.read("/proc/meminfo").splitlines() if line.startswith("SwapTotal:")).split()[1])
    assert info.get("swap", {"capacity": 0})["capacity"] == swap << 10


def test_node_status_lists_images(make_member):
    member = make_member()
    member.launch(specs.pod("own"))
    member.wait_phase("own", "Running")
    wait(lambda: any(specs.IMAGE in " ".join(image["names"]) or "busybox" in " ".join(image["names"])
                     for image in (node_of(member) or {"status": {}})["status"].get("images", [])),
         lambda: f"the image is reported: {node_of(member)}")


def test_deleted_node_is_registered_again_and_pods_keep_running(make_member):
    member = make_member()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    node, pid = wait_ready(member), member.init("web")
    member.api.delete("nodes", None, NODE_NAME)
    wait(lambda: node_of(member), "another Node is registered")
    assert node_of(member)["metadata"]["uid"] != node["metadata"]["uid"]
    wait_ready(member)
    assert world.is_alive(pid) and member.reported("web")["status"]["phase"] == "Running"


def test_mirror_pod_is_owned_by_the_current_node(make_member):
    member = make_member()
    member.launch(specs.pod("own"))
    name = f"own-{NODE_NAME}"
    member.wait_reported_phase(name, "Running")
    member.api.delete("nodes", None, NODE_NAME)
    wait_ready(member)
    member.api.delete("pods", "default", name, grace=0)  # as the garbage collector does
    reported = member.wait_reported_phase(name, "Running")
    assert reported["metadata"]["ownerReferences"][0]["uid"] == node_of(member)["metadata"]["uid"]


def node_events(member, reason=None):
    return [event for event in member.api.all("events", "default") if event["involvedObject"]["kind"] == "Node" and
            reason in (None, event["reason"])]


def wait_node_event(member, reason):
    return wait(lambda: node_events(member, reason),
                lambda: f"an event {reason}: {[event['reason'] for event in node_events(member)]}")[0]


def test_node_start_has_the_events_of_the_kubelet(make_member):
    member = make_member()
    for reason in ("Starting", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady",
                   "NodeAllocatableEnforced"):
        event = wait_node_event(member, reason)
        assert event["type"] == "Normal" and event["source"] == {"component": "kubelet", "host": NODE_NAME}
        assert event["involvedObject"]["name"] == event["involvedObject"]["uid"] == NODE_NAME
    assert wait_node_event(member, "NodeReady")["message"] == f"Node {NODE_NAME} status is now: NodeReady"
    assert not node_events(member, "InvalidDiskCapacity") and not node_events(member, "Rebooted")
    wait_ready(member)
    member.restart()
    wait(lambda: len(node_events(member, "Starting")) == 2, lambda: f"another start is reported: {node_events(member)}")
    assert [event["count"] for event in node_events(member, "NodeReady")] == [1], "it was ready all the time"


def test_node_stays_ready_while_its_new_agent_takes_over(make_member):
    member = make_member()
    wait_ready(member)
    member.launch(specs.pod("web"))
    shim = member.shim("web")
    member.kill9()
    os.kill(shim, signal.SIGSTOP)
    try:
        member.start(ready=False)
        wait(lambda: len(node_events(member, "Starting")) == 2, lambda: f"another start is reported: {node_events(member)}")
        wait(member.is_ready, "the agent no longer waits for the shim")
    finally:
        os.kill(shim, signal.SIGCONT)
    member.wait_running("web")
    assert is_ready(member) and not node_events(member, "NodeNotReady")


def test_reboot_is_an_event_of_the_node(make_member):
    member = make_member()
    wait_ready(member)
    member.stop()
    member.api.patch("nodes", None, NODE_NAME, {"status": {"nodeInfo": {"bootID": "of-before"}}}, "status")
    member.start()
    event = wait_node_event(member, "Rebooted")
    boot = world.read("/proc/sys/kernel/random/boot_id").strip()
    assert event["type"] == "Warning" and event["message"] == f"Node {NODE_NAME} has been rebooted, boot id: {boot}"


def test_node_whose_status_became_unknown_gets_ready_with_an_event(make_member):
    member = make_member()
    wait_ready(member)
    before = wait_node_event(member, "NodeReady")["count"]
    member.api.patch("nodes", None, NODE_NAME, {"status": {"conditions": [
        {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}, "status")
    wait(lambda: sum(event["count"] for event in node_events(member, "NodeReady")) > before,
         lambda: f"NodeReady is reported again: {node_events(member)}")
    assert is_ready(member)


def test_cordoned_node_is_an_event(make_member):
    member = make_member()
    wait_ready(member)
    for value, reason in ((True, "NodeNotSchedulable"), (False, "NodeSchedulable")):
        member.api.patch("nodes", None, NODE_NAME, {"spec": {"unschedulable": value}})
        event = wait_node_event(member, reason)
        assert event["message"] == f"Node {NODE_NAME} status is now: {reason}" and event["count"] == 1


def test_configured_label_is_restored_and_an_event_gives_the_reason(make_member):
    member = make_member(nodeLabels={"disk": "ssd"})
    wait_ready(member)
    member.api.patch("nodes", None, NODE_NAME, {"metadata": {"labels": {"disk": "hdd"}}})
    event = wait_node_event(member, "LabelRestored")
    assert event["type"] == "Warning" and event["message"].startswith("Label disk=hdd was set back to disk=ssd: ")
    assert "mainstay.nodeLabels" in event["message"] and node_of(member)["metadata"]["labels"]["disk"] == "ssd"
    member.api.patch("nodes", None, NODE_NAME, {"metadata": {"labels": {"rack": "r1"}}})
    assert len(node_events(member, "LabelRestored")) == 1


def test_node_status_has_the_size_of_archive_images(make_member):
    member = make_member()
    wait_ready(member)

    def sizes():
        return [image["sizeBytes"] for image in node_of(member)["status"].get("images", [])]
    before = wait(sizes, lambda: f"the image is reported: {node_of(member)}")
    assert min(before) > 100_000
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    assert sizes() == before


def test_lease_is_renewed(make_member):
    member = make_member()
    wait(lambda: lease_of(member), "a Lease")
    first = lease_of(member)
    wait(lambda: lease_of(member)["spec"]["renewTime"] > first["spec"]["renewTime"], "a renewal")
    assert first["metadata"]["ownerReferences"][0]["uid"] == node_of(member)["metadata"]["uid"]


@pytest.mark.slow
def test_idle_node_only_renews_its_lease(make_member):
    member = make_member()
    member.bind("web")
    member.launch(specs.pod("own"))
    member.wait_reported_phase("web", "Running")
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    wait_ready(member)
    api = member.api
    wait(lambda: settled(api), "all requests have been sent")
    before = len(api.requests)
    renewals = len(api.asked("update", "leases"))
    start = time.monotonic()
    wait(lambda: len(api.asked("update", "leases")) >= renewals + 3, "three renewals")
    asked = api.requests[before:]
    # There are five renewals a minute and a query of the controller manager's Lease; each may be just inside or outside
    # of the measured interval.
    assert len(asked) <= 6 * (time.monotonic() - start) / 60 + 2, asked
    assert all(one.kind.plural == "leases" for one in asked), asked


def settled(api):
    """Whether only the Lease was requested in the last seconds."""
    last = [one.at for one in list(api.requests) if one.kind is None or one.kind.plural != "leases"]
    return last and time.monotonic() - last[-1] > 6


def test_events_of_a_pod_reach_the_server(make_member):
    member = make_member()
    pod = member.bind("web")
    member.wait_reported_phase("web", "Running")

    def events_of_reason(reason):
        return [event for event in member.api.all("events", "default") if event["reason"] == reason]
    (event,) = wait(lambda: events_of_reason("Started"), lambda: f"the event is reported: {member.api.all('events')}")
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"] and event["involvedObject"]["name"] == "web"
    assert event["involvedObject"]["fieldPath"] == "spec.containers{main}"
    assert event["type"] == "Normal" and event["count"] == 1
    assert event["metadata"]["name"].startswith("web.")


def test_repeated_event_is_counted_at_the_server(make_member):
    member = make_member()
    member.bind("crash", specs.container(script="exit 3"))

    def counted():
        return [event for event in member.api.all("events", "default") if event["reason"] == "Started" and event["count"] > 1]
    wait(counted, lambda: f"the event is counted: {member.api.all('events')}")
    assert len([event for event in member.api.all("events", "default") if event["reason"] == "Started"]) == 1


def test_restarted_agent_keeps_the_node(make_member):
    member = make_member()
    uid = wait_ready(member)["metadata"]["uid"]
    member.api.patch("nodes", None, NODE_NAME, {"metadata": {"labels": {"disk": "ssd"}}})
    member.stop()
    # Like the cluster's controller for a node that is silent.
    member.api.patch("nodes", None, NODE_NAME, {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, "status")
    assert not is_ready(member)
    member.start()
    wait_ready(member)
    assert node_of(member)["metadata"]["uid"] == uid
    assert node_of(member)["metadata"]["labels"]["disk"] == "ssd"


def test_without_a_kubeconfig_no_request_is_sent(api, make_node):
    node = make_node()
    node.launch(specs.pod("own"))
    node.wait_phase("own", "Running")
    assert api.requests == []
    with open(f"/proc/{node.agent.pid}/maps", encoding="utf-8") as file:
        assert "libcurl" not in file.read()


@pytest.mark.slow
@pytest.mark.parametrize("status", [403, 409, 422, 500])
def test_refused_registration_is_retried_and_logged_once(make_member, status):
    member = make_member(start=False)
    start = time.monotonic()
    fault = member.api.misbehave(verb="create", plural="nodes", status=status)
    member.start()
    member.launch(specs.pod("own"))
    member.bind("web")
    member.wait_running("web")
    wait(lambda: fault.struck >= 4, lambda: f"four attempts were made, not {fault.struck}")
    asked = len(member.api.asked(None, "nodes", user=f"system:node:{NODE_NAME}"))
    assert asked <= 20 + 2 * (time.monotonic() - start), member.api.requests
    if status != 500:
        wait(lambda: "Cannot register or update the Node" in member.said(), member.said)
    assert member.said().count("Cannot register or update the Node") <= 1
    member.api.behave()
    wait(lambda: is_ready(member), lambda: f"the Node is ready: {member.said()[-2000:]}")
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")


def test_repeatedly_deleted_node_is_finally_registered(make_member):
    member = make_member()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    pid, start, before = member.init("web"), time.monotonic(), len(member.api.requests)
    for _ in range(8):
        node = wait_ready(member)
        member.api.delete("nodes", None, NODE_NAME)
        wait(lambda uid=node["metadata"]["uid"]: (node_of(member) or node)["metadata"]["uid"] != uid, "another Node is registered")
    wait_ready(member)
    assert len(member.api.requests) - before <= 150 + 2 * (time.monotonic() - start), member.api.requests[before:]
    assert member.init("web") == pid and "Cannot register or update the Node" not in member.said()


def test_conflicting_lease_is_read_and_renewed(make_clocked_member):
    member = make_clocked_member()
    wait(lambda: lease_of(member), "a Lease")
    fault = member.api.misbehave(verb="update", plural="leases", status=409, times=3)
    for count in range(1, 4):
        member.let_pass(count * LEASE_PERIOD)
        wait(lambda n=count: fault.struck >= n, "a request has failed with a conflict")
    first = lease_of(member)["spec"]["renewTime"]
    member.let_pass(4 * LEASE_PERIOD)
    wait(lambda: lease_of(member)["spec"]["renewTime"] > first, "a renewal")
    lease = lease_of(member)
    skewed = "2099-01-01T00:00:00.000000Z"  # the time of a clock that was wrong: the reported time only increases
    member.api.replace("leases", {**lease, "spec": {**lease["spec"], "renewTime": skewed}})
    member.let_pass(5 * LEASE_PERIOD)
    wait(lambda: lease_of(member)["spec"]["renewTime"] > skewed, lambda: f"the Lease is renewed: {lease_of(member)}")


def test_deleted_lease_is_created_again(make_member):
    member = make_member()
    wait(lambda: lease_of(member), "a Lease")
    member.api.delete("leases", "kube-node-lease", NODE_NAME)
    wait(lambda: lease_of(member), "another Lease")
    wait_ready(member)
