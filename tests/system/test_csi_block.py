# SPDX-License-Identifier: Apache-2.0
"""Claims with volumeMode Block: block devices in containers."""

import json
import os
import re
import subprocess

import failing
import pytest
import specs
import world
from csi_driver import DRIVER, EXPAND, STAGE, CsiDriver
from harness import NODE_NAME
from test_apiserver_volumes import bind, claim, events_of, volume
from test_csi_claims import ATTACHMENT, HANDLE, csi_driver_object, end_driver, kubelet_path
from test_ephemeral import add_ephemeral, ephemeral, reported_state
from world import wait

DEVICE = "/dev/xvda"
CLAIM = {"persistentVolumeClaim": {"claimName": "c"}}
READS = f"dd if={DEVICE} bs=16 count=1 2>/dev/null; echo; dd if=/dev/zero of={DEVICE} bs=512 count=1 2>/dev/null && echo written; " + specs.IDLE


@pytest.fixture(name="disk")
def fixture_disk(tmp_path):
    image = str(tmp_path / "disk")
    with open(image, "wb") as file:
        file.write(b"sixteen bytes..\n".ljust(1 << 20, b"\0"))
    loop = subprocess.run(["losetup", "--find", "--show", image], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    yield loop
    world.run("losetup", "--detach", loop)


@pytest.fixture(name="make_driver")
def fixture_make_driver(disk):
    made = []

    def make(member, **options):
        driver = CsiDriver(member, **options)
        driver.disk = disk
        made.append((member, driver))
        csi_driver_object(member)
        return driver.register().wait_registered()

    yield make
    for member, driver in made:
        end_driver(member, driver)


def block_volume(member, **source):
    return volume(member, "pv-c", claim(member, "c", "pv-c"), **{"csi": {"driver": DRIVER, "volumeHandle": HANDLE}, "volumeMode": "Block", **source})


def bind_device(member, name, script=READS, source=None, **spec):
    return member.bind(name, specs.container(script=script, volumeDevices=[{"name": "v", "devicePath": DEVICE}]),
                       volumes=[{"name": "v", **(source or CLAIM)}], **spec)


def block_path(member, *words):
    return kubelet_path(member, "plugins", "kubernetes.io", "csi", "volumeDevices", *words)


def assert_nothing_left(member):
    assert os.listdir(kubelet_path(member, "pods")) == []
    assert not os.path.exists(block_path(member)), os.listdir(block_path(member))


def test_block_device_is_published_to_the_container_and_unpublished(make_member, make_driver):
    member = make_member()
    driver = make_driver(member)
    block_volume(member, mountOptions=["noatime"])
    bind_device(member, "web", securityContext={"fsGroup": 1234})
    member.wait_reported_phase("web", "Running")
    uid = member.reported("web")["metadata"]["uid"]
    stage, publish = driver.call("NodeStageVolume"), driver.call("NodePublishVolume")
    assert stage["capability"] == publish["capability"] == {"block": True, "mode": 1}
    assert stage["staging"] == publish["staging"] == block_path(member, "staging", "pv-c")
    assert publish["target"] == block_path(member, "publish", "pv-c", uid) and not publish["read_only"]
    assert os.readlink(kubelet_path(member, "pods", uid, "volumeDevices", "kubernetes.io~csi", "pv-c")) == publish["target"]
    assert json.loads(world.read(block_path(member, "pv-c", "data", "vol_data.json"))) == {
        "attachmentID": ATTACHMENT, "driverName": DRIVER, "nodeName": NODE_NAME, "specVolID": "pv-c", "volumeHandle": HANDLE}
    wait(lambda: "written" in "\n".join(member.logged("web")), lambda: member.logged("web"))
    assert any("sixteen bytes.." in line for line in member.logged("web"))
    member.api.delete("pods", "default", "web")
    member.wait_reported_gone("web")
    assert driver.methods() == ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]
    assert driver.call("NodeUnpublishVolume")["target"] == publish["target"]
    assert driver.call("NodeUnstageVolume")["staging"] == stage["staging"]
    assert_nothing_left(member)


def test_read_only_device_cannot_be_written(make_member, make_driver):
    member = make_member()
    driver = make_driver(member, capabilities=[])
    block_volume(member)
    bind_device(member, "web", source={"persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
                script=f"echo x > {DEVICE} || echo refused; dd if={DEVICE} bs=7 count=1 2>/dev/null; echo; {specs.IDLE}")
    member.wait_reported_phase("web", "Running")
    assert driver.methods() == ["NodePublishVolume"] and driver.call("NodePublishVolume")["read_only"]
    wait(lambda: any("sixteen" in line for line in member.logged("web")), lambda: member.logged("web"))
    assert any("refused" in line for line in member.logged("web"))


def test_other_devices_stay_refused(make_member, make_driver, disk):
    member = make_member()
    make_driver(member)
    block_volume(member)
    number = os.minor(os.stat(disk).st_rdev) + 1
    bind_device(member, "web", script=f"mknod /tmp/x b 7 {number}; dd if=/tmp/x bs=1 count=1 2>&1 || echo refused; {specs.IDLE}")
    member.wait_reported_phase("web", "Running")
    wait(lambda: any("refused" in line for line in member.logged("web")), lambda: member.logged("web"))


def test_block_device_stays_across_restarts_of_container_agent_and_driver(make_member, make_driver):
    member = make_member()
    driver = make_driver(member)
    block_volume(member)
    bind_device(member, "web", restartPolicy="Always")
    member.wait_reported_phase("web", "Running")
    pid = member.init("web")
    member.kill9()
    driver.crash()
    member.start()
    driver.serve()
    driver.register().wait_registered()
    member.wait_running("web")
    assert member.init("web") == pid
    os.kill(pid, 9)
    member.wait_restarts("web", 1)
    assert driver.methods() == ["NodeStageVolume", "NodePublishVolume"]
    member.api.delete("pods", "default", "web")
    member.wait_reported_gone("web")
    assert driver.methods()[2:] == ["NodeUnpublishVolume", "NodeUnstageVolume"]
    assert_nothing_left(member)


def test_block_device_is_unpublished_if_its_pod_ended_without_an_agent(make_member, make_driver):
    member = make_member()
    driver = make_driver(member)
    block_volume(member)
    for name in ("one", "two"):
        bind_device(member, name)
        member.wait_reported_phase(name, "Running")
    member.kill9()
    for name in ("one", "two"):
        member.api.delete("pods", "default", name)
    member.start()
    for name in ("one", "two"):
        member.wait_reported_gone(name)
    assert driver.methods()[3:] == ["NodeUnpublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]
    assert_nothing_left(member)


def test_block_device_is_expanded_before_its_pod_starts(make_member, make_driver):
    member = make_member()
    driver = make_driver(member, capabilities=[STAGE, EXPAND])
    block_volume(member, capacity={"storage": "2Gi"})
    member.api.patch("persistentvolumeclaims", "default", "c", {"status": {"capacity": {"storage": "1Gi"}}}, subresource="status")
    bind_device(member, "web")
    member.wait_reported_phase("web", "Running")
    uid = member.reported("web")["metadata"]["uid"]
    assert driver.methods() == ["NodeStageVolume", "NodePublishVolume", "NodeExpandVolume"]
    assert driver.call("NodeExpandVolume") == {
        "id": HANDLE, "path": block_path(member, "publish", "pv-c", uid), "bytes": 2 << 30, "staging": block_path(member, "staging", "pv-c"),
        "capability": {"block": True, "mode": 1}, "secrets": {}}
    wait(lambda: member.api.get("persistentvolumeclaims", "default", "c")["status"]["capacity"] == {"storage": "2Gi"}, member.said)


def test_ephemeral_container_has_the_device(make_member, make_driver):
    member = make_member()
    make_driver(member)
    block_volume(member)
    bind_device(member, "web", specs.IDLE)
    member.wait_reported_phase("web", "Running")
    add_ephemeral(member, "web", {**ephemeral(script=f"dd if={DEVICE} bs=15 count=1; exit 5"), "volumeDevices": [
        {"name": "v", "devicePath": DEVICE}]})
    member.wait_reported("web", lambda _: reported_state(member, "web").get("terminated", {}).get("exitCode") == 5, member.said)
    assert "sixteen bytes.." in "".join(member.logged("web", "dbg"))


@pytest.mark.parametrize("step", ["csi.staging", "csi.publishing", "csi.unpublished"])
def test_block_device_leaves_nothing_behind_if_the_agent_dies_during_a_call(archive, api, disk, step):
    member = failing.FailingMember(api, archive=archive)
    driver = CsiDriver(member)
    driver.disk = disk
    try:
        csi_driver_object(member)
        driver.register().wait_registered()
        block_volume(member)
        member.arm({f"mainstayd:{step}": "1*panic"})
        bind_device(member, "web")
        if step == "csi.unpublished":
            member.wait_reported_phase("web", "Running")
            member.api.delete("pods", "default", "web")
        wait(lambda: member.get("/pods")[0] == 200 and member.n_deaths == 1, "the agent has died and was restarted")
        if step != "csi.unpublished":
            member.wait_reported_phase("web", "Running")
            member.api.delete("pods", "default", "web")
        member.wait_reported_gone("web")
        wait(lambda: os.listdir(kubelet_path(member, "pods")) == [] and not os.path.exists(block_path(member)), lambda: member.said())
        assert driver.methods()[-1] == "NodeUnstageVolume"
    finally:
        member.finish()
        driver.stop()


@pytest.mark.parametrize("mode, uses, message", [
    ("Block", "volumeMounts", "volume v has volumeMode Block, but is specified in volumeMounts"),
    ("Filesystem", "volumeDevices", "volume v has volumeMode Filesystem, but is specified in volumeDevices"),
])
def test_volume_must_be_used_according_to_its_volume_mode(make_member, make_driver, mode, uses, message):
    member = make_member()
    driver = make_driver(member)
    block_volume(member, volumeMode=mode)
    if uses == "volumeMounts":
        bind(member, "web", CLAIM)
    else:
        bind_device(member, "web")
    event = wait(lambda: events_of(member, "web", "FailedMount"), lambda: member.said())[0]
    assert event["message"].endswith(message) and not driver.methods()


def test_claim_bound_to_a_host_path_cannot_be_a_block_device(make_member):
    member = make_member()
    volume(member, "pv-c", claim(member, "c", "pv-c"), hostPath={"path": "/dev/null"}, volumeMode="Block")
    bind_device(member, "web")
    event = wait(lambda: events_of(member, "web", "FailedMount"), lambda: member.said())[0]
    assert "MapVolume.FindMapperPluginBySpec failed to find BlockVolumeMapper plugin" in event["message"]


def test_local_device_needs_no_driver(make_member, disk):
    member = make_member()
    volume(member, "pv-c", claim(member, "c", "pv-c"), local={"path": disk}, volumeMode="Block", nodeAffinity={
        "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]}})
    bind_device(member, "web")
    member.wait_reported_phase("web", "Running")
    wait(lambda: "written" in "\n".join(member.logged("web")), lambda: member.logged("web"))


def test_pod_waits_for_its_block_device_driver_with_the_message_of_the_kubelet(make_member):
    member = make_member()
    block_volume(member)
    csi_driver_object(member)
    bind_device(member, "web")
    event = wait(lambda: events_of(member, "web", "FailedMapVolume"), lambda: member.said())[0]
    assert re.fullmatch('MapVolume.SetUpDevice failed for volume "pv-c" : kubernetes.io/csi: blockMapper.SetUpDevice failed to get CSI '
                        f"client: driver name {DRIVER} not found in the list of registered CSI drivers", event["message"])
