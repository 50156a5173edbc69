# SPDX-License-Identifier: Apache-2.0
"""The machine's clock is set while the agent runs: delays are unaffected."""

import math
import os
import shutil
import time

import harness
import many
import pytest
import registry
import specs
import world
from clocked import ClockNode
from index_source import Index, Key, Nginx, settings
from test_daemonset_taints import LEAVE, daemonset_that_tolerates
from test_daemonsets import init_of, pods_of, wait_daemon, wait_none
from test_rollouts import logs, surge, run_cli, wait_version
from world import wait

HOUR = 3600
YEAR = 365 * 24 * HOUR
AHEAD = 10 * YEAR
TO_1970 = 24 * HOUR - int(time.time())  # to the second day of 1970


def think(node, name):
    """Causes the agent to evaluate all pods again."""
    node.launch(specs.pod(name))


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
def test_toleration_seconds_do_not_depend_on_the_clock(clocked, shift):
    clocked.drop(daemonset_that_tolerates("patient", 8))
    pid = init_of(clocked, wait_daemon(clocked, "patient"))
    start = time.monotonic()
    clocked.write_config(registerWithTaints=[LEAVE])
    wait(lambda: "Labels or taints of the node changed" in clocked.said(), "the taint is seen")
    clocked.set_clock(shift)
    think(clocked, "think")
    stamp = time.strptime(clocked.pod("think")["status"]["startTime"], "%Y-%m-%dT%H:%M:%SZ")
    assert abs(abs(time.mktime(stamp) - time.timezone - time.time()) - HOUR) < 60, "the agent's clock has changed"
    is_alive = world.is_alive(pid)
    assert is_alive or time.monotonic() - start > 6, "an hour by the clock counted as an hour of waiting"
    wait_none(clocked, "patient")
    assert time.monotonic() - start > 6


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
def test_a_surge_continues_on_time(clocked, shift):
    seconds = 20  # long enough to observe both pods and to set the clock
    clocked.drop(logs("1", **surge(seconds)))
    pid = init_of(clocked, wait_version(clocked, "1"))
    start = time.monotonic()
    clocked.drop(logs("2", **surge(seconds)))
    wait(lambda: len(pods_of(clocked, "logs")) == 2 and all(map(harness.is_running, pods_of(clocked, "logs"))),
         "both run")
    think(clocked, "before")
    clocked.set_clock(shift)
    think(clocked, "after")
    wait_version(clocked, "2")
    assert time.monotonic() - start > seconds - 1
    assert not world.is_alive(pid)


def test_a_clock_set_forward_triggers_no_rollback(clocked):
    deadline = {"metadata": {"annotations": {"mainstay.dev/progress-deadline-seconds": "600"}}}
    clocked.drop(logs("1", **deadline))
    wait_version(clocked, "1")
    wait(lambda: run_cli(clocked, "get", "ds", "logs", "--no-headers").split()[5] == "1", "it is available")
    slow = {"readinessProbe": {"exec": {"command": ["false"]}}}
    daemonset = logs("2", **deadline)
    daemonset["spec"]["template"]["spec"]["containers"][0].update(slow)
    clocked.drop(daemonset)
    wait_version(clocked, "2")
    clocked.set_clock(HOUR)
    think(clocked, "think")
    assert "Rolled back" not in clocked.said()
    wait_version(clocked, "2")


@pytest.fixture(name="make_clocked")
def fixture_make_clocked(archive, library):
    """Nodes with the test's own configuration, whose clock is wrong from the start."""
    nodes = []

    def make(shift, config=None):
        node = ClockNode(archive, library, config, start=False)
        nodes.append(node)
        node.set_clock(shift)
        node.start()
        return node

    yield make
    for node in nodes:
        node.finish()


def source_condition(node):
    return node.node_condition("mainstay.io/SourceFailed")


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    """A signed index with one pod, served by nginx, which nodes fetch every ten hours."""
    os.mkdir(tmp_path / "root")
    index = Index(str(tmp_path / "root"), Key(str(tmp_path), "key"))
    index.write({"web.yaml": specs.pod("web")}, expires=time.strftime("%Y-12-31T23:59:59Z", time.gmtime(time.time() + YEAR)))
    nginx = Nginx(str(tmp_path / "nginx"), index.directory)
    nginx.settings = {"mainstay": {"source": settings(nginx.url(), [index.key], interval="10h", caFile=nginx.certificate)}}
    yield nginx
    nginx.stop()


def forget_source(node):
    """Removes the source from the node, so that its pods stop at the end of a test."""
    node.write_config()
    node.restart()


@pytest.mark.parametrize("shift,words", [(TO_1970, "the certificate of the server is not valid yet; the clock of this machine "
                                                   "is not set, it says 1970-01-0"),
                                         (AHEAD, "the certificate of the server has expired; the clock of this machine says 20")],
                         ids=["1970", "ahead"])
def test_a_source_that_failed_because_of_the_time_is_fetched_when_the_clock_is_set(make_clocked, site, shift, words):
    node = make_clocked(shift, site.settings)
    node.launch(specs.pod("own"))
    init = node.init("own")
    wait(lambda: words in source_condition(node)["message"], lambda: f"'{words}' is in {source_condition(node)}")
    assert "it is tried again when the clock is set" in source_condition(node)["message"]
    node.set_clock(0)
    node.wait_running("web")
    wait(lambda: source_condition(node)["status"] == "False", lambda: f"the source has not failed: {source_condition(node)}")
    node.set_clock(shift)
    think(node, "think")
    assert node.init("own") == init and node.init("web")
    forget_source(node)


@pytest.fixture(name="tls_registry")
def fixture_tls_registry(tmp_path):
    """A registry whose certificate, of this year, the machine trusts."""
    cert, key = registry.certificate(str(tmp_path))
    server = registry.BadRegistry(registry.Blobs([{"file": b"content"}]), tls=registry.tls_server(cert, key))
    certs = f"/etc/containers/certs.d/{server.host}"
    os.makedirs(certs)
    shutil.copy(cert, os.path.join(certs, "ca.crt"))
    yield server
    shutil.rmtree(certs)
    server.stop()


def test_a_pull_that_failed_because_of_the_time_is_retried_when_the_clock_is_set(make_clocked, tls_registry):
    node = make_clocked(TO_1970, {"crashLoopBackOff": {"maxContainerRestartPeriod": "300s"}})
    node.drop(specs.pod("pulled", {**specs.container(), "image": f"{tls_registry.host}/team/app:latest"}))
    failed = "the certificate of the server is not valid yet; the clock of this machine is not set, it says 1970-01-0"
    passed = 0
    for count, delay in (1, 10), (2, 20), (3, 40), (4, 80):
        wait(lambda: node.said().count(failed) >= count, lambda: node.said()[-3000:])  # pylint: disable=cell-var-from-loop
        passed += delay
        node.write_clock(TO_1970 + passed, passed)
        node.get("/readyz")
    wait(lambda: node.said().count(failed) >= 5, lambda: node.said()[-3000:])
    assert not tls_registry.seen
    # The back-off is 160 seconds by now.
    node.write_clock(passed, passed)
    wait(lambda: "Successfully pulled image" in node.cli("get", "events").stdout,
         lambda: node.cli("get", "events").stdout + node.said()[-3000:])


@pytest.mark.parametrize("shift", [AHEAD, TO_1970], ids=["ahead", "1970"])
def test_an_active_deadline_does_not_pass_because_the_clock_is_set(clocked, shift):
    clocked.launch({**specs.pod("long", activeDeadlineSeconds=100000)})
    init, start = clocked.init("long"), time.monotonic()
    clocked.drop(specs.pod("short", activeDeadlineSeconds=6))
    # On a busy machine the pod's deadline may have passed before the test sees it running.
    clocked.wait_pod("short", lambda pod: harness.is_running(pod) or pod["status"].get("phase") == "Failed", "has started")
    clocked.set_clock(shift)
    think(clocked, "think")
    clocked.wait_phase("short", "Failed")
    assert clocked.pod("short")["status"]["reason"] == "DeadlineExceeded"
    assert time.monotonic() - start > 3, "the time was cut short by a clock change"
    clocked.set_clock(0)
    think(clocked, "again")
    assert clocked.pod("long")["status"]["phase"] == "Running" and clocked.init("long") == init


def test_pod_started_before_the_clock_was_set_keeps_its_age_for_the_next_agent(make_clocked):
    node = make_clocked(TO_1970)
    node.launch({**specs.pod("long", activeDeadlineSeconds=100000)})
    init = node.init("long")
    node.set_clock(0)
    node.restart()
    think(node, "think")
    assert node.pod("long")["status"]["phase"] == "Running" and node.init("long") == init


def jump(node, chance, seconds):
    """Sets the clock forward or back by up to ten years, once a second."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        node.set_clock(chance.choice([-1, 1]) * chance.choice([1, HOUR, YEAR, AHEAD]))
        node.get("/readyz")  # the agent reads the clock
        time.sleep(1)


@pytest.mark.parametrize("seconds", [8, pytest.param(600, marks=pytest.mark.long)])
def test_probes_back_off_and_grace_periods_are_unaffected_by_a_jumping_clock(make_clocked, seconds):
    node = make_clocked(0, {"crashLoopBackOff": {"maxContainerRestartPeriod": "300s"}})
    eager = {"exec": {"command": ["sh", "-c", "echo >> /v/probes"]}, "periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 1}
    node.launch(specs.pod("probed", specs.container(livenessProbe=eager, volumeMounts=[specs.mount("v", "/v")]),
                          volumes=[specs.host_path("v", node.data)]))
    node.launch(specs.pod("deaf", specs.container(script="trap '' TERM; while :; do sleep 0.1; done"),
                          terminationGracePeriodSeconds=seconds // 2))
    node.drop(specs.script_pod("fails", "exit 3"))
    node.wait_waiting("fails", "CrashLoopBackOff")
    wait(lambda: world.read(f"{node.data}/probes"), "a probe has run")
    probed, deaf = node.init("probed"), node.init("deaf")
    chance, start = many.make_random(), time.monotonic()
    probes, restarts = len(world.read(f"{node.data}/probes")), node.status("fails")["restartCount"]
    node.remove("deaf")
    jump(node, chance, seconds // 2 - 1)
    is_alive = world.is_alive(deaf)
    assert is_alive or time.monotonic() - start >= seconds // 2, "the grace period was cut short"
    jump(node, chance, seconds // 2 + 1)
    wait(lambda: not world.is_alive(deaf), "the grace period ends by itself")
    assert node.init("probed") == probed and node.status("probed")["restartCount"] == 0
    probes, restarts = len(world.read(f"{node.data}/probes")) - probes, node.status("fails")["restartCount"] - restarts
    passed = time.monotonic() - start  # read last: all counted events happened within this time
    assert 0 < probes <= passed + 3, "at most one probe per second has run"
    # The back-offs are 10, 20, 40 … seconds.
    assert restarts <= math.log2(passed / 10 + 2) + 1
    node.set_clock(0)
