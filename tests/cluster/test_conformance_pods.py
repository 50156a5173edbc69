# SPDX-License-Identifier: Apache-2.0
"""The requirements of Kubernetes' own tests for pods: test/e2e/common/node, except for probes, hooks and values.
README.md lists the corresponding tests."""

import re

import pytest
import specs
import world
from node import condition, is_ready
from trial import agnhost, program, state, status_of, terminated, value, variable
from world import wait

# Messages of a container that ends


@pytest.mark.parametrize("policy, restarts, phase", [("Always", 2, "Running"), ("OnFailure", 1, "Running"), ("Never", 0, "Failed")])
def test_container_that_exits_has_the_expected_status(trial, policy, restarts, phase):
    """Like 'should run with the expected status': the container fails once, with Always twice; a restarted one then
    keeps running."""
    script = {"Always": "f=/v/count; n=$(cat $f 2>&-); echo x$n > $f; [ \"$n\" = xx ] && exec sleep 100000; exit 1",
              "OnFailure": "f=/v/count; [ -e $f ] && exec sleep 100000; touch $f; exit 1", "Never": "exit 1"}[policy]
    trial.bind(specs.container(script=script, volumeMounts=[specs.mount("v", "/v")]), restartPolicy=policy,
               volumes=[{"name": "v", "emptyDir": {}}])
    ready = "False" if policy == "Never" else "True"
    trial.wait(lambda pod: pod["status"].get("phase") == phase and status_of(pod).get("restartCount") == restarts and
               (policy == "Never") == bool(terminated(pod)) and condition(pod, "Ready")["status"] == ready,
               f"is {phase} after {restarts} restarts")


MESSAGES = {
    "path": ({"terminationMessagePath": "/dev/termination-custom-log"}, "printf DONE > /dev/termination-custom-log", {}, "DONE"),
    "path of a user": ({"terminationMessagePath": "/dev/custom", "securityContext": {"runAsUser": 1000}},
                       "printf DONE > /dev/custom", {}, "DONE"),
    "log of one that fails": ({"terminationMessagePolicy": "FallbackToLogsOnError"}, "echo DONE; exit 1", {"phase": "Failed"},
                              "DONE\n"),
    "log of one that succeeds": ({"terminationMessagePolicy": "FallbackToLogsOnError"}, "echo DONE", {}, ""),
    "file of one that succeeds": ({"terminationMessagePolicy": "FallbackToLogsOnError"},
                                  "printf OK > /dev/termination-log; echo DONE", {}, "OK"),
}


@pytest.mark.parametrize("what", MESSAGES)
def test_termination_message_is_reported_when_a_container_ends(trial, what):
    fields, script, options, message = MESSAGES[what]
    ended = terminated(trial.end(specs.container(script=script, **fields), **options))
    assert ended.get("message", "") == message and ended["reason"] == ("Error" if options else "Completed")


def test_command_prints_to_the_log(trial):
    trial.expect(["Hello World"], program("echo", "Hello World"))


def test_command_that_always_fails_has_a_reason_and_can_be_deleted(trial):
    trial.bind(program("/bin/false"))
    pod = trial.wait(lambda pod: terminated(pod) or status_of(pod).get("lastState", {}).get("terminated"), "has ended")
    ended = terminated(pod) or status_of(pod)["lastState"]["terminated"]
    assert ended["exitCode"] == 1 and ended["reason"] == "Error"
    trial.delete()
    trial.wait_gone()


@pytest.mark.parametrize("network", [False, True])
def test_hosts_file_contains_the_host_aliases(trial, network):
    trial.expect(["123.45.67.89\tfoo\tbar"], program("cat", "/etc/hosts"), hostNetwork=network,
                 hostAliases=[{"ip": "123.45.67.89", "hostnames": ["foo", "bar"]}])


HOSTS = "# Kubernetes-managed hosts file"


def test_hosts_file_is_managed_unless_the_pod_mounts_its_own(trial):
    own = specs.container("own", volumeMounts=[specs.mount("hosts", "/etc/hosts")])
    trial.start(specs.container(), own, volumes=[specs.host_path("hosts", "/etc/hosts")])
    assert trial.exec("cat", "/etc/hosts").startswith(HOSTS)
    assert not trial.exec("cat", "/etc/hosts", container="own").startswith(HOSTS)


def test_hosts_file_is_that_of_the_node_in_the_host_network(trial):
    trial.start(specs.container(), hostNetwork=True)
    text = trial.exec("cat", "/etc/hosts")
    assert text.startswith(HOSTS) and world.read("/etc/hosts").strip() in text


@pytest.mark.parametrize("read_only, phase", [(True, "Failed"), (False, "Succeeded")])
def test_root_file_system_is_writable_unless_it_is_read_only(trial, read_only, phase):
    pod = trial.end(specs.container(script="echo test > /file", securityContext={"readOnlyRootFilesystem": read_only}), phase=phase)
    assert terminated(pod)["exitCode"] == (1 if read_only else 0)


# Pods and the API

def test_pod_has_the_address_of_its_host(trial):
    status = trial.start()["status"]
    assert status["hostIP"] == trial.node.address_of_node and status["hostIPs"] == [{"ip": status["hostIP"]}]


def test_pod_is_watched_from_its_start_to_its_end(trial):
    version = trial.node.client.do("GET", f"/api/v1/namespaces/{trial.node.namespace}/pods")["metadata"]["resourceVersion"]
    trial.start()
    trial.delete(grace=30)
    trial.wait_gone()
    path = f"/api/v1/namespaces/{trial.node.namespace}/pods?watch=1&timeoutSeconds=2&resourceVersion={version}"
    text = trial.node.client.do("GET", path, parse=False).decode()
    kinds = [line.split('"')[3] for line in text.splitlines() if f'"name":"{trial.name}"' in line]
    assert kinds[0] == "ADDED" and kinds[-1] == "DELETED" and set(kinds[1:-1]) == {"MODIFIED"}, kinds


def test_label_of_a_running_pod_is_updated(trial):
    trial.start()
    pid = trial.node.init(trial.name)
    trial.patch("pods", {"metadata": {"labels": {"time": "now"}}})
    wait(lambda: trial.node.pod(trial.name)["metadata"].get("labels", {}).get("time") == "now", "the label at the node")
    assert trial.node.init(trial.name) == pid


def test_deadline_of_a_running_pod_is_updated(trial):
    trial.start()
    trial.patch("pods", {"spec": {"activeDeadlineSeconds": 1}})
    pod = trial.wait(lambda pod: pod["status"].get("phase") == "Failed", "has failed")
    assert pod["status"]["reason"] == "DeadlineExceeded"


def test_pods_are_deleted_as_a_collection(trial):
    names = [f"{trial.name}-{i}" for i in range(3)]
    for name in names:
        trial.bind(name=name, metadata={"labels": {"set": trial.name}})
    for name in names:
        trial.node.wait_api_running(name)
    trial.node.client.do("DELETE", f"/api/v1/namespaces/{trial.node.namespace}/pods?labelSelector=set%3D{trial.name}")
    for name in names:
        trial.wait_gone(name)


def test_status_patch_keeps_conditions_of_other_writers(trial):
    trial.start()
    trial.patch("pods", {"status": {"conditions": [{"type": "example.com/mine", "status": "True"}]}}, subresource="status")
    trial.patch("pods", {"metadata": {"labels": {"a": "b"}}})
    wait(lambda: trial.node.pod(trial.name)["metadata"].get("labels", {}).get("a") == "b", "the label at the node")
    pod = trial.read()
    assert condition(pod, "example.com/mine")["status"] == "True" and is_ready(pod)


def test_image_update_resets_the_back_off(trial):
    trial.bind(specs.container(script="exit 1"), restartPolicy="Always")
    trial.wait_waiting("CrashLoopBackOff")
    trial.patch("pods", {"spec": {"containers": [{"name": "main", "image": specs.IMAGE + "0"}]}})
    trial.wait_waiting("ErrImagePull", "ImagePullBackOff", "CreateContainerError", "ErrImageNeverPull")


def test_node_renews_its_lease_and_rarely_sends_its_status(trial):
    """Without a change only the Lease is requested: the Node keeps its resource version for two renewals."""
    trial.start()
    status = trial.node.node()["status"]
    wait(lambda: any(specs.IMAGE in one["names"] for one in trial.node.node()["status"].get("images", [])), f"the image: {status}")

    def renewals(count):
        lease = trial.node.lease()["spec"]["renewTime"]
        for _ in range(count):
            last = lease
            lease = wait(lambda: trial.node.lease()["spec"]["renewTime"] != last and  # pylint: disable=cell-var-from-loop
                         trial.node.lease()["spec"]["renewTime"], "a renewal", 30)

    renewals(1)
    version = trial.node.node()["metadata"]["resourceVersion"]
    renewals(2)
    assert trial.node.node()["metadata"]["resourceVersion"] == version


# Containers of other kinds

def debugger(name, script=specs.IDLE):
    return specs.container(name, script)


def test_ephemeral_containers_are_added_to_a_running_pod(trial):
    trial.start()
    for i in (1, 2):
        trial.patch("pods", {"spec": {"ephemeralContainers": [debugger(f"debugger{i}")]}}, subresource="ephemeralcontainers")
        trial.wait(lambda pod: "running" in state(pod, f"debugger{i}"), "runs")  # pylint: disable=cell-var-from-loop
    assert trial.exec("cat", "/proc/1/comm", container="debugger1") == "sh\n"
    assert status_of(trial.read())["restartCount"] == 0


@pytest.mark.parametrize("policy", ["Never", "Always"])
def test_init_containers_run_before_the_others(trial, policy):
    main = specs.container(script="true" if policy == "Never" else specs.IDLE)
    trial.bind(main, initContainers=[specs.container("init1", "true"), specs.container("init2", "true")], restartPolicy=policy)
    pod = trial.wait(lambda pod: pod["status"].get("phase") == ("Succeeded" if policy == "Never" else "Running"), "runs, or has run")
    assert condition(pod, "Initialized")["status"] == "True"
    assert [terminated(pod, name)["exitCode"] for name in ("init1", "init2")] == [0, 0]
    assert all(status["ready"] for status in pod["status"]["initContainerStatuses"])


def test_init_container_that_fails_is_restarted_and_delays_the_others(trial):
    trial.bind(specs.container(), initContainers=[specs.container("init1", "false"), specs.container("init2", "true")])
    pod = trial.wait_restarts(3, "init1")
    assert pod["status"]["phase"] == "Pending" and condition(pod, "Initialized")["reason"] == "ContainersNotInitialized"
    assert condition(pod, "Initialized")["message"] == "containers with incomplete status: [init1 init2]"
    assert state(pod, "init2")["waiting"]["reason"] == state(pod)["waiting"]["reason"] == "PodInitializing"


def test_init_container_that_fails_permanently_fails_the_pod(trial):
    pod = trial.end(specs.container(script="true"), phase="Failed", initContainers=[
        specs.container("init1", "true"), specs.container("init2", "false")])
    assert condition(pod, "Initialized")["status"] == "False" and terminated(pod, "init2")["exitCode"] == 1
    assert "waiting" in state(pod)


def rule(action, *values, operator="In"):
    return {"action": action, "exitCodes": {"operator": operator, "values": list(values)}}


RULES = {
    "a rule that matches": ("Never", {"restartPolicy": "Never", "restartPolicyRules": [rule("Restart", 42)]}, True),
    "a rule that does not match": ("Never", {"restartPolicy": "Never", "restartPolicyRules": [rule("Restart", 42, operator="NotIn")]},
                                   False),
    "a policy Never of the container": ("Always", {"restartPolicy": "Never"}, False),
    "a policy Always of the container": ("Never", {"restartPolicy": "Always"}, True),
    "the policy of the pod": ("Always", {}, True),
}


@pytest.mark.parametrize("what", RULES)
def test_restart_rule_overrides_the_restart_policy(trial, what):
    policy, fields, restarts = RULES[what]
    trial.bind(specs.container(script="exit 42", **fields), restartPolicy=policy)
    if restarts:
        trial.wait_restarts(1)
    else:
        pod = trial.wait(lambda pod: terminated(pod) and pod["status"]["phase"] == "Failed", "has failed")
        assert status_of(pod)["restartCount"] == 0 and terminated(pod)["exitCode"] == 42


# Images, classes and refusals of the node

def test_image_pull_fails_if_the_registry_does_not_exist(trial):
    trial.bind({**specs.container(), "image": "invalid.registry.k8s.io/invalid/alpine:3.1"})
    trial.wait_waiting("ErrImagePull", "ImagePullBackOff")


def test_runtime_class_that_does_not_exist_is_refused(trial):
    assert "RuntimeClass" in trial.refused(runtimeClassName=f"{trial.name}-absent")


@pytest.fixture(name="make_class")
def fixture_make_class(trial):
    name = f"{trial.node.namespace}-{trial.name}"

    def make(handler, **fields):
        trial.node.client.create({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name},
                                  "handler": handler, **fields})
        wait(lambda: trial.node.client.get("runtimeclasses", None, name), "the class")
        return name

    yield make
    trial.finish()
    trial.node.client.delete("runtimeclasses", None, name)


def test_runtime_class_that_was_deleted_is_refused(trial, make_class):
    name = make_class("runc")
    trial.node.client.delete("runtimeclasses", None, name)

    def is_refused():
        try:
            trial.node.bind(f"{trial.name}-late", runtimeClassName=name)
        except Exception as error:  # pylint: disable=broad-exception-caught
            return "RuntimeClass" in str(error)
        trial.node.client.delete("pods", trial.node.namespace, f"{trial.name}-late", grace=0)
        return False

    wait(is_refused, "the cache of the server has noticed that the class is gone")


def test_pod_does_not_start_if_its_runtime_class_has_an_unknown_handler(trial, make_class):
    trial.bind(runtimeClassName=make_class("non-existent-handler"))
    trial.node.wait_event(trial.name, "FailedCreatePodSandBox")
    assert trial.read()["status"]["phase"] == "Pending"


@pytest.mark.parametrize("overhead", [None, {"cpu": "10m", "memory": "1Mi"}])
def test_runtime_class_overhead_is_added_to_the_pod(trial, make_class, overhead):
    name = make_class("runc", **({"overhead": {"podFixed": overhead}} if overhead else {}))
    pod = trial.start(specs.container(resources={"requests": {"cpu": "100m", "memory": "20Mi"}, "limits": {
        "cpu": "200m", "memory": "40Mi"}}), runtimeClassName=name)
    assert pod["spec"].get("overhead") == overhead
    limit = int(world.cgroup_value(trial.node.pod_cgroup(trial.name), "memory", "memory.limit_in_bytes"
                                   if world.cgroup_version() == 1 else "memory.max"))
    assert limit == (41 if overhead else 40) * 1024**2


SYSCTL = "kernel.shm_rmid_forced"


@pytest.mark.parametrize("name", [SYSCTL, SYSCTL.replace(".", "/")])
def test_sysctl_is_set(trial, name):
    trial.expect(["1"], program("cat", f"/proc/sys/{SYSCTL.replace('.', '/')}"),
                 securityContext={"sysctls": [{"name": name, "value": "1"}]})


def test_each_invalid_sysctl_is_refused(trial):
    names = ["foo-", "kernel.shmmax", "safe-and-unsafe", "bar.."]
    message = trial.refused(securityContext={"sysctls": [{"name": name, "value": "100000000"} for name in names]})
    assert 'Invalid value: "foo-"' in message and 'Invalid value: "bar.."' in message and "safe-and-unsafe" not in message


def test_node_rejects_a_pod_with_an_unsafe_sysctl(trial):
    trial.bind(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "10000000000"}]})
    pod = trial.node.wait_api_phase(trial.name, "Failed")
    assert pod["status"]["reason"] == "SysctlForbidden"


@pytest.mark.parametrize("privileged", [False, True])
def test_only_a_privileged_container_can_change_the_network(trial, privileged):
    trial.start(specs.container(securityContext={"privileged": privileged}))
    trial.exec("ip", "link", "add", "bridge1", "type", "bridge")
    assert ("bridge1" in trial.exec("ip", "link")) == privileged


# Names

@pytest.mark.parametrize("fields, name", [
    ({"hostnameOverride": "override-host"}, "override-host"),
    ({"hostnameOverride": "override.example.host"}, "override.example.host"),
    ({"hostname": "custom", "hostnameOverride": "override-host"}, "override-host"),
    ({"subdomain": "t", "hostnameOverride": "override-host"}, "override-host"),
    ({"hostname": "custom"}, "custom"), ({"subdomain": "t", "hostname": "custom"}, "custom"),
    ({"hostname": "custom", "setHostnameAsFQDN": True}, "custom"), ({}, None)])
def test_host_name_follows_the_pod_spec(trial, fields, name):
    trial.expect([name or trial.name], program("hostname"), **fields)


def test_host_name_with_a_subdomain_is_fully_qualified_on_request(trial):
    whole = f"{trial.name}.t.{trial.node.namespace}.svc.cluster.local"
    trial.expect([whole], program("hostname"), subdomain="t", setHostnameAsFQDN=True)


def test_host_name_that_is_too_long_keeps_the_pod_pending(trial):
    trial.bind(subdomain="t" * 63, hostname="a" * 40, setHostnameAsFQDN=True)
    event = trial.node.wait_event(trial.name, "FailedCreatePodSandBox")
    assert "64" in event["message"] and trial.read()["status"]["phase"] == "Pending"


@pytest.mark.parametrize("fields", [{"hostnameOverride": "a", "setHostnameAsFQDN": True},
                                    {"hostnameOverride": "a", "hostNetwork": True}, {"hostnameOverride": "Not-RFC1123"}])
def test_host_name_that_is_invalid_is_refused(trial, fields):
    assert "hostnameOverride" in trial.refused(**fields)


# Security

def test_container_runs_as_the_requested_user(trial):
    trial.expect(["65534"], program("id", "-u", securityContext={"runAsUser": 65534}))


def test_container_runs_as_root(trial):
    trial.expect(["0"], program("id", "-u", securityContext={"runAsUser": 0}))


def test_run_as_non_root_accepts_another_user(trial):
    trial.expect(["1000"], program("id", "-u", securityContext={"runAsNonRoot": True, "runAsUser": 1000}))


@pytest.mark.parametrize("user", [{"runAsUser": 0}, {}])
def test_run_as_non_root_refuses_root(trial, user):
    trial.bind(specs.container(securityContext={"runAsNonRoot": True, **user}))
    pod = trial.wait_waiting("CreateContainerConfigError")
    assert "oot" in state(pod)["waiting"]["message"] and pod["status"]["phase"] == "Pending"


@pytest.mark.parametrize("allowed, shown", [(None, "0"), (True, "0"), (False, "1")])
def test_container_can_gain_privileges_unless_the_pod_forbids_it(trial, allowed, shown):
    security = {"runAsUser": 1000, **({} if allowed is None else {"allowPrivilegeEscalation": allowed})}
    trial.expect([f"NoNewPrivs:\t{shown}"], program("cat", "/proc/self/status", securityContext=security))


@pytest.mark.parametrize("policy, groups", [(None, {"1000", "29", "60000"}), ("Merge", {"1000", "29", "60000"}),
                                            ("Strict", {"1000", "60000"})])
def test_supplementary_groups_of_the_image_follow_the_policy_of_the_pod(trial, policy, groups):
    """The user 'app' of the image is in its group 29."""
    pod = trial.start(securityContext={"runAsUser": 1000, "runAsGroup": 1000, "supplementalGroups": [60000],
                                       **({"supplementalGroupsPolicy": policy} if policy else {})})
    assert set(trial.exec("id", "-G").split()) == groups
    user = status_of(pod)["user"]["linux"]
    assert user["uid"] == user["gid"] == 1000 and {str(group) for group in user["supplementalGroups"]} == groups


def namespaces(trial):
    return trial.exec("cat", "/proc/self/uid_map").split()


@pytest.mark.parametrize("host", [False, True])
def test_pod_has_a_user_namespace_on_request(trial, host):
    trial.start(hostUsers=host)
    assert (namespaces(trial) == world.read("/proc/self/uid_map").split()) == host


def test_volumes_belong_to_the_ids_of_the_pod_in_a_user_namespace(trial):
    trial.config_map({"key": "value"})
    trial.secret({"key": "value"})
    names = ("cm", "secret", "info", "projected", "empty")
    trial.start(specs.container(volumeMounts=[specs.mount(name, f"/v/{name}") for name in names]), hostUsers=False, volumes=[
        {"name": "cm", "configMap": {"name": trial.name}}, {"name": "secret", "secret": {"secretName": trial.name}},
        {"name": "info", "downwardAPI": {"items": [{"path": "key", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"name": "projected", "projected": {"sources": [{"configMap": {"name": trial.name}}]}}, {"name": "empty", "emptyDir": {}}])
    for name in names:
        assert trial.exec("stat", "-c", "%u=%g", f"/v/{name}") == "0=0\n", name
        if name != "empty":
            assert trial.exec("stat", "-L", "-c", "%u=%g", f"/v/{name}/key") == "0=0\n", name


def test_fs_group_is_an_id_of_the_pod_in_a_user_namespace(trial):
    trial.start(specs.container(volumeMounts=[specs.mount("v", "/v")]), hostUsers=False, volumes=[{"name": "v", "emptyDir": {}}],
                securityContext={"fsGroup": 200})
    assert trial.exec("stat", "-c", "%g", "/v") == "200\n"


def test_metric_counts_pods_in_user_namespaces(trial):
    def count():
        text = trial.node.get("/metrics")[1]
        return float(re.search(r"^kubelet_started_user_namespaced_pods_total (\S+)", text, re.M).group(1))

    before = count()
    trial.start(hostUsers=False)
    assert count() == before + 1


# Images as volumes

def test_image_is_a_volume(trial):
    trial.start(specs.container(volumeMounts=[specs.mount("v", "/v")]), volumes=[
        {"name": "v", "image": {"reference": specs.IMAGE, "pullPolicy": "IfNotPresent"}}])
    assert "root:" in trial.exec("cat", "/v/etc/passwd")


def test_image_that_is_missing_keeps_the_pod_pending(trial):
    trial.bind(specs.container(volumeMounts=[specs.mount("v", "/v")]), volumes=[
        {"name": "v", "image": {"reference": "docker.io/library/absent:1", "pullPolicy": "IfNotPresent"}}])
    trial.wait_waiting("ErrImagePull", "ImagePullBackOff", "ImageInspectError")


# Resources

def cgroup(trial, *path):
    """The quota in thousandths of a processor and the limit in bytes of a control group."""
    path = "/".join((trial.node.pod_cgroup(trial.name), *path))
    if world.cgroup_version() == 1:
        return (int(world.cgroup_value(path, "cpu", "cpu.cfs_quota_us")) // 100,
                int(world.cgroup_value(path, "memory", "memory.limit_in_bytes")))
    return (int(world.cgroup_value(path, "cpu", "cpu.max").split()[0]) // 100, int(world.cgroup_value(path, "memory", "memory.max")))


def amounts(cpu, memory):
    return {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}


def guaranteed(cpu, memory):
    return {"requests": amounts(cpu, memory), "limits": amounts(cpu, memory)}


@pytest.mark.parametrize("policy", [{}, {"memory": "RestartContainer"}, {"cpu": "RestartContainer"},
                                    {"cpu": "RestartContainer", "memory": "RestartContainer"}], ids=str)
@pytest.mark.parametrize("cpu, memory", [(30, 20), (20, 30), (30, 30), (30, 15), (15, 30)])
def test_guaranteed_container_is_resized(trial, policy, cpu, memory):
    rules = [{"resourceName": name, "restartPolicy": what} for name, what in policy.items()]
    trial.start(specs.container(resources=guaranteed(20, 20), resizePolicy=rules))
    trial.patch("pods", {"spec": {"containers": [{"name": "main", "resources": guaranteed(cpu, memory)}]}}, subresource="resize")
    restarts = int(any(policy.get(name) and amount != 20 for name, amount in (("cpu", cpu), ("memory", memory))))
    pod = trial.wait(lambda pod: status_of(pod).get("resources") == guaranteed(cpu, memory) and is_ready(pod) and
                     status_of(pod)["restartCount"] == restarts, f"is resized after {restarts} restarts")
    assert status_of(pod)["allocatedResources"] == amounts(cpu, memory)
    assert cgroup(trial) == cgroup(trial, trial.node.container_id(trial.name)) == (cpu, memory * 1024**2)
    trial.wait(lambda pod: not any(one["type"].startswith("PodResize") for one in pod["status"]["conditions"]), "is done")


@pytest.mark.parametrize("requests, limits", [((30, 20), (40, 40)), ((20, 20), (50, 40)), ((20, 30), (40, 40)), ((20, 20), (40, 50)),
                                              ((15, 25), (50, 50)), ((30, 15), (50, 35))])
def test_burstable_container_is_resized(trial, requests, limits):
    trial.start(specs.container(resources={"requests": amounts(20, 20), "limits": amounts(40, 40)}))
    wanted = {"requests": amounts(*requests), "limits": amounts(*limits)}
    trial.patch("pods", {"spec": {"containers": [{"name": "main", "resources": wanted}]}}, subresource="resize")
    trial.wait(lambda pod: status_of(pod).get("resources") == wanted, "is resized")
    assert cgroup(trial, trial.node.container_id(trial.name)) == (limits[0], limits[1] * 1024**2)
    assert status_of(trial.read())["restartCount"] == 0


@pytest.mark.parametrize("changes", [((30, 30), (30, 30), (15, 15)), ((30, 30), (15, 15), (15, 15)), ((30, 20), (15, 30), (30, 30))])
def test_several_containers_are_resized_together(trial, changes):
    names = ("main", "c2", "c3")
    trial.start(*[specs.container(name, resources=guaranteed(20, 20)) for name in names])
    trial.patch("pods", {"spec": {"containers": [{"name": name, "resources": guaranteed(*change)}
                                                 for name, change in zip(names, changes)]}}, subresource="resize")
    trial.wait(lambda pod: all(status_of(pod, name).get("resources") == guaranteed(*change)
                               for name, change in zip(names, changes)), "is resized")
    for name, change in zip(names, changes):
        assert cgroup(trial, trial.node.container_id(trial.name, name)) == (change[0], change[1] * 1024**2)
    assert cgroup(trial) == (sum(cpu for cpu, _ in changes), sum(memory for _, memory in changes) * 1024**2)


@pytest.mark.parametrize("requests, limits", [((30, 20), (40, 40)), ((20, 20), (50, 40)), ((20, 30), (40, 40)), ((20, 20), (40, 50)),
                                              ((30, 30), (50, 50))])
def test_pod_is_resized(trial, requests, limits):
    trial.start(specs.container(), resources={"requests": amounts(20, 20), "limits": amounts(40, 40)})
    assert not trial.node.events(trial.name, "ResizeCompleted")
    wanted = {"requests": amounts(*requests), "limits": amounts(*limits)}
    trial.patch("pods", {"spec": {"resources": wanted}}, subresource="resize")
    trial.wait(lambda pod: pod["status"].get("resources") == wanted, "is resized")
    assert cgroup(trial) == (limits[0], limits[1] * 1024**2)
    assert status_of(trial.read())["restartCount"] == 0


def test_memory_limit_is_not_set_below_the_usage(trial):
    script = f"head -c 20971520 /dev/zero > /mem/file; {specs.IDLE}"
    trial.start(specs.container(script=script, resources=guaranteed(20, 64), volumeMounts=[specs.mount("mem", "/mem")]),
                volumes=[{"name": "mem", "emptyDir": {"medium": "Memory"}}])
    wait(lambda: trial.exec("stat", "-c", "%s", "/mem/file") == "20971520\n", "20 MiB are used")
    trial.patch("pods", {"spec": {"containers": [{"name": "main", "resources": guaranteed(20, 10)}]}}, subresource="resize")
    pod = trial.wait(lambda pod: condition(pod, "PodResizeInProgress").get("reason") == "Error", "cannot be resized yet")
    assert status_of(pod)["resources"]["limits"]["memory"] == "64Mi" and status_of(pod)["restartCount"] == 0
    trial.patch("pods", {"spec": {"containers": [{"name": "main", "resources": guaranteed(20, 64)}]}}, subresource="resize")
    trial.wait(lambda pod: not condition(pod, "PodResizeInProgress"), "is as it was")


@pytest.mark.parametrize("resources, patch", [
    ({}, {"requests": {"memory": "20Mi"}}), ({}, {"requests": {"cpu": "20m"}}),
    (guaranteed(20, 20), {"limits": None}), (guaranteed(20, 20), {"requests": {"cpu": "10m"}}),
    ({"requests": amounts(20, 20)}, {"requests": {"memory": None}}),
    ({"requests": amounts(20, 20)}, {"requests": {"ephemeral-storage": "1Gi"}})], ids=str)
def test_invalid_resize_is_refused(trial, resources, patch):
    trial.start(specs.container(resources=resources))
    before = trial.read()["spec"]
    with pytest.raises(Exception, match="4(22|03)|Invalid|Forbidden"):
        trial.patch("pods", {"spec": {"containers": [{"name": "main", "resources": patch}]}}, subresource="resize")
    assert trial.read()["spec"]["containers"] == before["containers"]


LEVELS = {
    "Guaranteed": (guaranteed(100, 100), [{}, {}], (100, 100)),
    "Guaranteed, containers in part": (guaranteed(100, 100), [guaranteed(50, 50), {}], (100, 100)),
    "Burstable": ({"requests": amounts(50, 50), "limits": amounts(100, 100)}, [{}, {}], (100, 100)),
    "Burstable, containers in part": ({"requests": amounts(50, 50), "limits": amounts(100, 100)},
                                      [{"requests": amounts(20, 20), "limits": amounts(50, 50)}, {}], (100, 100)),
    "of the containers": (None, [guaranteed(50, 50), guaranteed(50, 50)], (100, 100)),
}


@pytest.mark.parametrize("what", LEVELS)
def test_pod_level_resources_are_applied_to_the_pod_cgroup(trial, what):
    level, containers, limits = LEVELS[what]
    pod = trial.start(*[specs.container(name, resources=one) for name, one in zip(("main", "c2"), containers)],
                      **({"resources": level} if level else {}))
    assert pod["status"]["qosClass"] == ("Burstable" if what.startswith("Burstable") else "Guaranteed")
    assert cgroup(trial) == (limits[0], limits[1] * 1024**2)


def test_agent_log_does_not_contain_values_of_secrets(trial):
    """The values in a pod are not taken from the agent's report."""
    trial.secret({"key": "very-hidden-value"})
    trial.start(specs.container(env=[variable("S", "secretKeyRef", name=trial.name, key="key"), value("T", "$(S)")]))
    assert "very-hidden-value" not in trial.node.said()


def test_log_is_readable_when_the_test_image_runs(trial):
    trial.bind(agnhost("pause"))
    trial.wait_output("Paused")
