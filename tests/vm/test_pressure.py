# SPDX-License-Identifier: Apache-2.0
"""Memory pressure on cgroup v2: the pod that the ranking selects is evicted, and starts again when the node has
recovered."""

import json

import pytest
import specs

pytestmark = pytest.mark.long

MANIFESTS = "/etc/kubernetes/manifests"
MIB = 1 << 20

# Available memory as the agent computes it, in bytes.
LEFT = "awk '/^MemFree:|^Inactive.file.:/ { sum += $2 } END { printf \"%d\", sum * 1024 }' /proc/meminfo"

# Uses the amount of memory that its file in /notes has, in MiB.
EATER = """while :; do
        dd if=/dev/zero of=/m/file bs=1M count=$(cat /notes/{name}) 2>/dev/null
        echo ate; read line </notes/wait; done"""


def launch(machine, name, mib, request=None, priority=0):
    machine.run(f"mkdir -p /var/tmp/notes && echo {mib} >/var/tmp/notes/{name}; "
                "test -p /var/tmp/notes/wait || mkfifo /var/tmp/notes/wait")
    container = specs.container(script=EATER.format(name=name))
    container["volumeMounts"] = [{"name": "m", "mountPath": "/m"}, {"name": "notes", "mountPath": "/notes"}]
    if request:
        container["resources"] = {"requests": {"memory": request}}
    pod = specs.pod(name, container, priority=priority)
    pod["spec"]["volumes"] = [{"name": "m", "emptyDir": {"medium": "Memory"}},
                              {"name": "notes", "hostPath": {"path": "/var/tmp/notes"}}]
    machine.write(f"{MANIFESTS}/{name}.yaml", specs.text(pod))


def wait_ate(machine, name):
    machine.wait(f"mainstay logs {name}-machine | grep -q ate", f"{name} uses its memory")


def status(machine, name):
    return json.loads(machine.run(f"mainstay get pod {name}-machine -o json"))["status"]


def condition(machine, name):
    list_ = json.loads(machine.run("mainstay get nodes -o json"))
    (node,) = list_.get("items", [list_])
    return next(entry["status"] for entry in node["status"]["conditions"] if entry["type"] == name)


def test_memory_pressure_evicts_the_pod_over_its_request_but_no_critical_one(machine):
    left = int(machine.run(LEFT))
    machine.write("/etc/mainstay/config.yaml",
                  "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"
                  "evictionPressureTransitionPeriod: 30s\n"
                  f"evictionHard: {{memory.available: '{left - 250 * MIB}'}}\n")
    machine.run("systemctl restart mainstay")
    launch(machine, "critical", 40, priority=2000000000)
    launch(machine, "modest", 60, request="150Mi")
    launch(machine, "important", 40, priority=1000)
    for name in "critical", "modest", "important":
        wait_ate(machine, name)
    assert condition(machine, "MemoryPressure") == "False"
    launch(machine, "greedy", 170, request="1Mi", priority=10)
    # Waits and checks in one command: on a slow machine the pod would start and be evicted again before a separate
    # check.
    machine.wait("mainstay get pod greedy-machine -o json >/var/tmp/evicted && mainstay describe node >/var/tmp/short && "
                 "grep '\"Evicted\"' /var/tmp/evicted && grep KubeletHasInsufficientMemory /var/tmp/short", "greedy is evicted")
    message = json.loads(machine.run("cat /var/tmp/evicted"))["status"]["message"]
    assert message.startswith("The node was low on resource: memory. Threshold quantity: "), message
    assert "Container main was using " in message and "request is 1Mi" in message, message
    for name in "critical", "modest", "important":
        assert status(machine, name)["phase"] == "Running", name
        assert status(machine, name)["containerStatuses"][0]["restartCount"] == 0


def test_pressure_is_reported_and_the_pod_starts_again_after_recovery(machine):
    short = machine.run("cat /var/tmp/short")
    assert "memory-pressure:NoSchedule" in short, short
    assert "EvictionThresholdMet" in short and "Attempting to reclaim memory" in short, short
    machine.run("echo 1 >/var/tmp/notes/greedy")
    machine.wait("mainstay get pods | grep -E '^greedy-machine +1/1 +Running +0 ' && "
                 "mainstay describe node | grep KubeletHasSufficientMemory", "greedy runs again")
    assert "reclaiming memory" in machine.run("journalctl -u mainstay --no-pager -o cat")


def test_confined_service_receives_memory_stalls_of_the_kernel(machine):
    machine.run("ls -l /proc/$(systemctl show -P MainPID mainstay)/fd | grep -q /proc/pressure/memory")
