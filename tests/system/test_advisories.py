# SPDX-License-Identifier: Apache-2.0
"""Escapes that public advisories of runc, containerd, CRI-O, podman and the kubelet describe, tried against this agent
with the runc of the machine. Each test examines the node: its files, their modes, its mounts and its settings."""

import hashlib
import io
import json
import os
import re
import stat
import subprocess
import tarfile

import harness
import layered_image
import pytest
import specs
import world
from layered_image import Link
from registry import INDEX_TYPE, MANIFEST_TYPE, Blobs, digest_of, document
from test_ephemeral import add_ephemeral, ephemeral, post
from test_image_isolation import Store, forge, login, set_manifest

READY = "echo ready; " + specs.IDLE
SECRET = "only the node may read this"
APP = {"etc/passwd": b"root:x:0:0::/:/bin/sh\napp:x:1000:1000::/:/bin/sh\n", "etc/group": b"root:x:0:\napp:x:1000:\nteam:x:88:app\n"}


def tree(**more):
    with open("/bin/busybox", "rb") as file:
        busybox = file.read()
    tools = {f"bin/{tool}": Link("busybox") for tool in ("sh", "cat", "ls", "sleep", "id", "ln", "mkdir", "mv", "yes", "head")}
    return {"bin/": b"", "bin/busybox": busybox, **tools, "tmp/": b"", **more}


ORDINARY = {"proc/": b"", "sys/": b"", "dev/": b"", "etc/": b"", **APP}


def add_image(node, name, *layers, **config):
    """Adds an image; layers are dictionaries or the bytes of a tar. Returns the reference."""
    reference = f"docker.io/library/{name}:1"
    path = layered_image.save(f"{node.data}/{name}.tar", reference,
                              [layer if isinstance(layer, bytes) else layered_image.tar(layer) for layer in layers],
                              {"Env": ["PATH=/bin"], **config})
    node.preload(path, f"{name}.tar")
    return reference


def victim(node, name="victim"):
    """A file of the node with a secret in it."""
    path = os.path.join(node.data, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(SECRET + "\n")
    os.chmod(path, 0o600)
    return path


def make_outside(node):
    """A directory of the node that no container may reach."""
    path = os.path.join(node.data, "outside")
    os.mkdir(path)
    return path


def assert_untouched(path):
    assert world.read(path) == SECRET + "\n" and stat.S_IMODE(os.lstat(path).st_mode) == 0o600 and os.lstat(path).st_nlink == 1


def settle(node, name, container="main"):
    """Waits until a container runs, has ended, or is reported not to start; returns its log, and the state."""
    def has_settled(pod):
        status = harness.container_status(pod, container)
        reason = harness.waiting_state(pod, container).get("reason", "")
        return pod["status"].get("phase") in ("Failed", "Succeeded") or "running" in status.get("state", {}) or \
            status.get("restartCount", 0) > 0 or reason.endswith(("Error", "BackOff"))
    pod = node.wait_pod(name, has_settled, "has started or failed")
    state = harness.container_status(pod, container).get("state", {})
    if "running" in state:
        world.wait(lambda: "ready" in node.logged(name, container), f"{name} has printed what it sees")
    return node.logged(name, container), state


def configurations(node, name):
    """The configurations that the runtime gets, of all containers of a pod."""
    found, top = [], os.path.join(node.run, "pods", node.pod(name)["metadata"]["uid"])
    for parent, _, files in os.walk(top):
        found += [json.loads(world.read(os.path.join(parent, file))) for file in files if file == "config.json"]
    return found


def sums(*paths):
    found = {}
    for path in paths:
        with open(path, "rb") as file:
            found[path] = (hashlib.sha256(file.read()).hexdigest(), os.stat(path).st_mode, os.stat(path).st_uid)
    return found


# ---- runc ----

def test_cve_2019_5736_a_container_does_not_overwrite_the_runtime_or_the_shim(node):
    """The first process of the container is the program that starts it, and tries to overwrite that program's file."""
    image = add_image(node, "overwriter", {**tree(**ORDINARY), "evil": b"#!/proc/self/exe\n"})
    programs = ["/usr/sbin/runc", *map(harness.program, ("mainstay-shim", "mainstayd", "mainstay"))]
    before = sums(*programs)
    node.drop(specs.pod("first", specs.container(image=image, command=["/evil"]), restartPolicy="Never"))
    script = "while :; do for exe in /proc/[0-9]*/exe; do echo evil >$exe; done 2>/dev/null; done & " + READY
    node.launch(specs.pod("later", specs.container(image=image, script=script)))
    for _ in range(5):
        node.cli("exec", "later", "--", "/evil")
        node.cli("exec", "later", "--", "head", "-c1", "/proc/self/exe")
    settle(node, "first")
    assert sums(*programs) == before


@pytest.mark.parametrize("how", ["volume-of-the-image", "link", "link-to-volume"])
def test_cve_2019_16884_and_2023_27561_proc_is_the_procfs_of_the_container(node, how):
    """An image or a volume replaces /proc with a directory, so that the writes of the runtime have no effect."""
    fake = {"fake/": b"", "fake/self/": b"", "fake/self/attr/": b"", "fake/self/attr/exec": b"", "fake/self/status": b"fake"}
    proc = {"proc/": b""} if how == "volume-of-the-image" else {"proc": Link("/fake" if how == "link" else "/volume")}
    rest = {name: data for name, data in ORDINARY.items() if name != "proc/"}
    image = add_image(node, "liar", {**tree(**rest), **fake, **proc},
                      **({"Volumes": {"/proc": {}}} if how == "volume-of-the-image" else {}))
    node.drop(specs.pod("liar", specs.container(image=image, script=READY, volumeMounts=[specs.mount("v", "/volume")]),
                        volumes=[{"name": "v", "emptyDir": {}}]))
    _, state = settle(node, "liar")
    if "running" in state:
        init = node.init("liar")
        at = "/proc" if how == "volume-of-the-image" else os.readlink(f"/proc/{init}/root/proc")
        assert world.mount_at(init, at)["type"] == "proc" and world.mount_at(init, f"{at}/sys")
        assert world.read(f"/proc/{init}/root{at}/self/status") != "fake"
    else:
        assert "/proc" in json.dumps(state) or "proc" in json.dumps(node.status("liar")), state


@pytest.mark.parametrize("name", ["sys", "dev", "proc"])
def test_cve_2023_28642_a_link_to_the_nodes_kernel_files_is_not_followed(node, name):
    """The directory at which a kernel file system is mounted is a link out of the image."""
    outside = make_outside(node)
    rest = {key: data for key, data in ORDINARY.items() if key != f"{name}/"}
    image = add_image(node, f"linked-{name}", {**tree(**rest), name: Link("/../../../../../../.." + outside)})
    before = {(mount["at"], mount["type"]) for mount in world.mounts() if outside in mount["at"]}
    node.drop(specs.pod("linked", specs.container(image=image, script=READY)))
    _, state = settle(node, "linked")
    assert f"'/{name}' of the image is a symbolic link" in state["waiting"]["message"]
    assert {(mount["at"], mount["type"]) for mount in world.mounts() if outside in mount["at"]} == before == set()
    assert os.listdir(outside) == []


def swapper(volume, directory, target):
    """A container that repeatedly exchanges a directory of a volume with a link, as long as it runs."""
    return specs.container("swapper", f"trap 'exit 0' TERM; cd {volume}; mkdir -p {directory}; ln -sfn {target} link; "
                                      f"while :; do mv {directory} aside; mv link {directory}; mv {directory} link; mv aside "
                                      f"{directory}; done 2>/dev/null", volumeMounts=[specs.mount("v", volume)])


def roots_of_mounts(pid, prefix):
    """The directories that are mounted below a path, named by their paths within their file systems."""
    return {(mount["at"], mount["root"]) for mount in world.mounts(pid) if mount["at"].startswith(prefix)}


def watch_race(node, prefix):
    """Waits until the container has been started repeatedly; returns the mounts that were seen below the path."""
    seen = set()

    def has_raced():
        pid = node.find_init("race")
        if pid:
            seen.update(roots_of_mounts(pid, prefix))
        status = node.status("race")
        return status.get("restartCount", 0) >= 6 or "BackOff" in json.dumps(status)
    world.wait(has_raced, lambda: node.describe_pod("race", "has been started again and again"))
    return seen


def assert_mounts_stay_in_pod(node, prefix):
    seen, uid = watch_race(node, prefix), node.pod("race")["metadata"]["uid"]
    assert all(uid in root for _, root in seen), seen


def test_cve_2021_30465_a_volume_with_an_exchanged_directory_leads_to_no_other_directory(node):
    """Another container of the pod exchanges the mount point of a volume that is inside another volume."""
    outside = make_outside(node)
    main = specs.container(script="sleep 0.2", volumeMounts=[
        specs.mount("v", "/outer"), *(specs.mount("w", f"/outer/point/{i}") for i in range(4))])
    node.drop(specs.pod("race", main, swapper("/v", "point", outside),
                        volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]))
    assert_mounts_stay_in_pod(node, "/outer")
    assert not [mount for mount in world.mounts() if mount["at"].startswith(outside)]


def test_cve_2024_45310_no_mount_point_is_created_behind_an_exchanged_link(node):
    outside = make_outside(node)
    main = specs.container(script="sleep 0.2", volumeMounts=[
        specs.mount("v", "/outer"), *(specs.mount("w", f"/outer/point/{i}/deep/{i}") for i in range(4))])
    node.drop(specs.pod("race", main, swapper("/v", "point", outside),
                        volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]))
    watch_race(node, "/outer")
    assert os.listdir(outside) == []


def test_cve_2022_29162_an_exec_session_has_no_inheritable_capability(shared_node):
    for context in ({}, {"runAsUser": 1000}, {"capabilities": {"add": ["NET_ADMIN"]}}):
        name = f"exec-{len(context)}-{context.get('runAsUser', 0)}"
        shared_node.launch(specs.pod(name, specs.container(script=READY, securityContext=context)))
        said = shared_node.cli("exec", name, "--", "cat", "/proc/self/status").stdout
        assert int(re.search(r"^CapInh:\s*(\w+)$", said, re.M).group(1), 16) == 0, said


@pytest.mark.parametrize("fields", [{}, {"hostUsers": False, "hostNetwork": False}], ids=["plain", "user-namespace"])
def test_cve_2023_25809_control_groups_are_read_only(shared_node, fields):
    name = "groups-" + str(len(fields))
    shared_node.launch(specs.pod(name, specs.container(
        script=f"grep ' cgroup' /proc/self/mounts | while read _ d _; do mkdir $d/evil 2>/dev/null && echo made $d; echo $d; done; {READY}"),
        **fields))
    said, _ = settle(shared_node, name)
    assert len(said) > 1 and not [line for line in said if line.startswith("made")], said


@pytest.mark.parametrize("where", ["pod", "image"])
@pytest.mark.parametrize("number", [3, 6, 7, 8, 9, 12])
def test_cve_2024_21626_no_descriptor_of_the_runtime_is_a_working_directory(shared_node, where, number):
    name, directory, path = f"leak-{where}-{number}", f"/proc/self/fd/{number}", victim(shared_node)
    script = f"for up in . .. ../.. ../../.. ../../../.. ../../../../..; do cat $up{path}; done 2>/dev/null; {READY}"
    if where == "image":
        image = add_image(shared_node, name, tree(**ORDINARY), WorkingDir=directory)
        main = specs.container(image=image, script=script)
    else:
        main = specs.container(script=script, workingDir=directory)
    shared_node.drop(specs.pod(name, main))
    said, _ = settle(shared_node, name)
    assert SECRET not in said
    shared_node.remove(name)
    shared_node.wait_gone(name)


# A shell needs /dev/null for processes that it starts in the background.
BARE = "echo ready; exec sleep 100000"


def covered(how, image=None):
    """The fields of the container and the volumes of the pod with which a volume covers /dev; other containers see that
    volume at /v."""
    volume = {"host-path": specs.host_path("v", "PLACE"), "memory": {"name": "v", "emptyDir": {"medium": "Memory"}}}.get(
        how, {"name": "v", "emptyDir": {}})
    at = {"through-volume": "/a/x", "through-image": "/d", "null": "/dev/null"}.get(how, "/dev")
    mount = specs.mount("v", at, **({"subPath": "null" if how == "null" else "part"} if how in ("null", "sub-path") else {}))
    return {"volumeMounts": [specs.mount("a", "/a"), mount] if how == "through-volume" else [mount], **({"image": image} if image else {})}, \
        [volume, {"name": "a", "emptyDir": {}}]


def cover_dev(node, how, prepare, script=BARE, more=(), **fields):
    """A pod 'covered' with a volume at /dev, in which 'prepare' has run."""
    image = add_image(node, "aliased", {**tree(**ORDINARY), "d": Link("/dev")}) if how == "through-image" else None
    container, volumes = covered(how, image)
    if how == "host-path":
        volumes[0]["hostPath"]["path"] = node.data + "/devices"
        os.mkdir(node.data + "/devices")
    mounts = [specs.mount("v", "/v", **({"subPath": "part"} if how == "sub-path" else {})), specs.mount("a", "/a")]
    init = specs.container("prepare", f"ln -s /dev /a/x; cd /v; {prepare}", volumeMounts=mounts)
    main = specs.container(script=script, **container, **fields.pop("container", {}))
    node.drop(specs.pod("covered", main, *more, initContainers=[init], volumes=volumes, **fields))


def assert_masked(node, name, container="main"):
    """Checks from outside of the container that the paths are masked."""
    init = node.init(name, container)
    for path in MASKED:
        if os.path.exists(path):
            mount = world.mount_at(init, path)
            assert mount and mount["type"] not in ("proc", "sysfs"), (path, mount)
            assert not os.path.isdir(path) or os.listdir(f"/proc/{init}/root{path}") == [], path
    for path in ("/proc/sys", "/proc/sysrq-trigger"):
        assert not os.path.exists(path) or "ro" in world.mount_at(init, path)["options"], path


MASKED = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/proc/acpi", "/proc/interrupts", "/sys/firmware")


@pytest.mark.parametrize("null", ["ln -s /proc/keys null", "ln -s ../proc/kcore null", "ln -s /proc/sys/kernel/core_pattern null",
                                  "ln -s missing null", "ln -s null null", "true", ": >null", "ln -s /sys/firmware null", "mkdir null"])
def test_cve_2025_31133_kernel_paths_are_masked_whatever_replaces_dev_null_in_a_volume(node, null):
    """runc before 1.2.8 mounts the target of /dev/null over these paths, or nothing if /dev/null is missing."""
    cover_dev(node, "volume", null)
    _, state = settle(node, "covered")
    if "running" in state:
        assert_masked(node, "covered")
    else:  # runc tries to access it
        assert null not in (": >null", "ln -s /proc/keys null"), state


@pytest.mark.parametrize("how", ["memory", "host-path", "sub-path", "through-volume", "through-image", "null", "user-namespace"])
def test_cve_2025_31133_kernel_paths_are_masked_however_dev_is_covered(node, how):
    fields = {"hostUsers": False, "hostNetwork": False} if how == "user-namespace" else {}
    cover_dev(node, how, ": >null" if how == "null" else "ln -s /proc/keys null", **fields)
    state = node.wait_pod("covered", lambda pod: set(harness.container_status(pod).get("state", {})) - {"waiting"} or harness.waiting_state(
        pod).get("reason") == "RunContainerError", "has started or failed")
    if "running" in harness.container_status(state)["state"]:
        assert_masked(node, "covered")
    else:  # the runtime opens it for writing
        assert how.startswith("through") and "read-only file system" in json.dumps(state)


def test_cve_2025_31133_kernel_paths_are_masked_when_a_container_replaces_dev_null(node):
    cover_dev(node, "volume", ": >null", script="rm -f /dev/null; ln -s /proc/keys /dev/null; echo ready; exec sleep 100000")
    said, state = settle(node, "covered")
    assert "running" in state, (said, state)
    world.kill_all([node.init("covered")])
    node.wait_restarts("covered", 1)
    assert_masked(node, "covered")


def test_cve_2025_31133_kernel_paths_are_masked_while_dev_null_is_exchanged(node):
    main = specs.container(script="grep ' /proc/keys ' /proc/self/mountinfo || echo unmasked; sleep 0.2",
                           volumeMounts=[specs.mount("v", "/dev")])
    swap = specs.container("swapper", "trap 'exit 0' TERM; cd /v; while :; do ln -s /proc/keys a; mv a null; : >b; mv b null; done",
                           volumeMounts=[specs.mount("v", "/v")])
    node.drop(specs.pod("race", main, swap, volumes=[{"name": "v", "emptyDir": {}}]))
    seen = watch_race(node, "/proc/keys")
    assert not [root for _, root in seen if root == "/keys"], seen
    directory = os.path.join(node.log_directory("race"), "main")
    said = "".join(world.read(os.path.join(directory, name)) or "" for name in os.listdir(directory))
    assert "unmasked" not in said and " /keys /proc/keys " not in said, said


def test_cve_2025_31133_the_devices_of_the_node_can_still_be_mounted(node):
    """Many daemons mount the devices of the node without being privileged."""
    node.launch(specs.pod("daemon", specs.container(script=READY, volumeMounts=[specs.mount("dev", "/dev")]),
                          volumes=[specs.host_path("dev", "/dev")]))
    assert_masked(node, "daemon")


@pytest.mark.parametrize("at,links", [("/dev", ("pts/0", "console")), ("/dev", ("console",)), ("/dev", ("ptmx",)), ("/dev/pts", ("0", "ptmx"))])
@pytest.mark.parametrize("host_pid", [False, True], ids=["own-pids", "host-pids"])
def test_cve_2025_52565_a_terminal_is_not_mounted_or_created_through_links(node, at, links, host_pid):
    path = victim(node)
    target = f"/proc/1/root{path}" if host_pid else "/proc/sysrq-trigger"
    prepare = specs.container("prepare", "mkdir -p /v/pts; " + "; ".join(f"ln -s {target} /v/{link}" for link in links),
                              volumeMounts=[specs.mount("v", "/v")])
    node.drop(specs.pod("console", specs.container(script=BARE, tty=True, volumeMounts=[specs.mount("v", at)]), hostPID=host_pid,
                        initContainers=[prepare], volumes=[{"name": "v", "emptyDir": {}}]))
    assert "'tty'" in node.wait_waiting("console", "RunContainerError")
    assert_untouched(path)


@pytest.mark.parametrize("link", ["/proc/1/root", "../../../proc/1/root", "/proc/self/root", "/proc/1/cwd/../../../../..", "/p/1/root"])
@pytest.mark.parametrize("where", ["volume", "sub-path", "image"])
def test_cve_2024_21626_a_link_leads_no_working_directory_out_of_the_container(node, where, link):
    """The runtime creates the working directory as root of the node; the container sees the processes of the node."""
    outside = make_outside(node)
    image = add_image(node, "links", {**tree(**ORDINARY), "p": Link("/proc"), "v/": b"", "link": Link(link)})
    prepare = specs.container("prepare", f"mkdir /v/part; ln -s {link} /v/link; ln -s {link} /v/part/link",
                              volumeMounts=[specs.mount("v", "/v")])
    mounts = [] if where == "image" else [specs.mount("v", "/v", **({"subPath": "part"} if where == "sub-path" else {}))]
    main = specs.container(image=image, script=READY, volumeMounts=mounts,
                           workingDir=f"{'' if where == 'image' else '/v'}/link{outside}/evil")
    node.drop(specs.pod("cwd", main, hostPID=True, initContainers=[prepare], volumes=[{"name": "v", "emptyDir": {}}]))
    assert "working directory" in node.wait_waiting("cwd", "RunContainerError")
    assert os.listdir(outside) == []


@pytest.mark.parametrize("users", [{}, {"hostUsers": False, "hostNetwork": False}], ids=["plain", "user-namespace"])
def test_cve_2024_21626_a_working_directory_behind_a_link_within_the_container_is_created(node, users):
    prepare = specs.container("prepare", "ln -s /tmp/there /v/link; ln -s . /v/here; mkdir /v/there", volumeMounts=[specs.mount("v", "/v")])
    mounts = [specs.mount("v", "/v"), specs.mount("v", "/tmp/there", subPath="there")]
    main = specs.container(script="pwd -P; stat -c %u:%g:%a .; " + READY, workingDir="/v/here/./here/link/new/one", volumeMounts=mounts)
    node.drop(specs.pod("cwd", main, initContainers=[prepare], volumes=[{"name": "v", "emptyDir": {}}], **users))
    said, state = settle(node, "cwd")
    assert said[:2] == ["/tmp/there/new/one", "0:0:755"], (said, state)


RACING_RUNTIME = """#!/usr/bin/python3
import json, os, sys
words = sys.argv[1:]
if "run" in words and os.path.exists({armed!r}):
    path = os.path.join(words[words.index("--bundle") + 1], "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config["hooks"].setdefault({hook!r}, []).insert({place}, {{"path": "/bin/sh", "args": ["sh", "-c", {script!r}]}})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
os.execvp("runc", ["runc", *words])
"""


def use_racing_runtime(node, directory, hook, place, script):
    """Starts the node. From now on the runtime runs the given command at each start of a container, at the best moment
    for an attacker."""
    runtime, armed = directory / "runtime", directory / "armed"
    runtime.write_text(RACING_RUNTIME.format(armed=str(armed), hook=hook, place=place, script=script), encoding="utf-8")
    runtime.chmod(0o755)
    node.write_config(mainstay={"runtime": str(runtime)})
    node.start()
    armed.touch()


@pytest.mark.parametrize("target", ["/proc/{pid}/root{outside}", "/proc/{pid}/cwd", "/proc/self/fd/6/../../../../../../..{outside}"])
def test_cve_2024_21626_a_directory_exchanged_after_the_check_leads_no_working_directory_out(archive, tmp_path, target):
    """In an attack another container of the pod exchanges the directory; here a hook after the agent's does it, at the
    best moment. No process starts outside; the runtime may only create an empty directory there, if the pod sees the
    node's processes."""
    node, outsider = harness.Node(archive, start=False), None
    try:
        outside, volume = make_outside(node), os.path.join(node.data, "volume")
        os.makedirs(f"{volume}/work")
        outsider = subprocess.Popen(["sleep", "100000"], cwd=outside)
        link = target.format(outside=outside, pid=outsider.pid)
        script = f"rm -rf {volume}/work; ln -s {link} {volume}/work"
        use_racing_runtime(node, tmp_path, "createContainer", 99, script)
        main = specs.container(script=f"touch in; {READY}", workingDir="/v/work/new", volumeMounts=[specs.mount("v", "/v")])
        node.drop(specs.pod("race", main, hostPID=True, volumes=[specs.host_path("v", volume)]))
        said, state = settle(node, "race")
        assert said == [] and "waiting" in state, (said, state)
        assert set(os.listdir(outside)) <= {"new"} and not os.path.exists(f"{outside}/new/in")
    finally:
        if outsider:
            outsider.kill()
            outsider.wait()
        node.finish()


def test_cve_2025_52881_no_mount_covers_the_files_of_a_process(node):
    """The runtime writes the label of the process to /proc/self/attr. Here another container of the pod redirects a
    mount to that place."""
    main = specs.container(script="grep ' /proc/[0-9]' /proc/self/mountinfo && echo covered; sleep 0.2", volumeMounts=[
        specs.mount("v", "/outer"), *(specs.mount("w", f"/outer/point/{name}") for name in ("attr", "fd", "task"))])
    node.drop(specs.pod("race", main, swapper("/v", "point", "/proc/self"),
                        volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]))
    seen = watch_race(node, "/proc/")
    assert not [at for at, _ in seen if at.split("/")[2].isdigit()], seen
    directory = os.path.join(node.log_directory("race"), "main")
    assert not [name for name in os.listdir(directory) if "covered" in world.read(os.path.join(directory, name))]


@pytest.mark.parametrize("covered_path", ["1/attr", "1/task", "1/fd", "1"])
def test_cve_2025_52881_a_mount_over_a_process_prevents_the_start(archive, tmp_path, covered_path):
    """The mount is the one that the runtime makes if the link is exchanged at the best moment."""
    node = harness.Node(archive, start=False)
    try:
        volume = os.path.join(node.data, "volume")
        os.makedirs(f"{volume}/fake")
        pick = r"""state=$(cat); pick() { echo "$state" | sed "s/.*\"$1\":\"\?\([^,\"}]*\).*/\1/"; }; """
        use_racing_runtime(node, tmp_path, "createRuntime", 0, pick + f"exec nsenter -m -t $(pick pid) mount --bind {volume}/fake "
                           f"$(pick bundle)/rootfs/proc/{covered_path}")
        main = specs.container(script=READY, workingDir="/v/work", volumeMounts=[specs.mount("v", "/v")])
        node.drop(specs.pod("race", main, volumes=[specs.host_path("v", volume)]))
        assert f"leads a mount to '/proc/{covered_path}'" in node.wait_waiting("race", "RunContainerError")
        assert not node.logged("race")
    finally:
        node.finish()


def test_cve_2025_52881_kernel_parameters_are_not_set_by_the_runtime(node):
    """The runtime would write them to /proc/sys of the container."""
    node.launch(specs.pod("sysctl", specs.container(script=READY), hostNetwork=False, securityContext={"sysctls": [
        {"name": "net.ipv4.ip_unprivileged_port_start", "value": "7"}]}))
    assert node.cli("exec", "sysctl", "--", "cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start").stdout == "7\n"
    found = configurations(node, "sysctl")
    assert found and not [config for config in found if "sysctl" in config["linux"]]


# ---- containerd ----

def test_cve_2020_15257_no_abstract_socket_is_reachable_from_the_network_of_the_node(shared_node):
    shared_node.launch(specs.pod("guest", specs.container(script=READY), hostNetwork=True))
    sockets = {}
    for line in shared_node.cli("exec", "guest", "--", "cat", "/proc/net/unix").stdout.splitlines()[1:]:
        words = line.split()
        if len(words) == 8 and words[7].startswith("@"):
            sockets[f"socket:[{words[6]}]"] = words[7]
    ours = [pid for pid in world.pids() if shared_node.is_ours(pid)]
    assert shared_node.agent.pid in ours and len(ours) > 1
    held = {target for pid in ours for target in world.descriptors(pid).values()}
    assert not held & set(sockets), {sockets[name] for name in held & set(sockets)}


def test_cve_2021_41103_and_2024_25621_no_user_of_the_node_reaches_root_file_systems(shared_node):
    """A set-user-ID program of an image would run as root on the node."""
    shared_node.launch(specs.pod("image", specs.container(script=READY)))
    reached, looked = [], 0
    for top in (shared_node.state, shared_node.run):
        for parent, _, files in os.walk(top):
            for path in (os.path.join(parent, file) for file in files if file == "busybox"):
                looked += 1
                user = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "cat", path],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
                if user.returncode == 0:
                    reached.append(path)
                assert "ermission denied" in user.stderr, user.stderr
    assert looked and not reached, reached


def test_cve_2022_23648_a_declared_volume_contains_no_file_of_the_node(node):
    path = victim(node)
    volumes = [f"/../../../../../../../..{node.data}", f"/x/../../../../../../..{node.data}", f"../../../../../..{node.data}"]
    image = add_image(node, "climber", {**tree(**ORDINARY), "x": Link("/../../../../../.."), "y": Link(node.data)},
                      Volumes={volume: {} for volume in [*volumes, "/y", f"/x{node.data}"]})
    node.drop(specs.pod("climber", specs.container(
        image=image, script=f"cat {path} /y/victim /x{path} 2>/dev/null; {READY}")))
    said, _ = settle(node, "climber")
    assert SECRET not in said
    assert_untouched(path)


def peak_kib(pid):
    return world.memory_kib(pid, "VmHWM")


def test_cve_2022_31030_and_1708_the_output_of_a_probe_is_not_held_in_memory(node):
    """The command of a probe writes 256 MiB."""
    probe = {"exec": {"command": ["/bin/sh", "-c", "yes 0123456789abcdef | head -c 268435456; echo done >/tmp/done"]},
             "periodSeconds": 1, "timeoutSeconds": 100, "failureThreshold": 1000}
    node.launch(specs.pod("loud", specs.container(script=READY)))
    before = peak_kib(node.agent.pid), peak_kib(node.shim("loud"))
    node.launch(specs.pod("probed", specs.container(script=READY, startupProbe=probe)))
    shim, init = node.shim("probed"), node.init("probed")
    world.wait(lambda: os.path.exists(f"/proc/{init}/root/tmp/done"), "the command has written all of it")
    assert peak_kib(node.agent.pid) < before[0] + 32 * 1024
    assert peak_kib(shim) < before[1] + 32 * 1024


def test_cve_2023_25153_the_size_of_a_document_of_an_archive_is_limited(node):
    """The archive has an index.json or a manifest.json of 600 MB."""
    for name in ("index.json", "manifest.json"):
        path = os.path.join(node.data, "huge.tar")
        info = tarfile.TarInfo(name)
        info.size = 600 << 20
        with open(path, "wb") as file:
            layout = tarfile.TarInfo("oci-layout")
            layout.size = len(b'{"imageLayoutVersion":"1.0.0"}')
            file.write(layout.tobuf() + b'{"imageLayoutVersion":"1.0.0"}'.ljust(512, b"\0") + info.tobuf())
            file.truncate(1024 + 512 + info.size + 1024)
        done = subprocess.run([harness.program("mainstay-image"), "index", "--store", f"{node.data}/store", path], check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, env=node.environment())
        assert done.returncode > 0 and f"'{name}' is larger than" in done.stderr, done


def test_cve_2023_25173_and_2022_2995_the_primary_group_is_one_of_the_supplementary_groups(shared_node):
    """A process without that supplementary group could access a file that denies access to the group."""
    image = add_image(shared_node, "grouped", tree(**ORDINARY), User="app")
    shared_node.launch(specs.pod("grouped", specs.container(image=image, script=READY)))
    init = shared_node.init("grouped")
    assert sorted(world.status(init, "Groups").split()) == ["1000", "88"]
    said = shared_node.cli("exec", "grouped", "--", "cat", "/proc/self/status").stdout
    assert sorted(re.search(r"^Groups:\s*(.*)$", said, re.M).group(1).split()) == ["1000", "88"]


@pytest.mark.parametrize("user", ["4294967296", "4294967295", "2147483648", "-1", "0x0", "18446744073709551616", "1000:4294967296",
                                  "1000:-1"])
def test_cve_2024_40635_a_user_id_that_is_too_large_is_not_root(shared_node, user):
    name = "large-" + re.sub("[^0-9x]", "-", user).strip("-") + str(len(user))
    image = add_image(shared_node, name, tree(**ORDINARY), User=user)
    shared_node.drop(specs.pod(name, specs.container(image=image, script=READY)))
    _, state = settle(shared_node, name)
    assert state.get("waiting", {}).get("reason") == "CreateContainerConfigError", state
    assert user.rsplit(":", maxsplit=1)[-1] in state["waiting"]["message"]


def test_cve_2021_32760_extraction_changes_no_mode_outside(node):
    """A layer has a link to a file of the node, and a hard link to that link with another mode."""
    path, out = victim(node), io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for kind, name, link, mode in ((tarfile.SYMTYPE, "soft", path, 0o777), (tarfile.LNKTYPE, "hard", "soft", 0o4777),
                                       (tarfile.SYMTYPE, "away", os.path.dirname(path), 0o777),
                                       (tarfile.LNKTYPE, "behind", "away/victim", 0o4777),
                                       (tarfile.REGTYPE, "away/victim", "", 0o4777)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = kind, link, mode
            archive.addfile(info, io.BytesIO(b""))
    image = add_image(node, "chmod", tree(**ORDINARY), out.getvalue())
    node.drop(specs.pod("chmod", specs.container(image=image, script=READY)))
    settle(node, "chmod")
    assert_untouched(path)


def test_cve_2021_21334_containers_with_one_image_share_no_environment_variable(shared_node):
    for number in range(4):
        shared_node.drop(specs.pod(f"env-{number}", *(specs.container(
            f"c{i}", READY, env=[{"name": f"OWN_{number}_{i}", "value": "x"}]) for i in range(3))))
    for number in range(4):
        shared_node.wait_running(f"env-{number}")
        for i in range(3):
            variables = world.environ(shared_node.init(f"env-{number}", f"c{i}"))
            assert [name for name in variables if name.startswith("OWN_")] == [f"OWN_{number}_{i}"]


def test_cve_2022_24769_and_27649_a_container_has_no_inheritable_capability(shared_node):
    for user in (0, 1000):
        shared_node.launch(specs.pod(f"caps-{user}", specs.container(script=READY, securityContext={"runAsUser": user})))
        init = shared_node.init(f"caps-{user}")
        assert int(world.status(init, "CapInh"), 16) == int(world.status(init, "CapAmb"), 16) == 0


def test_cve_2025_47291_a_pod_with_a_user_namespace_is_limited_like_others(shared_node):
    shared_node.launch(specs.pod("users", specs.container(script=READY, resources={"limits": {"memory": "64Mi"}}), hostUsers=False,
                                 hostNetwork=False))
    uid = shared_node.pod("users")["metadata"]["uid"]
    groups = dict(line.split(":", 2)[1:] for line in world.read(f"/proc/{shared_node.init('users')}/cgroup").splitlines())
    limited = groups.get("memory", groups.get(""))
    assert shared_node.cgroup_root in limited and uid.replace("-", "_") in limited.replace("-", "_"), groups


def test_cve_2020_15157_a_layer_on_another_host_gets_no_credentials(tmp_path, serve):
    """The manifest of an image names another server for one of its layers."""
    store, other = Store(tmp_path), serve()
    tar = Blobs.tar({"x": b"x"})
    image = forge([(digest_of(tar), len(tar))], [digest_of(tar)])
    manifest = json.loads(image.manifest)
    manifest["layers"][0].update(urls=[f"http://{other.host}/layer"], mediaType="application/vnd.docker.image.rootfs.foreign.diff.tar.gzip")
    set_manifest(image, document(manifest))
    home = serve(image)
    status, said = store.pull(home, "team/app:latest", login(home), insecureRegistries=[home.host, other.host])
    assert status != 0, said
    assert not other.seen and not store.has(image)


def test_cve_2021_41190_a_document_is_not_both_an_index_and_a_manifest(tmp_path, serve):
    """The program that checks such a document and the one that runs it could interpret it differently."""
    store, image = Store(tmp_path), Blobs([{"x": b"x"}])
    row = {"mediaType": MANIFEST_TYPE, "digest": image.digest, "size": len(image.manifest),
           "platform": {"os": "linux", "architecture": specs.ARCHITECTURE}}
    for kind in (MANIFEST_TYPE, INDEX_TYPE):
        both = document({**json.loads(image.manifest), "mediaType": kind, "manifests": [row]})
        image.manifests = {**image.manifests, digest_of(both): (kind, both), "latest": (kind, both)}
        status, said = store.pull(serve(image), "team/app:latest")
        assert status != 0 and "both manifests and layers" in said, said


@pytest.mark.parametrize("digest", ["sha256:../../../victim", "sha256:" + "/" * 64, "sha256:" + ("../" * 22)[:64], "../../victim", "sha256:", ""])
@pytest.mark.parametrize("of", ["config", "layer"])
def test_cve_2024_3727_a_digest_is_not_used_as_a_path(tmp_path, serve, of, digest):
    store, image = Store(tmp_path), Blobs([{"x": b"x"}])
    path = tmp_path / "victim"
    path.write_text(SECRET)
    manifest = json.loads(image.manifest)
    (manifest["config"] if of == "config" else manifest["layers"][0])["digest"] = digest
    set_manifest(image, document(manifest))
    status, said = store.pull(serve(image), "team/app:latest")
    assert status != 0 and "digest" in said and SECRET not in said, said
    assert path.read_text() == SECRET and not store.has(image)


# ---- CRI-O ----

@pytest.mark.parametrize("value", ["1+kernel.core_pattern=|/evil", "1\nkernel.core_pattern=|/evil", "1 kernel.core_pattern=|/evil",
                                   "1+kernel.core_pattern=|/evil #"])
def test_cve_2022_0811_the_value_of_a_sysctl_cannot_set_another_sysctl(node, value):
    before = world.read("/proc/sys/kernel/core_pattern")
    node.drop(specs.pod("sysctl", securityContext={"sysctls": [{"name": "kernel.shm_rmid_forced", "value": value}]}))
    world.wait(lambda: "sysctl" in node.complaints(), "there is an error")
    node.remove("sysctl")
    node.wait_gone("sysctl")
    assert world.read("/proc/sys/kernel/core_pattern") == before


@pytest.mark.parametrize("name,host", [("kernel.core_pattern", None), ("kernel/core_pattern", None), ("net/../kernel/core_pattern", None),
                                       ("net.ipv4.ip_forward", "hostNetwork"), ("net.ipv4.ip_local_port_range", "hostNetwork"),
                                       ("kernel.shm_rmid_forced", "hostIPC"), ("fs.mqueue.msg_max", "hostIPC")])
def test_cve_2022_0532_no_sysctl_of_the_node_is_changed(node, name, host):
    path = "/proc/sys/" + name.replace(".", "/") if ".." not in name else "/proc/sys/kernel/core_pattern"
    before = world.read(path)
    node.drop(specs.pod("sysctl", **{"hostNetwork": False, **({host: True} if host else {})},
                        securityContext={"sysctls": [{"name": name, "value": "7"}]}))
    world.wait(lambda: "sysctl" in node.complaints() and not node.find_init("sysctl"), "there is an error")
    assert world.read(path) == before


def test_cve_2022_4318_an_environment_variable_adds_no_user(shared_node):
    value = "/root\nevil:x:0:0::/:/bin/sh"
    shared_node.launch(specs.pod("home", specs.container(script="cat /etc/passwd; " + READY, env=[{"name": "HOME", "value": value}])))
    said, _ = settle(shared_node, "home")
    assert not [line for line in said if "evil" in line] and any(line.startswith("root:") for line in said)


def test_cve_2024_3154_annotations_do_not_reach_the_runtime(shared_node):
    """Annotations of the OCI runtime set properties of systemd units, hooks and capabilities."""
    names = ("org.systemd.property.SuccessAction", "org.criu.config", "run.oci.hooks", "org.opencontainers.image.x",
             "io.kubernetes.cri-o.userns-mode", "io.katacontainers.config.hypervisor.path")
    shared_node.launch(specs.pod("annotated", specs.container(script=READY),
                                 metadata={"annotations": {name: "'poweroff'" for name in names}}))
    found = configurations(shared_node, "annotated")
    assert found
    for config in found:
        assert not set(config.get("annotations", {})) & set(names)


@pytest.mark.parametrize("layout", ["files", "directory"])
def test_cve_2024_5154_no_file_in_etc_is_created_behind_a_link(node, layout):
    """The links are /etc/mtab and the other files that a runtime creates in an image."""
    outside = make_outside(node)
    up = "/../../../../../../.." + outside
    rest = {name: data for name, data in ORDINARY.items() if not name.startswith("etc")}
    names = ("mtab", "hosts", "hostname", "resolv.conf", "passwd", "localtime")
    etc = {"etc": Link(up)} if layout == "directory" else {"etc/": b"", **{f"etc/{name}": Link(f"{up}/{name}") for name in names}}
    image = add_image(node, "mtab", {**tree(**rest), **etc})
    node.drop(specs.pod("mtab", specs.container(image=image, script=READY, terminationMessagePath="/etc/hosts.message"),
                        hostNetwork=False, dnsPolicy="None", dnsConfig={"nameservers": ["192.0.2.1"]}))
    settle(node, "mtab")
    assert os.listdir(outside) == []


def test_cve_2019_14891_a_container_that_is_out_of_memory_affects_only_itself(node):
    """The output of the container is copied by a process that must not count against the limit."""
    node.launch(specs.pod("greedy", specs.container(
        script="sleep 1; yes 0123456789 | head -c 30000000; exec tail /dev/zero", resources={"limits": {"memory": "24Mi"}}),
        specs.container("other", READY), restartPolicy="Never"))
    shim = world.Process(node.shim("greedy"))
    pod = node.wait_pod("greedy", lambda pod: "terminated" in harness.container_status(pod).get("state", {}), "is out of memory")
    assert harness.container_status(pod)["state"]["terminated"]["reason"] == "OOMKilled"
    assert world.is_alive(shim) and "running" in node.status("greedy", "other")["state"]


@pytest.mark.parametrize("field", ["namespace", "name", "uid", "container"])
def test_cve_2025_0750_no_name_leads_out_of_the_log_directory(node, field):
    evil = f"../../../../../..{node.data}/evil"
    pod = specs.pod("evil", specs.container(evil if field == "container" else "main", READY))
    if field != "container":
        pod["metadata"][field] = evil
    node.drop(pod, "evil.yaml")
    world.wait(lambda: "evil.yaml" in node.complaints(), "the file has an error")
    assert not os.path.exists(node.data + "/evil") and not node.pods()


# ---- podman ----

def test_cve_2025_9566_a_volume_of_a_config_map_is_not_written_through_links(node):
    """The attack needs no container that may write to the kubelet's directories: the container tries it in its own
    mount."""
    outside = make_outside(node)
    names = ("key", "..data", "..data_tmp", "more")
    script = "; ".join(f"rm -rf /config/{name}; ln -s {outside} /config/{name}" for name in names)
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"key": "1"}}
    node.drop(data)
    node.launch(specs.pod("linker", specs.container(script=f"{{ {script}; }} 2>/dev/null; {READY}",
                                                    volumeMounts=[specs.mount("c", "/config")]),
                          volumes=[{"name": "c", "configMap": {"name": "settings"}}]))
    init = node.init("linker")
    node.drop({**data, "data": {"key": "2", "more": "3"}})
    world.wait(lambda: world.read(f"/proc/{init}/root/config/more") == "3", "the volume has the new values")
    assert os.listdir(outside) == []


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/mem", "/dev/stdin", "/etc/shadow"])
def test_cve_2024_9676_and_2025_4437_the_users_of_an_image_are_not_read_from_the_node(node, target):
    rest = {name: data for name, data in ORDINARY.items() if not name.startswith("etc/p")}
    image = add_image(node, "users", {**tree(**rest), "etc/passwd": Link(target)}, User="app")
    node.drop(specs.pod("users", specs.container(image=image, script=READY)))
    assert "app" in node.wait_waiting("users", "CreateContainerConfigError")
    node.launch(specs.pod("fine", specs.container(script=READY)))


@pytest.mark.parametrize("sub_path", ["link{data}", "up{data}", "link", "{up}{data}"])
def test_cve_2024_1753_a_link_in_an_image_volume_does_not_lead_to_the_node(node, sub_path):
    path, up = victim(node), "../../../../../../../../.."
    content = add_image(node, "content", {"link": Link("/"), "up": Link(up), "file": b"of the image"})
    sub_path = sub_path.format(data=node.data, up=up)
    main = specs.container(script=f"cat /m/victim /m{path} /m/file 2>/dev/null; {READY}",
                           volumeMounts=[specs.mount("i", "/m", subPath=sub_path)])
    node.drop(specs.pod("content", main, volumes=[{"name": "i", "image": {"reference": content}}]), "content.yaml")
    world.wait(lambda: node.complaints() or node.pod("content"), "it is there")
    if node.pod("content"):
        said, _ = settle(node, "content")
        assert SECRET not in said
    assert_untouched(path)


# ---- the kubelet ----

@pytest.mark.parametrize("kind", ["directory", "file"])
def test_cve_2021_25741_a_sub_path_that_is_exchanged_stays_in_its_volume(node, kind):
    outside = make_outside(node)
    with open(os.path.join(outside, "part"), "w", encoding="utf-8") as file:
        file.write(SECRET)
    path = "point" if kind == "directory" else "point/part"
    main = specs.container(script="sleep 0.2; cat /sub /sub/part 2>/dev/null", volumeMounts=[specs.mount("v", "/sub", subPath=path)])
    prepare = specs.container("prepare", "mkdir -p /v/point; : >/v/point/part", volumeMounts=[specs.mount("v", "/v")])
    node.drop(specs.pod("race", main, swapper("/v", "point", outside), initContainers=[prepare],
                        volumes=[{"name": "v", "emptyDir": {}}]))
    assert_mounts_stay_in_pod(node, "/sub")
    directory = os.path.join(node.log_directory("race"), "main")
    assert not [name for name in os.listdir(directory) if SECRET in world.read(os.path.join(directory, name))]


def test_cve_2019_11245_every_start_uses_the_user_of_the_image(node):
    image = add_image(node, "app", tree(**ORDINARY), User="app")
    for context in ({}, {"runAsNonRoot": True}):
        name = f"user-{len(context)}"
        numeric = add_image(node, "numeric", tree(**ORDINARY), User="1000")
        node.launch(specs.pod(name, specs.container(image=numeric if context else image, script=READY, securityContext=context)))
        for count in range(1, 3):
            assert world.status(node.init(name), "Uid").split() == ["1000"] * 4
            world.kill_all([node.init(name)])
            node.wait_restarts(name, count)
        node.restart()
        assert world.status(node.init(name), "Uid").split() == ["1000"] * 4


@pytest.mark.parametrize("profile", ["", None, "../../../etc/passwd", "/etc/passwd", "missing.json"])
def test_cve_2023_2431_an_empty_localhost_profile_is_an_error(node, profile):
    seccomp = {"type": "Localhost", **({} if profile is None else {"localhostProfile": profile})}
    node.drop(specs.pod("secure", specs.container(script=READY, securityContext={"seccompProfile": seccomp})))
    word = "missing.json" if profile == "missing.json" else "localhostProfile"
    world.wait(lambda: word in node.complaints() + json.dumps(node.pods()[0]["status"] if node.pods() else {}), "there is an error")
    assert not (node.pod("secure") and node.find_init("secure"))


@pytest.mark.parametrize("source", ["file", "api"])
def test_cve_2023_2727_an_ephemeral_container_does_not_evade_the_policy_of_images(make_member, tmp_path, source):
    """Policies were enforced for other containers only."""
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}],
                                  "transports": {"docker-archive": {"": [{"type": "insecureAcceptAnything"}]}}}))
    member = make_member(signaturePolicyFile=str(policy))
    refused = add_image(member, "refused", tree(**ORDINARY))
    if source == "api":
        member.bind("web")
    else:
        member.drop(specs.pod("web"))
    member.wait_running("web")
    policy.write_text(json.dumps({"default": [{"type": "reject"}]}))
    if source == "api":
        add_ephemeral(member, "web", ephemeral(image=refused))
    else:
        status, said = post(member, {"name": "dbg", "image": refused, "command": ["sleep", "100000"]})
        assert status == 200, said
    member.wait_pod("web", lambda pod: "SignatureValidationFailed" in json.dumps(pod["status"].get("ephemeralContainerStatuses", [])),
                    "the image is refused")
    assert not member.find_init("web", "dbg")


def test_cve_2023_2728_an_ephemeral_container_gets_no_other_secret(make_member):
    """The server checks which Secrets a pod may name; Secrets in the node's files do not belong to its pods."""
    member = make_member()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own", "namespace": "default"}, "stringData": {"word": SECRET}}
    variable = [{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "own", "key": "word", "optional": True}}}]
    member.drop(secret)
    member.bind("web", specs.container(env=variable))  # the server of the tests permits the objects to which containers refer
    member.wait_running("web")
    add_ephemeral(member, "web", ephemeral(env=variable))
    pid = world.wait(lambda: member.find_init("web", "dbg"), lambda: f"it runs: {member.pod('web')}")
    assert "WORD" not in world.environ(pid)


def test_cve_2024_10220_and_2025_1767_a_repository_is_not_cloned(node):
    node.drop(specs.pod("git", specs.container(volumeMounts=[specs.mount("g", "/g")]), volumes=[
        {"name": "g", "gitRepo": {"repository": f"{node.data}/repository", "directory": "../../.git", "revision": "x"}}]))
    world.wait(lambda: "gitRepo" in node.complaints(), "there is an error")
    assert not node.pods()
