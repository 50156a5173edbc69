# SPDX-License-Identifier: Apache-2.0
"""What people see of DaemonSets: as they change, what happened to them, and where their pods come from."""

import json
import time
import os
import re
import subprocess

import harness
import specs
import world
from test_daemonsets import init_of, pods_of, wait_daemon, wait_none
from test_rollouts import logs, surge, told, wait_version
from world import wait


def watch(node, *words):
    return subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, *words], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=node.environment())


def test_get_daemonsets_goes_on_with_what_changes(node):
    node.drop(specs.daemonset("first"))
    wait_daemon(node, "first")
    wait(lambda: told(node, "get", "ds", "first", "--no-headers").split()[5] == "1", "it is available")
    with watch(node, "get", "daemonsets", "-w") as watching:
        try:
            lines = iter(watching.stdout.readline, "")
            assert next(lines).split()[:3] == ["NAME", "DESIRED", "CURRENT"]
            assert next(lines).split()[:6] == ["first", "1", "1", "1", "1", "1"]
            node.drop(specs.daemonset("second"))
            rows = (line.split() for line in lines)
            assert next(row for row in rows if row[0] == "second")[1] == "1", "it is told as it comes"
            assert next(row for row in rows if row[5] == "1")[:6] == ["second", "1", "1", "1", "1", "1"]
            node.write_config(registerWithTaints=[{"key": "a", "effect": "NoExecute"}])
            assert next(row for row in rows if row[0] == "first" and row[1] == "0")
            node.write_config()
            assert next(row for row in rows if row[0] == "first" and row[5] == "1")
            node.remove("second")
            wait_none(node, "second")
            node.drop(specs.daemonset("third"))
            assert next(row for row in rows if row[0] == "third")
        finally:
            watching.kill()


def test_what_cannot_be_watched_says_so(shared_node):
    for resource in ("nodes", "images", "configmaps"):
        answer = shared_node.cli("get", resource, "-w")
        assert (answer.returncode, answer.stdout) == (2, "") and f"{resource} cannot be watched" in answer.stderr


def test_a_watch_in_json_tells_each_set_as_it_becomes(node):
    with watch(node, "get", "ds", "logs", "-n", "default", "-w", "-o", "json") as watching:
        try:
            node.drop(specs.daemonset("other"))
            node.drop(specs.daemonset("logs"))
            decoder, text = json.JSONDecoder(), ""
            for line in iter(watching.stdout.readline, ""):
                text += line
                try:
                    found, end = decoder.raw_decode(text)
                except json.JSONDecodeError:
                    continue
                text = text[end:].lstrip()
                assert found["metadata"]["name"] == "logs"
                if found["status"]["numberAvailable"] == 1:
                    break
            else:
                raise AssertionError(f"it ended: {text}")
        finally:
            watching.kill()


def test_rollout_status_waits_for_the_end_of_a_rollout(node):
    node.drop(logs("1", **surge(2)))
    wait_version(node, "1")
    assert told(node, "rollout", "status", "ds/logs").endswith('daemon set "logs" successfully rolled out\n')
    node.drop(logs("2", **surge(2)))
    wait(lambda: len(pods_of(node, "logs")) == 2, "both are there")
    lines = told(node, "rollout", "status", "ds/logs").splitlines()
    assert lines[0] == \
        'Waiting for daemon set "logs" rollout to finish: 0 out of 1 new pods have been updated...', lines
    assert lines[-1] == 'daemon set "logs" successfully rolled out'
    assert len(set(lines)) == len(lines), "each is said once"
    assert [pod for pod in pods_of(node, "logs") if "deletionTimestamp" not in pod["metadata"]][0] == \
        pods_of(node, "logs")[-1], "the old one has been told to end"


def wait_settled(pid):
    """Waits until a process has slept for half a second; gives how often it had gone to sleep."""
    seen = []

    def look():
        seen.append((time.monotonic(), int(world.status(pid, "voluntary_ctxt_switches"))))
        begun = min(at for at, switches in seen if switches == seen[-1][1])
        return seen[-1][0] - begun > 0.5

    wait(look, "it sleeps")
    return seen[-1][1]


def test_rollout_status_does_nothing_while_it_waits(node):
    missing = logs("1")
    missing["spec"]["template"]["spec"]["containers"][0]["image"] = "docker.io/library/none:1"
    missing["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Never"
    node.drop(missing)
    wait(lambda: pods_of(node, "logs"), "its pod waits")
    with watch(node, "rollout", "status", "ds/logs") as watching:
        try:
            assert watching.stdout.readline().endswith("0 of 1 updated pods are available...\n")
            switches = wait_settled(watching.pid)
            node.drop(specs.pod("later"))
            node.wait_running("later")
            assert int(world.status(watching.pid, "voluntary_ctxt_switches")) <= switches + 2
            node.remove("logs")
            assert watching.stdout.readline() == "error: object has been deleted\n"
            assert watching.wait(30) == 1
        finally:
            watching.kill()


def test_what_happens_to_a_set_is_told_in_the_controllers_words(node):
    node.drop(logs("1"))
    first = wait_version(node, "1")["metadata"]["name"]
    node.drop(logs("2"))
    second = wait_version(node, "2")["metadata"]["name"]
    document = json.loads(told(node, "get", "events", "-o", "json"))
    events = [event for event in document["items"] if event["involvedObject"]["kind"] == "DaemonSet"]
    assert [(event["reason"], event["message"]) for event in events] == [
        ("SuccessfulCreate", f"Created pod: {first}"), ("SuccessfulDelete", f"Deleted pod: {first}"),
        ("SuccessfulCreate", f"Created pod: {second}")]
    involved = events[0]["involvedObject"]
    assert (involved["apiVersion"], involved["name"]) == ("apps/v1", "logs")
    assert "fieldPath" not in involved
    assert re.search(rf"Normal +SuccessfulCreate +daemonset/logs +Created pod: {second}", told(node, "get", "events"))
    text = told(node, "describe", "daemonset", "logs")
    tail = text[text.index("Events:"):].splitlines()
    assert tail[1].split() == ["Type", "Reason", "Age", "From", "Message"]
    assert [line.split()[1] for line in tail[3:]] == ["SuccessfulCreate", "SuccessfulDelete", "SuccessfulCreate"]
    node.restart()
    wait_version(node, "2")
    assert "Created pod" not in told(node, "get", "events"), "who is there already was not made"


def test_why_a_pod_of_a_set_cannot_be_is_told(node):
    company = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}]}}
    node.drop(specs.daemonset("social", affinity=company))
    wait(lambda: re.search("Warning +FailedPlacement +daemonset/social +failed to place pod on \"node1\": no pod on "
                           "this node matches podAffinity", told(node, "get", "events")), "one is told")
    node.drop(logs("1"))
    wait_version(node, "1")
    missing = logs("2")
    missing["spec"]["template"]["spec"]["containers"][0].update(image="docker.io/library/none:1",
                                                                imagePullPolicy="Never")
    node.drop(missing)
    wait(lambda: re.search("Warning +FailedCreate +daemonset/logs +Error creating: .*none:1",
                           told(node, "get", "events")), lambda: "the other is told: " + told(node, "get", "events"))
    assert re.search("Rollout: .*none:1", told(node, "describe", "ds", "logs"))
    node.drop(specs.pod("cache", metadata={"labels": {"app": "cache"}}))
    wait_daemon(node, "social")
    assert node.said().count("; the old pod keeps running") == 1, "not at each look"
    node.drop(logs("3"))
    wait_version(node, "3")
    assert "Rollout:" not in told(node, "describe", "ds", "logs"), "the trouble is over"


def test_a_pod_of_a_set_is_told_with_the_file_of_its_set(node):
    node.drop(specs.text(specs.daemonset("logs"), specs.pod("beside")), file="both.yaml")
    name = wait_daemon(node, "logs")["metadata"]["name"]
    row, = json.loads(node.get("/manifests")[1])["items"]
    assert row["daemonsets"] == ["default/logs"]
    assert sorted(row["pods"]) == ["default/beside-node1", f"default/{name}"]
    assert re.search(r"(?m)^Manifest:\s+both.yaml$", told(node, "describe", "pod", name))


def test_a_set_whose_file_breaks_is_told_so(node):
    node.drop(specs.daemonset("logs"))
    name = wait_daemon(node, "logs")["metadata"]["name"]
    pid = init_of(node, node.pod(name))
    node.write("kind: DaemonSet\nmetadata: [", "logs.yaml")
    wait(lambda: re.search("Warning +FailedValidation +daemonset/logs", told(node, "get", "events")), "it is told")
    assert "logs.yaml" in told(node, "describe", "pod", name), "so is its pod"
    node.restart()
    row, = json.loads(node.get("/manifests")[1])["items"]
    assert row["daemonsets"] == ["default/logs"] and row["pods"] == [f"default/{name}"] and row["error"]
    assert world.is_alive(pid)


def test_what_is_kept_of_sets_is_for_root_alone(node):
    node.drop(specs.daemonset("logs"))
    wait_daemon(node, "logs")
    directory = f"{node.state}/daemonsets"
    assert os.stat(directory).st_mode & 0o777 == 0o700
    assert [os.stat(f"{directory}/{name}").st_mode & 0o777 for name in os.listdir(directory)] == [0o600]
