# SPDX-License-Identifier: Apache-2.0
"""The releases of Kubernetes that kubeadm's tests install: that of MAINSTAY_KUBERNETES, and others below it in
directories named by their versions. Their images are made from their programs."""

import os
import re
import subprocess

import harness
from control_plane import Missing, programs

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
PROGRAMS = (*COMPONENTS, "etcd", "etcdctl", "kubeadm", "kubectl")
# These programs are not built here. Their replacements run, report readiness, and do nothing else.
SCRIPTS = {
    "kube-proxy": "exec sleep infinity",
    "coredns": "agnhost netexec --http-port=8080 --udp-port=-1 & exec agnhost netexec --http-port=8181 --udp-port=-1",
    "pause": '[ "$1" = -v ] || exec sleep infinity',  # -v prints a version and ends
}


def minor(version):
    return int(version.split(".")[1])


class Release:
    """One version with its programs."""

    def __init__(self, directory):
        self.directory = directory
        missing = [name for name in PROGRAMS if not os.access(self.program(name), os.X_OK)]
        if missing:
            raise Missing(f"{directory} has not got {', '.join(missing)}; see tests/README.md.")
        self.version = self.say("kubeadm", "version", "-o", "short").strip()
        etcd = re.search(r"\d+\.\d+", self.say("etcd", "--version")).group(0)
        if etcd != "3.6":
            raise Missing(f"{self.program('etcd')} is etcd {etcd}; kubeadm writes the flags of etcd 3.6, see tests/README.md.")
        self.images = None

    def program(self, name):
        return os.path.join(self.directory, name)

    def say(self, name, *words):
        return subprocess.run([self.program(name), *words], check=True, stdout=subprocess.PIPE, text=True).stdout

    def make_images(self, above, etcd=None):
        """Makes, once, one folder of archives in the directory 'above', with the names that kubeadm gives to the
        images; that of etcd also has another tag."""
        if self.images is None:
            directory = os.path.join(above, self.version)
            os.mkdir(directory)
            names = self.say("kubeadm", "config", "images", "list", f"--kubernetes-version={self.version}").split()
            if etcd:
                names.append(re.sub(":.*", f":{etcd}", next(name for name in names if "/etcd:" in name)))
            self.images = [self.make_image(name, directory) for name in names]
        return self.images

    def make_image(self, image, directory):
        name = re.search(r"([^/:]+):[^:]+$", image).group(1)
        archive = os.path.join(directory, re.sub("[/:]", "_", image) + ".tar")
        words = ["--program", self.program(name)]
        if name in SCRIPTS:
            script = os.path.join(directory, name)
            with open(script, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n{SCRIPTS[name]}\n")
            os.chmod(script, 0o755)
            words = ["--program", f"{script}:usr/local/bin/kube-proxy"] if name == "kube-proxy" else ["--entrypoint", script]
            if name == "coredns":
                words += ["--program", os.path.join(programs(), "agnhost")]
        subprocess.run([os.path.join(harness.TOP, "tests", "make-image"), image, archive, *words], check=True)
        return archive


class Releases:
    """The releases are looked up only when a test needs them: a test whose release is missing fails and names it."""

    def __init__(self):
        self.newest = Release(programs())
        self.found = {}

    def others(self):
        above = os.path.dirname(programs())
        for name in sorted(os.listdir(above)):
            if re.fullmatch(r"v\d+\.\d+\.\d+", name) and name not in self.found:
                self.found[name] = Release(os.path.join(above, name, "bin"))
        return self.found.values()

    def require(self, what, is_wanted):
        found = next((one for one in self.others() if is_wanted(one.version)), None)
        if not found:
            raise Missing(f"MAINSTAY_KUBERNETES has not got {what}: a directory v1.X.Y/bin, see tests/README.md.")
        return found

    @property
    def older(self):
        wanted = minor(self.newest.version) - 1
        return self.require(f"a release of 1.{wanted}", lambda version: minor(version) == wanted)

    @property
    def patched(self):
        """A release of the same minor version."""
        newest = self.newest.version
        return self.require(f"another patch release in addition to {newest}",
                            lambda version: minor(version) == minor(newest) and version != newest)
