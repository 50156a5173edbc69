# SPDX-License-Identifier: Apache-2.0
"""Shared by all measurements: how a container reports that it runs, and the OCI runtime alone as the reference."""

import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

import harness
import specs

RUNTIME = harness.RUNTIME or "runc"  # of the agent and of the reference
# The goals of a start and of a restart: runc takes longer for everything around a container than crun.
GOAL = {"runc": 1.0, "crun": 1.15}

# A measured container writes its name into the FIFO as soon as it runs, and waits.
SCRIPT = "echo $NAME > /bench/up; exec sleep 100000"


class StartFifo:
    """A FIFO into which containers write their names when they start."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "up")
        os.mkfifo(self.path)
        self.fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        self.rest = b""

    def wait_for(self, names, deadline=60.0):
        """Returns the time at which the last of these names arrived."""
        missing, end = set(names), time.monotonic() + deadline
        while missing:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise SystemExit(f"bench: no start of {sorted(missing)} within {deadline:g} s")
            now = time.monotonic()
            *lines, self.rest = (self.rest + os.read(self.fd, 65536)).split(b"\n")
            missing -= {line.decode() for line in lines}
        return now


class Runtime:
    """The OCI runtime alone, with the bundle that the agent made, on a root file system that is already unpacked."""

    def __init__(self, node, archive, pod):
        self.node = node
        self.runtime = shutil.which(RUNTIME)
        self.directory = tempfile.mkdtemp(dir=node.directory, prefix="bare-")
        self.bundle = os.path.join(self.directory, "bundle")
        self.root = os.path.join(self.directory, "state")
        self.count = 0
        os.mkdir(self.bundle)
        self.unpack(archive)
        self.spec = self.adapt(pod)

    def unpack(self, archive):
        with tarfile.open(archive) as outer:
            layers = json.load(outer.extractfile("manifest.json"))[0]["Layers"]
            for layer in layers:
                with tarfile.open(fileobj=outer.extractfile(layer)) as inner:
                    inner.extractall(os.path.join(self.bundle, "rootfs"), numeric_owner=True)

    def adapt(self, pod):
        """The pod's own config.json, without references to the namespaces of its shim."""
        path = f"{self.node.run}/pods/{pod['metadata']['uid']}/containers/main/0/config.json"
        with open(path, encoding="utf-8") as file:
            spec = json.load(file)
        for namespace in spec["linux"]["namespaces"]:
            namespace.pop("path", None)
        for mount in spec["mounts"]:
            if mount["destination"] == "/bench":
                mount["source"] = self.node.data
            elif mount["type"] == "bind" and not os.path.isfile(mount["source"]):
                mount["source"] = tempfile.mkdtemp(dir=self.directory)
        return spec

    def run(self, fifo):
        """Seconds from the call until the container's process writes to the FIFO."""
        self.count += 1
        name = f"bare{self.count}"
        self.spec["linux"]["cgroupsPath"] = f"{self.node.cgroup_root}/{name}"
        env = [item for item in self.spec["process"]["env"] if not item.startswith("NAME=")]
        self.spec["process"]["env"] = env + [f"NAME={name}"]
        with open(os.path.join(self.bundle, "config.json"), "w", encoding="utf-8") as file:
            json.dump(self.spec, file)
        started = time.monotonic()
        with subprocess.Popen([self.runtime, "--root", self.root, "run", "--detach", "--bundle", self.bundle, name],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            running = fifo.wait_for([name])
            if process.wait() != 0:
                raise SystemExit(f"bench: {RUNTIME} exited with {process.returncode}")
        return running - started

    def delete_all(self):
        for name in os.listdir(self.root) if os.path.isdir(self.root) else []:
            subprocess.run([self.runtime, "--root", self.root, "delete", "--force", name], check=True)


def measured_pod(node, name, **spec):
    container = specs.container(script=SCRIPT, env=[{"name": "NAME", "value": name}],
                                volumeMounts=[specs.mount("bench", "/bench")])
    return specs.pod(name, container, volumes=[specs.host_path("bench", node.data)], terminationGracePeriodSeconds=0,
                     **spec)


def start(node, fifo, pod):
    """Seconds from the rename of the manifest until the container's process writes to the FIFO."""
    name = pod["metadata"]["name"]
    staged, target = node.stage(pod), node.path(f"{name}.yaml")
    started = time.monotonic()
    os.rename(staged, target)
    return fifo.wait_for([name]) - started


class Figures:
    def __init__(self):
        self.all = []

    def add(self, name, value, goal, unit="", **details):
        """Also prints it immediately, because a later step may fail."""
        self.all.append({"name": name, "value": round(value, 2), "unit": unit, "goal": goal, "met": value <= goal,
                         **details})
        print(f"{name}: {value:.2f} {unit}", file=sys.stderr, flush=True)

    def compare(self, name, ours, reference, goal):
        """The medians of two lists of seconds, as a ratio."""
        mine, other = statistics.median(ours), statistics.median(reference)
        self.add(name, mine / other, goal, "x", ours_ms=round(mine * 1000, 1), bare_ms=round(other * 1000, 1),
                 samples=len(ours))
