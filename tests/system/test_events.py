# SPDX-License-Identifier: Apache-2.0
"""Kubernetes events: reasons and messages of the kubelet, counts, and how they are printed."""

import json
import re
import subprocess

import harness
import specs
from world import wait


def events(node, name, namespace="default"):
    listed = json.loads(node.get("/events")[1])
    assert listed["kind"] == "EventList"
    return [event for event in listed["items"] if event["involvedObject"]["name"] == f"{name}-{harness.NODE_NAME}"
            and event["involvedObject"]["namespace"] == namespace]


def find_event(node, name, reason):
    return next((event for event in events(node, name) if event["reason"] == reason), None)


def wait_event(node, name, reason):
    return wait(lambda: find_event(node, name, reason),
                lambda: f"{name} has an event {reason}; it has {json.dumps(events(node, name), indent=1)}")


def test_pod_start_records_pulled_created_and_started_events(node):
    pod = node.launch(specs.pod("web"))
    found = events(node, "web")
    assert [event["reason"] for event in found] == ["Pulled", "Created", "Started"]
    assert all(event["type"] == "Normal" and event["count"] == 1 for event in found)
    assert all(event["involvedObject"]["uid"] == pod["metadata"]["uid"] for event in found)
    assert all(event["involvedObject"]["fieldPath"] == "spec.containers{main}" for event in found)
    assert len({event["metadata"]["name"] for event in found}) == 3
    assert found[0]["message"] == \
        f'Container image "{specs.IMAGE}" already present on machine and can be accessed by the pod'


def test_repeated_event_is_counted(node):
    node.drop(specs.script_pod("crash", "exit 1"))
    node.wait_pod("crash", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] >= 3, "is restarted")
    back_off = wait_event(node, "crash", "BackOff")
    assert back_off["type"] == "Warning"
    assert back_off["count"] >= 2
    assert back_off["firstTimestamp"] <= back_off["lastTimestamp"]
    assert re.fullmatch(r"Back-off restarting failed container main in pod crash-node1_default\([0-9a-f]+\)",
                        back_off["message"])
    started = find_event(node, "crash", "Started")
    assert started["count"] >= 3
    assert len([event for event in events(node, "crash") if event["reason"] == "Started"]) == 1


def test_stopped_pod_has_a_killing_event(node):
    node.launch(specs.pod("web"))
    node.remove("web")
    assert wait_event(node, "web", "Killing")["message"] == "Stopping container main"


def test_killing_event_precedes_the_pre_stop_hook(node):
    node.launch(specs.pod("web", specs.container(lifecycle={"preStop": {"exec": {"command": ["sleep", "100000"]}}}),
                          terminationGracePeriodSeconds=600))
    node.remove("web")
    assert wait_event(node, "web", "Killing")["message"] == "Stopping container main"
    node.cli("delete", "pod", "web", "--now")
    node.wait_gone("web")


def test_container_whose_post_start_hook_fails_has_a_killing_event(node):
    node.drop(specs.pod("web", specs.container(lifecycle={"postStart": {"exec": {"command": ["false"]}}})))
    assert wait_event(node, "web", "Killing")["message"] == "FailedPostStartHook"
    assert find_event(node, "web", "FailedPostStartHook")["type"] == "Warning"


def test_failed_start_has_an_event_with_its_reason(node):
    missing = specs.container(command=["/no/such/program"])
    node.drop(specs.pod("typo", missing))
    failed = wait_event(node, "typo", "Failed")
    assert failed["type"] == "Warning"
    assert failed["message"].startswith("Error: ")
    assert "/no/such/program" in failed["message"]
    # Events are in the order of their first occurrence, which their names contain: an event that occurs again a second
    # later moves to the end.
    found = sorted(events(node, "typo"), key=lambda event: event["metadata"]["name"])
    assert [event["reason"] for event in found][:3] == ["Pulled", "Created", "Failed"]
    never = {**specs.container(), "image": "docker.io/library/absent:1", "imagePullPolicy": "Never"}
    node.drop(specs.pod("absent", never))
    assert wait_event(node, "absent", "ErrImageNeverPull")["message"] == \
        'Container image "docker.io/library/absent:1" is not present with pull policy of Never'


def test_broken_manifest_is_an_event_of_its_pod(node):
    node.launch(specs.pod("web"))
    node.write("apiVersion: v1\nkind: Pod\nmetadata: {name: Web!}\n", "web.yaml")
    failed = wait_event(node, "web", "FailedValidation")
    assert "web.yaml:3:" in failed["message"]
    assert harness.is_running(node.pod("web"))


def test_get_events_has_the_columns_of_kubectl(shared_node):
    shared_node.launch(specs.pod("shown"))
    lines = shared_node.cli("get", "events").stdout.splitlines()
    assert re.split(r" {2,}", lines[0].strip()) == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    started = [re.split(r" {2,}", line) for line in lines if "shown-node1" in line and "Started" in line]
    assert [row[1:] for row in started] == [["Normal", "Started", "pod/shown-node1", "Container started"]]
    everywhere = shared_node.cli("get", "events", "-A").stdout
    assert everywhere.startswith("NAMESPACE ")
    assert "No resources found in nowhere namespace." in shared_node.cli("get", "events", "-n", "nowhere").stderr


def test_describe_ends_with_the_events_of_the_pod(shared_node):
    shared_node.launch(specs.pod("described"))
    text = shared_node.cli("describe", "pod", "described").stdout
    tail = text[text.index("\nEvents:\n"):].splitlines()[1:]
    assert re.split(r" {2,}", tail[1].strip()) == ["Type", "Reason", "Age", "From", "Message"]
    rows = [re.split(r" {2,}", line.strip()) for line in tail[3:]]
    assert [row[1] for row in rows] == ["Pulled", "Created", "Started"]
    assert rows[2][3:] == ["kubelet", "spec.containers{main}: Container started"]


def test_watch_prints_new_events(node):
    with subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, "get", "events", "-w"], text=True,
                          stdout=subprocess.PIPE, env=node.environment()) as watch:
        try:
            node.launch(specs.pod("late"))
            lines = iter(watch.stdout.readline, "")
            assert next(line for line in lines if "Started" in line and "pod/late-node1" in line)
            node.remove("late")
            assert next(line for line in lines if "Killing" in line)
        finally:
            watch.kill()
