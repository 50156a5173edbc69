# SPDX-License-Identifier: Apache-2.0
"""The status of a pod's containers, compared with the kernel: processes, control groups, mounts."""

import http.client
import os
import signal
import subprocess
import time

import harness
import pytest
import specs
import world
from network import NetworkNode


@pytest.fixture(name="net")
def fixture_net(archive):
    node = NetworkNode(archive)
    yield node
    node.finish()


def user_of(pid):
    """The user of a running process, in the form of core/v1."""
    return {"uid": int(world.status(pid, "Uid").split()[0]), "gid": int(world.status(pid, "Gid").split()[0]),
            "supplementalGroups": sorted(int(group) for group in world.status(pid, "Groups").split())}


def reported_user(node, name, container="main"):
    user = dict(node.status(name, container)["user"]["linux"])
    return {**user, "supplementalGroups": sorted(user.get("supplementalGroups", []))}


def limits_of(group):
    """The CPU limit in thousandths and the memory limit in bytes of a control group."""
    if world.cgroup_version() == 2:
        quota, period = world.cgroup_value(group, "cpu", "cpu.max").split()
        return int(quota) * 1000 // int(period), int(world.cgroup_value(group, "memory", "memory.max"))
    quota = int(world.cgroup_value(group, "cpu", "cpu.cfs_quota_us"))
    return quota // 100, int(world.cgroup_value(group, "memory", "memory.limit_in_bytes"))


def reported_limits(node, name):
    limits = node.status(name)["resources"]["limits"]
    return int(limits["cpu"].removesuffix("m")), int(limits["memory"].removesuffix("Mi")) << 20


def conditions(pod):
    return {c["type"]: c for c in pod["status"]["conditions"]}


def test_an_early_request_to_a_restarted_agent_keeps_transition_times(node):
    def is_unready():
        """Whether the pod is reported as not ready; for a moment its socket does not exist."""
        try:
            pod = node.pod("web")
        except (OSError, http.client.HTTPException):
            return False
        return pod is not None and harness.condition(pod, "Ready")["status"] == "False"

    node.launch(specs.pod("web"))
    since = harness.condition(node.pod("web"), "Ready")["lastTransitionTime"]
    shim, read = node.shim("web"), time.monotonic()
    node.kill9()
    os.kill(shim, signal.SIGSTOP)
    try:
        node.start(ready=False)
        world.wait(is_unready, "it is reported as unready")
        world.wait(lambda: time.monotonic() > read + 1.5, "a second has passed")
    finally:
        os.kill(shim, signal.SIGCONT)
    node.wait_pod("web", lambda pod: harness.condition(pod, "Ready")["status"] == "True", "is known again")
    assert harness.condition(node.pod("web"), "Ready")["lastTransitionTime"] <= since


def test_the_reported_user_matches_the_first_process(node):
    node.launch(specs.pod("web", specs.container(securityContext={"runAsUser": 1234, "runAsGroup": 2345}),
                          specs.container("root"), securityContext={"supplementalGroups": [4000], "fsGroup": 5000}))
    for container in ("main", "root"):
        assert reported_user(node, "web", container) == user_of(node.init("web", container))
    assert reported_user(node, "web")["uid"] == 1234
    node.restart()
    node.wait_running("web")
    assert reported_user(node, "web") == user_of(node.init("web")), "as the next agent reports it"


def test_the_user_of_a_container_that_has_ended_is_known_to_the_next_agent(node):
    node.drop(specs.pod("web", initContainers=[specs.container("init", "true", securityContext={"runAsUser": 1234})],
                        securityContext={"supplementalGroups": [4000]}))
    node.wait_running("web")
    before = reported_user(node, "web", "init")
    assert before["uid"] == 1234 and 4000 in before["supplementalGroups"]
    node.restart()
    node.wait_running("web")
    assert reported_user(node, "web", "init") == before


def test_the_reported_user_is_the_one_inside_the_user_namespace(net):
    net.launch(specs.pod("web", specs.container(securityContext={"runAsUser": 7}), hostNetwork=False,
                          hostUsers=False))
    assert reported_user(net, "web")["uid"] == 7
    assert int(world.status(net.init("web"), "Uid").split()[0]) % 65536 == 7


def test_volume_mounts_match_the_mount_table(node):
    node.launch(specs.pod("web", specs.container(volumeMounts=[
        specs.mount("v", "/rw"), specs.mount("v", "/ro", readOnly=True),
        specs.mount("v", "/rro", readOnly=True, recursiveReadOnly="IfPossible")]),
        volumes=[{"name": "v", "emptyDir": {}}]))
    assert node.status("web")["volumeMounts"] == [
        {"name": "v", "mountPath": "/rw"},
        {"name": "v", "mountPath": "/ro", "readOnly": True, "recursiveReadOnly": "Disabled"},
        {"name": "v", "mountPath": "/rro", "readOnly": True, "recursiveReadOnly": "Enabled"}]
    for path, option in (("/rw", "rw"), ("/ro", "ro"), ("/rro", "ro")):
        assert option in world.mount_at(node.init("web"), path)["options"]


def test_resources_are_those_of_the_control_group_even_if_an_edit_cannot_be_applied(node):
    script = "dd if=/dev/zero of=/m/f bs=1M count=24 2>/dev/null; echo full; " + specs.IDLE
    container = specs.container(script=script, volumeMounts=[specs.mount("m", "/m")], resources={
        "limits": {"cpu": "300m", "memory": "64Mi"}, "requests": {"cpu": "200m", "memory": "8Mi"}})
    pod = specs.pod("web", container, volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}])
    node.launch(pod)
    world.wait(lambda: node.logged("web") == ["full"], "its memory is in use")
    assert node.status("web")["allocatedResources"] == {"cpu": "200m", "memory": "8Mi"}
    assert reported_limits(node, "web") == limits_of(node.container_cgroup("web")) == (300, 64 << 20)
    container["resources"]["limits"] = {"cpu": "400m", "memory": "16Mi"}
    node.drop(pod)
    now = node.wait_pod("web", lambda pod: "PodResizeInProgress" in conditions(pod), "reports that it waits")
    assert conditions(now)["PodResizeInProgress"]["reason"] == "Error"
    assert now["spec"]["containers"][0]["resources"]["limits"]["memory"] == "16Mi"
    assert reported_limits(node, "web") == limits_of(node.container_cgroup("web")) == (400, 64 << 20)


def test_a_container_restarts_for_more_memory_if_its_policy_requires_it(node):
    container = specs.container(
        resources={"limits": {"cpu": "300m", "memory": "32Mi"}},
        resizePolicy=[{"resourceName": "memory", "restartPolicy": "RestartContainer"},
                      {"resourceName": "cpu", "restartPolicy": "NotRequired"}])
    pod = specs.pod("web", container)
    node.launch(pod)
    before = node.init("web")
    container["resources"]["limits"]["cpu"] = "400m"
    node.drop(pod)
    world.wait(lambda: limits_of(node.container_cgroup("web"))[0] == 400, "its CPU has changed")
    assert node.init("web") == before and node.status("web")["restartCount"] == 0
    container["resources"]["limits"]["memory"] = "48Mi"
    node.drop(pod)
    node.wait_restarts("web", 1)
    node.wait_running("web")
    assert node.init("web") != before and not world.is_alive(before)
    assert reported_limits(node, "web") == limits_of(node.container_cgroup("web")) == (400, 48 << 20)


def test_the_stop_signal_is_reported(node):
    script = "trap 'echo heard; exit 0' USR1; sleep 100000 & wait"
    node.launch(specs.pod("web", specs.container(script=script, lifecycle={"stopSignal": "SIGUSR1"}),
                          specs.container("plain"), os={"name": "linux"}))
    assert node.status("web")["stopSignal"] == "SIGUSR1"
    assert node.status("web", "plain")["stopSignal"] == "SIGTERM"


def test_a_readiness_gate_without_a_condition_only_keeps_the_pod_unready(node):
    node.drop(specs.pod("web", readinessGates=[{"conditionType": "PodScheduled"}, {"conditionType": "x.example/Warm"}]))
    pod = node.wait_pod("web", lambda pod: conditions(pod)["ContainersReady"]["status"] == "True", "has its containers")
    ready = conditions(pod)["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
    assert ready["message"] == 'corresponding condition of pod readiness gate "x.example/Warm" does not exist.'
    assert pod["status"]["phase"] == "Running" and node.status("web")["ready"]
    described = node.cli("describe", "pod", "web").stdout
    assert "Readiness Gates:" in described and "<none>" in described
    node.drop(specs.pod("open", readinessGates=[{"conditionType": "PodScheduled"}]))
    node.wait_running("open")
    assert harness.condition(node.pod("open"), "Ready")["status"] == "True"


def test_a_hostname_override_is_used_verbatim(net):
    net.launch(specs.pod("web", specs.container(), hostNetwork=False, hostname="www", subdomain="shop",
                          hostnameOverride="db.example.com"))
    pid = net.init("web")
    assert subprocess.check_output(["nsenter", "-t", str(pid), "-u", "hostname"], text=True) == "db.example.com\n"
    assert world.environ(pid)["HOSTNAME"] == "db.example.com"
    own = [line.split() for line in world.read(f"/proc/{pid}/root/etc/hosts").splitlines()]
    assert [net.pod("web")["status"]["podIP"], "db.example.com"] in own


def test_a_rejected_pod_has_no_container_statuses(node):
    node.drop(specs.pod("web", nodeSelector={"disk": "ssd"}))
    pod = node.wait_pod("web", lambda pod: pod["status"]["phase"] == "Failed", "is rejected")
    assert pod["status"]["reason"] == "NodeAffinity" and "containerStatuses" not in pod["status"]
    for kind in ("Ready", "ContainersReady"):
        assert harness.condition(pod, kind)["reason"] == "UnknownContainerStatuses"
