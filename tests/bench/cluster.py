# SPDX-License-Identifier: Apache-2.0
"""A node that has joined an API server (one of the tests, on loopback): how soon what is bound to it runs, how soon the
server hears what became of it, what it costs, and that a server that is away costs nothing."""

import json
import os
import statistics
import tempfile
import time

import apiserver
import bare
import member
import specs
import world
from harness import NODE_NAME

PODS = 110
QUIET_SECONDS = 60
CALM_SECONDS = 5  # after a burst: what it left behind is given back


class Bench:
    def __init__(self, archive, directory, figures):
        self.figures, self.api = figures, apiserver.make(directory)
        self.api.api.injects_tokens = False  # a file pod has none
        self.added = {}
        self.api.misbehave(verb="watch", plural="pods", change=self.note_added)
        self.node = member.Member(self.api, archive)
        self.bell = bare.Bell(self.node.data)
        self.bind("warm")
        self.bell.wait_for(["warm"])

    def note_added(self, data):
        """The moment at which the server is about to send the event."""
        event = json.loads(data)
        if event["type"] == "ADDED":
            self.added[event["object"]["metadata"]["name"]] = time.monotonic()
        return data

    def bind(self, name):
        self.api.pod(name, NODE_NAME, specs.IMAGE, **bare.measured_pod(self.node, name)["spec"])

    def drop(self, names):
        for name in names:
            self.api.delete("pods", "default", name, grace=1)
        for name in names:
            self.node.wait_told_gone(name, 120)

    def starts(self, samples):
        bound, filed = [], []
        for i in range(samples):
            filed.append(bare.start(self.node, self.bell, bare.measured_pod(self.node, f"file{i}")))
            self.bind(f"bound{i}")
            rang = self.bell.wait_for([f"bound{i}"])
            bound.append(rang - self.added[f"bound{i}"])
            self.node.remove(f"file{i}")
            self.drop([f"bound{i}"])
            self.node.wait_gone(f"file{i}")
        self.figures.compare("event of a bound pod -> container runs, over a manifest renamed", bound, filed, 1.1)

    def told(self, name):
        return len([one for one in self.api.asked("patch", "pods", name, "status")
                    if "containerStatuses" in one.body["status"]])

    def statuses(self, samples):
        """From the death of a process to the request that says so."""
        spans = []
        for _ in range(samples):
            self.node.wait_told_phase("warm", "Running")
            pid, before = self.node.init("warm"), self.told("warm")
            time.sleep(0.3)
            before = self.told("warm")
            begun = time.monotonic()
            os.kill(pid, 9)
            while self.told("warm") == before:
                time.sleep(0.0005)
            spans.append(time.monotonic() - begun)
            self.bell.wait_for(["warm"])
        self.figures.add("process ends -> the server is told, median", statistics.median(spans) * 1000, 50, "ms")

    def quiet(self):
        time.sleep(5)
        before = len(self.api.requests)
        time.sleep(QUIET_SECONDS)
        count = (len(self.api.requests) - before) * 60 / QUIET_SECONDS
        self.figures.add("requests a minute when nothing happens", count, 8, "")

    def many(self):
        self.api.api.injects_tokens = True
        names = [f"many{i}" for i in range(PODS - 1)]
        for name in names:
            self.bind(name)
        self.bell.wait_for(names, 300)
        for name in names:
            self.node.wait_told_phase(name, "Running", 120)
        time.sleep(CALM_SECONDS)
        text = world.read(f"/proc/{self.node.agent.pid}/smaps_rollup")
        pss = int(next(line.split()[1] for line in text.splitlines() if line.startswith("Pss:")))
        self.figures.add(f"agent PSS with {PODS} pods of the server", pss / 1024, 8, "MiB")
        self.drop(names)

    def boot(self, name, joined):
        self.node.stop()
        self.node.write_config(mainstay={"kubeconfig": self.node.kubeconfig} if joined else {})
        self.node.drop(bare.measured_pod(self.node, name))
        begun = time.monotonic()
        self.node.start(ready=False)
        span = self.bell.wait_for([name]) - begun
        self.node.wait_running(name)
        self.node.remove(name)
        self.node.wait_gone(name)
        return span

    def boots(self, samples):
        """The server is not there; with and without the wish to join it."""
        self.drop(["warm"])
        self.api.stop()
        joined, alone = [], []
        for i in range(samples):
            alone.append(self.boot(f"alone{i}", False))
            joined.append(self.boot(f"joined{i}", True))
        self.figures.compare("start, server unreachable -> container runs, over without one", joined, alone, 1.1)


def measure(archive, arguments, figures):
    with tempfile.TemporaryDirectory(prefix="mainstay-bench-api-") as directory:
        bench = Bench(archive, directory, figures)
        try:
            bench.starts(arguments.samples)
            bench.statuses(arguments.samples)
            bench.quiet()
            bench.many()
            bench.boots(arguments.samples)
        finally:
            bench.node.finish()
            bench.api.stop()
