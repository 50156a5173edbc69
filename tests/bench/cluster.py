# SPDX-License-Identifier: Apache-2.0
"""A node that has joined an API server (that of the tests): the delay from a binding to the container, from an
exit to the status update, the cost of both, and the start while the server is unreachable."""

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
SETTLE_SECONDS = 0.3  # between samples: work that follows a removal is not measured
CALM_SECONDS = 5  # after a burst, in which time the agent returns memory to the system


class Bench:
    def __init__(self, archive, directory, figures):
        self.figures, self.api = figures, apiserver.make(directory)
        self.api.api.injects_tokens = False  # pods of files do not have one either
        self.added = {}
        self.api.misbehave(verb="watch", plural="pods", change=self.note_added)
        self.node = member.Member(self.api, archive)
        self.fifo = bare.StartFifo(self.node.data)
        self.bind("warm")
        self.fifo.wait_for(["warm"])

    def note_added(self, data):
        """Records the time just before the server sends the event."""
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
            self.node.wait_reported_gone(name, 120)

    def starts(self, samples):
        bound, filed = [], []
        for i in range(samples):
            filed.append(bare.start(self.node, self.fifo, bare.measured_pod(self.node, f"file{i}")))
            self.bind(f"bound{i}")
            running = self.fifo.wait_for([f"bound{i}"])
            bound.append(running - self.added[f"bound{i}"])
            self.node.remove(f"file{i}")
            self.drop([f"bound{i}"])
            self.node.wait_gone(f"file{i}")
            time.sleep(SETTLE_SECONDS)
        self.figures.compare("event of a bound pod -> container runs, over a renamed manifest", bound, filed, 1.1)

    def count_status_requests(self, name):
        return len([one for one in self.api.asked("patch", "pods", name, "status")
                    if "containerStatuses" in one.body["status"]])

    def statuses(self, samples):
        """From the exit of a process to the request that reports it."""
        spans = []
        for _ in range(samples):
            self.node.wait_reported_phase("warm", "Running")
            pid, before = self.node.init("warm"), self.count_status_requests("warm")
            time.sleep(0.3)
            before = self.count_status_requests("warm")
            started = time.monotonic()
            os.kill(pid, 9)
            while self.count_status_requests("warm") == before:
                time.sleep(0.0005)
            spans.append(time.monotonic() - started)
            self.fifo.wait_for(["warm"])
        self.figures.add("process exits -> the server has received it, median", statistics.median(spans) * 1000, 50, "ms")

    def quiet(self):
        time.sleep(5)
        before = len(self.api.requests)
        time.sleep(QUIET_SECONDS)
        count = (len(self.api.requests) - before) * 60 / QUIET_SECONDS
        self.figures.add("requests per minute when nothing happens", count, 6, "")

    def many(self):
        self.api.api.injects_tokens = True
        names = [f"many{i}" for i in range(PODS - 1)]
        for name in names:
            self.bind(name)
        self.fifo.wait_for(names, 300)
        for name in names:
            self.node.wait_reported_phase(name, "Running", 120)
        time.sleep(CALM_SECONDS)
        self.figures.add(f"agent PSS with {PODS} pods of the server", world.pss_kib(self.node.agent.pid) / 1024, 8, "MiB")
        self.drop(names)

    def boot(self, name, joined):
        self.node.stop()
        self.node.write_config(mainstay={"kubeconfig": self.node.kubeconfig} if joined else {})
        self.node.drop(bare.measured_pod(self.node, name))
        started = time.monotonic()
        self.node.start(ready=False)
        span = self.fifo.wait_for([name]) - started
        self.node.wait_running(name)
        self.node.remove(name)
        self.node.wait_gone(name)
        return span

    def boots(self, samples):
        """Starts while the server is unreachable, with and without a kubeconfig for it."""
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
