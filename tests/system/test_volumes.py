# SPDX-License-Identifier: Apache-2.0
"""hostPath of every type, emptyDir on disk and in memory."""

import os
import socket
import stat

import pytest
import specs
import world


def launch_with(node, name, volume, **mount):
    node.drop(specs.pod(name, specs.container(volumeMounts=[specs.mount("v", "/v", **mount)]),
                        volumes=[{"name": "v", **volume}]))


def run_with(node, name, volume, **mount):
    launch_with(node, name, volume, **mount)
    node.wait_running(name)
    return f"/proc/{node.init(name)}/root/v"


def host(path, kind=None):
    return {"hostPath": {"path": path, **({"type": kind} if kind else {})}}


@pytest.mark.parametrize("kind", [None, "", "Directory", "DirectoryOrCreate"])
def test_a_host_directory_is_visible_in_the_container(node, kind):
    with open(f"{node.data}/file", "w", encoding="utf-8") as file:
        file.write("from the host")
    seen = run_with(node, "dir", host(node.data, kind))
    assert world.read(f"{seen}/file") == "from the host"
    with open(f"{seen}/back", "w", encoding="utf-8") as file:
        file.write("from the container")
    assert world.read(f"{node.data}/back") == "from the container"


def test_a_directory_is_created_if_its_type_permits_it(node):
    run_with(node, "made", host(f"{node.data}/a/b", "DirectoryOrCreate"))
    assert stat.S_IMODE(os.stat(f"{node.data}/a/b").st_mode) == 0o755


@pytest.mark.parametrize("kind", ["File", "FileOrCreate"])
def test_a_host_file_is_visible_in_the_container(node, kind):
    with open(f"{node.data}/file", "w", encoding="utf-8") as file:
        file.write("content")
    assert world.read(run_with(node, "file", host(f"{node.data}/file", kind))) == "content"


def test_a_file_is_created_if_its_type_permits_it(node):
    run_with(node, "made", host(f"{node.data}/file", "FileOrCreate"))
    assert stat.S_IMODE(os.stat(f"{node.data}/file").st_mode) == 0o644


def test_a_host_socket_is_visible_in_the_container(node):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{node.data}/s")
        seen = run_with(node, "socket", host(f"{node.data}/s", "Socket"))
        assert stat.S_ISSOCK(os.stat(seen).st_mode)


def test_a_host_character_device_is_visible_in_the_container(node):
    seen = run_with(node, "chardev", host("/dev/null", "CharDevice"))
    assert stat.S_ISCHR(os.stat(seen).st_mode)


def test_a_host_block_device_is_visible_in_the_container(node):
    os.mknod(f"{node.data}/block", stat.S_IFBLK | 0o600, os.makedev(7, 99))
    seen = run_with(node, "blockdev", host(f"{node.data}/block", "BlockDevice"))
    assert os.stat(seen).st_rdev == os.makedev(7, 99)


@pytest.mark.parametrize("kind", ["Directory", "File", "Socket", "CharDevice", "BlockDevice"])
def test_pod_waits_for_a_missing_or_mistyped_host_path(node, kind):
    path = f"{node.data}/missing"
    launch_with(node, "missing", host(path, kind))
    node.wait_pod("missing", lambda pod: pod["status"]["phase"] == "Pending" and path in str(pod["status"]),
                  "reports which path is missing")
    os.mkfifo(path)
    world.wait(lambda: path in str(node.pod("missing")["status"]), "still reports it")
    world.wait(lambda: set(world.pids_of_root(node.cgroup_root)) <= node.shim_processes(), "no process runs but shims")


def test_a_pod_starts_when_its_host_path_appears(node):
    launch_with(node, "late", host(f"{node.data}/late", "Directory"))
    node.wait_pod("late", lambda pod: f"{node.data}/late" in str(pod["status"]), "reports which path is missing")
    os.mkdir(f"{node.data}/late")
    node.wait_running("late")


def test_a_read_only_mount_is_read_only(node):
    run_with(node, "ro", host(node.data), readOnly=True)
    assert "ro" in world.mount_at(node.init("ro"), "/v")["options"]


def test_a_mount_does_not_propagate_to_the_host_by_default(node):
    run_with(node, "private", host(node.data))
    assert not any(tag.startswith(("shared", "master")) for tag in world.mount_at(node.init("private"), "/v")["tags"])


@pytest.mark.quick
def test_an_empty_dir_is_shared_by_containers_and_writable_by_all(node):
    mounts = [specs.mount("shared", "/shared")]
    node.launch(specs.pod("two", specs.container("writer", "echo word > /shared/f; " + specs.IDLE, volumeMounts=mounts),
                          specs.container("reader", volumeMounts=mounts), volumes=[{"name": "shared", "emptyDir": {}}]))
    root = f"/proc/{node.init('two', 'reader')}/root/shared"
    world.wait(lambda: world.read(f"{root}/f") == "word\n", "the other container's file is seen")
    assert stat.S_IMODE(os.stat(root).st_mode) == 0o777


def test_an_empty_dir_outlives_a_restart_of_the_container_and_not_the_pod(node):
    node.drop(specs.pod("keeper", specs.container(
        script="echo x >> /v/f; [ $(wc -l < /v/f) -gt 1 ] || exit 1; " + specs.IDLE,
        volumeMounts=[specs.mount("v", "/v")]), volumes=[{"name": "v", "emptyDir": {}}]))
    node.wait_restarts("keeper", 1)
    content = f"/proc/{node.init('keeper')}/root/v/f"
    world.wait(lambda: world.read(content) == "x\nx\n", lambda: f"both have written: {world.read(content)}")
    uid = node.pod("keeper")["metadata"]["uid"]
    assert os.path.isdir(f"{node.state}/pods/{uid}/volumes/kubernetes.io~empty-dir/v")
    node.remove("keeper")
    node.wait_gone("keeper")
    world.wait(lambda: not os.path.exists(f"{node.state}/pods/{uid}"), "the directory is gone")


def test_an_empty_dir_in_memory_is_a_tmpfs_of_its_size(node):
    seen = run_with(node, "memory", {"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}})
    mount = world.mount_at(node.init("memory"), "/v")
    assert mount["type"] == "tmpfs"
    assert "size=1024k" in mount["super"]
    assert stat.S_IMODE(os.stat(seen).st_mode) == 0o1777


def test_a_part_of_an_empty_dir_in_memory_has_the_mode_of_the_volume(node):
    mounts = [specs.mount("v", "/v"), specs.mount("v", "/part", subPath="part")]
    node.launch(specs.pod("memory", specs.container(volumeMounts=mounts), securityContext={"fsGroup": 1234},
                          volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}]))
    root = f"/proc/{node.init('memory')}/root"
    for path in ("/v", "/part"):
        seen = os.stat(root + path)
        assert (stat.S_IMODE(seen.st_mode), seen.st_gid) == (0o3777, 1234)


def test_a_volume_mounted_at_etc_hosts_replaces_the_pods_file(node):
    with open(f"{node.data}/hosts", "w", encoding="utf-8") as file:
        file.write("mine\n")
    node.launch(specs.pod("own", specs.container(volumeMounts=[specs.mount("v", "/etc/hosts")]),
                          volumes=[specs.host_path("v", f"{node.data}/hosts", type="File")]))
    assert world.read(f"/proc/{node.init('own')}/root/etc/hosts") == "mine\n"


def test_the_pods_files_are_mounted_into_a_volume_over_etc(node):
    node.launch(specs.pod("over-etc", specs.container(volumeMounts=[specs.mount("etc", "/etc")]),
                          volumes=[{"name": "etc", "emptyDir": {}}]))
    root = f"/proc/{node.init('over-etc')}/root"
    assert world.read(f"{root}/etc/hosts").startswith("# Kubernetes-managed hosts file")
    assert world.read(f"{root}/etc/hostname").strip()


def test_the_pods_dev_shm_is_mounted_over_a_host_path_of_dev(node):
    node.launch(specs.pod("devices", specs.container(volumeMounts=[specs.mount("dev", "/dev")]),
                          volumes=[specs.host_path("dev", "/dev")]))
    root = f"/proc/{node.init('devices')}/root"
    assert os.stat(f"{root}/dev/null").st_dev == os.stat("/dev/null").st_dev
    assert os.stat(f"{root}/dev/shm").st_dev != os.stat("/dev/shm").st_dev


def test_a_downward_api_volume_over_etc_hides_the_pods_files(node):
    fields = {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}
    node.launch(specs.pod("fields", specs.container(volumeMounts=[specs.mount("etc", "/etc")]),
                          volumes=[{"name": "etc", "downwardAPI": fields}]))
    root = f"/proc/{node.init('fields')}/root"
    assert world.read(f"{root}/etc/name") .startswith("fields")
    assert not os.path.exists(f"{root}/etc/hosts")


def test_a_recreated_sandbox_keeps_the_owner_of_an_empty_dir(node):
    script = "test -e /v/made || { touch /v/made; chmod 0700 /v; }; " + specs.IDLE
    node.launch(specs.pod("kept", specs.container(script=script, volumeMounts=[specs.mount("v", "/v")]),
                          volumes=[{"name": "v", "emptyDir": {}}]))
    seen = f"/proc/{node.init('kept')}/root/v"
    world.wait(lambda: stat.S_IMODE(os.stat(seen).st_mode) == 0o700, "the container has closed it")
    world.kill_all([node.shim("kept")])
    node.wait_restarts("kept", 1)
    assert stat.S_IMODE(os.stat(f"/proc/{node.init('kept')}/root/v").st_mode) == 0o700
    assert os.path.exists(f"/proc/{node.init('kept')}/root/v/made")
