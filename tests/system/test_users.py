# SPDX-License-Identifier: Apache-2.0
"""User namespaces of pods (hostUsers: false): IDs on the node, ownership of files, permissions, and that no two pods
share IDs."""

import os
import stat

import pause_process
import pytest
import specs
import world
from network import NetworkNode

IDS = 65536


@pytest.fixture(name="net")
def fixture_net(archive):
    node = NetworkNode(archive)
    yield node
    node.finish()


def pod_with_user_namespace(name, script=specs.IDLE, volumes=(), mounts=(), container=None, **spec):
    return specs.pod(name, specs.container(script=script, volumeMounts=list(mounts), **(container or {})),
                     hostNetwork=False, hostUsers=False, volumes=list(volumes), **spec)


def first_id(pid, kind="uid"):
    """The ID on the node of the pod's root, from the ID map, which is checked completely."""
    inside, outside, count = (int(word) for word in world.read(f"/proc/{pid}/{kind}_map").split())
    assert (inside, count) == (0, IDS)
    return outside


def namespace(pid, kind):
    return os.readlink(f"/proc/{pid}/ns/{kind}")


def test_root_of_the_pod_is_unprivileged_on_the_node(net):
    net.launch(pod_with_user_namespace("users", "touch /file; id -u; " + specs.IDLE))
    world.wait(lambda: net.logged("users") == ["0"], lambda: f"root inside: {net.log_lines('users')}")
    init = net.init("users")
    first = first_id(init)
    assert first == first_id(init, "gid") and first >= 0x80000 and first % IDS == 0
    assert os.stat(f"/proc/{init}").st_uid == first
    assert namespace(init, "user") != namespace("self", "user")
    assert os.stat(f"/proc/{init}/root/file").st_uid == first
    assert os.stat(f"/proc/{init}/root/bin/busybox").st_uid == first, "the image's files belong to root of the user namespace"
    assert os.stat(f"/proc/{init}/root").st_uid == first


def test_the_namespaces_of_the_pod_belong_to_its_users(net):
    """Root of the pod may listen on a privileged port of the pod's network."""
    net.launch(pod_with_user_namespace("own", "sysctl -w net.ipv4.ip_unprivileged_port_start=1024 2>&1; "
                          "while :; do echo hello | nc -l -p 80; done & " + specs.IDLE))
    world.wait(lambda: net.fetch(net.address("own"), 80) == "hello\n", "root listens at port 80")
    init = net.init("own")
    assert world.mount_at(init, "/sys")["type"] == "sysfs"
    assert world.mount_at(init, "/dev/mqueue")["type"] == "mqueue"
    assert os.stat(f"/proc/{init}/root/dev/mqueue").st_uid == first_id(init)


def test_a_directory_that_pod_users_cannot_traverse_is_an_error(net):
    os.chmod(net.directory, 0o700)
    net.drop(pod_with_user_namespace("shut"))
    assert f"cannot pass through {net.directory}" in net.wait_waiting("shut", "CreateContainerError")
    os.chmod(net.directory, 0o711)


def test_pods_have_distinct_ids_and_free_ids_are_reused(net):
    for name in ("one", "two"):
        net.drop(pod_with_user_namespace(name))
    for name in ("one", "two"):
        net.wait_running(name)
    one, two = first_id(net.init("one")), first_id(net.init("two"))
    assert one != two
    net.restart()
    net.launch(pod_with_user_namespace("three"))
    assert first_id(net.init("three")) not in (one, two)
    uid = net.pod("one")["metadata"]["uid"]
    net.remove("one")
    net.wait_gone("one")
    world.wait(lambda: not os.path.exists(f"{net.state}/pods/{uid}"), "nothing is left")
    net.launch(pod_with_user_namespace("four"))
    assert first_id(net.init("four")) == one


def test_a_pod_keeps_its_id_range_when_its_shim_dies(net):
    net.launch(pod_with_user_namespace("kept"))
    first, init = first_id(net.init("kept")), net.init("kept")
    os.kill(net.shim("kept"), 9)
    world.wait(lambda: net.find_init("kept") not in (None, init), "it runs again")
    assert first_id(net.init("kept")) == first


def test_containers_of_a_pod_have_the_same_users(net):
    net.launch(specs.pod("pair", specs.container("a"), specs.container("b"), hostNetwork=False, hostUsers=False))
    assert namespace(net.init("pair", "a"), "user") == namespace(net.init("pair", "b"), "user")


def test_files_in_volumes_have_on_the_node_the_owner_that_they_have_in_the_pod(net):
    with open(f"{net.data}/mine", "w", encoding="ascii") as file:
        file.write("from the node")
    os.chown(f"{net.data}/mine", 1000, 1000)
    volumes = [specs.host_path("host", net.data), {"name": "scratch", "emptyDir": {}},
               {"name": "memory", "emptyDir": {"medium": "Memory"}}]
    mounts = [specs.mount(name, f"/{name}") for name in ("host", "scratch", "memory")] + \
        [specs.mount("scratch", "/part", subPath="a/b")]
    net.launch(pod_with_user_namespace("files", "stat -c %u:%g /host/mine; for d in /host /scratch /memory /part; do "
                            "touch $d/new && chown 5:6 $d/new && stat -c %u:%g $d/new; done; " + specs.IDLE,
                   volumes, mounts))
    world.wait(lambda: net.logged("files") == ["1000:1000"] + ["5:6"] * 4,
               lambda: f"owners inside: {net.log_lines('files')}")
    init = net.init("files")
    assert (os.stat(f"{net.data}/new").st_uid, os.stat(f"{net.data}/new").st_gid) == (5, 6)
    assert os.stat(f"/proc/{init}/root/host/new").st_uid == first_id(init) + 5, "the owner is mapped into the user namespace"


def test_config_maps_and_secrets_are_readable_inside_and_closed_outside(net):
    net.drop(specs.text({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "v"}}),
             "secret.yaml")
    net.launch(pod_with_user_namespace("secrets", volumes=[{"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}}],
                   mounts=[specs.mount("s", "/s")]))
    init = net.init("secrets")
    assert world.read(f"/proc/{init}/root/s/k") == "v"
    uid = net.pod("secrets")["metadata"]["uid"]
    assert stat.S_IMODE(os.stat(f"{net.run}/pods/{uid}/volumes").st_mode) == 0o700
    os.unlink(net.path("secret.yaml"))


def test_the_pod_s_root_may_write_its_hosts_file(net):
    net.launch(pod_with_user_namespace("hosts", "echo 192.0.2.1 x >> /etc/hosts && echo written; " + specs.IDLE))
    world.wait(lambda: net.logged("hosts") == ["written"], lambda: f"it is permitted: {net.log_lines('hosts')}")


def test_a_shared_process_namespace_belongs_to_the_pod_s_users(net):
    net.launch(specs.pod("shared", specs.container("a"), specs.container("b", "ps | grep -q mainstay-pause && "
                                                                            "echo seen; " + specs.IDLE),
                         hostNetwork=False, hostUsers=False, shareProcessNamespace=True))
    world.wait(lambda: net.logged("shared", "b") == ["seen"], lambda: f"{net.log_lines('shared', 'b')}")


def test_the_pause_process_in_a_user_namespace_has_no_access_to_the_node(net, tmp_path):
    pause_process.expect_nothing_of_the_node(net, tmp_path / "secret", hostNetwork=False, hostUsers=False)


def test_proc_mount_unmasked_is_applied_in_a_user_namespace(net):
    net.launch(pod_with_user_namespace("unmasked", container={"securityContext": {"procMount": "Unmasked"}}))
    net.launch(pod_with_user_namespace("masked"))
    over = {name: [m["at"] for m in world.mounts(net.init(name)) if m["at"].startswith("/proc/")]
            for name in ("masked", "unmasked")}
    assert not over["unmasked"]
    assert "/proc/sys" in over["masked"]


def test_terminal_and_restart_work_in_a_user_namespace(net):
    net.launch(pod_with_user_namespace("again", "tty\n" + specs.IDLE, container={"tty": True}))
    world.kill_all([net.init("again")])
    net.wait_restarts("again", 1)
    for attempt in range(2):
        world.wait(lambda attempt=attempt: [line.rstrip("\r") for line in net.logged("again", attempt=attempt)] == ["/dev/pts/0"],
                   lambda attempt=attempt: f"{net.log_lines('again', attempt=attempt)}")


def test_fs_group_and_run_as_user_are_ids_of_the_pod(net):
    net.launch(pod_with_user_namespace("ids", "id -u; touch /v/f && stat -c %u:%g /v/f; " + specs.IDLE,
                   [{"name": "v", "emptyDir": {}}], [specs.mount("v", "/v")],
                   securityContext={"runAsUser": 1234, "fsGroup": 4321}))
    world.wait(lambda: net.logged("ids") == ["1234", "1234:4321"], lambda: f"{net.log_lines('ids')}")
    assert os.stat(f"/proc/{net.init('ids')}").st_uid == first_id(net.init("ids")) + 1234
