# SPDX-License-Identifier: Apache-2.0
"""Resources of a pod in the files of cgroup v2: with runc, with crun, and after an edit."""

from pods import MANIFESTS, SCRIPT, configure, end, get, group, launch, scope, show, uid, values, wait_asleep, wait_running, write
import pytest
import specs

pytestmark = pytest.mark.long

FILES = "cpu.weight", "cpu.max", "memory.max", "memory.swap.max", "pids.max", "hugetlb.2MB.max", "memory.oom.group"
RESOURCES = {"requests": {"cpu": "250m", "memory": "64Mi", "hugepages-2Mi": "4Mi"},
             "limits": {"cpu": "500m", "memory": "128Mi", "hugepages-2Mi": "4Mi"}}
CONFIG = """podPidsLimit: 200
memorySwap: {swapBehavior: LimitedSwap}
mainstay: {runtimes: {crun: /usr/bin/crun}}
"""


@pytest.fixture(scope="module", name="node")
def _node(machine):
    """A machine with huge pages, swap, and a second runtime."""
    machine.run("sysctl -q vm.nr_hugepages=8 && fallocate -l 256M /swap && chmod 600 /swap && mkswap -q /swap && swapon /swap")
    configure(machine, CONFIG)
    machine.write(f"{MANIFESTS}/classes.yaml", specs.text(
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "crun"}, "handler": "crun"}))
    return machine


def everything(name, **spec):
    """A pod with all kinds of resources."""
    return specs.pod(name, specs.container(script=SCRIPT, resources=RESOURCES,
                                           volumeMounts=[specs.mount("huge", "/huge")]),
                     volumes=[{"name": "huge", "emptyDir": {"medium": "HugePages"}}], **spec)


def swap_share(node, request):
    """The share of the node's swap that corresponds to this share of its memory."""
    sizes = node.run("awk '/^(MemTotal|SwapTotal):/ { print $2 * 1024 }' /proc/meminfo").split()
    return request * int(sizes[1]) // int(sizes[0])


@pytest.mark.parametrize("runtime", ["runc", "crun"])
def test_pod_resources_are_set_in_its_cgroups(node, runtime):
    write(node, everything(runtime, **({"runtimeClassName": "crun"} if runtime == "crun" else {})))
    wait_running(node, runtime)
    pod = values(node, group(node, runtime), *FILES)
    swap = int(pod.pop("memory.swap.max").replace("max", "-1"))
    assert pod == {"cpu.weight": "10", "cpu.max": "50000 100000", "memory.max": str(128 << 20), "pids.max": "200",
                   "hugetlb.2MB.max": str(4 << 20), "memory.oom.group": "0"}
    container = values(node, scope(node, runtime), *FILES)
    share = int(container.pop("memory.swap.max"))
    assert container == {"cpu.weight": "35", "cpu.max": "50000 100000", "memory.max": str(128 << 20), "pids.max": "max",
                         "hugetlb.2MB.max": str(4 << 20), "memory.oom.group": "1"}
    assert abs(share - swap_share(node, 64 << 20)) <= 4096 and swap in (-1, share)
    assert f"--runtime /usr/bin/{runtime}" in node.run(
        f"tr '\\0' ' ' </proc/$(systemctl show -P MainPID mainstay-pod-{uid(node, runtime)}.service)/cmdline").replace(
            "--runtime runc", "--runtime /usr/bin/runc")
    before = values(node, scope(node, runtime), *FILES)
    node.run("systemctl daemon-reload; systemctl daemon-reexec")
    assert values(node, scope(node, runtime), *FILES) == before


@pytest.mark.parametrize("runtime", ["runc", "crun"])
def test_edit_of_resources_is_applied_and_a_limit_below_usage_is_reported(node, runtime):
    pid = node.run(f"cat /sys/fs/cgroup{scope(node, runtime)}/cgroup.procs").split()[0]
    pod = everything(runtime, **({"runtimeClassName": "crun"} if runtime == "crun" else {}))
    resources = {"requests": {**RESOURCES["requests"], "cpu": "300m"}, "limits": {**RESOURCES["limits"], "cpu": "600m", "memory": "96Mi"}}
    pod["spec"]["containers"][0]["resources"] = resources
    write(node, pod)
    for directory, weight in (group(node, runtime), 12), (scope(node, runtime), 40):
        node.wait(f"cd /sys/fs/cgroup{directory} && grep -x '60000 100000' cpu.max && grep -x {96 << 20} memory.max && "
                  f"grep -x {weight} cpu.weight", "the edit is applied")
    assert node.run(f"cat /sys/fs/cgroup{scope(node, runtime)}/cgroup.procs").split()[0] == pid
    # A limit below the memory in use cannot be applied.
    node.run(f"mainstay exec {runtime}-machine -c main -- sh -c 'head -c 40000000 /dev/zero >/dev/shm/file'")
    resources["limits"]["memory"] = resources["requests"]["memory"] = "16Mi"
    write(node, pod)
    node.wait(f"mainstay describe pod {runtime}-machine | grep 'more is in use'", "the edit is reported as pending")
    assert get(node, runtime)["status"]["containerStatuses"][0]["resources"]["limits"]["memory"] == "96Mi"
    end(node, runtime)


def test_top_reports_usage_of_containers(node):
    write(node, specs.pod("busy", specs.container(script="head -c 50000000 /dev/zero >/dev/shm/f; while :; do :; done")))
    launch(node, "quiet")
    wait_running(node, "busy")
    node.wait("mainstay top pods --no-headers | sort | awk '$1 ~ /busy/ { busy = $2 + 0; full = $3 + 0 } "
              "$1 ~ /quiet/ { quiet = $2 + 0; small = $3 + 0 } "
              "END { exit !(busy > 10 * quiet && busy > 100 && full >= 47 && full < 100 && small < 20) }'",
              "the busy pod uses more than the idle one")
    end(node, "busy")
    end(node, "quiet")


def test_container_of_crun_without_enough_memory_is_oom_killed(node):
    write(node, specs.pod("greedy", specs.container(script="exec tail /dev/zero", resources={"limits": {"memory": "16Mi"}}),
                          runtimeClassName="crun"))
    node.wait("mainstay get pod greedy-machine -o json | grep OOMKilled", "the reason is reported")
    end(node, "greedy")


def test_pod_of_crun_survives_the_agent_and_accepts_exec(node):
    write(node, specs.pod("entered", specs.container(script=SCRIPT), runtimeClassName="crun"))
    wait_asleep(node, "entered")
    pid = node.run("pgrep -x sleep").strip()
    node.run("systemctl kill -s KILL mainstay")
    node.wait("mainstay exec entered-machine -c main -- echo inside | grep inside", "a command runs in it")
    assert node.run("pgrep -x sleep").strip() == pid
    assert show(node, f"mainstay-pod-{uid(node, 'entered')}.service", "ActiveState") == {"ActiveState": "active"}
    end(node, "entered")
    node.wait("[ -z \"$(find /sys/fs/cgroup -name '*kubepods*')\" ]", "no control group remains")


def test_single_process_oom_kill_ends_one_process(node):
    configure(node, CONFIG + "singleProcessOOMKill: true\n")
    memory = {"limits": {"memory": "64Mi"}}
    write(node, specs.pod("single", specs.container(
        script="dd if=/dev/zero of=/dev/null bs=200M count=1; echo child $?; exec sleep 100000", resources=memory)))
    node.wait("mainstay logs single-machine | grep -x 'child 137'", "the child is killed, and its parent is not")
    assert get(node, "single")["status"]["containerStatuses"][0]["restartCount"] == 0
    node.run("systemctl daemon-reload")
    assert values(node, scope(node, "single"), "memory.oom.group") == {"memory.oom.group": "0"}
    end(node, "single")
    configure(node, CONFIG)
