# SPDX-License-Identifier: Apache-2.0
"""Signed indexes of manifests: the directory of an index, keys, and nginx, which serves the directory over HTTPS and
records the requests."""

import base64
import hashlib
import json
import os
import subprocess

import harness
import layered_image
import registry
import specs
import world
from world import wait

PLATFORM = f"linux/{specs.ARCHITECTURE}"


class Runnable(registry.Blobs):
    """An image with a layer of busybox below its own layers, each of which is given as files by name."""

    def __init__(self, *layers, architecture=None):
        super().__init__([layered_image.busybox_layer(), *layers], architecture)

    @staticmethod
    def tar(files):
        return files if isinstance(files, bytes) else layered_image.tar(files)

    def blob_rows(self):
        manifest = json.loads(self.manifest)
        return [{"digest": row["digest"], "size": row["size"]} for row in (manifest["config"], *manifest["layers"])]

    def row(self, platform=PLATFORM, deltas=()):
        """The entry of an index for this image and a platform."""
        return {"platform": platform, "mediaType": registry.MANIFEST_TYPE, "digest": self.digest, "size": len(self.manifest),
                "blobs": self.blob_rows(), "deltas": list(deltas)}


def delta_row(old, new, delta):
    """The entry of a delta; 'delta' is its manifest, and its blobs are among those of the new image."""
    return {"base": json.loads(old.manifest)["config"]["digest"], "digest": registry.digest_of(delta), "size": len(delta),
            "blobs": [{"digest": row["digest"], "size": row["size"]} for row in json.loads(delta)["layers"]
                      if row["digest"] in new.blobs]}


class Key:
    """An Ed25519 key, made by openssl."""

    def __init__(self, directory, name):
        self.path = os.path.join(directory, name + ".pem")
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.path], check=True)
        public = subprocess.run(["openssl", "pkey", "-in", self.path, "-pubout"], check=True, capture_output=True).stdout
        self.public = public.decode().splitlines()[1]

    def sign(self, path):
        """Signs in the way of a short shell script: the signature has the form in which openssl writes it."""
        subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", self.path, "-in", path, "-out", path + ".sig"],
                       check=True)


class Index:
    """A directory with an index."""

    def __init__(self, directory, key, fleet="shops"):
        self.directory, self.key, self.fleet, self.number = directory, key, fleet, 0
        self.path = os.path.join(directory, "index.json")

    def write(self, manifests, key=None, spoil=None, **changes):
        """Writes and signs an index of these files, by name; returns it. Changes that are passed for it are signed,
        too. 'spoil' is called with the path of the index, which has its signature next to it, before a node can see
        either: the good version is never offered."""
        self.number += 1
        listed = []
        os.makedirs(os.path.join(self.directory, "sha256"), exist_ok=True)
        for name, content in manifests.items():
            data = content if isinstance(content, bytes) else specs.text(content).encode()
            digest = hashlib.sha256(data).hexdigest()
            with open(self.blob(digest), "wb") as file:
                file.write(data)
            listed.append({"name": name, "size": len(data), "sha256": digest})
        document = {"format": 1, "fleet": self.fleet, "number": self.number, "expires": "2090-01-01T00:00:00Z",
                    "files": listed, **changes}
        self.write_bytes(json.dumps(document).encode(), key, spoil)
        return document

    def image_blob(self, digest):
        return os.path.join(self.directory, "images", "blobs", "sha256", digest.removeprefix("sha256:"))

    def add_blob(self, data):
        path = self.image_blob(registry.digest_of(data))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def add_image(self, image, name, deltas=()):
        """Stores the blobs of the image next to the index; returns its entry. 'deltas' are pairs of an old image and a delta."""
        for data in (image.manifest, *image.blobs.values(), *(delta for _, delta in deltas)):
            self.add_blob(data)
        return {"name": name, "platforms": [image.row(deltas=[delta_row(old, image, delta) for old, delta in deltas])]}

    def write_bytes(self, data, key=None, spoil=None):
        # The signature is written first: a node that fetches in between gets an index that it already has, and nothing
        # else.
        staged = os.path.join(self.directory, ".index")
        with open(staged, "wb") as file:
            file.write(data)
        (key or self.key).sign(staged)
        if spoil:
            spoil(staged)
        os.rename(staged + ".sig", self.path + ".sig")
        os.rename(staged, self.path)

    def blob(self, digest):
        return os.path.join(self.directory, "sha256", digest)


class Nginx:
    """Serves a directory on loopback over HTTPS."""

    def __init__(self, directory, root, extra=""):
        os.makedirs(directory, exist_ok=True)
        self.directory, self.root, self.port = directory, root, world.free_port()
        self.log = os.path.join(directory, "access.log")
        self.certificate, key = registry.certificate(directory)
        self.config = os.path.join(directory, "nginx.conf")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"""daemon off; pid {directory}/pid; error_log {directory}/error.log; worker_processes 1; user root;
events {{ worker_connections 1024; }}
http {{
    log_format asked '$request_method $request_uri $status $request_length $bytes_sent $http_range $msec';
    access_log {self.log} asked;
    client_body_temp_path {directory}/t1; proxy_temp_path {directory}/t2; fastcgi_temp_path {directory}/t3;
    uwsgi_temp_path {directory}/t4; scgi_temp_path {directory}/t5;
    server {{
        listen 127.0.0.1:{self.port} ssl; ssl_certificate {self.certificate}; ssl_certificate_key {key};
        root {root}; {extra}
    }}
}}
""")
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(["nginx", "-c", self.config, "-e", os.path.join(self.directory, "error.log")],
                                        stdin=subprocess.DEVNULL)
        wait(lambda: registry.answers(self.port), "nginx answers")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)

    def url(self):
        return f"https://127.0.0.1:{self.port}/index.json"

    def asked(self):
        """The requests that it received, each as a list: method, path, status, bytes received, bytes sent, range,
        seconds since 1970."""
        with open(self.log, encoding="utf-8") as file:
            return [line.split(" ") for line in file.read().splitlines()]


def settings(url, keys, **more):
    return {"url": url, "keys": [key.public for key in keys], "fleet": "shops", "interval": "1s", "jitter": "1ms", **more}


def sign(*words):
    return subprocess.run([harness.program("mainstay"), "source", *words], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=world.DEADLINE)


def minisign_file(key_path, data):
    """The output of `minisign -S -l`: the algorithm, the number of the key, the signature."""
    signature = subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key_path, "-in", data], check=True,
                               capture_output=True).stdout
    text = base64.b64encode(b"Ed" + b"\1" * 8 + signature).decode()
    return f"untrusted comment: signature from minisign secret key\n{text}\ntrusted comment: none\n{'A' * 88}\n"
