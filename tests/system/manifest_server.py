# SPDX-License-Identifier: Apache-2.0
"""A web server of manifests, on loopback, which counts requests and misbehaves on demand."""

import hashlib
import http.server
import threading
import time


class Answer:
    """The response of a path: bytes with their ETag, or a function that gets the request and writes by itself."""

    def __init__(self, body=b"", status=200, headers=None, etag=True, act=None):
        self.body, self.status, self.headers, self.act = body, status, headers or {}, act
        self.etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"' if etag else None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):  # pylint: disable=invalid-name
        owner = self.server.owner
        answer = owner.paths.get(self.path) or Answer(status=404, etag=False)
        request = {"path": self.path, "headers": {name.lower(): value for name, value in self.headers.items()},
                   "status": answer.status, "sent": 0,
                   "received": len(self.raw_requestline) + len(bytes(self.headers))}
        owner.requests.append(request)
        if answer.act:
            self.close_connection = True
            answer.act(self)
            return
        if answer.etag and self.headers.get("If-None-Match") == answer.etag:
            request["status"] = 304
            self.reply(request, 304, {"ETag": answer.etag}, b"")
            return
        headers = {"Content-Length": str(len(answer.body)), **({"ETag": answer.etag} if answer.etag else {}), **answer.headers}
        self.reply(request, answer.status, headers, answer.body)

    def reply(self, request, status, headers, body):
        head = f"HTTP/1.1 {status} Said\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
        request["sent"] = len(head) + len(body)
        self.wfile.write(head.encode() + body)

    def raw(self, text, then_wait=False):
        """Sends the bytes unchanged, then ends the connection or leaves it open."""
        self.wfile.write(text)
        self.wfile.flush()
        if then_wait:
            self.server.owner.ended.wait(120)

    def drip(self, head, body, seconds):
        """Sends the head at once, and the body one byte at a time, with a pause after each."""
        self.wfile.write(head)
        for i in range(len(body)):
            self.wfile.write(body[i:i + 1])
            self.wfile.flush()
            if self.server.owner.ended.wait(seconds):
                return


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that disconnects


class ManifestServer:
    def __init__(self):
        self.paths, self.requests = {}, []
        self.ended = threading.Event()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.owner = self
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def url(self, path="/pods"):
        return f"http://127.0.0.1:{self.port}{path}"

    def serve(self, body, path="/pods", **options):
        self.paths[path] = Answer(body.encode() if isinstance(body, str) else body, **options)

    def act(self, function, path="/pods"):
        self.paths[path] = Answer(act=function)

    def stop(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()
        time.sleep(0)
