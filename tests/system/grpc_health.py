# SPDX-License-Identifier: Apache-2.0
"""A server that implements as much of HTTP/2 as grpc.health.v1.Health/Check needs: the test determines its
responses."""

import contextlib
import socket
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, ACK, END_HEADERS = 1, 1, 4
SERVING, NOT_SERVING = 1, 2


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(name, value):
    """Encodes a header as a literal name and value."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


class HealthServer:
    """Serves on a port of this machine; remembers the services in the requests."""

    def __init__(self):
        self.status = NOT_SERVING
        self.services = set()
        self.listener = socket.create_server(("", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, connection.makefile("rb") as stream, contextlib.suppress(OSError):
            if stream.read(len(PREFACE)) != PREFACE:
                return
            connection.sendall(frame(SETTINGS, 0, 0, b""))
            while head := stream.read(9):
                payload = stream.read(int.from_bytes(head[:3], "big"))
                if head[3] == SETTINGS and not head[4] & ACK:
                    connection.sendall(frame(SETTINGS, ACK, 0, b""))
                elif head[3] == DATA and len(payload) >= 5:
                    self.services.add(payload[7:].decode())
                    connection.sendall(self.answer())

    def answer(self):
        return (frame(HEADERS, END_HEADERS, 1, b"\x88" + field(b"content-type", b"application/grpc")) +
                frame(DATA, 0, 1, b"\x00\x00\x00\x00\x02\x08" + bytes([self.status])) +
                frame(HEADERS, END_HEADERS | END_STREAM, 1, field(b"grpc-status", b"0")))

    def stop(self):
        self.listener.close()
