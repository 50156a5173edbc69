# SPDX-License-Identifier: Apache-2.0
"""The same workloads on a node with Mainstay and on one with the real kubelet and containerd, at one control plane: the
controllers make the same pods, the pods come to the same ends, and the same events report it."""

import fnmatch

import pytest
from comparison import compare, differences
from comparison_workloads import find_workloads
from kubelet_node import KubeletNode
from node import ClusterNode
from real_kubelet import Missing
from world import wait

NAMES = ("mainstay", "kubelet")
CONFIG = {"crashLoopBackOff": {"maxContainerRestartPeriod": "3s"}, "clusterDNS": ["10.96.0.10"]}
# The kubelet looks only once a minute how much space volumes use.
KUBELET = {"volumeStatsAggPeriod": "10s"}

# (pattern of workloads, pattern of facts, the node that alone has it, why that is right)
ON_PURPOSE = [
]


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
    """Each agent has renewed its Lease after that."""
    before = [node.lease()["spec"]["renewTime"] for node in nodes]
    for node in nodes:
        node.restart()
    wait(lambda: all(node.lease()["spec"]["renewTime"] != time for node, time in zip(nodes, before)),
         "both agents renew their Leases", 90)
    for node in nodes:
        node.wait_node_ready()


def test_workloads_are_as_with_the_kubelet(nodes):
    found = differences(NAMES, compare(nodes, find_workloads(), lambda: restart(nodes)))
    unlisted, used = [], set()
    for workload, fact, only in found:
        rows = [row for row in ON_PURPOSE if row[2] == only and fnmatch.fnmatchcase(workload, row[0])
                and fnmatch.fnmatchcase(fact, row[1])]
        used.update(row[:3] for row in rows)
        if not rows:
            unlisted.append(f"{only} alone: {workload}: {fact}")
    gone = [f"no longer: {row[2]} alone: {row[0]}: {row[1]}" for row in ON_PURPOSE if row[:3] not in used]
    assert not unlisted and not gone, "\n".join(unlisted + gone)
