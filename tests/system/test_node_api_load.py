# SPDX-License-Identifier: Apache-2.0
"""mainstay-api with many clients, much data, and clients that vanish or do not read."""

import contextlib
import hashlib
import os
import resource
import select
import signal
import socket
import socketserver
import ssl
import struct
import threading

import many
import node_api
import pytest
import specs
import test_node_api
import world
from world import wait

pytestmark = pytest.mark.xdist_group("node_api")

MIB = 1 << 20
SESSIONS, FORWARDS, PORTS = 100, 10, 20
FAST, CHANNELS = 60, 32  # more than fit into the output of one client
PODS = 4  # a pod has at most 32 sessions


@pytest.fixture(scope="module", name="served")
def fixture_served(archive):
    found = test_node_api.World(archive)
    for number in range(PODS):
        found.node.launch(specs.pod(f"more{number}"))
    yield found
    found.finish()


def processes(served, *command):
    return [pid for pid in world.pids_of_root(served.node.cgroup_root) if world.cmdline(pid) == list(command)]


def is_released(served, *command):
    return served.connections() == 0 and not processes(served, *command)


def start_forward(served, **options):
    stream, _ = served.upgrade(f"/portForward/default/{served.pod}", node_api.spdy_headers("portforward.k8s.io"), method="POST", **options)
    return node_api.SpdyClient(stream)


def open_port(served, client, number):
    """Opens a connection to the port and waits until it has answered: the server in the pod queues at most two
    clients."""
    _, stream = test_node_api.forward(client, served.port, number)
    client.until(lambda: client.data[stream] == b"hello")
    return stream


def vanish(stream):
    """Ends the connection with a reset, without a message of TLS."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(stream.detach())


def test_a_hundred_sessions_and_two_hundred_forwarded_connections_run_at_once(served):
    sessions = []
    for number in range(SESSIONS):
        pod = served.node.pod(f"more{number % PODS}")["metadata"]["name"]
        session = served.spdy_session(path=f"/exec/default/{pod}/main?command=cat&input=1&output=1", streams=("stdin", "stdout"))
        sessions.append(session)
    forwards = [(client, [open_port(served, client, number) for number in range(PORTS)])
                for client in [start_forward(served) for _ in range(FORWARDS)]]
    for number, session in enumerate(sessions):
        client, stdin, stdout = session.client, session.ids["stdin"], session.ids["stdout"]
        client.until(lambda client=client, stdin=stdin: stdin in client.replied)
        client.send(stdin, b"%d\n" % number)
        client.until(lambda client=client, stdout=stdout, number=number: client.data[stdout] == b"%d\n" % number)
    for client, streams in forwards:
        for number, stream in enumerate(streams):
            client.send(stream, b"again%d" % number)
            client.until(lambda client=client, stream=stream, number=number: client.data[stream] == b"helloagain%d" % number)
    assert len(processes(served, "cat")) == SESSIONS + FORWARDS * PORTS
    for session in sessions[:SESSIONS // 2]:
        session.client.send(session.ids["stdin"], b"", last=True)
        assert session.result()["status"] == "Success"
    for client in [one.client for one in sessions] + [client for client, _ in forwards]:
        vanish(client.stream)
    wait(lambda: is_released(served, "cat"), lambda: f"everything is freed: {served.connections()} {processes(served, 'cat')}")


def test_resources_of_a_client_that_vanishes_are_freed(served):
    served.get("/healthz")
    wait(lambda: served.connections() == 0, "no connection is left")
    before = len(os.listdir(f"/proc/{served.api.process.pid}/fd"))
    agent = len(os.listdir(f"/proc/{served.node.agent.pid}/fd"))
    session = served.spdy_session("sleep", "4714", streams=("stdin", "stdout"))
    wait(lambda: processes(served, "sleep", "4714"), "the command runs")
    client = start_forward(served)
    _, stream = test_node_api.forward(client, served.port, 0)
    client.until(lambda: client.data[stream] == b"hello")
    log = served.api.connect(served.admin)
    log.sendall(f"GET /containerLogs/default/{served.pod}/main?follow=1 HTTP/1.1\r\nHost: node\r\n\r\n".encode())
    assert log.recv(100).startswith(b"HTTP/1.1 200")
    for one in (session.client.stream, client.stream, log):
        vanish(one)
    wait(lambda: is_released(served, "sleep", "4714"), "the command has ended")
    wait(lambda: not processes(served, "cat"), "the port's process has ended")
    wait(lambda: len(os.listdir(f"/proc/{served.api.process.pid}/fd")) == before, "descriptors are closed")
    wait(lambda: len(os.listdir(f"/proc/{served.node.agent.pid}/fd")) <= agent, "descriptors of the agent are closed, too")


def test_a_client_that_vanishes_while_its_command_reads_no_input_is_noticed(served):
    session = served.spdy_session("sleep", "4715", streams=("stdin", "stdout"))
    wait(lambda: processes(served, "sleep", "4715"), "the command runs")
    stream = session.client.stream
    session.client.until(lambda: session.ids["stdin"] in session.client.replied)
    stream.setblocking(False)
    data = struct.pack(">II", session.ids["stdin"], MIB // 32) + bytes(MIB // 32)
    while select.select([], [stream], [], 1)[1]:
        try:
            data = data[stream.send(data):] or struct.pack(">II", session.ids["stdin"], MIB // 32) + bytes(MIB // 32)
        except ssl.SSLWantWriteError:
            pass
    vanish(stream)
    wait(lambda: is_released(served, "sleep", "4715"), "the command has ended")


def test_a_session_whose_client_does_not_read_stalls_no_other_session(served):
    stalled = served.spdy_session("yes")
    wait(lambda: processes(served, "yes"), "the command runs")
    session = served.spdy_session("sh", "-c", "head%20-c%203000000%20/dev/zero")
    assert session.result()["status"] == "Success"
    assert len(session.text("stdout")) == 3000000
    assert processes(served, "yes"), "it waits"
    for one in (session, stalled):
        vanish(one.client.stream)
    wait(lambda: is_released(served, "yes"), "it has ended")


class Flood(socketserver.ThreadingTCPServer):
    """A server on the network of the pod that sends without end."""

    daemon_threads = True
    request_queue_size = 128

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            with self.server.lock:
                self.server.n_clients += 1
            with contextlib.suppress(ConnectionError):
                while True:
                    self.request.sendall(bytes(MIB // 16))
            with self.server.lock:
                self.server.n_clients -= 1

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.lock, self.n_clients = threading.Lock(), 0
        self.port = str(self.server_address[1])
        threading.Thread(target=self.serve_forever).start()


@pytest.fixture(name="flood")
def fixture_flood():
    with Flood() as server:
        yield server
        server.shutdown()


def test_many_fast_connections_to_ports_do_not_end_the_tunnel_of_a_slow_client(served, flood):
    client = start_forward(served, stream=served.api.connect_slowly(served.admin))
    streams = []
    for number in range(FAST):
        headers = {"port": flood.port, "requestid": str(number)}
        client.send(client.open(streamtype="error", **headers), b"", last=True)
        streams.append(client.open(streamtype="data", **headers))
    wait(lambda: flood.n_clients == FAST, "all connections are open")
    client.until(lambda: all(len(client.data[one]) > MIB // 4 for one in streams))
    vanish(client.stream)
    wait(lambda: flood.n_clients == 0, "all connections are closed")


def test_many_fast_channels_do_not_end_the_websocket_of_a_slow_client(served, flood):
    path = f"/portForward/default/{served.pod}?" + "&".join([f"port={flood.port}"] * CHANNELS)
    client = node_api.WebSocketClient(served.upgrade(path, node_api.websocket_headers("v4.channel.k8s.io"),
                                                     stream=served.api.connect_slowly(served.admin))[0])
    wait(lambda: flood.n_clients == CHANNELS, "all connections are open")
    received = [0] * CHANNELS
    while min(received) < MIB // 4:
        client.step()
        assert client.close_code is None
        message = client.messages.pop()
        received[message[0] // 2] += len(message)
    vanish(client.stream)
    wait(lambda: flood.n_clients == 0, "all connections are closed")


class Pump:
    """Sends to stdin while it reads stdout, on one TLS connection, without a thread."""

    def __init__(self, session):
        self.session, self.stream = session, session.client.stream
        session.client.until(lambda: session.ids["stdin"] in session.client.replied)
        self.received, self.arrived = hashlib.sha256(), 0
        self.received.update(session.client.data[session.ids["stdout"]])
        self.arrived += len(session.client.data[session.ids["stdout"]])
        self.out, self.buffer = b"", b""
        self.is_over = False

    def run(self, blocks):
        self.stream.setblocking(False)
        stdin = self.session.ids["stdin"]
        blocks = iter(blocks)
        has_more = True
        while not self.is_over:
            if has_more and not self.out:
                block = next(blocks, None)
                has_more = block is not None
                self.out = struct.pack(">II", stdin, (0 if has_more else 1) << 24 | len(block or b"")) + (block or b"")
            self.write()
            self.read()
            if not self.stream.pending() and not self.is_over:
                assert select.select([self.stream], [self.stream] if self.out else [], [], world.DEADLINE)[:2] != ([], []), "no data is transferred"

    def write(self):
        try:
            if self.out:
                self.out = self.out[self.stream.send(self.out):]
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            pass

    def read(self):
        try:
            data = self.stream.recv(MIB)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        self.is_over = not data
        self.buffer += data
        while len(self.buffer) >= 8:
            first, second = struct.unpack(">II", self.buffer[:8])
            length = second & 0xffffff
            if len(self.buffer) < 8 + length:
                return
            if first == self.session.ids["stdout"]:
                self.received.update(self.buffer[8:8 + length])
                self.arrived += length
                self.is_over = self.is_over or bool(second >> 24 & 1)
            self.buffer = self.buffer[8 + length:]


def test_large_input_is_returned_unchanged_over_http(served):
    block, count = os.urandom(MIB // 32), 64 * 32
    sent = hashlib.sha256()

    def blocks():
        for number in range(count):
            data = struct.pack(">I", number) + block[4:]
            sent.update(data)
            yield data

    pump = Pump(served.spdy_session("cat", streams=("stdin", "stdout")))
    pump.run(blocks())
    assert pump.arrived == 64 * MIB
    assert pump.received.hexdigest() == sent.hexdigest()
    vanish(pump.stream)
    wait(lambda: is_released(served, "cat"), "everything is freed")


def test_an_api_that_runs_out_of_descriptors_keeps_its_sessions_and_serves_again(served):
    process = served.api.process.pid
    session = served.spdy_session(path=f"/exec/default/{served.node.pod('more0')['metadata']['name']}/main?command=cat&input=1&output=1",
                                  streams=("stdin", "stdout"))
    client, stdin, stdout = session.client, session.ids["stdin"], session.ids["stdout"]
    client.until(lambda: stdin in client.replied)
    soft, hard = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (max(world.descriptors(process)) + 9, hard))
    try:
        waiting = [served.api.dial() for _ in range(50)]
        wait(lambda: served.connections() > 5, "it has accepted some connections")
        before = world.cpu_ticks(process)
        client.send(stdin, b"still here\n")
        client.until(lambda: client.data[stdout] == b"still here\n")
        signal.sigtimedwait([], 1)
        assert world.cpu_ticks(process) - before < 50, "it does not spin"
        for one in waiting:
            vanish(one)
        assert served.get("/healthz")[0] == 200
    finally:
        resource.prlimit(process, resource.RLIMIT_NOFILE, (soft, hard))
    assert served.api.process.poll() is None
    vanish(client.stream)
    wait(lambda: is_released(served, "cat"), lambda: f"everything is freed: {served.connections()} {processes(served, 'cat')}")


def connect_all(figure, connect):
    """Connects clients that send nothing; the result includes those that are refused immediately."""
    clients = []
    for number in range(figure):
        try:
            clients.append(connect(number))
        except (BlockingIOError, ConnectionResetError, ConnectionRefusedError):
            continue
    return clients


def flood(served, figure):
    """Connects from a hundred addresses as fast as the program accepts; during this another address is served, and
    afterwards so is the local socket."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard == resource.RLIM_INFINITY or hard >= figure + 1000, f"this test needs {figure + 1000} descriptors"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, figure + 1000), hard))
    served.get("/healthz")
    wait(lambda: served.connections() == 0, "no connection is left")
    pids = [served.api.process.pid, served.node.agent.pid]
    before = [len(many.descriptors(pid)) for pid in pids]
    init = served.node.init("web")
    memory = [many.own_kib(pid) for pid in pids]

    def connect_by_tls(number):
        if number % 1000 == 999:
            assert served.get("/healthz") == (200, "ok"), "other clients are served"
        return socket.create_connection(("127.0.0.1", served.api.port), 60, (f"127.0.1.{number % 100 + 1}", 0))

    def connect_locally(_):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.setblocking(False)
        try:
            client.connect(served.node.socket)
            client.send(b"GET /pods HT")
        except OSError:
            client.close()
            raise
        return client
    clients = connect_all(figure, connect_by_tls)
    assert len(clients) == figure
    held = served.connections()
    grown = many.own_kib(pids[0]) - memory[0]
    for client in clients:
        client.close()
    wait(lambda: served.connections() == 0, lambda: f"no connection is left: {served.connections()}")
    assert served.get("/healthz") == (200, "ok")
    clients = connect_all(figure, connect_locally)
    os.kill(init, 9)
    wait(lambda: served.node.shims() and world.pids_of_root(served.node.cgroup_root) and not world.is_alive(init), "it is dead")
    for client in clients:
        client.close()
    wait(served.node.is_ready, "the local socket answers")
    served.node.wait_restarts("web", 1)
    wait(lambda: [len(many.descriptors(pid)) for pid in pids] <= before, lambda: f"{[many.descriptors(pid) for pid in pids]}")
    print(f"{figure} connections, {held} at once, {grown} KiB; {len(clients)} of the local socket")
    assert held < figure and grown < 64 * 1024


@pytest.mark.slow
def test_a_thousand_silent_connections_do_not_lock_out_other_clients(served):
    flood(served, 1000)


@pytest.mark.long
def test_ten_thousand_silent_connections_do_not_lock_out_other_clients(served):
    flood(served, many.scaled(10000))
