# SPDX-License-Identifier: Apache-2.0
"""An agent that is frozen for minutes, or has a hundredth of a processor: containers, their output and their probes are
not affected, and the agent catches up."""

import http.server
import signal
import threading
import time

import pytest
import specs
import world
from test_survival import identities, starter, wait_starts
from world import wait

PERIOD, QUOTA = 100_000, 1000  # microseconds
EAGER = {"periodSeconds": 1, "timeoutSeconds": 9, "failureThreshold": 1}
COUNT = "i=0; while :; do echo $i; i=$((i+1)); sleep 0.05; done"


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_arguments):  # pylint: disable=arguments-differ
        pass


@pytest.fixture(name="port")
def fixture_port():
    """A server that answers probes immediately."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def launch_probed(node, port):
    """Launches containers that a single late answer restarts; returns their processes. Answers may also be late on a
    busy machine, but not as late as those of an agent that stands still for longer than the timeout."""
    at = {"host": "127.0.0.1", "port": port}
    probes = {"http": {"httpGet": at}, "exec": {"exec": {"command": ["true"]}}, "tcp": {"tcpSocket": at}}
    for name, probe in probes.items():
        node.launch(specs.pod(name, specs.container(livenessProbe={**EAGER, **probe})))
    return identities(node, probes)


def launch_busy(node):
    """Launches a pod that writes all the time, one that exits when it finds a file, one that will be killed, and one
    that will be removed."""
    node.launch(specs.script_pod("counter", COUNT))
    for name, script, policy in (("quits", "until [ -e /v/go ]; do sleep 0.02; done; exit 42", "Never"), ("again", specs.IDLE, "Always"),
                                 ("gone", specs.IDLE, "Always")):
        node.launch(starter(node, name, script, restartPolicy=policy))
    wait_starts(node, "again", "gone", "quits")


def make_changes(node, again):
    with open(f"{node.data}/go", "w", encoding="ascii"):
        pass
    world.kill_all([again])
    node.remove("gone")
    node.drop(specs.pod("new"))


def check_changes(node, gone):
    node.wait_gone("gone")
    assert not world.is_alive(gone)
    node.wait_running("new")
    assert node.wait_phase("quits", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 42
    again = node.wait_restarts("again", 1)
    assert (again["restartCount"], again["lastState"]["terminated"]["exitCode"]) == (1, 137)
    wait_starts(node, "again", "again", "gone", "quits")


def check_not_restarted(node, before):
    assert identities(node, before) == before
    assert {name: node.status(name)["restartCount"] for name in before} == dict.fromkeys(before, 0)


def check_all_counted(node, at_least):
    wait(lambda: len(node.logged("counter")) > at_least, "it still counts")
    found = node.logged("counter")
    assert found == [str(i) for i in range(len(found))]


def pause(seconds):
    end = time.monotonic() + seconds
    wait(lambda: time.monotonic() > end, "the time is over", seconds + 10)


@pytest.mark.parametrize("seconds", [12, *(pytest.param(s, marks=pytest.mark.long) for s in (60, 600))])
def test_an_agent_that_was_frozen_catches_up(node, port, seconds):
    before = launch_probed(node, port)
    launch_busy(node)
    gone, again, log = node.init("gone"), node.init("again"), f"{node.log_directory('counter')}/main/0.log"
    node.agent.send_signal(signal.SIGSTOP)
    wait(lambda: world.status(node.agent.pid, "State").startswith("T"), "the agent is frozen")
    lines = world.read(log).count("\n")
    make_changes(node, again)
    pause(seconds)
    assert world.read(log).count("\n") > lines + seconds, "the container writes meanwhile"
    assert all(world.is_alive(pid) for pid, _ in before.values())
    node.agent.send_signal(signal.SIGCONT)
    check_changes(node, gone)
    check_all_counted(node, lines)
    pause(2)  # two periods of the probes
    check_not_restarted(node, before)


def limit_processor(group, quota):
    """Limits all processes of the group to a share of a processor; None removes the limit."""
    if world.cgroup_version() == 1:
        name, value = "cpu.cfs_quota_us", str(quota or -1)
    else:
        name, value = "cpu.max", f"{quota or 'max'} {PERIOD}"
    with open(f"{world.cgroup_directory(group, 'cpu')}/{name}", "w", encoding="ascii") as file:
        file.write(value)


def throttled(group):
    text = world.cgroup_value(group, "cpu", "cpu.stat")
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("nr_throttled ")))


@pytest.mark.parametrize("seconds", [12, pytest.param(120, marks=pytest.mark.long)])
def test_an_agent_with_a_hundredth_of_a_processor_restarts_nothing_and_catches_up(node, port, seconds):
    before = launch_probed(node, port)
    launch_busy(node)
    gone, again, group = node.init("gone"), node.init("again"), f"{node.cgroup_root}/agent"
    world.enter_cgroup(group, node.agent.pid)
    limit_processor(group, QUOTA)
    make_changes(node, again)
    pause(seconds)
    assert throttled(group) > 0, "the agent waits for its processor"
    assert all(world.is_alive(pid) for pid, _ in before.values())
    limit_processor(group, None)
    check_changes(node, gone)
    check_all_counted(node, seconds)
    pause(2)
    check_not_restarted(node, before)
