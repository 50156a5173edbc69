# SPDX-License-Identifier: Apache-2.0
"""Limits of a pod's writes to the node's disk: sizeLimit of an emptyDir, ephemeral-storage of containers. The agent
measures every ten seconds, and a pod that has written more than its limit fails."""

import os

import harness
import pytest
import specs
import world

pytestmark = pytest.mark.cgroup2

WRITE = "dd if=/dev/zero of={} bs=64k count=64 2>/dev/null; echo written; " + specs.IDLE


def disk_pod(name, script, limits=None, size=None, **spec):
    fields = {"resources": {"limits": limits}} if limits else {}
    return specs.pod(name, specs.container(script=script, volumeMounts=[specs.mount("v", "/v")], **fields),
                     volumes=[{"name": "v", "emptyDir": {"sizeLimit": size} if size else {}}], **spec)


def start(node, pod):
    """Starts a pod that is evicted after ten seconds; a slow machine may not report it as running before."""
    node.drop(pod)
    node.wait_pod(pod["metadata"]["name"], lambda reported: True, "exists")


def wait_evicted(node, name):
    pod = node.wait_phase(name, "Failed")
    assert pod["status"]["reason"] == "Evicted"
    assert harness.condition(pod, "Ready")["reason"] == "PodFailed"
    world.wait(lambda: not world.pids_of_root(node.pod_cgroup(name)), "nothing of it runs")
    return pod["status"]["message"]


def test_a_pod_that_exceeds_an_empty_dir_size_limit_stays_evicted(node):
    start(node, disk_pod("full", WRITE.format("/v/file"), size="2Mi"))
    uid = node.pod("full")["metadata"]["uid"]
    assert wait_evicted(node, "full") == 'Usage of EmptyDir volume "v" exceeds the limit "2Mi".'
    world.wait(lambda: not os.path.exists(f"{node.state}/pods/{uid}/volumes"), "the disk is free again")
    assert "Evicted" in node.cli("describe", "pod", "full").stdout
    assert node.logged("full") == ["written"], "its log is kept"
    node.restart()
    assert node.wait_phase("full", "Failed")["status"]["reason"] == "Evicted"
    assert not world.pids_of_root(node.pod_cgroup("full")), "a new agent does not start it"
    node.drop(disk_pod("full", "echo second; " + specs.IDLE, size="2Mi"))
    node.wait_running("full")


def wait_exit_code(node, name):
    node.wait_pod(name, lambda pod: "terminated" in pod["status"]["containerStatuses"][0]["state"], "its exit is known")
    return node.status(name)["state"]["terminated"]["exitCode"]


def test_the_exit_code_of_an_evicted_pod_survives_restarts_of_the_agent(node):
    start(node, disk_pod("full", WRITE.format("/v/file").replace("exit 0", "exit 7"), size="2Mi"))
    wait_evicted(node, "full")
    assert wait_exit_code(node, "full") == 7
    for _ in range(2):
        node.restart()
        node.wait_phase("full", "Failed")
        assert wait_exit_code(node, "full") == 7


def test_a_damaged_record_does_not_start_an_evicted_pod(node):
    start(node, disk_pod("full", WRITE.format("/v/file").replace("exit 0", "exit 7"), size="2Mi"))
    uid = node.pod("full")["metadata"]["uid"]
    message = wait_evicted(node, "full")
    node.kill9()
    os.truncate(f"{node.state}/pods/{uid}/record", 20)
    node.start()
    status = node.wait_phase("full", "Failed")["status"]
    assert (status["reason"], status["message"]) == ("Evicted", message)
    assert wait_exit_code(node, "full") == 7
    assert node.logged("full") == ["written"], "it did not start again"


def test_a_pod_within_its_storage_limits_is_not_evicted(node):
    node.launch(disk_pod("within", "dd if=/dev/zero of=/v/file bs=64k count=8 2>/dev/null; " + specs.IDLE,
                         {"ephemeral-storage": "4Mi"}, "2Mi"))
    start(node, disk_pod("over", WRITE.format("/v/file"), size="2Mi"))
    wait_evicted(node, "over")
    assert world.is_alive(node.init("within"))
    assert node.pod("within")["status"]["phase"] == "Running"


@pytest.mark.parametrize("file", ["/file", "/v/file"])
def test_all_written_files_count_against_the_pods_storage_limit(node, file):
    start(node, disk_pod("writer", WRITE.format(file), {"ephemeral-storage": "2Mi"}))
    assert wait_evicted(node, "writer") == \
        "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi."


def test_a_containers_files_count_against_its_own_limit(node):
    limits = [{"resources": {"limits": {"ephemeral-storage": size}}} for size in ("1Mi", "1Gi")]
    start(node, specs.pod("one", specs.container("small", WRITE.format("/file"), **limits[0]),
                          specs.container("large", WRITE.format("/file"), **limits[1])))
    assert wait_evicted(node, "one") == 'Container small exceeded its local ephemeral storage limit "1Mi".'


def test_logs_count_against_the_storage_limit(node):
    start(node, specs.pod("talker", specs.container(
        script="yes 'a line that is long enough to fill a log' | head -c 3000000; " + specs.IDLE,
        resources={"limits": {"ephemeral-storage": "2Mi"}})))
    assert "ephemeral local storage" in wait_evicted(node, "talker")


def test_a_deleted_evicted_pod_starts_again(node):
    pod = disk_pod("full", "[ -e /host/again ] || " + WRITE.format("/v/file"), size="2Mi")
    pod["spec"]["containers"][0]["volumeMounts"].append(specs.mount("host", "/host"))
    pod["spec"]["volumes"].append(specs.host_path("host", node.data))
    start(node, pod)
    wait_evicted(node, "full")
    os.mkdir(f"{node.data}/again")
    events = node.cli("get", "events").stdout
    assert "Evicted" in events and 'Usage of EmptyDir volume "v" exceeds the limit "2Mi".' in events
    assert node.cli("delete", "pod", "full").returncode == 0
    node.wait_running("full")
    assert not node.pod("full")["status"].get("reason")


def test_a_broken_edit_does_not_restart_an_evicted_pod(node):
    start(node, disk_pod("full", WRITE.format("/v/file"), size="2Mi"))
    wait_evicted(node, "full")
    node.write("kind: Pod\nspec: {", "full.yaml")
    world.wait(lambda: "full.yaml" in node.said(), "it was read")
    assert node.pod("full")["status"]["reason"] == "Evicted"


def test_directories_that_are_nested_too_deeply_are_reported_as_such(node):
    script = "cd /v; i=0; while [ $i -lt 600 ]; do mkdir d && cd d; i=$((i+1)); done; cd /; " + specs.IDLE
    start(node, disk_pod("deep", script, size="10Mi"))
    assert wait_evicted(node, "deep") == \
        'Usage of EmptyDir volume "v" with the limit "10Mi" cannot be measured: directories are nested too deeply.'
