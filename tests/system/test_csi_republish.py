# SPDX-License-Identifier: Apache-2.0
"""Options of CSI drivers: volumes that are published again while their pod runs, tokens of its service account, and volumes
that only one pod may use."""

import json
import os

import clocked
import grpc
import pytest
import world
from csi_driver import CsiDriver, mounted_at
from test_apiserver_volumes import bind, events_of
from test_csi_claims import csi_driver_object, disk, end_driver
from world import wait

PUBLISH, TOKENS = "NodePublishVolume", "csi.storage.k8s.io/serviceAccount.tokens"
CLAIM = {"persistentVolumeClaim": {"claimName": "c"}}
SYNC = 100  # seconds: later than the kubelet's next sync of any pod


@pytest.fixture(name="make")
def fixture_make(archive, api, library):
    """A node that has joined, and a driver that has registered there."""
    made = []

    def make(**spec):
        member = clocked.ClockedMember(library, api, archive=archive)
        driver = CsiDriver(member)
        made.append((member, driver))
        csi_driver_object(member, **spec)
        driver.register().wait_registered()
        disk(member)
        return member, driver

    yield make
    for member, driver in made:
        end_driver(member, driver)
        member.finish()


def start(member, name="web", volume=None, **spec):
    bind(member, name, volume or CLAIM, **spec)
    member.wait_reported_phase(name, "Running")
    return member.init(name)


def wait_published(member, driver, times):
    """Waits until the answer has arrived, from which the time until the next publication is counted."""
    wait(lambda: driver.count(PUBLISH) >= times and "mounted" in member.get("/debug/dump")[1], lambda: (driver.methods(), member.said()))


def tokens_of(driver, where="context"):
    return json.loads(driver.call(PUBLISH)[where][TOKENS])


def test_volume_is_published_again_while_its_pod_runs(make):
    member, driver = make(requiresRepublish=True)
    pid = start(member)
    first = driver.call(PUBLISH)
    member.let_pass(SYNC)
    wait_published(member, driver, 2)
    assert driver.call(PUBLISH) == first and driver.count("NodeStageVolume") == 1
    member.let_pass(2 * SYNC)
    wait_published(member, driver, 3)
    assert member.init("web") == pid
    member.api.delete("pods", "default", "web")
    member.wait_reported_gone("web")
    assert driver.methods()[-2:] == ["NodeUnpublishVolume", "NodeUnstageVolume"]
    published = driver.count(PUBLISH)
    member.let_pass(4 * SYNC)
    assert driver.count(PUBLISH) == published


def test_volume_is_published_once_unless_its_driver_requires_republishing(make):
    member, driver = make()
    start(member)
    member.let_pass(SYNC)
    member.api.patch("csidrivers", None, driver.name, {"spec": {"requiresRepublish": True}})
    wait(lambda: "published again" in member.cli("debug", "dump").stdout, "the change is known")
    assert driver.count(PUBLISH) == 1
    member.let_pass(2 * SYNC)
    wait_published(member, driver, 2)
    member.api.patch("csidrivers", None, driver.name, {"spec": {"requiresRepublish": False}})
    wait(lambda: "published again" not in member.cli("debug", "dump").stdout, lambda: member.cli("debug", "dump").stdout)
    member.let_pass(3 * SYNC)
    assert driver.count(PUBLISH) == 2


@pytest.mark.parametrize("code", [grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED])
def test_failed_republish_is_an_event_without_an_effect(make, code):
    member, driver = make(requiresRepublish=True)
    pid = start(member)
    target = driver.call(PUBLISH)["target"]
    driver.fail(PUBLISH, code, "no secret today", times=1)
    member.let_pass(SYNC)
    event = wait(lambda: events_of(member, "web", "FailedMount"), lambda: member.said())[0]
    assert event["message"].startswith('MountVolume.SetUp failed for volume "pv-c" : rpc error: code = ')
    assert event["message"].endswith("desc = no secret today")
    member.let_pass(SYNC + 1)
    wait_published(member, driver, 3)
    assert member.init("web") == pid and mounted_at(target) and os.path.exists(os.path.dirname(target) + "/vol_data.json")


def test_volume_is_published_again_after_a_restart_of_the_agent(make):
    member, driver = make(requiresRepublish=True)
    pid = start(member)
    member.kill9()
    member.start()
    wait_published(member, driver, 2)
    member.let_pass(SYNC)
    wait_published(member, driver, 3)
    assert member.init("web") == pid


def test_tokens_are_passed_only_to_the_driver(make):
    member, driver = make(tokenRequests=[{"audience": ""}, {"audience": "vault", "expirationSeconds": 1200}])
    start(member)
    assert TOKENS not in driver.call("NodeStageVolume")["context"]
    found = tokens_of(driver)
    assert set(found) == {"", "vault"} and all(set(one) == {"token", "expirationTimestamp"} for one in found.values())
    assert all(one["token"].startswith("header.default-default.") for one in found.values())
    requests = [one.body["spec"] for one in member.api.asked("create", "serviceaccounts", subresource="token")]
    assert {("vault" in (spec["audiences"] or []), spec["expirationSeconds"]) for spec in requests} >= {(False, 3600), (True, 1200)}
    shown = member.said() + member.cli("debug", "dump").stdout + member.cli("describe", "pod", "web").stdout
    shown += world.read(os.path.dirname(driver.call(PUBLISH)["target"]) + "/vol_data.json")
    assert not any(one["token"] in shown for one in found.values())


def test_tokens_are_secrets_if_the_driver_requires_it(make):
    member, driver = make(tokenRequests=[{"audience": "vault"}], serviceAccountTokenInSecrets=True)
    start(member)
    assert set(tokens_of(driver, "secrets")) == {"vault"} and TOKENS not in driver.call(PUBLISH)["context"]
    assert driver.call("NodeStageVolume")["secrets"] == {}


def test_ephemeral_volume_has_tokens_too(make):
    member, driver = make(tokenRequests=[{"audience": "vault"}], volumeLifecycleModes=["Ephemeral"])
    start(member, volume={"csi": {"driver": driver.name}})
    assert set(tokens_of(driver)) == {"vault"}


def test_token_is_renewed_before_it_expires(make):
    member, driver = make(requiresRepublish=True, tokenRequests=[{"audience": "vault", "expirationSeconds": 1000}])
    start(member)
    first = tokens_of(driver)
    member.let_pass(SYNC)
    wait_published(member, driver, 2)
    assert tokens_of(driver) == first
    requested = len(member.api.asked("create", "serviceaccounts", subresource="token"))
    member.let_pass(820)
    wait(lambda: len(member.api.asked("create", "serviceaccounts", subresource="token")) > requested, member.said)
    wait_published(member, driver, 3)
    member.let_pass(820 + SYNC)
    wait(lambda: tokens_of(driver)["vault"]["token"] != first["vault"]["token"], lambda: (driver.calls, member.said()))


def test_pod_waits_for_its_token(make):
    member, driver = make(tokenRequests=[{"audience": "vault", "expirationSeconds": 10}])
    bind(member, "web", CLAIM)
    event = wait(lambda: events_of(member, "web", "FailedMount"), lambda: member.said())[0]
    assert "kubernetes.io/csi: mounter.SetUpAt failed to get service accoount token attributes" in event["message"]
    assert "may not specify a duration less than 10 minutes" in event["message"] and driver.count(PUBLISH) == 0
    member.api.patch("csidrivers", None, driver.name, {"spec": {"tokenRequests": []}})
    member.wait_reported_phase("web", "Running")


def test_volume_of_one_pod_waits_until_the_other_has_ended(make):
    member, driver = make()
    member.api.patch("persistentvolumes", None, "pv-c", {"spec": {"accessModes": ["ReadWriteOncePod"]}})
    start(member, "one")
    bind(member, "two", CLAIM)
    event = wait(lambda: events_of(member, "two", "FailedMount"), lambda: member.said())[0]
    assert event["message"] == 'MountVolume.SetUp failed for volume "pv-c" : volume uses the ReadWriteOncePod access mode and is already ' \
        "in use by another pod"
    assert driver.count(PUBLISH) == 1
    member.api.delete("pods", "default", "one")
    member.wait_reported_phase("two", "Running")
    assert driver.methods() == ["NodeStageVolume", PUBLISH, "NodeUnpublishVolume", PUBLISH]
