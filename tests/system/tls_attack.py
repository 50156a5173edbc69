# SPDX-License-Identifier: Apache-2.0
"""A server whose part of a TLS handshake is made by hand, with keys that a client needs minutes to use."""

import contextlib
import os
import socket
import struct
import threading

RSA, RSA_SHA256, COMMON_NAME = "1.2.840.113549.1.1.1", "1.2.840.113549.1.1.11", "2.5.4.3"
ECDHE_RSA, DHE_RSA, PLAIN_RSA = 0xc02f, 0x9e, 0x9c  # each WITH_AES_128_GCM_SHA256
HANDSHAKE, TLS12 = 22, 0x0303
RECORD_MAX = 1 << 14


# DER

def der(tag, *parts):
    body = b"".join(parts)
    length = bytes([len(body)]) if len(body) < 128 else b"\x83" + len(body).to_bytes(3, "big")
    return bytes([tag]) + length + body


def sequence(*parts):
    return der(0x30, *parts)


def integer(data):
    return der(2, (b"\0" if data[0] & 0x80 else b"") + data)


def oid(dotted):
    first, second, *others = map(int, dotted.split("."))
    out = [40 * first + second]
    for number in others:
        part = [number & 0x7f]
        while number := number >> 7:
            part.append(0x80 | number & 0x7f)
        out += reversed(part)
    return der(6, bytes(out))


def odd_number(size):
    """An odd number with its highest bit set, so that it has exactly this length."""
    data = bytearray(os.urandom(size))
    data[0] |= 0x80
    data[-1] |= 1
    return bytes(data)


def certificate(modulus_size, exponent_size):
    null = der(5)
    name = sequence(der(0x31, sequence(oid(COMMON_NAME), der(12, b"server"))))
    validity = sequence(der(23, b"200101000000Z"), der(23, b"490101000000Z"))
    key = sequence(integer(odd_number(modulus_size)), integer(odd_number(exponent_size)))
    signed_by = sequence(oid(RSA_SHA256), null)
    body = sequence(der(0xa0, integer(b"\2")), integer(b"\1"), signed_by, name, validity, name,
                    sequence(sequence(oid(RSA), null), der(3, b"\0" + key)))
    return sequence(body, signed_by, der(3, b"\0" + bytes(256)))


# The handshake

def prefixed(size, data):
    return len(data).to_bytes(size, "big") + data


def message(kind, body):
    return bytes([kind]) + prefixed(3, body)


def records(data):
    parts = [data[at:at + RECORD_MAX] for at in range(0, len(data), RECORD_MAX)]
    return b"".join(struct.pack(">BHH", HANDSHAKE, TLS12, len(part)) + part for part in parts)


def signature(size):
    return struct.pack(">H", 0x0401) + prefixed(2, b"\1" * size)  # rsa_pkcs1_sha256


def flight(suite, modulus_size=256, exponent_size=3, prime_size=256, chain_length=1):
    """A server's response to the client's first message. The signature is invented, which can be detected only by using
    the key."""
    extensions = prefixed(2, b"\xff\x01\0\1\0")  # no renegotiation
    hello = struct.pack(">H", TLS12) + os.urandom(32) + b"\0" + struct.pack(">HB", suite, 0) + extensions
    chain = b"".join(prefixed(3, certificate(modulus_size, exponent_size)) for _ in range(chain_length))
    said = message(2, hello) + message(11, prefixed(3, chain))
    if suite == ECDHE_RSA:
        said += message(12, b"\3\0\x1d" + prefixed(1, os.urandom(32)) + signature(modulus_size))  # X25519
    elif suite == DHE_RSA:
        prime = odd_number(prime_size)
        said += message(12, prefixed(2, prime) + prefixed(2, b"\2") + prefixed(2, prime[:-1] + b"\0") + signature(modulus_size))
    return records(said + message(14, b""))


@contextlib.contextmanager
def serve(said):
    """Starts the server; returns the port on loopback on which each client receives 'said'."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept = []

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    kept.append(connection)
                    connection.recv(1 << 16)
                    connection.sendall(said)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in kept:
                connection.close()
