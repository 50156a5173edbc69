# SPDX-License-Identifier: Apache-2.0
"""Mounts below volumes: the mount points are made in volumes of ConfigMaps, Secrets and fields of the pod, and stay when
these are updated; other volumes are treated as by the kubelet and runc."""

import os

import pytest
import specs
import test_objects
import test_users
import world
from network import NetworkNode
from test_image_volumes import MODEL, model

OUTER, INNER = "/outer", "/outer/deep/er/inner"
OBJECTS = [test_objects.config_map("map", {"key": "one", "other": "other"}), test_objects.secret("hidden", {"key": "one"})]
DATA_VOLUMES = {
    "configMap": {"configMap": {"name": "map"}},
    "secret": {"secret": {"secretName": "hidden"}},
    "downwardAPI": {"downwardAPI": {"items": [{"path": "key", "fieldRef": {"fieldPath": "metadata.labels['key']"}}]}},
    "projected": {"projected": {"sources": [{"configMap": {"name": "map"}}]}},
}


def nested_pod(name, volumes, *mounts, label="one", container=None, **spec):
    """A pod with the mounts in reverse order, because their order in a manifest does not matter."""
    return specs.pod(name, specs.container(volumeMounts=[*mounts][::-1], **(container or {})),
                     metadata={"labels": {"key": label}}, volumes=[{"name": n, **v} for n, v in volumes.items()], **spec)


def drop_objects(node, value="one"):
    for kind in OBJECTS:
        changed = {**kind, "data": {"key": value}} if kind["kind"] == "ConfigMap" else {**kind, "stringData": {"key": value}}
        node.drop(changed, f"{kind['metadata']['name']}.yaml")


def root_of(node, name, container="main"):
    return f"/proc/{node.init(name, container)}/root"


@pytest.mark.parametrize("outer", DATA_VOLUMES)
@pytest.mark.parametrize("inner", [*DATA_VOLUMES, "emptyDir", "hostPath"])
def test_a_volume_is_mounted_below_a_data_volume_and_stays_when_that_is_updated(node, outer, inner):
    volumes = {**DATA_VOLUMES, "emptyDir": {"emptyDir": {}}, "hostPath": {"hostPath": {"path": node.data}}}
    drop_objects(node)

    def write_pod(label):
        node.drop(nested_pod("nested", {"a": volumes[outer], "b": volumes[inner]}, specs.mount("a", OUTER),
                             specs.mount("b", INNER), label=label))

    write_pod("one")
    node.wait_running("nested")
    init, root = node.init("nested"), root_of(node, "nested")
    if inner in DATA_VOLUMES:
        assert world.read(root + INNER + "/key") == "one"
    assert world.read(root + OUTER + "/key") == "one"
    drop_objects(node, "two")
    write_pod("two")
    world.wait(lambda: world.read(root + OUTER + "/key") == "two", "the outer volume has been updated")
    if inner in DATA_VOLUMES:
        world.wait(lambda: world.read(root + INNER + "/key") == "two", "the inner volume has been updated, too")
    assert node.init("nested") == init and world.mount_at(init, INNER)
    assert not os.path.lexists(root + OUTER + "/other") or outer in ("secret", "downwardAPI")


def test_a_file_is_mounted_below_a_data_volume(node):
    """The mounted file is a subPath, a file of the host, or the termination message."""
    drop_objects(node)
    with open(f"{node.data}/file", "w", encoding="ascii") as file:
        file.write("of the host")
    node.launch(nested_pod("files", {"a": DATA_VOLUMES["configMap"], "b": DATA_VOLUMES["secret"],
                                     "c": {"hostPath": {"path": f"{node.data}/file", "type": "File"}}},
                           specs.mount("a", OUTER), specs.mount("b", f"{OUTER}/single", subPath="key"),
                           specs.mount("c", f"{OUTER}/dir/file"),
                           container={"terminationMessagePath": f"{OUTER}/message"}))
    root = root_of(node, "files")
    assert world.read(f"{root}{OUTER}/single") == "one" and world.read(f"{root}{OUTER}/dir/file") == "of the host"
    assert world.mount_at(node.init("files"), f"{OUTER}/message")
    drop_objects(node, "two")
    world.wait(lambda: world.read(f"{root}{OUTER}/key") == "two", "the outer volume has been updated")
    assert world.read(f"{root}{OUTER}/single") == "one", "a subPath is not updated, and is still there"


def test_a_mount_point_hides_a_key_of_its_name_even_after_an_update(node):
    drop_objects(node)
    node.launch(nested_pod("hides", {"a": DATA_VOLUMES["configMap"], "b": {"hostPath": {"path": f"{node.data}/file",
                                                                                       "type": "FileOrCreate"}}},
                           specs.mount("a", OUTER), specs.mount("b", f"{OUTER}/other")))
    root = root_of(node, "hides")
    assert world.read(f"{root}{OUTER}/other") == ""
    node.drop(test_objects.config_map("map", {"key": "two", "other": "new"}), "map.yaml")
    world.wait(lambda: world.read(f"{root}{OUTER}/key") == "two", "the outer volume has been updated")
    assert world.read(f"{root}{OUTER}/other") == "" and world.mount_at(node.init("hides"), f"{OUTER}/other")


def test_mounts_are_nested_several_times(node):
    drop_objects(node)
    node.launch(nested_pod("several", {"a": DATA_VOLUMES["configMap"], "b": DATA_VOLUMES["secret"], "c": {"emptyDir": {}},
                                       "d": DATA_VOLUMES["projected"]},
                           specs.mount("a", "/a/"), specs.mount("b", "/a//b"), specs.mount("c", "/a/b/./c/"),
                           specs.mount("d", "/a/b/c/d"), specs.mount("a", "/a/b/c/d/e"), specs.mount("a", "/a/b-c")))
    root = root_of(node, "several")
    for path in ("/a/key", "/a/b/key", "/a/b/c/d/key", "/a/b/c/d/e/key", "/a/b-c/key"):
        assert world.read(root + path) == "one", path


def test_a_secret_is_mounted_above_and_below_a_directory_of_tokens(node):
    drop_objects(node)
    node.launch(nested_pod("tokens", {"a": DATA_VOLUMES["secret"], "t": DATA_VOLUMES["projected"]},
                           specs.mount("a", "/var/run/secrets"),
                           specs.mount("t", "/var/run/secrets/kubernetes.io/serviceaccount", readOnly=True),
                           specs.mount("a", "/var/run/secrets/kubernetes.io/serviceaccount/more")))
    root = root_of(node, "tokens") + "/var/run/secrets"
    for path in ("key", "kubernetes.io/serviceaccount/key", "kubernetes.io/serviceaccount/more/key"):
        assert world.read(f"{root}/{path}") == "one", path


def test_containers_of_a_pod_nest_other_mounts_in_one_volume(node):
    drop_objects(node)
    node.launch(specs.pod("both", specs.container("a", volumeMounts=[specs.mount("m", OUTER), specs.mount("s", f"{OUTER}/s")]),
                          specs.container("b", volumeMounts=[specs.mount("m", OUTER), specs.mount("e", f"{OUTER}/e")]),
                          metadata={"labels": {"key": "one"}},
                          volumes=[{"name": "m", **DATA_VOLUMES["configMap"]}, {"name": "s", **DATA_VOLUMES["secret"]},
                                   {"name": "e", "emptyDir": {}}]))
    assert world.read(root_of(node, "both", "a") + f"{OUTER}/s/key") == "one"
    assert world.mount_at(node.init("both", "b"), f"{OUTER}/e")
    assert world.read(root_of(node, "both", "b") + f"{OUTER}/key") == "one"


@pytest.mark.parametrize("security", [{"readOnlyRootFilesystem": True}, {"runAsNonRoot": True, "runAsUser": 1000}])
def test_a_nested_mount_needs_no_rights_of_the_container(node, security):
    drop_objects(node)
    node.launch(nested_pod("few", {"a": DATA_VOLUMES["configMap"], "b": DATA_VOLUMES["secret"]}, specs.mount("a", OUTER),
                           specs.mount("b", INNER), container={"securityContext": security},
                           securityContext={"fsGroup": 2000}))
    root = root_of(node, "few")
    assert world.read(root + INNER + "/key") == "one" and world.read(root + OUTER + "/key") == "one"


def test_a_nested_mount_is_made_in_a_pod_with_its_own_users(archive):
    node = NetworkNode(archive)
    try:
        drop_objects(node)
        mounts = [specs.mount("b", f"{OUTER}/single", subPath="key"), specs.mount("b", INNER), specs.mount("a", OUTER)]
        node.launch(test_users.pod_with_user_namespace(
            "users", mounts=mounts, volumes=[{"name": "a", **DATA_VOLUMES["configMap"]}, {"name": "b", **DATA_VOLUMES["secret"]}]))
        root = root_of(node, "users")
        assert world.read(root + INNER + "/key") == "one" and world.read(f"{root}{OUTER}/single") == "one"
        drop_objects(node, "two")
        world.wait(lambda: world.read(root + OUTER + "/key") == "two", "the outer volume has been updated")
        world.wait(lambda: world.read(root + INNER + "/key") == "two", "the inner volume has been updated, too")
        assert os.stat(root + INNER).st_uid == test_users.first_id(node.init("users"))
    finally:
        node.finish()


def test_a_restarted_container_finds_its_mount_points(node):
    drop_objects(node)
    node.drop(nested_pod("again", {"a": DATA_VOLUMES["configMap"], "b": {"emptyDir": {}}}, specs.mount("a", OUTER),
                         specs.mount("b", INNER),
                         container={"command": ["/bin/sh", "-c", f"echo >> {INNER}/n; [ $(wc -l < {INNER}/n) -gt 1 ] || exit 1; "
                                                + specs.IDLE]}))
    node.wait_restarts("again", 1)
    node.wait_running("again")
    assert world.read(root_of(node, "again") + OUTER + "/key") == "one"


def test_a_mount_point_in_a_directory_of_keys_hides_them(node):
    """As in the kubelet, the name directly in the volume is that of the mount point."""
    drop_objects(node)
    node.launch(nested_pod("keys", {"a": {"configMap": {"name": "map", "items": [
        {"key": "key", "path": "sub/key"}, {"key": "key", "path": "beside"}]}}, "b": DATA_VOLUMES["secret"]},
        specs.mount("a", OUTER), specs.mount("b", f"{OUTER}/sub/inner")))
    root = root_of(node, "keys") + OUTER
    assert world.read(f"{root}/sub/inner/key") == "one" and world.read(f"{root}/beside") == "one"
    assert os.listdir(f"{root}/sub") == ["inner"]


def test_a_mount_point_in_a_sub_path_must_exist(node):
    """As in the kubelet, no mount point is created in a subPath, nor in read-only volumes of other kinds."""
    os.makedirs(f"{node.data}/there/inner")
    drop_objects(node)
    volumes = {"h": {"hostPath": {"path": f"{node.data}/there"}}, "b": DATA_VOLUMES["secret"], "e": {"emptyDir": {}}}
    node.launch(nested_pod("exists", volumes, specs.mount("h", OUTER, readOnly=True), specs.mount("b", f"{OUTER}/inner")))
    assert world.read(root_of(node, "exists") + f"{OUTER}/inner/key") == "one"
    for name, outer in (("host", "h"), ("empty", "e")):
        node.drop(nested_pod(name, volumes, specs.mount(outer, OUTER, readOnly=True), specs.mount("b", f"{OUTER}/missing")))
        node.wait_pod(name, lambda pod: "read-only file system" in str(pod["status"]), "reports the reason")
    node.launch(nested_pod("made", volumes, specs.mount("h", OUTER), specs.mount("b", f"{OUTER}/missing")))
    assert os.path.isdir(f"{node.data}/there/missing"), "runc creates it on the host"


def test_a_mount_point_in_an_image_volume_must_be_in_the_image(node):
    node.preload(model(node, {"place/file": b"x"}))
    drop_objects(node)
    volumes = {"i": {"image": {"reference": MODEL}}, "b": DATA_VOLUMES["secret"]}
    node.launch(nested_pod("there", volumes, specs.mount("i", OUTER), specs.mount("b", f"{OUTER}/place")))
    assert world.read(root_of(node, "there") + f"{OUTER}/place/key") == "one"
    node.drop(nested_pod("missing", volumes, specs.mount("i", OUTER), specs.mount("b", f"{OUTER}/none")))
    node.wait_pod("missing", lambda pod: "read-only file system" in str(pod["status"]), "reports the reason")


def test_an_image_volume_is_mounted_below_a_data_volume(node):
    node.preload(model(node, {"weights": b"one"}))
    drop_objects(node)
    node.launch(nested_pod("image", {"a": DATA_VOLUMES["configMap"], "i": {"image": {"reference": MODEL}}},
                           specs.mount("a", OUTER), specs.mount("i", f"{OUTER}/model")))
    assert world.read(root_of(node, "image") + f"{OUTER}/model/weights") == "one"
