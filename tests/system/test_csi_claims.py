# SPDX-License-Identifier: Apache-2.0
"""Volumes of CSI drivers for pods of an API server: CSINode and Node, claims that are bound to PersistentVolumes, their attachment, and
ephemeral volumes by CSIDriver."""

import base64
import hashlib
import json
import os

import grpc
import pytest
import specs
import world
from csi_driver import DRIVER, MULTI_WRITER, STAGE, CsiDriver, mounted_at
from harness import NODE_NAME
from test_apiserver_volumes import bind, claim, events_of, volume
from world import wait

HANDLE = "disk-1"
ATTACHMENT = "csi-" + hashlib.sha256(f"{HANDLE}{DRIVER}{NODE_NAME}".encode()).hexdigest()


def end_driver(member, driver):
    """Ends the driver after all pods of the API server have ended."""
    for pod in member.api.all("pods"):
        member.api.delete("pods", "default", pod["metadata"]["name"])
    wait(lambda: not member.pods(), member.said)
    driver.stop()


@pytest.fixture(name="make_driver")
def fixture_make_driver():
    made = []

    def make(member, **options):
        made.append((member, CsiDriver(member, **options).register().wait_registered()))
        return made[-1][1]

    yield make
    for member, driver in made:
        end_driver(member, driver)


def csi_driver_object(member, **spec):
    return member.api.create("csidrivers", {"metadata": {"name": DRIVER}, "spec": {"attachRequired": False, **spec}})


def disk(member, name="c", csi=None, **spec):
    """Creates a claim and its volume, which belongs to the driver."""
    bound = claim(member, name, f"pv-{name}")
    return volume(member, f"pv-{name}", bound, csi={"driver": DRIVER, "volumeHandle": HANDLE, **(csi or {})}, **spec)


def kubelet_path(member, *words):
    return os.path.join(member.directory, "kubelet", *words)


def stage_directory(member):
    return kubelet_path(member, "plugins", "kubernetes.io", "csi", DRIVER, hashlib.sha256(HANDLE.encode()).hexdigest())


def csi_node(member):
    return member.api.get("csinodes", None, NODE_NAME)


def names_of(found):
    return {one["name"] for one in (found or {"spec": {"drivers": []}})["spec"]["drivers"]}


def node_object(member):
    return member.api.get("nodes", None, NODE_NAME)


def test_driver_is_listed_in_the_csinode_and_annotated_on_the_node(make_member, make_driver):
    member = make_member()
    driver = make_driver(member, node_id="i-1", limit=5, topology={"topology.example.com/zone": "b"})
    wait(lambda: csi_node(member), lambda: member.said())
    found, node = csi_node(member), node_object(member)
    assert found["spec"]["drivers"] == [{"name": DRIVER, "nodeID": "i-1", "topologyKeys": ["topology.example.com/zone"],
                                         "allocatable": {"count": 5}}]
    assert found["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Node", "name": NODE_NAME, "uid": node["metadata"]["uid"]}]
    assert "kubernetes.io/cinder" in found["metadata"]["annotations"]["storage.alpha.kubernetes.io/migrated-plugins"]
    wait(lambda: node_object(member)["metadata"]["labels"].get("topology.example.com/zone") == "b", "its topology is a label")
    annotations = node_object(member)["metadata"]["annotations"]
    assert json.loads(annotations["csi.volume.kubernetes.io/nodeid"]) == {DRIVER: "i-1"}
    assert annotations["volumes.kubernetes.io/controller-managed-attach-detach"] == "true"
    driver.registrar.remove()
    wait(lambda: csi_node(member)["spec"]["drivers"] == [], lambda: csi_node(member))
    wait(lambda: "csi.volume.kubernetes.io/nodeid" not in node_object(member)["metadata"]["annotations"], "the annotation is gone")
    assert node_object(member)["metadata"]["labels"]["topology.example.com/zone"] == "b"
    driver.register()
    wait(lambda: len(csi_node(member)["spec"]["drivers"]) == 1, lambda: csi_node(member))


def test_csinode_of_another_node_is_replaced_and_other_drivers_stay(make_member, make_driver):
    member = make_member()
    other = {"name": "other.example.com", "nodeID": "o", "topologyKeys": None}
    member.api.create("csinodes", {"metadata": {"name": NODE_NAME, "ownerReferences": [
        {"apiVersion": "v1", "kind": "Node", "name": NODE_NAME, "uid": "0-0"}]}, "spec": {"drivers": [other]}})
    make_driver(member)
    wait(lambda: names_of(csi_node(member)) == {DRIVER}, lambda: (csi_node(member), member.said()))
    member.api.patch("csinodes", None, NODE_NAME, {"spec": {"drivers": [other]}})
    member.restart()
    wait(lambda: names_of(csi_node(member)) == {DRIVER, "other.example.com"}, lambda: csi_node(member))


def test_claim_is_staged_published_unpublished_and_unstaged(make_member, make_driver):
    member = make_member()
    driver = make_driver(member)
    csi_driver_object(member)
    for name in ("stage", "publish"):
        member.api.create("secrets", {"metadata": {"name": name}, "data": {"word": base64.b64encode(name.encode()).decode()}})
    disk(member, csi={"fsType": "ext4", "volumeAttributes": {"a": "b"},
                      "nodeStageSecretRef": {"name": "stage", "namespace": "default"},
                      "nodePublishSecretRef": {"name": "publish", "namespace": "default"}}, mountOptions=["noatime", "discard"])
    bind(member, "web", {"persistentVolumeClaim": {"claimName": "c"}})
    member.wait_reported_phase("web", "Running")
    assert driver.methods() == ["NodeStageVolume", "NodePublishVolume"]
    stage, publish = driver.call("NodeStageVolume"), driver.call("NodePublishVolume")
    directory = stage_directory(member)
    capability = {"fs_type": "ext4", "flags": ["noatime", "discard"], "group": "", "mode": 1}
    assert stage == {"id": HANDLE, "publish_context": {}, "staging": directory + "/globalmount", "capability": capability,
                     "secrets": {"word": "stage"}, "context": {"a": "b"}}
    uid = member.reported("web")["metadata"]["uid"]
    volume_dir = kubelet_path(member, "pods", uid, "volumes", "kubernetes.io~csi", "pv-c")
    assert publish == {"id": HANDLE, "publish_context": {}, "staging": stage["staging"], "target": volume_dir + "/mount",
                       "capability": capability, "read_only": False, "secrets": {"word": "publish"}, "context": {"a": "b"}}
    assert json.loads(world.read(directory + "/vol_data.json")) == {"driverName": DRIVER, "volumeHandle": HANDLE}
    assert json.loads(world.read(volume_dir + "/vol_data.json")) == {
        "attachmentID": ATTACHMENT, "driverName": DRIVER, "nodeName": NODE_NAME, "specVolID": "pv-c", "volumeHandle": HANDLE,
        "volumeLifecycleMode": "Persistent"}
    for path in (directory, volume_dir, kubelet_path(member, "pods", uid)):
        assert os.stat(path).st_mode & 0o777 == os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o750
    assert not node_object(member)["status"].get("volumesInUse"), "it is not attached"
    member.api.delete("pods", "default", "web")
    member.wait_reported_gone("web")
    assert driver.methods() == ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]
    assert driver.call("NodeUnstageVolume") == {"id": HANDLE, "staging": stage["staging"]}
    assert not os.path.exists(directory) and os.listdir(kubelet_path(member, "pods")) == []


@pytest.mark.parametrize("modes, capabilities, mode", [
    (["ReadWriteOnce"], [], 1), (["ReadOnlyMany"], [], 3), (["ReadWriteMany", "ReadOnlyMany"], [], 5), (["ReadWriteOncePod"], [], 1),
    (["ReadWriteOnce"], [STAGE, MULTI_WRITER], 7), (["ReadWriteOncePod"], [STAGE, MULTI_WRITER], 6),
])
def test_access_mode_is_the_first_of_the_volume(make_member, make_driver, modes, capabilities, mode):
    member = make_member()
    driver = make_driver(member, capabilities=capabilities)
    csi_driver_object(member)
    disk(member, accessModes=modes)
    bind(member, "web", {"persistentVolumeClaim": {"claimName": "c", "readOnly": mode == 3}})
    member.wait_reported_phase("web", "Running")
    publish = driver.call("NodePublishVolume")
    assert publish["capability"]["mode"] == mode and publish["read_only"] == (mode == 3)
    assert bool(publish["staging"]) == (STAGE in capabilities) == bool(driver.count("NodeStageVolume"))


def test_volume_waits_until_it_is_attached(make_member, make_driver):
    member = make_member()
    driver = make_driver(member)
    csi_driver_object(member, attachRequired=True)
    disk(member)
    bind(member, "web", {"persistentVolumeClaim": {"claimName": "c"}})
    wait(lambda: member.api.asked("get", "volumeattachments", ATTACHMENT), lambda: member.said())
    assert driver.methods() == []
    member.api.create("volumeattachments", {
        "metadata": {"name": ATTACHMENT}, "spec": {"attacher": DRIVER, "nodeName": NODE_NAME, "source": {"persistentVolumeName": "pv-c"}},
        "status": {"attached": False}})
    member.api.patch("volumeattachments", None, ATTACHMENT, {"status": {"attached": True, "attachmentMetadata": {"path": "/dev/x"}}}, "status")
    member.wait_reported_phase("web", "Running")
    assert driver.call("NodeStageVolume")["publish_context"] == driver.call("NodePublishVolume")["publish_context"] == {"path": "/dev/x"}
    assert not events_of(member, "web", "FailedMount") and "Cannot watch volumeattachment" not in member.said()

    def in_use():
        return node_object(member)["status"].get("volumesInUse")
    wait(lambda: in_use() == [f"kubernetes.io/csi/{DRIVER}^{HANDLE}"], in_use)
    member.restart()
    member.wait_reported_phase("web", "Running")
    assert in_use() == [f"kubernetes.io/csi/{DRIVER}^{HANDLE}"]
    driver.register().wait_registered()
    member.api.delete("pods", "default", "web")
    member.wait_reported_gone("web")
    wait(lambda: not in_use(), in_use)


def test_two_pods_share_a_staged_volume_across_a_restart_of_the_agent(make_member, make_driver):
    member = make_member()
    driver = make_driver(member)
    csi_driver_object(member)
    disk(member)
    for name in ("one", "two"):
        bind(member, name, {"persistentVolumeClaim": {"claimName": "c"}})
        member.wait_reported_phase(name, "Running")
    assert driver.methods() == ["NodeStageVolume", "NodePublishVolume", "NodePublishVolume"]
    member.kill9()
    for name in ("one", "two"):
        member.api.delete("pods", "default", name)
    member.start()
    for name in ("one", "two"):
        member.wait_reported_gone(name)
    assert driver.methods()[3:] == ["NodeUnpublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]
    assert not os.path.exists(stage_directory(member))


def test_refused_staging_is_an_event_and_leaves_nothing_behind(make_member, make_driver):
    member = make_member()
    driver = make_driver(member)
    csi_driver_object(member)
    disk(member)
    driver.fail("NodeStageVolume", grpc.StatusCode.NOT_FOUND, "no disk")
    bind(member, "web", {"persistentVolumeClaim": {"claimName": "c"}})
    event = wait(lambda: events_of(member, "web", "FailedMount"), lambda: member.said())[0]
    assert event["message"] == 'MountVolume.MountDevice failed for volume "pv-c" : rpc error: code = NotFound desc = no disk'
    assert not os.path.exists(stage_directory(member))
    driver.errors.clear()
    member.wait_reported_phase("web", "Running")


def test_claim_without_its_driver_waits_with_the_message_of_the_kubelet(make_member, make_driver):
    member = make_member()
    csi_driver_object(member)
    disk(member)
    bind(member, "web", {"persistentVolumeClaim": {"claimName": "c"}})
    event = wait(lambda: events_of(member, "web", "FailedMount"), lambda: member.said())[0]
    assert event["message"] == 'MountVolume.MountDevice failed for volume "pv-c" : kubernetes.io/csi: attacher.MountDevice failed to create ' \
        f"newCsiDriverClient: driver name {DRIVER} not found in the list of registered CSI drivers"
    make_driver(member)
    member.wait_reported_phase("web", "Running")


@pytest.mark.parametrize("spec, word", [
    (None, f'volume mode "Ephemeral" not supported by driver {DRIVER} (no CSIDriver object)'),
    ({}, f'volume mode "Ephemeral" not supported by driver {DRIVER} (only supports [Persistent])'),
])
def test_ephemeral_volume_needs_a_driver_that_declares_it(make_member, make_driver, spec, word):
    member = make_member()
    driver = make_driver(member)
    if spec is not None:
        csi_driver_object(member, **spec)
    bind(member, "web", {"csi": {"driver": DRIVER}})
    event = wait(lambda: events_of(member, "web", "FailedMount"), lambda: member.said())[0]
    assert event["message"] == f'MountVolume.SetUp failed for volume "v" : {word}'
    assert driver.methods() == []


@pytest.mark.parametrize("has_info", [True, False])
def test_ephemeral_volume_of_an_api_server_pod_has_pod_information_if_the_driver_requires_it(make_member, make_driver, has_info):
    member = make_member()
    driver = make_driver(member)
    csi_driver_object(member, volumeLifecycleModes=["Persistent", "Ephemeral"], podInfoOnMount=has_info)
    bind(member, "web", {"csi": {"driver": DRIVER, "volumeAttributes": {"a": "b"}}})
    member.wait_reported_phase("web", "Running")
    context, metadata = driver.call("NodePublishVolume")["context"], member.reported("web")["metadata"]
    info = {"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": "web", "csi.storage.k8s.io/pod.namespace": "default",
            "csi.storage.k8s.io/pod.uid": metadata["uid"], "csi.storage.k8s.io/serviceAccount.name": "default"}
    assert context == {"a": "b", **(info if has_info else {})}


@pytest.mark.parametrize("policy, access, fs_type, group", [
    (None, "ReadWriteOnce", "ext4", 2000), (None, "ReadWriteMany", "ext4", 0), (None, "ReadWriteOnce", "", 0),
    ("File", "ReadWriteMany", "", 2000), ("None", "ReadWriteOnce", "ext4", 0),
])
def test_fs_group_of_a_claim_follows_the_policy_of_its_driver(make_member, make_driver, policy, access, fs_type, group):
    member = make_member()
    driver = make_driver(member)
    csi_driver_object(member, **({"fsGroupPolicy": policy} if policy else {}))
    disk(member, csi={"fsType": fs_type} if fs_type else {}, accessModes=[access])
    bind(member, "web", {"persistentVolumeClaim": {"claimName": "c"}}, securityContext={"fsGroup": 2000})
    member.wait_reported_phase("web", "Running")
    target = driver.call("NodePublishVolume")["target"]
    assert mounted_at(target) and os.stat(target).st_gid == group


def test_pod_starts_again_without_the_server(make_member, make_driver):
    member = make_member()
    driver = make_driver(member)
    csi_driver_object(member)
    disk(member)
    bind(member, "web", {"persistentVolumeClaim": {"claimName": "c"}})
    member.wait_reported_phase("web", "Running")
    member.api.stop()
    member.restart()
    driver.wait_registered()
    pid = member.init("web")
    os.kill(pid, 9)
    wait(lambda: member.find_init("web", "main") not in (None, pid), lambda: member.said())
    member.api.start()
