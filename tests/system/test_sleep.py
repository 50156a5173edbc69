# SPDX-License-Identifier: Apache-2.0
"""The machine sleeps for hours, by the clocks of an agent and its shims. Waits for a process do not count the sleep,
during which no process ran; waits for a time do. vm/test_sleep.py is the same for a machine that does sleep."""

import http.server
import os
import threading

import harness
import pytest
import specs
import world
from test_slow_agent import Answers
from world import wait

HOUR = 3600
LIMIT = 1000  # longer than a test, shorter than a sleep
HOLD = "echo held >>/v/{name}; until [ -e /v/go ]; do sleep 0.05; done; "
STOP = "trap '{hold}echo ended >>/v/{name}; exit 0' TERM; while :; do sleep 0.05; done"


class Held(Answers):
    """A server that answers when the test permits it."""

    asked, may_answer = threading.Event(), threading.Event()

    def do_GET(self):
        self.asked.set()
        self.may_answer.wait()
        super().do_GET()


@pytest.fixture(name="port")
def fixture_port():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Held) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        Held.may_answer.set()
        server.shutdown()


@pytest.fixture(name="node")
def fixture_node(clocked):
    return clocked


def shell(script):
    return {"exec": {"command": ["/bin/sh", "-c", script]}}


def probe(handler, **fields):
    return {**handler, "periodSeconds": 1, "timeoutSeconds": LIMIT, "failureThreshold": 1, **fields}


def pod(node, name, script=specs.IDLE, spec=(), **fields):
    return specs.pod(name, specs.container(script=script, volumeMounts=[specs.mount("v", "/v")], **fields),
                     volumes=[specs.host_path("v", node.data)], **dict(spec))


def wait_line(node, name, line):
    wait(lambda: line in (world.read(f"{node.data}/{name}") or "").split(), f"{name} has written '{line}'")


def touch(path):
    with open(path, "w", encoding="ascii"):
        pass


def identities(node, names):
    return {name: (node.init(name), node.status(name)["restartCount"], node.status(name)["containerID"]) for name in names}


def test_probes_and_grace_periods_are_unaffected_by_hours_of_sleep(node, port):
    grace = {"terminationGracePeriodSeconds": LIMIT}
    node.launch(pod(node, "exec", livenessProbe=probe(shell(HOLD.format(name="exec")))))
    node.launch(pod(node, "http", livenessProbe=probe({"httpGet": {"host": "127.0.0.1", "port": port}})))
    node.launch(pod(node, "delayed", livenessProbe=probe(shell("test -e /v/grown"), initialDelaySeconds=LIMIT)))
    node.launch(pod(node, "expires", spec={"activeDeadlineSeconds": 2 * HOUR}))
    node.launch(pod(node, "stopped", STOP.format(name="stopped", hold=HOLD.format(name="stopped")), grace))
    node.launch(pod(node, "hooked", spec=grace, lifecycle={"preStop": shell(HOLD.format(name="hooked") + "echo ended >>/v/hooked")}))
    stays = identities(node, ("exec", "http", "delayed"))
    ends = {name: node.init(name) for name in ("stopped", "hooked")}
    for name in ends:
        node.remove(name)
    for name in ("exec", *ends):
        wait_line(node, name, "held")
    assert Held.asked.wait(world.DEADLINE)

    node.sleep(6 * HOUR)
    node.wait_pod("expires", lambda one: one["status"].get("reason") == "DeadlineExceeded", "its deadline has passed")
    node.launch(specs.pod("later"))  # the pod is started after everything that was due immediately
    assert harness.is_running(node.pod("later"))
    assert identities(node, stays) == stays
    assert all(world.is_alive(pid) for pid in ends.values()), "a grace period has been cut short"

    touch(f"{node.data}/grown")
    touch(f"{node.data}/go")
    Held.may_answer.set()
    for name in ends:
        wait_line(node, name, "ended")
        node.wait_gone(name)
    assert identities(node, stays) == stays
    assert "Unhealthy" not in node.cli("get", "events").stdout
    assert "in time" not in node.said() and os.path.exists(f"{node.data}/hooked")


DEADLINE = {"mainstay.dev/progress-deadline-seconds": "600"}
BROKEN = {"readinessProbe": {"exec": {"command": ["false"]}}}


def revised(kind, version):
    """A DaemonSet or a pod, the second version of which does not become ready."""
    container = {**specs.container(), "env": [{"name": "VERSION", "value": version}], **(BROKEN if version == "2" else {})}
    manifest = specs.daemonset("logs", container) if kind == "DaemonSet" else specs.pod("logs", container)
    manifest["metadata"]["annotations"] = DEADLINE
    return manifest


def version_of(node):
    found = [pod for pod in node.pods() if pod["metadata"]["name"].startswith("logs-")]
    return found[0]["spec"]["containers"][0]["env"][0]["value"] if len(found) == 1 else None


def is_started(node):
    return all("running" in status["state"] for pod in node.pods() for status in pod["status"].get("containerStatuses", []))


@pytest.mark.parametrize("kind", ["DaemonSet", "Pod"])
def test_the_progress_deadline_of_a_rollout_does_not_pass_during_hours_of_sleep(node, kind):
    node.drop(revised(kind, "1"))
    wait(lambda: version_of(node) == "1" and all(map(harness.is_running, node.pods())), "the first one runs")
    node.let_pass(400)  # it has been ready for long enough to be the target of a rollback
    node.launch(specs.pod("proven"))
    node.drop(revised(kind, "2"))
    wait(lambda: version_of(node) == "2" and is_started(node), "the second one has started")

    node.write_clock(400 + 6 * HOUR, 400, 6 * HOUR)
    node.get("/readyz")
    node.launch(specs.pod("later"))
    assert version_of(node) == "2" and "olled back" not in node.said()
    node.write_clock(701 + 6 * HOUR, 701, 6 * HOUR)
    node.get("/readyz")
    wait(lambda: version_of(node) == "1" and "olled back" in node.said(), "half of its deadline has passed after that")
