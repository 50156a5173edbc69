# SPDX-License-Identifier: Apache-2.0
"""Edits of manifests while their pods run: changes that are applied in place, restart a container or replace the
pod."""

import copy
import ctypes
import os
import subprocess
import time

import harness
import pytest
import specs
import world

OTHER = "docker.io/library/other:1"


@pytest.fixture(scope="module", name="archive_of_other")
def fixture_archive_of_other(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("images") / "other.tar")
    subprocess.run([os.path.join(harness.TOP, "tests", "make-image"), OTHER, path], check=True)
    return path


def identity(node, name, container="main"):
    pid = node.init(name, container)
    return pid, world.start_time(pid)


def edited(pod, **fields):
    """A copy with other fields of its first container."""
    changed = copy.deepcopy(pod)
    changed["spec"]["containers"][0].update(fields)
    return changed


def limits(cpu, memory):
    return {"limits": {"cpu": cpu, "memory": memory}}


def limits_of(group):
    """The CPU quota and the memory limit of a control group in the kernel."""
    if world.cgroup_version() == 2:
        return (world.cgroup_value(group, "cpu", "cpu.max").split()[0],
                world.cgroup_value(group, "memory", "memory.max"))
    return (world.cgroup_value(group, "cpu", "cpu.cfs_quota_us"),
            world.cgroup_value(group, "memory", "memory.limit_in_bytes"))


def pending(pod):
    """The reason why an edit waits, or "" if none does."""
    found = [c for c in pod["status"]["conditions"] if c["type"] == "mainstay.io/EditPending"]
    return found[0]["message"] if found else ""


def hold_runs(node):
    """Makes the runtime start no container until a file is removed; returns that file. Another one next to it shows
    that a call waits."""
    held, path = f"{node.directory}/held", f"{node.directory}/runtime"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\ncase " $* " in *" run "*) while [ -e {held} ]; do : >{held}.waits; sleep 0.05; done;; esac\n'
                   'exec runc "$@"\n')
    os.chmod(path, 0o755)
    return held


@pytest.mark.cgroup2
@pytest.mark.parametrize("restarts", [False, True], ids=["same", "new"])
def test_an_edit_of_limits_applies_to_a_container_that_is_being_created(make_node, restarts):
    node = make_node(start=False)
    node.write_config(mainstay={"runtime": f"{node.directory}/runtime"})
    held = hold_runs(node)
    node.start()
    pod = specs.pod("web", specs.container(resources=limits("100m", "32Mi")))
    node.launch(pod)
    with open(held, "w", encoding="utf-8"):
        pass
    world.kill_all([node.init("web")])
    world.wait(lambda: os.path.exists(f"{held}.waits"), "the next attempt is being created")
    node.drop(edited(pod, resources=limits("200m", "48Mi")))
    world.wait(lambda: "resources.limits.memory (32Mi -> 48Mi)" in node.said(), "the edit is applied")
    if restarts:
        node.restart()
    os.unlink(held)
    node.wait_restarts("web", 1)
    group = node.container_cgroup("web")
    world.wait(lambda: limits_of(group) == ("20000", str(48 << 20)), lambda: f"it has the new limits: {limits_of(group)}")
    assert limits_of(node.pod_cgroup("web")) == ("20000", str(48 << 20))
    assert node.status("web")["restartCount"] == 1


def two_containers(**fields):
    return specs.pod("web", specs.container("a"), specs.container("b"), **fields)


def writer(node, word, **spec):
    """A pod that writes when it starts and when it is stopped."""
    return specs.pod("web", specs.container(
        script=f"trap 'echo {word} down >> /v/log; exit 0' TERM; echo {word} up >> /v/log; sleep 100000 & wait",
        volumeMounts=[specs.mount("v", "/v")]), volumes=[specs.host_path("v", node.data)],
        terminationGracePeriodSeconds=20, **spec)


@pytest.mark.cgroup2
@pytest.mark.quick
def test_edits_without_a_restart_apply_to_running_containers(node):
    pod = specs.pod("web", specs.container(resources=limits("100m", "32Mi")), metadata={"labels": {"tier": "one"}})
    started = node.launch(pod)
    uid = started["metadata"]["uid"]
    before, shim = identity(node, "web"), node.shim("web")
    pod = edited(pod, resources=limits("200m", "48Mi"), terminationMessagePolicy="FallbackToLogsOnError")
    pod["metadata"]["labels"] = {"tier": "two"}
    pod["spec"]["terminationGracePeriodSeconds"] = 7
    node.drop(pod)
    now = node.wait_pod("web", lambda pod: pod["metadata"]["labels"] == {"tier": "two"}, "has the label")
    assert now["metadata"]["uid"] == uid
    assert now["metadata"]["annotations"]["kubernetes.io/config.hash"] != started["metadata"]["annotations"][
        "kubernetes.io/config.hash"]
    assert now["spec"]["terminationGracePeriodSeconds"] == 7
    assert now["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "200m", "memory": "48Mi"}
    assert limits_of(node.container_cgroup("web")) == ("20000", str(48 << 20))
    assert limits_of(node.pod_cgroup("web")) == ("20000", str(48 << 20))
    assert identity(node, "web") == before and world.is_alive(shim)
    assert node.status("web")["restartCount"] == 0


@pytest.mark.cgroup2
@pytest.mark.cgroup2_quick
def test_limits_can_be_reduced_and_removed_while_their_container_runs(node):
    requests = {"requests": {"cpu": "50m", "memory": "8Mi"}}
    pod = specs.pod("web", specs.container(resources={**limits("400m", "64Mi"), **requests}))
    node.launch(pod)
    before, group = identity(node, "web"), node.container_cgroup("web")
    node.drop(edited(pod, resources={**limits("100m", "32Mi"), **requests}))
    world.wait(lambda: limits_of(group) == ("10000", str(32 << 20)), lambda: f"it shrinks: {limits_of(group)}")
    world.wait(lambda: limits_of(node.pod_cgroup("web")) == ("10000", str(32 << 20)), "the pod's cgroup shrinks, too")
    node.drop(edited(pod, resources=requests))
    without = (("max", "max") if world.cgroup_version() == 2 else
               ("-1", world.cgroup_value("", "memory", "memory.limit_in_bytes")))
    world.wait(lambda: limits_of(group) == without, lambda: f"it has no limits: {limits_of(group)}")
    assert identity(node, "web") == before


@pytest.mark.cgroup2
def test_memory_limit_below_the_usage_is_not_applied_and_the_status_reports_it(node):
    script = "dd if=/dev/zero of=/m/f bs=1M count=24 2>/dev/null; echo full; " + specs.IDLE
    pod = specs.pod("web", specs.container(script=script, resources={
        "limits": {"memory": "64Mi"}, "requests": {"memory": "8Mi"}}, volumeMounts=[specs.mount("m", "/m")]),
        volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}])
    node.launch(pod)
    world.wait(lambda: node.logged("web") == ["full"], "its memory is in use")
    before, group = identity(node, "web"), node.container_cgroup("web")
    node.drop(edited(pod, resources={"limits": {"memory": "16Mi"}, "requests": {"memory": "8Mi"}}))
    now = node.wait_pod("web", lambda pod: "PodResizeInProgress" in [
        c["type"] for c in pod["status"]["conditions"]], "reports that it waits")
    assert "more is in use" in harness.condition(now, "PodResizeInProgress")["message"]
    assert "more is in use" in node.cli("describe", "pod", "web").stdout
    assert limits_of(group)[1] == str(64 << 20)
    assert identity(node, "web") == before
    node.drop(edited(pod, resources={"limits": {"memory": "96Mi"}, "requests": {"memory": "8Mi"}}))
    world.wait(lambda: limits_of(group)[1] == str(96 << 20), "the reduced limit is applied")
    node.wait_pod("web", lambda pod: "PodResizeInProgress" not in [
        c["type"] for c in pod["status"]["conditions"]], "waits for nothing")
    assert identity(node, "web") == before


@pytest.mark.cgroup2
def test_a_pod_keeps_the_memory_of_a_container_that_was_refused_a_smaller_limit(node):
    def memory(limit):
        return {"limits": {"memory": limit}, "requests": {"memory": "8Mi"}}

    script = "dd if=/dev/zero of=/m/f bs=1M count=24 2>/dev/null; echo full; " + specs.IDLE
    pod = specs.pod("web", specs.container(script=script, resources=memory("64Mi"), volumeMounts=[specs.mount("m", "/m")]),
                    specs.container("other", resources=memory("64Mi")),
                    volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}])
    node.launch(pod)
    world.wait(lambda: node.logged("web") == ["full"], "its memory is in use")
    node.drop(edited(pod, resources=memory("16Mi")))
    node.wait_pod("web", lambda pod: "PodResizeInProgress" in [
        c["type"] for c in pod["status"]["conditions"]], "reports that it waits")
    assert limits_of(node.container_cgroup("web"))[1] == str(64 << 20)
    assert limits_of(node.pod_cgroup("web"))[1] == str(128 << 20)
    os.unlink(f"/proc/{node.init('web')}/root/m/f")
    world.wait(lambda: limits_of(node.pod_cgroup("web"))[1] == str(80 << 20), "it shrinks with its container")
    assert limits_of(node.container_cgroup("web"))[1] == str(16 << 20)


def test_files_of_the_downward_api_follow_labels(node):
    pod = specs.pod("web", specs.container(volumeMounts=[specs.mount("d", "/d")]), volumes=[
        {"name": "d", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}],
        metadata={"labels": {"tier": "one"}})
    node.launch(pod)
    before = identity(node, "web")
    path = f"/proc/{before[0]}/root/d/labels"
    assert world.read(path) == 'tier="one"'
    pod["metadata"]["labels"]["tier"] = "two"
    node.drop(pod)
    world.wait(lambda: world.read(path) == 'tier="two"', lambda: f"the file follows: {world.read(path)}")
    assert identity(node, "web") == before


def test_an_edit_restarts_changed_probes_only(node):
    def probe(path):
        return {"exec": {"command": ["/bin/test", "-e", path]}, "periodSeconds": 1, "timeoutSeconds": 60}
    pod = specs.pod("web", specs.container(readinessProbe=probe("/there"), livenessProbe=probe("/bin/sh")))
    node.drop(pod)
    node.wait_pod("web", lambda pod: "Readiness probe failed" in node.said(), "is probed")
    before = identity(node, "web")
    assert not node.status("web")["ready"]
    node.drop(edited(pod, readinessProbe=probe("/bin/sh")))
    node.wait_pod("web", lambda pod: node.status("web").get("ready"), "is ready by its new probe")
    node.drop(edited(pod, readinessProbe=probe("/bin/sh"), livenessProbe={**probe("/there"), "failureThreshold": 1}))
    node.wait_restarts("web", 1)
    assert not world.is_alive(before[0]), "the new liveness probe applies"
    assert node.status("web")["lastState"]["terminated"]["exitCode"] in (0, 137)


def test_the_hook_of_a_container_that_is_edited_runs_before_it_is_stopped(node):
    pod = writer(node, "one")
    pod["spec"]["containers"][0]["lifecycle"] = {"preStop": {"exec": {
        "command": ["/bin/sh", "-c", "echo hook >> /v/log; sleep 0.3"]}}}
    node.launch(pod)
    world.wait(lambda: world.read(f"{node.data}/log") == "one up\n", "the first has started")
    again = writer(node, "two")
    again["spec"]["containers"][0]["lifecycle"] = pod["spec"]["containers"][0]["lifecycle"]
    node.drop(again)
    world.wait(lambda: world.read(f"{node.data}/log") == "one up\nhook\none down\ntwo up\n",
               lambda: f"the containers run one after the other: {world.read(f'{node.data}/log')}")


def test_one_changed_image_restarts_one_container(node, archive_of_other):
    node.preload(archive_of_other)
    pod = two_containers()
    uid = node.launch(pod)["metadata"]["uid"]
    first, second, shim = identity(node, "web", "a"), identity(node, "web", "b"), node.shim("web")
    node.drop(edited(pod, image=OTHER))
    status = node.wait_restarts("web", 1, "a")
    assert status["image"] == OTHER
    assert "terminated" in status["lastState"]
    assert identity(node, "web", "a") != first
    assert not world.is_alive(first[0])
    assert identity(node, "web", "b") == second and world.is_alive(shim)
    assert node.status("web", "b")["restartCount"] == 0
    assert node.pod("web")["metadata"]["uid"] == uid


def test_an_edited_container_has_its_grace_period_before_it_restarts(node):
    node.launch(writer(node, "one"))
    world.wait(lambda: world.read(f"{node.data}/log") == "one up\n", "the first has started")
    node.drop(writer(node, "two"))
    world.wait(lambda: world.read(f"{node.data}/log") == "one up\none down\ntwo up\n",
               lambda: f"the containers run one after the other: {world.read(f'{node.data}/log')}")
    assert node.wait_restarts("web", 1)["restartCount"] == 1


def test_an_edit_ends_the_back_off(make_node):
    node = make_node(config={"crashLoopBackOff": {"maxContainerRestartPeriod": "300s"}})
    node.drop(specs.script_pod("web", "exit 1"))
    world.wait(lambda: "back-off 20s" in node.wait_waiting("web", "CrashLoopBackOff"), "it waits for 20 seconds")
    node.drop(specs.script_pod("web", specs.IDLE))
    pod = node.wait_running("web", 18)
    assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1


def test_an_edit_starts_a_completed_pod_again(node):
    node.drop(specs.script_pod("job", "echo one", restartPolicy="Never"))
    old = node.wait_phase("job", "Succeeded")["metadata"]["uid"]
    node.drop(specs.script_pod("job", "echo two; exit 3", restartPolicy="Never"))
    assert node.wait_phase("job", "Failed")["metadata"]["uid"] != old
    assert node.status("job")["restartCount"] == 0
    world.wait(lambda: node.logged("job") == ["two"], "it ran with the edit applied")


def test_an_edit_during_node_downtime_starts_a_completed_pod_again(node):
    node.drop(specs.script_pod("job", "echo one", restartPolicy="Never"))
    old = node.wait_phase("job", "Succeeded")["metadata"]["uid"]
    world.wait(lambda: not node.shims(), "its shim has ended")
    node.kill9()
    node.drop(specs.script_pod("job", "echo two", restartPolicy="Never"))
    node.start()
    node.wait_pod("job", lambda pod: pod["metadata"]["uid"] != old and pod["status"]["phase"] == "Succeeded",
                  "has run again")
    world.wait(lambda: node.logged("job") == ["two"], "it ran with the edit applied")


def test_an_edit_restarts_a_terminated_container_of_a_running_pod(node):
    pod = specs.pod("web", specs.container("a", "echo one"), specs.container("b"), restartPolicy="Never")
    uid = node.drop(pod) and node.wait_pod("web", lambda pod: "terminated" in node.status("web", "a").get(
        "state", {}), "has a container that ended")["metadata"]["uid"]
    second = identity(node, "web", "b")
    node.drop(edited(pod, command=["/bin/sleep", "1000"]))
    node.wait_restarts("web", 1, "a")
    assert world.cmdline(node.init("web", "a")) == ["/bin/sleep", "1000"]
    assert identity(node, "web", "b") == second
    assert node.pod("web")["metadata"]["uid"] == uid


def test_an_edited_sidecar_restarts_and_an_edited_init_container_replaces_the_pod(node):
    pod = specs.pod("web", initContainers=[specs.container("first", "exit 0"),
                                           specs.container("side", restartPolicy="Always")])
    uid = node.launch(pod)["metadata"]["uid"]
    before = identity(node, "web")
    pod["spec"]["initContainers"][1]["command"] = ["/bin/sleep", "1000"]
    node.drop(pod)
    world.wait(lambda: world.cmdline(node.find_init("web", "side") or 0) == ["/bin/sleep", "1000"],
               lambda: f"the sidecar runs with the edit applied: {node.said()[-2000:]}")
    assert identity(node, "web") == before
    assert node.pod("web")["metadata"]["uid"] == uid
    pod["spec"]["initContainers"][0]["command"] = ["/bin/true"]
    node.drop(pod)
    node.wait_pod("web", lambda pod: pod["metadata"]["uid"] != uid and harness.is_running(pod), "is replaced")
    assert not world.is_alive(before[0])


def test_a_successor_that_cannot_start_leaves_its_predecessor_running(node, archive_of_other):
    pod = specs.pod("web")
    old = node.launch(pod)["metadata"]["uid"]
    before = identity(node, "web")
    broken = edited(pod, image=OTHER)
    broken["spec"]["hostIPC"] = True
    node.drop(broken)
    now = node.wait_pod("web", pending, "reports why it waits")
    assert OTHER in pending(now) and "hostIPC" in pending(now)
    assert OTHER in node.cli("describe", "pod", "web").stdout
    assert now["metadata"]["uid"] == old and identity(node, "web") == before
    node.restart()
    now = node.wait_pod("web", pending, "reports it again")
    assert identity(node, "web") == before
    node.preload(archive_of_other)
    node.wait_pod("web", lambda pod: pod["metadata"]["uid"] != old and pod["status"]["phase"] == "Running",
                  "is replaced as soon as possible")
    assert node.status("web")["image"] == OTHER
    assert not world.is_alive(before[0])


def test_a_successor_whose_volume_is_missing_waits_and_an_edit_back_changes_nothing(node):
    pod = specs.pod("web")
    old = node.launch(pod)["metadata"]["uid"]
    before = identity(node, "web")
    broken = copy.deepcopy(pod)
    broken["spec"]["volumes"] = [{"name": "c", "configMap": {"name": "later"}}]
    node.drop(broken)
    now = node.wait_pod("web", pending, "reports why it waits")
    assert 'configmap "later" not found' in pending(now)
    node.drop(pod)
    node.wait_pod("web", lambda pod: not pending(pod), "waits for nothing")
    assert node.pod("web")["metadata"]["uid"] == old and identity(node, "web") == before
    node.drop(broken)
    node.wait_pod("web", pending, "waits again")
    node.drop({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}, "data": {"k": "v"}})
    node.wait_pod("web", lambda pod: pod["metadata"]["uid"] != old and pod["status"]["phase"] == "Running",
                  "is replaced as soon as possible")


def test_a_successor_whose_sub_path_cannot_be_expanded_does_not_stop_its_predecessor(node):
    node.launch(specs.pod("web"))
    before = identity(node, "web")
    node.drop(specs.pod("web", specs.container(volumeMounts=[specs.mount("v", "/v", subPathExpr="$(MISSING)")]),
                        volumes=[{"name": "v", "emptyDir": {}}]))
    assert 'missing value for "MISSING"' in pending(node.wait_pod("web", pending, "reports why it waits"))
    assert identity(node, "web") == before


def mount_that_hangs(path):
    """A FUSE file system without a server: each access waits until the descriptor that is returned is closed."""
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
    if ctypes.CDLL(None, use_errno=True).mount(b"fuse", path.encode(), b"fuse", 0, options) != 0:
        os.close(fd)
        raise OSError(ctypes.get_errno(), "mount")
    return fd


@pytest.fixture(name="hung")
def fixture_hung(node, tmp_path):
    """A directory in which all operations hang."""
    fd = mount_that_hangs(str(tmp_path))
    yield str(tmp_path)
    os.close(fd)
    world.run("umount", "--lazy", str(tmp_path))
    node.remove("web")


@pytest.mark.long
def test_a_host_path_that_hangs_delays_only_its_successor(node, hung):
    node.launch(specs.pod("web"))
    before = identity(node, "web")
    node.drop(specs.pod("web", volumes=[specs.host_path("v", hung, type="Directory")]))
    node.launch(specs.pod("other"))
    assert f"the file system of {hung} has not answered for 10s" in pending(node.wait_pod("web", pending, "reports why it waits"))
    assert identity(node, "web") == before


def test_a_successor_starts_when_its_host_path_exists(node):
    node.launch(specs.pod("web"))
    before = identity(node, "web")
    node.drop(specs.pod("web", volumes=[specs.host_path("v", f"{node.data}/late", type="Directory")]))
    assert f"{node.data}/late is not of type Directory" in pending(node.wait_pod("web", pending, "reports why it waits"))
    assert identity(node, "web") == before
    os.mkdir(f"{node.data}/late")
    world.wait(lambda: not world.is_alive(before[0]), "is replaced")
    node.wait_running("web")


def test_the_successor_starts_when_the_predecessor_has_ended(node):
    node.launch(writer(node, "one"))
    world.wait(lambda: world.read(f"{node.data}/log") == "one up\n", "the first has started")
    node.drop(writer(node, "two", hostIPC=True))
    world.wait(lambda: world.read(f"{node.data}/log") == "one up\none down\ntwo up\n",
               lambda: f"the containers run one after the other: {world.read(f'{node.data}/log')}")
    assert node.wait_running("web")["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_successor_waits_for_the_image_of_its_volume(node):
    old = node.launch(specs.pod("web"))["metadata"]["uid"]
    before = identity(node, "web")
    node.drop(specs.pod("web", specs.container(volumeMounts=[specs.mount("v", "/v")]),
                        volumes=[{"name": "v", "image": {"reference": OTHER}}]))
    assert OTHER in pending(node.wait_pod("web", pending, "reports why it waits"))
    assert node.pod("web")["metadata"]["uid"] == old and identity(node, "web") == before


def test_the_active_deadline_of_a_successor_counts_from_its_own_start(node, archive_of_other):
    seconds = 20  # the pod's start may take most of this time
    node.launch(specs.pod("web"))
    node.drop(specs.pod("web", specs.container(image=OTHER), hostIPC=True, activeDeadlineSeconds=seconds))
    node.wait_pod("web", pending, "waits")
    read = time.monotonic()
    world.wait(lambda: time.monotonic() > read + seconds + 0.5, "more than the deadline has passed")
    node.preload(archive_of_other)
    # The log contains the message: the pod may have exceeded its deadline when its status is read.
    world.wait(lambda: node.said().count("Started container 'default/web-node1/main'") == 2,
               lambda: node.describe_pod("web", "is replaced and runs"))


def test_a_pod_in_back_off_is_replaced_only_by_a_successor_that_could_start(node, archive_of_other):
    node.drop(specs.script_pod("web", "exit 1"))
    node.wait_waiting("web", "CrashLoopBackOff")
    old = node.pod("web")["metadata"]["uid"]
    node.drop(specs.pod("web", specs.container(image=OTHER), hostIPC=True))
    assert OTHER in pending(node.wait_pod("web", pending, "reports why it waits"))
    ran = node.status("web")["restartCount"]
    node.wait_pod("web", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] > ran, "is tried again")
    assert node.pod("web")["metadata"]["uid"] == old
    node.preload(archive_of_other)
    node.wait_pod("web", lambda pod: pod["metadata"]["uid"] != old and harness.is_running(pod), "is replaced")


def test_a_pod_that_never_started_is_replaced_immediately(node):
    node.drop(specs.pod("web", specs.container(image=OTHER)))
    node.wait_waiting("web", "ErrImagePull")
    node.drop(specs.pod("web", hostIPC=True, volumes=[{"name": "c", "configMap": {"name": "later"}}]))
    now = node.wait_pod("web", lambda pod: pod["spec"].get("hostIPC"), "is the other pod")
    assert not pending(now)
    node.wait_waiting("web", "ContainerCreating", says="later")


@pytest.mark.slow
def test_an_agent_killed_during_a_replacement_does_not_restart_the_old_pod(node, archive_of_other):
    def pod_that_ignores_sigterm(word, grace, **fields):
        made = writer(node, word, **fields.pop("spec", {}))
        made["spec"]["containers"][0].update(fields)
        made["spec"]["containers"].append(specs.container("deaf", "trap '' TERM; sleep 100000 & wait", **fields))
        made["spec"]["terminationGracePeriodSeconds"] = grace
        return made

    node.launch(pod_that_ignores_sigterm("one", grace=120))
    world.wait(lambda: world.read(f"{node.data}/log") == "one up\n", "the first has started")
    node.preload(archive_of_other, "other.tar")
    node.drop(pod_that_ignores_sigterm("two", grace=2, image=OTHER, spec={"hostIPC": True}))
    world.wait(lambda: world.read(f"{node.data}/log") == "one up\none down\n", "it got SIGTERM")
    world.wait(lambda: not node.find_init("web"), "it has ended")
    node.kill9()
    os.unlink(f"{node.state}/preload/other.tar")
    node.start()
    node.wait_pod("web", lambda pod: "deletionTimestamp" in pod["metadata"], "is still being stopped")
    world.kill_all([node.init("web", "deaf")])
    node.wait_pod("web", lambda pod: pod["spec"].get("hostIPC"), "is the successor, which waits for its image")
    node.preload(archive_of_other)
    world.wait(lambda: (world.read(f"{node.data}/log") or "").endswith("two up\n"), "the second has started")
    assert world.read(f"{node.data}/log") == "one up\none down\ntwo up\n"


def test_a_stopping_edited_container_keeps_its_old_status_and_limits(node, archive_of_other):
    node.preload(archive_of_other)
    pod = specs.pod("web", specs.container(
        script="trap '' TERM; sleep 100000 & wait", resources=limits("200m", "64Mi"),
        resizePolicy=[{"resourceName": "memory", "restartPolicy": "RestartContainer"}]), terminationGracePeriodSeconds=60)
    node.launch(pod)
    before, group = identity(node, "web"), node.container_cgroup("web")
    image_id = node.status("web")["imageID"]
    pod = edited(pod, image=OTHER, resources=limits("200m", "32Mi"))
    node.drop(pod)
    node.wait_pod("web", lambda pod: pod["spec"]["containers"][0]["image"] == OTHER, "is edited")
    status = node.status("web")
    assert (status["image"], status["imageID"]) == (specs.IMAGE, image_id)
    assert status["resources"]["limits"]["memory"] == "64Mi"
    assert limits_of(group)[1] == str(64 << 20)
    world.kill_all([before[0]])
    node.wait_restarts("web", 1)
    assert node.status("web")["image"] == OTHER
    world.wait(lambda: limits_of(node.container_cgroup("web"))[1] == str(32 << 20), "the next attempt has the new limit")
    world.wait(lambda: limits_of(node.pod_cgroup("web"))[1] == str(32 << 20), "the pod has the new limit, too")
    pod["spec"]["terminationGracePeriodSeconds"] = 1
    node.drop(pod)


def test_a_restarted_agent_does_not_restart_a_replaced_pod(node):
    def pod(word, **spec):
        made = writer(node, word, **spec)
        made["spec"]["containers"].append(specs.container("deaf", "trap '' TERM; sleep 100000 & wait"))
        return made

    node.launch(pod("one"))
    world.wait(lambda: world.read(f"{node.data}/log") == "one up\n", "the first has started")
    two = pod("two", hostIPC=True)
    two["spec"]["terminationGracePeriodSeconds"] = 1
    node.drop(two)
    world.wait(lambda: world.read(f"{node.data}/log") == "one up\none down\n", "it got SIGTERM")
    world.wait(lambda: not node.find_init("web"), "it has ended")
    node.restart()
    world.wait(lambda: "containerID" in node.status("web", "deaf"), "it is known again")
    world.kill_all([node.init("web", "deaf")])
    world.wait(lambda: (world.read(f"{node.data}/log") or "").endswith("two up\n"), "the second has started")
    assert world.read(f"{node.data}/log") == "one up\none down\ntwo up\n"


def test_an_invalid_edit_is_ignored_until_it_is_corrected(node):
    pod = two_containers()
    node.launch(pod)
    first, second = identity(node, "web", "a"), identity(node, "web", "b")
    node.write("spec: [", "web.yaml")
    world.wait(lambda: "web.yaml" in node.complaints(), "the file is named")
    node.restart()
    assert identity(node, "web", "a") == first
    node.drop(edited(pod, command=["/bin/sleep", "1000"]))
    node.wait_restarts("web", 1, "a")
    assert world.cmdline(node.init("web", "a")) == ["/bin/sleep", "1000"]
    assert identity(node, "web", "b") == second


def test_last_of_several_quick_edits_is_applied(node):
    pod = two_containers()
    node.launch(pod)
    second = identity(node, "web", "b")
    for seconds in range(1000, 1010):
        node.drop(edited(pod, command=["/bin/sleep", str(seconds)]))
    node.wait_pod("web", lambda pod: world.cmdline(node.find_init("web", "a") or 0) == ["/bin/sleep", "1009"],
                  "runs the last command")
    assert identity(node, "web", "b") == second


def test_a_new_agent_finishes_an_edit_and_restarts_nothing_else(node):
    pod = two_containers(terminationGracePeriodSeconds=1)
    uid = node.launch(pod)["metadata"]["uid"]
    second = identity(node, "web", "b")
    for seconds in range(1000, 1006):
        node.drop(edited(pod, command=["/bin/sleep", str(seconds)]))
        if seconds % 2:
            world.wait(lambda: f"sleep {seconds}" in (world.read(f"{node.state}/pods/{uid}/record") or "") or
                       f'"{seconds}"' in (world.read(f"{node.state}/pods/{uid}/record") or ""), "it is recorded")
        node.restart()
        node.wait_pod("web", lambda pod: world.cmdline(node.find_init("web", "a") or 0) ==
                      ["/bin/sleep", str(seconds)], f"runs for {seconds} s")
        assert identity(node, "web", "b") == second
        before = identity(node, "web", "a")
        node.restart()
        assert identity(node, "web", "a") == before, "the record and the file agree"
    assert node.pod("web")["metadata"]["uid"] == uid


def test_edits_while_no_agent_runs_are_applied_by_the_next_agent(node):
    pod = specs.pod("web", specs.container(resources=limits("100m", "32Mi")))
    node.launch(pod)
    before, group = identity(node, "web"), node.container_cgroup("web")
    node.kill9()
    os.rename(node.path("web.yaml"), node.path("renamed.yaml"))
    node.drop(edited(pod, resources=limits("200m", "48Mi")), "renamed.yaml")
    node.start()
    world.wait(lambda: limits_of(group) == ("20000", str(48 << 20)), lambda: f"it has the limits: {limits_of(group)}")
    assert identity(node, "web") == before
    node.kill9()
    node.write("spec: [", "renamed.yaml")
    node.start()
    assert identity(node, "web") == before, "the record names the new file"


def test_diff_shows_the_effect_of_an_edit(node):
    pod = two_containers()
    node.launch(pod)

    def diff(*documents):
        path = node.stage(specs.text(*documents))
        done = node.cli("diff", path)
        return done.returncode, done.stdout.splitlines(), done.stderr
    assert diff(pod) == (0, ["pod default/web: unchanged"], "")
    labelled = copy.deepcopy(pod)
    labelled["metadata"]["labels"] = {"a": "b"}
    assert diff(labelled) == (1, ["pod default/web: applied live: metadata.labels"], "")
    assert diff(edited(pod, image=OTHER, imagePullPolicy="Never")) == (1, [
        f"pod default/web: container a restarts: image ({specs.IMAGE} -> {OTHER})",
        "pod default/web: container a: applied live: imagePullPolicy (IfNotPresent -> Never)"], "")
    assert diff(edited(pod, resources={"requests": {"memory": "1Mi"}})) == (1, [
        "pod default/web: is replaced: status.qosClass (BestEffort -> Burstable)"], "")
    hosted = copy.deepcopy(pod)
    hosted["spec"]["hostIPC"] = True
    assert diff(hosted) == (1, ["pod default/web: is replaced: spec.hostIPC (false -> true)"], "")
    assert diff(specs.pod("new"))[:2] == (1, ["pod default/new: starts"])
    assert node.status("web", "a")["restartCount"] == 0
    code, lines, said = diff({"kind": "Pod"})
    assert code == 2 and not lines and "apiVersion" in said
    assert node.cli("diff", "/nowhere").returncode == 2
