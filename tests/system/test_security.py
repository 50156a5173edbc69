# SPDX-License-Identifier: Apache-2.0
"""Security contexts: users, capabilities, seccomp, sysctls, namespaces, as the kernel reports and enforces them."""

import json
import os
import signal

import pause_process
import pytest
import specs
import world

DEFAULT_CAPABILITIES = 0xa80425fb
SYS_RESOURCE = 1 << 24
MASKED = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/interrupts", "/proc/acpi", "/sys/firmware")


def secure(name, context=None, script=specs.IDLE, pod_context=None, **spec):
    fields = {"securityContext": context} if context else {}
    if pod_context:
        spec["securityContext"] = pod_context
    return specs.pod(name, specs.container(script=script, **fields), **spec)


def status(node, name, field):
    return world.status(node.init(name), field)


def capabilities(node, name, kind="CapBnd"):
    return int(status(node, name, kind), 16)


def own_capabilities():
    return int(world.status("self", "CapEff"), 16)


def log_when_done(node, name):
    """The log of a script that ends in "echo done"."""
    world.wait(lambda: "done" in node.logged(name), f"{name} is done")
    return node.logged(name)


def try_out(node, name, script, context=None, **fields):
    """Runs a script in a container and returns its output."""
    node.launch(secure(name, context, f"{{ {script}\n}} 2>&1; echo done; {specs.IDLE}", **fields))
    return log_when_done(node, name)


# Defaults

def test_a_container_has_default_capabilities_and_seccomp_by_default(shared_node):
    shared_node.launch(secure("plain"))
    assert capabilities(shared_node, "plain") == DEFAULT_CAPABILITIES
    assert capabilities(shared_node, "plain", "CapEff") == DEFAULT_CAPABILITIES
    assert capabilities(shared_node, "plain", "CapAmb") == 0
    assert status(shared_node, "plain", "Seccomp") == "2"
    assert status(shared_node, "plain", "NoNewPrivs") == "0"


# Users and groups

def test_run_as_user_of_the_container_overrides_the_pods(shared_node):
    shared_node.launch(secure("user", {"runAsUser": 1001}, pod_context={"runAsUser": 1002, "runAsGroup": 1003}))
    assert status(shared_node, "user", "Uid").split() == ["1001"] * 4
    assert status(shared_node, "user", "Gid").split() == ["1003"] * 4
    assert capabilities(shared_node, "user", "CapEff") == 0


def test_a_user_of_the_image_gets_its_primary_group(shared_node):
    shared_node.launch(secure("known", {"runAsUser": 65534}))
    assert status(shared_node, "known", "Gid").split() == ["65534"] * 4


def test_groups_are_those_of_the_image_of_the_pod_and_of_its_volumes(shared_node):
    groups = {"runAsUser": 1000, "supplementalGroups": [5000, 5001], "fsGroup": 5002}
    shared_node.launch(secure("merge", pod_context=groups))
    assert set(status(shared_node, "merge", "Groups").split()) == {"29", "1000", "5000", "5001", "5002"}
    shared_node.launch(secure("strict", pod_context={**groups, "supplementalGroupsPolicy": "Strict"}))
    assert set(status(shared_node, "strict", "Groups").split()) == {"1000", "5000", "5001", "5002"}


def test_run_as_non_root_refuses_root_with_a_reason(shared_node):
    for name, user, reason in (("root-image", {}, "container has runAsNonRoot and image will run as root"),
                                 ("root-user", {"runAsUser": 0}, "container's runAsUser breaks non-root policy")):
        shared_node.drop(secure(name, {"runAsNonRoot": True, **user}))
        message = shared_node.wait_waiting(name, "CreateContainerConfigError")
        uid = shared_node.pod(name)["metadata"]["uid"]
        assert message == f'{reason} (pod: "{name}-node1_default({uid})", container: main)'
    shared_node.launch(secure("not-root", {"runAsNonRoot": True, "runAsUser": 7}))
    shared_node.launch(secure("may-be-root", {"runAsNonRoot": False}, pod_context={"runAsNonRoot": True}))


# Capabilities and privileges

@pytest.mark.parametrize("add, drop, expected", [
    ([], ["ALL"], 0),
    (["NET_ADMIN"], ["ALL"], 1 << 12),
    (["net_admin", "CAP_SYS_TIME"], ["CHOWN", "kill"], DEFAULT_CAPABILITIES & ~0x21 | 1 << 12 | 1 << 25),
    (["ALL"], ["SYS_ADMIN"], None),
])
def test_capabilities_are_added_and_dropped(shared_node, add, drop, expected):
    name = f"caps-{len(add)}-{len(drop)}-{expected or 'all'}".lower()
    shared_node.launch(secure(name, {"capabilities": {"add": add, "drop": drop}}))
    expected = own_capabilities() & ~(1 << 21) if expected is None else expected
    assert capabilities(shared_node, name) == capabilities(shared_node, name, "CapEff") == expected


def test_a_capability_that_the_node_does_not_have_is_an_error(shared_node):
    if own_capabilities() & SYS_RESOURCE:
        shared_node.launch(secure("resource", {"capabilities": {"add": ["SYS_RESOURCE"]}}))
        assert capabilities(shared_node, "resource") & SYS_RESOURCE
        return
    shared_node.drop(secure("resource", {"capabilities": {"add": ["SYS_RESOURCE"]}}))
    message = shared_node.wait_waiting("resource", "CreateContainerError")
    assert message == "CAP_SYS_RESOURCE cannot be added: this node's agent does not have it"


def test_forbidden_privilege_escalation_sets_no_new_privs(shared_node):
    shared_node.launch(secure("tame", {"allowPrivilegeEscalation": False}))
    assert status(shared_node, "tame", "NoNewPrivs") == "1"


def devices():
    """The devices of the machine."""
    return {name for name in os.listdir("/dev") if not os.path.islink(f"/dev/{name}")
            and not os.path.isdir(f"/dev/{name}") and name != "console"}


def test_a_privileged_container_has_the_agents_privileges(shared_node):
    before = devices()  # other tests create and remove some
    said = try_out(shared_node, "privileged",
                   "ls /proc/sys/kernel >/dev/null; touch /sys/fs/cgroup 2>/dev/null; ls /dev; mount -t tmpfs none /tmp "
                   "&& echo mounted", {"privileged": True})
    init = shared_node.init("privileged")
    assert capabilities(shared_node, "privileged") == own_capabilities()
    assert world.status(init, "Seccomp") == "0"
    assert "rw" in world.mount_at(init, "/sys")["options"]
    assert not [path for path in (*MASKED, "/proc/sys") if world.mount_at(init, path)]
    assert "mounted" in said
    assert before & devices() <= set(said)


def test_an_unprivileged_container_cannot_use_devices_of_the_node(shared_node):
    said = try_out(shared_node, "device", "mknod /tmp/mem c 1 1; dd if=/tmp/mem of=/dev/null count=1 && echo read")
    assert "read" not in said
    init = shared_node.init("device")
    assert "ro" in world.mount_at(init, "/sys")["options"]
    masked = [path for path in MASKED if os.path.exists(path)]
    assert masked and all(world.mount_at(init, path) for path in masked)
    assert "ro" in world.mount_at(init, "/proc/sys")["options"]


def test_a_read_only_root_filesystem_cannot_be_written(shared_node):
    said = try_out(shared_node, "read-only", "echo x > /file && echo written; echo x > /dev/shm/file && echo shared; "
                   "echo x > /etc/resolv.conf && echo resolved", {"readOnlyRootFilesystem": True})
    assert "written" not in said and "resolved" not in said and "shared" in said
    assert "ro" in world.mount_at(shared_node.init("read-only"), "/")["options"]


# System calls

def test_runtime_default_seccomp_denies_system_calls(shared_node):
    """Every process may call personality(ADDR_NO_RANDOMIZE), except behind the filter."""
    for name, context, expected in (("filtered", None, False),
                                    ("unfiltered", {"seccompProfile": {"type": "Unconfined"}}, True)):
        script = f"chroot /host setarch -R /bin/echo fixed; echo done; {specs.IDLE}"
        container = specs.container(script=script, volumeMounts=[specs.mount("host", "/host", readOnly=True)],
                                    **({"securityContext": context} if context else {}))
        shared_node.launch(specs.pod(name, container, volumes=[specs.host_path("host", "/")]))
        assert ("fixed" in log_when_done(shared_node, name)) is expected


def test_seccomp_allows_more_with_capabilities(shared_node):
    script = "mount -t tmpfs none /tmp && echo mounted; hostname $(hostname) && echo named"
    said = try_out(shared_node, "admin", script, {"capabilities": {"add": ["SYS_ADMIN"]}})
    assert "mounted" in said
    assert status(shared_node, "admin", "Seccomp") == "2"


def test_unconfined_seccomp_and_container_override_the_pods(shared_node):
    shared_node.launch(secure("open", {"seccompProfile": {"type": "Unconfined"}},
                              pod_context={"seccompProfile": {"type": "RuntimeDefault"}}))
    assert status(shared_node, "open", "Seccomp") == "0"


def test_a_localhost_seccomp_profile_is_applied(node):
    profile = {"defaultAction": "SCMP_ACT_ALLOW",
               "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}]}
    local = {"seccompProfile": {"type": "Localhost", "localhostProfile": "mine/no-mkdir.json"}}
    node.drop(secure("local", local, f"mkdir /tmp/x 2>&1; echo done; {specs.IDLE}"))
    assert "cannot open the seccomp profile" in node.wait_waiting("local", "CreateContainerError")
    os.makedirs(f"{node.state}/seccomp/mine")
    with open(f"{node.state}/seccomp/mine/no-mkdir.json", "w", encoding="utf-8") as file:
        json.dump(profile, file)
    node.wait_running("local")
    assert any("No space left on device" in line for line in log_when_done(node, "local"))


@pytest.mark.parametrize("builtin", [False, True])
def test_both_default_profiles_serve_an_ordinary_program(make_node, builtin):
    """The built-in profile is used if the distribution's is not a profile."""
    node = make_node(start=False)
    if builtin:
        profile = os.path.join(node.directory, "profile.json")
        with open(profile, "w", encoding="utf-8") as file:
            file.write("{}")
        node.write_config(mainstay={"seccompProfile": profile})
        node.start(ready=False)
        world.wait(lambda: node.agent.poll() is not None, "the agent refuses an invalid profile")
        assert "has no defaultAction" in node.said()
        node.write_config(mainstay={"seccompProfile": "builtin"})
    node.start()
    script = ("mkdir /tmp/d && cd /tmp/d && echo x > f && mv f g && ln -s g h && cat h | wc -c && ls -l && rm -r /tmp/d; "
              "(sleep 0.01 & wait); nc -l -p 18081 -s 127.0.0.1 & sleep 0.05; kill $!; unshare -m true && echo unshared; "
              "mount -t tmpfs none /tmp && echo mounted; insmod /x; date -s 2000-01-01")
    said = try_out(node, "ordinary", script)
    assert "2" in said and "mounted" not in said
    assert any("date" in line and "not permitted" in line for line in said)
    for capabilities_added in (["ALL"], ["SYS_ADMIN", "BPF", "PERFMON"]):
        name = f"added-{len(capabilities_added)}"
        node.launch(secure(name, {"capabilities": {"add": capabilities_added}}))
        assert status(node, name, "Seccomp") == "2"


# Volumes

@pytest.mark.parametrize("medium", ["", "Memory"])
def test_an_empty_directory_belongs_to_the_pods_group(shared_node, medium):
    name = f"group-{medium.lower() or 'disk'}"
    container = specs.container(script=f"echo x > /data/file; ls -lnd /data /data/file; echo done; {specs.IDLE}",
                                volumeMounts=[specs.mount("data", "/data")])
    shared_node.launch(specs.pod(name, container, securityContext={"fsGroup": 4321, "runAsUser": 1000},
                                 volumes=[{"name": "data", "emptyDir": {"medium": medium}}]))
    directory, file = [line.split() for line in log_when_done(shared_node, name) if line != "done"]
    assert directory[0].startswith("drwxrwsrwt" if medium else "drwxrwsrwx") and directory[3] == "4321"
    assert file[2:4] == ["1000", "4321"]


# Namespaces

def namespace(pid, kind):
    return os.readlink(f"/proc/{pid}/ns/{kind}")


def container_process(node, name, container="main"):
    """The first process of a container without its own PID namespace: the oldest of its cgroup."""
    return world.wait(lambda: world.oldest_process(node.container_cgroup(name, container)), f"{name} has a process")


def test_the_hosts_pid_and_ipc_namespaces_can_be_shared(shared_node):
    said = try_out(shared_node, "host-spaces", f"ls -d /proc/{os.getpid()}; ls /dev/shm; echo x > /dev/shm/{os.getpid()}",
                   hostPID=True, hostIPC=True)
    shared = f"/dev/shm/{os.getpid()}"
    assert f"/proc/{os.getpid()}" in said
    assert os.path.exists(shared)
    os.unlink(shared)
    pid = container_process(shared_node, "host-spaces")
    assert namespace(pid, "pid") == namespace("self", "pid")
    assert namespace(pid, "ipc") == namespace("self", "ipc")
    shared_node.remove("host-spaces")
    shared_node.wait_gone("host-spaces")
    assert not world.is_alive(pid)


def test_a_pod_has_separate_ipc_and_pid_namespaces_by_default(shared_node):
    shared_node.launch(secure("own-spaces"))
    init = shared_node.init("own-spaces")
    assert namespace(init, "pid") != namespace("self", "pid")
    assert namespace(init, "ipc") != namespace("self", "ipc")


# Kernel parameters

def test_a_safe_sysctl_is_set_in_the_pod_and_nowhere_else(shared_node):
    name = "/proc/sys/kernel/shm_rmid_forced"
    before = world.read(name).strip()
    said = try_out(shared_node, "sysctl", f"cat {name}", pod_context={
        "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0" if before == "1" else "1"}]})
    assert said[0] != before
    assert world.read(name).strip() == before


def test_an_unsafe_sysctl_waits_for_the_nodes_permission(make_node):
    node = make_node()
    pod = secure("unsafe", None, f"cat /proc/sys/kernel/msgmax; echo done; {specs.IDLE}",
                 {"sysctls": [{"name": "kernel/msgmax", "value": "12345"}]})
    node.drop(pod)
    assert node.wait_waiting("unsafe", "ContainerCreating", says="sysctl") == 'forbidden sysctl: "kernel.msgmax" not allowlisted'
    node.stop()
    node.write_config(allowedUnsafeSysctls=["kernel.msg*"])
    node.start()
    node.wait_running("unsafe")
    assert log_when_done(node, "unsafe")[0] == "12345"


# Priority

def test_system_priority_classes_set_the_priority(shared_node):
    shared_node.launch(secure("critical", priorityClassName="system-node-critical"))
    pod = shared_node.pod("critical")
    assert pod["spec"]["priority"] == 2000001000
    assert pod["spec"]["priorityClassName"] == "system-node-critical"
    described = shared_node.cli("describe", "pod", "critical").stdout
    assert "2000001000" in described and "system-node-critical" in described
    own = int(world.read("/proc/self/oom_score_adj"))
    adjust = int(world.read(f"/proc/{shared_node.init('critical')}/oom_score_adj"))
    assert adjust == (-997 if own_capabilities() & SYS_RESOURCE else max(own, -997))


# One PID namespace for the pod

def test_containers_that_share_a_pid_namespace_see_one_another(shared_node):
    script = f"until ps | grep -q '[s]leep 98765'; do sleep 0.1; done; cat /proc/1/comm; ps; echo done; {specs.IDLE}"
    shared_node.launch(specs.pod("shared-pids", specs.container("one", f"sleep 98765 & {specs.IDLE}"),
                                 specs.container("two", script), shareProcessNamespace=True))
    world.wait(lambda: "done" in shared_node.logged("shared-pids", "two"), "two is done")
    said = shared_node.logged("shared-pids", "two")
    assert said[0] == "mainstay-pause"
    assert any("sleep 98765" in line for line in said)
    one, two = (container_process(shared_node, "shared-pids", name) for name in ("one", "two"))
    assert namespace(one, "pid") == namespace(two, "pid") != namespace("self", "pid")
    assert namespace(one, "mnt") != namespace(two, "mnt")


def test_the_pause_process_of_a_shared_pid_namespace_has_no_access_to_the_node(shared_node, tmp_path):
    pause_process.expect_nothing_of_the_node(shared_node, tmp_path / "secret")


def test_children_of_a_container_end_with_it_in_a_shared_pid_namespace(shared_node):
    def children():
        return [pid for pid in world.pids() if world.cmdline(pid) == ["sleep", "87654"]]

    shared_node.launch(specs.pod("orphans", specs.container("main", "trap 'exit 3' USR1; sleep 87654 & wait"),
                                 specs.container("other"), shareProcessNamespace=True, restartPolicy="Never"))
    assert world.wait(children, "it has a child")
    os.kill(int(world.status(children()[0], "PPid")), signal.SIGUSR1)
    shared_node.wait_pod("orphans", lambda pod: any("terminated" in status["state"]
                                                    for status in pod["status"]["containerStatuses"]), "has ended")
    assert shared_node.status("orphans")["state"]["terminated"]["exitCode"] == 3
    world.wait(lambda: not children(), "the child is gone, too")
    assert "running" in shared_node.status("orphans", "other")["state"]


def test_a_shared_pid_namespace_survives_the_agent_and_ends_with_its_pod(make_node):
    node = make_node()
    node.launch(specs.pod("shared", shareProcessNamespace=True))
    pause = pause_process.find(node, "shared")
    node.restart()
    node.wait_running("shared")
    assert world.is_alive(pause)
    os.kill(pause, 9)
    world.wait(lambda: node.status("shared").get("restartCount", 0) >= 1, "the pod has a new sandbox")
    node.wait_running("shared")
    node.remove("shared")
    node.wait_gone("shared")


@pytest.mark.skipif(os.path.exists("/sys/fs/selinux/enforce"), reason="this node has SELinux")
def test_selinux_options_without_selinux_are_ignored_and_logged_once(node):
    node.launch(specs.pod("labelled", specs.container(securityContext={"seLinuxOptions": {"level": "s0"}})))
    assert node.said().count("seLinuxOptions are ignored") == 1
