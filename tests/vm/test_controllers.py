# SPDX-License-Identifier: Apache-2.0
"""A kernel without some cgroup controllers, like that of a Raspberry Pi, which has no memory controller by default:
pods run, and a limit that cannot be set is named."""

import pods
import pytest
import specs
from conftest import install, machine_of

MISSING = "the cgroup controller '{}' is missing: the kernel does not support it, or its command line disables it"


@pytest.fixture(scope="module", name="poor")
def _poor(disk):
    with machine_of(disk, "cgroup_disable=memory,pids") as machine:
        install(machine)
        yield machine


def limited(name, **resources):
    return specs.pod(name, specs.container(script=pods.SCRIPT, resources=resources))


def test_only_pods_with_limits_of_a_missing_controller_are_refused(poor):
    assert not {"memory", "pids"} & set(poor.run("cat /sys/fs/cgroup/cgroup.controllers").split())
    said = poor.run("journalctl -u mainstay -o cat")
    assert f"Pods with memory limits do not start: {MISSING.format('memory')}\n" in said
    assert f"Pods do not start where podPidsLimit is set: {MISSING.format('pids')}\n" in said
    assert MISSING.format("cpu") not in said
    pods.launch(poor, "plain")
    for name, resources in ("cpu", {"limits": {"cpu": "500m"}}), ("asks", {"requests": {"memory": "64Mi", "cpu": "10m"}}):
        pods.write(poor, limited(name, **resources))
        pods.wait_running(poor, name)
    assert poor.run(f"cat /sys/fs/cgroup{pods.scope(poor, 'cpu')}/cpu.max") == "50000 100000\n"


def test_a_pod_with_a_memory_limit_does_not_start_and_reports_the_reason(poor):
    pods.launch(poor, "neighbour")
    pod = limited("limited", limits={"memory": "64Mi"})
    pod["spec"]["containers"].append(specs.container("side", script=pods.SCRIPT))
    pods.write(poor, pod)
    poor.wait(f"mainstay describe pod limited-machine | grep -F \"cannot limit the memory of container 'main': {MISSING.format('memory')}\"",
              "the pod reports the reason")
    assert "Running" in poor.run("mainstay get pods | grep ^neighbour")
    pods.write(poor, limited("limited"))
    pods.wait_running(poor, "limited")


def test_usage_is_shown_without_the_memory_of_pods(poor):
    pods.launch(poor, "counted")
    poor.wait("mainstay top pods | grep -E '^counted-machine +[0-9]+m +<unknown>$'", "the processor time of a pod is shown")
