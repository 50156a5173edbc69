# SPDX-License-Identifier: Apache-2.0
"""The same workloads on a node with Mainstay and on one with the real kubelet and containerd, at one control plane: the
controllers create the same pods, the pods end in the same way, and the same events report this."""

import fnmatch
import os

import comparison_workloads
import plugin_workloads
import pytest
from comparison import compare, differences, print_events
from kubelet_node import KubeletNode
from node import ClusterNode
from real_kubelet import Missing
from world import wait

NAMES = ("mainstay", "kubelet")
CONFIG = {"crashLoopBackOff": {"maxContainerRestartPeriod": "3s"}, "clusterDNS": ["10.96.0.10"]}
# The kubelet measures the space that volumes use only once a minute.
KUBELET = {"volumeStatsAggPeriod": "10s"}

# (pattern of workloads, pattern of facts, the only node that has it, the reason why that is correct)
SAYS_WHY = "the reason is reported"
REJECTED = "a rejected pod has the address of its node, and conditions"
OLD_CONTAINERD = "containerd 1.6 does not report it, later ones do"
ON_PURPOSE = [
    ("*", "pod has resources", "kubelet", "the pod's own resources are empty"),
    ("*", "* has stopSignal", "mainstay", OLD_CONTAINERD),
    ("*", "* has user", "mainstay", OLD_CONTAINERD),
    ("*", "main has volumeMounts", "kubelet", "only a container that was made has them"),
    ("*", "event agent Normal Stopping", "mainstay", "it says from where the deletion came"),
    ("*", "condition PodReadyToStartContainers says: *", "mainstay", SAYS_WHY),
    ("*", "main before: terminated Completed 0 *hook failed*", "mainstay", SAYS_WHY),
    ("*", "main before: terminated Completed 0 *liveness probe*", "mainstay", SAYS_WHY),
    ("*", "main: terminated Error 137 *startup probe*", "mainstay", SAYS_WHY),
    ("post-start-fails", "main before: terminated Completed 0", "kubelet", SAYS_WHY),
    ("liveness-fails", "main before: terminated Completed 0", "kubelet", SAYS_WHY),
    ("startup-fails", "main: terminated Error 137", "kubelet", SAYS_WHY),
    ("absent-program", "main: waiting RunContainerError", "mainstay", "the reason stays as long as the container waits"),
    ("absent-program", "main: waiting CrashLoopBackOff", "kubelet", "the reason stays as long as the container waits"),
    ("absent-program", "event agent Warning BackOff *", "kubelet", "each failed start has the event Failed"),
    ("image-is-changed", "main: was restarted", "mainstay", "the restart counts from the end of the old container"),
    ("deletion-before-it-starts", "main: terminated ContainerStatusUnknown 137", "kubelet", "its container never was"),
    ("deletion-before-it-starts", "main: waiting ContainerCreating", "mainstay", "its container never was"),
    ("deletion-before-it-starts", "condition * False PodFailed", "mainstay", "the phase is Failed"),
    ("host-port", "condition * False UnknownContainerStatuses", "mainstay", REJECTED),
    ("host-port", "condition PodReadyToStartContainers False", "mainstay", REJECTED),
    *((workload, fact, "mainstay", REJECTED) for workload in (
        "too-many-processors", "too-much-memory", "another-node-is-selected", "sysctl-is-not-allowed") for fact in (
            "condition * False UnknownContainerStatuses", "condition Initialized True",
            "condition PodReadyToStartContainers False", "condition PodScheduled True", "pod has conditions", "pod has hostIP",
            "pod has hostIPs")),
    ("node", "event agent Warning CgroupV1", "kubelet", "no warning is due: both versions are supported"),
    ("node", "label feature.node.kubernetes.io/*", "mainstay", "labels of the operating system, by which a pod can choose its node"),
]

# Facts that the kubelet causes only on a slow machine.
SLOW_CONTAINERD = "containerd did not stop a container in time"
LATE_NOTICE = "containerd hears of the kill only after the container has ended"
SOMETIMES = [
    ("*", "event agent Warning ExceededGracePeriod", "kubelet", SLOW_CONTAINERD),
    ("*", "event agent Warning FailedKillPod", "kubelet", SLOW_CONTAINERD),
    ("out-of-memory", "main: terminated Error 137", "kubelet", LATE_NOTICE),
    ("out-of-memory", "main: terminated OOMKilled 137", "mainstay", LATE_NOTICE),
]

LEFT_EMPTY = "the kubelet leaves empty directories, or removes them later"
STAYS_MOUNTED = "volumes of running pods are not mounted again when the agent starts"
PLUGINS_ON_PURPOSE = [
    *(row for row in ON_PURPOSE if row[:2] in (
        ("*", "pod has resources"), ("*", "* has stopSignal"), ("*", "* has user"), ("*", "main has volumeMounts"),
        ("*", "event agent Normal Stopping"), ("*", "condition PodReadyToStartContainers says: *")) or row[0] == "node"),
    ("*", "pod has allocatedResources", "kubelet", "the pod's own resources are empty"),
    *((workload, fact, "mainstay", REJECTED) for workload in ("devices-are-too-few", "device-is-refused") for fact in (
        "condition * False UnknownContainerStatuses", "condition Initialized True", "condition PodReadyToStartContainers False",
        "condition PodScheduled True", "pod has conditions", "pod has hostIP", "pod has hostIPs")),
    *((workload, *rest) for workload in (
        "claim-is-not-bound", "driver-of-a-pods-volume-is-missing", "block-volume-is-used-as-files", "volume-is-used-as-a-disk") for rest in (
        ("condition * False PodFailed", "mainstay", "the phase is Failed"),
        ("main: terminated ContainerStatusUnknown 137", "kubelet", "its container never was"))),
    *((workload, *rest) for workload in ("claim-is-not-bound", "block-volume-is-used-as-files", "volume-is-used-as-a-disk") for rest in (
        ("says FailedMount: MountVolume.SetUp failed for volume \"v\" : *", "mainstay", SAYS_WHY),
        ("says FailedMount: Unable to attach or mount volumes: *", "kubelet", SAYS_WHY))),
    ("devices-of-init-containers", "side has allocatedResourcesStatus", "mainstay", "sidecars have it, too"),
    ("*", "*: path plugins/kubernetes.io/csi/* d*", "kubelet", LEFT_EMPTY),
    ("*", "*: path pods/UID/volume*/kubernetes.io~csi d*", "kubelet", LEFT_EMPTY),
    *((workload, *rest, STAYS_MOUNTED) for workload in ("volume", "block-volume") for rest in (
        ("*: call NodeStageVolume *", "kubelet"), ("*: call NodePublishVolume *", "kubelet"), ("*: calls *", "kubelet"),
        ("*: calls *", "mainstay"))),
    ("*", "event agent Normal SuccessfulMountVolume", "kubelet", "it reports failures only, as for file systems"),
    ("*", "*: path plugins/kubernetes.io/csi/volumeDevices/PV/dev/UID *", "kubelet", "nothing uses the second mount of a device"),
]

PLUGINS_SOMETIMES = [row for name in NAMES for row in (
    ("device", "agent restarted: pod resources *", name, "after its restart the kubelet lists a pod only once it has looked at it"),
    ("drained", "condition PodScheduled says: *", name, "the scheduler names the other node, which is being drained or not"))]


@pytest.fixture(name="nodes")
def fixture_nodes(shared, plane):
    nodes = []
    try:
        nodes.append(ClusterNode(plane, archive=shared["archive"], config=CONFIG))
        try:
            nodes.append(KubeletNode(plane, [shared["archive"]], {**CONFIG, **KUBELET}))
        except Missing as missing:
            pytest.fail(str(missing))
        yield nodes
    finally:
        for node in nodes:
            node.finish()


def restart(nodes):
    """Restarts the agents; afterwards each has renewed its Lease."""
    before = [node.lease()["spec"]["renewTime"] for node in nodes]
    for node in nodes:
        node.restart()
    wait(lambda: all(node.lease()["spec"]["renewTime"] != time for node, time in zip(nodes, before)),
         "both agents renew their Leases", 90)
    for node in nodes:
        node.wait_node_ready()


@pytest.fixture(name="plugins")
def fixture_plugins(nodes):
    """The plugins in the directories of both nodes; they end before the nodes."""
    mainstay, kubelet = nodes
    made = [plugin_workloads.Plugins(mainstay, os.path.join(mainstay.directory, "kubelet", "device-plugins"), "self"),
            plugin_workloads.Plugins(kubelet, os.path.join(kubelet.directory, "kubelet-state", "device-plugins"), kubelet.init)]
    yield made
    for one in made:
        one.make_whole()
    for node in nodes:
        node.delete_all()
    for one in made:
        one.finish()


def check(facts, events, on_purpose, sometimes):
    """Asserts that the differences are those in the tables, and that all of the first table occur."""
    found = differences(NAMES, facts)
    unlisted, used = [], set()
    for workload, fact, only in found:
        rows = [row for row in on_purpose + sometimes if row[2] == only and fnmatch.fnmatchcase(workload, row[0])
                and fnmatch.fnmatchcase(fact, row[1])]
        used.update(row[:3] for row in rows)
        if not rows:
            unlisted.append(f"{only} alone: {workload}: {fact}\n" + "\n".join(
                f"    events of {name}: {line}" for name, some in zip(NAMES, events) for line in print_events(workload, some)))
    gone = [f"no longer: {row[2]} alone: {row[0]}: {row[1]}" for row in on_purpose if row[:3] not in used]
    assert not unlisted and not gone, "\n".join(unlisted + gone)


def test_workloads_have_the_same_status_as_on_a_kubelet(nodes):
    facts, events = compare(nodes, comparison_workloads.find_workloads(), lambda: restart(nodes))
    check(facts, events, ON_PURPOSE, SOMETIMES)


def test_plugins_are_handled_like_by_the_kubelet(nodes, plugins):
    facts, events = compare(nodes, plugin_workloads.find_workloads(), lambda: restart(nodes))
    check(facts, events, PLUGINS_ON_PURPOSE, SOMETIMES + PLUGINS_SOMETIMES)
