# SPDX-License-Identifier: Apache-2.0
"""The expansion of volumes of CSI drivers: before a pod starts, while it runs, and the updates of the claim."""

import base64
import os

import clocked
import failing
import grpc
import pytest
from csi_driver import EXPAND, STAGE, CsiDriver
from harness import NODE_NAME
from test_apiserver_volumes import bind, events_of
from test_csi_claims import csi_driver_object, disk, end_driver, stage_directory
from test_csi_republish import CLAIM, SYNC, start
from world import wait

CALL, GIB = "NodeExpandVolume", 1 << 30
STATUSES = "allocatedResourceStatuses"
RPC = 'rpc error: code = %s desc = no'


@pytest.fixture(name="make")
def fixture_make(archive, api, library):
    """A node that has joined, a driver that can expand volumes, and a claim of 1 GiB."""
    made = []

    def make(capabilities=(STAGE, EXPAND), **spec):
        member = clocked.ClockedMember(library, api, archive=archive)
        driver = CsiDriver(member, capabilities=capabilities)
        made.append((member, driver))
        prepare(member, driver, **spec)
        return member, driver

    yield make
    for member, driver in made:
        end_driver(member, driver)
        member.finish()


def prepare(member, driver, **spec):
    csi_driver_object(member)
    driver.register().wait_registered()
    disk(member, **spec)
    member.api.patch("persistentvolumeclaims", "default", "c", {"spec": {"resources": {"requests": {"storage": "1Gi"}}}})
    write_status(member, capacity={"storage": "1Gi"})


def read(member):
    return member.api.get("persistentvolumeclaims", "default", "c")


def write_status(member, **status):
    member.api.patch("persistentvolumeclaims", "default", "c", {"status": status}, subresource="status")


def expand(member, size="2Gi", stage="NodeResizePending"):
    """Expands the volume like a user and a current controller; an old controller sets no stage."""
    member.api.patch("persistentvolumeclaims", "default", "c", {"spec": {"resources": {"requests": {"storage": size}}}})
    member.api.patch("persistentvolumes", None, "pv-c", {"spec": {"capacity": {"storage": size}}})
    pending = {"type": "FileSystemResizePending", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    more = {"allocatedResources": {"storage": size}, STATUSES: {"storage": stage}} if stage else {}
    write_status(member, conditions=[pending, {"type": "Unrelated", "status": "True"}], **more)


def wait_expanded(member, size="2Gi"):
    wait(lambda: read(member)["status"]["capacity"]["storage"] == size, lambda: (read(member), member.said()))


def wait_condition(member, message):
    def found():
        return [one["message"] for one in read(member)["status"].get("conditions", []) if one["type"] == "NodeResizeError"]
    wait(lambda: found() == [message], lambda: (read(member), member.said()))


def size_of(path):
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize


def conditions(member):
    return [one["type"] for one in read(member)["status"]["conditions"]]


def test_volume_of_a_running_pod_is_expanded(make):
    member, driver = make(csi={"fsType": "ext4", "nodeExpandSecretRef": {"name": "key", "namespace": "default"}}, mountOptions=["noatime"])
    member.api.create("secrets", {"metadata": {"name": "key"}, "data": {"word": base64.b64encode(b"grow").decode()}})
    pid = start(member)
    expand(member)
    member.let_pass(SYNC)
    wait_expanded(member)
    target = driver.call("NodePublishVolume")["target"]
    assert driver.call(CALL) == {
        "id": "disk-1", "path": target, "bytes": 2 * GIB, "staging": stage_directory(member) + "/globalmount",
        "capability": {"fs_type": "ext4", "flags": ["noatime"], "group": "", "mode": 1}, "secrets": {"word": "grow"}}
    assert driver.count(CALL) == 1 and size_of(target) == 2 * GIB and member.init("web") == pid
    status = read(member)["status"]
    assert conditions(member) == ["Unrelated"] and STATUSES not in status and status["allocatedResources"] == {"storage": "2Gi"}
    stages = [one.body["status"] for one in member.api.asked("patch", "persistentvolumeclaims", subresource="status")
              if STATUSES in one.body["status"] and "capacity" not in one.body["status"]]
    assert stages == [{STATUSES: {"storage": "NodeResizeInProgress"}}]
    for name, kind in (("web", "Pod"), ("c", "PersistentVolumeClaim")):
        event = wait(lambda: events_of(member, name, "FileSystemResizeSuccessful"), lambda: member.api.all("events"))[0]
        assert event["message"] == f'MountVolume.NodeExpandVolume succeeded for volume "pv-c" {NODE_NAME}'
        assert event["involvedObject"]["kind"] == kind and event["type"] == "Normal"
    member.let_pass(2 * SYNC)
    assert driver.count(CALL) == 1


def test_volume_is_expanded_before_its_pod_starts(make):
    member, driver = make()
    expand(member, stage="NodeResizePending")
    held = driver.hold_back(CALL)
    bind(member, "web", CLAIM)
    wait(lambda: driver.count(CALL) == 1, member.said)
    assert read(member)["status"][STATUSES] == {"storage": "NodeResizeInProgress"}
    assert member.reported("web")["status"]["phase"] == "Pending"
    held.set()
    member.wait_reported_phase("web", "Running")
    wait_expanded(member)
    assert driver.methods() == ["NodeStageVolume", "NodePublishVolume", CALL]


@pytest.mark.parametrize("running", [False, True])
def test_volume_of_an_old_controller_is_expanded(make, running):
    member, driver = make()
    if running:
        start(member)
    expand(member, stage=None)
    if running:
        member.let_pass(SYNC)
    else:
        start(member)
    wait_expanded(member)
    assert driver.count(CALL) == 1 and conditions(member) == ["Unrelated"]


def test_claim_is_read_once_a_minute_only_if_its_driver_can_expand(make):
    member, driver = make(capabilities=(STAGE,))
    start(member)
    reads = len(member.api.asked("get", "persistentvolumeclaims"))
    member.let_pass(5 * SYNC)
    expand(member)
    member.let_pass(5 * SYNC)
    assert len(member.api.asked("get", "persistentvolumeclaims")) == reads and driver.count(CALL) == 0


def test_volume_of_a_driver_that_cannot_expand_fails_if_the_claim_waits_for_it(make):
    member, _ = make(capabilities=(STAGE,))
    expand(member)
    bind(member, "web", CLAIM)
    why = "NodeExpand is not supported by the CSI driver disk.csi.example.com"
    wait_condition(member, f"failed to expand pvc with {why}")
    event = wait(lambda: events_of(member, "web", "FailedMount"), lambda: member.said())[0]
    assert event["message"] == f'MountVolume.Setup failed while expanding volume for volume "pv-c" : {why}'


def test_volume_of_a_driver_that_cannot_expand_is_mounted_as_it_is_for_an_old_controller(make):
    member, driver = make(capabilities=(STAGE,))
    expand(member, stage=None)
    start(member)
    assert driver.count(CALL) == 0 and read(member)["status"]["capacity"] == {"storage": "1Gi"}


def test_failed_expansion_is_an_event_of_the_running_pod_and_retried(make):
    member, driver = make()
    pid = start(member)
    driver.fail(CALL, grpc.StatusCode.INTERNAL, "no", times=1)
    expand(member)
    member.let_pass(SYNC)
    why = f"Expander.NodeExpand failed to expand the volume : {RPC % 'Internal'}"
    event = wait(lambda: events_of(member, "web", "VolumeResizeFailed"), lambda: member.said())[0]
    assert event["message"] == f'NodeExpandVolume.NodeExpandVolume failed for volume "pv-c" : {why}'
    wait_condition(member, f"failed to expand pvc with {why}")
    member.let_pass(SYNC + 2)  # later than its next attempt
    wait_expanded(member)
    assert driver.count(CALL) == 2 and conditions(member) == ["Unrelated"] and member.init("web") == pid


def test_pod_waits_until_a_failed_expansion_succeeds(make):
    member, driver = make()
    driver.fail(CALL, grpc.StatusCode.UNAVAILABLE, "no", times=1)
    expand(member)
    start(member)
    wait_expanded(member)
    assert driver.methods() == ["NodeStageVolume", "NodePublishVolume", CALL, CALL]


@pytest.mark.parametrize("running", [False, True])
def test_infeasible_expansion_is_not_retried(make, running):
    member, driver = make()
    if running:
        start(member)
    driver.fail(CALL, grpc.StatusCode.OUT_OF_RANGE, "no")
    # Longer than the first back-off of the driver.
    member.api.misbehave(plural="persistentvolumeclaims", when=lambda request: "Infeasible" in str(request.body), latency=2)
    expand(member)
    if running:
        member.let_pass(SYNC)
    else:
        bind(member, "web", CLAIM)
    wait(lambda: read(member)["status"].get(STATUSES) == {"storage": "NodeResizeInfeasible"}, lambda: (read(member), member.said()))
    wait_condition(member, f"failed to expand pvc with Expander.NodeExpand failed to expand the volume {RPC % 'OutOfRange'}")
    member.wait_reported_phase("web", "Running")
    member.let_pass(2 * SYNC)
    assert driver.count(CALL) == 1 and read(member)["status"]["capacity"] == {"storage": "1Gi"}


def test_failed_expansion_is_infeasible_once_its_size_is_not_requested_any_more(make):
    member, driver = make()
    start(member)
    driver.fail(CALL, grpc.StatusCode.INTERNAL, "no")
    expand(member)
    member.api.patch("persistentvolumeclaims", "default", "c", {"spec": {"resources": {"requests": {"storage": "1536Mi"}}}})
    member.let_pass(SYNC)
    wait(lambda: driver.count(CALL) == 1, member.said)
    wait(lambda: read(member)["status"].get(STATUSES) == {"storage": "NodeResizeInfeasible"} or member.let_pass(SYNC + 2),
         lambda: (read(member), member.said()))


def test_driver_that_refuses_a_volume_in_use_does_not_delay_its_pod(make):
    member, driver = make()
    driver.fail(CALL, grpc.StatusCode.FAILED_PRECONDITION, "no")
    expand(member)
    start(member)
    member.let_pass(2 * SYNC)
    assert driver.count(CALL) == 1 and read(member)["status"]["capacity"] == {"storage": "1Gi"}


def test_read_only_volume_is_not_expanded(make):
    member, driver = make()
    expand(member)
    start(member, volume={"persistentVolumeClaim": {"claimName": "c", "readOnly": True}})
    event = wait(lambda: events_of(member, "c", "FileSystemResizeFailed"), lambda: member.api.all("events"))[0]
    assert event["message"] == 'MountVolume.NodeExpandVolume failed for volume "pv-c" requested read-only file system'
    assert driver.count(CALL) == 0


def test_volume_of_many_nodes_is_expanded_after_another_node_has_written_the_claim(make):
    member, driver = make(accessModes=["ReadWriteMany"])
    member.api.patch("persistentvolumeclaims", "default", "c", {"spec": {"accessModes": ["ReadWriteMany"]}})
    start(member)
    expand(member)
    member.api.patch("persistentvolumeclaims", "default", "c", {"status": {
        "capacity": {"storage": "2Gi"}, STATUSES: None, "conditions": []}}, subresource="status", strategy=False)
    member.let_pass(SYNC)
    wait(lambda: driver.count(CALL) == 1, member.said)
    assert member.api.asked("patch", "persistentvolumeclaims", subresource="status") == []


def test_expansion_stage_of_the_controller_is_not_changed(make):
    member, driver = make()
    start(member)
    expand(member, stage="ControllerResizeInProgress")
    member.let_pass(SYNC)
    wait(lambda: len(member.api.asked("get", "persistentvolumes")) >= 2, member.said)
    assert driver.count(CALL) == 0
    write_status(member, **{STATUSES: {"storage": "NodeResizePending"}})
    member.let_pass(2 * SYNC)
    wait_expanded(member)


@pytest.mark.parametrize("point, calls", [("csi.expanding", 1), ("csi.expanded", 2)])
def test_expansion_continues_after_the_agent_dies(archive, api, point, calls):
    member = failing.FailingMember(api, archive=archive)
    driver = CsiDriver(member, capabilities=(STAGE, EXPAND))
    try:
        prepare(member, driver)
        member.arm({f"mainstayd:{point}": "1*panic"})
        expand(member)
        bind(member, "web", CLAIM)
        wait(lambda: member.get("/pods")[0] == 200 and member.n_deaths == 1, "the agent has died and was restarted")
        member.wait_reported_phase("web", "Running")
        wait_expanded(member)
        assert driver.count(CALL) == calls and size_of(driver.call(CALL)["path"]) == 2 * GIB
        end_driver(member, driver)
    finally:
        member.finish()
        driver.stop()
