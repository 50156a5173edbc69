# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes API server for tests: TLS on loopback, client certificates and tokens, the resources that a node needs,
NodeRestriction, and faults on demand. test_apiserver.py compares it with the responses of a real one."""

import base64
import copy
import gzip
import http.server
import json
import os
import random
import socket
import ssl
import threading
import time
import uuid

import api_access as access
import world
from api_certs import Authority, kubeconfig
from api_faults import Fault, big_list
from api_store import KINDS
from api_verbs import ADMIN, MERGE, STRATEGIC, Api, Request

VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.2", "platform": "linux/amd64"}
BODY_MAX = 3 * 1024 * 1024
GZIP_FROM = 128 * 1024
NO_CHECK_TIME = 0x200000  # flag of OpenSSL: an expired certificate is refused with a 401, not in the handshake
BOOKMARK_SECONDS = 60


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 300
    fault = None

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except (OSError, ValueError):
            self.close_connection = True

    def do(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(min(length, BODY_MAX))
        self.server.api_server.serve(self, body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do

    # Answers

    def head(self, code, headers, length=None):
        self.send_response(code)
        self.send_header("Audit-Id", str(uuid.uuid4()))
        self.send_header("Cache-Control", "no-cache, private")
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        if length is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def answer(self, code, obj, headers=None, fault=None):
        data = obj if isinstance(obj, bytes) else (json.dumps(obj) + "\n").encode()
        if fault and fault.change:
            data = fault.change(data)
        headers = dict(headers or {})
        if len(data) > GZIP_FROM and "gzip" in self.headers.get("Accept-Encoding", ""):
            data = gzip.compress(data, 1)
            headers["Content-Encoding"] = "gzip"
        self.head(code, headers, len(data))
        self.send_slowly(data, fault)

    def send_slowly(self, data, fault):
        """Sends the answer at the rate and in the pieces that the fault specifies."""
        if fault and fault.cut is not None:
            self.wfile.write(data[:fault.cut])
            self.end_abruptly()
        piece = fault.piece or (1 if fault.rate else None) if fault else None
        for start in range(0, len(data), piece or max(len(data), 1)):
            self.wfile.write(data[start:start + piece] if piece else data)
            if fault and fault.rate:
                self.server.api_server.pause((piece or 1) / fault.rate)

    def chunk(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end_abruptly(self):
        """Closes the connection without the final messages that TLS and HTTP require."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)
        raise ConnectionAbortedError


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, api_server, port):
        self.api_server, self.connections, self.lock = api_server, set(), threading.Lock()
        self.is_closed = False
        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, *_):
        pass

    def finish_request(self, request, client_address):
        """Performs the handshake in the thread of the connection, so that a slow one delays no other connection."""
        with self.lock:
            self.connections.add(request)
        try:
            request.settimeout(world.DEADLINE)
            with self.api_server.context.wrap_socket(request, server_side=True) as wrapped:
                with self.lock:
                    if self.is_closed:  # it was not registered yet when the server closed its connections
                        return
                    self.connections.add(wrapped)
                try:
                    wrapped.has_spoken = False
                    super().finish_request(wrapped, client_address)
                finally:
                    self.api_server.n_speechless += not wrapped.has_spoken
                    with self.lock:
                        self.connections.discard(wrapped)
        except (OSError, ValueError):
            self.api_server.n_speechless += 1
        finally:
            with self.lock:
                self.connections.discard(request)

    def close_connections(self):
        with self.lock:
            connections = list(self.connections)
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class ApiServer:
    """'requests' are all requests, in order; 'misbehave()' adds a Fault; the functions create, get, patch, delete do
    the same as kubectl. The certificates are written to 'directory', which already has those that are named in
    'issued'."""

    def __init__(self, directory, issued=()):
        self.directory = directory
        self.authority = Authority(directory, issued=issued)
        self.api = Api(self.authority)
        self.store = self.api.store
        self.requests, self.faults, self.tokens = [], [], {"admin": ADMIN}
        self.api.tokens = self.tokens
        self.clients = [self.authority.cert]  # the authorities of client certificates
        self.bookmark_seconds = BOOKMARK_SECONDS
        self.watches = 0  # currently open
        self.n_speechless = 0  # connections that ended before a request
        self.halt = threading.Event()
        self.use_certificate(*self.authority.server())
        self.listener, self.port = None, world.free_port()
        self.start()

    # Start and stop

    def start(self):
        self.halt = threading.Event()
        self.listener = Listener(self, self.port)
        threading.Thread(target=self.listener.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        """Stops the server as in an orderly shutdown of its machine; start() restarts it with everything that it had
        stored."""
        if self.listener is None:
            return
        self.halt.set()
        with self.store.lock:
            self.store.changed.notify_all()
        self.listener.shutdown()
        self.listener.is_closed = True
        self.listener.close_connections()
        self.listener.server_close()
        self.listener = None

    def recreate(self, fill=lambda: None):
        """A new cluster at the same address and with the same certificates, which contains only what 'fill' adds."""
        self.stop()
        self.api = Api(self.authority)
        self.store, self.api.tokens = self.api.store, self.tokens
        fill()
        self.start()

    def drop_connections(self):
        self.listener.close_connections()

    def expire_watches(self):
        """Ends all watches and forgets their state; no object changes in between."""
        with self.store.lock:
            self.store.compact()
            self.drop_connections()

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    def use_certificate(self, cert, key):
        """Uses the certificate for new connections."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        for path in self.clients:
            context.load_verify_locations(path)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= NO_CHECK_TIME
        self.context = context

    def pause(self, seconds):
        self.halt.wait(seconds)

    def kubeconfig(self, path, node=None, token=None, port=None, host="127.0.0.1", inline=False, cert=None, key=None, **user):
        """Writes a kubeconfig for a node, whose certificate it creates, or for a token."""
        if node and not cert:
            cert, key = self.authority.node(node)
        url = f"https://{host}:{port or self.port}"
        return kubeconfig(path, url, self.authority.cert, cert, key, token, inline, **user)

    def add_token(self, token, name, *groups):
        self.tokens[token] = access.User(name, [*groups, "system:authenticated"])

    def node_token(self, token, node):
        self.add_token(token, f"system:node:{node}", "system:nodes")

    # Serving

    def authenticate(self, handler):
        header = handler.headers.get("Authorization", "")
        if header.startswith("Bearer "):
            user = self.tokens.get(header[len("Bearer "):].strip())
            if user is None:
                raise access.unauthorized()
            return user
        cert = handler.connection.getpeercert()
        if not cert:
            return access.ANONYMOUS
        if not ssl.cert_time_to_seconds(cert["notBefore"]) <= time.time() <= ssl.cert_time_to_seconds(cert["notAfter"]):
            raise access.unauthorized()
        names = [pair for row in cert["subject"] for pair in row]
        groups = [value for key, value in names if key == "organizationName"]
        return access.User(dict(names)["commonName"], [*groups, "system:authenticated"])

    def understand(self, handler, request, data):
        request.user = self.authenticate(handler)
        request.content_type = handler.headers.get("Content-Type", "application/json").partition(";")[0]
        if data and not request.content_type.endswith("json"):
            raise access.Refusal(415, "UnsupportedMediaType", "the body of the request was in an unknown format - "
                                 "accepted media types include: application/json", {})
        request.body = json.loads(data) if data else None

    def serve(self, handler, data):
        request = Request(handler.command, handler.path, access.ANONYMOUS)
        request.fault = None
        request.headers, request.raw, request.peer = dict(handler.headers), data, handler.client_address
        handler.connection.has_spoken = True
        try:
            try:
                self.understand(handler, request, data)
            finally:  # with its user and its body
                self.requests.append(request)
            self.answer(handler, request)
        except access.Refusal as refusal:
            self.finish(handler, request, refusal.code, refusal.status, refusal.headers)
        except ValueError as error:
            self.finish(handler, request, 400, access.Refusal(400, "BadRequest", str(error)).status)
        except (AttributeError, KeyError, TypeError) as error:  # the test has stored invalid objects
            self.finish(handler, request, 500, access.Refusal(500, "InternalError", repr(error)).status)

    @staticmethod
    def finish(handler, request, code, obj, headers=None, fault=None):
        request.code = code
        handler.answer(code, obj, headers, fault)

    def fault_of(self, request):
        for fault in list(self.faults):
            if fault.meets(request):
                fault.struck += 1
                return fault
        return None

    def answer(self, handler, request):
        fault = request.fault = self.fault_of(request)
        if fault and fault.latency:
            self.pause(fault.latency)
        if fault and not fault.after:
            if fault.reset:
                handler.end_abruptly()
            if fault.status:
                raise fault.refusal(request)
            if fault.body is not None:
                return self.finish(handler, request, 200, fault.body, None, fault)
            if fault.size:
                return self.stream(handler, request, big_list(request.kind, fault.size))
        document = self.fixed(request)
        if document is not None:
            return self.finish(handler, request, 200, document, {"Content-Type": "text/plain; charset=utf-8"}
                               if isinstance(document, bytes) else None)
        if request.verb == "watch" and request.kind:
            self.api.authorize(request)
            return self.watch(handler, request, fault)
        return self.carry_out(handler, request, fault)

    def carry_out(self, handler, request, fault):
        if fault and fault.expire and request.verb == "list":
            raise access.expired("The provided continue parameter is too old to display a consistent list result.")
        code, obj = self.api.handle(request)
        if fault and fault.delay:
            self.pause(fault.delay)
        if fault and fault.after:
            request.code = fault.status
            if fault.reset:
                handler.end_abruptly()
            raise fault.refusal(request)
        if fault and fault.empty and "items" in obj:
            obj = {**obj, "items": []}
        return self.finish(handler, request, code, obj, None, fault)

    def fixed(self, request):
        """Health and discovery."""
        if request.path in ("/healthz", "/readyz", "/livez"):
            return b"ok"
        if request.path == "/version":
            return VERSION
        if request.path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"],
                    "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": f"127.0.0.1:{self.port}"}]}
        groups = sorted({(kind.group, kind.version) for kind in KINDS.values() if kind.group})
        if request.path == "/apis":
            rows = [{"groupVersion": f"{group}/{version}", "version": version} for group, version in groups]
            return {"kind": "APIGroupList", "apiVersion": "v1",
                    "groups": [{"name": row["groupVersion"].partition("/")[0], "versions": [row],
                                "preferredVersion": row} for row in rows]}
        for kind in KINDS.values():
            if request.path in (f"/api/{kind.version}" if not kind.group else f"/apis/{kind.api_version}",):
                same = [one for one in KINDS.values() if one.group == kind.group]
                return {"kind": "APIResourceList", "groupVersion": kind.api_version, "resources": [
                    {"name": one.plural, "singularName": "", "namespaced": one.namespaced, "kind": one.kind, "verbs": [
                        "create", "delete", "get", "list", "patch", "update", "watch"]} for one in same]}
        return None

    @staticmethod
    def stream(handler, request, pieces):
        request.code = 200
        handler.head(200, {})
        for piece in pieces:
            handler.chunk(piece)
        handler.chunk(b"")

    # Watching

    def watch(self, handler, request, fault):
        seconds = float(request.query.get("timeoutSeconds") or random.randint(1800, 3600))
        if fault and fault.expire == "http":
            raise access.expired(f"too old resource version: {request.query.get('resourceVersion')} "
                                 f"({self.store.oldest})")
        request.code = 200
        handler.head(200, {})
        watch = Watch(self, handler, request, fault, seconds)
        self.watches += 1
        try:
            if not watch.refused():
                watch.run()
            handler.chunk(b"")
        finally:
            self.watches -= 1

    # Requests and actions of tests

    def misbehave(self, **how):
        """Adds a Fault; the first one that matches a request takes effect."""
        fault = Fault(**how)
        self.faults.append(fault)
        return fault

    def behave(self):
        self.faults.clear()

    def asked(self, verb=None, plural=None, name=None, subresource=None, user=None, namespace=None):
        """The requests of that kind."""
        return [one for one in list(self.requests) if (verb is None or one.verb == verb) and
                (plural is None or (one.kind is not None and one.kind.plural == plural)) and
                (name is None or one.name == name) and (subresource is None or one.subresource == subresource) and
                (namespace is None or one.namespace == namespace) and (user is None or one.user.name == user)]

    def path(self, plural, namespace=None, name=None, subresource=None):
        kind = KINDS[plural]
        parts = ["apis" if kind.group else "api", kind.api_version]
        parts += (["namespaces", namespace] if namespace else []) + [plural]
        return "/" + "/".join(parts + [part for part in (name, subresource) if part])

    def do(self, method, plural, namespace=None, name=None, subresource=None, body=None, content_type=None):
        path = self.path(plural, namespace, name, subresource)
        request = Request(method, path, ADMIN, body, content_type or "application/json")
        return copy.deepcopy(self.api.handle(request)[1])

    def get(self, plural, namespace, name):
        """The object, or None."""
        return copy.deepcopy(self.store.get(plural, namespace, name))

    def all(self, plural, namespace=None):
        return copy.deepcopy(self.store.all(plural, namespace))

    def create(self, plural, obj, namespace=None):
        kind = KINDS[plural]
        namespace = (namespace or obj["metadata"].get("namespace") or "default") if kind.namespaced else None
        return self.do("POST", plural, namespace, body=obj)

    def pod(self, name, node, image, namespace="default", labels=None, **spec):
        """A pod that is bound to a node."""
        containers = spec.pop("containers", None) or [{"name": "c", "image": image, **spec.pop("container", {})}]
        return self.create("pods", {"metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
                                    "spec": {"nodeName": node, "containers": containers, **spec}})

    def patch(self, plural, namespace, name, patch, subresource=None, strategy=True):
        return self.do("PATCH", plural, namespace, name, subresource, patch, STRATEGIC if strategy else MERGE)

    def replace(self, plural, obj, subresource=None):
        return self.do("PUT", plural, obj["metadata"].get("namespace"), obj["metadata"]["name"], subresource, obj)

    def delete(self, plural, namespace, name, grace=None, **options):
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        return self.do("DELETE", plural, namespace, name, body=options)

    def approve(self, name, seconds=3600, approve=True, start=-60):
        """Signs a CertificateSigningRequest, or denies it."""
        request = self.get("certificatesigningrequests", None, name)
        status = {"conditions": [{"type": "Approved" if approve else "Denied", "status": "True", "reason": "Test",
                                  "message": "by the test"}]}
        if approve:
            pem = base64.b64decode(request["spec"]["request"]).decode()
            kind = "serving" if request["spec"]["signerName"] == "kubernetes.io/kubelet-serving" else "client"
            status["certificate"] = base64.b64encode(self.authority.sign(pem, seconds, kind, start).encode()).decode()
        return self.replace("certificatesigningrequests", {**request, "status": status}, "status")


class Watch:
    """One watch: its events and its end."""

    def __init__(self, server, handler, request, fault, seconds):
        self.server, self.store, self.handler = server, server.store, handler
        self.request, self.fault, self.plural = request, fault, request.kind.plural
        self.bookmarks = request.query.get("allowWatchBookmarks") in ("true", "1")
        self.version = int(request.query.get("resourceVersion") or 0)
        limit = fault.watch_seconds if fault and fault.watch_seconds is not None else seconds
        self.is_cut_short = limit < seconds
        self.end = time.monotonic() + limit
        self.halt = server.halt
        self.next_bookmark = time.monotonic() + server.bookmark_seconds

    def send(self, what, obj):
        data = (json.dumps({"type": what, "object": obj}, separators=(",", ":")) + "\n").encode()
        if self.fault and self.fault.change:
            data = self.fault.change(data)
        piece = (self.fault and self.fault.piece) or len(data)
        for start in range(0, len(data), piece):
            self.handler.chunk(data[start:start + piece])
            if self.fault and self.fault.rate:
                self.server.pause(piece / self.fault.rate)

    def refused(self):
        """Refuses with an event, like a server that has already sent its headers."""
        refusal = None
        if self.request.query.get("sendInitialEvents") == "true":
            refusal = access.Refusal(500, "InternalError", "a watch stream was requested by the client but the required "
                                     "storage feature RequestWatchProgress is disabled")
        elif (self.fault and self.fault.expire) or 0 < self.version < self.store.oldest:
            refusal = access.expired(f"too old resource version: {self.version} ({self.store.oldest})")
        if refusal:
            self.send("ERROR", refusal.status)
        return refusal is not None

    def run(self):
        if not self.version:
            with self.store.lock:
                self.version = self.store.version
                found = self.store.all(self.plural, self.request.namespace)
            for obj in found:
                if self.request.selects(obj):
                    self.send("ADDED", obj)
        while not self.halt.is_set() and time.monotonic() < self.end:
            for change in self.wait():
                self.report(change)
            if self.bookmarks and time.monotonic() >= self.next_bookmark:
                self.bookmark()
        if self.bookmarks and not self.halt.is_set() and not self.is_cut_short:
            self.bookmark()

    def wait(self):
        with self.store.lock:
            if self.store.oldest > self.version and not self.store.changes_after(self.plural, self.version):
                self.version = self.store.oldest  # compacted in the meantime: an open watch continues
            changes = self.store.changes_after(self.plural, self.version)
            if not changes:
                due = min(self.end, self.next_bookmark if self.bookmarks else self.end) - time.monotonic()
                self.store.changed.wait(max(due, 0))
                changes = self.store.changes_after(self.plural, self.version)
            if changes:
                self.version = changes[-1].version
            return changes

    def report(self, change):
        """Sends an event. In a watch with a selector an object that starts to match is ADDED, and one that stops
        matching is DELETED."""
        before, now = self.request.selects(change.before), self.request.selects(change.obj)
        if change.what == "DELETED":
            if before:
                self.send("DELETED", change.obj)
        elif now:
            self.send("MODIFIED" if before else "ADDED", change.obj)
        elif before:
            metadata = {**change.before["metadata"], "resourceVersion": str(change.version)}
            self.send("DELETED", {**change.before, "metadata": metadata})

    def bookmark(self):
        with self.store.lock:
            version = max(self.version, self.store.version)
            if self.store.changes_after(self.plural, self.version):
                version = self.version
        kind = self.request.kind
        shown = {"Pod": {"spec": {"containers": None}, "status": {}}}.get(kind.kind, {})
        self.send("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version,
                               "metadata": {"resourceVersion": str(version)}, **shown})
        self.next_bookmark = time.monotonic() + self.server.bookmark_seconds


def make(directory, issued=()):
    os.makedirs(directory, exist_ok=True)
    return ApiServer(directory, issued)
