# SPDX-License-Identifier: Apache-2.0
"""The requirements of Kubernetes' own tests for a single node: test/e2e_node. README.md lists the corresponding
tests."""

import json
import os
import re
import time

import pytest
import specs
import world
from harness import container_status
from node import AGNHOST, condition, is_ready
from trial import agnhost, program, state, status_of, terminated
from world import wait

# The end of pods


def test_pending_pod_terminates_when_it_is_deleted(trial):
    """The pod waits for a finalizer, so that its last status can be observed."""
    trial.bind({**specs.container(), "image": "docker.io/library/absent:1", "imagePullPolicy": "Never"},
               metadata={"finalizers": ["example.com/test"]})
    trial.wait_waiting("ErrImageNeverPull")
    trial.delete()
    check_last_phase(trial, "Failed")


def check_last_phase(trial, phase):
    try:
        return trial.wait(lambda pod: pod["status"]["phase"] == phase, f"is {phase}")
    finally:
        trial.patch("pods", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
@pytest.mark.parametrize("code, phase", [(0, "Succeeded"), (1, "Failed")])
def test_phase_of_a_deleted_pod_follows_from_its_exit_codes(trial, policy, code, phase):
    trial.start(specs.container(script=f"trap 'exit {code}' TERM; sleep 100000 & wait"), restartPolicy=policy,
                metadata={"finalizers": ["example.com/test"]}, terminationGracePeriodSeconds=30)
    trial.node.wait_trap(trial.name)
    trial.delete()
    pod = check_last_phase(trial, phase)
    assert terminated(pod)["exitCode"] == code and terminated(pod)["reason"] == ("Error" if code else "Completed")


def test_killed_container_has_exit_code_137(trial):
    trial.start(specs.container(script="trap '' TERM; while :; do sleep 1; done"), metadata={"finalizers": ["example.com/test"]},
                terminationGracePeriodSeconds=1)
    trial.delete()
    ended = terminated(check_last_phase(trial, "Failed"))
    assert ended["exitCode"] == 137 and ended["reason"] == "Error"


@pytest.mark.parametrize("code, phase", [(0, "Succeeded"), (1, "Failed")])
def test_terminated_pod_keeps_its_address_in_its_status(trial, code, phase):
    status = trial.end(specs.container(script=f"exit {code}"), phase=phase)["status"]
    assert status["podIP"] and status["podIPs"] == [{"ip": status["podIP"]}]


# Log files

def test_log_is_at_its_path_and_linked(trial):
    pod = trial.start(specs.container(script=f"echo log from the container; {specs.IDLE}"))
    trial.wait_output("log from the container")
    container = status_of(pod)["containerID"].removeprefix("mainstay://")
    link = f"{trial.node.log}/containers/{trial.name}_{trial.node.namespace}_main-{container}.log"
    path = f"{trial.node.log}/pods/{trial.node.namespace}_{trial.name}_{pod['metadata']['uid']}/main/0.log"
    assert os.path.realpath(link) == path and "log from the container" in world.read(path)


def test_log_rotation_keeps_a_limited_number_of_files(make_node):
    node = make_node(config={"containerLogMaxSize": "40Ki", "containerLogMaxFiles": 3})
    node.bind("web", specs.container(script="while :; do echo hello hello hello hello hello hello; usleep 500; done"))
    uid = node.wait_api_running("web")["metadata"]["uid"]
    directory = f"{node.log}/pods/{node.namespace}_web_{uid}/main"
    most = []

    def look():
        most.append(len([name for name in os.listdir(directory) if not name.endswith(".tmp")]))
        return most[-1] >= 3 and len(most) > 20

    wait(look, lambda: f"three files: {os.listdir(directory)}")
    assert max(most) <= 3 + 1, most


# Out of memory

GREEDY = "dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"


def memory(limit):
    return {"limits": {"memory": limit}, "requests": {"memory": limit}}


def test_container_that_uses_too_much_memory_is_reported_as_oom_killed(trial):
    pod = trial.end(program(*GREEDY, resources=memory("20Mi")), phase="Failed")
    assert terminated(pod)["reason"] == "OOMKilled" and terminated(pod)["exitCode"] == 137


def test_init_container_that_uses_too_much_memory_is_reported_as_oom_killed(trial):
    pod = trial.end(specs.container(), phase="Failed", initContainers=[
        {**program(*GREEDY, resources=memory("20Mi")), "name": "init"}])
    assert terminated(pod, "init")["reason"] == "OOMKilled"


@pytest.mark.parametrize("resources, least, most", [
    ({}, 1000, 1000), ({"requests": {"cpu": "10m", "memory": "20Mi"}}, 3, 999),
    ({"limits": {"cpu": "100m", "memory": "50Mi"}}, -998, -997)], ids=["BestEffort", "Burstable", "Guaranteed"])
def test_processes_have_the_oom_score_of_their_qos_class(trial, resources, least, most):
    trial.start(specs.container(resources=resources))
    score = int(world.read(f"/proc/{trial.node.init(trial.name)}/oom_score_adj"))
    own = int(world.read("/proc/self/oom_score_adj"))
    # Without the capability a process cannot be protected more than the agent.
    assert least <= score <= most or score == own > most


# Control groups

@pytest.mark.parametrize("resources, quality", [({}, "BestEffort"), ({"requests": {"cpu": "10m"}}, "Burstable"),
                                                ({"limits": {"cpu": "100m", "memory": "50Mi"}}, "Guaranteed")])
def test_pod_cgroup_is_below_the_cgroup_of_its_qos_class(trial, resources, quality):
    pod = trial.start(specs.container(resources=resources))
    assert pod["status"]["qosClass"] == quality and trial.node.init(trial.name)
    path = trial.node.pod_cgroup(trial.name)
    trial.delete()
    trial.wait_gone()
    wait(lambda: not [one for one in world.cgroups_below(trial.node.cgroup_root) if one.endswith(os.path.basename(path))],
         "the control group is gone")


def test_number_of_processes_of_a_pod_is_limited(make_node):
    node = make_node(config={"podPidsLimit": 64})
    node.bind("web")
    node.wait_api_running("web")
    assert world.cgroup_value(node.pod_cgroup("web"), "pids", "pids.max").strip() == "64"


# Namespaces

def test_containers_have_separate_pid_namespaces_by_default(trial):
    trial.start(specs.container(), specs.container("other"))
    assert trial.exec("cat", "/proc/1/comm") == trial.exec("cat", "/proc/1/comm", container="other") == "sh\n"
    assert len(trial.exec("ps").splitlines()) <= 5


def test_containers_share_a_pid_namespace_on_request(trial):
    trial.start(specs.container(), {**program("sleep", "54321"), "name": "other"}, shareProcessNamespace=True)
    assert "sleep 54321" in trial.exec("ps")


@pytest.mark.parametrize("host", [False, True])
def test_host_processes_are_visible_on_request(trial, host):
    trial.start(hostPID=host)
    own = os.readlink("/proc/self/ns/pid")
    assert (trial.exec("readlink", "/proc/self/ns/pid").strip() == own) == host


@pytest.mark.parametrize("host", [False, True])
def test_host_shared_memory_is_visible_on_request(trial, host):
    trial.start(hostIPC=host)
    own = os.readlink("/proc/self/ns/ipc")
    assert (trial.exec("readlink", "/proc/self/ns/ipc").strip() == own) == host


@pytest.mark.parametrize("host", [False, True])
def test_host_ports_are_visible_on_request(trial, host):
    trial.start(hostNetwork=host)
    own = os.readlink(f"/proc/{trial.node.holder.pid}/ns/net")
    assert (trial.exec("readlink", "/proc/self/ns/net").strip() == own) == host


MASKED = ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug"]


def test_paths_in_proc_are_masked_by_default(trial):
    trial.start()
    for path in MASKED:
        if os.path.exists(path):
            assert trial.exec("sh", "-c", f"head -c 1 {path} | wc -c") == "0\n", path
    mounts = trial.exec("cat", "/proc/mounts")
    assert re.search(r" /proc/sys \S+ ro", mounts)


def test_proc_is_unmasked_only_in_a_user_namespace(trial):
    assert "hostUsers" in trial.refused(specs.container(securityContext={"procMount": "Unmasked"}))
    trial.start(specs.container(securityContext={"procMount": "Unmasked"}), hostUsers=False)
    assert not re.search(r" /proc/sys \S+ ro", trial.exec("cat", "/proc/mounts"))


@pytest.mark.parametrize("mode, nested", [("Disabled", "rw"), ("IfPossible", "ro"), ("Enabled", "ro")])
def test_mounts_below_a_volume_are_read_only_on_request(trial, mode, nested):
    """/dev/shm is a mount below the volume."""
    trial.start(specs.container(volumeMounts=[specs.mount("v", "/v", readOnly=True, recursiveReadOnly=mode)]),
                volumes=[specs.host_path("v", "/dev")])
    pod = trial.read()
    line = next(line for line in trial.exec("cat", "/proc/mounts").splitlines() if line.split()[1] == "/v/shm")
    assert line.split()[3].split(",")[0] == nested
    shown = next(one for one in status_of(pod)["volumeMounts"] if one["mountPath"] == "/v")
    assert shown["recursiveReadOnly"] == ("Disabled" if mode == "Disabled" else "Enabled")


@pytest.mark.parametrize("fields", [{"recursiveReadOnly": "Enabled"}, {"readOnly": True, "recursiveReadOnly": "Enabled",
                                                                       "mountPropagation": "HostToContainer"}], ids=str)
def test_invalid_recursive_mount_is_refused(trial, fields):
    assert "recursiveReadOnly" in trial.refused(specs.container(volumeMounts=[specs.mount("v", "/v", **fields)]),
                                                volumes=[specs.host_path("v", "/dev")])


def test_seccomp_default_follows_the_configuration(make_node):
    node = make_node(config={"seccompDefault": True})
    node.bind("one", program("grep", "Seccomp:", "/proc/self/status"), restartPolicy="Never")
    node.bind("two", program("grep", "Seccomp:", "/proc/self/status", securityContext={"seccompProfile": {"type": "Unconfined"}}),
              restartPolicy="Never")
    for name in ("one", "two"):
        node.wait_api_phase(name, "Succeeded")
    assert node.output("one") == ["Seccomp:\t2"] and node.output("two") == ["Seccomp:\t0"]


def test_user_namespace_has_as_many_ids_as_in_kubernetes(trial):
    """The default of idsPerPod is that of Kubernetes."""
    trial.start(hostUsers=False)
    assert trial.exec("cat", "/proc/self/uid_map").split()[2] == "65536"


@pytest.mark.parametrize("profile", [{"type": "Localhost", "localhostProfile": "absent-profile"}])
def test_apparmor_profile_that_is_not_loaded_is_refused(trial, profile):
    """RuntimeDefault has no effect if its profile is not loaded (mainstay-differences(7))."""
    trial.bind(specs.container(securityContext={"appArmorProfile": profile}))
    pod = trial.wait(lambda pod: pod["status"].get("phase") == "Failed" or state(pod).get("waiting", {}).get("reason") in (
        "CreateContainerError", "CreateContainerConfigError"), "does not run")
    assert "apparmor" in (pod["status"].get("reason", "") + pod["status"].get("message", "") + json.dumps(state(pod))).lower()


# Order of containers

def lines(path):
    return (world.read(path) or "").split()


def step(name, data, script="", **more):
    """A container that writes when it starts and when it ends."""
    return specs.container(name, f"echo {name}-start >> /data/order; {script} echo {name}-end >> /data/order",
                           volumeMounts=[specs.mount(data, "/data")], **more)


def idle(name, data, code=0, **more):
    """A container that runs until SIGTERM, and then writes."""
    script = (f"trap 'echo {name}-end >> /data/order; exit {code}' TERM; echo {name}-start >> /data/order; sleep 100000 & wait")
    return specs.container(name, script, volumeMounts=[specs.mount(data, "/data")], **more)


@pytest.fixture(name="order")
def fixture_order(trial):
    """The file into which containers write, and the volume with it."""
    path = f"{trial.node.data}/{trial.name}"
    os.mkdir(path)
    trial.volumes = [specs.host_path("data", path)]
    return f"{path}/order"


def test_init_containers_and_sidecars_run_in_order(trial, order):
    started = {"exec": {"command": ["grep", "-q", "side1-start", "/data/order"]}}
    started2 = {"exec": {"command": ["grep", "-q", "side2-start", "/data/order"]}}
    trial.end(step("main", "data"), volumes=trial.volumes, terminationGracePeriodSeconds=30, initContainers=[
        step("init1", "data"), idle("side1", "data", restartPolicy="Always", startupProbe={**started, "periodSeconds": 1}),
        step("init2", "data"), idle("side2", "data", restartPolicy="Always", startupProbe={**started2, "periodSeconds": 1}),
        step("init3", "data")])
    wait(lambda: len(lines(order)) == 12, lambda: f"all have ended: {lines(order)}")
    assert lines(order) == ["init1-start", "init1-end", "side1-start", "init2-start", "init2-end", "side2-start", "init3-start",
                            "init3-end", "main-start", "main-end", "side2-end", "side1-end"]


def test_post_start_hook_delays_the_next_container(trial, order):
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "echo hook >> /data/order"]}}}
    # The kubelet starts containers one after the other.
    trial.end(step("main", "data", lifecycle=hook, script="until grep -q hook /data/order; do sleep 0.1; done;"),
              step("second", "data"), volumes=trial.volumes)
    assert lines(order).index("hook") < lines(order).index("second-start")


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_init_container_does_not_run_again_with_its_container(trial, order, policy):
    trial.bind(step("main", "data", script="exit 1;"), initContainers=[step("init", "data")], volumes=trial.volumes,
               restartPolicy=policy)
    trial.wait_restarts(2)
    assert lines(order).count("init-start") == 1 and lines(order).count("main-start") >= 2


@pytest.mark.parametrize("code", [0, 1])
def test_sidecar_that_exits_is_restarted_and_its_exit_code_is_ignored(trial, order, code):
    side = specs.container("side", f"echo side-start >> /data/order; sleep 0.2; exit {code}", restartPolicy="Always",
                           volumeMounts=[specs.mount("data", "/data")])
    pod = trial.end(specs.container(script="until [ $(grep -c side-start /data/order) -ge 2 ]; do sleep 0.1; done",
                                    volumeMounts=[specs.mount("data", "/data")]),
                    initContainers=[side], volumes=trial.volumes)
    assert status_of(pod, "side")["restartCount"] >= 1 and pod["status"]["phase"] == "Succeeded"


def test_sidecars_stop_in_reverse_order(trial, order):
    trial.start(idle("main", "data"), initContainers=[idle(name, "data", restartPolicy="Always") for name in ("side1", "side2", "side3")],
                volumes=trial.volumes, terminationGracePeriodSeconds=60)
    wait(lambda: len(lines(order)) == 4, "all have started")
    trial.delete()
    trial.wait_gone()
    assert lines(order)[4:] == ["main-end", "side3-end", "side2-end", "side1-end"]


def test_pod_is_removed_without_delay_when_it_is_deleted_during_its_start(trial):
    trial.bind(specs.container(), initContainers=[specs.container("init")], terminationGracePeriodSeconds=600)
    trial.wait(lambda pod: "running" in state(pod, "init"), "the init container runs")
    trial.node.wait_pod(trial.name, lambda pod: world.handles(trial.node.init(trial.name, "init"), 15), "listens")
    trial.delete()
    trial.wait_gone()


def test_pod_fails_if_a_container_exceeds_the_grace_period(trial):
    trial.start(specs.container(script="trap '' TERM; while :; do sleep 1; done"), metadata={"finalizers": ["example.com/test"]},
                terminationGracePeriodSeconds=2)
    trial.delete()
    check_last_phase(trial, "Failed")


def test_pod_succeeds_though_its_sidecar_exceeds_the_grace_period(trial):
    pod = trial.end(specs.container(script="true"), terminationGracePeriodSeconds=2, initContainers=[
        specs.container("side", "trap '' TERM; while :; do sleep 1; done", restartPolicy="Always")])
    assert terminated(pod, "side")["exitCode"] == 137 and pod["status"]["phase"] == "Succeeded"


# Restarts of the agent

@pytest.mark.parametrize("probes", [{}, {"startupProbe": {"exec": {"command": ["true"]}}},
                                    {"readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1}}], ids=str)
def test_status_does_not_change_when_the_agent_restarts(node, probes):
    node.bind("web", specs.container(**probes), initContainers=[
        specs.container("init", "true"), specs.container("side", restartPolicy="Always", **probes)])
    before = node.wait_api_running("web")
    node.restart()
    node.bind("after")
    node.wait_api_running("after")
    after = node.read("pods", "web")
    assert after["status"] == before["status"]


def test_terminated_pods_use_no_resources_after_a_restart_of_the_agent(node):
    node.bind("done", specs.container(script="true", resources={"requests": {"cpu": "1500m"}}), restartPolicy="Never")
    node.wait_api_phase("done", "Succeeded")
    node.restart()
    node.bind("web", specs.container(resources={"requests": {"cpu": "1500m"}}))
    node.wait_api_running("web")


def test_pod_is_removed_after_it_was_deleted_while_no_agent_ran(node):
    node.bind("done", specs.container(script="true"), restartPolicy="Never")
    node.bind("web")
    node.wait_api_phase("done", "Succeeded")
    node.wait_api_running("web")
    pid = node.init("web")
    node.kill9()
    node.client.delete("pods", node.namespace, "done")
    node.client.delete("pods", node.namespace, "web", grace=0)
    node.start()
    node.wait_api_gone("done")
    wait(lambda: not world.is_alive(pid), "the process of a pod that is unknown has ended")


def test_rejected_pod_is_deleted_after_it_was_deleted_while_no_agent_ran(node):
    node.kill9()
    node.bind("web", nodeSelector={"no-such": "label"})
    node.client.delete("pods", node.namespace, "web")
    node.start()
    node.wait_api_gone("web")


def test_image_is_updated_while_no_agent_runs(node):
    node.bind("web")
    node.wait_api_running("web")
    node.kill9()
    node.client.patch("pods", node.namespace, "web", {"spec": {"containers": [{"name": "main", "image": specs.IMAGE + "0",
                                                                              "imagePullPolicy": None}]}})
    node.start()
    node.wait_event("web", "Killing")


# Static pods

def mirror(node, name):
    return f"{name}-{node.node_name}"


def wait_mirror(node, name="web", other_than=None):
    return node.wait_api(mirror(node, name), lambda pod: is_ready(pod) and pod["metadata"]["uid"] != other_than, "is ready")


def test_mirror_pod_is_created_again_when_it_is_deleted(node):
    node.drop(node.static("web"))
    for grace in (30, 0):
        uid = wait_mirror(node)["metadata"]["uid"]
        pid = node.init("web")
        node.client.delete("pods", node.namespace, mirror(node, "web"), grace=grace)
        wait_mirror(node, other_than=uid)
        assert node.init("web") == pid


def test_mirror_pod_follows_its_file(node):
    node.drop(node.static("web"))
    uid = wait_mirror(node)["metadata"]["uid"]
    node.drop(node.static("web", specs.container(env=[{"name": "NEW", "value": "1"}])))
    pod = wait_mirror(node, other_than=uid)
    assert pod["spec"]["containers"][0]["env"] == [{"name": "NEW", "value": "1"}]


def test_static_pod_that_is_removed_and_put_back_runs_again(node):
    node.drop(node.static("web"))
    wait_mirror(node)
    node.remove("web")
    node.wait_api_gone(mirror(node, "web"))
    node.drop(node.static("web"))
    wait_mirror(node)


GRACEFUL = "trap 'touch /data/term; until test -e /data/end; do sleep 0.1; done; exit 0' TERM; touch /data/up; sleep 100000 & wait"


def graceful(node, **fields):
    return node.static("web", specs.container(script=GRACEFUL, volumeMounts=[specs.mount("data", "/data")], **fields),
                       volumes=[specs.host_path("data", node.data)], terminationGracePeriodSeconds=60)


def test_mirror_pod_stays_as_long_as_its_pod_terminates(node):
    node.drop(graceful(node))
    wait_mirror(node)
    wait(lambda: os.path.exists(f"{node.data}/up"), "the trap is set")
    node.remove("web")
    wait(lambda: os.path.exists(f"{node.data}/term"), "it terminates")
    pod = node.read("pods", mirror(node, "web"))
    assert pod and "running" in container_status(pod)["state"]
    world.run("touch", f"{node.data}/end")
    node.wait_api_gone(mirror(node, "web"))


def test_static_pod_reaches_its_last_version_after_changes_during_termination(node):
    node.drop(graceful(node))
    wait_mirror(node)
    wait(lambda: os.path.exists(f"{node.data}/up"), "the trap is set")
    for number in range(3):
        node.drop(node.static("web", specs.container(env=[{"name": "NEW", "value": str(number)}]), hostPID=True))
    world.run("touch", f"{node.data}/end")
    node.wait_api(mirror(node, "web"), lambda pod: is_ready(pod) and
                  pod["spec"]["containers"][0].get("env") == [{"name": "NEW", "value": "2"}], "is the last version")


@pytest.mark.parametrize("extra", [specs.container("init", "true"), specs.container("side", restartPolicy="Always")],
                         ids=["init container", "sidecar"])
def test_static_pod_loses_a_container_while_no_agent_runs(node, extra):
    node.drop(node.static("web", initContainers=[extra]))
    wait_mirror(node)
    node.kill9()
    node.drop(node.static("web"))
    node.start()
    pod = node.wait_api(mirror(node, "web"), lambda pod: is_ready(pod) and not pod["spec"].get("initContainers"), "has lost it")
    assert not pod["status"].get("initContainerStatuses")


def test_static_pod_terminates_after_its_file_was_removed_while_no_agent_ran(node):
    node.drop(node.static("web"))
    wait_mirror(node)
    pid = node.init("web")
    node.kill9()
    node.client.delete("pods", node.namespace, mirror(node, "web"), grace=0)
    node.remove("web")
    node.start()
    wait(lambda: not world.is_alive(pid), "the process has ended")
    node.wait_api_gone(mirror(node, "web"))


# Metrics and the summary

def ask(node, path):
    """Requests a response that mainstay-api forwards (system/node_api)."""
    status, body = node.get(path)
    assert status == 200, body
    return body


NODE_METRICS = ["node_cpu_usage_seconds_total", "node_memory_working_set_bytes"]
METRICS = ["container_cpu_usage_seconds_total", "container_memory_working_set_bytes", "container_start_time_seconds",
           "pod_cpu_usage_seconds_total", "pod_memory_working_set_bytes"]


def test_resource_metrics_have_the_names_of_the_kubelet(node):
    node.bind("web", specs.container(resources={"limits": {"memory": "50Mi"}}))
    node.wait_api_running("web")
    text = wait(lambda: ask(node, "/metrics/resource"), "metrics")
    for name in NODE_METRICS:
        assert re.search(rf"^{name} [\d.e+-]+", text, re.M), name
    for name in METRICS:
        assert re.search(rf'^{name}{{.*namespace="{node.namespace}".*pod="web".*}} [\d.e+-]+', text, re.M), name
    assert re.search(r"^resource_scrape_error 0", text, re.M)


MIB = 1 << 20

# The limits in the spec, for a container with a limit of 80 MB that does little; None: the value must exist.
CADVISOR = {
    "container_blkio_device_usage_total": (0, 10000000), "container_cpu_system_seconds_total": (0, 100),
    "container_cpu_usage_seconds_total": (0, 100), "container_cpu_user_seconds_total": (0, 100),
    "container_file_descriptors": (0, 100), "container_fs_reads_bytes_total": (0, 10000000),
    "container_fs_reads_total": (0, 1000), "container_fs_usage_bytes": (0, 1000000),
    "container_fs_writes_bytes_total": (0, 1000000), "container_fs_writes_total": (0, 200), "container_last_seen": None,
    "container_memory_cache": (0, 10 * MIB), "container_memory_failcnt": (0, 0), "container_memory_failures_total": (0, 1000000),
    "container_memory_mapped_file": (0, 10000000), "container_memory_max_usage_bytes": (0, 80 * MIB),
    "container_memory_rss": (10 * 1024, 80 * MIB), "container_memory_swap": (0, 0),
    "container_memory_usage_bytes": (10 * 1024, 80 * MIB), "container_memory_working_set_bytes": (10 * 1024, 80 * MIB),
    "container_oom_events_total": (0, 0), "container_processes": (1, 10), "container_sockets": (0, 10),
    "container_spec_cpu_period": (100000, 100000), "container_spec_cpu_shares": (2, 2),
    "container_spec_memory_limit_bytes": (79953920, 79998976), "container_spec_memory_reservation_limit_bytes": (0, 0),
    "container_spec_memory_swap_limit_bytes": (0, 80 * MIB), "container_start_time_seconds": None, "container_threads": (1, 10),
    "container_threads_max": (0, 100000), "container_ulimits_soft": (-1, 1073741816),
}
CADVISOR_OF_A_POD = [f"container_network_{way}_{kind}_total" for way in ("receive", "transmit")
                     for kind in ("bytes", "errors", "packets", "packets_dropped")]


def cadvisor_values(text, name, container):
    """The samples of a metric for a container of the pod "web", or for the pod itself."""
    found = re.findall(rf'^{name}{{container="{container}",[^}}]*pod="web"[^}}]*}} (\S+)( [0-9]+)?$', text, re.M)
    return [float(value) for value, _ in found]


def test_container_metrics_have_the_names_of_cadvisor(node):
    node.bind("web", specs.container(resources={"limits": {"memory": "80M"}},
                                     script="trap 'exit 0' TERM; echo bytes > /file; " + specs.IDLE))
    node.wait_api_running("web")

    def missing():
        text = ask(node, "/metrics/cadvisor")
        return [name for name in CADVISOR if not cadvisor_values(text, name, "main")]
    wait(lambda: not missing(), lambda: f"what shims count and what is measured is there: {missing()}")
    text = ask(node, "/metrics/cadvisor")
    wrong = {name: (cadvisor_values(text, name, "main"), bounds) for name, bounds in CADVISOR.items() if bounds
             and not all(bounds[0] <= value <= bounds[1] for value in cadvisor_values(text, name, "main"))}
    assert not wrong, wrong
    for name in ("container_last_seen", "container_start_time_seconds"):
        assert all(abs(value - time.time()) < 600 for value in cadvisor_values(text, name, "main")), name
    absent = [name for name in CADVISOR_OF_A_POD if not cadvisor_values(text, name, "")]
    assert not absent, absent


CPU_STATS = {"time", "usageNanoCores", "usageCoreNanoSeconds"}
MEMORY_STATS = {"time", "usageBytes", "workingSetBytes", "rssBytes", "pageFaults", "majorPageFaults"}
LIMITED_MEMORY_STATS = MEMORY_STATS | {"availableBytes"}
FILESYSTEM_STATS = {"time", "availableBytes", "capacityBytes", "usedBytes", "inodesFree", "inodes", "inodesUsed"}
INTERFACE_STATS = {"name", "rxBytes", "rxErrors", "txBytes", "txErrors"}


def expect_members(part, members):
    """Asserts that these are the only members, except for the pressure, which depends on the kernel."""
    assert set(part) - {"psi"} == members, part


def test_summary_has_the_usage_of_node_and_pods(node):
    world.enter_cgroup(f"{node.cgroup_root}/agent", node.agent.pid)
    node.bind("web", specs.container(resources={"limits": {"memory": "80M"}}, volumeMounts=[specs.mount("v", "/v")]),
              volumes=[{"name": "v", "emptyDir": {}}])
    node.wait_api_running("web")

    def find():
        summary = json.loads(ask(node, "/stats/summary"))
        pod = next((one for one in summary["pods"] if one["podRef"]["name"] == "web"), None)
        return (summary["node"], pod) if pod and "usedBytes" in pod.get("ephemeral-storage", {}) and pod["containers"] \
            and "usedBytes" in pod["containers"][0].get("rootfs", {}) else None

    host, pod = wait(find, lambda: f"the pod: {ask(node, '/stats/summary')[:3000]}")
    expect_node(node, host)
    expect_pod(pod)


def expect_node(node, host):
    total = memory_total()
    assert host["nodeName"] == node.node_name and host["startTime"]
    expect_members(host["cpu"], CPU_STATS)
    expect_members(host["memory"], LIMITED_MEMORY_STATS)
    assert 0 < host["memory"]["availableBytes"] < total
    assert host["network"]["time"] and host["network"]["name"] in ("", "eth0") and host["network"]["interfaces"]
    for part in (host["fs"], host["runtime"]["imageFs"], host["runtime"]["containerFs"]):
        expect_members(part, FILESYSTEM_STATS)
    assert set(host["rlimit"]) == {"time", "maxpid", "curproc"}
    assert host["swap"]["swapUsageBytes"] >= 0
    system = {container["name"]: container for container in host["systemContainers"]}
    assert set(system) == {"kubelet", "runtime", "pods"}
    for name, container in system.items():
        assert container["startTime"] and not {"rootfs", "logs"} & set(container)
        expect_members(container["cpu"], CPU_STATS)
        assert container["memory"]["workingSetBytes"] > 0
        if name == "pods":
            expect_members(container["memory"], LIMITED_MEMORY_STATS)
            assert 0 < container["memory"]["availableBytes"] < total
        else:
            expect_members(container["memory"], MEMORY_STATS)


def expect_pod(pod):
    [container] = pod["containers"]
    assert container["name"] == "main" and container["startTime"] and pod["startTime"]
    for part in (pod, container):
        expect_members(part["cpu"], CPU_STATS)
        assert part["cpu"]["usageCoreNanoSeconds"] > 0
        expect_members(part["memory"], LIMITED_MEMORY_STATS)
        assert 0 < part["memory"]["availableBytes"] <= 80 * 1000**2
        assert 0 < part["memory"]["workingSetBytes"] <= part["memory"]["usageBytes"]
        assert part["swap"]["swapUsageBytes"] == 0
    for part in (container["rootfs"], container["logs"], pod["ephemeral-storage"]):
        expect_members(part, FILESYSTEM_STATS)
        assert part["inodesUsed"] > 0
    [volume] = [one for one in pod["volume"] if one["name"] == "v"]
    expect_members(volume, FILESYSTEM_STATS | {"name"})
    assert set(pod["network"]) == INTERFACE_STATS | {"time", "interfaces"} and pod["network"]["name"] == "eth0"
    assert pod["process_stats"]["process_count"] >= 1


def test_configz_shows_the_configuration_with_its_kind(node):
    shown = json.loads(ask(node, "/configz"))["kubeletconfig"]
    assert shown["apiVersion"] == "kubelet.config.k8s.io/v1beta1" and shown["kind"] == "KubeletConfiguration"


# Conditions

@pytest.mark.parametrize("init", [False, True])
def test_conditions_of_a_pod_become_true_in_their_order(trial, init):
    more = {"initContainers": [specs.container("init", "true")]} if init else {}
    pod = trial.start(**more)
    names = ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"]
    times = [condition(pod, name)["lastTransitionTime"] for name in names]
    assert [condition(pod, name)["status"] for name in names] == ["True"] * len(names)
    assert (times[1:] if init else times[3:]) == sorted(times[1:] if init else times[3:]), dict(zip(names, times))


# Eviction

EAT = "head -c {} /dev/zero > /m/file; echo ate; " + specs.IDLE


def memory_total():
    return int(world.read("/proc/meminfo").split()[1]) * 1024


def eater(mib, **resources):
    """A container that fills a volume in memory."""
    return specs.container(script=EAT.format(mib * MIB), volumeMounts=[specs.mount("m", "/m")],
                           resources={"requests": {"memory": resources.get("request", "1Mi")}})


MEMORY = [{"name": "m", "emptyDir": {"medium": "Memory"}}]


@pytest.fixture(name="low_class")
def fixture_low_class(plane):
    """A class whose pods are evicted first."""
    plane.client.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "evicted-first"},
                         "value": -1000})
    wait(lambda: plane.client.get("priorityclasses", None, "evicted-first"), "the class")
    yield "evicted-first"
    plane.client.delete("priorityclasses", None, "evicted-first")


def test_pods_are_evicted_by_the_priority_that_the_cluster_assigns(make_node, low_class):
    """All pods together may use up to 120 MiB."""
    node = make_node(config={"evictionHard": {"allocatableMemory.available": str(memory_total() - 120 * MIB)},
                             "evictionPressureTransitionPeriod": "4s"})
    node.bind("high", eater(50), volumes=MEMORY)
    node.bind("critical", priorityClassName="system-node-critical")
    for name in ("high", "critical"):
        node.wait_api_running(name)
    wait(lambda: node.output("high") == ["ate"], "it has its memory")
    node.bind("low", eater(100), volumes=MEMORY, priorityClassName=low_class)
    low = node.wait_api_phase("low", "Failed")
    assert low["status"]["reason"] == "Evicted" and "memory" in low["status"]["message"]
    assert condition(low, "DisruptionTarget")["reason"] == "TerminationByKubelet"
    assert node.wait_event("low", "Evicted")["type"] == "Warning"
    assert is_ready(node.read("pods", "high")) and is_ready(node.read("pods", "critical"))
    wait(lambda: node.condition("MemoryPressure")["status"] == "False", "the pressure is gone")


def test_critical_pod_that_does_not_fit_preempts_others(make_node):
    """The node reports its processors; the pods are bound, because the scheduler would not bind the critical one."""
    node = make_node()
    half = f"{os.cpu_count() * 500}m"
    guaranteed = {"cpu": half, "memory": "16Mi"}
    node.bind("guaranteed", specs.container(resources={"requests": guaranteed, "limits": guaranteed}))
    node.bind("burstable", specs.container(resources={"requests": {"cpu": "300m"}}))
    node.bind("best-effort")
    for name in ("guaranteed", "burstable", "best-effort"):
        node.wait_api_running(name)
    node.bind("critical", specs.container(resources={"requests": {"cpu": half}}), priorityClassName="system-node-critical")
    preempted = node.wait_api_phase("burstable", "Failed")
    assert preempted["status"]["reason"] == "Preempting"
    assert condition(preempted, "DisruptionTarget")["reason"] == "TerminationByKubelet"
    assert node.wait_event("burstable", "Preempting")["message"] == "Preempted in order to admit critical pod"
    node.wait_api_running("critical")
    assert is_ready(node.read("pods", "guaranteed")) and is_ready(node.read("pods", "best-effort"))
    node.client.delete("pods", node.namespace, "critical")
    node.wait_api_gone("critical")


# Images

def test_unused_image_is_removed_after_its_maximum_age(make_node, shared):
    """The image in use stays. It could not be imported again, because its archive is gone."""
    node = make_node(shared["agnhost"], config={"imageMinimumGCAge": "1s", "imageMaximumGCAge": "3s"})
    node.bind("used")
    node.bind("unused", agnhost("pause"))
    for name in ("used", "unused"):
        node.wait_api_running(name)
    for archive in os.listdir(f"{node.state}/preload"):
        os.unlink(f"{node.state}/preload/{archive}")
    node.client.delete("pods", node.namespace, "unused")
    node.wait_api_gone("unused")

    def images():
        listed = json.loads(node.get("/images")[1])["images"]
        return {name for image in listed if "usedAt" in image for name in image["names"]}

    wait(lambda: AGNHOST not in images(), lambda: f"it is removed: {images()}\n{node.said()[-3000:]}")
    assert specs.IMAGE in images() and is_ready(node.read("pods", "used"))
