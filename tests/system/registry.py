# SPDX-License-Identifier: Apache-2.0
"""Registries for tests, on loopback: Debian's docker-registry, and a fake that misbehaves on demand."""

import base64
import ctypes
import gzip
import hashlib
import http.server
import io
import json
import os
import socket
import ssl
import subprocess
import tarfile
import threading
import time

import specs
from world import DEADLINE, free_port, wait

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def certificate(directory, name="server", expired=False, alt="IP:127.0.0.1", kind=("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")):
    """Makes a key of a type that openssl knows and a self-signed certificate; returns their paths."""
    base = os.path.join(directory, name)
    with open(base + ".cnf", "w", encoding="utf-8") as file:
        file.write(f"[ca]\ndefault_ca=a\n[a]\nnew_certs_dir={directory}\ndatabase={base}.db\nrand_serial=yes\n"
                   f"policy=p\nx509_extensions=e\ndefault_md=sha256\n[p]\ncommonName=supplied\n[e]\n"
                   f"subjectAltName={alt}\nbasicConstraints=CA:true\n[req]\ndistinguished_name=d\n[d]\n")
    open(base + ".db", "w", encoding="utf-8").close()
    year = 2020 if expired else time.gmtime().tm_year
    for words in (
            ["req", "-new", "-newkey", *kind, "-nodes", "-keyout", base + ".key", "-out", base + ".csr",
             "-subj", "/CN=localhost", "-config", base + ".cnf"],
            ["ca", "-batch", "-selfsign", "-config", base + ".cnf", "-keyfile", base + ".key", "-in", base + ".csr",
             "-out", base + ".crt", "-notext", "-startdate", f"{year}0101000000Z", "-enddate", f"{year + 1}0101000000Z"]):
        subprocess.run(["openssl", *words], check=True, capture_output=True)
    return base + ".crt", base + ".key"


def blowfish_hash(password):
    """The hash that docker-registry accepts. The standard library of Python 3.13 has no crypt()."""
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    salt = base64.b64encode(os.urandom(16), b"./").decode().replace("=", "")
    return library.crypt(password.encode(), f"$2b$04${salt}".encode()).decode()


class DockerRegistry:
    """Debian's docker-registry, optionally with a password and with TLS."""

    def __init__(self, directory, user=None, password=None, tls=None):
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.directory = directory
        self.user, self.password, self.tls = user, password, tls
        config = {"version": "0.1", "log": {"level": "error", "accesslog": {"disabled": True}},
                  "storage": {"filesystem": {"rootdirectory": os.path.join(directory, "registry")}},
                  "http": {"addr": self.host}}
        if user:
            htpasswd = os.path.join(directory, "htpasswd")
            with open(htpasswd, "w", encoding="utf-8") as file:
                file.write(f"{user}:{blowfish_hash(password)}\n")
            config["auth"] = {"htpasswd": {"realm": "test", "path": htpasswd}}
        if tls:
            config["http"]["tls"] = {"certificate": tls[0], "key": tls[1]}
        path = os.path.join(directory, "registry.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.log = open(os.path.join(directory, "registry.log"), "w", encoding="utf-8")
        self.process = subprocess.Popen(["docker-registry", "serve", path], stdout=self.log, stderr=self.log)
        wait(lambda: answers(self.port), lambda: "the registry answers")

    def push(self, source, name):
        """Copies the image that skopeo calls 'source', and returns the reference."""
        words = ["skopeo", "copy", "--dest-tls-verify=false", source, f"docker://{self.host}/{name}"]
        if self.user:
            words += ["--dest-creds", f"{self.user}:{self.password}"]
        subprocess.run(words, check=True, capture_output=True)
        return f"{self.host}/{name}"

    def push_larger(self, archive, name):
        """Pushes the image of an archive with one more layer."""
        base = os.path.join(self.directory, "larger")
        with open(base, "wb") as file:
            file.write(os.urandom(100_000))
        for words in (["skopeo", "copy", f"docker-archive:{archive}", f"oci:{base}-layout:x"],
                      ["umoci", "insert", "--image", f"{base}-layout:x", base, "/file"]):
            subprocess.run(words, check=True, capture_output=True)
        return self.push(f"oci:{base}-layout:x", name)

    def digest(self, name):
        words = ["skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{self.host}/{name}"]
        if self.user:
            words += ["--creds", f"{self.user}:{self.password}"]
        raw = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
        return digest_of(raw)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(DEADLINE)
        self.log.close()


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def document(value):
    return json.dumps(value).encode()


class Blobs:
    """An image in memory: layers of files, a configuration, a manifest."""

    level = 1  # of the gzip compression

    def __init__(self, layers, architecture=None):
        self.blobs = {}
        tars = [self.tar(files) for files in layers]
        packed = [gzip.compress(tar, self.level, mtime=0) for tar in tars]
        config = document({"os": "linux", "architecture": architecture or specs.ARCHITECTURE, "config": {"Cmd": ["/bin/sh"]},
                           "rootfs": {"type": "layers", "diff_ids": [digest_of(tar) for tar in tars]}})
        self.layers = [self.add(data) for data in packed]
        self.manifest = document({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
            "config": {"mediaType": CONFIG_TYPE, "digest": self.add(config), "size": len(config)},
            "layers": [{"mediaType": LAYER_TYPE, "digest": digest_of(data), "size": len(data)} for data in packed]})
        self.digest = digest_of(self.manifest)
        self.manifests = {self.digest: (MANIFEST_TYPE, self.manifest), "latest": (MANIFEST_TYPE, self.manifest)}

    def add(self, data):
        self.blobs[digest_of(data)] = data
        return digest_of(data)

    @staticmethod
    def tar(files):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        return buffer.getvalue()


class BadRegistry:
    """Serves Blobs under every name. 'behave' is called first with the handler: it either responds itself and returns
    True, or leaves the response to the registry. Requests are in 'seen': (method, path, headers)."""

    def __init__(self, image, behave=None, tls=None, address="127.0.0.1"):
        outer = self
        self.image, self.behave, self.seen, self.sent = image, behave, [], 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.seen.append(("GET", self.path, dict(self.headers)))
                try:
                    if not (outer.behave and outer.behave(self)):
                        outer.serve(self)
                except OSError:
                    self.close_connection = True

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.seen.append(("POST", self.path, {**dict(self.headers), "body": body.decode()}))
                if not (outer.behave and outer.behave(self)):
                    self.answer(404)

            def log_message(self, *_):
                pass

            def answer(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                if "Content_Length" not in headers and "Transfer_Encoding" not in headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return True

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server((address, 0), Handler)
        self.port = self.server.server_address[1]
        self.host = f"127.0.0.1:{self.port}"
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.scheme = "https" if tls else "http"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def find(self, path):
        """The media type and the bytes for a path, or None."""
        kind, name = path.split("?")[0].split("/")[-2:]
        if kind == "manifests":
            return self.image.manifests.get(name)
        if kind == "referrers":
            return None
        data = self.image.blobs.get(name)
        return ("application/octet-stream", data) if data is not None else None

    def serve(self, handler):
        found = self.find(handler.path)
        if not found:
            return handler.answer(404, document({"errors": [{"code": "NAME_UNKNOWN", "message": "no such thing"}]}))
        media_type, data = found
        asked = handler.headers.get("Range", "")
        start = int(asked[len("bytes="):-1]) if asked else 0
        if asked and start >= len(data):
            return handler.answer(416)
        self.sent += len(data) - start
        extra = {"Content_Range": f"bytes {start}-{len(data) - 1}/{len(data)}"} if asked else {}
        return handler.answer(206 if asked else 200, data[start:], Content_Type=media_type, **extra)

    def asked(self, part):
        return [entry for entry in self.seen if part in entry[1]]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def tls_server(cert, key, **settings):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    for name, value in settings.items():
        setattr(context, name, value)
    return context
