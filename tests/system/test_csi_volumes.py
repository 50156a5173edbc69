# SPDX-License-Identifier: Apache-2.0
"""Ephemeral volumes that a CSI driver mounts for pods of files: the calls and their order, the kubelet's paths, its
events and back-off, and what happens when the agent, mainstay-plugins or the driver ends in between."""

import json
import os

import failing
import grpc
import pytest
import specs
import world
from csi_driver import DRIVER, GROUP, STAGE, CsiDriver, mounted_at
from test_plugin_registry import wait_refused
from world import wait

CODES = grpc.StatusCode


@pytest.fixture(name="make_driver")
def fixture_make_driver(node):
    made = []

    def make(**options):
        made.append(CsiDriver(node, **options).register())
        return made[-1]

    yield make
    node.remove_all()
    for one in made:
        one.stop()


@pytest.fixture(name="driver")
def fixture_driver(make_driver):
    return make_driver().wait_registered()


def csi_pod(name, script=specs.IDLE, volume=None, **spec):
    return specs.pod(name, specs.container("main", script, volumeMounts=[specs.mount("v", "/data")]),
                     volumes=[{"name": "v", "csi": {"driver": DRIVER, **(volume or {})}}], **spec)


def volume_directory(node, name, volume="v"):
    uid = node.pod(name)["metadata"]["uid"]
    return os.path.join(node.directory, "kubelet", "pods", uid, "volumes", "kubernetes.io~csi", volume)


def failed_mounts(node, name):
    text = node.cli("describe", "pod", name).stdout
    return [line for line in text.splitlines() if "FailedMount" in line]


def wait_failed(node, name, *words):
    wait(lambda: any(all(word in line for word in words) for line in failed_mounts(node, name)), lambda: (failed_mounts(node, name), node.said()))


def wait_cleaned(node):
    """Waits until nothing is left of any volume."""
    pods = os.path.join(node.directory, "kubelet", "pods")
    wait(lambda: os.listdir(pods) == [],
         lambda: (os.listdir(pods), node.said()))


def test_ephemeral_volume_lives_as_long_as_its_pod(node, driver):
    node.drop({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"user": "me"}}, "keys.yaml")
    node.drop(csi_pod("web", "echo kept > /data/word; " + specs.IDLE,
                      {"volumeAttributes": {"size": "1Gi"}, "nodePublishSecretRef": {"name": "keys"}, "fsType": "ext4"}))
    node.wait_running("web")
    assert driver.methods() == ["NodePublishVolume"]
    call, pod = driver.call("NodePublishVolume"), node.pod("web")["metadata"]
    directory = volume_directory(node, "web")
    assert call["target"] == directory + "/mount" and call["staging"] == "" and not call["read_only"]
    assert call["context"] == {"size": "1Gi", "csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": f"web-{node.node_name}",
                               "csi.storage.k8s.io/pod.namespace": "default", "csi.storage.k8s.io/pod.uid": pod["uid"],
                               "csi.storage.k8s.io/serviceAccount.name": call["context"]["csi.storage.k8s.io/serviceAccount.name"]}
    assert call["secrets"] == {"user": "me"} and call["capability"] == {"fs_type": "ext4", "flags": [], "group": "", "mode": 1}
    data = json.loads(world.read(directory + "/vol_data.json"))
    assert data == {"attachmentID": data["attachmentID"], "driverName": DRIVER, "nodeName": node.node_name, "specVolID": "v",
                    "volumeHandle": call["id"], "volumeLifecycleMode": "Ephemeral"}
    assert call["id"].startswith("csi-") and len(call["id"]) == 68
    wait(lambda: world.read(directory + "/mount/word") == "kept\n", "the output of the container is in the driver's mount")
    node.remove("web")
    node.wait_gone("web")
    assert driver.methods() == ["NodePublishVolume", "NodeUnpublishVolume"]
    assert driver.call("NodeUnpublishVolume") == {"id": call["id"], "target": call["target"]}
    wait_cleaned(node)


def test_read_only_volume_is_read_only_in_the_container(node, driver):
    node.drop(csi_pod("web", "touch /data/x || echo read only; " + specs.IDLE, {"readOnly": True}))
    node.wait_running("web")
    assert driver.call("NodePublishVolume")["read_only"]
    wait(lambda: any("read only" in line for line in node.logged("web")), lambda: node.logged("web"))


@pytest.mark.parametrize("capabilities, volume, group", [
    ([STAGE], {"fsType": "ext4"}, 2000), ([STAGE], {}, 0), ([STAGE], {"fsType": "ext4", "readOnly": True}, 0),
    ([STAGE, GROUP], {"fsType": "ext4"}, 0),
])
def test_fs_group_is_applied_by_type_or_by_the_driver(node, make_driver, capabilities, volume, group):
    driver = make_driver(capabilities=capabilities).wait_registered()
    node.drop(csi_pod("web", volume=volume, securityContext={"fsGroup": 2000}))
    node.wait_running("web")
    assert os.stat(volume_directory(node, "web") + "/mount").st_gid == group
    assert driver.call("NodePublishVolume")["capability"]["group"] == ("2000" if GROUP in capabilities else "")


def test_pod_waits_for_its_driver_with_the_message_of_the_kubelet(node, make_driver):
    node.drop(csi_pod("web"))
    wait_failed(node, "web", f'MountVolume.SetUp failed for volume "v" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: '
                f"driver name {DRIVER} not found in the list of registered CSI drivers")
    assert node.status("web")["state"]["waiting"]["reason"] == "ContainerCreating"
    driver = make_driver()
    node.wait_running("web")
    assert driver.methods() == ["NodePublishVolume"]


def test_refused_publishing_is_an_event_and_leaves_nothing_behind(node, driver):
    driver.fail("NodePublishVolume", CODES.INVALID_ARGUMENT, "no such disk")
    node.drop(csi_pod("web"))
    wait_failed(node, "web", 'MountVolume.SetUp failed for volume "v" : rpc error: code = InvalidArgument desc = no such disk')
    wait(lambda: driver.count("NodePublishVolume") > 1, "it is tried again")
    node.remove("web")
    node.wait_gone("web")
    assert driver.count("NodeUnpublishVolume") == 0
    wait_cleaned(node)


def test_volume_is_unpublished_after_a_publish_with_an_unknown_result(node, driver):
    driver.fail("NodePublishVolume", CODES.DEADLINE_EXCEEDED, "slow")
    node.drop(csi_pod("web"))
    wait_failed(node, "web", "code = DeadlineExceeded desc = slow")
    assert os.path.exists(volume_directory(node, "web") + "/vol_data.json")
    node.remove("web")
    node.wait_gone("web")
    assert driver.count("NodeUnpublishVolume") == 1
    wait_cleaned(node)


def test_publishing_succeeds_once_the_cause_of_its_failure_is_removed(node, driver):
    driver.fail("NodePublishVolume", CODES.INTERNAL, "not yet", times=2)
    node.drop(csi_pod("web"))
    node.wait_running("web")
    assert driver.count("NodePublishVolume") == 3
    assert len(failed_mounts(node, "web")) >= 1


def test_pod_deleted_while_its_volume_is_published_leaves_nothing_behind(node, driver):
    event = driver.hold_back("NodePublishVolume")
    node.drop(csi_pod("web"))
    wait(lambda: driver.count("NodePublishVolume"), lambda: node.said())
    node.remove("web")
    wait(lambda: "Stopping pod" in node.said(), lambda: node.said())
    event.set()
    node.wait_gone("web")
    assert driver.methods() == ["NodePublishVolume", "NodeUnpublishVolume"]
    wait_cleaned(node)


def test_unpublishing_is_retried_until_it_succeeds(node, driver):
    node.drop(csi_pod("web"))
    node.wait_running("web")
    driver.fail("NodeUnpublishVolume", CODES.INTERNAL, "busy", times=2)
    node.remove("web")
    node.wait_gone("web")
    assert driver.count("NodeUnpublishVolume") == 3
    wait_cleaned(node)


def test_agent_that_restarts_leaves_a_running_pods_volume_and_unmounts_it_later(node, driver):
    node.drop(csi_pod("web"))
    node.wait_running("web")
    pid, target = node.init("web"), driver.call("NodePublishVolume")["target"]
    node.kill9()
    node.start()
    driver.wait_registered()
    node.wait_running("web")
    assert node.init("web") == pid and mounted_at(target) and driver.methods() == ["NodePublishVolume"]
    os.kill(pid, 9)
    node.wait_restarts("web", 1)
    assert driver.methods() == ["NodePublishVolume"]
    node.remove("web")
    node.wait_gone("web")
    assert driver.methods() == ["NodePublishVolume", "NodeUnpublishVolume"]
    wait_cleaned(node)


def test_pod_that_is_removed_while_no_agent_runs_has_its_volume_unmounted(node, driver):
    node.drop(csi_pod("web"))
    node.wait_running("web")
    node.kill9()
    node.remove("web")
    node.start()
    wait(lambda: driver.methods() == ["NodePublishVolume", "NodeUnpublishVolume"], lambda: (driver.calls, node.said()))
    wait_cleaned(node)


def test_volume_leaves_nothing_behind_if_the_agent_dies_after_the_unmount(archive):
    node = failing.FailingNode(archive)
    driver = CsiDriver(node).register().wait_registered()
    try:
        node.drop(csi_pod("web"))
        node.wait_running("web")
        node.arm({"mainstayd:csi.unpublished": "1*panic"})
        node.remove("web")
        wait(lambda: node.get("/pods")[0] == 200 and node.n_deaths == 1, "the agent has died and was restarted")
        node.wait_gone("web")
        wait_cleaned(node)
        assert driver.methods()[:2] == ["NodePublishVolume", "NodeUnpublishVolume"]
    finally:
        node.finish()
        driver.stop()


def test_volume_of_an_unknown_pod_is_unmounted_once_its_driver_is_registered(node, make_driver):
    node.kill9()
    directory = os.path.join(node.directory, "kubelet", "pods", "5f0c", "volumes", "kubernetes.io~csi", "v")
    os.makedirs(directory)
    with open(directory + "/vol_data.json", "w", encoding="utf-8") as file:
        json.dump({"driverName": DRIVER, "volumeHandle": "h", "specVolID": "v", "volumeLifecycleMode": "Ephemeral"}, file)
    node.start()
    driver = make_driver()
    wait(lambda: driver.methods() == ["NodeUnpublishVolume"], lambda: (driver.calls, node.said()))
    wait_cleaned(node)


def test_restarted_driver_loses_no_volume_after_a_crash(node, driver):
    node.drop(csi_pod("web"))
    node.wait_running("web")
    driver.crash()
    node.remove("web")
    wait(lambda: "UnmountVolume.TearDown failed" in node.said(), lambda: node.said())
    assert node.pod("web")
    driver.serve()
    node.wait_gone("web")
    wait_cleaned(node)


def test_driver_that_deregisters_keeps_the_pod_until_it_returns(node, driver):
    node.drop(csi_pod("web"))
    node.wait_running("web")
    driver.registrar.remove()
    wait(lambda: f"CSIPlugin '{DRIVER}' has deregistered" in node.said(), lambda: node.said())
    node.remove("web")
    wait(lambda: f"driver name {DRIVER} not found" in node.said(), lambda: node.said())
    assert node.pod("web")
    driver.register()
    node.wait_gone("web")
    wait_cleaned(node)


def test_completed_pod_has_its_volume_unpublished(node, driver):
    node.drop(csi_pod("web", "exit 0", restartPolicy="Never"))
    node.wait_phase("web", "Succeeded")
    wait(lambda: driver.methods() == ["NodePublishVolume", "NodeUnpublishVolume"], lambda: (driver.calls, node.said()))
    wait_cleaned(node)


@pytest.mark.parametrize("versions, error", [
    (("4.9.12",), "None of the versions specified [4.9.12] are supported"), ((), "Plugin returned an empty list for supported versions"),
    (("0.3.0",), "None of the versions specified [0.3.0] are supported"),
])
def test_driver_with_unsupported_versions_is_refused(make_driver, versions, error):
    driver = make_driver(versions=versions)
    assert wait_refused(driver.registrar) == (
        "RegisterPlugin error -- plugin validation failed with err: validation failed for CSI Driver "
        f"{DRIVER} at endpoint {driver.path}: kubernetes.io/csi: ValidatePlugin for CSI driver \"{DRIVER}\" failed. {error}")


def test_driver_with_a_registered_name_needs_a_higher_version(node, make_driver):
    make_driver(versions=("1.2.3", "boo", "2.0.1")).wait_registered()
    second = CsiDriver(node, name=DRIVER)
    try:
        second.directory = os.path.join(node.directory, "kubelet", "plugins", "second")
        os.makedirs(second.directory)
        second.path = second.directory + "/csi.sock"
        second.serve()
        second.versions = ("1.2.3",)
        registrar = second.register().registrar
        assert registrar
    finally:
        second.stop()


def test_driver_that_cannot_report_its_node_is_refused_and_queried_again(make_driver):
    driver = make_driver()
    driver.fail("NodeGetInfo", CODES.INTERNAL, "no metadata", times=1)
    driver.register()
    wait(lambda: (False, "RegisterPlugin error -- plugin registration failed with err: rpc error: code = Internal desc = no metadata")
         in driver.registrar.statuses, lambda: driver.registrar.statuses)
    driver.wait_registered()


def test_driver_whose_socket_is_outside_of_its_directory_is_refused(node, make_driver):
    driver = make_driver()
    driver.path = "/run/elsewhere.sock"
    driver.register()
    assert "/run/elsewhere.sock is not below" in wait_refused(driver.registrar)
