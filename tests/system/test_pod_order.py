# SPDX-License-Identifier: Apache-2.0
"""mainstay.dev/after: pods start after others are ready, and are stopped before them."""

import glob
import os
import subprocess

import harness
import specs
import world
from harness import condition, is_running
from world import is_alive, read, wait


def after(names, name, *containers, **spec):
    return specs.pod(name, *containers, metadata={"annotations": {"mainstay.dev/after": names}}, **spec)


def gated(node, name):
    """A pod that is ready once a file with its name exists."""
    probe = {"exec": {"command": ["test", "-e", f"/v/{name}"]}, "periodSeconds": 1, "timeoutSeconds": 60}
    return specs.pod(name, specs.container(readinessProbe=probe, volumeMounts=[specs.mount("v", "/v")]),
                     volumes=[specs.host_path("v", node.data)])


def open_gate(node, name):
    with open(os.path.join(node.data, name), "w", encoding="utf-8"):
        pass


def noting(node, name, last="true"):
    """A container that writes its name when it has ended."""
    return specs.container(script=f"trap '{last}; echo {name} >>/v/ended; exit 0' TERM; sleep 100000 & wait",
                           volumeMounts=[specs.mount("v", "/v")])


def with_data(node):
    return {"volumes": [specs.host_path("v", node.data)], "terminationGracePeriodSeconds": 30}


def wait_waits(node, name, words):
    wait(lambda: words in node.wait_waiting(name, "WaitingForPods"), lambda: f"{name} reports '{words}'; it is {node.pod(name)}")


def test_a_pod_starts_when_the_pods_before_it_are_ready(node):
    node.drop(after("db, default/cache", "web"))
    wait_waits(node, "web", "waits for default/db, which does not exist and for default/cache, which does not exist")
    node.drop(gated(node, "db"))
    node.launch(specs.pod("cache"))
    node.wait_pod("db", lambda pod: pod["status"].get("phase") == "Running", "runs")
    wait_waits(node, "web", "waits for default/db, which is not ready")
    web = node.pod("web")
    assert web["status"]["phase"] == "Pending" and not is_running(web)
    assert not node.find_init("web")
    ready = condition(web, "PodReadyToStartContainers")
    assert ready["status"] == "False" and ready["reason"] == "WaitingForPods" and "default/db" in ready["message"]
    table = node.cli("get", "pods").stdout
    assert any("web-node1" in line and "WaitingForPods" in line for line in table.splitlines()), table
    events = node.cli("get", "events").stdout
    assert "WaitingForPods" in events and "default/db, which does not exist" in events, events
    open_gate(node, "db")
    web = node.wait_running("web")
    started = web["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    assert started >= condition(node.pod("db"), "Ready")["lastTransitionTime"]


def test_a_new_agent_keeps_the_start_order(node):
    node.drop(gated(node, "db"))
    node.drop(after("db", "web"))
    wait_waits(node, "web", "waits for default/db, which is not ready")
    node.restart()
    wait_waits(node, "web", "waits for default/db, which is not ready")
    assert not node.find_init("web")
    open_gate(node, "db")
    node.wait_running("web")
    pid = node.init("web")
    node.restart()
    os.unlink(os.path.join(node.data, "db"))
    node.wait_pod("db", lambda pod: condition(pod, "Ready")["status"] == "False", "is no longer ready")
    assert node.init("web") == pid and is_running(node.pod("web"))


def test_a_pod_that_has_succeeded_is_not_waited_for(node):
    node.drop(specs.pod("first", specs.container(script="exit 0"), restartPolicy="Never"))
    node.wait_phase("first", "Succeeded")
    node.drop(after("first", "web"))
    node.wait_running("web")


def test_pods_that_wait_for_one_another_are_an_error_of_their_files(node):
    node.launch(specs.pod("web"))
    node.launch(after("web", "db"))
    pids = [node.init("web"), node.init("db")]
    node.drop(after("db", "web"))
    node.drop(after("two", "one"))
    node.drop(after("one", "two"))
    key = "metadata.annotations[mainstay.dev/after]"
    cycle = "pods wait for one another: default/one after default/two after default/one"
    wait(lambda: f"one.yaml: pod default/one: {key}: {cycle}" in node.cli("get", "pods").stderr,
         lambda: f"the file has an error: {node.cli('get', 'pods').stderr}")
    wait_waits(node, "one", cycle)
    assert "WaitingForPods" in node.cli("get", "events").stdout
    for name in "two", "web", "db":
        assert f"{name}.yaml: pod default/{name}: {key}: pods wait for one another" in node.said()
    assert [node.init("web"), node.init("db")] == pids, "running pods continue"
    node.drop(specs.pod("one"))
    node.wait_running("two")
    node.drop(specs.pod("web"))
    wait(lambda: "wait for one another" not in node.cli("get", "pods").stderr, "the errors are gone")
    assert [node.init("web"), node.init("db")] == pids


def test_validate_finds_the_cycle_of_several_files(tmp_path):
    def write(name, names):
        path = str(tmp_path / f"{name}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(specs.text(after(names, name)))
        return path

    def validate(*files):
        return subprocess.run([harness.program("mainstay"), "validate", *files], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=world.DEADLINE)
    one, two, three = write("one", "two"), write("two", "one"), write("three", "one, missing")
    answer = validate(one, two, three)
    assert answer.returncode == 1
    assert f"error: {one}: pod default/one: metadata.annotations[mainstay.dev/after]: " \
           "pods wait for one another: default/one after default/two after default/one" in answer.stderr
    assert f"error: {two}: pod default/two" in answer.stderr and f"error: {three}" not in answer.stderr
    assert validate(one, three).returncode == 0
    answer = validate(write("four", "Not_A_Name"))
    assert answer.returncode == 1
    assert "metadata.annotations[mainstay.dev/after]: must be names of pods such as 'db' or 'default/db'" in answer.stderr


def test_draining_stops_pods_before_their_dependencies(node):
    node.launch(specs.pod("db", noting(node, "db"), **with_data(node)))
    for name, names in ("cache", "db"), ("web", "cache,db"):
        node.launch(after(names, name, noting(node, name, "sleep 1"), **with_data(node)))
    pids = [node.init(name) for name in ("db", "cache", "web")]
    node.kill9()
    node.drain()
    assert read(os.path.join(node.data, "ended")).split() == ["web", "cache", "db"]
    assert not [pid for pid in pids if is_alive(pid)]
    node.start()
    for name in ("db", "cache", "web"):
        node.wait_running(name)


def test_draining_ends_at_a_pod_that_cannot_be_removed_after_stopping_its_dependents(node):
    node.launch(specs.pod("db"))
    node.launch(after("db", "web", specs.container(volumeMounts=[specs.mount("v", "/v")]), volumes=[{"name": "v", "emptyDir": {}}]))
    pids = [node.init(name) for name in ("db", "web")]
    (volume,) = glob.glob(f"{node.state}/pods/{node.pod('web')['metadata']['uid']}/volumes/*/v")
    fixed = os.path.join(volume, "fixed")
    with open(fixed, "w", encoding="utf-8"):
        pass
    subprocess.run(["chattr", "+i", fixed], check=True)
    try:
        node.kill9()
        done = node.run_drain()
    finally:
        subprocess.run(["chattr", "-i", fixed], check=True)
    assert done.returncode == 1, done.stderr
    assert not [pid for pid in pids if is_alive(pid)]
    said = [line for line in done.stderr.splitlines() if "Cannot remove the remains of pod" in line]
    assert len(said) == 1 and "Cannot remove the remains of pod 'default/web-node1', the next agent tries again: " in said[0], done.stderr
    assert said[0].endswith("volumes': Operation not permitted"), said
    node.drain()


def test_draining_does_not_start_a_waiting_pod(node):
    node.launch(specs.pod("web"))
    node.drop(after("missing", "late"))
    wait_waits(node, "late", "missing")
    node.kill9()
    assert "Starting pod" not in node.drain()
    node.start()
    node.wait_running("web")
