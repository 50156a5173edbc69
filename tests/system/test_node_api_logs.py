# SPDX-License-Identifier: Apache-2.0
"""Logs over mainstay-api: each is read by a separate process, so that its bytes do not pass through the agent's
loop."""

import os
import signal
import time

import harness
import pytest
import specs
import test_node_api
import world
from world import wait

pytestmark = pytest.mark.xdist_group("node_api")

LINE, LINES = "0123456789" * 10, 300000  # more than sockets and pipes hold
READS_NOTHING = 240  # seconds, as with `kubectl logs | less`
LOG_PROCESSES_OF_NAMESPACE_MAX, LOG_PROCESSES_OF_POD_MAX = 96, 16


@pytest.fixture(scope="module", name="served")
def fixture_served(archive):
    found = test_node_api.World(archive, containerLogMaxSize="1Gi")
    try:
        found.node.launch(specs.pod("writer", specs.container(script=f"yes {LINE} | head -n {LINES}; " + specs.IDLE)))
        log = os.path.join(found.node.log_directory("writer"), "main", "0.log")
        wait(lambda: os.path.getsize(log) > LINES * (len(LINE) + 40), "the log is written")
        yield found
    finally:
        found.finish()


class Log:
    """A log that is being read."""

    def __init__(self, served, pod="writer", query="", container="main", namespace="default"):
        self.stream = served.api.connect(served.admin)
        self.stream.settimeout(world.DEADLINE)
        name = served.node.pod(pod, namespace)["metadata"]["name"]
        self.stream.sendall(f"GET /containerLogs/{namespace}/{name}/{container}?{query} HTTP/1.0\r\n\r\n".encode())
        self.rest = b""
        head = self.take(lambda: self.rest.find(b"\r\n\r\n") + 4 if b"\r\n\r\n" in self.rest else 0)
        self.status = int(head.split()[1])

    def take(self, length):
        """Reads until length() is not 0, and returns that number of bytes."""
        while not length():
            piece = self.stream.recv(65536)
            assert piece, self.rest
            self.rest += piece
        taken, self.rest = self.rest[:length()], self.rest[length():]
        return taken

    def line(self):
        return self.take(lambda: self.rest.find(b"\n") + 1).decode()

    def all(self):
        pieces = [self.rest]
        while piece := self.stream.recv(1 << 20):
            pieces.append(piece)
        self.rest = b"".join(pieces)
        return self.rest

    def close(self):
        self.stream.close()


def log_processes(served):
    return [pid for pid in world.pids() if world.status(pid, "Name") == "log-reader" and served.node.is_ours(pid)]


def test_a_log_is_read_while_the_agent_does_not_run(served):
    log = Log(served)
    wait(lambda: log_processes(served), "a process reads the log")
    os.kill(served.node.agent.pid, signal.SIGSTOP)
    try:
        assert log.all() == f"{LINE}\n".encode() * LINES
    finally:
        os.kill(served.node.agent.pid, signal.SIGCONT)
    wait(lambda: not log_processes(served), "the process has ended")


def test_a_followed_log_ends_with_its_container(served):
    served.node.launch(specs.pod("short", specs.container(script="trap 'echo last; exit 0' USR1; echo first; " + specs.IDLE),
                                 restartPolicy="Never"))
    log = Log(served, "short", "follow=1")
    assert log.line() == "first\n"
    os.kill(served.node.init("short"), signal.SIGUSR1)
    assert log.all() == b"last\n"


def test_log_process_ends_when_a_following_client_disconnects(served):
    log = Log(served, query="follow=1&tailLines=1")
    assert log.line() == LINE + "\n"
    assert log_processes(served)
    log.close()
    wait(lambda: not log_processes(served), "the process has ended")


def test_log_process_ends_when_a_stalled_client_disconnects(served):
    log = Log(served)
    wait(lambda: log_processes(served), "a process reads the log")
    log.close()
    wait(lambda: not log_processes(served), "the process has ended")


@pytest.mark.long
def test_a_client_that_reads_nothing_for_minutes_receives_the_whole_log(served):
    log = Log(served)
    first = log.line()
    time.sleep(READS_NOTHING)
    assert len((first.encode() + log.all()).split()) == LINES


def test_a_killed_log_process_is_reported_in_the_agents_log(served):
    log = Log(served, query="follow=1&tailLines=1")
    assert log.line() == LINE + "\n"
    os.kill(wait(lambda: log_processes(served), "a process reads the log")[0], signal.SIGKILL)
    assert log.all() == b""
    directory = os.path.join(served.node.log_directory("writer"), "main")
    wait(lambda: f"{directory}/0.log: a client does not receive the rest of it: " in served.node.said(), served.node.said)


def test_a_followed_log_ends_with_the_agent(served):
    log = Log(served, query="follow=1&tailLines=1")
    assert log.line() == LINE + "\n"
    wait(lambda: log_processes(served), "a process reads the log")
    served.node.kill9()
    assert log.all() == b""
    wait(lambda: not log_processes(served), "the process has ended")
    served.node.start()


def test_log_process_does_not_inherit_descriptors_of_the_agent(served):
    """The process has neither the agent's lock nor its sockets: otherwise another agent could not start, or a client
    would wait for the process."""
    log = Log(served, query="follow=1&tailLines=1")
    log.line()
    pid = wait(lambda: log_processes(served), "a process reads the log")[0]
    found = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd") if int(fd) > 2]
    directory = os.path.join(served.node.log_directory("writer"), "main")
    assert sorted(target.split(":")[0] for target in found) == [directory, f"{directory}/0.log", "anon_inode", "anon_inode", "pipe"], found
    log.close()


def accepted(log):
    if log.status == 200:
        return log
    log.close()
    return None


def expect_refused(log, words):
    assert (log.status, log.all()) == (503, words)


def test_too_many_clients_of_one_log_are_refused_without_affecting_other_logs(served):
    wait(lambda: not log_processes(served), "earlier processes have ended")
    others = [f"other{number}" for number in range(LOG_PROCESSES_OF_NAMESPACE_MAX // LOG_PROCESSES_OF_POD_MAX - 1)]
    for name in others:
        served.node.launch(specs.pod(name, specs.container(script="echo hello; " + specs.IDLE)))
    elsewhere = specs.pod("elsewhere", specs.container(script="echo hello; " + specs.IDLE))
    elsewhere["metadata"]["namespace"] = "elsewhere"
    served.node.drop(elsewhere)
    logs = [Log(served, query="follow=1&tailLines=1") for _ in range(LOG_PROCESSES_OF_POD_MAX)]
    assert [log.line() for log in logs] == [LINE + "\n"] * LOG_PROCESSES_OF_POD_MAX
    expect_refused(Log(served), b"too many clients read logs of this pod (at most 16)")
    for name in others:
        logs += [Log(served, name, query="follow=1") for _ in range(LOG_PROCESSES_OF_POD_MAX)]
    assert {log.line() for log in logs[LOG_PROCESSES_OF_POD_MAX:]} == {"hello\n"}
    served.node.launch(specs.pod("one-more", specs.container(script="echo hello; " + specs.IDLE)))
    expect_refused(Log(served, "one-more"), b"too many clients read logs of this namespace (at most 96)")
    assert len(log_processes(served)) == LOG_PROCESSES_OF_NAMESPACE_MAX
    wait(lambda: harness.is_running(served.node.pod("elsewhere", "elsewhere")), "the pod in another namespace runs")
    assert Log(served, "elsewhere", "follow=1", namespace="elsewhere").line() == "hello\n"
    for log in logs:
        log.close()
    wait(lambda: not log_processes(served), "the processes have ended")
    assert len(wait(lambda: accepted(Log(served)), "the agent has noticed that").all()) == (len(LINE) + 1) * LINES


def test_a_container_that_has_ended_has_no_previous_log(served):
    served.node.drop(specs.pod("ended", specs.container(script="echo main"), restartPolicy="Never",
                               initContainers=[specs.container("init", "echo init")]))
    served.node.wait_phase("ended", "Succeeded")
    name = served.node.pod("ended")["metadata"]["name"]
    for container in ("init", "main"):
        path = f"/containerLogs/default/{name}/{container}"
        assert served.get(path + "?previous=true") == (404, f'previous terminated container "{container}" in pod "{name}" not found')
        assert served.get(path)[0] == 200


def test_a_log_that_cannot_be_read_is_an_error(served):
    name = served.node.pod("writer")["metadata"]["name"]
    for path, said in (("none", f'container none is not valid for pod {name}'),
                       ("main?previous=true", f'previous terminated container "main" in pod "{name}" not found')):
        assert served.get(f"/containerLogs/default/{name}/{path}") == (404, said)
