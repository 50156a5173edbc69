# SPDX-License-Identifier: Apache-2.0
"""Node-pressure eviction: the pod that is evicted, its status, and the pods that start again. The thresholds are
compared with the test's own cgroup or file system, so other load on the machine does not matter."""

import os
import re
import subprocess
import threading

import harness
import pytest
import specs
import world
from registry import BadRegistry, Blobs, DockerRegistry

pytestmark = pytest.mark.cgroup2

MIB = 1 << 20
CRITICAL = 2000000000

# Uses as much memory as the size of the file in memory, until the file is removed.
EAT = "dd if=/dev/zero of=/m/file bs=1M count={} 2>/dev/null; echo ate; " + specs.IDLE


def memory_total():
    with open("/proc/meminfo", encoding="utf-8") as file:
        return int(file.readline().split()[1]) * 1024


def pods_may_have(mib, **fields):
    """A configuration that limits the total memory of all pods to 'mib'."""
    return {"evictionHard": {"allocatableMemory.available": str(memory_total() - mib * MIB)},
            "evictionPressureTransitionPeriod": "4s", **fields}


def eater(name, mib, request=None, priority=0, **spec):
    container = specs.container(script=EAT.format(mib), volumeMounts=[specs.mount("m", "/m")])
    if request:
        container["resources"] = {"requests": {"memory": request}}
    return specs.pod(name, container, priority=priority,
                     volumes=[{"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "300Mi"}}], **spec)


def wait_ate(node, name):
    world.wait(lambda: node.logged(name) == ["ate"], f"{name} has its memory")


def wait_evicted(node, name):
    """Returns the pod as it is reported while it is evicted."""
    return node.wait_pod(name, lambda pod: pod["status"].get("phase") == "Failed" and
                         pod["status"].get("reason") == "Evicted", "is evicted")


def node_conditions(node):
    one = node.node_object()
    return {entry["type"]: entry["status"] for entry in one["status"]["conditions"]}, one


def wait_condition(node, name, status):
    world.wait(lambda: node_conditions(node)[0][name] == status, f"the node has {name} {status}")


def metric(node, line):
    text = node.get("/metrics")[1]
    (value,) = [float(row.rsplit(" ", 1)[1]) for row in text.splitlines() if row.startswith(line + " ")]
    return value


@pytest.mark.cgroup2_quick
def test_the_lowest_priority_pod_that_exceeds_its_requests_is_evicted(make_node):
    node = make_node(config=pods_may_have(120))
    node.launch(eater("modest", 40, request="200Mi"))
    node.launch(eater("important", 30, priority=1000))
    node.launch(eater("critical", 30, priority=CRITICAL))
    for name in "modest", "important", "critical":
        wait_ate(node, name)
    node.drop(eater("greedy", 60, request="1Mi", priority=10))  # it may be evicted before this test sees it run
    pod = wait_evicted(node, "greedy")
    message = pod["status"]["message"]
    assert message.startswith("The node was low on resource: memory. Threshold quantity: "), message
    assert "Container main was using " in message and "request is 1Mi, has larger consumption of memory." in message
    target = harness.condition(pod, "DisruptionTarget")
    assert (target["status"], target["reason"], target["message"]) == ("True", "TerminationByKubelet", message)
    world.wait(lambda: not world.pids_of_root(node.pod_cgroup("greedy")), "nothing of it runs")
    assert all(world.is_alive(node.init(name)) for name in ("modest", "important", "critical"))
    events = node.cli("get", "events").stdout
    assert "EvictionThresholdMet" in events and "Attempting to reclaim memory" in events
    assert f"node/{harness.NODE_NAME}" in events
    assert metric(node, 'kubelet_evictions{eviction_signal="allocatableMemory.available"}') >= 1


def test_a_critical_pod_is_never_evicted(make_node):
    node = make_node(config=pods_may_have(60))
    node.launch(eater("critical", 90, priority=CRITICAL))
    world.wait(lambda: "no pod qualifies for eviction" in node.said(),
               lambda: f"the agent has searched for a candidate; its log:\n{node.said()}")
    wait_condition(node, "MemoryPressure", "True")
    assert world.is_alive(node.init("critical"))
    assert node.pod("critical")["status"]["phase"] == "Running"


def test_memory_pressure_is_reported_taints_the_node_and_rejects_besteffort_pods(make_node):
    node = make_node(config=pods_may_have(60))
    assert node_conditions(node)[0] == {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False",
                                        "Ready": "True"}
    node.launch(eater("critical", 90, priority=CRITICAL))
    wait_condition(node, "MemoryPressure", "True")
    taints = node_conditions(node)[1]["spec"]["taints"]
    assert {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"} in taints
    assert metric(node, 'mainstay_node_condition{condition="MemoryPressure"}') == 1
    assert "Ready,MemoryPressure" in node.cli("get", "nodes").stdout
    described = node.cli("describe", "node").stdout
    assert "KubeletHasInsufficientMemory" in described and "memory-pressure:NoSchedule" in described
    node.drop(specs.pod("beggar"))
    pod = wait_evicted(node, "beggar")
    assert pod["status"]["message"] == "Pod was rejected: The node had condition: [MemoryPressure]."
    assert not pod["status"].get("containerStatuses")
    assert not world.pids_of_root(node.pod_cgroup("beggar"))
    tolerant = specs.pod("tolerant", tolerations=[{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}])
    tolerant["spec"]["priority"] = CRITICAL + 1
    node.launch(tolerant)
    node.remove("critical")
    wait_condition(node, "MemoryPressure", "False")
    node.wait_running("beggar")
    assert "taints" not in node_conditions(node)[1]["spec"] or not node_conditions(node)[1]["spec"]["taints"]


def test_a_condition_does_not_restore_labels_of_an_older_configuration(make_node):
    node = make_node(config=pods_may_have(60, mainstay={"nodeLabels": {"role": "a"}}))
    node.write_config(**pods_may_have(60, mainstay={"nodeLabels": {"role": "b"}}))
    world.wait(lambda: node_conditions(node)[1]["metadata"]["labels"]["role"] == "b", "the label has changed")
    node.launch(eater("critical", 90, priority=CRITICAL))
    wait_condition(node, "MemoryPressure", "True")
    assert node_conditions(node)[1]["metadata"]["labels"]["role"] == "b"


def changing_eater(node, name):
    """A pod that allocates the number of MiB that is in the file, each time it starts."""
    eat(node, 90)
    pod = eater(name, 0)
    pod["spec"]["containers"][0]["command"][2] = EAT.format("$(cat /data/size)")
    pod["spec"]["containers"][0]["volumeMounts"].append(specs.mount("data", "/data"))
    pod["spec"]["volumes"].append(specs.host_path("data", node.data))
    return pod


def eat(node, mib):
    with open(os.path.join(node.data, "size"), "w", encoding="utf-8") as file:
        file.write(str(mib))


def test_an_evicted_pod_starts_again_when_the_node_has_recovered(make_node):
    node = make_node(config=pods_may_have(60, evictionPressureTransitionPeriod="1h"))
    node.drop(changing_eater(node, "greedy"))
    wait_evicted(node, "greedy")
    node.restart()
    assert node.pod("greedy")["status"]["reason"] == "Evicted", "a new agent does not start it"
    assert node_conditions(node)[0]["MemoryPressure"] == "True", "the node reports the reason"
    eat(node, 1)
    node.write_config(**pods_may_have(60))
    node.restart()
    node.wait_running("greedy")
    wait_ate(node, "greedy")
    assert node.status("greedy")["restartCount"] == 0, "it is a new instance"
    assert "starts again: the node no longer has MemoryPressure" in node.said()


def test_a_daemonset_pod_is_evicted_and_starts_again(make_node):
    node = make_node(config=pods_may_have(60))
    spec = changing_eater(node, "greedy")["spec"]
    node.drop(specs.daemonset("greedy", *spec["containers"], volumes=spec["volumes"]))

    def states():
        return [(one["status"]["phase"], one["status"].get("reason")) for one in node.pods()]
    world.wait(lambda: states() == [("Failed", "Evicted")], "it is evicted")
    eat(node, 1)
    world.wait(lambda: states() == [("Running", None)], "it runs again")
    assert "FailedDaemonPod" not in node.cli("get", "events").stdout, "the pod is not replaced"
    assert "starts again: the node no longer has MemoryPressure" in node.said()


def test_a_pod_with_policy_never_stays_evicted(make_node):
    node = make_node(config=pods_may_have(60))
    node.drop(eater("once", 90, restartPolicy="Never"))
    wait_evicted(node, "once")
    # The log records it, because the condition is true for only four seconds.
    world.wait(lambda: "The node no longer has MemoryPressure" in node.said(), "the pressure has ended")
    wait_condition(node, "MemoryPressure", "False")
    node.launch(specs.pod("other"))
    assert node.pod("once")["status"]["reason"] == "Evicted"


def test_a_soft_threshold_honours_the_grace_period_of_the_pod(make_node):
    node = make_node(config={"evictionHard": {}, "evictionSoft": pods_may_have(60)["evictionHard"],
                             "evictionSoftGracePeriod": {"allocatableMemory.available": "3s"},
                             "evictionMaxPodGracePeriod": 20})
    pod = eater("polite", 90, terminationGracePeriodSeconds=20)
    pod["spec"]["containers"][0]["command"][2] = "trap 'b=1' TERM; " + EAT.format(90).replace(
        specs.IDLE, "until [ $b ]; do sleep 0.1; done; sleep 2; echo bye")  # the signal may arrive while it allocates
    node.drop(pod)
    wait_evicted(node, "polite")
    world.wait(lambda: node.logged("polite") == ["ate", "bye"], "it had time to finish")


def start_small_disk(archive, **fields):
    node = harness.Node(config={"evictionHard": None, "evictionPressureTransitionPeriod": "4s", **fields}, start=False)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,nr_inodes=2000", "tmpfs", node.state], check=True)
    node.own_mounts.add(node.state)
    node.preload(archive)
    node.start()
    world.wait(lambda: os.path.basename(archive) in node.cli("images").stdout, "its archive is read, and nothing more is being written")
    return node


@pytest.fixture(name="small_disk")
def _small_disk(archive):
    """A node whose state is on a separate file system of 64 MiB."""
    node = start_small_disk(archive)
    yield node
    node.finish()  # also unmounts the disk, by force


def writer(name, script, **spec):
    return specs.pod(name, specs.container(script=script + "; echo wrote; " + specs.IDLE,
                                           volumeMounts=[specs.mount("v", "/v")]),
                     volumes=[{"name": "v", "emptyDir": {}}], **spec)


def fill(node):
    """Fills the node's disk; removing the file frees the space again."""
    with open(f"{node.state}/filler", "wb", buffering=0) as filler, pytest.raises(OSError):
        while True:
            filler.write(bytes(4096))


def test_a_pod_that_cannot_start_on_a_full_disk_is_listed(small_disk):
    node = small_disk
    fill(node)
    node.drop(specs.pod("late"))
    pod = node.wait_phase("late", "Pending")
    assert "No space left on device" in pod["status"]["message"]
    shown = node.cli("get", "pods").stdout.splitlines()
    assert re.match(r"late-\S+ +0/1 +Pending +0 ", shown[1]), shown
    described = node.cli("describe", "pod", "late").stdout
    assert "No space left on device" in described
    assert re.search(r"Warning +FailedCreatePodSandBox .*No space left on device", described)
    os.unlink(f"{node.state}/filler")
    node.wait_running("late")
    assert not node.pod("late")["status"].get("message")


def test_a_pod_that_cannot_start_on_a_full_disk_leaves_nothing_behind(small_disk):
    node = small_disk
    fill(node)
    node.drop(specs.pod("late"))
    world.wait(lambda: "cannot write the record of pod late" in node.said(), "it cannot start")
    node.remove("late")
    node.wait_gone("late")
    assert not os.listdir(f"{node.state}/pods")


def config_map(value):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"k": value}}


def test_a_volume_is_updated_once_the_disk_has_space_again(small_disk):
    node = small_disk
    node.drop(config_map("old"), "settings.yaml")
    node.launch(specs.pod("reader", specs.container(volumeMounts=[specs.mount("v", "/v")]),
                          volumes=[{"name": "absent", "secret": {"secretName": "absent", "optional": True}},
                                   {"name": "v", "configMap": {"name": "settings"}}]))
    init = node.init("reader")
    fill(node)
    node.drop(config_map("new"), "settings.yaml")
    world.wait(lambda: "the volume stays as it was" in node.said(), "the update has failed")
    assert world.read(f"/proc/{init}/root/v/k") == "old"
    os.unlink(f"{node.state}/filler")
    world.wait(lambda: world.read(f"/proc/{init}/root/v/k") == "new", "the volume is up to date")
    assert node.init("reader") == init


@pytest.mark.parametrize("script, resource", [
    ("dd if=/dev/zero of=/v/file bs=1M count=57 2>/dev/null", "ephemeral-storage"),
    ("i=0; while [ $i -lt 1900 ]; do i=$((i+1)); true 2>&- >/v/$i || break; done", "inodes"),
])
def test_the_pod_that_fills_the_disk_is_evicted(small_disk, script, resource):
    node = small_disk
    node.launch(writer("slim", "echo little >/v/file"))
    node.drop(writer("fat", script))
    message = wait_evicted(node, "fat")["status"]["message"]
    assert message.startswith(f"The node was low on resource: {resource}. Threshold quantity: "), message
    assert world.is_alive(node.init("slim"))
    wait_condition(node, "DiskPressure", "True")
    assert node.pod("slim")["status"]["phase"] == "Running"
    node.remove("fat")
    node.wait_gone("fat")
    wait_condition(node, "DiskPressure", "False")
    node.launch(writer("next", "echo little >/v/file"))


@pytest.fixture(name="pulling_disk")
def _pulling_disk(archive, tmp_path):
    """A small disk with an image that cannot be removed yet: a pull is under way, and does not end."""
    end = threading.Event()
    registry = DockerRegistry(str(tmp_path))
    slow = BadRegistry(Blobs([{}]), lambda handler: end.wait(600) and False)
    node = None
    try:
        registry.push(f"docker-archive:{archive}", "team/unused:1")
        node = start_small_disk(archive, mainstay={"insecureRegistries": [registry.host, slow.host]})
        assert node.cli("images", "pull", f"{registry.host}/team/unused:1").returncode == 0
        node.drop(specs.pod("slow", specs.container(image=f"{slow.host}/team/app:1", imagePullPolicy="Always")))
        world.wait(lambda: slow.seen, "it pulls")
        assert node.cli("images", "prune").returncode == 0
        yield node
    finally:
        end.set()
        if node:
            node.finish()
        slow.stop()
        registry.stop()


def test_an_eviction_does_not_wait_for_images_that_a_pull_uses(pulling_disk):
    node = pulling_disk
    node.drop(writer("fat", "dd if=/dev/zero of=/v/file bs=1M count=55 2>/dev/null"))
    wait_evicted(node, "fat")
    assert "Removed image" not in node.said(), "the pull is still in progress"


def test_pods_keep_running_and_new_ones_are_rejected_if_others_fill_the_disk(small_disk):
    node = small_disk
    node.launch(writer("slim", "echo little >/v/file"))
    with open(os.path.join(node.state, "ballast"), "wb") as file:
        file.write(b"x" * (57 * MIB))
    world.wait(lambda: "no pod qualifies for eviction" in node.said(), "the agent has searched for a candidate")
    assert world.is_alive(node.init("slim"))
    node.drop(writer("new", "true"))
    wait_evicted(node, "new")
    init = node.init("slim")
    node.restart()
    assert node.init("slim") == init
    os.unlink(os.path.join(node.state, "ballast"))
    node.wait_running("new")


def reported_condition(member, kind):
    node = member.api.get("nodes", None, harness.NODE_NAME) or {"status": {"conditions": []}}
    return {one["type"]: one["status"] for one in node["status"]["conditions"]}.get(kind)


def test_the_api_server_gets_the_condition_and_its_pods_stay_evicted(make_member):
    member = make_member(config=pods_may_have(60))
    member.bind("critical", *eater("critical", 90)["spec"]["containers"], priorityClassName="system-cluster-critical",
                volumes=eater("critical", 90)["spec"]["volumes"])
    member.wait_reported_phase("critical", "Running")
    world.wait(lambda: reported_condition(member, "MemoryPressure") == "True", "it is reported to the server")
    member.bind("beggar")
    evicted = member.wait_reported_phase("beggar", "Failed")
    assert evicted["status"]["reason"] == "Evicted"
    member.api.delete("pods", "default", "critical")
    world.wait(lambda: reported_condition(member, "MemoryPressure") == "False", "its end is reported to the server, too")
    member.bind("next")
    member.wait_reported_phase("next", "Running")
    assert member.reported("beggar")["status"]["phase"] == "Failed"
    assert not world.pids_of_root(member.pod_cgroup("beggar")), "it is not restarted"
