# SPDX-License-Identifier: Apache-2.0
"""mainstay-api: its memory with sessions, and its cost compared with runc, a plain relay and plain TLS. Each is
compared with its reference in one run, alternately, by the same client."""

import contextlib
import functools
import multiprocessing
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time

import api_certs
import bare
import harness
import node_api
import specs
from world import pss_kib, wait

SESSIONS, ROUNDS, COMMANDS = 10, 5, 100
LINE = "0123456789" * 10
MIB = 1 << 20
BLOCK = b"x" * 65536


class Api(node_api.NodeApi):
    @functools.lru_cache
    def client_context(self, certificate):
        """Created once: the cost of reading the client's own certificate is not measured."""
        return super().client_context(certificate)


class Bench:
    def __init__(self, archive):
        self.directory = tempfile.mkdtemp(prefix="mainstay-bench-api-")
        self.authority = api_certs.Authority(self.directory)
        self.admin, _ = self.authority.issue("admin", "/O=system:masters/CN=admin")
        self.node = harness.Node(archive, start=False, config={
            "containerLogMaxSize": "2Gi", "authorization": {"mode": "AlwaysAllow"},
            "authentication": {"x509": {"clientCAFile": self.authority.cert}, "webhook": {"enabled": False}}})
        # Like /run: the runtime's writes there do not wait for a disk, neither for the agent nor for a bare run.
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0711", "tmpfs", self.node.run], check=True)
        self.node.start()
        self.api = Api(self.node)
        self.helpers = []

    def connect(self):
        stream = self.api.connect(self.admin)
        stream.settimeout(300)
        return stream

    def session(self, pod, *command, streams=("stdout",)):
        words = "&".join([f"command={word}" for word in command] + ["output=1"] + (["input=1"] if "stdin" in streams else []))
        stream, _ = self.api.upgrade(f"/exec/default/{pod}/main?{words}", node_api.spdy_headers("v4.channel.k8s.io"),
                                     method="POST", certificate=self.admin)
        return node_api.SpdySession(stream, streams)

    def pod(self, name):
        return self.node.pod(name)["metadata"]["name"]

    def serve(self, function, *words):
        """A process that serves one connection after another; returns its port."""
        listener = socket.create_server(("127.0.0.1", 0))
        process = multiprocessing.get_context("fork").Process(target=function, args=(listener, *words), daemon=True)
        process.start()
        self.helpers.append(process)
        port = listener.getsockname()[1]
        listener.close()
        return port

    def finish(self):
        for process in self.helpers:
            process.terminate()
            process.join()
        self.api.stop()
        self.node.finish()
        shutil.rmtree(self.directory)


# Helper processes

def send_bytes(listener, count):
    while True:
        connection, _ = listener.accept()
        with contextlib.suppress(OSError), connection:
            connection.recv(1)
            for _ in range(count // len(BLOCK)):
                connection.sendall(BLOCK)


def relay(listener, port, wrap=contextlib.nullcontext):
    """A plain TCP relay with as many hops as the measured connection; its client sends first. 'wrap' may add TLS."""
    while True:
        plain, _ = listener.accept()
        with contextlib.suppress(OSError), wrap(plain) as connection, socket.create_connection(("127.0.0.1", port)) as target:
            target.sendall(connection.recv(1))
            while True:
                data = target.recv(65536)
                if not data:
                    break
                connection.sendall(data)


def tls_relay(listener, port, certificate, key):
    relay(listener, port, functools.partial(server_context(certificate, key).wrap_socket, server_side=True))


def server_context(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def client_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def send_file(listener, path, certificate, key):
    """Serves a file over TLS."""
    context = server_context(certificate, key)
    while True:
        plain, _ = listener.accept()
        with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as stream, open(path, "rb") as file:
            while data := file.read(MIB):
                stream.sendall(data)
            stream.unwrap()


# Measurements

def memory(bench, figures):
    pod = bench.pod("web")
    sessions = [bench.session(pod, "cat", streams=("stdin", "stdout")) for _ in range(SESSIONS)]
    for session in sessions:
        session.client.until(lambda session=session: session.ids["stdin"] in session.client.replied)
        session.client.send(session.ids["stdin"], BLOCK[:32768])
        session.client.until(lambda session=session: len(session.text("stdout")) == 32768)
    figures.add(f"mainstay-api PSS with {SESSIONS} sessions", pss_kib(bench.api.process.pid) / 1024, 6, "MiB")
    for session in sessions:
        session.client.stream.close()


def commands(bench, archive, figures, samples):
    fifo = bare.StartFifo(bench.node.data)
    bench.node.drop(bare.measured_pod(bench.node, "warm"))
    fifo.wait_for(["warm"])
    runtime = bare.Runtime(bench.node, archive, bench.node.wait_running("warm"))
    runtime.root = os.path.join(bench.node.run, "bare")
    runtime.run(fifo)
    pod, ours, bares = bench.pod("web"), [], []
    for _ in range(samples):
        started = time.monotonic()
        subprocess.run([runtime.runtime, "--root", runtime.root, "exec", "bare1", "true"], check=True, stdin=subprocess.DEVNULL)
        bares.append(time.monotonic() - started)
        started = time.monotonic()
        session = bench.session(pod, "true")
        assert session.result()["status"] == "Success"
        ours.append(time.monotonic() - started)
        session.client.stream.close()
    runtime.delete_all()
    figures.compare("exec of true through mainstay-api, over runc exec", ours, bares, 1.3)


def read_all(stream, count):
    """Seconds until this number of bytes has arrived."""
    started, arrived, buffer = time.monotonic(), 0, bytearray(MIB)
    while arrived < count:
        n = stream.recv_into(buffer)
        assert n > 0, f"{arrived} of {count} bytes"
        arrived += n
    return time.monotonic() - started


def forward(bench, source, number):
    """A client of a forwarded port, which requested its bytes."""
    stream, _ = bench.api.upgrade(f"/portForward/default/{bench.pod('web')}", node_api.spdy_headers("portforward.k8s.io"),
                                  method="POST", certificate=bench.admin)
    client = node_api.SpdyClient(stream)
    names = {"port": str(source), "requestid": str(number)}
    client.open(streamtype="error", **names)
    data = client.open(streamtype="data", **names)
    client.until(lambda: data in client.replied)
    client.send(data, b"x")
    return stream


def ports(bench, figures, count):
    """The client of the plain relay decrypts nothing. Therefore there is also a client that does not decrypt TLS
    records, the same on both sides, and a relay that adds TLS, to measure the cost of TLS alone."""
    source = bench.serve(send_bytes, count)
    plain, encrypting = bench.serve(relay, source), bench.serve(tls_relay, source, *bench.authority.server("relay"))
    context = client_context()
    ours, undecrypted, bares, encrypted = [], [], [], []
    for number in range(ROUNDS):
        with socket.create_connection(("127.0.0.1", plain)) as stream:
            stream.sendall(b"x")
            bares.append(read_all(stream, count))
        with context.wrap_socket(socket.create_connection(("127.0.0.1", encrypting))) as stream:
            stream.sendall(b"x")
            encrypted.append(read_all(stream, count))
        with forward(bench, source, number) as stream:
            ours.append(read_all(stream, count))
        with socket.socket(fileno=forward(bench, source, number).detach()) as stream:
            stream.setblocking(True)
            undecrypted.append(read_all(stream, count))
    goal = round(1 / 0.7, 2)
    figures.compare("bytes through a forwarded port, over a plain TCP relay (0.7 x its speed)", ours, bares, goal)
    figures.compare("the same, to a client that does not decrypt them", undecrypted, bares, goal)
    figures.compare("the same, to a client that does, over a relay that adds TLS", ours, encrypted, 1.0)


def logs(bench, figures, count):
    lines = count // (len(LINE) + 1)
    bench.node.launch(specs.pod("writer", specs.container(script=f"yes {LINE} | head -n {lines}; exec sleep 100000")))
    path = os.path.join(bench.directory, "text")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{LINE}\n" for _ in range(lines))
    size = os.path.getsize(path)
    log = os.path.join(bench.node.log_directory("writer"), "main", "0.log")
    wait(lambda: os.path.getsize(log) >= size + 40 * lines, lambda: f"the log is written: {os.path.getsize(log)}", 600)
    server = bench.serve(send_file, path, *bench.authority.server("plain"))
    context = client_context()
    ours, bares = [], []
    for _ in range(ROUNDS):
        with context.wrap_socket(socket.create_connection(("127.0.0.1", server))) as stream:
            bares.append(read_all(stream, size))
        stream = bench.connect()
        started = time.monotonic()
        stream.sendall(f"GET /containerLogs/default/{bench.pod('writer')}/main HTTP/1.1\r\nHost: node\r\n\r\n".encode())
        read_all(stream, size)
        ours.append(time.monotonic() - started)
        stream.close()
    figures.compare("a log through mainstay-api, over the same text through TLS (0.5 x its speed)", ours, bares, 2.0)


def measure(archive, arguments, figures):
    bench = Bench(archive)
    try:
        bench.node.launch(specs.pod("web"))
        memory(bench, figures)
        commands(bench, archive, figures, max(arguments.samples, COMMANDS))
        count = arguments.megabytes * MIB
        ports(bench, figures, count)
        logs(bench, figures, count)
    finally:
        bench.finish()
