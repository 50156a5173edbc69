# SPDX-License-Identifier: Apache-2.0
"""DaemonSets on the command line: watches, rollout status, events, and the source of their pods."""

import json
import time
import os
import re
import subprocess

import harness
import specs
import world
from test_daemonsets import init_of, pods_of, wait_daemon, wait_none
from test_rollouts import logs, surge, run_cli, wait_version
from world import wait


def watch(node, *words):
    return subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, *words], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=node.environment())


def test_get_daemonsets_watch_prints_changes(node):
    node.drop(specs.daemonset("first"))
    wait_daemon(node, "first")
    wait(lambda: run_cli(node, "get", "ds", "first", "--no-headers").split()[5] == "1", "it is available")
    with watch(node, "get", "daemonsets", "-w") as watching:
        try:
            lines = iter(watching.stdout.readline, "")
            assert next(lines).split()[:3] == ["NAME", "DESIRED", "CURRENT"]
            assert next(lines).split()[:6] == ["first", "1", "1", "1", "1", "1"]
            node.drop(specs.daemonset("second"))
            rows = (line.split() for line in lines)
            assert next(row for row in rows if row[0] == "second")[1] == "1", "it is printed when it appears"
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


def test_pod_commands_accept_a_daemonset_instead_of_its_pod(node):
    node.drop(specs.daemonset("logger", specs.container(script="echo of the set; " + specs.IDLE, env=[{"name": "OF", "value": "set"}])))
    node.launch(specs.pod("talker", specs.container(script="echo of the pod; " + specs.IDLE)))
    wait_daemon(node, "logger")
    for word in "ds", "daemonset", "daemonsets.apps":
        wait(lambda word=word: run_cli(node, "logs", f"{word}/logger") == "of the set\n", "the set's pod has written")
    wait(lambda: run_cli(node, "logs", "talker") == "of the pod\n", "the pod has written")
    assert node.cli("logs", "ds/talker").returncode == 1, "a pod is not a set"
    assert run_cli(node, "exec", "ds/logger", "--", "sh", "-c", "echo $OF") == "set\n"
    answer = node.cli("logs", "ds/absent")
    assert answer.returncode == 1 and 'daemonsets.apps "absent" has none of its pods on this node' in answer.stderr


def test_watch_of_an_unwatchable_resource_is_refused(shared_node):
    for resource in ("nodes", "images", "configmaps"):
        answer = shared_node.cli("get", resource, "-w")
        assert (answer.returncode, answer.stdout) == (2, "") and f"{resource} cannot be watched" in answer.stderr


def test_json_watch_prints_each_state_of_a_daemonset(node):
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


def test_rollout_status_waits_until_the_rollout_is_complete(node):
    node.drop(logs("1", **surge(2)))
    wait_version(node, "1")
    assert run_cli(node, "rollout", "status", "ds/logs").endswith('daemon set "logs" successfully rolled out\n')
    second = logs("2", **surge(2))
    second["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = {
        "exec": {"command": ["test", "-e", "/ready"]}, "periodSeconds": 1, "timeoutSeconds": 60}
    node.drop(second)
    wait(lambda: len(pods_of(node, "logs")) == 2, "both exist")
    name = pods_of(node, "logs")[-1]["metadata"]["name"]
    with watch(node, "rollout", "status", "ds/logs") as watching:
        try:
            lines = [watching.stdout.readline()]  # it has read the old pod
            node.wait_running(name)
            run_cli(node, "exec", name, "--", "touch", "/ready")
            lines += watching.stdout.readlines()
            assert watching.wait(world.DEADLINE) == 0, lines
        finally:
            watching.kill()
    assert lines[0] == \
        'Waiting for daemon set "logs" rollout to finish: 0 out of 1 new pods have been updated...\n', lines
    assert lines[-1] == 'daemon set "logs" successfully rolled out\n'
    assert len(set(lines)) == len(lines), "each line is printed once"
    found = pods_of(node, "logs")
    assert [pod for pod in found if "deletionTimestamp" not in pod["metadata"]] == found[-1:], "the old pod terminates"


def test_rollout_status_sleeps_while_it_waits(node):
    missing = logs("1")
    missing["spec"]["template"]["spec"]["containers"][0]["image"] = "docker.io/library/none:1"
    missing["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Never"
    node.drop(missing)
    wait(lambda: pods_of(node, "logs"), "its pod waits")
    with watch(node, "rollout", "status", "ds/logs") as watching:
        try:
            assert watching.stdout.readline().endswith("0 of 1 updated pods are available...\n")
            switches = world.wait_settled(watching.pid)
            node.drop(specs.pod("later"))
            node.wait_running("later")
            assert int(world.status(watching.pid, "voluntary_ctxt_switches")) <= switches + 2
            node.remove("logs")
            assert watching.stdout.readline() == "error: object has been deleted\n"
            assert watching.wait(world.DEADLINE) == 1
        finally:
            watching.kill()


def test_events_of_daemonsets_are_those_of_the_controller(node):
    node.drop(logs("1"))
    first = wait_version(node, "1")["metadata"]["name"]
    node.drop(logs("2"))
    second = wait_version(node, "2")["metadata"]["name"]
    document = json.loads(run_cli(node, "get", "events", "-o", "json"))
    events = [event for event in document["items"] if event["involvedObject"]["kind"] == "DaemonSet"]
    assert [(event["reason"], event["message"]) for event in events] == [
        ("SuccessfulCreate", f"Created pod: {first}"), ("SuccessfulDelete", f"Deleted pod: {first}"),
        ("SuccessfulCreate", f"Created pod: {second}")]
    involved = events[0]["involvedObject"]
    assert (involved["apiVersion"], involved["name"]) == ("apps/v1", "logs")
    assert "fieldPath" not in involved
    assert re.search(rf"Normal +SuccessfulCreate +daemonset/logs +Created pod: {second}", run_cli(node, "get", "events"))
    text = run_cli(node, "describe", "daemonset", "logs")
    tail = text[text.index("Events:"):].splitlines()
    assert tail[1].split() == ["Type", "Reason", "Age", "From", "Message"]
    assert [line.split()[1] for line in tail[3:]] == ["SuccessfulCreate", "SuccessfulDelete", "SuccessfulCreate"]
    node.restart()
    wait_version(node, "2")
    assert "Created pod" not in run_cli(node, "get", "events"), "an existing pod was not created"


def test_failed_placement_and_failed_creation_are_events(node):
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}]}}
    node.drop(specs.daemonset("social", affinity=affinity))
    wait(lambda: re.search("Warning +FailedPlacement +daemonset/social +failed to place pod on \"node1\": no pod on "
                           "this node matches podAffinity", run_cli(node, "get", "events")), "FailedPlacement is recorded")
    node.drop(logs("1"))
    wait_version(node, "1")
    missing = logs("2")
    missing["spec"]["template"]["spec"]["containers"][0].update(image="docker.io/library/none:1",
                                                                imagePullPolicy="Never")
    node.drop(missing)
    wait(lambda: re.search("Warning +FailedCreate +daemonset/logs +Error creating: .*none:1",
                           run_cli(node, "get", "events")), lambda: "FailedCreate is recorded: " + run_cli(node, "get", "events"))
    assert re.search("Rollout: .*none:1", run_cli(node, "describe", "ds", "logs"))
    node.drop(specs.pod("cache", metadata={"labels": {"app": "cache"}}))
    wait_daemon(node, "social")
    assert node.said().count("; the old pod keeps running") == 1, "it is not logged in each pass"
    node.drop(logs("3"))
    wait_version(node, "3")
    assert "Rollout:" not in run_cli(node, "describe", "ds", "logs"), "there is no error"


def test_daemon_pod_is_listed_with_the_manifest_of_its_daemonset(node):
    node.drop(specs.text(specs.daemonset("logs"), specs.pod("beside")), file="both.yaml")
    name = wait_daemon(node, "logs")["metadata"]["name"]
    row, = json.loads(node.get("/manifests")[1])["items"]
    assert row["daemonsets"] == ["default/logs"]
    assert sorted(row["pods"]) == ["default/beside-node1", f"default/{name}"]
    assert re.search(r"(?m)^Manifest:\s+both.yaml$", run_cli(node, "describe", "pod", name))


def test_broken_manifest_is_an_event_of_the_daemonset(node):
    node.drop(specs.daemonset("logs"))
    name = wait_daemon(node, "logs")["metadata"]["name"]
    pid = init_of(node, node.pod(name))
    node.write("kind: DaemonSet\nmetadata: [", "logs.yaml")
    wait(lambda: re.search("Warning +FailedValidation +daemonset/logs", run_cli(node, "get", "events")), "the event is recorded")
    assert "logs.yaml" in run_cli(node, "describe", "pod", name), "the error is shown for the pod, too"
    node.restart()
    row, = json.loads(node.get("/manifests")[1])["items"]
    assert row["daemonsets"] == ["default/logs"] and row["pods"] == [f"default/{name}"] and row["error"]
    assert world.is_alive(pid)


def test_checkpoints_are_readable_by_root_only(node):
    node.drop(specs.daemonset("logs"))
    wait_daemon(node, "logs")
    directory = f"{node.state}/daemonsets"
    assert os.stat(directory).st_mode & 0o777 == 0o700
    wait(lambda: len(os.listdir(directory)) == 1, "no file is being written")
    names = [name for name in os.listdir(directory) if not name.endswith(".tmp")]  # one may be being rewritten
    assert [os.stat(f"{directory}/{name}").st_mode & 0o777 for name in names] == [0o600]
