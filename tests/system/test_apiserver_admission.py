# SPDX-License-Identifier: Apache-2.0
"""Pods of an API server that the node does not admit: the kubelet's reasons and messages, in the status and as an event."""

import os

import pytest
import specs
import world
from world import wait

NOT_ENOUGH = "Node didn't have enough resource: "


def requests(**amounts):
    return specs.container(resources={"requests": {key.replace("_", "-"): value for key, value in amounts.items()}})


def rejected(member, name, reason):
    """The message of the rejected pod, which is also that of the event."""
    status = member.wait_reported_phase(name, "Failed")["status"]
    assert status["reason"] == reason and status["message"].startswith("Pod was rejected: ")
    event = wait(lambda: [one for one in member.api.all("events") if one["involvedObject"]["name"] == name and
                          one["reason"] == reason], lambda: f"there is an event: {member.api.all('events')}")[0]
    assert event["type"] == "Warning" and "Pod was rejected: " + event["message"] == status["message"]
    assert not status.get("containerStatuses")
    member.api.delete("pods", "default", name)
    member.wait_reported_gone(name)
    return event["message"]


def test_pods_beyond_the_resources_of_the_node_are_rejected(make_member):
    member = make_member()
    cpus = os.cpu_count()
    member.bind("small", requests(cpu="100m", memory="16Mi"))
    member.wait_reported_phase("small", "Running")
    member.bind("cpu", requests(cpu=str(cpus)))
    assert rejected(member, "cpu", "OutOfcpu") == \
        f"{NOT_ENOUGH}cpu, requested: {cpus}000, used: 100, capacity: {cpus}000"
    member.bind("memory", requests(memory="100Ti"))
    assert rejected(member, "memory", "OutOfmemory").startswith(f"{NOT_ENOUGH}memory, requested: 109951162777600, used: 16777216, ")
    member.bind("storage", requests(ephemeral_storage="1Pi"))
    assert rejected(member, "storage", "OutOfephemeral-storage").startswith(f"{NOT_ENOUGH}ephemeral-storage, ")
    member.bind("pages", specs.container(resources={"limits": {"cpu": "1m", "hugepages-1Gi": "512Gi"}}))
    assert rejected(member, "pages", "OutOfhugepages-1Gi").startswith(f"{NOT_ENOUGH}hugepages-1Gi, ")
    member.launch(specs.pod("own", requests(cpu=str(cpus))))
    member.wait_running("own")


def critical(member, name, **amounts):
    return member.bind(name, requests(**amounts), priorityClassName="system-node-critical")


def preempted_status(member, name):
    """The message of a pod that was stopped to make room for another one."""
    status = member.wait_reported_phase(name, "Failed")["status"]
    assert (status["reason"], status["message"]) == ("Preempting", "Preempted in order to admit critical pod")
    condition, = [one for one in status["conditions"] if one["type"] == "DisruptionTarget"]
    assert (condition["status"], condition["reason"], condition["message"]) == \
        ("True", "TerminationByKubelet", "Pod was preempted by Kubelet to accommodate a critical pod.")
    return status


def test_critical_pod_preempts_other_api_server_pods(make_member):
    member = make_member()
    half = f"{os.cpu_count() * 500}m"
    member.bind("large", requests(cpu=half, memory="16Mi"))
    member.bind("small", requests(cpu="100m", memory="16Mi"))
    member.bind("idle")
    member.launch(specs.pod("own", requests(cpu="100m")))
    for name in ("large", "small", "idle"):
        member.wait_reported_phase(name, "Running")
    member.wait_running("own")
    stays = [member.init(name) for name in ("small", "idle", "own")]
    large = member.init("large")
    critical(member, "critical", cpu=half)
    preempted_status(member, "large")
    event = wait(lambda: [one for one in member.api.all("events") if one["involvedObject"]["name"] == "large" and
                          one["reason"] == "Preempting"], lambda: f"there is an event: {member.api.all('events')}")[0]
    assert (event["type"], event["message"]) == ("Warning", "Preempted in order to admit critical pod")
    member.wait_reported_phase("critical", "Running")
    assert not world.is_alive(large), "the preempted pod has ended before the critical pod runs"
    assert all(world.is_alive(pid) for pid in stays)
    assert 'kubelet_preemptions{preemption_signal="cpu"} 1' in member.get("/metrics")[1]


def test_critical_pod_waits_for_preempted_pods_across_a_restart_of_the_agent(make_member):
    member = make_member()
    half = f"{os.cpu_count() * 500}m"
    member.bind("slow", specs.container(script="trap 'sleep 3; exit 0' TERM; sleep 100000 & wait",
                                        resources={"requests": {"cpu": half}}), terminationGracePeriodSeconds=30)
    member.wait_reported_phase("slow", "Running")
    member.wait_trap("slow")
    pid = member.init("slow")
    critical(member, "critical", cpu=f"{os.cpu_count() * 700}m")
    wait(lambda: "preempting pod 'default/slow'" in member.said(), lambda: f"the log contains it: {member.said()[-3000:]}")
    member.restart()
    started = member.wait_reported_phase("critical", "Running")["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    assert not world.is_alive(pid)
    status = preempted_status(member, "slow")
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 0 and ended["finishedAt"] <= started


def test_critical_pod_that_does_not_fit_without_the_others_is_rejected(make_member):
    member = make_member()
    cpus = os.cpu_count()
    member.bind("small", requests(cpu="100m"))
    member.launch(specs.pod("own", requests(cpu="300m")))
    member.wait_reported_phase("small", "Running")
    member.wait_running("own")
    pid = member.init("small")
    critical(member, "critical", cpu=str(cpus))
    assert rejected(member, "critical", "UnexpectedAdmissionError") == \
        "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: " \
        "no set of running pods found to reclaim resources: [(res: cpu, q: 300), ]"
    member.bind("elsewhere", requests(cpu=str(cpus)), priorityClassName="system-node-critical", nodeSelector={"disk": "fast"})
    rejected(member, "elsewhere", "NodeAffinity")
    assert world.is_alive(pid) and member.reported("small")["status"]["phase"] == "Running"


def test_other_rejections_have_the_reasons_of_the_kubelet(make_member):
    member = make_member()
    member.bind("windows", os={"name": "windows"})
    assert rejected(member, "windows", "PodOSNotSupported") == "Failed to admit pod as the OS field doesn't match node OS"
    member.bind("sysctl", hostNetwork=False, securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]})
    assert rejected(member, "sysctl", "SysctlForbidden") == 'forbidden sysctl: "kernel.msgmax" not allowlisted'
    member.bind("elsewhere", nodeSelector={"disk": "fast"})
    assert rejected(member, "elsewhere", "NodeAffinity") == \
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"


def test_configuration_limits_pods_and_keeps_resources(make_member):
    member = make_member(config={"maxPods": 50, "podsPerCore": 1, "systemReserved": {"cpu": "300m", "memory": "100Mi"},
                                 "kubeReserved": {"cpu": "200m", "memory": "28Mi", "ephemeral-storage": "1Gi"}})
    cpus = os.cpu_count()
    node = wait(lambda: member.api.get("nodes", None, "node1"), "the node has registered")["status"]
    assert node["capacity"]["cpu"] == str(cpus) and node["allocatable"]["cpu"] == f"{cpus * 1000 - 500}m"
    memory = [int(node[which]["memory"][:-2]) for which in ("capacity", "allocatable")]
    pages = sum(int(node["capacity"].get(f"hugepages-{size}", "0").rstrip("KMGi")) for size in ("1Gi", "2Mi"))
    assert pages or memory[0] - memory[1] == (128 + 100) << 10  # including the eviction threshold
    assert node["allocatable"]["pods"] == str(min(50, cpus))
    for i in range(min(50, cpus)):
        member.bind(f"web{i}")
        member.wait_reported_phase(f"web{i}", "Running")
    member.bind("more")
    assert rejected(member, "more", "OutOfpods") == \
        f"{NOT_ENOUGH}pods, requested: 1, used: {min(50, cpus)}, capacity: {min(50, cpus)}"
    parent = os.path.dirname(os.path.dirname(member.pod_cgroup("web0")))
    limit = wait(lambda: world.cgroup_value(parent, "memory", "memory.limit_in_bytes" if world.cgroup_version() == 1
                                            else "memory.max"), "the cgroup of all pods has a limit")
    total = int(world.read("/proc/meminfo").split()[1]) << 10
    assert abs(int(limit) - (total - (128 << 20))) < 1 << 20


def test_status_has_the_resources_of_the_whole_pod(make_member):
    member = make_member()
    member.bind("web", specs.container("a", resources={"requests": {"cpu": "10m", "memory": "8Mi"}, "limits": {"memory": "16Mi"}}),
                specs.container("b", resources={"requests": {"cpu": "20m"}, "limits": {"cpu": "1"}}))
    status = member.wait_reported_phase("web", "Running")["status"]
    assert status["allocatedResources"] == {"cpu": "30m", "memory": "8Mi"}
    assert status["resources"] == {"limits": {"cpu": "1", "memory": "16Mi"}, "requests": status["allocatedResources"]}


def test_label_may_arrive_after_the_pod_that_selects_it(make_member):
    member = make_member()
    wait(lambda: member.api.get("nodes", None, "node1"), "the node has registered")
    member.bind("web", nodeSelector={"disk": "fast"})
    wait(lambda: member.pod("web"), "the node has received the pod")
    assert member.reported("web")["status"]["phase"] == "Pending"
    member.api.patch("nodes", None, "node1", {"metadata": {"labels": {"disk": "fast"}}})
    member.wait_reported_phase("web", "Running")


def bind_with_port(member, name, port):
    return member.bind(name, specs.container(ports=[{"containerPort": port, "hostPort": port}]))


PORTS_TAKEN = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"


def test_host_port_belongs_to_the_running_pod(make_member):
    member = make_member()
    bind_with_port(member, "first", 40801)
    member.wait_reported_phase("first", "Running")
    pid = member.init("first")
    bind_with_port(member, "second", 40801)
    assert rejected(member, "second", "NodePorts") == PORTS_TAKEN
    bind_with_port(member, "other", 40802)
    member.wait_reported_phase("other", "Running")
    member.restart()
    wait(lambda: member.pod("first"), "the pod exists after a restart")
    assert world.is_alive(pid) and member.reported("first")["status"]["phase"] == "Running"


@pytest.mark.parametrize("fields", [{}, {"hostPID": True}], ids=["in-place", "replaced"])
def test_static_pod_starts_once_an_edit_frees_its_host_port(node, fields):
    def with_port(name, port, **more):
        return specs.pod(name, specs.container(ports=[{"containerPort": port, "hostPort": port}]), **more)

    node.launch(with_port("first", 40806))
    node.drop(with_port("second", 40806))
    node.wait_pod("second", lambda pod: pod["status"].get("reason") == "NodePorts", "waits for the port")
    node.drop(with_port("first", 40807, **fields))
    node.wait_running("second")
    assert node.pod("first")["spec"]["containers"][0]["ports"][0]["hostPort"] == 40807


def test_edit_that_needs_a_taken_port_leaves_the_pod_running(node):
    node.launch(specs.pod("first", specs.container(ports=[{"containerPort": 40804, "hostPort": 40804}])))
    node.launch(specs.pod("own", specs.container(ports=[{"containerPort": 40805, "hostPort": 40805}])))
    pid = node.init("own")
    node.drop(specs.pod("own", specs.container(ports=[{"containerPort": 40804, "hostPort": 40804}], env=[{"name": "A", "value": "1"}]),
                        hostPID=True))
    wait(lambda: "port 40804 of the host is in use by pod default/first" in str(node.pod("own")),
         lambda: f"the pod reports what it waits for: {node.pod('own')}")
    assert world.is_alive(pid)
