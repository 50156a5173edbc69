# SPDX-License-Identifier: Apache-2.0
"""The start of sessions of mainstay-api: the client has not opened its streams yet, or the agent does not reply yet."""

import os
import socket
import ssl
import struct
import threading

import node_api
import pytest
import specs
import test_node_api
import world
from test_node_api import sleepers
from world import wait

pytestmark = pytest.mark.xdist_group("node_api")


@pytest.fixture(scope="module", name="served")
def fixture_served(archive):
    found = test_node_api.World(archive)
    yield found
    found.finish()


# The client

def session_processes(served):
    """The children of the pod's shim that have not executed another program. The log copier is left out, as it does not
    run as root."""
    shim = int(served.node.shim(served.pod))
    return [pid for pid in served.node.shim_processes() if int(world.status(pid, "PPid") or 0) == shim
            and (world.status(pid, "Uid") or "").split()[:1] == ["0"]]


def open_error_alone(served, seconds, pod=None):
    """A client that requests the output of a command, but has not opened the stream for it."""
    path = served.exec_path("sleep", seconds, output=True).replace(served.pod, pod or served.pod)
    stream, _ = served.upgrade(path, node_api.spdy_headers("v4.channel.k8s.io"), method="POST")
    return node_api.SpdySession(stream, [])


def test_a_command_starts_when_its_client_has_opened_all_streams(served):
    session = open_error_alone(served, "4718")
    assert served.spdy_session("echo", "hello").result()["status"] == "Success"
    assert not sleepers(served, "4718")
    session.ids["stdout"] = session.client.open(streamtype="stdout")
    wait(lambda: sleepers(served, "4718"), "the command runs")
    session.client.stream.close()
    wait(lambda: not sleepers(served, "4718"), "the command has ended")


def test_a_client_that_disconnects_before_its_streams_are_open_leaves_no_process(served):
    wait(lambda: not session_processes(served), "all earlier sessions have ended")
    session = open_error_alone(served, "4719")
    wait(lambda: session_processes(served), "the shim holds the command")
    session.client.stream.close()
    wait(lambda: not session_processes(served), "the shim has dropped the command")
    assert not sleepers(served, "4719")


def test_a_pod_is_deleted_though_a_client_has_not_opened_its_streams(served):
    served.node.launch(specs.pod("leaving", specs.container(script=specs.IDLE)))
    session = open_error_alone(served, "4720", served.node.pod("leaving")["metadata"]["name"])
    served.node.remove("leaving")
    served.node.wait_gone("leaving")
    session.ids["stdout"] = session.client.open(streamtype="stdout")
    session.client.until(lambda: session.client.is_over or session.ids["error"] in session.client.ended)


class TlsOverSocket:
    """A TLS client whose records are sent when flush() is called."""

    def __init__(self, api, certificate):
        self.plain = api.dial()
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = api.client_context(certificate).wrap_bio(self.incoming, self.outgoing)
        self.step(self.tls.do_handshake)

    def step(self, action):
        while True:
            try:
                return action()
            except ssl.SSLWantReadError:
                self.flush()
                self.incoming.write(self.plain.recv(65536))

    def flush(self):
        self.plain.sendall(self.outgoing.read())

    def write(self, data):
        self.tls.write(data)

    def sendall(self, data):
        self.write(data)
        self.flush()

    def recv(self, count):
        return self.step(lambda: self.tls.read(count))


def test_a_client_that_ends_tls_but_not_its_connection_is_noticed(served):
    stream = TlsOverSocket(served.api, served.admin)
    lines = [f"POST {served.exec_path('sleep', '4721', input=True)} HTTP/1.1", "Host: node", "Connection: Upgrade",
             *node_api.spdy_headers("v4.channel.k8s.io")]
    stream.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += stream.recv(1)
    assert head.startswith(b"HTTP/1.1 101")
    session = node_api.SpdySession(stream, ["stdin"])
    wait(lambda: sleepers(served, "4721"), "the command runs")
    stream.write(struct.pack(">II", session.ids["stdin"], 3) + b"abc")
    try:
        stream.tls.unwrap()
    except ssl.SSLWantReadError:
        stream.flush()  # the data and the end arrive at once
    wait(lambda: not sleepers(served, "4721"), "the command has ended")
    stream.plain.close()


# The agent

class Impostor:
    """Listens on the agent's socket, and answers no client."""

    def __init__(self, node, reads):
        self.path, self.moved, self.reads = node.socket, node.socket + ".moved", reads
        self.n_accepted, self.read, self.is_over = 0, [], False
        os.rename(self.path, self.moved)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o777)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            stream, _ = self.listener.accept()
            self.n_accepted += 1
            if self.reads:
                self.read.append(stream.recv(65536))
            stream.close()
            if self.is_over:
                return

    def give_way(self):
        """Stops, so that connections are refused until the agent's socket exists again."""
        self.is_over = True
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(self.path)
        self.thread.join()
        self.listener.close()
        os.rename(self.moved, self.path)


class LateReplies(Impostor):
    """Forwards the agent's replies; those of sessions are forwarded in one piece after the end of the session. Commands
    are not held, like those of a shim that is older than an upgrade of Mainstay."""

    def serve(self):
        while not self.is_over:
            stream, _ = self.listener.accept()
            with stream, socket.socket(socket.AF_UNIX) as agent:
                request, reply = stream.recv(65536), b""
                agent.connect(self.moved)
                agent.sendall(request.replace(b"&held=1", b""))
                while request and not (request.startswith(b"GET /exec/") and b'"status"' in reply):
                    piece = agent.recv(65536)
                    if not piece:
                        break
                    reply += piece
                if request:
                    stream.sendall(reply)


@pytest.mark.parametrize("agent", ["closes connections", "refuses connections", "lacks a socket"])
def test_a_session_that_is_requested_while_the_agent_restarts_starts_afterwards(served, agent):
    found = []
    moved = served.node.socket + ".moved"
    impostor = Impostor(served.node, reads=False) if agent == "closes connections" else None
    if not impostor:
        os.rename(served.node.socket, moved)
    if agent == "refuses connections":
        with socket.socket(socket.AF_UNIX) as ended:
            ended.bind(served.node.socket)
    thread = threading.Thread(target=lambda: found.append(served.spdy_session("echo", "hello").result()))
    thread.start()
    if impostor:
        wait(lambda: impostor.n_accepted > 3, "the request is repeated")
        impostor.give_way()
    else:
        thread.join(1)
        assert thread.is_alive() and not found
        os.rename(moved, served.node.socket)
    thread.join(world.DEADLINE)
    assert found and found[0]["status"] == "Success"


def test_a_session_that_ends_before_its_response_head_is_read_is_complete(served):
    late = LateReplies(served.node, reads=False)
    try:
        session = served.spdy_session("sh", "-c", "echo%20hello;exit%203")
        assert session.result()["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
        assert session.text("stdout") == "hello\n"
    finally:
        late.give_way()


def test_a_request_that_the_agent_has_read_is_not_repeated(served):
    assert served.spdy_session("true").result()["status"] == "Success", "the agent has granted it"
    impostor = Impostor(served.node, reads=True)
    try:
        path = served.exec_path("echo", "hello", output=True)
        answer = served.upgrade(path, node_api.spdy_headers("v4.channel.k8s.io"), method="POST")
        assert answer == (503, "the agent does not reply: Connection reset by peer")
        assert len([text for text in impostor.read if text.startswith(b"GET /exec/")]) == 1
    finally:
        impostor.give_way()
