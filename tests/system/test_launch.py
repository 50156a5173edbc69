# SPDX-License-Identifier: Apache-2.0
"""A manifest becomes a container, and the system matches the manifest."""

import os
import shutil
import socket
import subprocess

import pytest
import specs
import world
from harness import NODE_NAME, condition


@pytest.mark.quick
def test_a_new_manifest_starts_its_pod(node):
    node.launch(specs.pod("web"))
    assert world.cmdline(node.init("web"))[:2] == ["/bin/sh", "-c"]


def test_a_manifest_present_at_agent_start_starts_its_pod(make_node):
    node = make_node(start=False)
    node.drop(specs.pod("web"))
    node.start()
    node.wait_running("web")


def test_a_manifest_written_in_place_is_read_when_it_is_complete(node):
    text = specs.text(specs.pod("slow"))
    with open(node.path("slow.yaml"), "w", encoding="utf-8") as file:
        for line in text.splitlines(keepends=True):
            file.write(line)
            file.flush()
        assert not node.pod("slow")
    node.wait_running("slow")


@pytest.mark.quick
def test_a_file_with_several_documents_starts_several_pods(node):
    node.drop(specs.text(specs.pod("one"), specs.pod("two")), "both.yaml")
    node.wait_running("one")
    node.wait_running("two")


def test_a_json_manifest_starts_its_pod(node):
    node.drop('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"json"},"spec":{"hostNetwork":true,'
              '"terminationGracePeriodSeconds":1,"containers":[{"name":"main","image":"busybox:1",'
              '"command":["/bin/sleep","1000"]}]}}', "pod.json")
    node.wait_running("json")


def test_files_with_other_names_are_not_read(node):
    for file in ("pod.txt", ".hidden.yaml", "pod.yaml~", "pod.yaml.bak", "pod.yaml.swp", "Makefile"):
        node.drop(specs.pod("stranger"), file)
    node.launch(specs.pod("known"))
    assert [pod["metadata"]["name"] for pod in node.pods()] == [f"known-{NODE_NAME}"]
    for file in os.listdir(node.manifests):
        os.unlink(node.path(file))


def test_command_and_arguments_are_executed(node):
    node.launch(specs.pod("words", specs.container(args=["1000", "$(MORE)", "$$(MORE)"],
                                                   env=[{"name": "MORE", "value": "7"}])))
    assert world.cmdline(node.init("words")) == ["/bin/sh", "-c", specs.IDLE, "1000", "7", "$(MORE)"]


def test_arguments_alone_follow_the_command_of_the_image(node):
    node.launch(specs.pod("args", {"name": "main", "image": specs.IMAGE, "args": ["sleep", "1000"]}))
    assert world.cmdline(node.init("args")) == ["sleep", "1000"]


@pytest.mark.quick
def test_the_environment_matches_the_manifest(node):
    node.launch(specs.pod("env", specs.container(env=[
        {"name": "GREETING", "value": "hello"}, {"name": "BOTH", "value": "$(GREETING), $(MISSING) and $$(GREETING)"},
        {"name": "EMPTY", "value": ""}])))
    environ = world.environ(node.init("env"))
    assert environ["GREETING"] == "hello"
    assert environ["BOTH"] == "hello, $(MISSING) and $(GREETING)"
    assert environ["EMPTY"] == ""
    assert environ["PATH"] == "/bin:/usr/bin", "PATH is that of the image"
    assert environ["HOSTNAME"]
    assert "ASAN_OPTIONS" not in environ, "no variable of the agent is passed on"


def test_the_working_directory_is_created_and_entered(node):
    node.launch(specs.pod("cwd", specs.container(workingDir="/var/made/here")))
    assert os.readlink(f"/proc/{node.init('cwd')}/cwd") == "/var/made/here"


def test_a_container_has_a_separate_root_and_namespaces(node):
    node.launch(specs.pod("apart"))
    pid, shim = node.init("apart"), node.shim("apart")
    for kind in ("mnt", "pid", "ipc"):
        assert os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}"), kind
    for kind in ("net", "uts"):
        assert os.readlink(f"/proc/{pid}/ns/{kind}") == os.readlink(f"/proc/self/ns/{kind}"), kind
    assert os.readlink(f"/proc/{pid}/ns/ipc") == os.readlink(f"/proc/{shim}/ns/ipc")
    assert world.mount_at(pid, "/")["type"] == "overlay"
    assert world.mount_at(pid, "/proc")["type"] == "proc"
    assert world.mount_at(pid, "/dev/shm")["type"] == "tmpfs"
    assert "ro" in world.mount_at(pid, "/sys")["options"]
    assert "ro" in world.mount_at(pid, "/proc/sys")["options"]


def test_each_container_has_its_own_writable_root(node):
    node.launch(specs.pod("writer", specs.container("a", "echo a > /tmp/mark; " + specs.IDLE),
                          specs.container("b", specs.IDLE)))
    a, b = node.init("writer", "a"), node.init("writer", "b")
    world.wait(lambda: world.read(f"/proc/{a}/root/tmp/mark") == "a\n", "a has written")
    assert not os.path.exists(f"/proc/{b}/root/tmp/mark")


def test_container_start_and_exit_do_not_wait_for_the_disk(node):
    """Without a volatile overlay, unmounting the root waits until the whole file system is synced."""
    node.launch(specs.pod("web"))
    root = world.mount_at(node.init("web"), "/")
    assert root["type"] == "overlay"
    assert {"volatile", "fsync=volatile"} & set(root["super"])  # the name depends on the kernel


def test_mounts_of_a_pod_are_not_visible_on_the_host(node):
    node.launch(specs.pod("quiet", specs.container(volumeMounts=[specs.mount("mem", "/mem")]),
                          volumes=[{"name": "mem", "emptyDir": {"medium": "Memory"}}]))
    assert {m["at"] for m in world.mounts() if node.directory in m["at"]} == node.own_mounts


def test_a_volume_in_memory_is_kept_out_of_swap_space(node):
    node.launch(specs.pod("quiet", specs.container(volumeMounts=[specs.mount("mem", "/mem")]),
                          volumes=[{"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]))
    options = world.mount_at(node.init("quiet"), "/mem")["super"]
    # Linux before 6.4 does not know the option.
    known = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "noswap", "none", node.directory],
                           check=False, stderr=subprocess.DEVNULL).returncode == 0
    assert ("noswap" in options) == known
    assert "size=1024k" in options


def test_a_container_inherits_no_descriptor_and_few_capabilities(node):
    node.launch(specs.pod("bare"))
    pid = node.init("bare")
    assert sorted(os.listdir(f"/proc/{pid}/fd"), key=int)[:3] == ["0", "1", "2"]
    for fd in os.listdir(f"/proc/{pid}/fd"):
        assert node.directory not in os.readlink(f"/proc/{pid}/fd/{fd}")
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
    assert world.status(pid, "CapInh") == "0000000000000000"
    assert world.status(pid, "CapBnd") == "00000000a80425fb"


def test_etc_files_in_the_host_network_are_those_of_the_node(node):
    node.launch(specs.pod("hosts"))
    root = f"/proc/{node.init('hosts')}/root"
    header = "# Kubernetes-managed hosts file (host network).\n"
    assert world.read(f"{root}/etc/hosts") == header + world.read("/etc/hosts")
    assert world.read(f"{root}/etc/resolv.conf") == world.read("/etc/resolv.conf")


def test_a_file_pod_has_the_identity_that_the_kubelet_gives_it(node):
    pod = node.launch(specs.pod("web", metadata={"labels": {"app": "web"}, "annotations": {"note": "kept"}}))
    metadata = pod["metadata"]
    assert metadata["name"] == f"web-{NODE_NAME}"
    assert metadata["namespace"] == "default"
    assert len(metadata["uid"]) == 32 and int(metadata["uid"], 16) >= 0
    assert metadata["labels"] == {"app": "web"}
    annotations = metadata["annotations"]
    assert annotations["kubernetes.io/config.source"] == "file"
    assert len(annotations["kubernetes.io/config.hash"]) == 32 and int(annotations["kubernetes.io/config.hash"], 16) >= 0
    assert annotations["kubernetes.io/config.seen"]
    assert annotations["note"] == "kept"
    assert pod["spec"]["nodeName"] == NODE_NAME


def test_the_pod_has_the_namespace_of_its_manifest(node):
    node.drop(specs.pod("web", metadata={"namespace": "kube-system"}))
    node.drop(specs.pod("web"), "other.yaml")
    world.wait(lambda: node.pod("web", "kube-system") and node.pod("web"), "both pods exist")


def test_a_running_pod_has_the_phase_conditions_and_states_of_kubernetes(node):
    pod = node.launch(specs.pod("web", specs.container("one"), specs.container("two")))
    status = pod["status"]
    assert status["phase"] == "Running"
    assert status["qosClass"] == "BestEffort"
    assert status["startTime"].endswith("Z")
    for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"):
        assert condition(pod, kind)["status"] == "True", kind
    assert [c["name"] for c in status["containerStatuses"]] == ["one", "two"]
    for container in status["containerStatuses"]:
        assert container["ready"] and container["started"]
        assert container["restartCount"] == 0
        assert container["state"]["running"]["startedAt"].endswith("Z")
        assert container["lastState"] == {}
        assert container["image"] == specs.IMAGE
        assert container["imageID"]
        assert len(container["containerID"]) == len("mainstay://") + 64


def test_a_web_server_of_a_pod_answers_on_the_host_s_network(node):
    port = world.free_port()
    node.launch(specs.script_pod("httpd", "mkdir /www; echo served > /www/index.html; trap 'exit 0' TERM; "
                                 f"httpd -f -p 127.0.0.1:{port} -h /www & wait"))

    def fetch():
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as client:
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return client.makefile().read()
        except OSError:
            return ""
    world.wait(lambda: fetch().endswith("served\n"), "the server answers")


def test_the_agent_exits_if_there_is_no_cgroup_hierarchy(make_node):
    node = make_node(start=False)
    ended = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh", *node.command()],
                           env=node.environment(), capture_output=True, text=True, timeout=world.DEADLINE, check=False)
    assert ended.returncode != 0
    assert "there is no cgroup hierarchy at /sys/fs/cgroup; mount one there, such as cgroup2" in ended.stderr


def test_a_state_directory_on_overlayfs_is_an_error_in_the_log(make_node):
    node = make_node(start=False)
    layers = {name: f"{node.directory}/{name}" for name in ("lower", "upper", "work")}
    for path in layers.values():
        os.mkdir(path)
    world.run("mount", "-t", "overlay", "-o", "lowerdir={lower},upperdir={upper},workdir={work}".format(**layers),
              "overlay", node.state)
    node.own_mounts.add(node.state)
    node.start()
    assert f"The state directory {node.state} is on overlayfs" in node.said()


def test_a_state_directory_on_exfat_is_an_error_in_the_log(make_node):
    """The file system is exFAT in a separate process (FUSE), which has no links, owners or attributes."""
    node = make_node(start=False)
    shutil.rmtree(node.state)
    os.mkdir(node.state)
    image = f"{node.directory}/exfat"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    world.run("mkfs.exfat", image)
    loop = subprocess.run(["losetup", "--find", "--show", image], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    try:
        # The FUSE process keeps running; its command line must not name the node's directory.
        subprocess.run(["mount.exfat-fuse", loop, "state"], cwd=node.directory, check=True, capture_output=True)
    finally:
        world.run("losetup", "--detach", loop)
    node.own_mounts.add(node.state)
    node.preload(node.archive)
    node.start()
    assert f"The state directory {node.state} is on FUSE without extended attributes" in node.said()
    node.drop(specs.pod("web"))
    node.wait_waiting("web", "ImagePullBackOff")
    assert node.find_init("web") is None
