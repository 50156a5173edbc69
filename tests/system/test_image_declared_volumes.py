# SPDX-License-Identifier: Apache-2.0
"""Volumes that an image declares (VOLUME of a Dockerfile), as containerd makes them."""

import hashlib
import importlib.machinery
import importlib.util
import json
import os
import stat
import tarfile

import harness
import pytest
import specs
import test_objects
import test_users
import world
from network import NetworkNode

NAME = "docker.io/library/declared:1"
DECLARED = ["/data", "/missing", "relative/path", "/var/../etc/more", "/link", "/data/below", "/proc", "/dev", "/"]


def load_make_image():
    loader = importlib.machinery.SourceFileLoader("make_image", os.path.join(harness.TOP, "tests", "make-image"))
    make = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_image", loader))
    loader.exec_module(make)
    return make


def owned(info, uid, gid):
    info.uid, info.gid = uid, gid
    return info


def declare(node, volumes, members=(), name=NAME, config=None):
    """An archive of the common test image with further files, whose configuration declares the volumes."""
    make = load_make_image()
    plain, tar = make.image_config, make.tar
    make.tar = lambda found: tar([*found, *[(make.member(*m), b"") if isinstance(m, tuple) and isinstance(m[0], str) else m
                                            for m in members]])
    layer = make.layer("/bin/busybox")
    make.tar = tar
    make.image_config = lambda *words: json.dumps({**json.loads(plain(*words)), "config": {
        "Env": ["PATH=/bin:/usr/bin"], "Cmd": ["sh"], "Volumes": volumes, **(config or {})}}).encode()
    path = f"{node.data}/declared.tar"
    make.write_atomically(path, make.docker_archive(name, specs.ARCHITECTURE, layer, "none"))
    return path


def data_members():
    make = load_make_image()
    return [(owned(make.member("data", tarfile.DIRTYPE, 0o2750), 1000, 29), b""),
            (owned(make.member("data/file", mode=0o640), 1000, 1000), b"content"),
            (owned(make.member("data/program", mode=0o4755), 0, 0), b"program"),
            (make.member("data/twice", tarfile.LNKTYPE, link="data/file"), b""),
            (owned(make.member("data/out", tarfile.SYMTYPE, link="/etc/passwd"), 5, 6), b""),
            (make.member("data/fifo", tarfile.FIFOTYPE, 0o622), b""),
            (make.member("data/dir", tarfile.DIRTYPE, 0o700), b""), (make.member("data/dir/deep"), b"deep"),
            (make.member("data/below", tarfile.DIRTYPE, 0o711), b""), (make.member("data/below/here"), b"below"),
            (make.member("link", tarfile.SYMTYPE, link="../../../target"), b""),
            (make.member("target", tarfile.DIRTYPE, 0o1777), b""), (make.member("target/file"), b"behind a link"),
            (make.member("relative", tarfile.DIRTYPE, 0o755), b""), (make.member("relative/path", tarfile.DIRTYPE, 0o755), b""),
            (make.member("relative/path/file"), b"relative"),
            (make.member("etc/more", tarfile.DIRTYPE, 0o755), b""), (make.member("etc/more/file"), b"more")]


def container(script=specs.IDLE, **fields):
    return {**specs.container(script=script, **fields), "image": NAME}


@pytest.fixture(name="stocked")
def fixture_stocked(node):
    node.preload(declare(node, {path: {} for path in DECLARED}, data_members()))
    return node


def root_of(node, name):
    return f"/proc/{node.init(name)}/root"


def expect_copy(root, shift=0):
    def seen(path):
        found = os.lstat(root + path)
        return stat.filemode(found.st_mode), found.st_uid - shift, found.st_gid - shift

    assert seen("/data") == ("drwxr-s---", 1000, 29)
    assert seen("/data/file") == ("-rw-r-----", 1000, 1000) and world.read(f"{root}/data/file") == "content"
    assert seen("/data/program") == ("-rwsr-xr-x", 0, 0)
    assert os.path.samefile(f"{root}/data/file", f"{root}/data/twice")
    assert seen("/data/out") == ("lrwxrwxrwx", 5, 6) and os.readlink(f"{root}/data/out") == "/etc/passwd"
    assert seen("/data/fifo") == ("prw--w--w-", 0, 0)
    assert seen("/data/dir") == ("drwx------", 0, 0) and world.read(f"{root}/data/dir/deep") == "deep"
    assert seen("/data/below") == ("drwx--x--x", 0, 0) and world.read(f"{root}/data/below/here") == "below"
    assert seen("/missing") == ("drwxr-xr-x", 0, 0) and not os.listdir(f"{root}/missing")
    assert world.read(f"{root}/target/file") == "behind a link" and seen("/target") == ("drwxrwxrwt", 0, 0)
    assert world.read(f"{root}/relative/path/file") == "relative" and world.read(f"{root}/etc/more/file") == "more"
    assert int(os.stat(f"{root}/data/file").st_mtime) == 1700000000
    assert int(os.stat(f"{root}/data/dir").st_mtime) == 1700000000


WRITE = "for d in /data /missing /relative/path /etc/more /target /data/below; do echo x > $d/new || exit 1; done; "


@pytest.mark.parametrize("read_only", [False, True])
def test_a_declared_volume_has_the_content_of_the_image_and_is_writable(stocked, read_only):
    stocked.drop(specs.pod("one", container("sleep 0.2; [ -e /go ] || true; " + specs.IDLE,
                                           securityContext={"readOnlyRootFilesystem": read_only})))
    stocked.wait_running("one")
    root, init = root_of(stocked, "one"), stocked.init("one")
    expect_copy(root)
    for path in ("/data", "/missing", "/relative/path", "/etc/more", "/target", "/data/below"):
        assert "rw" in world.mount_at(init, path)["options"], path
    assert world.mount_at(init, "/proc")["type"] == "proc" and world.mount_at(init, "/dev")["type"] == "tmpfs"
    stocked.drop(specs.pod("two", container(WRITE + specs.IDLE, securityContext={"readOnlyRootFilesystem": read_only})))
    stocked.wait_running("two")
    written = root_of(stocked, "two")
    world.wait(lambda: os.path.exists(f"{written}/data/below/new"), "it has written everywhere")
    assert not os.path.exists(f"{root}/data/new"), "each container has its own volume"


def test_a_declared_volume_lives_as_long_as_the_container(stocked):
    """A container that starts again finds the content of the image, and nothing is left of the volume of the earlier
    one."""
    stocked.drop(specs.pod("again", container("[ -e /data/new ] && echo found; echo x > /data/new; "
                                             "[ -e /flag/f ] || { touch /flag/f; exit 1; }; " + specs.IDLE,
                                             volumeMounts=[specs.mount("flag", "/flag")]),
                          volumes=[{"name": "flag", "emptyDir": {}}]))
    stocked.wait_restarts("again", 1)
    stocked.wait_running("again")
    world.wait(lambda: world.read(root_of(stocked, "again") + "/data/new") == "x\n", "it has written again")
    assert "found" not in stocked.log_lines("again", attempt=1)
    uid = stocked.pod("again")["metadata"]["uid"]
    attempts = f"{stocked.state}/pods/{uid}/containers/main"
    world.wait(lambda: "0" not in os.listdir(attempts), lambda: f"the first one's directory is removed: {os.listdir(attempts)}")
    stocked.remove("again")
    stocked.wait_gone("again")
    world.wait(lambda: not os.path.exists(attempts), "the second one's directory is removed, too")


def test_a_file_with_several_hard_links_is_copied_once(node):
    """The file is copied once regardless of the number of its names: a small image must not become a large volume."""
    make, count = load_make_image(), 9000
    names = [f"data/{i % 2 * 'deep/'}{i}" for i in range(2 * count)]
    node.preload(declare(node, {"/data": {}}, [
        (make.member("data", tarfile.DIRTYPE, 0o755), b""), (make.member("data/deep", tarfile.DIRTYPE, 0o755), b""),
        *[(make.member(name), b"") for name in names],
        *[(make.member(f"{name}-", tarfile.LNKTYPE, link=name), b"") for name in names]]))
    node.launch(specs.pod("names", container()))
    root = root_of(node, "names")
    assert all(os.path.samefile(f"{root}/{name}", f"{root}/{name}-") for name in names)


def test_an_explicit_mount_overrides_a_declared_volume(stocked):
    stocked.drop(test_objects.config_map("map", {"key": "value"}), "map.yaml")
    stocked.launch(specs.pod("explicit", container(volumeMounts=[
        specs.mount("map", "/data/"), specs.mount("empty", "/etc/more")]),
        volumes=[{"name": "map", "configMap": {"name": "map"}}, {"name": "empty", "emptyDir": {}}]))
    root = root_of(stocked, "explicit")
    assert world.read(f"{root}/data/key") == "value" and not os.path.exists(f"{root}/data/file")
    assert world.read(f"{root}/data/below/here") == "below", "a declared volume below a ConfigMap has its mount point"
    assert os.listdir(f"{root}/etc/more") == []
    assert world.read(f"{root}/relative/path/file") == "relative"


def test_a_declared_volume_counts_as_ephemeral_storage(stocked):
    stocked.drop(specs.pod("big", container("dd if=/dev/zero of=/data/big bs=1M count=4 2>/dev/null; " + specs.IDLE,
                                           resources={"limits": {"ephemeral-storage": "2Mi"}})))
    stocked.wait_pod("big", lambda pod: pod["status"].get("reason") == "Evicted", "is evicted")


def test_a_declared_volume_belongs_to_the_users_of_the_pod(archive):
    node = NetworkNode(archive)
    try:
        node.preload(declare(node, {path: {} for path in DECLARED}, data_members()))
        spec = test_users.pod_with_user_namespace("users", WRITE + specs.IDLE, container={"securityContext": {
            "readOnlyRootFilesystem": True}})
        spec["spec"]["containers"][0]["image"] = NAME
        node.launch(spec)
        root = root_of(node, "users")
        world.wait(lambda: os.path.exists(f"{root}/data/below/new"), "root of the pod writes everywhere")
        first = test_users.first_id(node.init("users"))
        seen = os.stat(f"{root}/data/file")
        assert (seen.st_uid - first, seen.st_gid - first) == (1000, 1000)
        assert os.stat(f"{root}/missing").st_uid == os.stat(f"{root}/missing/new").st_uid == first
        assert stat.S_IMODE(os.stat(f"{root}/data").st_mode) == 0o2750
    finally:
        node.finish()


def test_a_user_of_the_image_owns_its_files_in_a_declared_volume(stocked):
    stocked.launch(specs.pod("app", container("id -u > /data/mine; " + specs.IDLE, securityContext={
        "runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": True, "readOnlyRootFilesystem": True})))
    world.wait(lambda: world.read(root_of(stocked, "app") + "/data/mine") == "1000\n", "it may write there")


def test_a_declared_volume_never_reaches_the_node(node):
    """The path, and links on the way to it, are resolved in the image."""
    make = load_make_image()
    node.preload(declare(node, {"/out": {}, "/up/../../../..": {}, "/far/x": {}, "/loop": {}}, [
        (make.member("out", tarfile.SYMTYPE, link=f"../../../../../../../..{node.data}"), b""),
        (make.member("far", tarfile.SYMTYPE, link=node.data), b"")]))
    with open(f"{node.data}/x", "w", encoding="ascii") as file:
        file.write("of the node")
    node.launch(specs.pod("out", container()))
    root = root_of(node, "out")
    assert os.listdir(root + node.data) in ([], ["x"]) and not os.path.isfile(f"{root}{node.data}/x")


@pytest.mark.parametrize("volumes,members,says", [
    ({"/etc/passwd": {}}, [], "the volume '/etc/passwd' of the image: the image has a file there"),
    ({"/loop": {}}, [("loop", tarfile.SYMTYPE, 0o777, 0, "loop")], "the volume '/loop' of the image: Too many levels of symbolic links"),
    ({"/top": {}}, [("top", tarfile.SYMTYPE, 0o777, 0, "/")], "the volume '/top' of the image: it is a link to the root of the image"),
], ids=["file", "loop", "root"])
def test_a_declared_volume_that_cannot_be_made_is_an_error_of_the_container(node, volumes, members, says):
    node.preload(declare(node, volumes, members))
    node.drop(specs.pod("bad", container()))
    node.wait_pod("bad", lambda pod: says in test_objects.unquoted(pod["status"]), "reports the error")


@pytest.mark.parametrize("volumes,says", [({f"/{i}": {} for i in range(257)}, "more than 256 volumes"),
                                          (["/data"], "'Volumes' is not an object"),
                                          ({"/" + 5000 * "x": {}}, "is too long")], ids=["many", "list", "long"])
def test_an_image_with_unusable_volumes_is_refused(node, volumes, says):
    node.preload(declare(node, volumes))
    node.drop(specs.pod("bad", container()))
    node.wait_pod("bad", lambda pod: says in test_objects.unquoted(pod["status"]), "reports the error")


def test_many_declared_volumes_are_created(node):
    node.preload(declare(node, {f"/many/{i}": {} for i in range(256)}))
    node.launch(specs.pod("many", container()))
    mounted = [mount for mount in world.mounts(node.init("many")) if mount["at"].startswith("/many/")]
    assert len(mounted) == 256


def forget_volumes(path):
    """Rewrites the record of an image like a version that did not support declared volumes."""
    record = json.loads(world.read(path)[:-65])
    assert record.pop("volumes")
    text = json.dumps(record)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{text}{hashlib.sha256(text.encode()).hexdigest()}\n")


def records(node):
    """The records of images that declare volumes, or did."""
    paths = [entry.path for entry in os.scandir(f"{node.state}/images/records")]
    return [path for path in paths if json.loads(world.read(path)[:-65]).get("volumes", True)]


@pytest.mark.parametrize("is_known", [True, False])
def test_an_image_of_an_earlier_version_has_its_declared_volumes(stocked, is_known):
    """The first container after the upgrade has the volumes, regardless of which is first: the agent or the process
    that completes the record. Without the image's configuration the image still runs."""
    stocked.drop(specs.pod("one", container()))
    stocked.wait_running("one")
    stocked.remove("one")
    stocked.wait_gone("one")
    stocked.stop()
    for path in records(stocked):
        forget_volumes(path)
    if not is_known:
        for entry in os.scandir(f"{stocked.state}/images/blobs/sha256"):
            os.unlink(entry.path)
    stocked.drop(specs.pod("two", container()))
    stocked.start()
    stocked.wait_running("two")
    assert bool(world.mount_at(stocked.init("two"), "/data")) == is_known
    if is_known:
        expect_copy(root_of(stocked, "two"))
