# SPDX-License-Identifier: Apache-2.0
"""Updates of DaemonSets: which pod ends when, and which begins; revisions, and the way back to one."""

import os
import time

import specs
import world
from harness import condition, is_running
from test_daemonsets import init_of, pods_of, wait_daemon, wait_none
from world import wait


def logs(version, script=specs.IDLE, **fields):
    return specs.daemonset("logs", specs.container(script=script, env=[{"name": "VERSION", "value": version}]),
                           **fields)


def version_of(pod):
    return {env["name"]: env["value"] for env in pod["spec"]["containers"][0]["env"]}["VERSION"]


def wait_version(node, version, ready=is_running):
    return wait_daemon(node, "logs", lambda pod: version_of(pod) == version and ready(pod))


def surge(seconds=0):
    return {"update": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "spec": {"minReadySeconds": seconds}}


def test_an_update_ends_the_old_pod_before_it_begins_the_new(node):
    # Both want the same lock: who comes while it is held dies.
    script = ("mkdir /v/lock || exit 1; trap 'rmdir /v/lock; exit 0' TERM; sleep 100000 & wait")
    fields = {"script": script, "volumeMounts": [specs.mount("v", "/v")]}
    def locked(version):
        return specs.daemonset("logs", specs.container(env=[{"name": "VERSION", "value": version}], **fields),
                               volumes=[specs.host_path("v", node.data)])
    node.drop(locked("1"))
    first = wait_version(node, "1")
    node.drop(locked("2"))
    second = wait_version(node, "2")
    assert second["metadata"]["name"] != first["metadata"]["name"]
    assert second["metadata"]["labels"]["pod-template-generation"] == "2"
    assert second["status"]["containerStatuses"][0]["restartCount"] == 0
    assert not node.pod(first["metadata"]["name"])


def test_a_surge_begins_the_new_pod_first_and_waits_until_it_has_been_ready(node):
    node.drop(logs("1", **surge(2)))
    first = wait_version(node, "1")
    pid = init_of(node, first)
    node.drop(logs("2", **surge(2)))
    wait(lambda: len(pods_of(node, "logs")) == 2 and all(map(is_running, pods_of(node, "logs"))), "both run")
    assert world.is_alive(pid)
    second = wait_version(node, "2")
    stopped = time.time()
    ready = condition(second, "Ready")["lastTransitionTime"]
    begun = time.mktime(time.strptime(ready, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert stopped - begun >= 2
    assert not world.is_alive(pid)


def test_a_surge_goes_on_across_a_restart_of_the_agent(node):
    node.drop(logs("1", **surge(3)))
    wait_version(node, "1")
    node.drop(logs("2", **surge(3)))
    wait(lambda: len(pods_of(node, "logs")) == 2, "both are there")
    node.restart()
    wait_version(node, "2")


def test_on_delete_waits_until_a_person_ends_the_old_pod(node):
    on_delete = {"type": "OnDelete"}
    node.drop(logs("1", update=on_delete))
    first = wait_version(node, "1")
    pid = init_of(node, first)
    node.drop(logs("2", update=on_delete))
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid) and version_of(wait_daemon(node, "logs")) == "1"
    node.restart()
    assert world.is_alive(pid) and version_of(wait_daemon(node, "logs")) == "1"
    told = node.cli("delete", "pod", first["metadata"]["name"])
    assert told.returncode == 0, told.stderr
    wait_version(node, "2")


def test_a_pod_that_a_person_ends_begins_anew(node):
    node.drop(logs("1"))
    pod = wait_version(node, "1")
    pid = init_of(node, pod)
    assert node.cli("delete", "pod", pod["metadata"]["name"]).returncode == 0
    wait(lambda: not world.is_alive(pid), "it ends")
    again = wait_version(node, "1")
    assert again["metadata"]["name"] == pod["metadata"]["name"]
    assert init_of(node, again) != pid


def test_what_the_template_does_not_have_changes_no_pod(node):
    node.drop(logs("1"))
    pid = init_of(node, wait_version(node, "1"))
    node.drop(logs("1", metadata={"labels": {"any": "thing"}}, spec={"minReadySeconds": 1}))
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid)


def test_a_revision_that_does_not_become_available_is_rolled_back(node):
    deadline = {"metadata": {"annotations": {"mainstay.dev/progress-deadline-seconds": "3"}}}
    node.drop(logs("1", **deadline))
    wait_version(node, "1")
    node.drop(logs("2", script="exit 1", **deadline))
    wait(lambda: "Rolled back: revision 2 did not become available within 3s" in node.said(), "it is rolled back")
    wait_version(node, "1")
    node.restart()
    wait_version(node, "1")
    node.drop(logs("3", **deadline))
    wait_version(node, "3")


def test_revisions_survive_the_agent_and_damage_stops_nothing(node):
    node.drop(logs("1"))
    pod = wait_version(node, "1")
    pid = init_of(node, pod)
    history, = os.listdir(f"{node.state}/daemonsets")
    node.kill9()
    with open(f"{node.state}/daemonsets/{history}", "r+b") as file:
        file.write(b"x")
    node.start()
    assert wait_version(node, "1")["metadata"]["uid"] == pod["metadata"]["uid"]
    assert world.is_alive(pid)
    assert "is damaged, setting it aside" in node.said()
    assert os.path.exists(f"{node.state}/daemonsets/{history}.damaged")


def test_a_set_that_goes_and_comes_back_begins_its_history_anew(node):
    node.drop(logs("1"))
    wait_version(node, "1")
    node.drop(logs("2"))
    wait_version(node, "2")
    node.remove("logs")
    wait_none(node, "logs")
    node.drop(logs("2"))
    assert wait_version(node, "2")["metadata"]["labels"]["pod-template-generation"] == "1"
