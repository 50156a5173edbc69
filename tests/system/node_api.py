# SPDX-License-Identifier: Apache-2.0
"""mainstay-api in front of a node, and clients of it: HTTP over TLS, SPDY/3.1 and WebSocket, like kubectl and the API
server."""

import base64
import http.client
import json
import os
import re
import socket
import ssl
import struct
import subprocess
import time
import zlib

import harness
import world
from world import wait

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
SYN_STREAM, SYN_REPLY, RST_STREAM, PING_FRAME, GOAWAY = 1, 2, 3, 6, 7
FIN = 1
USER_ID = 64123  # the user of mainstay-api on a machine on which it is not installed


class NodeApi:
    """The program, with a node's agent."""

    process = None  # started by the test

    def __init__(self, node, idle=0):
        self.node = node
        self.port = world.free_port()
        self.stderr = os.path.join(node.directory, f"api.{self.port}.stderr")
        with open(self.stderr, "a", encoding="utf-8") as stderr:
            self.process = subprocess.Popen(
                [os.environ.get("MAINSTAY_API", harness.program("mainstay-api")), "--socket", node.socket, "--listen", f"127.0.0.1:{self.port}",
                 "--user", "root", "--idle", str(idle)],
                env=self.environment(), stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr)

    def environment(self):
        """Reports of sanitizers go to standard error: the program opens no files."""
        return {name: ":".join(o for o in value.split(":") if "log_path" not in o) if name.endswith("SAN_OPTIONS") else value
                for name, value in self.node.environment().items()}

    def said(self):
        return world.read(self.stderr) or ""

    def stop(self):
        self.process.terminate()
        status = self.process.wait(world.DEADLINE)
        assert status == 0, f"mainstay-api ended with {status}; its log:\n{self.said()}{self.node.sanitizer_reports()}"

    def connect(self, certificate=None):
        """A connection after its handshake; 'certificate' is a path, with the key next to it."""
        return self.client_context(certificate).wrap_socket(self.dial())

    def client_context(self, certificate):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if certificate:
            context.load_cert_chain(certificate, certificate.replace(".crt", ".key"))
        return context

    def dial(self):
        """A connection before its handshake."""
        plain = wait(self._dial, lambda: f"mainstay-api listens; its log:\n{self.said()}")
        plain.settimeout(world.DEADLINE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as Go's clients do
        return plain

    def _dial(self):
        assert self.process is None or self.process.poll() is None, self.said()
        try:
            return socket.create_connection(("127.0.0.1", self.port))
        except ConnectionRefusedError:
            return None

    def request(self, path, method="GET", certificate=None, headers=None, body=None):
        """Sends a request; returns the status and the body as text."""
        connection = http.client.HTTPConnection("127.0.0.1")
        connection.sock = self.connect(certificate)
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def open(self, path, certificate=None, headers=None):
        """Sends a request; returns a response whose body is read as it arrives."""
        connection = http.client.HTTPConnection("127.0.0.1")
        connection.sock = self.connect(certificate)
        connection.sock.settimeout(world.DEADLINE)
        connection.request("GET", path, headers=headers or {})
        return connection.getresponse()

    def connect_slowly(self, certificate):
        """A connection whose socket buffers are small, like those of a slow network."""
        plain = socket.socket()
        plain.settimeout(world.DEADLINE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1448)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        plain.connect(("127.0.0.1", self.port))
        return self.client_context(certificate).wrap_socket(plain)

    def upgrade(self, path, headers, method="GET", certificate=None, early=b"", stream=None):
        """Requests an upgrade; returns the socket after status 101 and the headers of the reply, or else the status and
        the body. 'early' is data that is sent together with the request."""
        stream = stream or self.connect(certificate)
        lines = [f"{method} {path} HTTP/1.1", "Host: node", "Connection: Upgrade", *headers]
        stream.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + early)
        head = b""
        while b"\r\n\r\n" not in head:
            piece = stream.recv(1)
            assert piece, head
            head += piece
        status = int(head.split()[1])
        if status == 101:
            return stream, head.decode()
        length = int(re.search(rb"Content-Length: (\d+)", head)[1])
        body = b""
        while len(body) < length:
            body += stream.recv(length - len(body))
        return status, body.decode()


class ActivatedApi(NodeApi):
    """The program, started by the agent."""

    def __init__(self, node, port):  # pylint: disable=super-init-not-called
        self.node, self.port = node, port

    def said(self):
        return self.node.said()

    def pids(self):
        return [pid for pid in world.pids() if world.cmdline(pid)[1:] == ["--activated", "--socket", self.node.socket]]


class ActivatingNode:
    """A mixin for a node whose agent starts the program, in a mount namespace in which the program has a user. 'port'
    is the listening port."""

    def make_mounts(self):
        self.mounts = subprocess.Popen(["unshare", "--mount", "--propagation", "slave", "sleep", "infinity"])
        wait(lambda: os.readlink(f"/proc/{self.mounts.pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt"), "it has its own mount namespace")

    def with_mounts(self, *words):
        return ["nsenter", f"--mount=/proc/{self.mounts.pid}/ns/mnt", *words]

    def add_user(self):
        self.write_users(f"mainstay-api:x:{USER_ID}:{USER_ID}::/nonexistent:/usr/sbin/nologin\n")

    def write_users(self, more=""):
        """Writes the users of this machine, without that of the program, and 'more'; a later call writes the same
        file."""
        path = os.path.join(self.directory, "passwd")
        is_mounted = os.path.exists(path)
        lines = [line for line in world.read("/etc/passwd").splitlines() if not line.startswith("mainstay-api:")]
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, more]))
        if not is_mounted:
            subprocess.run(self.with_mounts("mount", "--bind", path, "/etc/passwd"), check=True)
        self.api = ActivatedApi(self, self.port)

    def command(self):
        return self.with_mounts(*super().command())

    def environment(self):
        """The program opens no files, and inherits this environment."""
        found = super().environment()
        return {name: re.sub("log_path=[^:]*:", "", value) if name.endswith("SAN_OPTIONS") else value
                for name, value in found.items()}

    def is_ours(self, pid):
        return super().is_ours(pid) and "nsenter" not in (world.cmdline(pid) or [""])[0]

    def is_left(self, pid):
        return super().is_left(pid) and pid not in self.api.pids()

    def end_agent(self):
        problems = super().end_agent()
        wait(lambda: not self.api.pids(), "mainstay-api has ended with the agent")
        return problems

    def finish(self):
        try:
            super().finish()
        finally:
            self.mounts.kill()
            self.mounts.wait()


def receive(stream, count):
    data = b""
    while len(data) < count:
        piece = stream.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


# SPDY

def dictionary():
    """The compression dictionary of SPDY/3, taken from the agent's source."""
    source = world.read(os.path.join(harness.TOP, "agent/node-api/wire/spdy-headers.c"))
    words = re.findall(r'"([^"]*)"', source.split("dictionary_words[] = {")[1].split("};")[0])
    text = "".join(re.findall(r'"([^"]*)"', source.split("dictionary_text[] =")[1].split(";\n")[0]))
    found = b"".join(struct.pack(">I", len(word)) + word.encode() for word in words) + text.encode()
    assert zlib.adler32(found) == 0xe3c6a7c2
    return found


class SpdyClient:
    """Like client-go: opens streams, and collects the data that arrives on each."""

    def __init__(self, stream):
        self.stream = stream
        self.deflate = zlib.compressobj(9, zdict=dictionary())
        self.next_id = 1
        self.replied, self.ended, self.reset, self.pings = set(), set(), set(), []
        self.data = {}
        self.is_over = False

    def control(self, kind, payload, flags=0):
        self.stream.sendall(struct.pack(">HHI", 0x8003, kind, flags << 24 | len(payload)) + payload)

    def open(self, **headers):
        stream, self.next_id = self.next_id, self.next_id + 2
        block = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for text in (name, value):
                block += struct.pack(">I", len(text)) + text.encode()
        block = self.deflate.compress(block) + self.deflate.flush(zlib.Z_SYNC_FLUSH)
        self.control(SYN_STREAM, struct.pack(">IIBB", stream, 0, 0, 0) + block)
        self.data[stream] = b""
        return stream

    def send(self, stream, data, last=False):
        self.stream.sendall(struct.pack(">II", stream, (FIN if last else 0) << 24 | len(data)) + data)

    def step(self):
        """Takes one frame."""
        try:
            first, second = struct.unpack(">II", receive(self.stream, 8))
            payload = receive(self.stream, second & 0xffffff)
        except (EOFError, ConnectionError, ssl.SSLError):
            self.is_over = True
            return
        if not first & 0x80000000:
            assert first in self.replied, "data before the reply is dropped by clients"
            self.data[first] += payload
            if second >> 24 & FIN:
                self.ended.add(first)
            return
        kind, number = first & 0xffff, struct.unpack(">I", payload[:4])[0]
        if kind == SYN_REPLY:
            self.replied.add(number)
        elif kind == RST_STREAM:
            self.reset.add(number)
        elif kind == PING_FRAME:
            self.pings.append(number)
        elif kind == GOAWAY:
            self.is_over = True

    def until(self, predicate, deadline=world.DEADLINE):
        end = time.monotonic() + deadline
        while not predicate() and not self.is_over:
            assert time.monotonic() < end
            self.step()
        assert predicate(), (self.data, self.ended, self.reset)


class SpdySession:
    """A session of exec over SPDY, with version 4 of the protocol."""

    def __init__(self, stream, streams):
        self.client = SpdyClient(stream)
        self.ids = {name: self.client.open(streamtype=name) for name in ["error", *streams]}

    def text(self, name):
        return self.client.data[self.ids[name]].decode()

    def result(self):
        self.client.until(lambda: self.ids["error"] in self.client.ended)
        return json.loads(self.text("error"))


def spdy_headers(*versions):
    return ["Upgrade: SPDY/3.1", *[f"X-Stream-Protocol-Version: {version}" for version in versions]]


# WebSocket

def websocket_headers(*protocols):
    lines = ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    return lines + ([f"Sec-WebSocket-Protocol: {', '.join(protocols)}"] if protocols else [])


class WebSocketClient:
    def __init__(self, stream):
        self.stream = stream
        self.messages = []
        self.pongs = []
        self.close_code = None

    def send(self, opcode, data, fin=True):
        length = len(data)
        head = bytes([(0x80 if fin else 0) | opcode])
        head += bytes([0x80 | length]) if length < 126 else b"\xfe" + struct.pack(">H", length) \
            if length < 65536 else b"\xff" + struct.pack(">Q", length)
        self.stream.sendall(head + b"\0\0\0\0" + data)

    def step(self):
        head, length = receive(self.stream, 2)
        if length == 126:
            length = struct.unpack(">H", receive(self.stream, 2))[0]
        elif length == 127:
            length = struct.unpack(">Q", receive(self.stream, 8))[0]
        data = receive(self.stream, length)
        if head & 15 == CLOSE:
            self.close_code = struct.unpack(">H", data[:2])[0]
        elif head & 15 == PONG:
            self.pongs.append(data)
        else:
            self.messages.append(data)

    def until_closed(self):
        while self.close_code is None:
            self.step()

    def channel(self, number):
        return b"".join(message[1:] for message in self.messages if message[0] == number)

    def channel_base64(self, number):
        return b"".join(base64.b64decode(message[1:]) for message in self.messages if message[:1] == b"%d" % number)


class TunnelStream:
    """The messages of a WebSocket as a stream of bytes."""

    def __init__(self, stream):
        self.client = WebSocketClient(stream)
        self.taken = b""

    def sendall(self, data):
        self.client.send(BINARY, data)

    def recv(self, count):
        while not self.taken:
            if self.client.messages:
                self.taken = self.client.messages.pop(0)
            elif self.client.close_code is not None:
                return b""
            else:
                self.client.step()
        data, self.taken = self.taken[:count], self.taken[count:]
        return data
