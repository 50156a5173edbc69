# SPDX-License-Identifier: Apache-2.0
"""An image store, and pulls into it."""

import json
import os
import random
import shutil
import subprocess

import harness
import world
from registry import Blobs

FILES = {"etc/hello": b"hello\n"}


class Puller:
    """An image store for the test, and runs of mainstay-image on it."""

    def __init__(self, directory):
        self.directory = str(directory)
        self.store = os.path.join(self.directory, "store")
        self.prefix = []

    def replace_etc_file(self, name, text):
        """Replaces a file of /etc for it."""
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.directory, 0o755)
        self.prefix += ["unshare", "--mount", "sh", "-c", f'mount --bind "{path}" "/etc/{name}" && exec "$@"', "sh"]

    def replace_system_authorities(self, path, cert):
        """Puts a directory with only this file of authorities over /etc for it."""
        etc = os.path.join(self.directory, "etc")
        file = os.path.join(etc, os.path.relpath(path, "/etc"))
        os.makedirs(os.path.dirname(file))
        shutil.copy(cert, file)
        for name in ("passwd", "group", "nsswitch.conf"):
            shutil.copy(os.path.join("/etc", name), etc)
        self.prefix += ["unshare", "--mount", "sh", "-c", f'mount --bind "{etc}" /etc && exec "$@"', "sh"]

    def spawn(self, reference, **settings):
        process = subprocess.Popen([*self.prefix, harness.program("mainstay-image"), "pull", "--store", self.store, reference],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        settings.setdefault("certificateDirectories", [os.path.join(self.directory, "certs.d")])
        process.stdin.write(json.dumps(settings))
        process.stdin.close()
        process.stdin = None
        return process

    def run(self, reference, **settings):
        """Returns the exit status and the error message."""
        process = self.spawn(reference, **settings)
        _, error = process.communicate(timeout=world.DEADLINE)
        return process.returncode, error.strip()

    def pull(self, registry, name="team/app:latest", **settings):
        settings.setdefault("insecureRegistries", [registry.host] if registry.scheme == "http" else [])
        return self.run(f"{registry.host}/{name}", **settings)

    def trust(self, host, cert, client=None):
        directory = os.path.join(self.directory, "certs.d", host)
        os.makedirs(directory, exist_ok=True)
        if cert:
            shutil.copy(cert, os.path.join(directory, "ca.crt"))
        if client:
            shutil.copy(client[0], os.path.join(directory, "client.cert"))
            shutil.copy(client[1], os.path.join(directory, "client.key"))

    def content(self, path):
        """The content of the file in the topmost layer that contains it."""
        layers = os.path.join(self.store, "layers")
        for layer in os.listdir(layers):
            whole = os.path.join(layers, layer, path)
            if os.path.exists(whole):
                with open(whole, "rb") as file:
                    return file.read()
        return None

    def blob(self, digest):
        with open(os.path.join(self.store, "blobs/sha256", digest.removeprefix("sha256:")), "rb") as file:
            return file.read()

    def sweep(self):
        subprocess.run([harness.program("mainstay-image"), "sweep", "--store", self.store], check=True)

    def is_empty(self):
        return not any(os.listdir(os.path.join(self.store, name)) for name in ("layers", "records", "tmp"))


def expect_refused(puller, result, *words):
    status, message = result
    assert status != 0, "the pull has succeeded"
    for word in words:
        assert word in message, message
    assert "Sanitizer" not in message, message
    assert puller.is_empty()


def expect_pulled(puller, result):
    assert result[0] == 0, result[1]
    assert puller.content("etc/hello") == b"hello\n"


def big_image():
    """An image that is too large to arrive in one piece."""
    return Blobs([{**FILES, "big": random.Random(1).randbytes(4_000_000)}])
