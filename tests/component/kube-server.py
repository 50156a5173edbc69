#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An API server that misbehaves as the paths of requests specify, over TLS, by HTTP/2 or HTTP/1.1.

    kube-server.py DIRECTORY [--http1]

Puts certificates into the directory (ca.crt, other-ca.crt, server.crt, one.crt, one.key, two.crt, two.key), prints
its port, and serves until its standard input ends. For each number that it reads there it sends this number of bytes on
every stream of /sized. /log lists the requested paths, one a line."""

import asyncio
import base64
import json
import os
import ssl
import subprocess
import sys

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

LOG = []
COUNTS = {}
SIZED = []


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificates(directory):
    os.chdir(directory)
    for name in ("ca", "other-ca"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt")
    for name, subject in (("server", "/CN=kubernetes"), ("one", "/O=system:nodes/CN=system:node:one"),
                          ("two", "/O=system:nodes/CN=system:node:two")):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject,
                "-keyout", f"{name}.key", "-out", f"{name}.csr")
        with open(f"{name}.ext", "w", encoding="ascii") as extensions:
            extensions.write("subjectAltName=DNS:kubernetes,IP:127.0.0.1\n" if name == "server" else
                             "extendedKeyUsage=clientAuth\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "30", "-extfile", f"{name}.ext", "-out", f"{name}.crt")


class Request:
    """The requests and their responses, independent of the protocol."""

    def __init__(self, connection, method, path, headers, body):
        self.connection, self.method, self.path = connection, method, path
        self.headers, self.body = headers, body

    async def answer(self, status, body=b"", **headers):
        await self.start(status, **headers)
        await self.send(body if isinstance(body, bytes) else json.dumps(body).encode())
        await self.end()


class Http1Request(Request):
    def _write(self, data):
        self.connection.writer.write(data)

    async def start(self, status, **headers):
        lines = [f"HTTP/1.1 {status} X", "Transfer-Encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._write("\r\n".join(lines + ["", ""]).encode())
        await self.connection.writer.drain()

    async def send(self, data):
        if data:
            self._write(b"%x\r\n%s\r\n" % (len(data), data))
            await self.connection.writer.drain()

    async def end(self):
        self._write(b"0\r\n\r\n")
        await self.connection.writer.drain()

    async def abort(self):
        self.connection.writer.transport.abort()


class Http2Request(Request):
    def __init__(self, stream, *words):
        super().__init__(*words)
        self.stream = stream

    async def start(self, status, **headers):
        pairs = [(":status", str(status))] + [(name.replace("_", "-"), str(value)) for name, value in headers.items()]
        self.connection.h2.send_headers(self.stream, pairs)
        await self.connection.flush()

    async def send(self, data):
        while data:
            window = min(self.connection.h2.local_flow_control_window(self.stream),
                       self.connection.h2.max_outbound_frame_size, len(data))
            if window == 0:
                await self.connection.window()
                continue
            self.connection.h2.send_data(self.stream, data[:window])
            data = data[window:]
            await self.connection.flush()

    async def end(self):
        self.connection.h2.end_stream(self.stream)
        await self.connection.flush()

    async def abort(self):
        self.connection.h2.reset_stream(self.stream, h2.errors.ErrorCodes.INTERNAL_ERROR)
        await self.connection.flush()


class Connection:
    number = 0

    def __init__(self, reader, writer):
        Connection.number += 1
        self.number, self.reader, self.writer = Connection.number, reader, writer
        self.tls = writer.get_extra_info("ssl_object")
        certificate = self.tls.getpeercert() or {}
        self.peer = dict(pair[0] for pair in certificate.get("subject", ())).get("commonName", "")
        self.protocol = self.tls.selected_alpn_protocol() or "http/1.1"
        self.tasks, self.opened = set(), asyncio.Event()

    async def serve(self):
        try:
            await (self.serve_h2() if self.protocol == "h2" else self.serve_h1())
        except (ConnectionError, asyncio.IncompleteReadError, h2.exceptions.ProtocolError, ssl.SSLError):
            pass
        finally:
            for task in self.tasks:
                task.cancel()
            self.writer.close()

    async def serve_h1(self):
        while True:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = dict(line.lower().split(": ", 1)[:1] + line.split(": ", 1)[1:] for line in head[1:] if line)
            body = await self.reader.readexactly(int(headers.get("content-length", 0)))
            await act(Http1Request(self, method, path, headers, body))

    async def flush(self):
        self.writer.write(self.h2.data_to_send())
        await self.writer.drain()

    async def window(self):
        self.opened.clear()
        await self.opened.wait()

    async def serve_h2(self):
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values={
            h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 250})
        self.h2.initiate_connection()
        await self.flush()
        streams = {}
        while True:
            data = await self.reader.read(65536)
            if not data:
                return
            for event in self.h2.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    streams[event.stream_id] = (dict(event.headers), bytearray())
                elif isinstance(event, h2.events.DataReceived):
                    streams[event.stream_id][1].extend(event.data)
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    headers, body = streams.pop(event.stream_id)
                    self.open_stream(Http2Request(event.stream_id, self, headers[":method"], headers[":path"], headers,
                                            bytes(body)))
                elif isinstance(event, (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged)):
                    self.opened.set()
            await self.flush()

    def open_stream(self, request):
        async def run():
            try:
                await act(request)
            except (ConnectionError, h2.exceptions.ProtocolError, ssl.SSLError):
                pass
        task = asyncio.ensure_future(run())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


# ---- parameters in paths ----

async def echo(request, _):
    names = ("user-agent", "accept", "authorization", "content-type", "host", ":authority", "expect")
    await request.answer(200, {"method": request.method, "path": request.path, "body": request.body.decode(),
                               "protocol": request.connection.protocol, "peer": request.connection.peer,
                               "connection": request.connection.number,
                               **{name: request.headers[name] for name in names if name in request.headers}})


async def status(request, words):
    headers = {"retry_after": words[1]} if len(words) > 1 else {}
    await request.answer(int(words[0]), {"kind": "Status", "message": 'it is "so"', "code": int(words[0])}, **headers)


async def hold(request, _):
    """A watch that sends one event, and then nothing."""
    await request.start(200)
    await request.send(b'{"connection":%d}' % request.connection.number)
    await asyncio.sleep(3600)


async def sized(request, _):
    """A watch that sends the number of bytes that the test requests."""
    await request.start(200)
    SIZED.append(request)
    await asyncio.sleep(3600)


async def silent(request, _):
    await asyncio.sleep(3600)


async def big(request, words):
    await request.start(200)
    for _ in range(int(words[0])):
        await request.send(b"x" * 65536)
    await request.end()


async def cut(request, _):
    await request.start(200)
    await request.send(b'{"half":')
    await request.abort()


async def token(request, words):
    is_right = request.headers.get("authorization") == "Bearer " + words[0]
    await request.answer(200 if is_right else 401, {"message": "Unauthorized"})


async def moved(request, _):
    await request.answer(302, b"", location="/echo")


async def log(request, _):
    await request.answer(200, "\n".join(LOG).encode())


async def once(request, words):
    """Replies with 503 the first times, then with 200."""
    COUNTS[request.path] = COUNTS.get(request.path, 0) + 1
    await request.answer(503 if COUNTS[request.path] <= int(words[1]) else 200, {"message": "not yet"})


# ---- collections ----

def versioned(version, name="a", **more):
    return {"metadata": {"name": name, "resourceVersion": str(version)}, **more}


def page(version, items, more=None):
    return {"kind": "ThingList", "apiVersion": "v1",
            "metadata": {"resourceVersion": str(version), **({"continue": more} if more else {})}, "items": items}


def event(kind, item):
    return json.dumps({"type": kind, "object": item}, ensure_ascii=False).encode() + b"\n"


def failure(code, reason):
    return {"kind": "Status", "status": "Failure", "reason": reason, "message": f"it is {reason}", "code": code}


HOLD, ABORT, END = object(), object(), object()

# For each collection the answers to its lists and to its watches, one after another; the last one is repeated.
# A list is a status and a page, or raw bytes; a watch is its events, and how it ends.
COLLECTIONS = {
    "plain": ([(200, page(10, [versioned(3), versioned(4, "b")]))],
              [[event("ADDED", versioned(11, "c")), event("MODIFIED", versioned(12)), event("DELETED", versioned(13, "b")),
                event("BOOKMARK", versioned(14)), HOLD]]),
    "pages": ([(200, page(10, [versioned(3)], "next/1")), (200, page(10, [versioned(4, "b")], "next/2")),
               (200, page(10, [versioned(5, "c")]))], [[HOLD]]),
    "expired-page": ([(200, page(10, [versioned(3)], "next")), (410, failure(410, "Expired")),
                      (200, page(12, [versioned(3), versioned(12, "b")]))], [[HOLD]]),
    "expired-watch": ([(200, page(10, [versioned(3)])), (200, page(20, [versioned(18)]))],
                      [[event("ERROR", failure(410, "Expired")), END], [event("ADDED", versioned(21, "b")), HOLD]]),
    "gone-watch": ([(200, page(10, [versioned(3)])), (200, page(20, [versioned(18)]))],
                   [410, [event("ADDED", versioned(21, "b")), HOLD]]),
    "broken-error": ([(200, page(10, [versioned(3)])), (200, page(20, []))],
                     [[event("ERROR", failure(500, "InternalError")), END], [HOLD]]),
    "restored": ([(200, page(1000, [versioned(3)])), (200, page(30, [versioned(3), versioned(30, "b")]))],
                 [[event("ADDED", versioned(1001, "x")), event("BOOKMARK", versioned(29)), END], [HOLD]]),
    "closing": ([(200, page(10, []))],
                [[event("ADDED", versioned(11 + i, f"t{i}")), END] for i in range(3)] + [[HOLD]]),
    "closing-idle": ([(200, page(10, []))], [[END]]),
    "cut-watch": ([(200, page(10, []))], [[event("ADDED", versioned(11)), b'{"type":"ADDED","obj', ABORT],
                                          [event("ADDED", versioned(12, "b")), HOLD]]),
    "bad-events": ([(200, page(10, []))],
                   [[b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"11"},"spec":[1,,2]}}\n',
                     b'{"type":7}\n', b'{"object":{}}\n', event("WHATEVER", versioned(12)), b'{}\n',
                     b'{"type":"ADDED","object":"none"}\n', event("ADDED", versioned(13, "b")), HOLD]]),
    "no-json": ([(200, page(10, [])), (200, page(20, []))],
                [[b"<html>"], [b"<html>"], [b"<html>"], [event("ADDED", versioned(21)), HOLD]]),
    "no-list": ([(200, {"kind": "Status"}), (200, b"<html>"), (200, page(10, []))], [[HOLD]]),
    "cut-list": ([(200, json.dumps(page(10, [versioned(3), versioned(4, "b")])).encode()[:-2]),
                  (200, page(11, [versioned(3)]))], [[HOLD]]),
    "refused": ([(403, failure(403, "Forbidden"))], [[HOLD]]),
    "unauthorized": ([(401, failure(401, "Unauthorized")), (200, page(10, []))], [[HOLD]]),
    "busy": ([(429, failure(429, "TooManyRequests")), (200, page(10, []))], [[HOLD]]),
    "split": ([(200, page(10, []))], [["slowly", event("ADDED", versioned(11, data="é")) * 2, HOLD]]),
    "closing-held": ([(200, page(10, []))], [[HOLD]]),
    "bookmark": ([(200, page(10, []))], [[event("BOOKMARK", versioned(14)), END], [HOLD]]),
    "many": ([(200, page(10, [versioned(i, f"t{i}", data="x" * 4000) for i in range(2000)]))], [[HOLD]]),
}


def next_of(answers, key):
    COUNTS[key] = COUNTS.get(key, 0) + 1
    return answers[min(COUNTS[key], len(answers)) - 1]


async def send_slowly(request, data):
    for i in range(len(data)):
        await request.send(data[i:i + 1])


async def watch(request, script):
    if isinstance(script, int):
        await request.answer(script, failure(script, "Gone"))
        return
    await request.start(200)
    is_slow = False
    for part in script:
        if part is HOLD:
            await asyncio.sleep(3600)
        elif part is ABORT:
            await request.abort()
            return
        elif part == "slowly":
            is_slow = True
        elif part is not END:
            await (send_slowly(request, part) if is_slow else request.send(part))
    await request.end()


async def collection(request, words):
    name = words[0].split("?")[0]
    lists, watches = COLLECTIONS[name]
    if "watch=true" in request.path:
        await watch(request, next_of(watches, name + "/watch"))
        return
    code, body = next_of(lists, name + "/list")
    await request.answer(code, body, **({"retry_after": "1"} if code == 429 else {}))


# ---- certificate signing requests ----

REQUESTS, VERSION = {}, [100]
SIGNERS = {"kubernetes.io/kube-apiserver-client-kubelet": ["digital signature", "client auth"],
           "kubernetes.io/kubelet-serving": ["digital signature", "server auth"]}


def touch(item):
    VERSION[0] += 1
    item["metadata"]["resourceVersion"] = str(VERSION[0])


def issue(item, days):
    name = item["metadata"]["name"]
    with open(f"{name}.csr", "wb") as pem:
        pem.write(base64.b64decode(item["spec"]["request"]))
    subprocess.run(["openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                    "-CAcreateserial", "-days", str(days), "-extfile", "one.ext", "-out", f"{name}.crt"],
                   check=True, stderr=subprocess.DEVNULL)
    with open(f"{name}.crt", "rb") as pem:
        item["status"]["certificate"] = base64.b64encode(pem.read()).decode()


async def decide(item):
    """By the node's name: 'denied' is denied, 'stranger' gets a certificate of another key, 'patient' waits, the request of
    'forgotten' is deleted, and the certificate of 'early' is not accepted at once."""
    name = item["metadata"]["name"]
    with open(f"{name}.csr", "wb") as pem:
        pem.write(base64.b64decode(item["spec"]["request"]))
    subject = subprocess.run(["openssl", "req", "-in", f"{name}.csr", "-verify", "-noout", "-subject"], check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().splitlines()[-1]
    # Newer versions of OpenSSL print no spaces, and first the result of the verification.
    if subject.replace(" = ", "=") not in [f"subject=O=system:nodes, CN=system:node:{node}"
                                         for node in ("new", "denied", "stranger", "patient", "forgotten", "early")]:
        item["status"]["conditions"] = [{"type": "Denied", "reason": "Subject", "message": subject}]
    elif subject.endswith("denied"):
        item["status"]["conditions"] = [{"type": "Approved"}, {"type": "Denied", "reason": "No", "message": "not you"}]
    elif subject.endswith("forgotten"):
        VERSION[0] += 1
        del REQUESTS[name]
    elif subject.endswith("stranger"):
        with open("two.crt", "rb") as pem:
            item["status"]["certificate"] = base64.b64encode(pem.read()).decode()
    else:
        if subject.endswith("patient"):
            while not os.path.exists("approved"):
                await asyncio.sleep(0.05)
        issue(item, 30)
    touch(item)


async def signing_requests(request, words):
    is_known = request.connection.peer or request.headers.get("authorization") == "Bearer boot.5tr4p"
    if not is_known:
        await request.answer(401, failure(401, "Unauthorized"))
    elif request.method == "POST":
        item = json.loads(request.body)
        if SIGNERS.get(item["spec"]["signerName"]) != item["spec"]["usages"]:
            await request.answer(422, failure(422, "Invalid"))
        elif item["metadata"]["name"] in REQUESTS:
            await request.answer(409, failure(409, "AlreadyExists"))
        else:
            item["status"] = {}
            touch(item)
            REQUESTS[item["metadata"]["name"]] = item
            asyncio.ensure_future(decide(item))
            await request.answer(201, item)
    else:
        name = request.path.split("metadata.name%3D")[1].split("&")[0]
        if "watch=true" not in request.path:
            await request.answer(200, page(VERSION[0], [REQUESTS[name]] if name in REQUESTS else []))
            return
        await request.start(200)
        while name in REQUESTS and not REQUESTS[name]["status"]:
            await asyncio.sleep(0.05)
        await request.send(event("MODIFIED", REQUESTS[name]) if name in REQUESTS else
                           event("DELETED", versioned(VERSION[0], name)))
        await asyncio.sleep(3600)


async def node(request, words):
    peer = request.connection.peer
    if words[-1] == "early" and not os.path.exists("accepted"):
        await request.answer(503, failure(503, "ServiceUnavailable"))
        return
    await request.answer(*((404, failure(404, "NotFound")) if peer else (401, failure(401, "Unauthorized"))))


PATHS = {"apis": signing_requests, "api": node,
         "echo": echo, "status": status, "hold": hold, "sized": sized, "silent": silent, "big": big, "cut": cut, "token": token,
         "moved": moved, "log": log, "once": once, "c": collection}


async def act(request):
    words = request.path.strip("/").split("/")
    if words[0] != "log":
        LOG.append(f"{request.method} {request.path}")
    await PATHS[words[0].split("?")[0]](request, words[1:])


async def main():
    make_certificates(sys.argv[1])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("server.crt", "server.key")
    context.load_verify_locations("ca.crt")
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"] if "--http1" in sys.argv else ["h2", "http/1.1"])

    async def on_connection(reader, writer):
        await Connection(reader, writer).serve()

    server = await asyncio.start_server(on_connection, "127.0.0.1", 0, ssl=context, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    while line := await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        for request in SIZED:
            await request.send(b"x" * int(line))
    os._exit(0)


asyncio.run(main())
