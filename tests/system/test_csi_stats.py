# SPDX-License-Identifier: Apache-2.0
"""The usage of volumes as reported by their CSI drivers."""

import json

import grpc
from csi_driver import CONDITION, DRIVER, STAGE, STATS
from test_apiserver_volumes import bind
from test_csi_claims import csi_driver_object, disk, fixture_make_driver  # pylint: disable=unused-import
from world import wait

CLAIM = {"persistentVolumeClaim": {"claimName": "c"}}
NUMBERS = {"availableBytes": 700, "capacityBytes": 1000, "usedBytes": 300, "inodesFree": 70, "inodes": 100, "inodesUsed": 30}


def start(member, *names, volume=None):
    for name in names:
        bind(member, name, volume or CLAIM)
        member.wait_reported_phase(name, "Running")


def volumes_of(member, name):
    pods = json.loads(member.get("/stats/summary")[1])["pods"]
    return [one for pod in pods if pod["podRef"]["name"] == name for one in pod.get("volume", [])]


def metrics(member):
    return [line for line in member.get("/metrics")[1].splitlines() if line.startswith("kubelet_volume_stats_")]


def test_claim_usage_is_in_the_summary_and_the_metrics(make_member, make_driver):
    member = make_member()
    driver = make_driver(member, capabilities=[STAGE, STATS])
    csi_driver_object(member)
    disk(member)
    start(member, "one", "two")
    assert driver.count("NodeGetVolumeStats") == 0, "there was no request"
    found = wait(lambda: volumes_of(member, "one"), lambda: member.said())
    assert [{key: value for key, value in one.items() if key != "time"} for one in found] == [
        {"name": "v", "pvcRef": {"name": "c", "namespace": "default"}, **NUMBERS}]
    target = driver.call("NodePublishVolume")["target"]
    wait(lambda: driver.count("NodeGetVolumeStats") == 2, lambda: driver.calls)
    assert target in {call["target"] for method, call in driver.calls if method == "NodeGetVolumeStats"}
    labels = '{namespace="default",persistentvolumeclaim="c"}'
    expected = {f"kubelet_volume_stats_{name}{labels} {value}" for name, value in (
        ("capacity_bytes", 1000), ("available_bytes", 700), ("used_bytes", 300), ("inodes", 100), ("inodes_free", 70), ("inodes_used", 30))}
    wait(lambda: set(metrics(member)) == expected, lambda: metrics(member))
    volumes_of(member, "one")
    assert driver.count("NodeGetVolumeStats") == 2, "within a minute it is queried once for each pod"


def test_volume_health_is_reported_if_the_driver_supports_it(make_member, make_driver):
    member = make_member()
    driver = make_driver(member, capabilities=[STATS, CONDITION])
    driver.is_abnormal = True
    csi_driver_object(member)
    disk(member)
    start(member, "web")
    assert wait(lambda: volumes_of(member, "web"), lambda: member.said())[0]["volumeHealthStats"] == {"abnormal": True}
    assert 'kubelet_volume_stats_health_status_abnormal{namespace="default",persistentvolumeclaim="c"} 1' in metrics(member)


def test_ephemeral_volume_has_usage_and_no_claim(make_member, make_driver):
    member = make_member()
    make_driver(member, capabilities=[STATS])
    csi_driver_object(member, volumeLifecycleModes=["Ephemeral"])
    start(member, "web", volume={"csi": {"driver": DRIVER}})
    found = wait(lambda: volumes_of(member, "web"), lambda: member.said())[0]
    assert "pvcRef" not in found and found["usedBytes"] == 300 and not metrics(member)


def test_driver_without_statistics_is_not_queried(make_member, make_driver):
    member = make_member()
    driver = make_driver(member)
    csi_driver_object(member)
    disk(member)
    start(member, "web")
    before = len(driver.calls)
    volumes_of(member, "web")
    wait(lambda: len(driver.calls) > before, lambda: driver.calls)
    assert driver.calls[-1][0] == "NodeGetCapabilities" and not volumes_of(member, "web")


def test_failed_query_has_no_effect(make_member, make_driver):
    member = make_member()
    driver = make_driver(member, capabilities=[STAGE, STATS])
    driver.fail("NodeGetVolumeStats", grpc.StatusCode.NOT_FOUND, "gone")
    csi_driver_object(member)
    disk(member)
    start(member, "web")
    pid = member.init("web")
    volumes_of(member, "web")
    wait(lambda: driver.count("NodeGetVolumeStats"), lambda: driver.calls)
    assert not volumes_of(member, "web") and member.init("web") == pid
    member.api.delete("pods", "default", "web")
    member.wait_reported_gone("web")
    assert driver.methods()[-2:] == ["NodeUnpublishVolume", "NodeUnstageVolume"]
