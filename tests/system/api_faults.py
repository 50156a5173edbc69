# SPDX-License-Identifier: Apache-2.0
"""The faults of the test API server, and a relay that silently loses a connection."""

import json
import select
import socket
import threading
import time

from api_access import Refusal, unrelated
from api_store import KINDS

REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
           422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 502: "BadGateway", 503: "ServiceUnavailable",
           504: "Timeout"}


class Fault:
    """Affects each request with the attributes in 'match' (verb, plural, subresource, namespace, name, who_is) for
    which the function 'when', if there is one, returns True; the fault is over after 'times' of them. Effects:

    status, retry_after   is the answer; the request is not carried out
    unrelated             the Node authorizer does not know yet that the object belongs to this node
    after                 'status' or 'reset' only after the request was carried out: the answer is lost
    latency               seconds before anything happens
    delay                 seconds between carrying out the request and answering it
    body                  bytes that are the answer, with status 200
    change                a function that replaces the bytes of the answer
    cut                   ends the connection after this number of bytes of the answer
    rate, piece           bytes per second, and bytes per write
    reset                 ends the connection without an answer
    empty                 a list contains no items
    size                  a list of at least this number of bytes, generated while it is sent
    watch_seconds         ends a watch after this time
    expire                "event" or "http": the watch (or list) has expired
    """

    def __init__(self, times=None, when=None, status=None, unrelated=False, retry_after=None, after=False, latency=0, delay=0, body=None,
                 change=None, cut=None, rate=None, piece=None, reset=False, empty=False, size=None, watch_seconds=None, expire=None,
                 **match):
        self.times, self.when, self.match, self.struck = times, when, match, 0
        self.status, self.retry_after, self.after = 403 if unrelated else status, retry_after, after
        self.unrelated = unrelated
        self.latency, self.delay = latency, delay
        self.body, self.change, self.cut, self.rate, self.piece = body, change, cut, rate, piece
        self.reset, self.empty, self.size = reset, empty, size
        self.watch_seconds, self.expire = watch_seconds, expire

    def meets(self, request):
        if self.times is not None and self.struck >= self.times:
            return False
        if any(getattr(request, key) != value for key, value in self.match.items() if key not in ("plural", "who_is")):
            return False
        if self.match.get("who_is") not in (None, request.user.name):
            return False
        plural = self.match.get("plural")
        if plural and (request.kind is None or request.kind.plural != plural):
            return False
        return self.when is None or self.when(request)

    def refusal(self, request):
        if self.unrelated:
            return unrelated(request.user, request.verb, request.kind, request.namespace, request.name, request.subresource)
        reason = REASONS.get(self.status, "Unknown")
        headers = {"Retry-After": str(self.retry_after)} if self.retry_after is not None else {}
        more = {"retryAfterSeconds": self.retry_after} if isinstance(self.retry_after, int) else {}
        kind = request.kind or KINDS["pods"]
        about = {**({"name": request.name} if request.name else {}), "kind": kind.plural, **more}
        return Refusal(self.status, reason, f"the test wants {self.status} {reason}", about, **headers)


def big_list(kind, size):
    """The pieces of a list of that size: pods of another node, as JSON."""
    yield json.dumps({"kind": kind.kind + "List", "apiVersion": kind.api_version,
                      "metadata": {"resourceVersion": "1"}, "items": []})[:-2].encode()
    filler, sent, count = "x" * 60000, 0, 0
    while sent < size:
        item = {"metadata": {"name": f"filler-{count}", "namespace": "default", "uid": f"filler-{count}",
                             "annotations": {"filler": filler}},
                "spec": {"nodeName": "another", "containers": []}, "status": {}}
        piece = (b"," if count else b"") + json.dumps(item).encode()
        sent, count = sent + len(piece), count + 1
        yield piece
    yield b"]}"


class Relay:
    """Forwards between a client and a server on loopback: after freeze() no byte is forwarded, and no connection
    ends."""

    def __init__(self, port):
        self.target, self.frozen, self.refusing = port, threading.Event(), False
        self.stranded = set()
        self.listener = self.listen()
        self.port = self.listener.getsockname()[1]
        self.pairs, self.lock = [], threading.Lock()
        self.used = set()  # clients whose connections were forwarded
        self.n_accepted = 0
        self.stopping = False
        threading.Thread(target=self.accept, daemon=True).start()

    def listen(self):
        return socket.create_server(("127.0.0.1", 0), backlog=100)

    def accept(self):
        while not self.stopping:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.n_accepted += 1
            if self.refusing:
                client.close()
                continue
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        try:
            server = socket.create_connection(("127.0.0.1", self.target), 5)
        except OSError:
            client.close()
            return
        with self.lock:
            self.pairs.append((client, server))
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.copy(client, server)
        except (OSError, ValueError):
            pass
        for one in (client, server):
            one.close()
        with self.lock:
            self.pairs.remove((client, server))
            self.used.discard(client)

    def copy(self, client, server):
        while not self.stopping:
            if self.frozen.is_set() or client in self.stranded:
                time.sleep(0.02)
                continue
            ready, _, _ = select.select([client, server], [], [], 0.1)
            if self.frozen.is_set() or client in self.stranded:
                continue
            for source in ready:
                self.used.add(client)
                data = source.recv(65536)
                if not data:
                    return
                (server if source is client else client).sendall(data)

    def freeze(self):
        """Freezes the relay: from now on nothing arrives on either side."""
        self.frozen.set()

    def thaw(self):
        self.frozen.clear()

    def strand(self):
        """Existing connections forward no byte and stay open; new ones work."""
        with self.lock:
            self.stranded.update(client for client, _ in self.pairs)

    def cut(self, only_used=False):
        """Ends all connections, each with a reset. To a client, a connection that ends before its handshake means that
        the server is down: with 'only_used', connections that arrived while nothing was forwarded are spared."""
        with self.lock:
            pairs = [pair for pair in self.pairs if not only_used or pair[0] in self.used]
        for pair in pairs:
            for one in pair:
                try:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def stop(self):
        self.stopping = True
        self.listener.close()
        self.thaw()
        self.cut()
